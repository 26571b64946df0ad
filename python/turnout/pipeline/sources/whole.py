"""Checks that a columnar file is one complete file.

Parquet and Arrow IPC files describe their content at their ends, with positions counted from their
beginnings. Readers read two concatenated files (``cat a b > c``) without an error: as the rows of
the first, however many rows the second declares. An Arrow IPC stream ends at its end marker:
readers ignore data after it, and do not notice if the stream was cut between two batches.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from turnout._files import open_regular
from turnout.collecting.report_files.parquet_headers import column_chunks
from turnout.errors import CorruptDataError
from turnout.pipeline.sources.files import DataFile

_PARQUET: Final = b"PAR1"
_ARROW: Final = b"ARROW1"
#: The mark of the end of a stream, now and before release 0.15 of Arrow.
_MARK: Final = b"\xff\xff\xff\xff\0\0\0\0"
_OLD_MARK: Final = b"\0\0\0\0"
#: Bytes of a number of blocks, and of a block: offset, length of the message, length of the body.
_BLOCK: Final = struct.Struct("<qi4xq")
_STRETCH: Final = 2**20


def check_parquet(file: DataFile, metadata: Any) -> None:
    """Refuse a Parquet file that is a concatenation, or whose row counts contradict.

    Raises
    ------
    CorruptDataError
        If it is.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != metadata.num_rows:
        raise CorruptDataError(
            f"{file.shown}: says that it has {metadata.num_rows:,} rows, and its row groups have "
            f"{rows:,}"
        )
    size = file.state[0]
    with open_regular(file.path) as stream:
        try:
            last = column_chunks(stream)[-1:]
        except CorruptDataError as error:
            raise CorruptDataError(f"{file.shown}: {error}") from None
        end = max((chunk.start + chunk.length for chunks in last for chunk in chunks), default=0)
        stream.seek(max(size - len(_PARQUET) - 4, 0))
        length = int.from_bytes(stream.read(4), "little")
    _refuse_several(file, end, size - len(_PARQUET) - 4 - length, _PARQUET)


def check_arrow_file(file: DataFile) -> None:
    """Refuse a file in the Arrow IPC file format that is a concatenation.

    Raises
    ------
    CorruptDataError
        If it is.
    """
    size = file.state[0]
    with open_regular(file.path) as stream:
        stream.seek(max(size - len(_ARROW) - 4, 0))
        length = int.from_bytes(stream.read(4), "little")
        start = size - len(_ARROW) - 4 - length
        stream.seek(max(start, 0))
        footer = stream.read(length)
    try:
        end = max(_ends(footer), default=0)
    except struct.error as error:
        raise CorruptDataError(f"{file.shown}: its end cannot be read") from error
    if end and start - end > len(_MARK):
        raise _several(file)
    _refuse_several(file, end, start, _ARROW)


def _ends(footer: bytes) -> Iterator[int]:
    """List where dictionaries and record batches end, from a table of FlatBuffers."""
    (root,) = struct.unpack_from("<I", footer)
    fields = root - struct.unpack_from("<i", footer, root)[0]
    (length,) = struct.unpack_from("<H", footer, fields)
    # The dictionaries are its third field, and the record batches the fourth.
    for place in (8, 10):
        if place >= length or not (offset := struct.unpack_from("<H", footer, fields + place)[0]):
            continue
        blocks = root + offset + struct.unpack_from("<I", footer, root + offset)[0]
        (number,) = struct.unpack_from("<I", footer, blocks)
        for block in range(number):
            yield sum(_BLOCK.unpack_from(footer, blocks + 4 + _BLOCK.size * block))


def _refuse_several(file: DataFile, start: int, end: int, magic: bytes) -> None:
    """Refuse a file in which another begins, after its data and before what it says of them."""
    if not 0 <= start <= end:
        raise CorruptDataError(f"{file.shown}: its metadata describe more data than it contains")
    joint, rest = magic + magic, b""
    with open_regular(file.path) as stream:
        stream.seek(start)
        while start < end:
            data = stream.read(min(_STRETCH, end - start))
            if not data or joint in rest + data:
                raise _several(file)
            start, rest = start + len(data), data[1 - len(joint) :]


def _several(file: DataFile) -> CorruptDataError:
    return CorruptDataError(
        f"{file.shown}: is several files, one written after the other, and only the rows of one "
        "would be read: name the files each, or a folder of them"
    )


def check_arrow_stream(file: DataFile, last: int, end: int) -> None:
    """Refuse an Arrow IPC stream that was cut, or that has trailing data.

    Parameters
    ----------
    file
        The file of the stream.
    last, end
        Where its last batch ended, and where reading stopped: after the mark of its end, if it has
        one.

    Raises
    ------
    CorruptDataError
        If it was.
    """
    with open_regular(file.path) as stream:
        stream.seek(last)
        after = stream.read(end - last)
    # Dictionaries that no batch follows may stand before it.
    if after != _OLD_MARK and not after.endswith(_MARK):
        raise CorruptDataError(
            f"{file.shown}: has no end mark: the file is incomplete or truncated, so "
            "rows are missing"
        )
    if end != file.state[0]:
        raise _several(file)
