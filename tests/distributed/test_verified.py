"""Rounds of votes with proofs: what is refused, what counts, the law, and what protects."""

from __future__ import annotations

import collections
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
from turnout._types import Floats, Integers
from turnout.accounting.noisy_sums import NoisySums
from turnout.distributed.noise import NOISES
from turnout.distributed.proven import Batch, Report
from turnout.distributed.results import RoundResult
from turnout.errors import ImplausibleSumsError, InvalidTypeError, InvalidValueError

ALPHA = 1e-6

#: Discrete Laplace noise that is zero: anything else has probability 4 * 10^-22 for each item.
SILENT = 0.02

ITEMS = 5


def silent(users: int, items: int = ITEMS, **arguments: Any) -> td.VerifiedAggregation:
    """Make a mechanism whose sums are the counts of those who take part."""
    return td.VerifiedAggregation(items, users, parameter=SILENT, **arguments)


# Who cheats.


def shifted(share: bytes, entry: int, by: int, modulus: int) -> bytes:
    """Add a number to an entry of a leader's share."""
    place = slice(16 * entry, 16 * entry + 16)
    number = (int.from_bytes(share[place], "little") + by) % modulus
    return share[: place.start] + number.to_bytes(16, "little") + share[place.stop :]


class Cheat:
    """Reports of users that do not follow the protocol."""

    def __init__(self, mechanism: td.VerifiedAggregation, batch: Batch) -> None:
        self.prio3, self.batch, self.mechanism = mechanism._prio3, batch, mechanism

    def honest(self, vote: int) -> Report:
        """Give a report as everybody's."""
        [report] = self.batch.reports(np.array([vote], np.int64))
        return report

    def two_votes(self) -> Report:
        """Give a report with an honest proof of a set of two items, for other parameters.

        All its parts are as long as those of one vote: two bits of a weight in the place of an item
        and a bit.
        """
        other = _core.Prio3.multihot(
            ITEMS - 1, 3, self.prio3.chunk_length, self.mechanism.aggregators
        )
        nonce = secrets.token_bytes(16)
        public, shares = other.shard(self.batch.context, [1, 1, 0, 0], nonce)
        assert list(map(len, shares)) == list(
            map(self.prio3.input_share_length, range(self.mechanism.aggregators))
        )
        return nonce, public, shares

    def moved(self, by: int) -> Report:
        """Give a report whose vote counts so often more, with the proof of one vote."""
        nonce, public, shares = self.honest(1)
        first = shifted(shares[0], 1, by, self.prio3.modulus)
        # The claim of how many votes it is.
        first = shifted(first, ITEMS, by, self.prio3.modulus)
        return nonce, public, [first, *shares[1:]]

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
        """Give one of each, and the word for what they are refused with."""
        moved = [self.moved(by) for by in (1, -1, -2, 1000, self.prio3.modulus // 2)]
        others = (self.two_votes, self.cut, self.to_one, self.mixed, self.of_another_round)
        return [*moved, *(make() for make in others)]


@pytest.mark.parametrize("aggregators", [2, 3])
def test_thirty_percent_of_cheats_move_the_counts_by_one_vote_each_that_is_accepted(
    aggregators: int,
) -> None:
    mechanism = silent(200, aggregators=aggregators)
    batch = Batch.start(mechanism)
    votes = np.random.default_rng(1).integers(ITEMS, size=140)
    honest = batch.reports(votes)
    cheat = Cheat(mechanism, batch)
    # Votes that are none, and votes for what is not held, are accepted: they are votes.
    accepted = [cheat.honest(-1) for _ in range(5)] + [cheat.honest(4) for _ in range(5)]
    refused = [report for _ in range(4) for report in cheat.all()]
    replayed = [honest[3], honest[3], accepted[7], refused[0], *honest[:6]]
    sent = [*honest, *accepted, *refused]
    order = np.random.default_rng(2).permutation(len(sent)).tolist()
    blocks = [[sent[place] for place in order[:77]], [sent[place] for place in order[77:]]]
    result = batch.result([*blocks, replayed])
    expected = np.bincount(votes, minlength=ITEMS)
    expected[4] += 5
    assert result.sums.tolist() == expected.tolist()
    assert result.estimate.received == 150
    reasons = {"proof": 32, "malformed": 8, "replayed": 10}
    assert result.refused == reasons


@pytest.mark.parametrize("kind", range(10))
def test_each_cheat_is_refused(kind: int) -> None:
    mechanism = silent(5)
    batch = Batch.start(mechanism)
    report = Cheat(mechanism, batch).all()[kind]
    honest = batch.reports(np.array([1, 1, 3]))
    result = batch.result([[report, *honest]])
    assert result.sums.tolist() == [0, 2, 0, 1, 0]
    assert sum(result.refused.values()) == 1
    with pytest.raises(InvalidValueError, match="all 1 were refused"):
        batch.result([[report]])


def test_a_report_says_nothing_by_its_size_of_who_takes_part() -> None:
    batch = Batch.start(silent(3))
    sizes = {
        (len(public), *map(len, shares)) for _, public, shares in batch.reports(np.arange(-1, 5))
    }
    [(public, leader, helper)] = sizes
    assert silent(3)._share_bytes == 2 * (public + 16) + leader + helper


def test_a_lying_aggregator_is_noticed_where_no_votes_add_up_to_that() -> None:
    mechanism = td.VerifiedAggregation(3, 100, epsilon=1.0)
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate([500, 20, 30])
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate([-200, 20, 30])
    # Users may vote for nothing.
    mechanism.estimate([1, 0, 0])


# The law.


def law_of(mechanism: td.VerifiedAggregation, held: int, reach: int) -> Floats:
    """Compute the law of one sum from -reach to reach, by convolution of what is drawn."""
    places = np.arange(-reach, reach + 1)
    assert mechanism.parameter is not None
    if mechanism.noise == "discrete_laplace":
        noise = np.exp(-np.abs(places) / mechanism.parameter)
    else:
        noise = np.exp(-(places**2.0) / (2.0 * mechanism.parameter))
    noise /= noise.sum()
    taking = stats.binom.pmf(np.arange(held + 1), held, mechanism.participation)
    law = np.concatenate([np.zeros(reach), taking])
    for _ in range(mechanism.aggregators):
        law = np.convolve(law, noise)[reach:]
    return law[: 2 * reach + 1]


def check_law(sums: Integers, law: Floats, reach: int) -> None:
    """Compare what was drawn with its law, bins of at least five expected each."""
    drawn = np.bincount(np.clip(sums, -reach, reach) + reach, minlength=2 * reach + 1)
    expected = law * sums.size
    edges = np.flatnonzero(np.diff(np.floor(np.cumsum(expected) / 8.0))) + 1
    counts = np.add.reduceat(drawn, np.append(0, edges))
    means = np.add.reduceat(expected, np.append(0, edges))
    means *= counts.sum() / means.sum()
    assert stats.chisquare(counts, means).pvalue > ALPHA
    assert counts.size > 6


CASES = [
    {"parameter": 1.5},
    {"parameter": 0.8, "participation": 0.4},
    {"parameter": 4.0, "noise": "discrete_gaussian", "aggregators": 3},
    {"parameter": 1.0, "noise": "discrete_gaussian", "participation": 0.7},
    {"parameter": 0.9, "participation": 0.4, "none_counted": True},
]


@pytest.mark.parametrize("case", CASES)
def test_simulated_sums_have_the_exact_law(case: dict[str, Any]) -> None:
    mechanism = td.VerifiedAggregation(1000, 40_000, **case)
    # The same count a thousand times over; 40,000 sums: a tenth of a standard deviation shows.
    counts = np.full(1000, 40)
    sums = [mechanism.simulate(counts, seed=seed).sums for seed in range(40)]
    check_law(np.concatenate(sums), law_of(mechanism, 40, 200), 200)


@pytest.mark.parametrize("case", CASES)
def test_sums_of_reports_have_the_same_law(case: dict[str, Any]) -> None:
    mechanism = td.VerifiedAggregation(100, 200, **case)
    values = np.arange(200) % 100
    sums = [mechanism.run(values, seed=seed).sums for seed in range(10)]
    check_law(np.concatenate(sums), law_of(mechanism, 2, 100), 100)


def test_intervals_hold_and_variances_are_exact() -> None:
    for case in CASES:
        mechanism = td.VerifiedAggregation(1000, 100_000, **case)
        truth = np.full(1000, 1e-3)
        result = mechanism.simulate(np.full(1000, 100), seed=3)
        covered = result.estimate.interval(0.95).contains(truth).sum()
        assert stats.binom.sf(covered - 1, 1000, 0.95) < 1.0 - ALPHA
        error = (result.estimate.frequencies - truth) / np.sqrt(mechanism.variances(truth))
        # The mean of 1,000 squares has a standard deviation of at most .08.
        assert abs((error**2).mean() - 1.0) < 0.4
        assert mechanism._law().variance == pytest.approx(
            mechanism.aggregators * NOISES[mechanism._noise](mechanism.parameter, 1, 1).variance
        )


def test_a_seed_gives_the_same_sums_and_none_gives_others() -> None:
    mechanism = td.VerifiedAggregation(50, 60, epsilon=0.5, participation=0.5)
    values = np.arange(60) % 50
    one, other = mechanism.run(values, seed=7), mechanism.run(values, seed=7)
    assert (one.sums == other.sums).all()
    assert (mechanism.run(values).sums != mechanism.run(values).sums).any()
    counts = np.bincount(values)
    assert (mechanism.simulate(counts, 7).sums == mechanism.simulate(counts, 7).sums).all()
    # The aggregators' noises are not the same.
    still = td.VerifiedAggregation(400, 1, parameter=50.0)
    sums = still.simulate(np.zeros(400, np.int64), seed=1).sums
    assert (sums % 2 == 1).any()


# What protects.


def exponential(power: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose ``e^power`` by the series, for a power from 0 to 3."""
    terms = [Fraction(1)]
    for place in range(1, 60):
        terms.append(terms[-1] * power / place)
    # What is left is at most a geometric series of ratio 3/60.
    return sum(terms), sum(terms) + 2 * terms[-1]


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
@pytest.mark.parametrize("participation", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_the_noise_of_one_aggregator_alone_has_the_guarantee(
    epsilon: float, participation: float, adjacency: str
) -> None:
    mechanism = td.VerifiedAggregation(
        3, 100, epsilon=epsilon, participation=participation, adjacency=adjacency
    )
    assert mechanism.noise == "discrete_laplace"
    # The rate of the noise that the core draws, as the rational that it is.
    loss = Fraction(*_core.discrete_laplace_realized(mechanism.parameter))
    chance, (low, high) = Fraction(participation), exponential(loss)
    # A vote makes an outcome at most e^loss times as likely if it takes part, and another one as
    # much less likely.
    more = 1 - chance + chance * high
    less = 1 - chance + chance / high
    largest = more / less if adjacency == "replace" else max(more, 1 / less)
    assert largest <= exponential(Fraction(epsilon))[1]
    # No noise that is much smaller would do.
    least = (1 - chance + chance * low) * (
        1 / (1 - chance + chance / low) if adjacency == "replace" else 1
    )
    assert least >= exponential(Fraction(epsilon) * Fraction(999, 1000))[0]


@pytest.mark.parametrize("adjacency", ["replace", "add_or_remove"])
@pytest.mark.parametrize("participation", [1.0, 0.3, 0.05])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_one_noise_is_enough_where_everybody_sees_how_many_did_not_vote(
    epsilon: float, participation: float, adjacency: str
) -> None:
    mechanism = td.VerifiedAggregation(
        3,
        100,
        epsilon=epsilon,
        participation=participation,
        adjacency=adjacency,
        none_counted=True,
    )
    loss = Fraction(*_core.discrete_laplace_realized(mechanism.parameter))
    chance = Fraction(participation)

    def largest(ratio: Fraction) -> Fraction:
        """Find the largest ratio of two votes, one of which may be none, over all outcomes."""
        # Each of three sums (two items, no vote) is more or less likely by this with a vote in it.
        outcomes = list(itertools.product((ratio, 1 / ratio), repeat=3))
        held = [
            [(1 - chance) * seen[2] + chance * seen[vote] for seen in outcomes] for vote in range(3)
        ]
        return max(
            one / other
            for first, second in itertools.permutations(held, 2)
            for one, other in zip(first, second, strict=True)
        )

    low, high = exponential(loss)
    assert largest(high) <= exponential(Fraction(epsilon))[1]
    assert largest(low) >= exponential(Fraction(epsilon) * Fraction(999, 1000))[0]
    if participation < 1.0 or adjacency == "add_or_remove":
        alone = td.VerifiedAggregation(
            3, 100, epsilon=epsilon, participation=participation, adjacency=adjacency
        )
        assert alone.parameter < mechanism.parameter


def test_what_counts_no_votes_is_a_histogram() -> None:
    mechanism = silent(200, none_counted=True)
    assert mechanism._prio3.algorithm_id == 4
    batch = Batch.start(mechanism)
    votes = np.random.default_rng(1).integers(-1, ITEMS, size=200)
    result = batch.result([batch.reports(votes)])
    assert result.sums.tolist() == np.bincount(votes[votes >= 0], minlength=ITEMS).tolist()
    assert result.estimate.received == 200
    assert result.costs.average("aggregator").noise == ITEMS + 1


@pytest.mark.parametrize("participation", [1.0, 0.3])
def test_the_gaussian_noise_of_one_aggregator_alone_has_the_guarantee(participation: float) -> None:
    mechanism = td.VerifiedAggregation(
        2, 100, epsilon=0.5, delta=1e-3, participation=participation, noise="discrete_gaussian"
    )
    places = np.arange(-120, 121)
    noise = np.exp(-(places**2.0) / (2.0 * mechanism.parameter))
    noise /= noise.sum()
    moved = np.roll(noise, 1)
    before = (1 - participation) * np.outer(noise, noise) + participation * np.outer(moved, noise)
    delta = np.maximum(before - math.exp(0.5) * before.T, 0.0).sum()
    assert 0.9e-3 < delta <= 1e-3 * (1 + 1e-9)


def test_the_noise_of_smaller_variance_is_taken() -> None:
    target = {"epsilon": 0.1, "delta": 9e-3}
    chosen = td.VerifiedAggregation(3, 100, **target)
    assert chosen.noise == "discrete_gaussian"
    other = td.VerifiedAggregation(3, 100, noise="discrete_laplace", **target)
    assert chosen._law().variance < other._law().variance
    assert td.VerifiedAggregation(3, 100, epsilon=1.0, delta=1e-6).noise == "discrete_laplace"


def test_hidden_participation_needs_less_noise() -> None:
    noise = [
        td.VerifiedAggregation(3, 100, epsilon=1.0, participation=rate).parameter
        for rate in (1.0, 0.5, 0.1)
    ]
    assert noise[0] == 2.0
    assert noise == sorted(noise, reverse=True)  # type: ignore[type-var]


def test_the_guarantee_says_what_it_rests_on() -> None:
    mechanism = td.VerifiedAggregation(3, 100, epsilon=1.0, participation=0.5, aggregators=3)
    assert mechanism.accounting == NoisySums("discrete_laplace", mechanism.parameter, 0.5)
    text = str(mechanism.guarantee)
    assert "at least one of the 3 aggregators follows the protocol" in text
    assert "every user takes part with probability 0.5" in text
    # A task cannot tell whether two reports are of one person.
    assert "every user sends one report: another report of the same user" in text
    assert "a report that is not one vote or none is refused" in text
    assert "coin" not in str(td.VerifiedAggregation(3, 100, epsilon=1.0).guarantee)


# Arguments, documents, rounds.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"participation": 0.0}, InvalidValueError),
        ({"participation": 1.1}, InvalidValueError),
        ({"participation": "half"}, InvalidTypeError),
        ({"aggregators": 1}, InvalidValueError),
        ({"aggregators": 255}, InvalidValueError),
        ({"aggregators": 2.0}, InvalidTypeError),
        ({"noise": "skellam"}, InvalidValueError),
        ({"noise": "discrete_gaussian"}, InvalidValueError),  # with a delta of 0
        ({"parameter": 0.0}, InvalidValueError),
        ({"parameter": 1.0}, InvalidValueError),  # too little
        ({"honest_aggregators": 2}, InvalidValueError),
        ({"epsilon": -1.0}, InvalidValueError),
        ({"epsilon": None}, InvalidValueError),
        ({"adjacency": "add"}, InvalidValueError),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        td.VerifiedAggregation(3, 100, **({"epsilon": 1.0} | arguments))


@pytest.mark.parametrize(
    ("domain", "arguments", "said"),
    [
        (3, {"epsilon": 1e-9}, r"^epsilon must allow .*: pass a larger epsilon$"),
        (3, {"epsilon": 1e-9, "delta": 1e-6}, r"^epsilon must allow .*: pass a larger epsilon$"),
        ((0, 10**7), {"epsilon": 1.0}, r"^epsilon must allow .*, or numbers in larger units$"),
        (3, {"epsilon": 1.0, "parameter": 1e7}, r"^parameter must allow .* got 10000000\.0"),
    ],
)
def test_whoever_asks_for_too_much_noise_is_told_what_to_change(
    domain: Any, arguments: dict[str, Any], said: str
) -> None:
    kind = td.VerifiedSum if isinstance(domain, tuple) else td.VerifiedAggregation
    with pytest.raises(InvalidValueError, match=said):
        kind(domain, 100, **arguments)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e4, 9e-3), (1e4, 1e-6), (1e4, 0.0)])
def test_whoever_asks_for_no_privacy_gets_the_least_noise(epsilon: float, delta: float) -> None:
    mechanism = td.VerifiedAggregation(3, 100, epsilon=epsilon, delta=delta)
    assert mechanism.run([0] * 60 + [1] * 40, seed=1).sums.tolist() == [60, 40, 0]


def test_bad_counts_and_values_are_refused() -> None:
    mechanism = td.VerifiedAggregation(3, 10, epsilon=1.0)
    for counts in ([5, 5, 1], [1, 2], [-1, 0, 0], [0.5, 0, 0]):
        with pytest.raises((InvalidValueError, InvalidTypeError)):
            mechanism.simulate(counts)
    with pytest.raises(InvalidValueError):
        mechanism.run([0] * 9)
    with pytest.raises(InvalidValueError, match=r"field.*128 bits"):
        _ = mechanism.field


def test_it_travels_as_json_and_has_no_old_round() -> None:
    mechanism = td.VerifiedAggregation(
        tn.Domain(["a", "b"]), 10, epsilon=1.0, delta=1e-6, participation=0.5, aggregators=4
    )
    again = td.mechanism_from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert again == mechanism
    assert again.fingerprint == mechanism.fingerprint
    with pytest.raises(InvalidValueError, match="Distributed Aggregation Protocol"):
        td.Round.start(mechanism)


def test_costs_are_those_of_the_bytes() -> None:
    mechanism = td.VerifiedAggregation(30, 50, epsilon=1.0, participation=0.5)
    result = mechanism.run([3] * 50, seed=1)
    assert isinstance(result, RoundResult)
    assert result.refused == {}
    user = result.costs.average("user")
    assert (user.messages, user.coins) == (2, 1)
    assert user.bytes == 2 * (16 + 64 + 52) + sum(map(mechanism._prio3.input_share_length, (0, 1)))
    simulated = mechanism.simulate([0, 0, 0, 50] + [0] * 26, seed=1)
    assert simulated.costs == result.costs
    assert result.costs.average("aggregator").noise == 30


def test_it_is_compared_with_the_others() -> None:
    found = td.recommend(500, 10, epsilon=1.0)
    titles = {record.title: record for record in found.records}
    record = titles["votes with proofs, noise by aggregators"]
    assert isinstance(record.mechanism, td.VerifiedAggregation)
    assert record.rmse == pytest.approx(titles["discrete laplace noise by aggregators"].rmse)
    assert record.share_bytes == record.mechanism._share_bytes
    # With a large delta and a small epsilon it is the other noise.
    chosen = {each.title: each for each in td.recommend(500, 10, 0.1, 1e-3).records}
    gaussian = chosen["votes with proofs, noise by aggregators"].mechanism
    assert isinstance(gaussian, td.VerifiedAggregation)
    assert gaussian.noise == "discrete_gaussian"
    refused = dict(td.recommend(500, 10, epsilon=1.0, parties="users").refused)
    assert "aggregators" in refused["votes with proofs, noise by aggregators"]


def test_estimates_can_be_put_together_with_others() -> None:
    domain = tn.Domain(["a", "b", "c"])
    counts = collections.Counter({"a": 300, "b": 150, "c": 50})
    verified = td.VerifiedAggregation(domain, 500, epsilon=1.0).simulate([300, 150, 50], seed=1)
    noisy = td.NoisyAggregation(domain, 500, epsilon=0.3).run(list(counts.elements()), seed=1)
    both = tn.weighting.combine([verified.estimate, noisy.estimate])
    assert both.interval(0.999).contains([0.6, 0.3, 0.1]).all()
