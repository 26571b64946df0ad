"""No two persons' tables are told apart by more than e^epsilon: laws enumerated, in fractions."""

from __future__ import annotations

import datetime
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from turnout import _core
from turnout.samplers import PrivacyBudget, TableSampler
from turnout.samplers.tables import sampler as module

#: A small domain with each type of column: 2 x 3 x 3 x 2 x 3 combinations of cells.
COLUMNS: dict[str, Any] = {
    "sex": ["f", "m"],
    "age": {"bounds": (17, 91), "bins": 2, "missing": True},
    "grade": {"labels": [1, 2, 3], "ordered": True},
    "member": bool,
    "day": {"bounds": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 5)), "bins": 3},
}

TYPES = {
    "sex": pl.String,
    "age": pl.Int64,
    "grade": pl.Int64,
    "member": pl.Boolean,
    "day": pl.Date,
}


def day(number: int) -> datetime.date:
    return datetime.date(2020, 1, number)


#: Records that have little in common: constant, single, at the bounds, all missing, many.
RECORDS: list[list[tuple[Any, ...]]] = [
    [("f", 17, 1, False, day(1))] * 400,
    [("m", 91, 3, True, day(5))],
    [("f", 17, 1, False, day(1)), ("m", 91, 3, True, day(5))],
    [("m", None, 2, True, day(3))] * 7,
    [("f", None, 1, True, day(1))],
    [
        ("fm"[place % 2], 17 + place % 75, 1 + place % 3, place % 5 == 0, day(1 + place % 5))
        for place in range(900)
    ],
]


