"""No error of a file, a table or a query shows what a row has, whatever library complains of it."""

from __future__ import annotations

import datetime
import decimal
import functools
import gzip
import random
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from pyarrow import csv as arrow_csv

import turnout as tn
from turnout.errors import TurnoutError
from turnout.pipeline import PseudonymKey, scan

#: What stands in every value, as digits.
MARK = "48271"

KEY = PseudonymKey(bytes(32))
TEXTS = tn.DirectEncoding(1.0, ["no", "yes"])
CODES = tn.DirectEncoding(1.0, 5)
NUMBERS = tn.mean.Piecewise(1.0, (0, 10))
BOTH = tn.JointTable(1.0, {"a": ["no", "yes"], "b": 5})

#: What is done with a table whose column "a" has odd values, and "b" has codes.
VERBS: dict[str, Callable[[Any], Any]] = {
    "labels": lambda data: tn.pipeline.collect(scan(data, "a"), TEXTS),
    "codes": lambda data: tn.pipeline.collect(scan(data, "a"), CODES),
    "numbers": lambda data: tn.pipeline.collect(scan(data, "a"), NUMBERS),
    "both": lambda data: tn.pipeline.collect(scan(data, ["a", "b"]), BOTH),
    "trimmed": lambda data: tn.pipeline.collect(
        scan(data, "a", trim=True, missing_values=["?"]), TEXTS
    ),
    "groups": lambda data: tn.pipeline.collect(scan(data, "b", group_by=["a"]), CODES),
    "people": lambda data: tn.pipeline.collect(scan(data, "b", id_column="a"), CODES),
    "pseudonyms": lambda data: tn.pipeline.collect(
        scan(data, "b", id_column="a", pseudonym_key=KEY), CODES
    ),
    "probabilities": lambda data: tn.pipeline.collect(
        scan(data, "b", probability_column="a"), CODES
    ),
    "found": lambda data: scan(data, "a").domain(),
    "survey": lambda data: tn.survey(data, "a", epsilon=1.0, labels=["no", "yes"]),
    "mean": lambda data: tn.survey(data, "a", epsilon=1.0, bounds={"a": (0, 1)}),
}


def text_of(error: BaseException) -> str:
    """All that a traceback shows: its lines of code are ours."""
    return "".join(traceback.format_exception(error))


def told(call: Callable[[], Any]) -> str | None:
    """What is said of a value that must not be said, or not by us; None if all is well."""
    try:
        call()
    except TurnoutError as error:
        return text_of(error) if MARK in text_of(error) else None
    except Exception as error:
        return f"NOT OURS {error!r}"
    return None


def refuse(calls: Iterator[tuple[str, Callable[[], Any]]]) -> None:
    found = {name: text for name, call in calls if (text := told(call)) is not None}
    shown = [f"{name}: {text.splitlines()[-1][:300]}" for name, text in found.items()]
    assert not found, "\n".join([*shown, next(iter(found.values()))])


