"""Days of the same people's permanent answers share noise, and their sum says so."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.stored import header_of, with_header

import turnout as tn
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.rounds import Rounds
from turnout.collecting.tally import read_tally
from turnout.errors import CorruptDataError, EstimatorError, InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.rounds import shared_noise
from turnout.frequency.longitudinal import Memoized, permanent_variance, rounds_variance

DIRECT, SYMMETRIC, OPTIMIZED = (
    "direct_encoding",
    "symmetric_unary_encoding",
    "optimized_unary_encoding",
)
CHAINS = {
    "L-GRR": (DIRECT, DIRECT),
    "L-SUE": (SYMMETRIC, SYMMETRIC),
    "L-OUE": (OPTIMIZED, OPTIMIZED),
    "L-OSUE": (OPTIMIZED, SYMMETRIC),
    "L-SOUE": (SYMMETRIC, OPTIMIZED),
}


def chain(name: str, size: int = 3, first: float = 1.0) -> Memoized:
    permanent, second = CHAINS[name]
    return Memoized(3.0, size, first_epsilon=first, permanent=permanent, instantaneous=second)


def secrets(nodes: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (nodes, 32), np.uint8)


def days_of(
    memoized: Memoized, values: Any, days: int, seed: int, *, same: bool = True, rate: float = 1.0
) -> list[tn.Tally]:
    """Tallies of days of the same people, or of other people each day."""
    made = []
    for day in range(days):
        people = secrets(len(values), 1000 * seed + (0 if same else day))
        answers = memoized.permanent_answers(values, people)
        reports = memoized.report(answers, participation=rate, seed=1000 * seed + day)
        made.append(memoized.tally(reports))
    return made


def merged(tallies: Sequence[Any], *, same_people: bool = True) -> Any:
    total = tallies[0]
    for tally in tallies[1:]:
        total = total.merge(tally, same_people=same_people)
    return total


# The formula, from the law of the reports of one person, in exact numbers


def scores(memoized: Memoized, holds: bool, rounds: int) -> tuple[Fraction, Fraction]:
    """Mean and variance of one person's supporting reports in so many rounds, by enumeration."""
    (p1, q1), (p2, q2) = memoized._stages()
    first = p1 if holds else q1
    mean = square = Fraction(0)
    for permanent in (True, False):
        here = first if permanent else 1 - first
        second = p2 if permanent else q2
        for reports in itertools.product((True, False), repeat=rounds):
            likely = here
            for supports in reports:
                likely *= second if supports else 1 - second
            mean += likely * sum(reports)
            square += likely * sum(reports) ** 2
    return mean, square - mean * mean


def exact_variance(memoized: Memoized, rounds_of: Sequence[tuple[bool, int]]) -> Fraction:
    """The variance of the estimated share of person-days, people holding the answer or not."""
    (p1, q1), (p2, q2) = memoized._stages()
    total = sum(rounds for _, rounds in rounds_of)
    spread = sum(scores(memoized, holds, rounds)[1] for holds, rounds in rounds_of)
    return Fraction(spread) / (total * (p1 - q1) * (p2 - q2)) ** 2


def stated(memoized: Memoized, sizes: Sequence[int], share: float) -> float:
    """The variance that a sum of rounds of these sizes states where that is the share."""
    tallies = [memoized.simulate([size, *[0] * (memoized.domain.size - 1)]) for size in sizes]
    model = merged(tallies).estimate().estimation.model
    return float(model.variance(np.array(share)))


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_the_variance_of_days_of_the_same_people_is_exact(name: str, rounds: int) -> None:
    memoized = chain(name)
    for holders, others in ((3, 4), (0, 7), (7, 0)):
        people = [(True, rounds)] * holders + [(False, rounds)] * others
        expected = float(exact_variance(memoized, people))
        assert stated(memoized, [7] * rounds, holders / 7) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("sizes", [(4, 1), (3, 3, 1), (4, 2, 2), (4, 4, 1)])
