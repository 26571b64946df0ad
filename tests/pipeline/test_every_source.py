"""The same rows give the same codes, whatever they are in."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.pipeline import Answers, scan
from turnout.pipeline.sources import open_source

Maker = Callable[[pa.Table, Path, int], Any]

TEXTS = ["no", "yes", "", 'é\n,"', "7"]


def parquet(table: pa.Table, folder: Path, piece: int) -> Any:
    pq.write_table(table, folder / "a.parquet", row_group_size=piece)
    return folder / "a.parquet"


def parquet_files(table: pa.Table, folder: Path, piece: int) -> Any:
    (folder / "deep").mkdir()
    for number, start in enumerate(range(0, max(table.num_rows, 1), piece)):
        # part-10 comes after part-9, and empty files give nothing.
        pq.write_table(table.slice(start, piece), folder / "deep" / f"part-{2 * number}.parquet")
        pq.write_table(table.slice(0, 0), folder / "deep" / f"part-{2 * number + 1}.parquet")
    (folder / "deep" / "_SUCCESS.parquet").write_bytes(b"not a file of rows")
    return folder


def arrow_file(table: pa.Table, folder: Path, piece: int) -> Any:
    pyarrow.feather.write_feather(table, folder / "a.feather", chunksize=piece)
    return str(folder / "a.feather")


def arrow_stream(table: pa.Table, folder: Path, piece: int) -> Any:
    with pa.ipc.new_stream(str(folder / "a.ipc"), table.schema) as writer:
        writer.write_table(table, max_chunksize=piece)
    return folder / "a.ipc"


def reader(table: pa.Table, folder: Path, piece: int) -> Any:
    return table.to_reader(piece)


def iterator(table: pa.Table, folder: Path, piece: int) -> Any:
    return iter([table.slice(0, 0), *(pa.Table.from_batches([b]) for b in table.to_batches(piece))])


def dataset(table: pa.Table, folder: Path, piece: int) -> Any:
    return pyarrow.dataset.dataset(parquet(table, folder, piece))


def pandas(table: pa.Table, folder: Path, piece: int) -> Any:
    pytest.importorskip("pandas")
    if pa.types.is_dictionary(table.column(-1).type):
        # The categories of pandas must be different.
        table = table.set_column(
            table.num_columns - 1, table.column_names[-1], table.column(-1).cast(pa.string())
        )
        return table.to_pandas(categories=[table.column_names[-1]])
    return table.to_pandas()


def polars(table: pa.Table, folder: Path, piece: int) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def polars_query(table: pa.Table, folder: Path, piece: int) -> Any:
    return pytest.importorskip("polars").from_arrow(table).lazy()


def duckdb(table: pa.Table, folder: Path, piece: int) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


def narwhals(table: pa.Table, folder: Path, piece: int) -> Any:
    return pytest.importorskip("narwhals").from_native(table)


def capsule(table: pa.Table, folder: Path, piece: int) -> Any:
    class Exporter:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    return Exporter()


def chunks(table: pa.Table, folder: Path, piece: int) -> Any:
    return pa.concat_tables(
        [table.slice(i, piece) for i in range(0, table.num_rows, piece)] or [table]
    )


MAKERS: list[Maker] = [
    parquet,
    parquet_files,
    arrow_file,
    arrow_stream,
    reader,
    iterator,
    dataset,
    pandas,
    polars,
    polars_query,
    duckdb,
    narwhals,
    capsule,
    chunks,
]


def text_type(values: list[str | None], kind: str) -> pa.Array:
    if kind == "dictionary":
        # Entries that no row has, and one that is there twice.
        dictionary = ["unused", *TEXTS, TEXTS[0]]
        last = len(dictionary) - 1
        found = [
            None if v is None else last if v == TEXTS[0] and i % 2 else dictionary.index(v)
            for i, v in enumerate(values)
        ]
        return pa.DictionaryArray.from_arrays(pa.array(found, pa.int16()), dictionary)
    return pa.array(
        values, {"string": pa.string(), "large": pa.large_string(), "view": pa.string_view()}[kind]
    )


def read(answers: Answers, domain: tn.Domain) -> tuple[list[int], int, int]:
    codes: list[int] = []
    dropped = refused = 0
    for number, block in enumerate(answers._all_blocks(domain)):
        encoded = answers._encoder(domain)(block)
        assert (encoded.index, encoded.rows) == (number, block.rows)
        assert (
            encoded.rows
            == encoded.codes.size + encoded.left_out.people + encoded.left_out.duplicates
        )
        codes += encoded.codes.tolist()
        dropped += encoded.left_out.people
        refused += encoded.left_out.duplicates
    return codes, dropped, refused


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("kind", ["string", "large", "view", "dictionary"])
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    values=st.lists(st.sampled_from([None, *TEXTS]), max_size=40),
    piece=st.integers(1, 12),
    block_rows=st.sampled_from([1, 3, 7, 64]),
    offset=st.integers(0, 3),
)
def test_texts(
    make: Maker,
    kind: str,
    *,
    values: list[str | None],
    piece: int,
    block_rows: int,
    offset: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if kind == "view" and make in (parquet, parquet_files, dataset, arrow_file, duckdb):
        return  # not every version writes it; polars gives views
    column = text_type(["yes"] * offset + values, kind).slice(offset)
    table = pa.table({"other": pa.array(range(len(values))), "answer": column})
    source = open_source(make(table, tmp_path_factory.mktemp("rows"), piece), block_rows=block_rows)
    domain = tn.Domain([*TEXTS, "missing"])
    expected = [TEXTS.index(v) if v is not None else 5 for v in values]
    assert source.rows in (None, len(values))
    codes, dropped, _ = read(scan(source, "answer", missing="missing"), domain)
    assert (codes, dropped) == (expected, 0)
    if source.repeatable:
        codes, dropped, _ = read(scan(source, "answer", missing="drop"), domain)
        assert codes == [code for code in expected if code < 5]
        assert dropped == values.count(None)
        assert scan(source, "answer", missing="drop").distinct() == list(
            dict.fromkeys(v for v in values if v)
        )


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float64()]
)
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    values=st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=30),
    piece=st.integers(1, 12),
    block_rows=st.sampled_from([1, 5, 64]),
    labels=st.booleans(),
)
def test_integers(
    make: Maker,
    kind: pa.DataType,
    *,
    values: list[int | None],
    piece: int,
    block_rows: int,
    labels: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    table = pa.table({"answer": pa.array(values, kind)})
    source = open_source(make(table, tmp_path_factory.mktemp("rows"), piece), block_rows=block_rows)
    domain = tn.Domain(range(9, -1, -1)) if labels else tn.Domain.from_integers(10)
    answers = scan(source, "answer", missing="drop", missing_values=["3"])
    codes, dropped, _ = read(answers, domain)
    kept = [v for v in values if v is not None and v != 3]
    assert codes == [9 - v if labels else v for v in kept]
    assert dropped == len(values) - len(kept)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    values=st.lists(st.sampled_from([None, *(text for text in TEXTS if text)]), max_size=40),
    block_rows=st.sampled_from([1, 3, 7, 64]),
    alone=st.booleans(),
    mark=st.booleans(),
)
def test_csv(
    ending: str,
    *,
    values: list[str | None],
    block_rows: int,
    alone: bool,
    mark: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    table = pa.table({"answer": pa.array(values, pa.string())})
    if not alone:
        table = table.append_column("other", pa.array(range(len(values))))
    path = tmp_path_factory.mktemp("rows") / f"a{ending}"
    delimiter = "\t" if ending == ".tsv" else ","
    with pa.output_stream(path, compression="gzip" if ending.endswith("gz") else None) as out:
        if mark:
            out.write(b"\xef\xbb\xbf")
        pa.csv.write_csv(table, out, pa.csv.WriteOptions(delimiter=delimiter))
    domain = tn.Domain([text for text in TEXTS if text not in ("", "7")] + [7])
    source = open_source(path, block_rows=block_rows)
    codes, dropped, _ = read(scan(source, "answer", missing="drop"), domain)
    order = {label: code for code, label in enumerate(domain.labels)}
    assert codes == [order[7 if v == "7" else v] for v in values if v is not None]
    assert dropped == values.count(None)


def test_nan_is_missing_and_whole_floats_are_integers() -> None:
    table = pa.table({"answer": [2.0, math.nan, None, 1.0]})
    for domain in (tn.Domain.from_integers(3), tn.Domain([0, 1, 2])):
        codes, dropped, _ = read(scan(table, "answer", missing="drop"), domain)
        assert (codes, dropped) == ([2, 1], 2)
    assert scan(table, "answer", missing="drop").domain().labels == (1, 2)


def test_booleans_and_dates() -> None:
    table = pa.table({"b": [True, None, False], "d": pa.array([0, 1, None], pa.date32())})
    assert read(scan(table, "b", missing="drop"), tn.Domain([False, True]))[0] == [1, 0]
    dates = tn.Domain(["1970-01-02", "1970-01-01"])
    assert read(scan(table, "d", missing="drop"), dates)[0] == [1, 0]


def test_a_label_none_takes_missing_answers() -> None:
    table = pa.table({"answer": ["a", None]})
    assert read(scan(table, "answer"), tn.Domain([None, "a"]))[0] == [1, 0]


def test_same_codes_as_encoding_in_memory() -> None:
    rng = np.random.default_rng(5)
    labels = [f"label {i}" for i in range(300)]
    column = pa.array(labels).take(pa.array(rng.integers(0, 300, 5000)))
    domain = tn.Domain(labels)
    codes, _, _ = read(scan(open_source(pa.table({"a": column}), block_rows=999), "a"), domain)
    assert codes == domain.encode(column).tolist()
    block = next(iter(scan(pa.table({"a": column}), "a")._all_blocks()))
    assert scan(pa.table({"a": column}), "a")._encoder(domain)(block).codes.dtype == np.uint16
