"""The footer and the pages of a Parquet file, as Arrow and turnout read them."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.collecting.report_files.parquet_headers import (
    ColumnChunk,
    column_chunks,
    page_headers,
)
from turnout.errors import CorruptDataError
from turnout.pipeline import scan

TABLE = pa.table(
    {
        "a": pa.array([1, None, 3] * 20, pa.int64()),
        "b.c": ["x", "y" * 200, None] * 20,
        "list": [[1, 2], [], None] * 20,
        "struct": [{"p": 1, "q": [True]}, {"p": None, "q": None}, None] * 20,
        "day": pa.array([1, 2, 3] * 20, pa.date32()),
    }
)


def written(table: Any = TABLE, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 7, "compression": "zstd"},
        {"use_dictionary": False, "data_page_version": "2.0", "write_statistics": False},
        {"write_page_index": True, "write_page_checksum": True, "data_page_size": 1},
        {"sorting_columns": [pq.SortingColumn(0)], "store_decimal_as_integer": True},
        {"table": TABLE.slice(0, 0)},
        {"table": pa.table({f"c{number}": [number] for number in range(300)})},
    ],
)
def test_places_are_those_that_arrow_reads(options: dict[str, Any]) -> None:
    data = written(**options)
    footer = pq.read_metadata(io.BytesIO(data))
    expected = []
    for group in map(footer.row_group, range(footer.num_row_groups)):
        expected.append([])
        for column in map(group.column, range(group.num_columns)):
            starts = [column.dictionary_page_offset, column.data_page_offset]
            start = min((offset for offset in starts if offset), default=0)
            place = ColumnChunk(column.path_in_schema, start, column.total_compressed_size)
            expected[-1].append(place)
    file = io.BytesIO(data)
    found = column_chunks(file)
    assert found == expected
    for chunk in (chunk for chunks in found for chunk in chunks):
        headers = list(page_headers(file, chunk))
        # The pages fill the chunk, of which their headers are the rest.
        assert 0 < sum(header[3] for header in headers) < chunk.length or not chunk.length


def test_a_footer_that_contradicts_its_schema_does_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    data = written(pa.table({"a": [1, 2, 3]}))
    # The column is required, and has statistics of levels that only an optional one has.
    place = data.index(b"\x15\x04%\x02\x18\x01a") + 3
    path.write_bytes(data[:place] + b"\0" + data[place + 1 :])
    assert path.read_bytes() != data
    with pytest.raises(CorruptDataError, match=r"a\.parquet"):
        tn.DirectEncoding(1.0, 5).collect(scan(path, "a"), seed=1)


def field(step: int, kind: int, content: bytes) -> bytes:
    return bytes([step << 4 | kind]) + content


#: Numbers 8 and 3, as the compact protocol writes them.
EIGHT, THREE = b"\x10", b"\x06"
PATH = b"\x18\x01a"
COLUMN = field(3, 9, PATH) + field(4, 6, THREE) + field(2, 6, EIGHT) + field(2, 6, b"\x08") + b"\0"


def file_of(column: bytes, groups: bytes = b"\x1c") -> io.BytesIO:
    group = field(1, 9, b"\x1c" + field(3, 12, column) + b"\0") + b"\0"
    footer = field(4, 9, groups + group) + b"\0"
    return io.BytesIO(b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1")


def test_a_dictionary_comes_before_the_data() -> None:
    assert column_chunks(file_of(COLUMN)) == [[ColumnChunk("a", 4, 3)]]
    assert column_chunks(file_of(COLUMN.replace(b"\x08\0", b"\0\0"))) == [[("a", 8, 3)]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        # Another type: Arrow passes over it, and takes the dictionary for missing.
        (COLUMN[:-3] + field(2, 5, b"\x08") + b"\0", "another type"),
        (COLUMN[:-1] + field(0, 6, b"\x16\x04") + b"\0", "has one twice"),
        # 2^16 + 7 is 7 to Arrow.
        (COLUMN[:-1] + field(0, 6, b"\x8e\x80\x08\x04") + b"\0", "number does not fit"),
        (COLUMN.replace(PATH, b"\x15\x02"), "list of another type"),
        (field(7, 6, THREE) + b"\0", "does not state where a column is"),
        (field(1, 9, b"\xf1" + b"\xff" * 9 + b"\1") + COLUMN, "is truncated"),
        (field(1, 9, b"\xf7" + b"\xff" * 9 + b"\1") + COLUMN, "is truncated"),
        (field(1, 8, b"\xff" * 9 + b"\1") + COLUMN, "is truncated"),
        (field(1, 6, b"\xff" * 11) + COLUMN, "does not end"),
        (field(1, 11, b"\1") + COLUMN, "unknown field"),
        (field(1, 9, b"\x19" * 50) + COLUMN, "nested too deeply"),
        (field(1, 12, b"\x1c" * 50) + COLUMN, "nested too deeply"),
    ],
)
def test_what_arrow_could_read_otherwise_is_refused(column: bytes, message: str) -> None:
    with pytest.raises(CorruptDataError, match=message):
        column_chunks(file_of(column))


def test_a_footer_is_within_the_file() -> None:
    with pytest.raises(CorruptDataError, match="more bytes than the file has"):
        column_chunks(io.BytesIO(b"PAR1" + struct.pack("<I", 5) + b"PAR1"))
    with pytest.raises(CorruptDataError, match="is truncated"):
        column_chunks(file_of(COLUMN, b"\xfc\xff\xff\xff\x07"))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (ColumnChunk("a", 4, 2**40), "not within the file"),
        (ColumnChunk("a", -4, 8), "not within the file"),
        (ColumnChunk("a", 8, -4), "not within the file"),
    ],
)
def test_a_column_is_within_the_file(chunk: ColumnChunk, message: str) -> None:
    with pytest.raises(CorruptDataError, match=message):
        list(page_headers(io.BytesIO(written()), chunk))