def test_no_arrangement_of_people_varies_more(name: str, sizes: tuple[int, ...]) -> None:
    most = max(sizes)
    # Who is in which round: every choice, with the largest round fixed.
    each = [itertools.combinations(range(most + 1), size) for size in sizes[1:]]
    for chosen in itertools.product(*each):
        for held in itertools.product((True, False), repeat=most + 1):
            numbers = [
                (person < most) + sum(person in one for one in chosen) for person in range(most + 1)
            ]
            people = [(holds, n) for holds, n in zip(held, numbers, strict=True) if n]
            share = sum(n for holds, n in people if holds) / sum(sizes)
            bound = stated_cached(name, sizes, share)
            assert float(exact_variance_cached(name, tuple(sorted(people)))) <= bound * (1 + 1e-9)


_STATED: dict[Any, Any] = {}
_EXACT: dict[Any, Any] = {}


def stated_cached(name: str, sizes: tuple[int, ...], share: float) -> float:
    if (name, sizes) not in _STATED:
        tallies = [chain(name).simulate([size, 0, 0]) for size in sizes]
        _STATED[name, sizes] = merged(tallies).estimate().estimation.model
    return float(_STATED[name, sizes].variance(np.array(share)))


def exact_variance_cached(name: str, people: tuple[tuple[bool, int], ...]) -> Fraction:
    if (name, people) not in _EXACT:
        _EXACT[name, people] = exact_variance(chain(name), people)
    found: Fraction = _EXACT[name, people]
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_it_is_the_variance_of_rounds(name: str) -> None:
    memoized, counts = chain(name), [500, 300, 200]
    total = merged([memoized.simulate(counts, participation=0.4, seed=day) for day in range(6)])
    model = total.estimate("c_hat").estimation.model
    found = model.variance(np.array(counts) / 1000) * 1000**2
    assert np.allclose(found, rounds_variance(memoized, 6, counts, rate=0.4), rtol=1e-9)
    # Of very many days only what is permanent is left.
    rounds = Rounds.of({bytes([day]) * 16: 1000 for day in range(256)})
    shared = shared_noise(rounds, memoized._permanent_covariances, 3)
    most = shared.at(np.array(counts) / 1000) * 1000**2
    assert np.allclose(most, 255 / 256 * permanent_variance(memoized, counts), rtol=1e-9)


# Intervals, through the verbs

