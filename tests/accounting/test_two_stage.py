"""Two-stage sampling: deltas against the full law of all sets and counts, in rationals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout.accounting as ta
from turnout.errors import InvalidTypeError, InvalidValueError

Law = dict[tuple[tuple[tuple[int, ...], ...], tuple[int, ...]], Fraction]

ADJACENCIES = ("replace", "remove", "add")
EPSILONS = (0.0, 0.3, 1.0, 2.5)


class Reporting(NamedTuple):
    """How people report."""

    rate: float
    size: int
    reported: int
    gamma: float

    def sets(self, value: int | None) -> list[tuple[tuple[int, ...], int, Fraction]]:
        """List what a person can do: the set, what is added to the own count, the probability.

        Nobody's value is None: a uniform set, nothing is added.
        """
        rate, gamma = Fraction(self.rate), Fraction(self.gamma)
        every = list(itertools.combinations(range(self.size), self.reported))
        uniform = Fraction(1, len(every))
        if value is None:
            return [(members, 0, uniform) for members in every]
        total = gamma * math.comb(self.size - 1, self.reported - 1)
        total += math.comb(self.size - 1, self.reported)
        found = []
        for members in every:
            found.append((members, 0, (1 - rate) * uniform))
            weight = gamma if value in members else Fraction(1)
            found.append((members, int(value in members), rate * weight / total))
        return found

    def law(self, values: Sequence[int | None], dummies: int = 0) -> Law:
        """Return the joint law of everybody's set and of all counts."""
        law: Law = {((), (0,) * self.size): Fraction(1)}
        for value in values:
            following: Law = {}
            for (sets, counts), mass in law.items():
                for members, one, share in self.sets(value):
                    place = -1 if value is None else value
                    more = tuple(n + one * (item == place) for item, n in enumerate(counts))
                    outcome = ((*sets, members), more)
                    following[outcome] = following.get(outcome, Fraction(0)) + mass * share
            law = following
        rate = Fraction(self.rate)
        for item in range(self.size if dummies else 0):
            following = {}
            for (sets, counts), mass in law.items():
                for kept in range(dummies + 1):
                    share = math.comb(dummies, kept) * rate**kept * (1 - rate) ** (dummies - kept)
                    more = (*counts[:item], counts[item] + kept, *counts[item + 1 :])
                    outcome = (sets, more)
                    following[outcome] = following.get(outcome, Fraction(0)) + mass * share
            law = following
        return law

    def mechanism(self, floor: int = 0, dummies: int = 0) -> ta.TwoStageCountSampling:
        return ta.TwoStageCountSampling(*self, floor=floor, dummies=dummies)


def pair(
    reporting: Reporting, others: Sequence[int], adjacency: str, dummies: int = 0
) -> tuple[Law, Law]:
    """Return the laws of two neighbouring data sets: the first person changes."""
    before, after = {"replace": (0, 1), "remove": (0, None), "add": (None, 0)}[adjacency]
    return (
        reporting.law([before, *others], dummies),
        reporting.law([after, *others], dummies),
    )


