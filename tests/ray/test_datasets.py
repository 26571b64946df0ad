"""Data sets as sources: the order of their rows, and what is cut of them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.columns import digested
from turnout.pipeline.sources import open_source
from turnout.ray.datasets import DatasetSource

SIZES = (700, 0, 1, 1300, 64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    start = 0
    for number, size in enumerate(SIZES):
        rows = pa.table({"a": np.arange(start, start + size), "b": ["x"] * size})
        pq.write_table(rows, place / f"{number}.parquet", row_group_size=300)
        start += size
    return place


def materialised(dataset: Any, columns: list[str], *, block_rows: int) -> DatasetSource:
    source = DatasetSource(dataset, block_rows=block_rows)
    source.check(columns)
    source.materialise(columns)
    return source


def read(source: Any) -> list[Any]:
    return [block.read()["a"].to_numpy() for block in source.blocks(["a"])]


def test_blocks_are_the_rows_in_order(ray: Any, folder: Path) -> None:
    source = materialised(ray.data.read_parquet(str(folder)), ["a"], block_rows=256)
    assert source.rows == sum(SIZES)
    blocks = list(source.blocks(["a"]))
    assert [block.rows for block in blocks] == [256] * 8 + [17]
    assert [block.start for block in blocks] == [256 * index for index in range(9)]
    assert np.array_equal(np.concatenate(read(source)), np.arange(sum(SIZES)))
    assert [block.index for block in source.blocks(["a"], skip={0, 3})] == [1, 2, 4, 5, 6, 7, 8]


def test_slow_tasks_do_not_change_the_order(ray: Any, folder: Path) -> None:
    def slow(batch: Any) -> Any:
        time.sleep(0.5 if len(batch["a"]) and batch["a"][0] == 0 else 0.0)
        return {"a": batch["a"] + 1}

    dataset = ray.data.read_parquet(str(folder)).repartition(12).map_batches(slow, batch_size=None)
    before = dataset.context.execution_options.preserve_order
    source = materialised(dataset, ["a"], block_rows=500)
    assert np.array_equal(np.concatenate(read(source)), np.arange(sum(SIZES)) + 1)
    assert dataset.context.execution_options.preserve_order == before


@pytest.mark.parametrize("kind", ["filter", "limit", "split", "pandas", "thinned", "nothing"])
def test_data_sets_of_every_kind(ray: Any, folder: Path, kind: str) -> None:
    from ray.data.expressions import col

    whole = np.arange(sum(SIZES))
    dataset = ray.data.read_parquet(str(folder))
    # What is computed here, and not by turnout, need not be in order otherwise.
    dataset.context.execution_options.preserve_order = True
    made, expected = {
        "filter": lambda: (dataset.filter(expr=col("a") > 999), whole[1000:]),
        "limit": lambda: (dataset.limit(777), whole[:777]),
        "split": lambda: (dataset.split_at_indices([100, 950])[1], whole[100:950]),
        "pandas": lambda: (dataset.map_batches(lambda frame: frame, batch_format="pandas"), whole),
        "thinned": lambda: (
            dataset.map_batches(lambda batch: {"a": batch["a"][batch["a"] % 3 == 0]}),
            whole[::3],
        ),
        "nothing": lambda: (ray.data.from_arrow(pa.table({"a": whole[:0]})), whole[:0]),
    }[kind]()
    source = materialised(made, ["a"], block_rows=128)
    assert source.rows == len(expected)
    found = [*read(source), np.empty(0, np.int64)]
    assert np.array_equal(np.concatenate(found), expected)


@pytest.mark.parametrize("kind", ["slow", "pandas"])
def test_without_tasks_rows_are_in_order_too(ray: Any, folder: Path, kind: str) -> None:
    def slow(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        time.sleep(0.3 if batch["a"][0] == 0 else 0)
        return {"a": batch["a"] + 1}

    def same(frame: Any) -> Any:
        return frame.assign(a=frame["a"] + 1)

    dataset = ray.data.read_parquet(str(folder)).repartition(12)
    if kind == "slow":
        dataset = dataset.map_batches(slow, batch_size=None)
    else:
        dataset = dataset.map_batches(same, batch_format="pandas")
    before = dataset.context.execution_options.preserve_order
    source = open_source(dataset, block_rows=500)
    rows = [block.read()["a"].to_numpy() for block in source.blocks(["a"])]
    assert np.array_equal(np.concatenate(rows), np.arange(sum(SIZES)) + 1)
    assert dataset.context.execution_options.preserve_order == before


def test_frames_of_pandas(ray: Any) -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"a": np.arange(5), "text": ["x", "y", None, "z", "z"]}
    source = materialised(ray.data.from_pandas(pandas.DataFrame(rows)), ["a", "text"], block_rows=3)
    found = [block.read()["text"].to_pylist() for block in source.blocks(["text"])]
    assert found == [["x", "y", None], ["z", "z"]]


def test_column_that_is_not_there(ray: Any) -> None:
    dataset = ray.data.from_arrow(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(InvalidValueError, match=r"the Ray data set.*'c'"):
        materialised(dataset, ["a", "c"], block_rows=1)


def test_nothing_at_all(ray: Any) -> None:
    with pytest.raises(InvalidValueError, match="the Ray data set is empty"):
        DatasetSource(ray.data.from_items([]))


def test_blocks_are_there_only_after_it_was_computed(ray: Any) -> None:
    source = DatasetSource(ray.data.from_arrow(pa.table({"a": [1], "b": [2]})))
    with pytest.raises(InvalidValueError, match="not been materialised"):
        next(source.blocks(["a"]))


def test_rows_that_changed_are_refused(ray: Any) -> None:
    first, second = pa.table({"a": [1, 2, 3]}), pa.table({"a": [1, 3, 2]})
    source = materialised(ray.data.from_arrow(first), ["a"], block_rows=2)
    source.remember({block.index: digested(block.read()) for block in source.blocks(["a"])})

    def remade(block: Any, table: pa.Table) -> Any:
        pieces = tuple(replace(piece, reference=ray.put(table)) for piece in block.pieces)
        return replace(block, pieces=pieces)

    for block in source.blocks(["a"]):
        assert block.digest is not None  # type: ignore[attr-defined]
        assert remade(block, first).read() == block.read()
        with pytest.raises(CorruptDataError, match="not deterministic"):
            remade(block, second).read()
    with pytest.raises(CorruptDataError, match="has 0 rows and had 2"):
        remade(next(source.blocks(["a"])), first.slice(3)).read()


COLUMNS: dict[str, Any] = {
    "integers": pa.array([1, None, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    "bytes": pa.array(np.arange(11, dtype=np.uint8)),
    "texts": pa.array([*"abc", "", "dd", None, *"efghi"]),
    "views": pa.array([*"abc", "", "d" * 20, None, *"efghi"], pa.string_view()),
    "binary": pa.array([letter.encode() for letter in "abcdefghijk"]),
    "fixed": pa.array([letter.encode() for letter in "abcdefghijk"], pa.binary(1)),
    "truth": pa.array([True, False, None, True] * 2 + [True] * 3),
    "dictionary": pa.array(list("abcabcabcab")).dictionary_encode(),
    "floats": pa.array(np.linspace(0, 1, 11)),
    "days": pa.array(np.arange(11), pa.timestamp("s")),
    "nothing": pa.nulls(11),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_digest_is_of_the_rows_and_not_of_their_chunks(kind: str) -> None:
    column = COLUMNS[kind]
    whole = digested(pa.table({"c": column}))
    longer = pa.chunked_array([column, column, column]).combine_chunks()
    longer = longer if isinstance(longer, pa.Array) else longer.chunk(0)
    for cut in range(12):
        pieces = pa.chunked_array([column[:cut], column[cut:]], column.type)
        assert digested(pa.table({"c": pieces})) == whole
        # As a slice of something longer, whose other rows do not count.
        assert digested(pa.table({"c": longer.slice(11, 11)})) == whole
        assert digested(pa.table({"c": longer[:cut]})) == digested(pa.table({"c": column[:cut]}))
        if cut < 10:
            swapped = pa.concat_arrays(
                [column[:cut], column[cut + 1 : cut + 2], column[cut : cut + 1], column[cut + 2 :]]
            )
            same = swapped.to_pylist() == column.to_pylist()
            assert (digested(pa.table({"c": swapped})) == whole) is same
    assert digested(pa.table({"c": column[:10]})) != whole


def test_digest_knows_where_a_text_ends() -> None:
    assert digested(pa.table({"c": ["ab", "c"]})) != digested(pa.table({"c": ["a", "bc"]}))
    assert digested(pa.table({"c": ["1"]})) != digested(pa.table({"c": [1]}))