NANOSECONDS = 48271 * 10**12 + 48271
ODD: dict[str, pa.Array] = {
    "text": pa.array(["yes", f"x{MARK}"]),
    "long": pa.array(["yes", f"x{MARK}"], pa.large_string()),
    "view": pa.array(["yes", f"x{MARK}"], pa.string_view()),
    "number": pa.array(["yes", f"{MARK}.5e9"]),
    "integer": pa.array([1, 48271]),
    "unsigned": pa.array([1, 2**63 + 48271], pa.uint64()),
    "float": pa.array([1.0, 48271.5]),
    "decimal": pa.array([decimal.Decimal(1), decimal.Decimal("48271.5")]),
    "small": pa.array([decimal.Decimal(1), decimal.Decimal("48271.5")]).cast(pa.decimal64(9, 1)),
    "date": pa.array([datetime.date(4827, 1, 1)] * 2),
    "second": pa.array([48271 * 10**6] * 2).cast(pa.timestamp("s")),
    "far": pa.array([2**31 - 1, 2**30 + 48271], pa.int32()).cast(pa.date32()),
    "moment": pa.array([NANOSECONDS, 1]).cast(pa.timestamp("ns")),
    "zone": pa.array([NANOSECONDS, 1]).cast(pa.timestamp("ns", "Europe/Berlin")),
    "time": pa.array([48271000000007, 1]).cast(pa.time64("ns")),
    "duration": pa.array([NANOSECONDS, 1]).cast(pa.duration("ns")),
    "bytes": pa.array([b"yes", f"x{MARK}\xff".encode("latin-1")]),
    "no text": pa.array([b"yes", f"x{MARK}\xff".encode("latin-1")]).view(pa.string()),
    "category": pa.array(["yes", f"x{MARK}"]).dictionary_encode(),
    "no category": pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int8()),
        pa.array([b"yes", f"x{MARK}\xff".encode("latin-1")]).view(pa.string()),
    ),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2], pa.array(["yes", f"x{MARK}"])),
    "nested": pa.array([[MARK], ["yes"]]),
    "parts": pa.array([{"a": MARK}, {"a": "yes"}]),
    "union": pa.UnionArray.from_dense(
        pa.array([0, 1], pa.int8()),
        pa.array([0, 0], pa.int32()),
        [pa.array([48271]), pa.array([MARK])],
    ),
    "interval": pa.array([pa.MonthDayNano([48271, 1, 1])] * 2),
    "truth": pa.array([True, False]),
    "nothing": pa.nulls(2),
}


def table_of(odd: pa.Array) -> pa.Table:
    return pa.table({"a": odd, "b": pa.array([1, 2])})


