"""Quality of drawn records: distances, coverage, nearest records and models, computed apart."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import TableQuality, quality

pytest.importorskip("sklearn")

COLUMNS: dict[str, Any] = {
    "n": {"bounds": (0, 4), "missing": True},
    "sex": ["f", "m"],
    "kind": ["a", "b", "c"],
}


def frame(generator: np.random.Generator, rows: int) -> pd.DataFrame:
    kinds = generator.integers(0, 3, rows)
    numbers = [None if value == 5 else int(value) for value in generator.integers(0, 6, rows)]
    sexes = np.array(["f", "m"])[(kinds + generator.integers(0, 2, rows)) // 2 % 2]
    return pd.DataFrame(
        {"n": pd.array(numbers, dtype="Int64"), "sex": sexes, "kind": np.array(list("abc"))[kinds]}
    )


@pytest.fixture
def both() -> tuple[pd.DataFrame, pd.DataFrame]:
    generator = np.random.default_rng(1)
    return frame(generator, 80), frame(generator, 30)


def shares(table: pd.DataFrame, names: tuple[str, ...]) -> dict[Any, float]:
    filled = table.astype(object).where(table.notna(), "missing")
    return dict(filled.groupby(list(names)).size() / len(table))


def test_distances_and_coverage_are_those_of_counts_of_pandas(
    both: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    real, drawn = both
    found = quality(real, drawn, COLUMNS)
    every = [(name,) for name in COLUMNS] + list(itertools.combinations(COLUMNS, 2))
    assert list(found.total_variation) == every
    for names in every:
        own, given = shares(real, names), shares(drawn, names)
        distance = sum(abs(own.get(key, 0) - given.get(key, 0)) for key in own | given) / 2
        assert found.total_variation[names] == pytest.approx(distance)
        covered = sum(share for key, share in own.items() if key in given)
        assert found.coverage[names] == pytest.approx(covered)


def test_the_distance_by_chance_is_that_of_records_of_the_table_itself(
    both: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    """The mean of 400 tables; its standard error is below 2 % of it."""
    real, drawn = both
    found = quality(real, drawn, COLUMNS).by_chance
    generator = np.random.default_rng(2)
    for names in (("kind",), ("n", "kind")):
        own = shares(real, names)
        law = np.array(list(own.values()))
        counts = generator.multinomial(len(drawn), law / law.sum(), size=400)
        mean = np.abs(counts / len(drawn) - law).sum(axis=1).mean() / 2
        assert found[names] == pytest.approx(mean, rel=0.1)


def test_distances_to_the_nearest_record_are_those_of_all_pairs(
    both: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    real, drawn = both

    def apart(one: Any, other: Any) -> float:
        gone = [pd.isna(row["n"]) for row in (one, other)]
        if any(gone):
            value = next((row["n"] for row in (one, other) if not pd.isna(row["n"])), None)
            first = 0.0 if all(gone) else 0.5 + abs(0.5 - value / 4)
        else:
            first = abs(one["n"] - other["n"]) / 4
        return float(first + (one["sex"] != other["sex"]) + (one["kind"] != other["kind"])) / 3

    rows = [row for _, row in real.iterrows()]
    found = quality(real, drawn, COLUMNS)
    nearest = [min(apart(one, row) for row in rows) for _, one in drawn.iterrows()]
    assert found.nearest == pytest.approx(nearest)
    others = [
        min(apart(one, other) for place, other in enumerate(rows) if place != own)
        for own, one in enumerate(rows)
    ]
    assert found.nearest_of_real == pytest.approx(others)


def test_a_model_of_drawn_records_is_as_good_as_they_are() -> None:
    generator = np.random.default_rng(3)
    kinds = generator.integers(0, 3, 900)
    real = pl.DataFrame({"kind": [*"abc"], "code": [0, 1, 2]})[kinds]
    wrong = real.with_columns((pl.col("code") + 1) % 3)
    columns = {"kind": ["a", "b", "c"], "code": (0, 2)}
    good = quality(real, real[:300], columns).models["kind"]
    bad = quality(real, wrong[:300], columns).models["kind"]
    assert good["drawn"] == good["real"] == bad["real"] == 1.0
    assert bad["drawn"] == 0.0
    assert 0.2 < good["constant"] < 0.5


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_every_library_give_a_table_and_a_picture(library: Any) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    rows = {"sex": ["f", "m"] * 10, "kind": ["a", "b", "c", "a"] * 5}
    columns = {"sex": ["f", "m"], "kind": ["a", "b", "c"]}
    found = quality(library(rows), library(rows), columns)
    assert isinstance(found, TableQuality)
    assert found.to_pandas()["total_variation"].tolist() == [0.0, 0.0, 0.0]
    assert found.to_polars()["columns"].to_list() == ["sex", "kind", "sex, kind"]
    assert found.coverage[("sex", "kind")] == 1.0
    assert not found.nearest.any()
    axes = found.plot()
    assert [text.get_text() for text in axes.texts] == ["0.00"] * 4
    assert axes.get_xlabel() == "column"
    assert "mean total variation of columns 0.000, of pairs 0.000, 20 drawn" in repr(found)
    alone = quality(library(rows), library(rows), {"sex": ["f", "m"]})
    assert alone.models == {}
    assert "pairs" not in repr(alone)


def test_tables_that_cannot_be_compared_are_refused_and_not_shown() -> None:
    rows = pl.DataFrame({"sex": ["f", "m"]})
    columns = {"sex": ["f", "m"]}
    with pytest.raises(InvalidValueError, match="drawn must have one of the labels") as caught:
        quality(rows, pl.DataFrame({"sex": ["SECRET"]}), columns)
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InvalidTypeError, match="drawn must be a frame"):
        quality(rows, None, columns)
    with pytest.raises(InvalidValueError, match="real must have at least two records"):
        quality(rows[:1], rows, columns)
    with pytest.raises(InvalidTypeError, match="columns must be a dictionary"):
        quality(rows, rows, None)