def frame(records: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(records, schema=TYPES, orient="row")


PEOPLE = [frame(records) for records in RECORDS]


def exponential_above(epsilon: float) -> Fraction:
    """A number just below e^epsilon, proven by a partial sum."""
    x = Fraction(epsilon)
    return sum((x**power / math.factorial(power) for power in range(120)), start=Fraction(0))


def law_of(sampler: Any) -> list[Fraction]:
    """The law over all combinations, from the integers by which a draw is made."""
    weights = [int(weight) for weight in sampler._weights]
    return [Fraction(weight, sum(weights)) for weight in weights]


def largest_ratio(laws: list[list[Fraction]]) -> Fraction:
    return max(max(masses) / min(masses) for masses in zip(*laws, strict=True))


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 2.0, 4.0, 9.0, 20.0])
@pytest.mark.parametrize(
    ("reference", "records", "method"),
    [
        (None, None, "mollifier"),
        (None, 1, "minimax"),
        (PEOPLE[5], None, "mollifier"),
        (PEOPLE[5], 1, "minimax"),
    ],
)
def test_no_two_tables_are_told_apart_where_all_combinations_are_weighed(
    epsilon: float, reference: Any, records: int | None, method: str
) -> None:
    laws = []
    for person in PEOPLE:
        sampler = TableSampler(epsilon, COLUMNS, reference=reference, records=records)
        before = sampler.realized_ratio
        assert sampler.fit(person).realized_ratio == before
        assert sampler.method_ == method
        laws.append(law_of(sampler))
        assert len(laws[-1]) == 2 * 3 * 3 * 2 * 3
    largest = largest_ratio(laws)
    assert largest <= before <= exponential_above(epsilon)
    # The samplers do learn: some laws differ by most of what is allowed.
    assert math.log(largest) > 0.7 * epsilon


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("reference", [None, PEOPLE[5]])
def test_no_two_tables_are_told_apart_by_a_draw_among_proposals(
    epsilon: float, reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All runs of a sampler that sees four proposals, for a grid of random shifts: the law of a draw
    # is a sum over shifts and choices, each with an integer weight.
    monkeypatch.setattr(module, "_ENUMERATED", 1)
    monkeypatch.setattr(module, "automatic_proposals", lambda epsilon: 4)
    noted: list[Any] = []
    real = _core.SamplerBand

    class Scripted:
        def __init__(self, *arguments: Any) -> None:
            self._band = real(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._band, name)

        def resample(self, ratios: Any, seed: int | None = None) -> Any:
            weights = self._band.weights(ratios[0], np.full(ratios.shape[1], 2**32, np.uint64))[0]
            noted.append([int(weight) for weight in weights])
            return np.array([chosen])

    monkeypatch.setattr(_core, "SamplerBand", Scripted)
    samplers = [TableSampler(epsilon, COLUMNS, reference=reference).fit(p) for p in PEOPLE]
    assert {sampler.method_ for sampler in samplers} == {"resampling"}
    shifts = np.random.default_rng(1).random((40, len(COLUMNS)))
    laws: list[dict[Any, Fraction]] = [{} for _ in PEOPLE]
    for shift, chosen in itertools.product(shifts, range(4)):
        monkeypatch.setattr(_core, "uniforms", lambda length, seed=None, at=shift: at[:length])
        cells = set()
        for sampler, law in zip(samplers, laws, strict=True):
            drawn = sampler._projection.sample(1, proposals=sampler._seen)
            cell = tuple(drawn[0].astype(int).tolist())
            weights = noted.pop()
            assert sum(weights) == 4 * 2**32
            law[cell] = law.get(cell, Fraction(0)) + Fraction(weights[chosen], 40 * sum(weights))
            cells.add(cell)
        # What is proposed does not depend on the person.
        assert len(cells) == 1
    for law in laws:
        assert sum(law.values()) == 1
    largest = largest_ratio([[law[cell] for cell in laws[0]] for law in laws])
    assert largest <= samplers[0].realized_ratio <= exponential_above(epsilon)
    assert math.log(largest) > 0.2 * epsilon


def test_draws_follow_the_law(statistical: Any) -> None:
    sampler = TableSampler(3.0, COLUMNS).fit(PEOPLE[2])
    drawn = sampler.sample(60_000, budget=PrivacyBudget(math.inf), seed=3)
    codes = sum(
        factor * column.encode("drawn", drawn[column.name].to_list())
        for factor, column in zip((54, 18, 6, 3, 1), sampler._columns_, strict=True)
    )
    counts = np.bincount(codes, minlength=108)
    statistical.check_law(counts, [float(mass) for mass in law_of(sampler)])


def test_draws_among_proposals_follow_the_score(
    statistical: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same domain by both ways: 1,024 proposals come close to the law over all combinations.
    exact = TableSampler(2.0, COLUMNS).fit(PEOPLE[2])
    monkeypatch.setattr(module, "_ENUMERATED", 1)
    proposed = TableSampler(2.0, COLUMNS).fit(PEOPLE[2])
    assert proposed.method_ == "resampling"
    assert np.allclose(proposed.score_samples(PEOPLE[5]), exact.score_samples(PEOPLE[5]), atol=0.02)
    drawn = proposed.sample(2_000, budget=PrivacyBudget(math.inf), seed=5)
    sexes, law = drawn["sex"].to_list(), law_of(exact)
    assert statistical is not None
    share = float(sum(law[:54]))
    # Five standard deviations: a two-sided probability of 6e-7.
    assert abs(sexes.count("f") / 2_000 - share) < 5 * math.sqrt(share * (1 - share) / 2_000)


def test_values_within_a_cell_come_evenly(statistical: Any) -> None:
    columns = {"age": {"bounds": (17, 21), "bins": 2}, "share": {"bounds": (0.0, 1.0), "bins": 2}}
    mine = pl.DataFrame({"age": [17], "share": [1.0]})
    sampler = TableSampler(2.0, columns).fit(mine)
    drawn = sampler.sample(60_000, budget=PrivacyBudget(math.inf), seed=7)
    ages = np.bincount(drawn["age"].to_numpy() - 17, minlength=5)
    law = np.exp(sampler.score_samples(pl.DataFrame({"age": [17, 19], "share": [0.0, 0.0]})))
    high = np.exp(sampler.score_samples(pl.DataFrame({"age": [17, 19], "share": [1.0, 1.0]})))
    each = (law + high) / 2
    statistical.check_law(ages, [each[0]] * 2 + [each[1]] * 3)
    shares = drawn["share"].to_numpy()
    halves = np.bincount((shares * 4).astype(int), minlength=4)
    low_part, high_part = (float(2 * part[0] + 3 * part[1]) / 4 for part in (law, high))
    statistical.check_law(halves, [low_part] * 2 + [high_part] * 2)
