"""Every decoder answers any bytes with a value or with one clear error of turnout's.

Documents are changed inside and sealed again, as somebody does who can compute a checksum: each
value replaced, each member dropped or added. Whatever else a decoder lets out, AttributeError or
UnicodeDecodeError, would end a program that means to refuse a bad file and go on. What is taken can
be written, and reads as the same. ``decoders.py`` is the table, ``corpus`` what fuzzers found.
"""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import decoders, decoding

from turnout._seal import SEAL_MARKER
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import TurnoutError

DOCUMENTS = [name for name, decoder in decoders.DECODERS.items() if decoder.document]

WRONG: list[Any] = [
    None, True, -1, 0, 1, 0.5, 2**31, 2**70, 1e300, float("nan"), float("-inf"), "", "x", "\ud800",
    "0" * 64, "é" * 32, [], [[]], [0, 0], ["x"], [None], {}, {"x": 1}, {"kind": []},
]  # fmt: skip


NO_DOCUMENTS = [
    b"", b"\xff\xfe", b"\xed\xa0\x80", b"[", b"[" * 100_000, b"null", b"[]", b"{}", b'"x"', b"NaN",
    b"1" * 5000, b"true",
]  # fmt: skip


def changed(document: Any) -> Iterator[Any]:
    """Copies of a document, each with one value replaced, or one member dropped or added."""
    yield from WRONG
    if isinstance(document, dict):
        for name, value in document.items():
            yield {other: each for other, each in document.items() if other != name}
            for other in changed(value):
                yield {**document, name: other}
        yield {**document, "more": 1}
    elif isinstance(document, list):
        yield [*document, *document]
        for place, value in enumerate(document):
            for other in changed(value):
                yield [*document[:place], other, *document[place + 1 :]]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_wrong_inside_a_genuine_seal_is_one_error(name: str) -> None:
    decoder = decoders.DECODERS[name]
    decoder.read(decoder.sealed(decoder.content))
    bodies = map(decoding.canonical, changed(json.loads(decoder.content)))
    escaped = []
    for body in [*NO_DOCUMENTS, *bodies]:
        try:
            decoder.read(decoder.sealed(body))
        except TurnoutError:
            pass
        except Exception as error:
            escaped.append((body[:300], repr(error)[:200]))
    assert not escaped, (len(escaped), escaped[:20])


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("depth", [24, 150])
def test_what_is_nested_at_any_depth_is_one_error(name: str, depth: int) -> None:
    decoder = decoders.DECODERS[name]
    for body in decoding.deep(json.loads(decoder.content), depth):
        assert decoding.broken_word(decoder, decoder.sealed(body)) is None, body[:300]


def numbers_of(document: Any) -> list[list[tuple[Any, ...]]]:
    """Where a document has numbers: each place alone, and all places of the same number."""
    same: dict[float, list[tuple[Any, ...]]] = {}
    for place in decoding.places(document):
        value = decoding.value_at(document, place)
        if type(value) in (int, float):
            same.setdefault(value, []).append(place)
    return [[place] for group in same.values() for place in group] + [
        group for group in same.values() if len(group) > 1
    ]


class Peak:
    """The memory that a process took up at most since this began, where the system says it."""

    def __init__(self) -> None:
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", "ascii")
        self._before = self._now()

    @staticmethod
    def _now() -> int:
        with contextlib.suppress(OSError):
            return 2**10 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
        return 0

    def added(self) -> int:
        return self._now() - self._before


@pytest.mark.parametrize("name", DOCUMENTS)
def test_reading_costs_by_the_size_of_a_document_not_by_its_numbers(name: str) -> None:
    decoder = decoders.DECODERS[name]
    document = json.loads(decoder.content)
    decoder.read(decoder.sealed(decoder.content))
    for places in numbers_of(document):
        for number in (10**6, 2**24, 2**31 - 1, 2**53):
            stated = document
            for place in places:
                stated = decoding.replaced(stated, place, number)
            data = decoder.sealed(decoding.canonical(stated))
            whole = Peak()
            tracemalloc.start()
            try:
                with contextlib.suppress(TurnoutError):
                    decoder.read(data)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            # What Python and NumPy take; then the core too, where the functions of a sketch, a
            # million at most, take 20 MB.
            assert peak < 2**21, (places, number)
            assert whole.added() < 2**26, (places, number)


@pytest.mark.parametrize("name", decoders.DECODERS)
def test_what_is_cut_or_altered_is_one_error(name: str) -> None:
    decoder = decoders.DECODERS[name]
    whole = decoder.sealed(decoder.content)
    step = max(1, len(whole) // 30)
    pieces = [whole[:length] for length in range(0, len(whole), step)]
    for place in range(0, len(whole), step):
        pieces += [
            whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :] for flip in (1, 128)
        ]
    broken = {decoding.broken_word(decoder, piece) for piece in [*pieces, whole + whole]}
    assert broken == {None}


@pytest.mark.parametrize("name", decoders.DECODERS)
def test_what_a_fuzzer_found_breaks_no_word(name: str) -> None:
    decoder = decoders.DECODERS[name]
    assert decoder.read(decoder.sealed(decoder.content)) is not None or decoder.written is None
    files = [file.read_bytes() for file in sorted(decoding.CORPUS.glob(f"{name}/*"))]
    for content in [decoder.content, *files]:
        for given in (content, decoder.sealed(content)):
            assert decoding.broken_word(decoder, given) is None, content


def test_the_corpus_is_of_decoders_that_there_are() -> None:
    assert {folder.name for folder in decoding.CORPUS.iterdir()} <= set(decoders.DECODERS)


def test_a_decoder_that_breaks_its_word_is_seen() -> None:
    decoder = decoding.Decoder(b"1", decoding.plain, json.loads, lambda value: b"2")
    assert "becomes" in str(decoding.broken_word(decoder, b"1"))
    assert "JSONDecodeError" in str(decoding.broken_word(decoder, b""))
    assert decoding.broken_word(decoder, b"2") is None
    again = decoder._replace(written=lambda value: b"")
    assert "not again" in str(decoding.broken_word(again, b"2"))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_report_file_altered_anywhere_and_sealed_again_is_one_error(
    ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"reports.{ending}"
    write_reports(decoders.ORACLE.randomize(["no", "yes"] * 3, seed=1), path)
    whole = path.read_bytes()
    assert decoding.sealed_again(whole) == whole
    seal = range(whole.rindex(SEAL_MARKER.encode()), whole.rindex(SEAL_MARKER.encode()) + 79)
    names = [place for place in range(len(whole)) if whole[place:].startswith(b"report")]
    refused = 0
    for place in [*names, *range(0, len(whole), 7)]:
        if place in seal:
            continue
        altered = bytearray(whole)
        # In the name of a column this is no UTF-8.
        altered[place] ^= 0x80
        path.write_bytes(decoding.sealed_again(bytes(altered)))
        try:
            read_reports(path)
        except TurnoutError:
            refused += 1
    assert refused > len(names)
