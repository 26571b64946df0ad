"""The text of CSV files: decoded, cut at row ends, and refused if a reader would lose rows.

Readers drop and join rows without a word where a quote is never closed, where text comes after a
closing quote, at zero bytes, and at line ends of several kinds. The core (``rows``) looks for all
of these, and counts: what reads the columns afterwards must find as many rows.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from turnout import _core
from turnout._extras import require
from turnout.errors import CorruptDataError
from turnout.pipeline.sources.filed import reading
from turnout.pipeline.sources.files import DataFile

#: Bytes that are read at once.
CHUNK: Final = 2**22
#: Bytes that a row can always have.
LONGEST: Final = 2**22

_FIRST: Final = 2**16
_LINE_END: Final = re.compile(rb"\r\n?|\n")

#: What stands between fields if the file does not say otherwise, and by the end of its name.
_USUAL: Final = {".tsv": "\t"}
#: What is tried where that does not fit.
SEPARATORS: Final = (",", ";", "\t", "|")

#: Marks at the beginning of a file, and the encoding that they stand for.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_OF_SOURCE: Final = ", of survey and turnout.pipeline.scan,"
_OTHER_ENCODING: Final = (
    f"encoding (--encoding){_OF_SOURCE} says how it is written, such as cp1252 or utf-16"
)
OTHER_SEPARATOR: Final = (
    f"separator (--separator){_OF_SOURCE} says what stands between fields, such as ';'"
)


class Found(NamedTuple):
    """The whole rows at the beginning of some text, and the error in the next one."""

    end: int
    rows: int
    empty: int
    lines: int
    ends: int
    fault: tuple[str, int, int] | None


def find_rows(
    data: bytes | memoryview,
    separator: str,
    *,
    last: bool,
    ends: int = 0,
    fields: int | None = None,
    most: int | None = None,
) -> Found:
    r"""Find the whole rows at the beginning of text that begins with a row.

    Parameters
    ----------
    data, separator
        The text, and what stands between two fields.
    last
        Whether nothing comes after it.
    ends
        How earlier rows ended, as was found of them; 0 if there are none.
    fields, most
        How many fields each row must have, and how many rows are looked at.

    Examples
    --------
    >>> find_rows(b"yes,7\nno,8\nye", ",", last=False)
    Found(end=11, rows=2, empty=0, lines=2, ends=1, fault=None)
    """
    text = np.frombuffer(data, np.uint8)
    return Found(*_core.scan_rows(text, ord(separator), last, ends, fields, most))


@dataclass(frozen=True)
class Layout:
    """The layout of the text of a file.

    Attributes
    ----------
    separator
        What stands between two fields.
    encoding
        What encoding was stated; None if the file says so itself, or is UTF-8.
    header
        The names of the columns.
    length, lines
        How many bytes (of UTF-8) and lines there are up to the end of the header.
    ends
        How the header ends, as :func:`find_rows` says it.
    """

    separator: str
    encoding: str | None
    header: tuple[str, ...]
    length: int
    lines: int
    ends: int


@dataclass(frozen=True)
class Stretch:
    """A range of whole rows of a file.

    Attributes
    ----------
    data
        Their text.
    rows
        How many they are.
    first_row, first_line
        The numbers of the first, from 0: without the header, and with it.
    ends
        How earlier rows ended.
    """

    data: memoryview
    rows: int
    first_row: int
    first_line: int
    ends: int


@contextmanager
def _opened(file: DataFile) -> Iterator[Any]:
    suffix = Path(file.path).suffix.lower()
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}.get(suffix)
    with require("pyarrow", "cli").input_stream(file.path, compression=codec) as stream:
        yield stream


def _text(file: DataFile, encoding: str | None, size: int) -> Iterator[bytes]:
    """Read a file piece by piece, as UTF-8 without a mark."""
    with reading(file), _opened(file) as stream:
        data = stream.read(size)
        known = encoding or next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
        if codecs.lookup(known).name == "utf-8":
            data = data.removeprefix(codecs.BOM_UTF8)
            while data:
                yield data
                data = stream.read(size)
            return
        decoder = codecs.getincrementaldecoder(known)()
        try:
            while data:
                yield decoder.decode(data).encode()
                data = stream.read(size)
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError:
            # Not the text of the error, which quotes what stands there.
            raise CorruptDataError(
                f"{file.shown}: is not text in the encoding {known!r}; {_OTHER_ENCODING}"
            ) from None


def layout_of(file: DataFile, separator: str | None, encoding: str | None) -> Layout:
    """Detect the layout of the text of a file, and read its header.

    If no separator is stated, it is a comma, or a tab in ``.tsv``. If this does not divide the
    header and the first row into the same number of fields, and exactly one other usual separator
    does, it is that one.

    Parameters
    ----------
    file
        The file.
    separator, encoding
        What is stated of it.

    Raises
    ------
    CorruptDataError
        If there is no header, or something is wrong with it.
    """
    usual = next(
        (_USUAL[each.lower()] for each in Path(file.path).suffixes[-2:] if each.lower() in _USUAL),
        ",",
    )
    data, last = b"", True
    for piece in _text(file, encoding, _FIRST):
        data += piece
        found = find_rows(data, separator or usual, last=False, most=2)
        if found.rows == 2 or found.fault is not None or len(data) > LONGEST:
            last = False
            break
    if separator is None:
        fitting = [each for each in SEPARATORS if _fits(data, each, last=last)]
        separator = fitting[0] if len(fitting) == 1 and usual not in fitting else usual
    found = find_rows(data, separator, last=last, most=1)
    layout = Layout(separator, encoding, (), found.end, found.lines, found.ends)
    if not found.rows:
        if found.fault is not None:
            raise _refusal(file, layout, found, None)
        long = " of at most 4 MiB" if len(data) > LONGEST else ""
        raise CorruptDataError(f"{file.shown}: no header line{long}")
    try:
        header = _fields(data[: found.end], separator)
    except UnicodeDecodeError:
        raise CorruptDataError(
            f"{file.shown}: the header is not UTF-8; {_OTHER_ENCODING}"
        ) from None
    except csv.Error as error:
        raise CorruptDataError(f"{file.shown}: the header cannot be read: {error}") from error
    return Layout(separator, encoding, header, found.end, found.lines, found.ends)


def _fields(row: bytes, separator: str) -> tuple[str, ...]:
    text = io.StringIO(row.decode(), newline="")
    return tuple(next(filter(None, csv.reader(text, delimiter=separator, strict=True))))


def _fits(data: bytes, separator: str, *, last: bool) -> bool:
    """Tell whether a separator makes several fields of the header, and as many of the first row."""
    header = find_rows(data, separator, last=last, most=1)
    if not header.rows:
        return False
    try:
        fields = len(_fields(data[: header.end], separator))
    except (UnicodeDecodeError, csv.Error):
        return False
    row = find_rows(data[header.end :], separator, last=last, fields=fields, most=1)
    return fields > 1 and row.fault is None


def whole_rows(file: DataFile, layout: Layout) -> Iterator[Stretch]:
    """Read the rows of a file, as many at once as there are in some megabytes.

    Raises
    ------
    CorruptDataError
        If a reader could lose a row, or the file cannot be read.
    """
    rest, skipped = b"", layout.length
    rows, lines, ends = 0, layout.lines, layout.ends
    # With one column an empty line is a row whose field is empty: a missing value.
    alone = len(layout.header) == 1
    pieces, last = _text(file, layout.encoding, CHUNK), False
    while not last:
        piece = next(pieces, None)
        last = piece is None
        data = rest + (piece or b"")
        if skipped:
            # A long header is in several pieces.
            data, skipped = data[skipped:], max(skipped - len(data), 0)
        found = find_rows(data, layout.separator, last=last, ends=ends)
        new = found.rows + (found.empty if alone else 0)
        whole = Stretch(memoryview(data)[: found.end], new, rows, lines, ends)
        if found.end:
            yield whole
        if found.fault is not None:
            raise _refusal(file, layout, found, whole)
        rows, lines, ends, rest = rows + new, lines + found.lines, found.ends, data[found.end :]
        if len(rest) > LONGEST:
            raise _too_long(file, layout, Stretch(memoryview(rest), 0, rows, lines, ends))


def refused(file: DataFile, layout: Layout, stretch: Stretch, columns: str) -> CorruptDataError:
    """Say why the rows of a stretch cannot be read, and quote nothing of them.

    Parameters
    ----------
    file, layout, stretch
        The file, how it is laid out, and the rows.
    columns
        What messages call the columns that were to be read.
    """
    found = find_rows(
        stretch.data, layout.separator, last=True, ends=stretch.ends, fields=len(layout.header)
    )
    if found.fault is not None:
        return _refusal(file, layout, found, stretch)
    data = bytes(stretch.data)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        before = len(_LINE_END.findall(data[: error.start]))
        return CorruptDataError(
            f"{file.shown}: line {stretch.first_line + before + 1:,} holds text that is not "
            f"UTF-8; {_OTHER_ENCODING}"
        )
    return CorruptDataError(
        f"{file.shown}: {columns} of the {stretch.rows:,} rows from row {stretch.first_row + 1:,} "
        "on cannot be read"
    )


def _too_long(file: DataFile, layout: Layout, start: Stretch) -> CorruptDataError:
    found = find_rows(start.data, layout.separator, last=True, ends=start.ends)
    if found.fault is not None and found.fault[0] == "unclosed":
        return _refusal(file, layout, found, start, "within 4 MiB")
    place = _place(layout, start, 0, 0)
    return CorruptDataError(f"{file.shown}: {place}: is longer than 4 MiB")


def _place(layout: Layout, start: Stretch | None, rows: int, lines: int) -> str:
    if start is None:
        return f"the header (line {lines + 1:,})"
    return f"row {start.first_row + rows + 1:,} (line {start.first_line + lines + 1:,})"


def _refusal(
    file: DataFile, layout: Layout, found: Found, start: Stretch | None, how: str = ""
) -> CorruptDataError:
    """State what is wrong with the row after those that were found: it is quoted nowhere."""
    assert found.fault is not None
    reason, field, lines = found.fault
    alone, number = len(layout.header) == 1, field + 1
    columns = len(layout.header)
    have = f"{number:,} field{'s' if number > 1 else ''}"
    texts = {
        "unclosed": f"the quote that opens field {number:,} is "
        f"{f'not closed {how}' if how else 'never closed'}: the rows after it would be lost; "
        "remove it, or close it",
        "closed": f"there is text after the quote that closes field {number:,}: within "
        "quotes a quote is written twice; remove the quote that opens the field "
        "if the field is not quoted",
        "zero": f"there is a zero byte in field {number:,}: the file is damaged, or no text; "
        f"{_OTHER_ENCODING}",
        "ends": "some rows end with a carriage return alone and others with a line feed: let all "
        "end alike",
        "fields": f"has {have} where the header has {columns:,}"
        f"{f'; {OTHER_SEPARATOR}' if alone else ''}",
    }
    place = _place(layout, start, found.rows + (found.empty if alone else 0), lines)
    return CorruptDataError(f"{file.shown}: {place}: {texts[reason]}")
