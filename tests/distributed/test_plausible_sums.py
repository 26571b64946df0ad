"""Sums that honest parties do not reach are refused, and honest rounds are not."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import turnout as tn
import turnout.distributed as td
from turnout.cli.app import app
from turnout.distributed import Message, Role, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.tails import binomials, binomials_least
from turnout.errors import ImplausibleSumsError, InvalidValueError, ProtocolError, TurnoutError

#: Chance that one of the simulations fails although all is right, with randomness that is fresh.
ALPHA = 1e-6

#: How often an honest round is refused at most.
CHANCE = 1e-6

USERS, COUNTS = 40, (14, 26, 0)
VALUES = np.repeat(np.arange(3), COUNTS)

Floats = Any


def noisy(noise: str, **arguments: Any) -> td.NoisyAggregation:
    target = {"epsilon": 3.0} if noise == "discrete_laplace" else {"epsilon": 3.0, "delta": 1e-5}
    return td.NoisyAggregation(3, USERS, noise=noise, **target, **arguments)


MECHANISMS: dict[str, Callable[[], td.AggregationMechanism]] = {
    "sampling, floor": lambda: td.SamplingAggregation(3, USERS, rate=0.8, floor=5),
    "sampling, dummies": lambda: td.SamplingAggregation(3, USERS, rate=0.8, dummies=20),
    "sampling, threshold": lambda: td.SamplingAggregation(3, USERS, rate=0.8, threshold=4),
    "sampling, users": lambda: td.SamplingAggregation(
        3, USERS, rate=0.8, dummies=6, parties="users", compressed=False
    ),
    "two-stage, floor": lambda: td.TwoStageSampling(
        3, USERS, reported=2, gamma=3.0, rate=0.9, floor=5, elected=3
    ),
    "two-stage, dummies": lambda: td.TwoStageSampling(
        3, USERS, reported=2, gamma=50.0, rate=0.9, dummies=9
    ),
    **{
        f"{noise}, {source}": functools.partial(noisy, noise, source=source)
        for noise in ("discrete_laplace", "discrete_gaussian", "skellam")
        for source in ("users", "parties")
    },
    "discrete_laplace, missing": lambda: noisy("discrete_laplace", max_missing_users=4),
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> td.AggregationMechanism:
    return MECHANISMS[request.param]()


# The law of a sum, by another computation: probabilities from 0 or from -half the length on.


def power(law: Floats, exponent: float, half: int) -> Floats:
    """The law of so many independent copies of a symmetric one, on [-half, half)."""
    transform = np.abs(np.fft.fft(np.fft.ifftshift(law)))
    found = np.fft.fftshift(np.fft.ifft(transform**exponent).real)
    assert found.size == 2 * half
    return np.maximum(found, 0.0)


def noise_law(mechanism: td.NoisyAggregation, items: int, received: int, half: int) -> Floats:
    places = np.arange(-half, half)
    given, required = mechanism.parameter, mechanism._required_pieces
    pieces = items * (received if mechanism.source == "users" else mechanism._contributors)
    if mechanism.noise == "discrete_laplace":
        return power(stats.dlaplace.pmf(places, 1 / given), pieces / required, half)
    if mechanism.noise == "skellam":
        mean = given * pieces / required
        return stats.skellam.pmf(places, mean, mean)
    one = np.exp(-(places**2) / (2 * given))
    return power(one / one.sum(), pieces, half)


def outside(
    mechanism: td.AggregationMechanism, held: int, items: int, received: int, limits: Sequence[int]
) -> float:
    """The probability that the sum over some items, which ``held`` users hold, is beyond limits."""
    low, high = limits
    if isinstance(mechanism, td.NoisyAggregation):
        half = 1 << 12
        law = noise_law(mechanism, items, received, half)
        places = held + np.arange(-half, half)
        return float(law[(places < low) | (places > high)].sum())
    rate = mechanism.rate
    own = mechanism._counted_rate if isinstance(mechanism, td.TwoStageSampling) else rate
    dummies = items * mechanism._contributors * mechanism.dummies
    law = np.convolve(
        stats.binom.pmf(np.arange(held + 1), held, own),
        stats.binom.pmf(np.arange(dummies + 1), dummies, rate),
    )
    places = np.arange(law.size)
    return float(law[(places < low) | (places > high)].sum())


@pytest.mark.parametrize("chance", [1e-6, 1e-3])
def test_an_honest_round_is_refused_as_rarely_as_is_said_whoever_holds_what(
    mechanism: td.AggregationMechanism, chance: float
) -> None:
    """Exactly, against laws that are computed another way; and the limits are not far too wide."""
    missing = mechanism.max_missing_users
    for received in {USERS, USERS - missing}:
        low, high = mechanism._reach((received, received), 3, received, chance / 2)
        assert outside(mechanism, received, 3, received, (low, high)) <= chance / 2
        middle = (low + high) / 2
        ends = middle + 0.75 * (low - middle), middle + 0.75 * (high - middle)
        inner = [math.ceil(ends[0]), math.floor(ends[1])]
        # What cannot be at all limits sampling: there is nothing beyond 0 and everybody.
        trials = USERS + 3 * getattr(mechanism, "dummies", 0) * mechanism._contributors
        if not (isinstance(mechanism, td.NoisyAggregation) or high < trials):
            inner[1] = high
        assert outside(mechanism, received, 3, received, inner) > chance / 20
        low, high = mechanism._reach((0, received), 1, received, chance / 6)
        for held in (0, 1, received // 2, received):
            assert outside(mechanism, held, 1, received, (low, high)) <= chance / 6


@pytest.mark.parametrize("trials", [1, 3, 40, 1000, 10**6])
@pytest.mark.parametrize("rate", [1e-9, 0.01, 0.5, 0.9, 1 - 1e-12])
@pytest.mark.parametrize("chance", [1e-3, 5e-7, 1e-14])
def test_bounds_of_binomial_sums_hold_and_are_close(
    trials: int, rate: float, chance: float
) -> None:
    high, low = binomials([(trials, rate)], chance), binomials_least([(trials, rate)], chance)
    law = stats.binom(trials, rate)
    assert law.sf(high) <= chance
    assert law.cdf(low - 1) <= chance
    best = int(law.isf(chance)), int(law.ppf(chance))
    width = 5 + 0.25 * (best[0] - best[1])
    assert 0 <= low <= high <= trials
    assert high <= best[0] + width
    assert low >= best[1] - width
    # Two that have the same rate are one.
    assert binomials([(trials, rate), (7, rate)], chance) == binomials([(trials + 7, rate)], chance)


def test_honest_rounds_are_not_refused(mechanism: td.AggregationMechanism) -> None:
    """With limits so narrow that two rounds in five may be beyond them, no more are; 200 rounds."""
    rounds, chance = 200, 0.4
    sums = [mechanism.run(VALUES, seed=seed).sums for seed in range(rounds)]
    assert not any(mechanism._implausible(one, USERS) for one in sums)
    found = sum(mechanism._implausible(one, USERS, chance) is not None for one in sums)
    assert found <= stats.binom.isf(ALPHA, rounds, chance)


# Messages that somebody altered.


def altered(mechanism: Any, message: Message, place: int, by: int) -> Message | None:
    """Add a number to one element of a message, if it holds elements."""
    field, size = mechanism.field, mechanism.domain.size
    if message.kind is MessageKind.SHARE and not mechanism._seeded(message.recipient.index):
        report, elements = payloads.unpack_share(message.payload, field, size)
        elements = field._add(elements, field._reduce(by * (np.arange(size) == place)))
        payload = payloads.pack_share(report, field._pack(elements), False)
    elif message.kind is MessageKind.ITEM_SHARES:
        # Before them stands the number of the election.
        number, shares = message.payload[:4], message.payload[4:]
        items, elements = payloads.unpack_item_shares(shares, field, size)
        if place not in items:
            return None
        elements = field._add(elements, field._reduce(by * (items == place)))
        payload = number + payloads.pack_item_shares(items, field, elements)
    else:
        return None
    return Message(message.kind, message.round_id, message.sender, message.recipient, payload)


def finished(harness: ModuleType, mechanism: Any, place: int, by: int) -> Any:
    """Run a round with all messages, of which one is altered on its way."""
    network = harness.Network(td.Round.start(mechanism))
    network.report(VALUES.tolist())
    left = [True]

    def once(messages: list[Message]) -> list[Message]:
        result = []
        for message in messages:
            other = altered(mechanism, message, place, by) if left[0] else None
            left[0] = left[0] and other is None
            result.append(other or message)
        return result

    waiting = once(network.waiting)
    network.waiting = []
    closing = list(network.collectors)
    while waiting or closing:
        if waiting:
            message = waiting.pop(0)
            waiting += once(network.roles[message.recipient].receive(message.to_bytes()))
        else:
            waiting += once(closing.pop(0).close())
    assert by == 0 or not left[0]
    return network.server


@pytest.mark.parametrize("place", [0, 2])
def test_one_altered_message_is_told_by_every_mechanism(
    harness: ModuleType, mechanism: td.AggregationMechanism, place: int
) -> None:
    """Of a share half of the field is added to one element; the published share is wrong by that.

    Without an alteration the same roles publish.
    """
    assert finished(harness, mechanism, place, 0).estimate().received == USERS
    by = mechanism.field.modulus // 2
    server = finished(harness, mechanism, place, by)
    with pytest.raises(ImplausibleSumsError, match="A message was altered") as caught:
        server.estimate()
    for kind in (ProtocolError, InvalidValueError, TurnoutError):
        assert isinstance(caught.value, kind)
    # What was revealed can be looked at, and stays refused.
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate(server.sums, server.received)


def test_every_byte_of_a_share_that_is_altered_is_told_or_within_the_noise(
    harness: ModuleType,
) -> None:
    """The lowest and the highest bit of each byte: 40 users, counts with noise."""
    mechanism = td.NoisyAggregation(3, USERS, epsilon=3.0, compressed=False)
    noise = mechanism.law()
    within = 0
    for byte in range(mechanism.field._packed_size(3)):
        for bit in (0, 7):
            network = harness.Network(td.Round.start(mechanism))
            network.report(VALUES.tolist())
            first = network.waiting[0]
            assert (first.kind, first.recipient.role) == (MessageKind.SHARE, Role.AGGREGATOR)
            payload = bytearray(first.payload)
            payload[payloads.SHARE_OVERHEAD + byte] ^= 1 << bit
            head = (first.kind, first.round_id, first.sender, first.recipient)
            network.waiting[0] = Message(*head, bytes(payload))
            try:
                network.deliver()
            except ProtocolError:  # no element of the field
                continue
            network.close()
            sums = network.server.sums
            try:
                network.server.estimate()
                within += 1
            except ImplausibleSumsError:
                assert abs(sums.sum() - USERS) > 2 or (sums < 0).any() or (sums > USERS).any()
            else:
                assert abs(sums.sum() - USERS) <= 6 * math.sqrt(3 * noise.variance) + 30
                assert (sums >= -noise.tail_bound(1e-12)).all()
    assert within > 0


def test_the_share_of_seven_eighths_of_the_report_is_told() -> None:
    """40 users, one answer .875 and all together 1.65: nothing said so."""
    mechanism = td.SamplingAggregation(3, USERS, rate=0.8, floor=5)
    sums = np.array([0.35, 0.875, 0.425]) * USERS * 0.8
    limits = (
        "the sums add up to 53; where all parties follow the protocol, to between 17 and 40, except"
    )
    with pytest.raises(ImplausibleSumsError, match=limits):
        mechanism.estimate(np.rint(sums))


def test_counts_below_the_threshold_may_have_been_anything_below_it() -> None:
    mechanism = td.SamplingAggregation(20, 60, rate=0.9, threshold=4)
    # Nothing is published: every answer may have had three, 60 in all.
    mechanism.estimate(np.zeros(20))
    few = td.SamplingAggregation(5, 60, rate=0.9, threshold=4)
    with pytest.raises(ImplausibleSumsError, match="add up to 0; where all parties"):
        few.estimate(np.zeros(5))
    assert few.estimate([54, 0, 0, 0, 0]).frequencies[0] == pytest.approx(1.0)


# Roads of one call.


def spoil(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one answer of all rounds in this process have half of the field more."""

    def decode(self: Any, sums: Any) -> Any:
        more = self.field._reduce(self.field.modulus // 2 * (np.arange(sums.size) == 0))
        return original_of[type(self)](self, self.field._add(sums, more))

    original_of = {
        kind: kind._decode
        for kind in (td.SamplingAggregation, td.TwoStageSampling, td.NoisyAggregation)
    }
    for kind in original_of:
        monkeypatch.setattr(kind, "_decode", decode)


def test_the_command_line_and_surveys_refuse_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, picture = tmp_path / "votes.csv", tmp_path / "votes.png"
    source.write_text("vote\n" + "yes\nno\nno\n" * 40, encoding="utf-8")
    noises = ("discrete-laplace", "discrete-gaussian", "skellam")
    ways = [("aggregate", "-m", name, "-d", 1e-5) for name in noises]
    ways += [("aggregate", "-m", "sampling", "-d", 1e-5, "--floor", 30)]
    ways += [("aggregate", "-m", "two-stage", "-d", 1e-5, "--floor", 30, "--reported", 1)]
    ways += [("survey", "--trust", "aggregators")]
    options = ("-c", "vote", "-e", 2, "--labels", "yes,no", "--json")

    def run(way: tuple[object, ...]) -> Any:
        plot = ("--plot", picture) if way[0] == "aggregate" else ()
        arguments = (way[0], source, *way[1:], *options, *plot)
        return CliRunner().invoke(app, [str(each) for each in arguments])

    for way in ways:
        result = run(way)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)
        picture.unlink(missing_ok=True)
    spoil(monkeypatch)
    for way in ways:
        result = run(way)
        assert result.exit_code == 1
        assert "A message was altered" in result.stderr
        assert not result.stdout
        assert not picture.exists()
    with pytest.raises(ImplausibleSumsError):
        tn.survey(source, "vote", epsilon=2.0, trust="aggregators")
