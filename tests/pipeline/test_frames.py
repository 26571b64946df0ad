"""Tables in memory and streams: nothing copied, read once, errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

import turnout as tn
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)
from turnout.pipeline import collect, scan
from turnout.pipeline.sources import open_source


def addresses(data: Any, name: str) -> list[int]:
    source = open_source(data, block_rows=8)
    blocks = [block.read().column(name).chunk(0) for block in source.blocks([name])]
    return [
        block.buffers()[1].address + block.offset * block.type.bit_width // 8 for block in blocks
    ]


def test_arrow_is_not_copied() -> None:
    array = pa.array(np.arange(20))
    start = array.buffers()[1].address
    assert addresses(pa.table({"a": array}), "a") == [start, start + 64, start + 128]


def test_polars_is_not_copied() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": np.arange(20), "s": ["x"] * 20})
    start = frame["a"].to_arrow().buffers()[1].address
    assert addresses(frame, "a") == [start, start + 64, start + 128]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64])
def test_numbers_of_pandas_are_not_copied(dtype: Any) -> None:
    pandas = pytest.importorskip("pandas")
    values = np.arange(20).astype(dtype)
    frame = pandas.DataFrame({"a": values, "b": np.arange(20.0)}, copy=False)
    start, size = frame["a"].to_numpy().ctypes.data, values.itemsize
    assert addresses(frame, "a") == [start, start + 8 * size, start + 16 * size]


def test_integers_reach_the_kernel_as_they_are() -> None:
    array = pa.array(np.arange(20, dtype=np.uint16))
    answers = scan(open_source(pa.table({"a": array})), "a")
    encoded = answers._encoder(tn.Domain.from_integers(20))(next(answers._all_blocks()))
    assert encoded.codes.dtype == np.uint16
    assert encoded.codes.ctypes.data == array.buffers()[1].address


def test_a_column_that_is_not_wanted_need_not_convert() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", "y"], "odd": [object(), object()], 3: [1, 2]})
    assert scan(frame, "a").distinct() == ["x", "y"]
    with pytest.raises(InvalidTypeError, match="the pandas frame: columns 'odd' cannot be"):
        scan(frame, "odd")
    mixed = pandas.DataFrame({"a": ["x", 1]})
    with pytest.raises(InvalidTypeError, match="cannot be made Arrow columns"):
        scan(mixed, "a")
    twice = pandas.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(InvalidValueError, match="2 columns are named 'a'"):
        scan(twice, "a")


def test_nullable_and_categories_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None, 2], dtype="Int64"),
            "c": pandas.Categorical(["u", None, "v"], categories=["unused", "v", "u"]),
        }
    )
    answers = scan(frame, "i", missing="drop")
    encoded = answers._encoder(tn.Domain.from_integers(3))(next(answers._all_blocks()))
    assert (encoded.codes.tolist(), encoded.left_out.people) == ([1, 2], 1)
    answers = scan(frame, "c", missing="drop")
    encoded = answers._encoder(tn.Domain(["u", "v"]))(next(answers._all_blocks()))
    assert (encoded.codes.tolist(), encoded.left_out.people) == ([0, 1], 1)


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for number in range(count):
        yield pa.record_batch({"a": [str(number)] * rows})


def test_a_stream_is_read_once_and_no_further_than_needed() -> None:
    taken = []

    def counted() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(10, 3)):
            taken.append(number)
            yield batch

    source = open_source(counted(), block_rows=4)
    assert (source.rows, source.repeatable, source.fingerprint) == (None, False, None)
    answers = scan(source, "a")
    with pytest.raises(InvalidValueError, match="pass the domain"):
        answers.domain()
    blocks = answers._all_blocks()
    assert next(blocks).rows == 4
    assert taken == [0, 1]
    assert [block.rows for block in blocks] == [4] * 6 + [2]
    with pytest.raises(InvalidValueError, match="can be read only once, and was already read"):
        next(answers._all_blocks())


def test_streams_that_are_none() -> None:
    with pytest.raises(InvalidValueError, match="an empty iterator"):
        open_source(iter([]))
    with pytest.raises(InvalidTypeError, match="record batches or tables"):
        open_source(iter(["a.csv"]))
    with pytest.raises(InvalidTypeError, match="batch 1 must be a pyarrow"):
        list(open_source(iter([next(batches(1, 1)), 3])).blocks(["a"]))
    with pytest.raises(InvalidValueError, match="batch 1: no column 'a'"):
        list(open_source(iter([next(batches(1, 1)), pa.record_batch({"b": [1]})])).blocks(["a"]))
    with pytest.raises(InvalidTypeError, match="batch 1: column 'a' has type"):
        list(open_source(iter([next(batches(1, 1)), pa.record_batch({"a": [[1]]})])).blocks(["a"]))
    with pytest.raises(InvalidTypeError, match="data must be"):
        open_source(pa.array([1, 2]))
    with pytest.raises(InvalidTypeError):
        open_source(pa.chunked_array([[1, 2]]))


def test_a_filtered_dataset_and_partitions() -> None:
    data = pyarrow.dataset.dataset(pa.table({"a": ["x", "y", "x"], "b": [1, 2, 3]}))
    source = open_source(data.filter(pyarrow.dataset.field("b") > 1))
    assert scan(source, "a").distinct() == ["y", "x"]


def test_a_query_of_duckdb_with_odd_names() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(
        """select range as "a b", 'x' || range as "c""d", 2 * range as "e.f" from range(5)"""
    )
    source = open_source(relation, block_rows=2)
    assert [block.read().to_pydict() for block in source.blocks(['c"d', "a b", "e.f"])][2] == {
        'c"d': ["x4"],
        "a b": [4],
        "e.f": [8],
    }


def test_a_lazy_frame_of_narwhals() -> None:
    narwhals, polars = pytest.importorskip("narwhals"), pytest.importorskip("polars")
    query = polars.LazyFrame({"answer": ["no", "yes", "no"], "other": [1, 2, 3]})
    source = open_source(narwhals.from_native(query), block_rows=2)
    assert source.computed
    assert [block.read()["answer"].to_pylist() for block in source.blocks(["answer"])] == [
        ["no", "yes"],
        ["no"],
    ]


def test_polars_without_streams_and_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"answer": ["no", "yes", "no"], "other": [1, 2, 3]})
    monkeypatch.delattr(polars.LazyFrame, "collect_batches")
    query = scan(frame.lazy().filter(polars.col("other") > 1), "answer")
    assert query.source.computed
    assert query.distinct() == ["yes", "no"]
    monkeypatch.delattr(polars.DataFrame, "__arrow_c_stream__")
    assert scan(frame, "answer").distinct() == ["no", "yes"]
    assert scan(frame.lazy(), "answer").distinct() == ["no", "yes"]


def test_duckdb_before_its_reader_was_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")

    class OldRelation:
        def __init__(self, relation: Any) -> None:
            self.relation = relation

        def project(self, columns: str) -> OldRelation:
            return OldRelation(self.relation.project(columns))

        def limit(self, rows: int) -> OldRelation:
            return OldRelation(self.relation.limit(rows))

        def fetch_arrow_reader(self, rows: int) -> Any:
            return self.relation.to_arrow_reader(rows)

    relation = duckdb.sql("select 'x' || range as answer, range as other from range(3)")
    monkeypatch.setattr(duckdb, "DuckDBPyRelation", OldRelation)
    assert scan(OldRelation(relation), "answer").distinct() == ["x0", "x1", "x2"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.uint32(), pa.int64(), pa.uint64()])
def test_dictionaries_with_any_type_of_index(kind: pa.DataType) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], kind), pa.array(["yes", "never"]))
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    with pytest.raises(UnknownLabelError, match=r"1 values .* labels of the domain \(row 2\)"):
        collect(scan(pa.table({"a": values}), "a"), oracle)


def test_text_that_is_not_utf8_is_refused_and_not_quoted() -> None:
    values = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 4], np.int32)), pa.py_buffer(b"ann\xff")]
    )
    answers = scan(pa.table({"a": values}), "a")
    [block] = answers._all_blocks()
    with pytest.raises(CorruptDataError, match="'a' holds text that is not UTF-8") as caught:
        answers._encoder(tn.Domain(["ann", "bert"]))(block)
    assert "ann" not in str(caught.value)


def test_a_stream_that_breaks_off() -> None:
    def broken(error: Exception) -> Iterator[pa.RecordBatch]:
        yield from batches(1, 1)
        raise error

    with pytest.raises(ConnectionResetError, match="the connection is gone"):
        list(open_source(broken(ConnectionResetError(104, "the connection is gone"))).blocks(["a"]))
    # What Arrow says of values may quote one; of a query it comes as an OSError.
    for kind in (pa.ArrowInvalid, OSError):
        wrong = broken(kind("Failed to parse string: 'hugo7' as a scalar of type int64"))
        with pytest.raises(CorruptDataError, match="batches: its rows cannot be read") as caught:
            list(open_source(wrong).blocks(["a"]))
        assert "hugo7" not in "".join(traceback.format_exception(caught.value))


def test_a_column_that_holds_no_categories() -> None:
    table = pa.table({"a": pa.array([b"\xff"])})
    answers = scan(table, "a")
    [block] = answers._all_blocks()
    with pytest.raises(InvalidTypeError, match="'a' has type binary, which is not one"):
        answers._encoder(tn.Domain(["a", "b"]))(block)
