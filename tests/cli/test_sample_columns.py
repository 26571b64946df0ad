"""Records of ``turnout sample``: what the columns of a file hold, and refusals."""

from __future__ import annotations

import datetime
import decimal
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from turnout.cli.sample.records import Records, read_records
from turnout.cli.sample.wanted import Wanted
from turnout.errors import InvalidTypeError, InvalidValueError, UnknownLabelError


def read(path: Path, *, labels: list[str] | None = None, missing: str | None = "drop") -> Records:
    wanted = Wanted(
        columns=("a",),
        user_column=None,
        method="mollifier",
        ranges={},
        labels={} if labels is None else {"a": labels},
        missing=missing,
        missing_values=("?", "-9"),
    )
    return read_records(path, wanted)


def decoded(records: Records) -> list[Any]:
    """The values of all rows, None where one was dropped."""
    values = dict(zip(records.users.tolist(), records.data.tolist(), strict=True))
    return [values.get(row) for row in range(1, len(values) + records.left_out.total + 1)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b\nx,1\ny,2\nx,3\n", ["x", "y", "x"]),
        ("a,b\n3,1\n-1,2\n0,3\n", [3, -1, 0]),
        ("a,b\n02139,1\n10001,2\n", ["02139", "10001"]),
        ("a,b\n1.0,1\n2.0,2\n", ["1.0", "2.0"]),
        ("a,b\n1,1\n,2\n3,3\n", [1, None, 3]),
        ("a,b\n1,1\nNaN,2\n3,3\n", [1, None, 3]),
        ("a,b\nnan,1\nx,2\ny,3\n", [None, "x", "y"]),
        ("a,b\nNA,1\nnull,2\nna,3\nx,4\n", [None, None, "na", "x"]),
        ("a,b\n?,1\nx,2\n-9,3\ny,4\n", [None, "x", None, "y"]),
        ('a,b\n"two\nlines",1\n"with, comma",2\n', ["two\nlines", "with, comma"]),
        ("a,b\ntrue,1\nfalse,2\n", ["true", "false"]),
        ("a,b\n99999999999999999999,1\n1,2\n", ["99999999999999999999", "1"]),
        ("\ufeffa,b\nx,1\ny,2\n", ["x", "y"]),
        ("a,b\r\nx,1\r\ny,2\r\n\r\n", ["x", "y"]),
        ("a\nx\n\ny\n", ["x", None, "y"]),
    ],
)
def test_csv_values_keep_their_meaning(tmp_path: Path, text: str, values: list[Any]) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    records = read(path)
    assert decoded(records) == values
    assert records.labels == [tuple(sorted({value for value in values if value is not None}))]


def test_a_stated_label_is_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a,b\nNA,1\nDE,2\nnull,3\n", encoding="utf-8")
    assert decoded(read(path, labels=["DE", "NA"])) == ["NA", "DE", None]
    # A label for what is missing is one of those that are stated, or means nothing.
    assert decoded(read(path, labels=["DE", "NA"], missing="DE")) == ["NA", "DE", "DE"]
    with pytest.raises(InvalidValueError, match=r"1 of 3 answers are missing \(row 3\)"):
        read(path, labels=["DE", "NA"], missing="other")
    with pytest.raises(UnknownLabelError, match=r"1 values are not among the 2 labels"):
        read(path, labels=["NA", "AT"])


def test_compressed_and_tab_separated_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\nx,1\ny,2\n"))
    assert decoded(read(path)) == ["x", "y"]
    path = tmp_path / "in.tsv"
    path.write_text("a\tb\nx, y\t1\nz\t2\n")
    assert decoded(read(path)) == ["x, y", "z"]


