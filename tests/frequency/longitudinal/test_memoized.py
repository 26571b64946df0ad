"""Longitudinal collection: permanence, guarantees by enumeration, and laws of rounds."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.frequency.longitudinal.chains import CHAINS, chain, secrets

import turnout as tn
from turnout import FrequencyOracle
from turnout.frequency.longitudinal import (
    Memoized,
    MemoizedClient,
    permanent_variance,
    rounds_variance,
)


def stage(memoized: Memoized, number: int) -> Callable[[Any, Any], Fraction]:
    """How likely a stage turns one mark (a code, or a row of bits) into another."""
    (own, other), size = memoized._core.words[number], memoized.domain.size
    if memoized.permanent == "direct_encoding":
        total = own + (size - 1) * other
        return lambda mark, made: Fraction(own if mark == made else other, total)

    def of_bits(mark: tuple[int, ...], made: tuple[int, ...]) -> Fraction:
        chances = [Fraction(own if bit else other, 2**64) for bit in mark]
        pairs = zip(chances, made, strict=True)
        return math.prod((c if bit else 1 - c for c, bit in pairs), start=Fraction(1))

    return of_bits


def marks(memoized: Memoized) -> tuple[list[Any], list[Any]]:
    """The marks of the answers, and everything that can be reported."""
    size = memoized.domain.size
    if memoized.permanent == "direct_encoding":
        return list(range(size)), list(range(size))
    answers = [tuple(int(code == bit) for bit in range(size)) for code in range(size)]
    return answers, list(itertools.product([0, 1], repeat=size))


def law(memoized: Memoized, rounds: int) -> list[dict[tuple[Any, ...], Fraction]]:
    """For each answer the law of all reports of that many rounds."""
    (answers, outputs), first, second = marks(memoized), stage(memoized, 0), stage(memoized, 1)
    laws = []
    for answer in answers:
        table: dict[tuple[Any, ...], Fraction] = {}
        for reports in itertools.product(outputs, repeat=rounds):
            table[reports] = sum(
                (
                    first(answer, middle)
                    * math.prod((second(middle, r) for r in reports), start=Fraction(1))
                    for middle in outputs
                ),
                start=Fraction(0),
            )
        laws.append(table)
    return laws


def largest(laws: list[dict[Any, Fraction]]) -> Fraction:
    return max(one[key] / other[key] for one, other in itertools.permutations(laws, 2)
               for key in one)  # fmt: skip


def test_the_realised_ratios_by_enumeration(memoized: Memoized) -> None:
    small = chain_like(memoized, 3)
    assert largest(law(small, 1)) == small.realized_ratio
    p, q = small.support_probabilities
    once = law(small, 1)[0]
    supports = marks(small)
    own = sum(mass for (report,), mass in once.items() if supported(small, report, 0))
    other = sum(mass for (report,), mass in once.items() if supported(small, report, 1))
    assert sum(once.values()) == 1
    assert p == pytest.approx(float(own), rel=1e-14)
    assert q == pytest.approx(float(other), rel=1e-14)
    assert len(supports[0]) == 3


def chain_like(memoized: Memoized, size: int) -> Memoized:
    return Memoized(
        memoized.epsilon,
        size,
        first_epsilon=memoized.first_epsilon,
        permanent=memoized.permanent,
        instantaneous=memoized.instantaneous,
    )


def supported(memoized: Memoized, report: Any, code: int) -> bool:
    if memoized.permanent == "direct_encoding":
        return bool(report == code)
    return bool(report[code])


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_rounds_of_one_answer_never_say_more_than_the_permanent_answer(
    memoized: Memoized, rounds: int
) -> None:
    small = chain_like(memoized, 2)
    ratio = largest(law(small, rounds))
    assert small.realized_ratio <= ratio < small._lifetime_ratio
    if rounds > 1:
        assert ratio > small.realized_ratio


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("lifetime", [0.5, 2.0, 8.0])
def test_the_realised_epsilons_are_rounded_up_and_not_above(name: str, lifetime: float) -> None:
    memoized = chain(name, lifetime, lifetime / 4)
    for ratio, realised, asked in (
        (memoized.realized_ratio, memoized.realized_epsilon, memoized.first_epsilon),
        (memoized._lifetime_ratio, memoized.lifetime_epsilon, memoized.epsilon),
    ):
        assert realised <= asked
        assert realised == pytest.approx(asked, rel=1e-9)
        exact, term = Fraction(1), Fraction(1)
        for index in range(1, 80):
            term = term * Fraction(realised) / index
            exact += term
        assert ratio <= exact + term


def sequences(memoized: Memoized, answers: tuple[int, ...]) -> dict[tuple[Any, ...], Fraction]:
    """The law of the reports of a sequence of answers: one permanent answer for each."""
    (given, outputs), first, second = marks(memoized), stage(memoized, 0), stage(memoized, 1)
    distinct = sorted(set(answers))
    table: dict[tuple[Any, ...], Fraction] = {}
    for reports in itertools.product(outputs, repeat=len(answers)):
        total = Fraction(0)
        for drawn in itertools.product(outputs, repeat=len(distinct)):
            middle = dict(zip(distinct, drawn, strict=True))
            mass = Fraction(1)
            for code in distinct:
                mass *= first(given[code], middle[code])
            for code, report in zip(answers, reports, strict=True):
                mass *= second(middle[code], report)
            total += mass
        table[reports] = total
    return table


def test_different_answers_add_up_given_which_rounds_share_one() -> None:
    memoized = chain("L-GRR", 1.0, 0.9, size=3)
    pattern = [
        sequences(memoized, (one, one, other, other))
        for one, other in itertools.permutations(range(3), 2)
    ]
    assert memoized._lifetime_ratio < largest(pattern) <= memoized._lifetime_ratio**2


def test_a_return_is_not_hidden_by_the_rounds_in_which_answers_change() -> None:
    # Hardly any instantaneous noise: first and last report differ although they share an answer.
    memoized = chain("L-GRR", 0.5, 0.4999, size=3)
    returned, went_on = sequences(memoized, (0, 1, 0)), sequences(memoized, (0, 1, 2))
    assert math.log(largest([returned, went_on])) > memoized.spent(3)
    assert math.log(largest([returned, went_on])) <= memoized.spent_by_reports(3)


def phases(memoized: Memoized, answers: tuple[int, ...]) -> dict[tuple[Any, ...], Fraction]:
    """The law of the reports of a sequence of answers: one permanent answer for each phase."""
    table = {(): Fraction(1)}
    for code, group in itertools.groupby(answers):
        alone = law(memoized, len(list(group)))[code]
        table = {
            (*before, *after): mass * more
            for before, mass in table.items()
            for after, more in alone.items()
        }
    return table


def test_by_phase_a_return_costs_what_any_change_costs() -> None:
    memoized = chain("L-GRR", 0.5, 0.4999, size=3)
    changing = [
        phases(memoized, (first, second, second, third))
        for first, second, third in itertools.product(range(3), repeat=3)
        if first != second != third
    ]
    assert memoized.spent(2) < math.log(largest(changing)) <= memoized.spent(3)


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_reports_of_any_two_sequences_are_bounded_by_their_number(reports: int) -> None:
    rows = [chain("L-OSUE", 1.0, 0.5, size=2)] if reports < 3 else []
    for memoized in (chain("L-GRR", 1.0, 0.5, size=3), *rows):
        size = memoized.domain.size
        every = [
            sequences(memoized, answers)
            for answers in itertools.product(range(size), repeat=reports)
        ]
        assert math.log(largest(every)) <= memoized.spent_by_reports(reports) * (1 + 1e-12)
    assert memoized.spent_by_reports(0) == 0.0
    assert memoized.spent_by_reports(1) == memoized.realized_epsilon


@pytest.mark.parametrize(("rounds", "delta"), [(15, 0.56), (30, 0.70)])
def test_what_a_return_shows_in_numbers(rounds: int, delta: float) -> None:
    # (a^m, b^m, a^m) against (a^m, b^m, c^m): b says nothing, and counts are sufficient.
    memoized = chain("L-GRR", 1.0, 0.5, size=3)
    (p, q), (own, other) = memoized.stage_probabilities
    counts = [
        (one, two, rounds - one - two)
        for one in range(rounds + 1)
        for two in range(rounds + 1 - one)
    ]
    ways = np.array([math.factorial(rounds) / math.prod(map(math.factorial, c)) for c in counts])
    given = (
        np.array([[own ** c[b] * other ** (rounds - c[b]) for b in range(3)] for c in counts])
        * ways[:, None]
    )
    one, two = np.array([p, q, q]), np.array([q, q, p])
    returned = (given * one) @ given.T
    went_on = np.outer(given @ one, given @ two)
    found = np.maximum(went_on - math.exp(3.0) * returned, 0.0).sum()
    assert float(found) == pytest.approx(delta, abs=0.005)


def test_that_an_answer_changed_is_not_hidden_by_the_count_of_answers() -> None:
    # Hardly any instantaneous noise: two reports that differ show that the answers did.
    memoized = chain("L-GRR", 0.5, 0.4999, size=2)
    same, changed = sequences(memoized, (0, 0)), sequences(memoized, (0, 1))
    ratio = largest([same, changed])
    assert ratio > memoized._lifetime_ratio**2
    # What does hold between all sequences.
    assert math.log(ratio) <= 2 * memoized.round_epsilon


def test_the_bound_of_a_round_is_that_of_the_instantaneous_stage(memoized: Memoized) -> None:
    small = chain_like(memoized, 2)
    outputs, second = marks(small)[1], stage(small, 1)
    worst = max(
        second(one, report) / second(other, report)
        for one, other, report in itertools.product(outputs, repeat=3)
    )
    assert math.log(worst) == pytest.approx(small.round_epsilon, rel=1e-12)


def test_spent_is_a_multiple_rounded_up(memoized: Memoized) -> None:
    assert memoized.spent(0) == 0.0
    assert memoized.spent(1) == memoized.lifetime_epsilon
    assert Fraction(memoized.spent(3)) >= 3 * Fraction(memoized.lifetime_epsilon)


# Permanence


def reports_of(client: MemoizedClient, rounds: int = 40) -> list[Any]:
    return [np.asarray(client.report(2, seed=seed)).tolist() for seed in range(rounds)]


#: In a process of its own, since this one may have threads that must not be forked.
FORK = """
import json, multiprocessing, sys
import numpy as np
from turnout import FrequencyOracle
from turnout.frequency.longitudinal import MemoizedClient

