"""Every decoder answers any bytes with a value or with one clear error of turnout's.

Documents are changed inside and sealed again, as somebody does who can compute a checksum: each
value replaced, each member dropped or added. Whatever else a decoder lets out, AttributeError or
UnicodeDecodeError, would end a program that means to refuse a bad file and go on. What is taken can
be written, and reads as the same. ``decoders.py`` is the table, ``corpus`` what fuzzers found.
"""

from __future__ import annotations

import json
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
