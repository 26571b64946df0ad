"""Draws of a real table come closer to it as epsilon grows, and with a public table."""

from __future__ import annotations

import gzip
import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from turnout.samplers import PrivacyBudget, TableSampler

FOLDER = os.environ.get("TURNOUT_DATA")

NAMES = {0: "age", 1: "employer", 5: "marital", 9: "sex", 12: "hours"}

PEOPLE, RECORDS, DRAWS = 60, 40, 8


def adult() -> pl.DataFrame:
    with gzip.open(Path(FOLDER or "") / "adult.data.gz", "rt") as file:
        rows = [line.strip().split(", ") for line in file if line.strip()]
    columns: dict[str, list[Any]] = {
        name: [row[place] for row in rows] for place, name in NAMES.items()
    }
    columns["employer"] = [None if value == "?" else value for value in columns["employer"]]
    return pl.DataFrame(columns).with_columns(pl.col("age", "hours").cast(pl.Int64))


def distances(real: pl.DataFrame, drawn: pl.DataFrame) -> tuple[float, float]:
    """Mean total variation distance of single columns and of pairs, ages and hours in tens."""

    def shares(table: pl.DataFrame, names: tuple[str, ...]) -> dict[Any, float]:
        tens = table.with_columns(pl.col("age", "hours") // 10)
        counts = tens.group_by(names).len().rows()
        return {row[:-1]: row[-1] / len(table) for row in counts}

    def mean(size: int) -> float:
        found = []
        for names in itertools.combinations(real.columns, size):
            one, other = shares(real, names), shares(drawn, names)
            every = one.keys() | other.keys()
            found.append(sum(abs(one.get(key, 0) - other.get(key, 0)) for key in every) / 2)
        return float(np.mean(found))

    return mean(1), mean(2)


@pytest.mark.slow
@pytest.mark.skipif(FOLDER is None, reason="TURNOUT_DATA names no folder with Adult")
def test_draws_of_adult_come_close_to_it() -> None:
    table = adult()
    columns: dict[str, Any] = {
        "age": (17, 91),
        "employer": {
            "labels": sorted(table["employer"].drop_nulls().unique().to_list()),
            "missing": True,
        },
        "marital": sorted(table["marital"].unique().to_list()),
        "sex": ["Female", "Male"],
        "hours": (1, 99),
    }
    public, real = table[:3_000], table[3_000 : 3_000 + PEOPLE * RECORDS].sort("marital", "age")
    found: dict[tuple[bool, float], tuple[float, float]] = {}
    for reference, epsilon in itertools.product((None, public), (0.01, 1.0, 4.0)):
        drawn = []
        for person in range(PEOPLE):
            sampler = TableSampler(epsilon, columns, reference=reference)
            sampler.fit(real[person * RECORDS : (person + 1) * RECORDS])
            drawn.append(sampler.sample(DRAWS, budget=PrivacyBudget(math.inf), seed=person))
        assert sampler.method_ == "resampling"
        found[reference is not None, epsilon] = distances(real, pl.concat(drawn))
    for place in (0, 1):
        # The uniform reference is far, and epsilon helps; a public table is near from the start.
        uniform = [found[False, epsilon][place] for epsilon in (0.01, 1.0, 4.0)]
        assert uniform[0] > uniform[1] > uniform[2]
        assert max(found[True, epsilon][place] for epsilon in (0.01, 1.0, 4.0)) < uniform[2] / 2
    # The pairs of the people's own records, which the tree of the reference does not have.
    assert found[True, 4.0][1] < found[True, 0.01][1]
