"""What is derived from days of permanent answers, and from two plans of the same ones."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.frequency.estimation.rounds import sharing
from turnout.frequency.longitudinal import Memoized

CHAINS = {
    "direct": "direct_encoding",
    "symmetric": "symmetric_unary_encoding",
    "optimized": "optimized_unary_encoding",
}
VALUES = np.repeat([0, 1, 2], [90, 60, 50])
TRUTH = np.bincount(VALUES) / len(VALUES)


def chain(name: str, first: float = 1.2) -> Memoized:
    return Memoized(3.0, 3, first_epsilon=first, permanent=CHAINS[name])


def secrets(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (len(VALUES), 32), np.uint8)


def reports_of_days(memoized: Memoized, days: int, seed: int, *, same: bool = True) -> tn.Reports:
    made = []
    for day in range(days):
        people = secrets(1000 * seed + (0 if same else day))
        answers = memoized.permanent_answers(VALUES, people)
        made.append(memoized.report(answers, seed=1000 * seed + day))
    return tn.Reports.concatenate(made, same_people=same)


@pytest.mark.parametrize("name", CHAINS)
def test_what_two_reports_share_of_a_sum_is_that_of_the_permanent_answers(name: str) -> None:
    memoized = chain(name)
    p, q = memoized._stages()[0]
    rows, held = [[1, 0, 0], [1, -1, 2], [3, 3, 3]], [0.5, 0.25, 0.25]
    found = memoized._permanent_variances(np.array(rows, float), np.array(held))
    for row, value in zip(rows, found, strict=True):
        expected = 0
        for own, share in enumerate(held):
            chances = [p if answer == own else q for answer in range(3)]
            mean = square = 0
            for bits in itertools.product((0, 1), repeat=3):
                if name == "direct":
                    # One answer is supported, never none or two.
                    likely = chances[bits.index(1)] if sum(bits) == 1 else 0
                else:
                    likely = 1
                    for bit, chance in zip(bits, chances, strict=True):
                        likely *= chance if bit else 1 - chance
                said = sum(c * bit for c, bit in zip(row, bits, strict=True))
                mean, square = mean + likely * said, square + likely * said**2
            expected += share * float((square - mean * mean) / (p - q) ** 2)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("people", ["one day", "the same", "others"])
def test_ordered_answers_hold_the_truth(name: str, people: str, statistical: ModuleType) -> None:
    memoized, trials, held, narrow = chain(name), 150, np.zeros(2, np.int64), 0
    for seed in range(trials):
        days = 1 if people == "one day" else 12
        reports = reports_of_days(memoized, days, seed, same=people != "others")
        found = tn.ordered(reports)
        for place, sum_of in enumerate((found.mean(), found.range(0, 1))):
            low, high = sum_of.interval(0.95)
            held[place] += low <= (TRUTH @ [0, 1, 2] if place == 0 else TRUTH[:2].sum()) <= high
        mean = found.mean()
        error = mean.standard_error / np.sqrt(days)
        narrow += abs(mean.value - TRUTH @ [0, 1, 2]) <= 1.96 * error
    statistical.check_share(held, trials, 0.93, 0.965)
    if people == "the same" and name != "optimized":
        with pytest.raises(AssertionError):
            statistical.check_share([narrow], trials, 0.93, 0.97)


@pytest.mark.parametrize("name", CHAINS)
def test_the_likeliest_distribution_of_days_is_not_too_sure(
    name: str, statistical: ModuleType
) -> None:
    memoized, trials, held, done = chain(name), 60, np.zeros(3, np.int64), 0
    for seed in range(trials):
        estimate = tn.maximum_likelihood(reports_of_days(memoized, 10, seed))
        if estimate._is_interior:
            done += 1
            held += estimate.interval().contains(TRUTH)
    assert done == trials
    statistical.check_share(held, trials, 0.94, 1.0)


def test_budgets_of_the_same_permanent_answers_share_noise() -> None:
    one, other = chain("direct", 1.2), chain("direct", 2.0)
    asked = Memoized(3.0, 3, first_epsilon=2.0, question="another")
    plans = [tn.Plan(each, tn.Everyone()) for each in (one, other, asked)]
    assert one.context == other.context != asked.context
    assert sharing(plans) == [2, 2, 1]
    assert sharing([plans[0], tn.Plan(tn.DirectEncoding(3.0, 3), tn.Everyone())]) == [1, 1]


@pytest.mark.parametrize("people", ["the same", "others"])
@pytest.mark.parametrize("how", ["combine", "mixed", "combine twice"])
def test_two_budgets_hold_the_truth(how: str, people: str, statistical: ModuleType) -> None:
    # Reports that add next to nothing to the permanent answers.
    plans = [Memoized(1.5, 2, first_epsilon=first) for first in (1.45, 1.49, 1.4)]
    trials, held, narrow = 300, 0, 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        values = np.repeat([0, 1], [100, 100])
        people_of = [rng.integers(0, 256, (200, 32), np.uint8) for _ in plans]
        if people == "the same":
            people_of = [people_of[0]] * 3
        tallies = [
            plan.tally(plan.report(plan.permanent_answers(values, keys), seed=10 * seed + place))
            for place, (plan, keys) in enumerate(zip(plans, people_of, strict=True))
        ]
        estimates = [tally.estimate() for tally in tallies]
        same = people == "the same"
        for flag in (same, False):
            if how == "combine":
                total = tn.weighting.combine(estimates, same_people=flag)
            elif how == "combine twice":
                some = tn.weighting.combine(estimates[:2], same_people=flag)
                total = tn.weighting.combine([some, estimates[2]], same_people=flag)
            else:
                total = tn.estimate_mixed(tallies, same_people=flag)
            inside = int(total.interval().contains([0.5, 0.5])[0])
            held, narrow = (held + inside, narrow) if flag is same else (held, narrow + inside)
            if flag is False and not same:
                break
    statistical.check_share([held], trials, 0.93, 1.0)
    if people == "the same" and how == "mixed":
        with pytest.raises(AssertionError):
            statistical.check_share([narrow], trials, 0.93, 1.0)


def test_differences_of_days_of_the_same_people_are_not_too_narrow(
    statistical: ModuleType,
) -> None:
    memoized, trials, held = chain("symmetric", 2.0), 200, np.zeros(3, np.int64)
    for seed in range(trials):
        answers = memoized.permanent_answers(VALUES, secrets(seed))
        days = {
            day: memoized.tally(memoized.report(answers, seed=100 * seed + day)) for day in range(2)
        }
        found = tn.GroupedTally("day", days).estimate().compare(0, 1)
        held += (found.low <= 0) & (found.high >= 0)
    statistical.check_share(held, trials, 0.95, 1.0)