ARROW_COLUMNS = [
    (pa.array(["x", None, "y", "x"]), ["x", None, "y", "x"]),
    (pa.array(["x", "y"], pa.large_string()), ["x", "y"]),
    (pa.array(["x", None, "y"]).dictionary_encode(), ["x", None, "y"]),
    (pa.array([3, None, 1], pa.int8()), [3, None, 1]),
    (pa.array([1, -9, 2]), [1, None, 2]),
    (pa.array([2**63, 1], pa.uint64()), [2**63, 1]),
    (pa.array([1.0, float("nan"), None, 5.0]), [1, None, None, 5]),
    (pa.array([0.5, 1.0]), [0.5, 1.0]),
    (pa.array([True, None, False]), [True, None, False]),
    (pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")]), [1.5, 2.0]),
    (pa.array([datetime.date(2024, 2, day) for day in (1, 2)]), ["2024-02-01", "2024-02-02"]),
]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
@pytest.mark.parametrize(("array", "values"), ARROW_COLUMNS)
def test_typed_files_keep_the_type(
    tmp_path: Path, suffix: str, array: Any, values: list[Any]
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
    found = decoded(read(path))
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_differing_dictionaries_of_chunks_are_unified(tmp_path: Path) -> None:
    path = tmp_path / "in.arrow"
    first, second = pa.array(["x", "y"]), pa.array(["z", "x"])
    schema = pa.schema({"a": pa.dictionary(pa.int32(), pa.string())})
    with ipc.new_stream(str(path), schema) as writer:
        for chunk in (first, second):
            writer.write_batch(pa.record_batch([chunk.dictionary_encode()], schema=schema))
    assert decoded(read(path)) == ["x", "y", "z", "x"]


def test_unused_categories_are_not_values(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    indices = pa.array([0, 1, 0], pa.int8())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "y", "unused"]))
    pq.write_table(pa.table({"a": array}), path)
    assert read(path).labels == [("x", "y")]


@pytest.mark.parametrize(
    ("array", "names"),
    [
        (pa.array(["b", "a", "b"]), ["b", "a", "b"]),
        (pa.array([7, None, 5]), [7, None, 5]),
        (pa.array([2**63 + 1, 1, 2], pa.uint64()), [2**63 + 1, 1, 2]),
        (pa.array([datetime.date(2024, 2, 29)] * 3), ["2024-02-29"] * 3),
    ],
    ids=["texts", "integers", "large integers", "dates"],
)
def test_users_are_named_as_in_the_file(tmp_path: Path, array: Any, names: list[Any]) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"who": array, "a": [0.5, 1.5, 2.5]}), path)
    wanted = Wanted(("a",), "who", "density", {}, {}, "drop", ())
    records = read_records(path, wanted)
    assert records.users.tolist() == [name for name in names if name is not None]
    assert records.left_out.total == names.count(None)
    kept = [value for value, name in zip([0.5, 1.5, 2.5], names, strict=True) if name is not None]
    np.testing.assert_array_equal(records.data[:, 0], kept)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"x,y\n1,2\n", "no column 'a'; its columns are 'x', 'y'"),
        ("in.csv", b"", "no header line"),
        ("in.csv", b"a,b,a\n1,2,3\n", "2 columns are named 'a'"),
        ("in.csv", b"a,b\n1,2\n1,2,3\n", r"row 2 \(line 3\): has 3 fields where the header has 2"),
        ("in.csv", b"a,b\n\xff,2\n", "line 2 holds text that is not UTF-8"),
        ("in.csv", b"\xff,a\n1,2\n", "the header is not UTF-8"),
        ("in.csv.gz", b"a,b\n1,2\n", "cannot be read"),
        ("in.parquet", b"PAR1 no", "cannot be read"),
        ("in.arrow", b"no", "cannot be read"),
        ("in.xlsx", b"", "must end in .parquet, .*, .csv, .tsv"),
        ("in", b"", "must end in .parquet"),
        ("in.csv", b"a\n", "holds no answer"),
    ],
)
def test_unreadable_files_are_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match=message):
        read(path)


@pytest.mark.parametrize(
    "array", [pa.array([[1]]), pa.array([{"x": 1}]), pa.array([b"\xff"])], ids=str
)
def test_columns_that_are_no_categories_are_refused(tmp_path: Path, array: Any) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": array}), path)
    with pytest.raises(InvalidTypeError, match="column 'a'"):
        read(path)


def test_infinite_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": [1.5, float("inf")]}), path)
    with pytest.raises(InvalidValueError, match="infinite"):
        read(path)
    with pytest.raises(InvalidValueError, match="1 values are not within the bounds"):
        read_records(path, Wanted(("a",), None, "density", {}, {}, None, ()))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        read(tmp_path / "nowhere.csv")
