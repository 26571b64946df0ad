"""Sums of numbers with proofs: what is refused, what counts, the law, and what protects."""

from __future__ import annotations

import itertools
import json
import math
import secrets
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
import turnout.distributed as td
from turnout import _core
from turnout._types import Floats
from turnout.accounting.noisy_sums import NoisySums
from turnout.distributed.noise import GaussianLaw, LaplaceLaw
from turnout.distributed.noised import _Taking, noised_means
from turnout.distributed.proven import Batch, Report
from turnout.errors import ImplausibleSumsError, InvalidTypeError, InvalidValueError

ALPHA = 1e-6

#: Discrete Laplace noise that is zero: anything else has a probability of 4 * 10^-22.
SILENT = 0.02

#: 7 bits, of which the largest number has not all.
LARGEST = 100


def silent(users: int, bounds: Any = (0, LARGEST), **arguments: Any) -> td.VerifiedSum:
    """Make a mechanism whose sum is that of those who take part."""
    return td.VerifiedSum(bounds, users, parameter=SILENT, **arguments)


# Who cheats.


def shifted(share: bytes, entry: int, by: int, modulus: int) -> bytes:
    """Add a number to an entry of a leader's share."""
    place = slice(8 * entry, 8 * entry + 8)
    number = (int.from_bytes(share[place], "little") + by) % modulus
    return share[: place.start] + number.to_bytes(8, "little") + share[place.stop :]


