"""Shares of all people from one draw of each: bounds for any records, intervals for one value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from turnout._types import Floats, Integers
from turnout.errors import InvalidValueError
from turnout.samplers import TableEstimate, TableSampler, sample_population
from turnout.samplers.tables.estimates import estimate_of_tables
from turnout.samplers.tables.sampler import combinations

# Chance that one of these tests fails although all is right.
ALPHA = 1e-6

COLUMNS: dict[str, Any] = {
    "sex": ["f", "m"],
    "n": {"bounds": (0, 6), "bins": 3, "missing": True},
    "kind": ["a", "b", "c"],
}

SHAPE = (2, 4, 3)


def law(sampler: TableSampler, codes: Integers) -> Floats:
    """The probability of each combination for a person with records of these cells."""
    one = sampler._prepared()
    one._learn((one._public(), codes, None))
    result: Floats = np.exp(one._log_masses(combinations(SHAPE)))
    return result


def marginals(masses: Floats) -> list[Floats]:
    every = combinations(SHAPE)
    return [np.bincount(every[:, place], masses, cells) for place, cells in enumerate(SHAPE)]


def persons(generator: np.random.Generator, count: int) -> list[Integers]:
    """One record, many of one kind, and mixtures from narrow to even."""
    every = combinations(SHAPE)
    found = [every[[place]] for place in range(len(every))]
    for number in range(count):
        shares = generator.dirichlet(np.full(len(every), (0.02, 0.1, 1.0, 20.0)[number % 4]))
        found.append(every[generator.choice(len(every), 200, p=shares)])
    return found


@pytest.mark.parametrize("records", [None, 1])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 5.0])
def test_bounds_hold_for_all_records_and_for_means_of_people(
    epsilon: float, records: int | None
) -> None:
    """The exact laws of 400 persons, and of 200 mixtures of them."""
    sampler = TableSampler(epsilon, COLUMNS, records=records)
    assert sampler._public().method == ("mollifier" if records is None else "minimax")
    generator = np.random.default_rng(1)
    people = persons(generator, 400)
    drawn = [marginals(law(sampler, codes)) for codes in people]
    whole = marginals(np.ones(24))
    own = [
        [np.bincount(codes[:, place], minlength=len(part)) / len(codes)
         for place, part in enumerate(whole)]
        for codes in people
    ]  # fmt: skip
    frame = pd.DataFrame({"sex": ["f"], "n": [0], "kind": ["a"]})
    columns = list(estimate_of_tables(sampler, frame, one_value=False).columns.values())
    for place, column in enumerate(columns):
        shares, truth = (np.array([one[place] for one in some]) for some in (drawn, own))
        mixed = generator.dirichlet(np.full(len(people), 0.05), 200)
        tight = []
        for mean, true in (
            *zip(shares, truth, strict=True),
            *zip(mixed @ shares, mixed @ truth, strict=True),
        ):
            low, high = column.bounds(mean, mean)  # type: ignore[attr-defined]
            assert (low <= true + 1e-7).all()
            assert (true <= high + 1e-7).all()
            tight.append(high - low)
        # The bounds say something: of the kind that nearly all draws have at epsilon 5.
        if epsilon == 5.0:
            assert np.min(tight) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("records", "reference"), [(None, False), (1, False), (None, True)])
def test_intervals_hold_where_everybody_holds_one_value(
    records: int | None, reference: bool
) -> None:
    """150 populations, from the exact laws; all limits of a column hold in 95 % of them."""
    public = None
    generator = np.random.default_rng(2)
    every = combinations(SHAPE)
    if reference:
        public = pd.DataFrame({"sex": list("fm") * 30, "n": [1, None, 5] * 20, "kind": ["a"] * 60})
    sampler = TableSampler(3.0, COLUMNS, records=records, reference=public)
    assert (sampler._public().method == "minimax") is (records == 1)
    laws = np.array([law(sampler, every[[place]]) for place in range(24)])
    labels = [one.names for one in sampler._public().columns]
    held = np.zeros(3)
    runs, number = 150, 400
    for _ in range(runs):
        values = generator.choice(24, number, p=generator.dirichlet(np.full(24, 0.2)))
        uniform = generator.random((number, 1))
        places = (laws.cumsum(axis=1)[values] < uniform).sum(axis=1).clip(max=23)
        codes, true = every[places], every[values]
        frame = pd.DataFrame(
            {
                "sex": np.array(labels[0])[codes[:, 0]],
                "n": pd.array([None if c == 3 else 2 * c for c in codes[:, 1]], "Int64"),
                "kind": np.array(labels[2])[codes[:, 2]],
            }
        )
        found = estimate_of_tables(sampler, frame, one_value=True)
        assert found.assume == "one_value"
        for place, column in enumerate(found.columns.values()):
            share = np.bincount(true[:, place], minlength=SHAPE[place]) / number
            low, high = column.limits(0.95)
            held[place] += bool(((low <= share) & (share <= high)).all())
            assert column.frequencies is not None
    assert (held > binom.ppf(ALPHA, runs, 0.95)).all()


@pytest.mark.slow
def test_estimates_of_one_value_come_near_the_truth() -> None:
    number = 1600
    frame = pd.DataFrame(
        {"sex": ["f"] * 400 + ["m"] * 1200, "n": [0, 3, 6, 6] * 400, "kind": ["a"] * number}
    )
    sampler = TableSampler(4.0, COLUMNS)
    drawn = sample_population(sampler, frame, range(number), seed=1)
    found = drawn.estimate(assume="one_value")
    assert isinstance(found, TableEstimate)
    records = {(row["column"], row["value"]): row for row in found.to_records()}
    for key, share in ((("sex", "f"), 0.25), (("kind", "a"), 1.0), (("n", "missing"), 0.0)):
        row = records[key]
        assert abs(row["frequency"] - share) < 0.15
        assert row["low"] <= share <= row["high"]
        assert row["high"] - row["low"] < 0.5
    # The share of the draws is further away.
    assert abs(records["kind", "a"]["share"] - 1.0) > 0.2
    bounds = drawn.estimate().to_records()
    assert all(row["frequency"] is None and row["low"] <= row["share"] for row in bounds)
    assert found.to_pandas().columns.tolist() == list(bounds[0])


def test_bounds_say_why_they_are_wide() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [5.0, 6.0, 7.0], "c": [1, 2, 3]})
    many = {"a": (0, 99), "b": (0.0, 9.0), "c": {"bounds": (0, 99), "bins": 20}}
    wide = sample_population(TableSampler(1.0, many), frame, [1, 2, 3], seed=1)
    found = wide.estimate(assume="one_value")
    assert isinstance(found, TableEstimate)
    assert found.assume is None
    assert all("4,096" in column.why for column in found.columns.values())
    around = TableSampler(1.0, {"c": (0, 9)}, reference=frame)
    learned = sample_population(around, frame, [1, 2, 3], seed=1).estimate()
    assert isinstance(learned, TableEstimate)
    assert "public table" in learned.columns["c"].why
    low, high = learned.columns["c"].limits(0.95)
    assert low.tolist() == [0.0] * 10
    assert high.tolist() == [1.0] * 10
    with pytest.raises(InvalidValueError, match="level"):
        learned.to_records(1.0)
