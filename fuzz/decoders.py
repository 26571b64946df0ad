"""Fuzz the decoders of the Python package: ``python fuzz/decoders.py documents 60 0 -1``.

The targets are those of ``tests/decoders.py``, in three groups. With atheris inputs are made by
what they reach; without it they are valid ones and those of the corpus, altered. What breaks a
decoder's word is written to ``tests/corpus``, where the everyday tests replay it, and ends the run.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import io
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

try:
    import atheris
except ModuleNotFoundError:
    atheris = None

ROOT = Path(__file__).parents[1]
GROUPS = ("documents", "messages", "files")
FILES = ("parquet", "arrow", "checkpoint", "idx")
MOST_BYTES = 2**14
MOST_MEMORY = 2**18  # KiB that one input may add

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 255, 2**31, 2**32, 2**53, 2**63, 2**64, 2**70, 0.5, -0.0,
    5e-324, 1e-9, 1e308, "", "x", "0", "1/3", "-1", "\ud800", "0" * 64, "é" * 32, [], [0, 0], [[]],
    ["x"], {}, {"x": 1},
]  # fmt: skip


def load() -> tuple[ModuleType, ModuleType]:
    """The table of the decoders, each of which has read its valid input once, and what makes it."""
    sys.path.insert(0, str(ROOT))
    table, decoding = map(importlib.import_module, ("tests.decoders", "tests.decoding"))
    for name, decoder in table.DECODERS.items():
        broken = decoding.broken_word(decoder, decoder.sealed(decoder.content))
        if broken:
            sys.exit(f"{name}: {broken}")
    return table, decoding


def group_of(name: str, decoder: Any) -> str:
    if name in FILES:
        return "files"
    return "documents" if decoder.document else "messages"


def altered_document(decoding: ModuleType, data: bytes, chance: random.Random) -> bytes:
    """A document with a value replaced, dropped, added, repeated or nested."""
    document = [json.loads(data)]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        paths = decoding.places(document)[1:]
        *way, last = chance.choice(paths)
        parent: Any = document
        for key in way:
            parent = parent[key]
        match chance.randrange(7):
            case 0 if way:
                del parent[last]
            case 1 if isinstance(parent, dict):
                parent[chance.choice([*parent, "x", "kind", "version"])] = parent[last]
            case 1 if way:
                parent.insert(chance.randrange(len(parent) + 1), copy.deepcopy(parent[last]))
            case 2 | 3:
                # Another value of the same document.
                parent[last] = copy.deepcopy(decoding.value_at(document, chance.choice(paths)))
            case 4 if type(parent[last]) in (int, float):
                parent[last] += chance.choice((-1, 1, 0.5, parent[last]))
            case 4 if isinstance(parent[last], str) and parent[last]:
                place = chance.randrange(len(parent[last]))
                letter = chance.choice("0a/.-é\0")
                parent[last] = parent[last][:place] + letter + parent[last][place + 1 :]
            case 5:
                # In itself or in what nests, at most as deep as JSON can be written.
                inner = decoding.places(parent[last])[1:]
                way_in = chance.choice(inner) if inner else ()
                like = (
                    decoding.replaced(parent[last], way_in, decoding.HOLE)
                    if inner
                    else decoding.HOLE
                )
                nest = chance.choice([like, *decoding.NESTS])
                hole = next(
                    p for p in decoding.places(nest) if decoding.value_at(nest, p) == decoding.HOLE
                )
                for _ in range(chance.choice((1, 2, 8, 30, 60, 100))):
                    parent[last] = decoding.replaced(nest, hole, parent[last])
            case _:
                parent[last] = chance.choice(VALUES)
        if not document:
            return b""
    return json.dumps(document[0], sort_keys=True, separators=(",", ":")).encode()


def altered_bytes(data: bytes, chance: random.Random) -> bytes:
    """Bytes with some replaced, dropped or repeated."""
    content = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        start = chance.randrange(len(content) + 1)
        end = min(len(content), start + chance.choice((0, 1, 1, 4, 16)))
        pieces = (b"", b"\0", b"\xff", b"\xff" * 4, content[start:end] * 2, chance.randbytes(4))
        content[start:end] = chance.choice(pieces)
    return bytes(content)


def main(group: str, seconds: int, chosen: int, most: int) -> None:
    """Fuzz the decoders of a group, from a seed; 0 stands for another one each time.

    At most a number of inputs is tried; -1 stands for any number.
    """
    if atheris is None:
        table, decoding = load()
    else:
        # It says of every module that it does so.
        silent = contextlib.redirect_stderr(io.StringIO())
        with silent, atheris.instrument_imports(include=["turnout"]):
            table, decoding = load()
    names = sorted(name for name, one in table.DECODERS.items() if group_of(name, one) == group)
    runs = dict.fromkeys(names, 0)

    def decode(data: bytes) -> None:
        """One input: the number of the decoder, and what it is to read."""
        if not data:
            return
        name, content = names[data[0] % len(names)], data[1:]
        decoder = table.DECODERS[name]
        runs[name] += 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for given in {content, decoder.sealed(content)}:
            broken = decoding.broken_word(decoder, given)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            if grown > MOST_MEMORY:
                broken = f"{grown} KiB of memory for {len(given)} bytes"
            if broken:
                file = decoding.CORPUS / name / hashlib.sha256(content).hexdigest()[:16]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                # To the stream itself: a fuzzer ends the process without what is buffered.
                os.write(2, f"\n{name}: {broken}\nwritten to {file}\n".encode())
                raise AssertionError(f"{name}: {broken}")

    def alter(data: bytes, most: int, seed: int) -> bytes:
        """Another input: of a document mostly another document."""
        chance = random.Random(seed)
        head, content = data[:1] or b"\0", data[1:]
        decoder = table.DECODERS[names[head[0] % len(names)]]
        if chance.random() < 0.02:
            return bytes([chance.randrange(len(names))]) + content
        if decoder.document and chance.random() < 0.7:
            with contextlib.suppress(ValueError, RecursionError, OverflowError, TypeError):
                return (head + altered_document(decoding, content, chance))[:most]
        if atheris is not None and content and chance.random() < 0.8:
            return bytes(head + atheris.Mutate(content, most - 1))
        return (head + altered_bytes(content, chance))[:most]

    seeds = []
    for number, name in enumerate(names):
        known = [file.read_bytes() for file in (decoding.CORPUS / name).glob("*")]
        seeds += [bytes([number]) + one for one in [table.DECODERS[name].content, *known]]
    if atheris is None:
        chance, end = random.Random(chosen or None), time.monotonic() + seconds
        while time.monotonic() < end and not 0 <= most <= sum(runs.values()):
            decode(alter(chance.choice(seeds), MOST_BYTES, chance.getrandbits(32)))
        sys.stderr.write(f"{sum(runs.values())} runs of {len(names)} decoders\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            Path(folder, str(number)).write_bytes(seed)
        artifacts = ROOT / "build/fuzz"
        artifacts.mkdir(parents=True, exist_ok=True)
        options = [
            f"-max_total_time={seconds}", f"-runs={most}", f"-max_len={MOST_BYTES}", "-timeout=10",
            "-rss_limit_mb=3000", f"-artifact_prefix={artifacts}/{group}-", "-print_final_stats=1",
            "-verbosity=0", f"-seed={chosen}",
        ]  # fmt: skip
        atheris.Setup([sys.argv[0], folder, *options], decode, custom_mutator=alter)
        atheris.Fuzz()


if __name__ == "__main__":
    given = " ".join(sys.argv[1:])
    if not re.fullmatch(rf"({'|'.join(GROUPS)}) \d+ \d+ (-1|\d+)", given, re.ASCII):
        sys.exit(
            f"expected one of {', '.join(GROUPS)}, a number of seconds, a seed or 0, and a number "
            "of inputs or -1"
        )
    main(sys.argv[1], *map(int, sys.argv[2:]))