given = json.load(sys.stdin)
oracle = FrequencyOracle.from_dict(given["oracle"])
client = MemoizedClient.from_bytes(oracle, bytes.fromhex(given["state"]))

def report(queue):
    queue.put([np.asarray(client.report(2, seed=seed)).tolist() for seed in range(40)])

context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
child = context.Process(target=report, args=(queue,))
child.start()
print(json.dumps(queue.get()))
child.join()
"""


def test_a_permanent_answer_survives_restart_copy_pickle_and_fork(memoized: Memoized) -> None:
    # With the same instantaneous noise, reports are equal exactly if the permanent answer is.
    client = memoized.client()
    expected = reports_of(client)
    state = client.to_bytes()
    assert reports_of(MemoizedClient.from_bytes(memoized, state)) == expected
    again = pickle.loads(pickle.dumps(memoized))
    assert again == memoized
    assert reports_of(MemoizedClient.from_bytes(again, state)) == expected
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        input=json.dumps({"oracle": memoized.to_dict(), "state": state.hex()}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == expected


def test_permanent_answers_depend_on_secret_answer_and_question(memoized: Memoized) -> None:
    nodes, keys = 400, secrets(400)
    answers = memoized.permanent_answers(np.full(nodes, 1), keys)
    assert np.array_equal(answers, memoized.permanent_answers(np.full(nodes, 1), keys))
    rolled = memoized.permanent_answers(np.full(nodes, 1), np.roll(keys, 1, axis=0))
    assert np.array_equal(rolled, np.roll(answers, 1, axis=0))
    assert not np.array_equal(
        answers, memoized.permanent_answers(np.full(nodes, 1), secrets(nodes, 9))
    )
    other = FrequencyOracle.from_dict(memoized.to_dict() | {"question": "another"})
    assert isinstance(other, Memoized)
    assert not np.array_equal(answers, other.permanent_answers(np.full(nodes, 1), keys))
    # But not on what the reports are made with.
    looser = FrequencyOracle.from_dict(memoized.to_dict() | {"first_epsilon": 1.5})
    assert isinstance(looser, Memoized)
    assert np.array_equal(answers, looser.permanent_answers(np.full(nodes, 1), keys))


def test_questions_have_independent_permanent_answers(statistical: ModuleType) -> None:
    one = chain("L-GRR", 1.0, 0.5, size=2)
    other = Memoized(1.0, 2, first_epsilon=0.5, question="other")
    keys = secrets(40_000)
    pairs = [m.permanent_answers(np.zeros(40_000, np.int64), keys) for m in (one, other)]
    p, q = one.stage_probabilities[0]
    observed = np.bincount(2 * pairs[0] + pairs[1], minlength=4)
    statistical.check_law(observed, [p * p, p * q, q * p, q * q])


def test_client_and_population_make_the_same_permanent_answers(memoized: Memoized) -> None:
    key = secrets(1)
    client = memoized.client(key[0].tobytes())
    answers = memoized.permanent_answers([3], key)
    population = memoized.report(answers, seed=8).codes[0]
    assert np.array_equal(client.report(3, seed=8), population)


def averaged(memoized: Memoized, answers: npt.NDArray[Any], rounds: int) -> npt.NDArray[np.float64]:
    """What an observer of many rounds works out for each node and mark."""
    nodes, size = len(answers), memoized.domain.size
    seen = np.zeros((nodes, size))
    for seed in range(rounds):
        seen += bits_of(memoized, memoized.report(answers, seed=seed).codes)
    own, other = memoized.stage_probabilities[1]
    return (seen / rounds - other) / (own - other)


def bits_of(memoized: Memoized, reports: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    size = memoized.domain.size
    if memoized.permanent == "direct_encoding":
        return np.eye(size)[reports.astype(np.int64)]
    bits = np.unpackbits(np.ascontiguousarray(reports).view(np.uint8), axis=1, bitorder="little")
    return bits[:, :size].astype(np.float64)


def test_averaging_rounds_finds_the_permanent_answer_and_not_the_value(
    memoized: Memoized, statistical: ModuleType
) -> None:
    nodes, rounds = 300, 3_000
    answers = memoized.permanent_answers(np.full(nodes, 2), secrets(nodes))
    found = averaged(memoized, answers, rounds).round()
    truth = bits_of(memoized, answers)
    assert np.array_equal(found, truth)
    # The value itself stays as uncertain as one permanent answer leaves it.
    p, _ = memoized.stage_probabilities[0]
    statistical.check_share(int(found[:, 2].sum()), nodes, p, p)
    assert found[:, 2].mean() < 0.99


def test_permanent_answers_that_are_drawn_again_would_be_seen(memoized: Memoized) -> None:
    # The same attack where each round forgets the permanent answer: it finds the value.
    nodes, rounds = 300, 3_000
    seen = sum(
        bits_of(memoized, memoized.randomize(np.full(nodes, 2), seed=seed).codes)
        for seed in range(rounds)
    )
    p, q = memoized.support_probabilities
    found = (seen / rounds - q) / (p - q)
    assert np.array_equal(found.round(), np.eye(memoized.domain.size)[np.full(nodes, 2)])


# Laws

COUNTS = [60, 25, 10, 5]
VALUES = np.repeat(np.arange(4), COUNTS)


@pytest.mark.parametrize("path", ["population", "collect", "simulate"])
def test_one_round_is_unbiased_with_the_variance_of_its_probabilities(
    memoized: Memoized, path: str, statistical: ModuleType
) -> None:
    repeats, rate = 2_500, tn.Bernoulli(0.6)
    tallies = []
    for seed in range(repeats):
        if path == "population":
            answers = memoized.permanent_answers(VALUES, secrets(len(VALUES), seed))
            tallies.append(memoized.tally(memoized.report(answers, participation=rate, seed=seed)))
        else:
            given = VALUES if path == "collect" else COUNTS
            tallies.append(getattr(memoized, path)(given, participation=rate, seed=seed))
    counts = [tally.estimate("c_hat").counts for tally in tallies]
    statistical.check_mean(counts, COUNTS)
    expected = tn.estimator_variance(memoized, rate, method="c_hat", true_counts=COUNTS)
    statistical.check_variance(counts, expected)
    assert np.allclose(expected, rounds_variance(memoized, 1, COUNTS, rate=0.6))


@pytest.mark.parametrize("name", CHAINS)
def test_rounds_share_the_noise_of_the_permanent_answers(
    name: str, statistical: ModuleType
) -> None:
    memoized = chain(name, 1.0, 0.6)
    repeats, rounds, rate = 1_500, 4, tn.Bernoulli(0.9)
    made = np.empty((repeats, rounds, 4))
    for run in range(repeats):
        answers = memoized.permanent_answers(VALUES, secrets(len(VALUES), run))
        for day in range(rounds):
            reports = memoized.report(answers, participation=rate, seed=rounds * run + day)
            made[run, day] = memoized.tally(reports).estimate("c_hat").counts
    expected = rounds_variance(memoized, rounds, COUNTS, rate=0.9)
    statistical.check_variance(made.mean(axis=1), expected)
    products = (made[:, 0] - COUNTS) * (made[:, 1] - COUNTS)
    statistical.check_mean(products, permanent_variance(memoized, COUNTS))
    # Were the rounds independent, the mean would vary so much less that this sample shows it.
    naive = rounds_variance(memoized, 1, COUNTS, rate=0.9) / rounds
    assert (expected > 1.4 * naive).all()
    with pytest.raises(AssertionError):
        statistical.check_variance(made.mean(axis=1), naive)


def test_the_floor_is_the_variance_of_the_permanent_answers() -> None:
    memoized = chain("L-GRR")
    oracle = tn.DirectEncoding(memoized.epsilon, 4)
    exact = tn.estimator_variance(oracle, tn.Everyone(), method="g", true_counts=COUNTS)
    assert np.allclose(permanent_variance(memoized, COUNTS), exact, rtol=1e-9)


def test_personal_participation(memoized: Memoized) -> None:
    rates = np.tile([0.5, 1.0], 5_000)
    values = np.tile([0, 0, 1, 2, 0], 2_000)
    answers = memoized.permanent_answers(values, secrets(10_000))
    reports = memoized.report(answers, participation=tn.Personalized(rates), seed=1)
    estimate = memoized.tally(reports).estimate("horvitz_thompson")
    truth = np.bincount(values, minlength=4) / 10_000
    assert (np.abs(estimate.frequencies - truth) < 6 * estimate.standard_errors).all()


def test_tallies_and_reports_are_those_of_any_oracle(memoized: Memoized) -> None:
    tally = memoized.collect(VALUES, seed=1)
    assert tn.Tally.from_bytes(tally.to_bytes()) == tally
    assert memoized.tally(memoized.randomize(VALUES, seed=1)) == tally
    assert (tally + memoized.collect(VALUES, seed=1)).received == 200
    assert tn.Plan.from_json(tally.plan.to_json()) == tally.plan