CASES = [
    Reporting(0.3, 3, 1, 1.0),
    Reporting(0.5, 3, 2, 1.0),
    Reporting(0.7, 3, 1, 2.5),
    Reporting(0.4, 3, 2, 4.0),
    Reporting(0.9, 4, 2, 3.0),
    Reporting(0.2, 4, 3, 1.5),
    Reporting(1e-6, 4, 2, 10.0),
    Reporting(0.6, 3, 3, 7.0),
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("reporting", CASES, ids=str)
@pytest.mark.parametrize("dummies", [0, 1, 2, 3])
def test_with_dummies_delta_is_that_of_a_lonely_person(
    reporting: Reporting, dummies: int, adjacency: str, references: ModuleType
) -> None:
    # The counts of items that the person never holds have the same law under both.
    laws = pair(reporting, [], adjacency, dummies)
    for epsilon in EPSILONS:
        exact = references.hockey_stick(*laws, references.alpha_of(epsilon))
        found = reporting.mechanism(dummies=dummies).delta(epsilon, adjacency=adjacency)
        references.check_bound(found, exact)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("reporting", [CASES[0], CASES[3], CASES[7]], ids=str)
def test_with_dummies_no_data_are_worse(
    reporting: Reporting, adjacency: str, references: ModuleType
) -> None:
    for others in itertools.combinations_with_replacement(range(3), 2):
        laws = pair(reporting, others, adjacency, dummies=1)
        for epsilon in (0.0, 0.5, 1.5):
            real = references.hockey_stick(*laws, references.alpha_of(epsilon))
            found = reporting.mechanism(dummies=1).delta(epsilon, adjacency=adjacency)
            assert real <= Fraction(found)


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize("reporting", [*CASES[:4], CASES[7]], ids=str)
@pytest.mark.parametrize("floor", [0, 1, 2, 4])
def test_at_the_floor_of_one_item_delta_is_exact(
    reporting: Reporting, floor: int, adjacency: str, references: ModuleType
) -> None:
    laws = pair(reporting, [0] * floor, adjacency)
    for epsilon in EPSILONS:
        exact = references.hockey_stick(*laws, references.alpha_of(epsilon))
        found = reporting.mechanism(floor=floor).delta(epsilon, adjacency=adjacency)
        references.check_bound(found, exact)


@pytest.mark.parametrize("reporting", [CASES[0], CASES[2], CASES[7]], ids=str)
@pytest.mark.parametrize("floor", [0, 1, 2])
def test_at_the_floor_of_both_items_delta_is_exact_where_no_set_or_every_set_holds_both(
    reporting: Reporting, floor: int, references: ModuleType
) -> None:
    laws = pair(reporting, [0, 1] * floor, "replace")
    for epsilon in EPSILONS:
        exact = references.hockey_stick(*laws, references.alpha_of(epsilon))
        references.check_bound(reporting.mechanism(floor=floor).delta(epsilon), exact)


@pytest.mark.parametrize("reporting", [CASES[1], CASES[3]], ids=str)
def test_the_floor_bounds_all_data_above_it_and_is_not_far_off(
    reporting: Reporting, references: ModuleType
) -> None:
    for others in ([0, 1], [0, 1, 2], [0, 0, 1], [0, 1, 1, 2], [0, 0, 1, 1]):
        laws = pair(reporting, others, "replace")
        floor = min(others.count(0), others.count(1))
        for epsilon in EPSILONS:
            real = references.hockey_stick(*laws, references.alpha_of(epsilon))
            found = Fraction(reporting.mechanism(floor=floor).delta(epsilon))
            assert real <= found
            if others == [0, 0, 1, 1]:
                assert found <= real * Fraction(5, 4)


def test_reporting_every_item_is_sampling_in_one_stage() -> None:
    for epsilon, adjacency in itertools.product(EPSILONS, ADJACENCIES):
        plain = ta.CountSampling(0.6, 50).delta(epsilon, adjacency=adjacency)
        for hidden in ({"floor": 50}, {"dummies": 50}):
            ours = ta.TwoStageCountSampling(0.6, 9, 9, 3.0, **hidden)
            assert ours.delta(epsilon, adjacency=adjacency) == pytest.approx(plain, rel=1e-13)


def test_the_smaller_of_both_bounds_is_taken() -> None:
    for epsilon in EPSILONS:
        one, other, both = (
            ta.TwoStageCountSampling(0.4, 10, 3, 2.0, **hidden).delta(epsilon)
            for hidden in ({"floor": 60}, {"dummies": 8}, {"floor": 60, "dummies": 8})
        )
        assert both == min(one, other)


def test_nothing_hides_more_than_the_sets_show() -> None:
    mechanism = ta.TwoStageCountSampling(0.5, 20, 5, 4.0, floor=10**6, dummies=10**6)
    alpha = 0.25
    total = alpha * 4 + 1 - alpha
    expected = math.log((0.5 * 4 + 0.5 * total) / (0.5 + 0.5 * total))
    assert mechanism._local_epsilon == pytest.approx(expected, rel=1e-14)
    assert 0 < mechanism._local_epsilon < math.log(4)
    assert mechanism.delta(0.9 * expected) > 1e-3
    assert mechanism.delta(1.05 * expected) < 1e-12
    assert ta.TwoStageCountSampling(0.5, 20, 5)._local_epsilon == 0


def test_with_nothing_hidden_delta_is_large_and_no_error() -> None:
    mechanism = ta.TwoStageCountSampling(0.5, 10, 5)
    assert mechanism.delta(20.0) > 0.2
    assert ta.TwoStageCountSampling(1.0, 10, 5, floor=100).delta(20.0) > 0.4
    assert ta.TwoStageCountSampling(0.0, 10, 5, 9.0).delta(0.0) == 0


@pytest.mark.parametrize("hidden", [{"floor": 700}, {"dummies": 150}])
@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_the_calibrated_rate_is_the_largest(hidden: dict[str, int], gamma: float) -> None:
    mechanism = ta.TwoStageCountSampling(0.5, 20, 5, gamma, **hidden)
    found = ta.calibrate(mechanism, "rate", 1.0, 1e-5)
    assert mechanism.replace(rate=found).delta(1.0) <= 1e-5
    assert mechanism.replace(rate=found * (1 + 1e-9)).delta(1.0) > 1e-5
    (name,) = hidden
    least = ta.calibrate(mechanism, name, 1.0, 1e-5)
    assert mechanism.replace(**{name: least}).delta(1.0) <= 1e-5
    assert mechanism.replace(**{name: least - 1}).delta(1.0) > 1e-5


@settings(max_examples=60, deadline=None)
@given(
    reporting=st.tuples(
        st.floats(1e-3, 0.98), st.just(12), st.integers(1, 12), st.floats(1.0, 20.0)
    ),
    hidden=st.integers(0, 300),
    epsilon=st.floats(0.0, 4.0),
    adjacency=st.sampled_from(ADJACENCIES),
)
def test_delta_falls_with_what_is_hidden_and_with_epsilon(
    reporting: tuple[float, int, int, float], hidden: int, epsilon: float, adjacency: str
) -> None:
    for name in ("floor", "dummies"):
        mechanism = Reporting(*reporting).mechanism(**{name: hidden})
        delta = mechanism.delta(epsilon, adjacency=adjacency)
        slack = 1e-12 * delta + 1e-29
        assert 0 <= delta <= 1
        # With the rate it need not rise: what is hidden takes part at that rate too.
        more = mechanism.replace(**{name: hidden + 1})
        assert more.delta(epsilon, adjacency=adjacency) <= delta + slack
        assert mechanism.delta(epsilon + 0.1, adjacency=adjacency) <= delta + slack


def test_rounds_are_composed() -> None:
    mechanism = ta.TwoStageCountSampling(0.3, 12, 4, 1.5, dummies=200)
    one, many = mechanism.epsilon(1e-6), mechanism.compose(10).epsilon(1e-6)
    assert one < many < 10 * one


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"rate": 1.5}, InvalidValueError, "rate must be a probability"),
        ({"rate": "0.5"}, InvalidTypeError, "rate must be a real number"),
        ({"domain_size": 1}, InvalidValueError, "domain_size must be an integer from 2"),
        ({"reported": 0}, InvalidValueError, "reported must be an integer from 1 to 10, got 0"),
        ({"reported": 11}, InvalidValueError, "reported must be an integer from 1 to 10, got 11"),
        ({"gamma": 0.5}, InvalidValueError, r"gamma must be from 1 to 1e\+15, got 0.5"),
        ({"gamma": math.nan}, InvalidValueError, "gamma must be"),
        ({"floor": -1}, InvalidValueError, "floor must be"),
        ({"floor": 10**8}, InvalidValueError, "floor must be"),
        ({"dummies": 1.0}, InvalidTypeError, "dummies must be"),
        ({"dummies": 10**8}, InvalidValueError, "dummies must be"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(
    changes: dict[str, object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        ta.TwoStageCountSampling(0.5, 10, 3).replace(**changes)


def numbers_and_counts(reporting: Reporting, people: Sequence[tuple[int | None, bool]]) -> Law:
    """Return the law of how many sets hold each item, and of the counts.

    Each person is an item, and whether the coin is drawn; without a coin the person is not kept.
    """
    law: Law = {((), (0,) * 2 * reporting.size): Fraction(1)}
    for value, coin in people:
        following: Law = {}
        options = reporting.sets(value)
        if value is not None and not coin:
            # The coin is known to be 1.
            sure = Reporting(1.0, *reporting[1:])
            options = [option for option in sure.sets(value) if option[2] > 0]
        for (_, state), mass in law.items():
            for members, one, share in options:
                more = list(state)
                for item in members:
                    more[item] += 1
                if value is not None:
                    more[reporting.size + value] += one
                outcome = ((), tuple(more))
                following[outcome] = following.get(outcome, Fraction(0)) + mass * share
        law = following
    return law


@pytest.mark.parametrize("reporting", CASES[:4], ids=str)
def test_numbers_of_sets_and_counts_are_a_random_function_of_the_counts_of_one_stage(
    reporting: Reporting, references: ModuleType
) -> None:
    # Theorem 3.4: given how many are kept of each item, who is not kept names a uniform set.
    for values in ([0], [0, 1], [0, 0, 2], [0, 1, 1, 0]):
        counts = [values.count(item) for item in range(reporting.size)]
        mixed: Law = {}
        for kept, mass in references.product_law(counts, reporting.rate).items():
            people: list[tuple[int | None, bool]] = [
                (item, False) for item, many in enumerate(kept) for _ in range(many)
            ]
            people += [(None, False)] * (len(values) - sum(kept))
            for outcome, share in numbers_and_counts(reporting, people).items():
                mixed[outcome] = mixed.get(outcome, Fraction(0)) + mass * share
        assert mixed == numbers_and_counts(reporting, [(value, True) for value in values])


@pytest.mark.parametrize("reporting", CASES[:4], ids=str)
def test_who_sees_no_set_learns_no_more_than_from_one_stage(
    reporting: Reporting, references: ModuleType
) -> None:
    for others in ([], [0], [1], [0, 1], [0, 1, 2], [0, 0, 1, 1]):
        laws, plain = [], []
        for value in (0, 1):
            people = [value, *others]
            laws.append(numbers_and_counts(reporting, [(value, True) for value in people]))
            counts = [people.count(item) for item in range(reporting.size)]
            plain.append(references.product_law(counts, reporting.rate))
        for epsilon in EPSILONS:
            alpha = references.alpha_of(epsilon)
            assert references.hockey_stick(*laws, alpha) <= references.hockey_stick(*plain, alpha)


@pytest.mark.parametrize("gamma", [1.0, 4.0])
def test_who_sees_the_sets_learns_more_than_from_one_stage(
    gamma: float, references: ModuleType
) -> None:
    # Nine people, four of them besides the changed one for each item; one of two items is named.
    reporting, others = Reporting(0.5, 2, 1, gamma), [0, 1] * 4
    alpha = references.alpha_of(1.5)
    real = seen_delta(reporting, 4, alpha)
    one_stage = references.count_sampling_delta(1.5, 0.5, 4, "replace", 4)
    references.check_bound(reporting.mechanism(floor=4).delta(1.5), real)
    assert real > 2 * one_stage
    references.check_bound(ta.CountSampling(0.5, 4).delta(1.5), one_stage)
    # The shortcut over numbers of sets gives what the enumeration of all sets gives.
    laws = pair(reporting, others[:4], "replace")
    assert references.hockey_stick(*laws, alpha) == seen_delta(reporting, 2, alpha)


def seen_delta(reporting: Reporting, floor: int, alpha: Fraction) -> Fraction:
    """Sum over how many of the holders named their own item, where sets have one of two items."""
    kept = Fraction(reporting.rate)
    own = sum(share for members, _, share in reporting.sets(0) if members == (0,))
    active = sum(share for members, one, share in reporting.sets(0) if one) / own

    def count(holders: int) -> list[Fraction]:
        return [
            math.comb(holders, x) * active**x * (1 - active) ** (holders - x)
            for x in range(holders + 1)
        ]

    assert 0 < kept < 1
    total = Fraction(0)
    for holders in range(floor + 1):
        chance = math.comb(floor, holders) * own**holders * (1 - own) ** (floor - holders)
        more, fewer = count(holders + 1), [*count(holders), Fraction(0)]
        # The changed person named the old item, or the new one.
        gaps = [own * x - alpha * (1 - own) * y for x, y in zip(more, fewer, strict=True)]
        gaps += [(1 - own) * y - alpha * own * x for x, y in zip(more, fewer, strict=True)]
        total += chance * sum(gap for gap in gaps if gap > 0)
    return total