VALUES = np.repeat([0, 1, 2], [150, 75, 25])
ASKED: dict[str, Callable[[Memoized, int], Any]] = {
    "one day": lambda memoized, seed: days_of(memoized, VALUES, 1, seed)[0],
    "days of the same people": lambda memoized, seed: sum(days_of(memoized, VALUES, 16, seed)),
    "days of other people": lambda memoized, seed: merged(
        days_of(memoized, VALUES, 16, seed, same=False), same_people=False
    ),
    "a rate": lambda memoized, seed: sum(days_of(memoized, VALUES, 16, seed, rate=0.4)),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("asked", ASKED)
def test_intervals_hold_the_truth(name: str, asked: str, statistical: ModuleType) -> None:
    memoized, trials = chain(name, first=1.2), 150
    truth, held, naive = np.bincount(VALUES) / len(VALUES), np.zeros(3, np.int64), 0
    for seed in range(trials):
        tally = ASKED[asked](memoized, seed)
        held += tally.estimate().interval().contains(truth)
        # As if no two days had a person in common, which this sample can tell.
        alone = replace(tally, origin=None).estimate().interval()
        naive += int(alone.contains(truth)[0])
    statistical.check_share(held, trials, 0.93, 0.965)
    # Of this chain the second stage is so noisy that days share little.
    if asked == "days of the same people" and name != "L-SOUE":
        with pytest.raises(AssertionError):
            statistical.check_share([naive], trials, 0.93, 0.965)


def test_few_people_on_many_days(statistical: ModuleType) -> None:
    memoized, values, trials = chain("L-OSUE", 20, first=2.0), np.zeros(60, np.int64), 150
    held = np.zeros(2, np.int64)
    for seed in range(trials):
        estimate = merged(days_of(memoized, values, 10, seed)).estimate()
        held += estimate.interval().contains([1.0, *[0.0] * 19])[:2]
    statistical.check_share(held, trials, 0.94, 1.0)


def test_a_small_group_of_effective_reports() -> None:
    memoized = chain("L-OSUE", 20, first=2.0)
    total = memoized.simulate([60, *[0] * 19], seed=1) + memoized.simulate([60, *[0] * 19], seed=2)
    assert "effective" in total.estimate().interval(0.999).method
    with pytest.raises(EstimatorError, match="exact interval is for reports of different people"):
        total.estimate().interval(method="exact")


@pytest.mark.parametrize("method", ["hajek", "horvitz_thompson", "T"])
def test_personal_probabilities(method: str, statistical: ModuleType) -> None:
    memoized, values = chain("L-SUE", first=2.0), np.tile([0, 0, 1], 100)
    rates, trials = np.tile([0.3, 0.6, 0.9, 1.0], 75), 150
    truth, held = np.bincount(values, minlength=3) / len(values), np.zeros(3, np.int64)
    for seed in range(trials):
        answers = memoized.permanent_answers(values, secrets(len(values), seed))
        total = sum(
            memoized.tally(
                memoized.report(
                    answers, participation=tn.Personalized(rates), seed=100 * seed + day
                )
            )
            for day in range(6)
        )
        held += total.estimate(method).interval().contains(truth)
    # What probabilities leave out between two days is bounded by their squares: a little wide.
    statistical.check_share(held, trials, 0.93, 0.99)


# Who is in which round


def sizes(tally: Any) -> list[int]:
    return sorted(size for _, size in tally.origin.rounds.sizes)


def test_days_and_other_people_add_up() -> None:
    memoized = chain("L-GRR")
    north = [memoized.simulate([50, 0, 0]), memoized.simulate([40, 0, 0])]
    south = [memoized.simulate([30, 0, 0]) for _ in range(3)]
    assert sizes(north[0]) == [50]
    assert sizes(sum(north)) == [40, 50]
    assert sizes(merged(north, same_people=False)) == [90]
    country = merged([sum(north), sum(south)], same_people=False)
    assert sizes(country) == [30, 70, 80]
    assert sizes(country + north[0]._of_new_origin()) == [30, 50, 70, 80]
    with pytest.raises(InvalidTypeError, match="same_people must be True or False"):
        north[0].merge(north[1], same_people=1)  # type: ignore[arg-type]


def test_reports_drawn_afresh_have_no_rounds() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    days = [oracle.simulate([50, 30, 20], seed=day) for day in range(2)]
    assert sizes(sum(days)) == []
    assert header_of(sum(days).to_bytes())["origin"].keys() == {"identities"}


def test_groups_of_one_set_of_reports_are_different_people() -> None:
    memoized = chain("L-GRR")

    def grouped(names: str = "country", keys: Sequence[str] = ("DE", "FR")) -> Any:
        reports = memoized.randomize([0] * 50)
        return tally_by_group(reports, [0] * 20 + [1] * 30, [20, 30], names=names, keys=keys)

    one = grouped()
    assert sizes(one["DE"]) == [20]
    assert sizes(one.total) == [50]
    week = one + grouped()
    assert sizes(week["FR"]) == [30, 30]
    assert sizes(week.total) == sizes(week.over("country").total) == [50, 50]
    assert sizes(one.merge(grouped(), same_people=False).total) == [100]
    assert sizes(tn.GroupedTally.from_bytes(week.to_bytes()).total) == [50, 50]
    assert sizes(week._of_new_origin().total) == [100]
    # Groups of two days may have the same people.
    assert sizes(grouped("day").total) == [20, 30]
    assert sizes(grouped("when", ["2026-01-31", "2026-02-01"]).total) == [20, 30]


def test_groups_that_were_collected_apart() -> None:
    memoized = chain("L-GRR")
    tallies = {name: memoized.simulate([size, 0, 0]) for name, size in (("a", 5), ("b", 9))}
    assert sizes(tn.GroupedTally("group", tallies).total) == [5, 9]
    assert sizes(tn.GroupedTally("group", tallies, same_people=False).total) == [14]


def test_sets_of_reports_that_are_put_together() -> None:
    memoized = chain("L-GRR")
    pieces = [memoized.randomize([0] * 50), memoized.randomize([1] * 30)]
    together = tn.Reports.concatenate(pieces)
    assert sizes(memoized.tally(together)) == [30, 50]
    apart = tn.Reports.concatenate(pieces, same_people=False)
    assert sizes(memoized.tally(apart)) == [80]
    # Of the groups nobody knows on which days they were: as many as there are, all alike.
    split = tally_by_group(together, [0] * 40 + [1] * 40, [40, 40], names="g", keys=["a", "b"])
    assert sizes(split["a"]) == [20, 20]
    assert sizes(split.total) == [40, 40]


def test_what_waits_in_a_collector_is_one_round() -> None:
    memoized = chain("L-GRR")
    plan = tn.Plan(memoized, tn.Everyone())
    collector, clients = tn.Collector(plan), [memoized.client() for _ in range(20)]
    for client in clients[:10]:
        collector.accept(client.message(plan, 1) or b"")
    monday = collector.tally()
    for client in clients[10:]:
        collector.accept(client.message(plan, 1) or b"")
    assert sizes(monday) == [10]
    assert sizes(collector.tally()) == [20]
    drained = collector.drain()
    for client in clients:
        collector.accept(client.message(plan, 1) or b"")
    assert sizes(drained + collector.drain()) == [20, 20]


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        lambda tally: pickle.loads(pickle.dumps(tally)),
        lambda tally: read_tally(tally.to_bytes()),
    ],
    ids=["copied", "pickled", "read"],
)
def test_a_tally_keeps_its_rounds(again: Callable[[Any], Any]) -> None:
    memoized = chain("L-GRR")
    total = memoized.simulate([50, 0, 0]) + memoized.simulate([0, 40, 0])
    assert again(total).origin == total.origin
    assert np.array_equal(again(total).estimate().interval().low, total.estimate().interval().low)