class Cheat:
    """Reports of users that do not follow the protocol."""

    def __init__(self, mechanism: td.VerifiedSum, batch: Batch) -> None:
        self.prio3, self.batch, self.mechanism = mechanism._prio3, batch, mechanism

    def honest(self, number: int) -> Report:
        """Give a report as everybody's."""
        [report] = self.batch.reports(np.array([number], np.int64))
        return report

    def of_other_bounds(self, largest: int) -> Report:
        """Give an honest report of the largest number, where bounds are wider."""
        nonce = secrets.token_bytes(16)
        other = _core.Prio3.sum(largest, aggregators=self.mechanism.aggregators)
        return (nonce, *other.shard(self.batch.context, [largest], nonce))

    def moved(self, by: int, bit: int = 6) -> Report:
        """Give a report one of whose bits is another number, with the proof of a bit."""
        nonce, public, shares = self.honest(3)
        return nonce, public, [shifted(shares[0], bit, by, self.prio3.modulus), *shares[1:]]

    def cut(self) -> Report:
        """Give a report that ends early."""
        nonce, public, shares = self.honest(2)
        return nonce, public, [shares[0][:-1], *shares[1:]]

    def to_one(self) -> Report:
        """Give a report that one aggregator never gets."""
        nonce, public, shares = self.honest(2)
        return nonce, public, [*shares[:-1], b""]

    def of_another_round(self) -> Report:
        """Give a report of another round of the same mechanism."""
        [report] = Batch.start(self.mechanism).reports(np.array([2]))
        return report

    def mixed(self) -> Report:
        """Give the shares of two reports in one."""
        nonce, public, shares = self.honest(2)
        return nonce, public, [shares[0], *self.honest(2)[2][1:]]

    def all(self) -> list[Report]:
        """Give one of each."""
        moved = [self.moved(by) for by in (2, -2, 1000, self.prio3.modulus // 2)]
        others = (self.cut, self.to_one, self.mixed, self.of_another_round)
        return [*moved, self.of_other_bounds(2**10), *(make() for make in others)]


@pytest.mark.parametrize("aggregators", [2, 3])
def test_thirty_percent_of_cheats_move_the_sum_by_one_number_each_that_is_accepted(
    aggregators: int,
) -> None:
    mechanism = silent(200, aggregators=aggregators)
    batch = Batch.start(mechanism)
    numbers = np.random.default_rng(1).integers(LARGEST + 1, size=140)
    honest = batch.reports(numbers)
    cheat = Cheat(mechanism, batch)
    # The largest number is a number; all bits of it are no larger one.
    accepted = [cheat.honest(LARGEST) for _ in range(5)]
    accepted += [cheat.of_other_bounds(127) for _ in range(5)]
    refused = [report for _ in range(4) for report in cheat.all()]
    replayed = [honest[3], honest[3], accepted[7], refused[0], *honest[:6]]
    sent = [*honest, *accepted, *refused]
    order = np.random.default_rng(2).permutation(len(sent)).tolist()
    blocks = [[sent[place] for place in order[:77]], [sent[place] for place in order[77:]]]
    result = batch.result([*blocks, replayed])
    assert result.sums.tolist() == [int(numbers.sum()) + 10 * LARGEST]
    assert result.estimate.received == 150
    assert result.refused == {"proof": 24, "malformed": 12, "replayed": 10}


@pytest.mark.parametrize("kind", range(9))
def test_each_cheat_is_refused(kind: int) -> None:
    mechanism = silent(5)
    batch = Batch.start(mechanism)
    report = Cheat(mechanism, batch).all()[kind]
    result = batch.result([[report, *batch.reports(np.array([1, 7, 90]))]])
    assert result.sums.tolist() == [98]
    assert sum(result.refused.values()) == 1
    with pytest.raises(InvalidValueError, match="all 1 were refused"):
        batch.result([[report]])


@pytest.mark.parametrize("largest", [1, 2, 5, 6, 7, 100])
def test_whatever_bits_a_report_has_they_stand_for_a_number_within_the_bounds(largest: int) -> None:
    mechanism = silent(1, (0, largest))
    batch = Batch.start(mechanism)
    cheat = Cheat(mechanism, batch)
    most = 2 ** largest.bit_length() - 1
    for other in range((most + 1) // 2, most + 1):
        [found] = batch.result([[cheat.of_other_bounds(other)]]).sums
        assert 0 <= found <= largest


def test_a_report_says_nothing_by_its_size_of_the_number() -> None:
    mechanism = silent(3)
    sizes = {
        (len(public), *map(len, shares))
        for _, public, shares in Batch.start(mechanism).reports(np.arange(LARGEST + 1))
    }
    [(public, leader, helper)] = sizes
    assert mechanism._share_bytes == 2 * (public + 16) + leader + helper


def test_a_lying_aggregator_is_noticed_where_no_numbers_add_up_to_that() -> None:
    mechanism = td.VerifiedSum((-5, 5), 100, epsilon=1.0)
    for wrong in (-400, 1400):
        with pytest.raises(ImplausibleSumsError, match="between"):
            mechanism.estimate([wrong])
    assert mechanism.estimate([0]).mean == -5.0
    assert mechanism.estimate([1000]).mean == 5.0


# The law.

NUMBERS = np.array([0, 1, 3, 4])
HELD = np.array([20, 15, 10, 5])

CASES: list[dict[str, Any]] = [
    {"parameter": 4.0},
    {"parameter": 2.5, "participation": 0.4},
    {"parameter": 20.0, "noise": "discrete_gaussian", "aggregators": 3},
    {"parameter": 18.0, "noise": "discrete_gaussian", "participation": 0.7},
]


def law_of(mechanism: td.VerifiedSum, reach: int) -> Floats:
    """Compute the law of the sum from -reach to reach, by convolution of what is drawn."""
    places = np.arange(-reach, reach + 1)
    assert mechanism.parameter is not None
    if mechanism.noise == "discrete_laplace":
        noise = np.exp(-np.abs(places) / mechanism.parameter)
    else:
        noise = np.exp(-(places**2.0) / (2.0 * mechanism.parameter))
    noise /= noise.sum()
    law = (places == 0).astype(float)
    for number, held in zip(NUMBERS, HELD, strict=True):
        taking = np.zeros(2 * reach + 1)
        count = np.arange(held + 1)
        np.add.at(
            taking, reach + number * count, stats.binom.pmf(count, held, mechanism.participation)
        )
        law = np.convolve(law, taking)[reach : 3 * reach + 1]
    for _ in range(mechanism.aggregators):
        law = np.convolve(law, noise)[reach : 3 * reach + 1]
    return law


def check_law(sums: Any, law: Floats, reach: int) -> None:
    """Compare what was drawn with its law, bins of at least eight expected each."""
    drawn = np.bincount(np.clip(sums, -reach, reach) + reach, minlength=2 * reach + 1)
    expected = law * len(sums)
    edges = np.flatnonzero(np.diff(np.floor(np.cumsum(expected) / 8.0))) + 1
    counts = np.add.reduceat(drawn, np.append(0, edges))
    means = np.add.reduceat(expected, np.append(0, edges))
    means *= counts.sum() / means.sum()
    assert stats.chisquare(counts, means).pvalue > ALPHA
    assert counts.size > 12


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_simulated_sums_have_the_exact_law(case: dict[str, Any]) -> None:
    # 3,000 sums: a mean or a deviation that is off by a sixth shows.
    mechanism = td.VerifiedSum((0, 4), 50, **case)
    sums = [int(mechanism.simulate(NUMBERS, HELD, seed=seed).sums[0]) for seed in range(3000)]
    check_law(sums, law_of(mechanism, 300), 300)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[1:3])
def test_sums_of_reports_have_the_same_law(case: dict[str, Any]) -> None:
    mechanism = td.VerifiedSum((0, 4), 50, **case)
    values = np.repeat(NUMBERS, HELD)
    sums = [int(mechanism.run(values, seed=seed).sums[0]) for seed in range(500)]
    check_law(sums, law_of(mechanism, 300), 300)


def test_bounds_are_shifted_and_numbers_may_be_negative() -> None:
    mechanism = silent(4, tn.Bounds(-7, 20))
    result = mechanism.run([-7, -7, 0, 20])
    assert result.sums.tolist() == [34]
    assert result.estimate.mean == 1.5
    assert result.estimate.sum == 6.0
    assert result.to_records() == result.estimate.to_records()
    assert mechanism.simulate([-7, 0, 20, -7]).sums.tolist() == [34]
    assert mechanism.simulate([-7, 0, 20], [2, 1, 1]).sums.tolist() == [34]
    limits = result.estimate.sum_interval(0.9)
    assert limits.low == 4 * result.estimate.interval(0.9).low
    assert limits.contains(6.0)


def test_a_seed_gives_the_same_sum_and_none_gives_others() -> None:
    mechanism = td.VerifiedSum((0, 1000), 60, epsilon=0.5, participation=0.5)
    values = np.arange(60) * 3
    assert mechanism.run(values, seed=7).sums == mechanism.run(values, seed=7).sums
    assert mechanism.run(values).sums != mechanism.run(values).sums
    assert mechanism.simulate(values, seed=7).sums == mechanism.simulate(values, seed=7).sums
    # The aggregators' noises are not the same.
    still = td.VerifiedSum((0, 1), 1, parameter=50.0)
    assert any(still.simulate([0], seed=seed).sums[0] % 2 for seed in range(40))


# Intervals.


def exact_tail(numbers: Any, rate: float, masses: Floats, least: int) -> float:
    """Compute the chance that the numbers of those who take part, with noise, add up to so much."""
    law = np.ones(1)
    for number in numbers:
        one = np.zeros(number + 1)
        one[0] += 1.0 - rate
        one[number] += rate
        law = np.convolve(law, one)
    noise = np.concatenate([masses[:0:-1], masses])
    law = np.convolve(law, noise)
    return float(law[max(least + masses.size - 1, 0) :].sum())


@pytest.mark.parametrize("noise", [LaplaceLaw(3.0, 1, 2), GaussianLaw(30.0, 1, 2)])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_no_numbers_pass_a_bound_of_their_tail(noise: Any, rate: float) -> None:
    masses, _ = noise._masses()
    taking = _Taking(noise, 10)
    generator = np.random.default_rng(5)
    ratios = []
    for held in (0, 1, 4, 20):
        # All that have no more room than so many people at the upper bound.
        rows = [np.full(held, 10), np.full(5 * held, 2), generator.integers(0, 11, size=held)]
        for row, away in itertools.product(rows, (0, 5, 15, 40)):
            least = math.ceil(rate * row.sum()) + away
            bound = taking.beyond(held, rate, least)
            tail = exact_tail(row, rate, masses, least)
            assert tail <= bound
            ratios.append(bound / tail)
    # It is no bound that holds of everything.
    assert min(ratios) < 3.0


@pytest.mark.parametrize("case", CASES)
def test_intervals_hold_whatever_the_numbers(case: dict[str, Any]) -> None:
    for numbers, held in (((0, 4), (150, 50)), ((0, 1), (0, 200)), ((0, 4), (1, 199))):
        mechanism = td.VerifiedSum((0, 4), 200, **case)
        truth = float(np.dot(numbers, held)) / 200
        found = [mechanism.simulate(numbers, held, seed=seed).estimate for seed in range(60)]
        covered = sum(bool(one.interval(0.9).contains(truth)) for one in found)
        assert stats.binom.cdf(covered, 60, 0.9) > ALPHA
        errors = np.array([one.mean - truth for one in found])
        deviation = np.sqrt(np.mean([one.standard_error**2 for one in found]))
        # 60 squares: their mean is off by a factor of 2.5 once in a million rounds at most.
        assert np.sqrt((errors**2).mean()) < 1.6 * deviation
        assert abs(errors.mean()) < 5.0 * deviation / math.sqrt(60)


def test_intervals_are_little_wider_than_normal_ones_where_numbers_are_at_the_bounds() -> None:
    mechanism = td.VerifiedSum((0, 90), 10**6, epsilon=1.0, participation=0.25)
    estimate = mechanism.simulate([0, 90], [4 * 10**5, 6 * 10**5], seed=1).estimate
    exact, normal = estimate.interval(0.95), estimate.interval(0.95, method="normal")
    # E[Z | Z > 1.96] / 1.96 for a standard normal Z, and what cells add.
    assert 1.19 < (exact.high - exact.low) / (normal.high - normal.low) < 1.26
    everybody = td.VerifiedSum((0, 90), 1000, epsilon=1.0).estimate([30_000])
    assert everybody.interval(0.95).method == "exact"


@pytest.mark.parametrize("scale", [3e5, 1e6])
def test_intervals_of_wide_noise_are_not_much_wider(scale: float) -> None:
    # It has no table of its own.
    found = noised_means(np.array([25 * 10**6]), 1000, LaplaceLaw(scale, 1, 2), 10**5, rate=0.5)
    assert found.limits is not None
    low, high = found.limits(0.95)
    deviation = math.sqrt(float(found.variances[0]))
    assert 3.6 * deviation < float(high[0] - low[0]) < 5.5 * deviation


def test_the_expected_error_is_that_of_the_worst_numbers() -> None:
    everybody = td.VerifiedSum((0, 50), 400, epsilon=1.0)
    assert everybody._error()[0] == pytest.approx(everybody.estimate([9000]).standard_error)
    some = td.VerifiedSum((0, 50), 400, epsilon=1.0, participation=0.5)
    estimate = some.estimate([200 * 50])
    assert some._error()[0] == pytest.approx(estimate.standard_error)


# What protects.


def exponential(power: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose ``e^power`` by the series, for a power from 0 to 3."""
    terms = [Fraction(1)]
    for place in range(1, 60):
        terms.append(terms[-1] * power / place)
    return sum(terms), sum(terms) + 2 * terms[-1]


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
@pytest.mark.parametrize("participation", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("largest", [1, 5, 100])
def test_the_noise_of_one_aggregator_alone_has_the_guarantee(
    largest: int, participation: float, adjacency: str
) -> None:
    mechanism = td.VerifiedSum(
        (0, largest), 10, epsilon=1.0, participation=participation, adjacency=adjacency
    )
    assert mechanism.noise == "discrete_laplace"
    # The noise that the core draws, as the rational that it is: what one step up loses at most.
    step = Fraction(*_core.discrete_laplace_realized(mechanism.parameter))
    chance = Fraction(participation)
    low, high = exponential(step * largest)
    # A number in the place of another, or of none, which is zero.
    assert 1 - chance + chance * high <= exponential(Fraction(1))[1]
    # No noise that is much smaller would do.
    assert 1 - chance + chance * low >= exponential(Fraction(999, 1000))[0]


def hockey_stick(first: Floats, second: Floats, epsilon: float) -> float:
    """Sum what one law has beyond ``e^epsilon`` times the other, over all outcomes."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@pytest.mark.parametrize("noise", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("participation", [1.0, 0.3])
def test_no_pair_of_numbers_is_told_apart_better_than_delta_says(
    noise: str, participation: float
) -> None:
    largest, epsilon = 6, 0.7
    parameter = 5.0 if noise == "discrete_laplace" else 60.0
    mechanism = td.VerifiedSum(
        (0, largest), 10, parameter=parameter, noise=noise, participation=participation
    )
    places = np.arange(-400, 401)
    drawn = -np.abs(places) / parameter
    if noise == "discrete_gaussian":
        drawn = -(places**2.0) / (2.0 * parameter)
    still = np.exp(drawn) / np.exp(drawn).sum()
    # What a person with a number adds, taking part or not, and the noise of one aggregator.
    laws = [
        (1 - participation) * still + participation * np.roll(still, number)
        for number in range(largest + 1)
    ]
    deltas = {
        pair: hockey_stick(laws[pair[0]], laws[pair[1]], epsilon)
        for pair in itertools.permutations(range(largest + 1), 2)
    }
    worst = max(deltas, key=lambda pair: deltas[pair])
    assert deltas[worst] == pytest.approx(mechanism.accounting.delta(epsilon), rel=1e-9)
    with_none = max(hockey_stick(laws[number], still, epsilon) for number in range(largest + 1))
    reverse = max(hockey_stick(still, laws[number], epsilon) for number in range(largest + 1))
    found = mechanism.accounting.delta(epsilon, "add_or_remove")
    assert max(with_none, reverse) == pytest.approx(found, rel=1e-9)


def test_the_noise_of_smaller_variance_is_taken_and_hidden_coins_need_less() -> None:
    chosen = td.VerifiedSum((0, 10), 100, epsilon=0.1, delta=9e-3)
    assert chosen.noise == "discrete_gaussian"
    laplace = td.VerifiedSum((0, 10), 100, epsilon=0.1, delta=9e-3, noise="discrete_laplace")
    assert chosen._law().variance < laplace._law().variance
    rates = (1.0, 0.5, 0.1)
    noise = [
        td.VerifiedSum((0, 40), 9, epsilon=1.0, participation=rate).parameter for rate in rates
    ]
    assert noise[0] == pytest.approx(40.0, abs=1e-9)
    assert noise == sorted(noise, reverse=True)  # type: ignore[type-var]


def test_the_guarantee_says_what_it_rests_on() -> None:
    mechanism = td.VerifiedSum((0, 9), 100, epsilon=1.0, participation=0.5, aggregators=3)
    assert mechanism.accounting == NoisySums("discrete_laplace", mechanism.parameter, 0.5, 9)
    text = str(mechanism.guarantee)
    assert "at least one of the 3 aggregators follows the protocol" in text
    assert "users who stay away send a report of the lower bound" in text
    assert "a report that is not one number within the bounds is refused" in text
    assert "one user's number is changed" in text
    other = td.VerifiedSum((0, 9), 100, epsilon=1.0, adjacency="add_or_remove")
    assert "gives a number or none" in str(other.guarantee)


# Arguments, documents, rounds.


@pytest.mark.parametrize(
    ("domain", "arguments", "error"),
    [
        ((0, 9), {"participation": 0.0}, InvalidValueError),
        ((0, 9), {"aggregators": 1}, InvalidValueError),
        ((0, 9), {"noise": "skellam"}, InvalidValueError),
        ((0, 9), {"noise": "discrete_gaussian"}, InvalidValueError),  # with a delta of 0
        ((0, 9), {"parameter": 1.0}, InvalidValueError),  # too little
        ((0, 9), {"honest_aggregators": 2}, InvalidValueError),
        ((0, 9), {"users": 2**50}, InvalidValueError),
        ((0, 9.5), {}, InvalidValueError),
        ((0.5, 9), {}, InvalidValueError),
        ((9, 0), {}, InvalidValueError),
        ((0, 2**54), {}, InvalidValueError),
        ((0, 10**7), {}, InvalidValueError),  # more noise than can be drawn
        ((0, 2**40), {"users": 2**20, "parameter": SILENT, "epsilon": None}, InvalidValueError),
        (tn.Bounds(0, 9, dimensions=2), {}, InvalidValueError),
        (["a", "b"], {}, InvalidTypeError),
        (3, {}, InvalidTypeError),
    ],
)
def test_bad_arguments_are_refused(
    domain: Any, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        td.VerifiedSum(domain, **({"users": 100, "epsilon": 1.0} | arguments))


def test_bad_numbers_are_refused_and_not_shown() -> None:
    mechanism = td.VerifiedSum((0, 10), 3, epsilon=1.0)
    for values in ([1, 2], [1, 2, 3, 4], [1, 2, 11], [-1, 2, 3], [1, 2, math.nan], [1, 2, 7.25]):
        for ask in (mechanism.run, mechanism.simulate):
            with pytest.raises(InvalidValueError) as caught:
                ask(values)  # type: ignore[operator]
            assert "7.25" not in str(caught.value)
    with pytest.raises(InvalidTypeError):
        mechanism.run(["a", "b", "c"])
    for counts in ([1, 1], [1, 1, 2], [-1, 2, 2]):
        with pytest.raises((InvalidValueError, InvalidTypeError)):
            mechanism.simulate([1, 2, 3], counts)
    for sums in ([1, 2], [], [0.5], [math.nan]):
        with pytest.raises(InvalidValueError):
            mechanism.estimate(sums)
    with pytest.raises(InvalidValueError):
        mechanism.estimate([4], received=4)


def test_it_travels_as_json_and_has_no_old_round() -> None:
    mechanism = td.VerifiedSum(
        tn.Bounds(-3, 9), 10, epsilon=1.0, delta=1e-6, participation=0.5, aggregators=4
    )
    again = td.mechanism_from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert again == mechanism
    assert again.fingerprint == mechanism.fingerprint
    broken = {**mechanism.to_dict(), "domain": {"labels": ["a", "b"]}}
    with pytest.raises(tn.errors.CorruptDataError):
        td.mechanism_from_dict(broken)
    with pytest.raises(InvalidTypeError):
        td.Round.start(mechanism)  # type: ignore[arg-type]


def test_costs_are_those_of_the_bytes() -> None:
    mechanism = td.VerifiedSum((0, 100), 50, epsilon=1.0, participation=0.5)
    result = mechanism.run([3] * 50, seed=1)
    assert isinstance(result, td.SumResult)
    assert result.refused == {}
    user = result.costs.average("user")
    assert (user.messages, user.coins) == (2, 1)
    assert user.bytes == 2 * (16 + 52) + mechanism._share_bytes - 2 * 16
    assert mechanism.simulate([3] * 50, seed=1).costs == result.costs
    assert result.costs.average("aggregator").noise == 1
