"""Tables as people have them: dictionaries, names that are no text, decimals, runs of values."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import turnout as tn
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.pipeline import scan
from turnout.pipeline.sources import open_source

ANSWERS = ["yes", "no", "no", "yes", "no"] * 400


def share(result: Any, label: Any) -> float:
    return float(result.estimate[label].frequency)


# Columns and rows ------------------------------------------------------------------------------


COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda values: np.array(values, object),
    "arrow": pa.array,
    "chunks": lambda values: pa.chunked_array([values[:7], values[7:]]),
    "pandas": lambda values: pytest.importorskip("pandas").Series(values, index=range(9, 2009)),
    "category": lambda values: pytest.importorskip("pandas").Categorical(values),
    "polars": lambda values: pytest.importorskip("polars").Series(values),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_survey_of_a_dictionary_of_columns(kind: str) -> None:
    data = {"region": ["north", "south"] * 1000, "vote": COLUMNS[kind](ANSWERS)}
    result = tn.survey(data, "vote", epsilon=9.0)
    assert result.tally.nodes == len(ANSWERS)
    assert share(result, "no") == pytest.approx(3 / 5, abs=0.02)
    grouped = tn.survey(data, "vote", epsilon=9.0, by="region")
    assert [key[0] for key in grouped.tally] == ["north", "south"]


def test_a_survey_of_a_list_of_dictionaries() -> None:
    rows: list[dict[str, Any]] = [{"who": i, "vote": vote} for i, vote in enumerate(ANSWERS)]
    result = tn.survey(rows, "vote", epsilon=9.0)
    assert share(result, "no") == pytest.approx(3 / 5, abs=0.02)
    # What one of them lacks, or has and the first does not, is missing in the others.
    rows[3:5] = [{"who": 3}, {"who": 4, "vote": "no", "age": 7}]
    with pytest.raises(InvalidValueError, match="1 of 2,000 answers"):
        tn.survey(rows, "vote", epsilon=9.0, labels=["yes", "no"])
    assert tn.survey(rows, "vote", epsilon=9.0, missing="drop").tally.nodes == 1999
    assert scan(rows, "age", missing="drop").distinct() == [7]
    assert scan(tuple(rows), "vote", missing="drop").distinct() == ["yes", "no"]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"a": [1, 2], "b": [1]}, InvalidValueError, "one length, got 2 of 'a' and 1 of 'b'"),
        ({"a": "yes"}, InvalidTypeError, "'a' must be a column, a list or an array, got str"),
        ({"a": {0: "yes"}}, InvalidTypeError, "'a' must be a column, a list or an array, got dict"),
        ({"a": 7}, InvalidTypeError, "'a' must be a column, a list or an array, got int"),
        ({}, InvalidValueError, "the dictionary of columns: no column 'a'; its columns are none"),
        ({"b": [1]}, InvalidValueError, "no column 'a'; its columns are 'b'"),
        ([{"b": 1}], InvalidValueError, "the list of dictionaries: no column 'a'"),
        ({"a": [[1], [2]]}, InvalidTypeError, "expected one value a row"),
        ([{"a": 1}, 7], InvalidTypeError, "data must be paths, a table, a dictionary of columns"),
        ({1: [1], "1": [2], "a": [3]}, None, ""),
    ],
)
def test_dictionaries_that_are_no_tables(data: Any, error: Any, message: str) -> None:
    if error is None:
        assert open_source(data).rows == 1
        with pytest.raises(InvalidValueError, match="2 columns are named '1'"):
            scan(data, "1")
        return
    with pytest.raises(error, match=message):
        scan(data, "a")


def test_columns_of_pandas_are_taken_by_position() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: ["yes", "no", "no"], 1.5: [1, 2, 3], ("a", 1): [4, 5, 6]})
    frame[pandas.Timestamp("2026-03-01")] = [7, 8, 9]
    assert open_source(frame).schema.names == ["0", "1.5", "('a', 1)", "2026-03-01 00:00:00"]
    for name, values in (("1.5", [1, 2, 3]), ("('a', 1)", [4, 5, 6])):
        assert scan(frame, name).distinct() == values
    result = tn.survey(frame, "0", epsilon=9.0, labels=["yes", "no"])
    assert result.tally.nodes == 3
    several = pandas.DataFrame(
        np.arange(6).reshape(3, 2), columns=pandas.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    )
    assert scan(several, "('a', 'c')").distinct() == [1, 3, 5]
    both = pandas.DataFrame([[1, 2]], columns=["0", 0])
    with pytest.raises(InvalidValueError, match="2 columns are named '0'"):
        scan(both, "0")


# Decimals --------------------------------------------------------------------------------------


def decimals(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([None if v is None else Decimal(v) for v in values], kind)


@pytest.mark.parametrize(
    "kind",
    [pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(38, 2), pa.decimal256(40, 2)],
    ids=str,
)
@pytest.mark.parametrize("encoded", [False, True])
def test_whole_decimals_are_integers(kind: pa.DataType, encoded: bool, tmp_path: Path) -> None:
    column = decimals(["1", "2.00", "3", "2", None] * 200, kind)
    if encoded and kind.bit_width >= 128:
        column = column.dictionary_encode()
    table = pa.table({"answer": column, "number": column})
    answers = scan(table, "answer", missing="drop")
    assert answers.domain().labels == (1, 2, 3)
    for domain in (tn.Domain([3, 2, 1]), tn.Domain.from_integers(4)):
        tally = tn.pipeline.collect(answers, tn.DirectEncoding(9.0, domain))
        assert tally.nodes == 800
        assert tally.estimate()[2].frequency == pytest.approx(1 / 2, abs=0.05)
    result = tn.survey(table, "answer", epsilon=9.0, labels=[1, 2, 3], missing="drop")
    assert share(result, 2) == pytest.approx(1 / 2, abs=0.05)
    # A text that means missing is a number too.
    kept = scan(table, "answer", missing="drop", missing_values=["3"])
    assert kept.domain().labels == (1, 2)
    mean = tn.survey(table, "number", epsilon=9.0, bounds=(0, 4), missing="drop", quantiles=())
    assert mean.estimate.mean == pytest.approx(2, abs=0.2)
    if kind.bit_width >= 128:
        assert set(tn.Domain([1, 2, 3]).encode(column.drop_null()).tolist()) == {0, 1, 2}
        assert set(tn.Domain.from_integers(4).encode(column.drop_null()).tolist()) == {1, 2, 3}


@pytest.mark.parametrize("most", [9, 18, 38, 76])
@pytest.mark.parametrize("sign", [-1, 1])
def test_decimals_that_are_no_numbers_are_refused(most: int, sign: int, tmp_path: Path) -> None:
    make = {9: pa.decimal32, 18: pa.decimal64, 38: pa.decimal128, 76: pa.decimal256}[most]
    for scale, fine in ((sign * most, True), (sign * (most + 1), False), (sign * 10**9, False)):
        kind = make(3, scale)
        one = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes([1] + [0] * 31))])
        path = tmp_path / "a.arrow"
        table = pa.table({"a": one})
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        for data in (path, table):
            error = InvalidValueError if fine else InvalidTypeError
            with pytest.raises(error, match=f"column 'a'.*{'' if fine else f'from -{most} to'}"):
                tn.mean.Duchi(1.0, (2.0, 3.0)).collect(scan(data, "a"), seed=1)


def test_other_decimals_are_floats_or_texts(tmp_path: Path) -> None:
    column = decimals(["1.50", "2.00", "0.10"], pa.decimal128(38, 2))
    assert scan(pa.table({"a": column}), "a").domain().labels == (0.1, 1.5, 2)
    oracle = tn.DirectEncoding(9.0, tn.Domain([0.1, 1.5, 2.0]))
    assert tn.pipeline.collect(scan(pa.table({"a": column}), "a"), oracle).nodes == 3
    fine = decimals(["1.00000000000000000000000001", "2"], pa.decimal128(38, 26))
    assert scan(pa.table({"a": fine}), "a").distinct() == ["1.00000000000000000000000001", 2]
    for wrong in (Decimal("nan"), Decimal("inf"), Decimal("0.5"), Decimal(-1)):
        with pytest.raises((tn.errors.TurnoutError,)):
            tn.Domain.from_integers(3).encode([Decimal(1), wrong])


# Runs of values --------------------------------------------------------------------------------


def runs(values: list[Any]) -> pa.Array:
    return pc.run_end_encode(pa.array(values))


@pytest.mark.parametrize("make", ["table", "batches", "file", "stream", "reader"])
def test_runs_of_values_are_written_out(make: str, tmp_path: Path) -> None:
    values = ["yes"] * 300 + ["no"] * 600 + [None] * 100
    ages = [20] * 500 + [40] * 500
    table = pa.table({"answer": pa.chunked_array([runs(values)]), "age": runs(ages)}).slice(50, 900)
    data: Any = table
    if make == "batches":
        data = iter(table.to_batches(max_chunksize=70))
    elif make == "reader":
        data = table.to_reader()
    elif make in ("file", "stream"):
        data = tmp_path / f"{make}.arrow"
        write = pa.ipc.new_file if make == "file" else pa.ipc.new_stream
        with write(str(data), table.schema) as writer:
            writer.write_table(table, max_chunksize=70)
    source = open_source(data, block_rows=64)
    assert source.schema.types == [pa.string(), pa.int64()]
    found = [block.read() for block in source.blocks(["answer", "age"])]
    assert pa.concat_tables(found).to_pydict() == {"answer": values[50:950], "age": ages[50:950]}
    if not source.repeatable:
        return
    assert scan(source, "answer", missing="drop").distinct() == ["yes", "no"]
    result = tn.survey(source, "answer", epsilon=9.0, missing="drop", by="age")
    assert {key: tally.nodes for key, tally in result.tally.items()} == {(20,): 450, (40,): 400}


def test_runs_of_a_dictionary_are_written_out() -> None:
    dictionary = pa.array(["yes", "no"]).dictionary_encode()
    column = pa.RunEndEncodedArray.from_arrays(pa.array([3, 5], pa.int32()), dictionary)
    table = pa.table({"answer": column}).slice(2)
    assert open_source(table).schema.types == [pa.string()]
    [block] = open_source(table).blocks(["answer"], categories=["answer"])
    assert block.read()["answer"].to_pylist() == ["yes", "no", "no"]


# What is not said ------------------------------------------------------------------------------


def test_no_value_is_quoted_where_a_column_cannot_be_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    secret, attempts = "hugo7", []
    mixed = [1, secret]
    for data in (pandas.DataFrame({"a": mixed}), {"a": mixed}, [{"a": 1}, {"a": secret}]):
        attempts.append(lambda data=data: scan(data, "a"))
    numbers = pa.record_batch({"a": pa.array([1, 2])})
    texts = pa.record_batch({"a": [secret, secret]})
    attempts.append(lambda: list(open_source(iter([numbers, texts])).blocks(["a"])))
    duckdb = pytest.importorskip("duckdb")
    text = f"case when range = 900000 then '{secret}' else range::varchar end"
    relation = duckdb.sql(f"select cast({text} as integer) a from range(1000000)")
    attempts.append(lambda: list(open_source(relation).blocks(["a"])))
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,2\n{secret}\n")
    attempts.append(lambda: list(open_source(path).blocks(["b"])))
    for attempt in attempts:
        with pytest.raises((InvalidTypeError, CorruptDataError)) as caught:
            attempt()
        assert secret not in "".join(traceback.format_exception(caught.value))