def test_the_nodes_of_one_round_may_change_and_not_those_of_several() -> None:
    memoized = chain("L-GRR")
    one = memoized.simulate([50, 0, 0], participation=0.5)
    assert sizes(replace(one, nodes=100)) == [100]
    with pytest.raises(
        InvalidValueError, match="change nodes in each round before you add the rounds"
    ):
        replace(one + memoized.simulate([40, 0, 0], participation=0.5), nodes=100)


@pytest.mark.parametrize(
    "change",
    [
        lambda rounds: rounds.clear(),
        lambda rounds: rounds.update({next(iter(rounds)): 49}),
        lambda rounds: rounds.update({"ab": 50}),
        lambda rounds: rounds.update({"0" * 32: 0}),
        lambda rounds: rounds.update({"0" * 32: True}),
        lambda rounds: rounds.update({"0" * 32: 5}),
        lambda rounds: rounds.update({"A" * 32: rounds.popitem()[1]}),
    ],
)
def test_rounds_that_do_not_fit_are_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    data = chain("L-GRR").simulate([50, 0, 0]).to_bytes()
    header = header_of(data)
    assert read_tally(with_header(data, header)).nodes == 50
    change(header["origin"]["rounds"])
    with pytest.raises(CorruptDataError):
        read_tally(with_header(data, header))


def test_questions_with_a_part_that_keeps_answers() -> None:
    def kept(epsilon: float, domain: Any) -> Memoized:
        return Memoized(epsilon, domain, first_epsilon=0.8 * epsilon)

    questions = tn.SplitBudget(4.0, {"sex": ["f", "m"], "vote": 3}, oracle=kept)
    assert not questions.fresh
    plan = tn.Plan(questions, tn.Everyone())
    with pytest.raises(InvalidValueError, match="under its own plan"):
        plan.report({"sex": "f", "vote": 1})
    days = [questions.collect([{"sex": "f", "vote": 1}] * 100, seed=day) for day in range(2)]
    assert sizes(sum(days)) == [100, 100]
    one, both = days[0].estimate(), sum(days).estimate()
    found = [each["vote"].standard_errors[1] for each in (one, both)]
    # Two days of independent reports would have a factor of 1.41.
    assert 1.0 < found[0] / found[1] < 1.35
