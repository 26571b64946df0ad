"""Reading one column: kinds, missing values, formats, refusals."""

from __future__ import annotations

import datetime
import decimal
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from turnout.cli.sample.columns import Column, read_columns
from turnout.errors import InvalidTypeError, InvalidValueError


def decoded(column: Column) -> list[Any]:
    return [None if index < 0 else column.values[index] for index in column.indices]


def read_column(path: Path, name: str, **options: Any) -> Column:
    [column] = read_columns(path, [name], **options)
    return column


def read_csv(tmp_path: Path, text: str, column: str = "a", **options: Any) -> Column:
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    return read_column(path, column, **options)


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("a,b\nx,1\ny,2\nx,3\n", "text", ["x", "y", "x"]),
        ("a,b\n3,1\n-1,2\n0,3\n", "integer", [3, -1, 0]),
        ("a,b\n02139,1\n10001,2\n", "text", ["02139", "10001"]),
        ("a,b\n1.0,1\n2.0,2\n", "text", ["1.0", "2.0"]),
        ("a,b\n1,1\n,2\n3,3\n", "integer", [1, None, 3]),
        ("a,b\n1,1\nNaN,2\n3,3\n", "integer", [1, None, 3]),
        ("a,b\nnan,1\nx,2\n", "text", [None, "x"]),
        ("a,b\nNA,1\nnull,2\nna,3\n", "text", [None, None, "na"]),
        ('a,b\n"two\nlines",1\n"with, comma",2\n', "text", ["two\nlines", "with, comma"]),
        ("a,b\ntrue,1\nfalse,2\n", "text", ["true", "false"]),
        ("a,b\n99999999999999999999,1\n", "text", ["99999999999999999999"]),
        ("\ufeffa,b\nx,1\n", "text", ["x"]),
        ("a,b\r\nx,1\r\ny,2\r\n\r\n", "text", ["x", "y"]),
        ("a\nx\n\ny\n", "text", ["x", None, "y"]),
        ("a,b\n", "text", []),
    ],
)
def test_csv_values_keep_their_meaning(
    tmp_path: Path, text: str, kind: str, values: list[Any]
) -> None:
    column = read_csv(tmp_path, text)
    assert decoded(column) == values
    assert column.kind == kind or not values


def test_named_texts_count_as_missing(tmp_path: Path) -> None:
    column = read_csv(tmp_path, "a,b\n?,1\nx,2\n-9,3\n", missing_values=["?", "-9"])
    assert decoded(column) == [None, "x", None]
    assert column.missing_rows().tolist() == [0, 2]


def test_a_stated_label_is_not_missing(tmp_path: Path) -> None:
    column = read_csv(tmp_path, "a,b\nNA,1\nDE,2\nnull,3\n", labels={"a": ["DE", "NA"]})
    assert decoded(column) == ["NA", "DE", None]


def test_named_texts_count_as_missing_among_integers(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1, 99, 2]}), path)
    assert decoded(read_column(path, "a", missing_values=["99"])) == [1, None, 2]


def test_compressed_and_tab_separated_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\nx,1\ny,2\n"))
    assert decoded(read_column(path, "a")) == ["x", "y"]
    path = tmp_path / "in.tsv"
    path.write_text("a\tb\nx, y\t1\n")
    assert decoded(read_column(path, "a")) == ["x, y"]


ARROW_COLUMNS = [
    (pa.array(["x", None, "y", "x"]), "text", ["x", None, "y", "x"]),
    (pa.array(["x", "y"], pa.large_string()), "text", ["x", "y"]),
    (pa.array(["x", None, "x"]).dictionary_encode(), "text", ["x", None, "x"]),
    (pa.array([3, None, 1], pa.int8()), "integer", [3, None, 1]),
    (pa.array([2**63, 1], pa.uint64()), "integer", [2**63, 1]),
    (pa.array([1.0, float("nan"), None, 5.0]), "integer", [1, None, None, 5]),
    (pa.array([0.5, 1.0]), "number", [0.5, 1.0]),
    (pa.array([True, None, False]), "boolean", [True, None, False]),
    (pa.array([decimal.Decimal("1.50")]), "text", ["1.50"]),
    (pa.array([datetime.date(2024, 2, 29)]), "text", ["2024-02-29"]),
    (pa.array([None, None]), "text", [None, None]),
    (pa.array([], pa.string()), "text", []),
]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize(("array", "kind", "values"), ARROW_COLUMNS)
def test_typed_files_keep_the_type(
    tmp_path: Path, suffix: str, array: Any, kind: str, values: list[Any]
) -> None:
    path = tmp_path / f"in.{suffix}"
    table = pa.table({"other": [[1]] * len(array), "a": array})
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "feather":
        feather.write_feather(table, path)
    else:
        with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    column = read_column(path, "a")
    assert decoded(column) == values
    assert column.kind == kind or not values


def test_differing_dictionaries_of_chunks_are_unified(tmp_path: Path) -> None:
    path = tmp_path / "in.arrow"
    first, second = pa.array(["x", "y"]), pa.array(["z", "x"])
    schema = pa.schema({"a": pa.dictionary(pa.int32(), pa.string())})
    with ipc.new_stream(str(path), schema) as writer:
        for chunk in (first, second):
            writer.write_batch(pa.record_batch([chunk.dictionary_encode()], schema=schema))
    assert decoded(read_column(path, "a")) == ["x", "y", "z", "x"]


def test_unused_categories_are_not_values(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    array = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["x", "unused"]))
    pq.write_table(pa.table({"a": array}), path)
    assert read_column(path, "a").values == ("x",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"x,y\n1,2\n", "no column 'a'; its columns are 'x', 'y'"),
        ("in.csv", b"", "no header line"),
        ("in.csv", b"a,b,a\n1,2,3\n", "2 columns are named 'a'"),
        ("in.csv", b"a,b\n1,2\n1,2,3\n", "cannot be read"),
        ("in.csv", b"a,b\n\xff,2\n", "cannot be read"),
        ("in.csv", b"\xff,a\n1,2\n", "cannot be read"),
        ("in.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("in.parquet", b"PAR1 no", "cannot be read"),
        ("in.arrow", b"no", "cannot be read"),
        ("in.xlsx", b"", "must end in .parquet, .*, .csv, .tsv"),
        ("in", b"", "must end in .parquet"),
    ],
)
def test_unreadable_files_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match=message):
        read_column(path, "a")


@pytest.mark.parametrize(
    "array", [pa.array([[1]]), pa.array([{"x": 1}]), pa.array([b"\xff"])], ids=str
)
def test_columns_that_are_no_categories_are_refused(tmp_path: Path, array: Any) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": array}), path)
    with pytest.raises(InvalidTypeError, match="column 'a'"):
        read_column(path, "a")


def test_infinite_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1.5, float("inf")]}), path)
    with pytest.raises(InvalidValueError, match="infinite"):
        read_column(path, "a")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        read_column(tmp_path / "nowhere.csv", "a")