def forms(table: pa.Table, folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The table as each library has it, as far as it can."""
    yield "arrow", lambda: table
    yield "batches", lambda: iter(table.to_batches())
    yield "reader", table.to_reader
    yield "dataset", lambda: pads.dataset(table)
    for name, write in (
        ("a.parquet", lambda path: pq.write_table(table, path)),
        ("a.feather", lambda path: _ipc(table, path, pa.ipc.new_file)),
        ("a.arrow", lambda path: _ipc(table, path, pa.ipc.new_stream)),
        ("a.csv", lambda path: arrow_csv.write_csv(table, path)),
    ):
        try:
            write(folder / name)
        except (pa.ArrowException, OSError):
            continue
        yield name, functools.partial(lambda name: folder / name, name)
    for name, make in (
        ("pandas", table.to_pandas),
        ("pandas of arrow", lambda: table.to_pandas(types_mapper=pd.ArrowDtype)),
        ("polars", lambda: pl.from_arrow(table)),
        ("polars query", lambda: pl.from_arrow(table).lazy()),
        ("duckdb", lambda: duckdb.from_arrow(table)),
        ("columns", table.to_pydict),
        ("rows", table.to_pylist),
        ("objects", lambda: {n: np.array(c, object) for n, c in table.to_pydict().items()}),
    ):
        try:
            make()
        except BaseException:
            continue
        yield name, make


def _ipc(table: pa.Table, path: Path, opened: Any) -> None:
    with pa.OSFile(str(path), "wb") as sink, opened(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("name", ODD)
def test_no_value_of_any_type_is_shown(name: str, tmp_path: Path) -> None:
    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        for form, make in forms(table_of(ODD[name]), tmp_path):
            for verb, call in VERBS.items():
                yield f"{form}, {verb}", lambda call=call, make=make: call(make())
            if form in ("arrow", "pandas", "pandas of arrow", "polars", "columns", "objects"):
                yield f"{form}, column", lambda make=make: TEXTS.collect(make()["a"])

    refuse(calls())


class Stream:
    """A table of a library that nobody knows, which says what it had."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError(f"cannot export {MARK}")


class Values(list[Any]):
    """A column that says what it had."""

    def __iter__(self) -> Iterator[Any]:
        raise KeyError(MARK)


def breaking_off() -> Iterator[pa.RecordBatch]:
    yield from pa.table({"a": ["yes"], "b": [1]}).to_batches()
    raise LookupError(MARK)


def number(text: str) -> int:
    return int(text)


def queries(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What fails when it is computed, by what a row has."""
    texts = pa.table({"t": ["1", f"x{MARK}"] * 99, "b": [1, 2] * 99})
    frame, casted = pl.DataFrame(texts).lazy(), duckdb.from_arrow(texts)
    casted = casted.project("cast(t as integer) as a, b")
    kinds = {"a": pl.Int64, "b": pl.Int64}
    open_file, few = folder / "a.csv", arrow_csv.ReadOptions(block_size=99)
    open_file.write_text("a,b\n" + "yes,1\n" * 99 + f'"x{MARK},2\n')
    file = folder / "b.csv"
    file.write_text("a,b\n" + "1,1\n" * 10**5 + f"x{MARK},2\n")
    yield "polars cast", lambda: frame.with_columns(a=pl.col("t").cast(int))
    yield "polars file", lambda: pl.scan_csv(file, schema=kinds)
    yield (
        "polars map",
        lambda: frame.with_columns(a=pl.col("t").map_elements(number, return_dtype=pl.Int64)),
    )
    yield "duckdb cast", lambda: casted
    yield "duckdb reader", lambda: casted.fetch_arrow_reader(10)
    yield (
        "duckdb file",
        lambda: duckdb.read_csv(str(file), columns={"a": "integer", "b": "integer"}),
    )
    yield (
        "dataset",
        lambda: pads.dataset(
            file, format="csv", schema=pa.schema([("a", pa.int64()), ("b", pa.int64())])
        ),
    )
    yield "csv reader", lambda: arrow_csv.open_csv(open_file, read_options=few)
    yield "iterator", breaking_off
    yield "iterator of rows", lambda: iter([{"a": MARK}])
    yield (
        "iterator of slices",
        lambda: iter([*texts.rename_columns(["a", "b"]).to_batches(), [MARK]]),
    )
    yield "stream", Stream
    yield "columns", lambda: {"a": Values([MARK, "yes"]), "b": [1, 2]}
    yield "columns of streams", lambda: {"a": [Stream()], "b": [1]}
    yield "rows", lambda: [{"a": MARK, "b": 1}, {"a": 1, "b": 1}]
    yield "numbers", lambda: np.array([48271])
    yield "set", lambda: {MARK}
    yield "series", lambda: pd.Series([MARK])


def test_no_query_that_fails_shows_why(tmp_path: Path) -> None:
    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        for name, make in queries(tmp_path):
            for verb, call in VERBS.items():
                try:
                    data = make()
                except Exception:
                    # Refused before anybody here has it.
                    continue
                yield f"{name}, {verb}", functools.partial(call, data)

    refuse(calls())


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow", "a.csv", "a.csv.gz"])
def test_no_damaged_file_shows_what_it_holds(name: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            # What ten have is shown.
            "a": pa.array([f"x{MARK}{i % 30}" for i in range(60)]).dictionary_encode(),
            "b": [4827100 + i for i in range(60)],
        }
    )
    [make] = [make for form, make in forms(table, tmp_path) if form == name.removesuffix(".gz")]
    whole = make().read_bytes()
    path = tmp_path / "damaged" / name
    path.parent.mkdir()
    dice = random.Random(5)
    # Arrow ends the process where some bytes of the end of a Parquet file are wrong.
    end = int.from_bytes(whole[-8:-4], "little") + 8 if name == "a.parquet" else 0

    def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
        for number in range(300):
            data = bytearray(gzip.compress(whole) if name.endswith(".gz") else whole)
            for _ in range(1 + number % 3):
                place = dice.randrange(len(data) - end)
                data[place] ^= 1 << dice.randrange(8)
            if number % 10 == 0 and not end:
                del data[dice.randrange(len(data)) :]
            path.write_bytes(data)
            yield f"{number}", lambda: VERBS["labels"](path)
            yield f"{number}", lambda: VERBS["groups"](path)

    refuse(calls())


def test_an_error_that_shows_a_value_is_seen() -> None:
    def showing() -> Any:
        raise tn.errors.InvalidValueError("row 1 cannot be read") from ValueError(f"got {MARK}")

    for call in (showing, lambda: int(MARK + "x")):
        with pytest.raises(AssertionError, match=MARK):
            refuse(iter([("it", call)]))
