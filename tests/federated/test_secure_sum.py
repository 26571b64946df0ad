"""Secure sums: the noise of all senders together, the sentences of the guarantee, shares."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from turnout import _core
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    MissingPartyError,
    ProtocolError,
)
from turnout.federated import (
    SGD,
    AdaptiveClipping,
    Client,
    RandomParticipationSGD,
    SecureSum,
    Server,
)
from turnout.federated.rounds import largest_update
from turnout.federated.shares import Purpose, checked_keys, combined, key_text

ALPHA = 1e-6
MODES = pytest.mark.parametrize("mode", ["always_send", "participants_only"])


@MODES
@pytest.mark.parametrize(("least", "colluding"), [(2, 0), (10, 3), (1000, 1), (10**9, 0)])
@pytest.mark.parametrize("bits", [8, 24])
def test_honest_senders_add_at_least_the_accounted_noise(
    plan_of: Any, mode: str, least: int, colluding: int, bits: int
) -> None:
    multiplier = 1.7
    plan = plan_of(
        mode=mode,
        noise_multiplier=multiplier,
        grid_bits=bits,
        secure_sum=SecureSum(least, colluding),
    )
    assert plan.mechanism == replace(plan, secure_sum=None).mechanism
    # In exact rationals: every client's noise has 2^bits steps.
    alone = Fraction(plan.grid.step) / Fraction(plan.clip) * 2**bits
    together = alone**2 * (least - colluding)
    assert together >= Fraction(multiplier) ** 2 * (1 + Fraction(1, 2**40)) ** 2
    assert together <= Fraction(multiplier) ** 2 * (1 + Fraction(1, 10**11))


def test_the_noise_of_a_sum_after_dropouts_is_the_accounted_one(plan_of: Any) -> None:
    """Second computation: what senders of whom as many drop out as may really add up to."""
    least, colluding, parameters = 9, 4, 40_000
    plan = plan_of(
        mode="always_send", noise_multiplier=0.8, secure_sum=SecureSum(least, colluding), seed=3
    )
    assert plan.grid is not None
    clients = [Client(plan, 0, parameters=parameters, index=index) for index in range(20)]
    sent = [client.answer(0, lambda elements: None) for client in clients]
    honest = sum(update.values for update in sent[: least - colluding] if update is not None)
    noise = np.asarray(honest) * plan.grid.step / plan.clip
    # The mean square of n normal numbers is that of one within 5.4 sqrt(2 / n), but for 1e-6.
    spread = 5.4 * math.sqrt(2.0 / parameters)
    assert abs(np.mean(noise**2) / 0.8**2 - 1.0) < spread
    # One sender fewer would be seen.
    fewer = 1.0 - 1.0 / (least - colluding)
    assert fewer < 1.0 - 2.0 * spread


def test_rounded_noises_add_up_to_one_that_is_rounded_later() -> None:
    """Sums of rounded normal numbers are those of one normal number, more numbers, and a rounding.

    Their distance is computed from both distributions; at 2^8 steps it is far below what floats
    show, so it is computed for fewer steps and compared with the bound for these.
    """
    from scipy import stats
    from scipy.signal import fftconvolve

    for deviation, senders in [(0.5, 3), (0.7, 5), (1.0, 2)]:
        cells = np.arange(-40, 41)
        one = np.diff(stats.norm.cdf(np.append(cells - 0.5, 40.5) / deviation))
        summed = one
        for _ in range(senders - 1):
            summed = np.convolve(summed, one)
        # The normal number of the whole variance plus uniform ones, on a fine lattice.
        fine = 400
        places = np.arange(-40 * fine, 40 * fine + 1) / fine
        density = stats.norm.pdf(places / (deviation * math.sqrt(senders)))
        box = np.ones(fine + 1)
        box[[0, -1]] = 0.5
        for _ in range(senders):
            density = fftconvolve(density, box / fine, "same")
        density /= deviation * math.sqrt(senders)
        ideal = density[::fine]
        middle = summed.size // 2
        actual = summed[middle - 40 : middle + 41]
        bound = (2 * senders + 3) * math.exp(-((math.pi * deviation) ** 2) / 2) * 1.5
        assert np.abs(actual - ideal).max() <= bound + 1e-6
    # The bound at the fewest steps, as a power of ten.
    assert (math.pi * 2**8) ** 2 / 2 / math.log(10) > 100_000


@MODES
def test_votes_get_their_share_of_the_noise_of_all(plan_of: Any, mode: str) -> None:
    adaptive = AdaptiveClipping(0.5, budget_share=0.02)
    plan = plan_of(mode=mode, secure_sum=SecureSum(50, 0), adaptive_clipping=adaptive)
    assert plan._votes is not None
    # A gradient and a vote together, over the noise of 50 senders, in steps.
    longest = Fraction(plan.grid.radius) ** 2 + Fraction(plan._votes.longest) ** 2
    noise = Fraction(4) ** plan.grid_bits * 50
    assert longest / noise <= 1 / Fraction(plan.noise_multiplier) ** 2
    assert longest / noise >= (1 - Fraction(1, 10**6)) / Fraction(plan.noise_multiplier) ** 2


@MODES
def test_the_guarantee_says_what_the_server_sees(plan_of: Any, mode: str) -> None:
    said = str(plan_of(mode=mode, noise_multiplier=2.0, secure_sum=SecureSum(104, 4)).guarantee)
    assert ("who takes part, and the sum" in said) == (mode == "participants_only")
    assert ("may see who sends, and the sum" in said) == (mode == "always_send")
    assert "adds up shares of no fewer than 104 clients, and once in a round" in said
    # A client that looks into the models knows its own noise.
    assert "at most 4 use what they sent to learn about others, tell it to anybody or leave" in said
    assert "leave out their noise, and none is made up" in said
    assert "its own noise alone, 0.2 times the clip" in said
    assert "whether what a client sends arrives does not depend on its data" in said
    assert "all that is sent" not in said


def test_what_does_not_go_together_is_refused(plan_of: Any) -> None:
    with pytest.raises(InvalidValueError, match="secure_sum must be None with mode='trusted_se"):
        plan_of(secure_sum=SecureSum(3, 0))
    with pytest.raises(InvalidValueError, match="secure_sum must be None with noise='float'"):
        plan_of(mode="always_send", noise="float", secure_sum=SecureSum(3, 0))
    with pytest.raises(InvalidTypeError, match="secure_sum must be a SecureSum or None, got 3"):
        plan_of(mode="always_send", secure_sum=3)
    # A client that looks into the models knows its own noise.
    assert SecureSum(3) == SecureSum(3, 1)
    with pytest.raises(
        InvalidValueError, match=r"least_senders must be at least max_colluding_clients \+ 2"
    ):
        SecureSum(4, 3)
    with pytest.raises(InvalidValueError, match="least_senders"):
        SecureSum(1)
    with pytest.raises(InvalidValueError, match="max_colluding_clients"):
        SecureSum(3, -1)


def test_a_plan_with_it_is_described_and_told_from_others(plan_of: Any) -> None:
    plan = plan_of(mode="always_send", secure_sum=SecureSum(7, 2))
    described = plan.to_dict()
    assert RandomParticipationSGD.from_dict(described) == plan
    assert described["secure_sum"] == {"least_senders": 7, "max_colluding_clients": 2}
    assert plan.fingerprint != replace(plan, secure_sum=SecureSum(7, 1)).fingerprint
    assert "secure_sum=SecureSum(least_senders=7, max_colluding_clients=2)" in repr(plan)
    for wrong in (3, {}, {"least_senders": 7}, {"least_senders": 1, "max_colluding_clients": 0}):
        with pytest.raises(CorruptDataError, match="not a plan"):
            RandomParticipationSGD.from_dict({**described, "secure_sum": wrong})


def test_the_server_takes_sums_only_and_of_enough_clients(plan_of: Any) -> None:
    plan = plan_of(mode="always_send", secure_sum=SecureSum(3, 0))
    server = Server(plan, np.zeros(2), SGD(1.0))
    with pytest.raises(MissingPartyError, match=r"available must be at least least_senders = 3 .*"):
        server.open(available=2)
    server.open(available=5)
    update = Client(plan, 0, parameters=2).answer(0, lambda elements: None)
    with pytest.raises(ProtocolError, match="shows the server sums only"):
        server.add(update, 1)
    assert update is not None
    server.put(update.values, senders=2)
    with pytest.raises(MissingPartyError, match="updates of 2 clients, and secure_sum needs 3"):
        server.close()
    assert (server.round, server.parameters.tolist()) == (1, [0.0, 0.0])
    server.open(available=5)
    server.put(update.values, senders=3)
    assert np.abs(server.close()).max() > 0.0
    largest, model = largest_update(plan, 2), server.parameters
    for values in ([int(3.1 * largest), 0], [2**60, -(2**60)], [2**63 - 1, 2**63 - 1]):
        server.open(available=5)
        server.put(np.array(values), senders=2)
        server.put(np.zeros(2, np.int64), senders=1)
        with pytest.raises(InvalidValueError, match="that of 3 honest clients never exceeds"):
            server.close()
        np.testing.assert_array_equal(server.parameters, model)
    server.open(available=5)
    server.put(np.array([int(2.9 * largest), 0]), senders=1)
    server.put(np.zeros(2, np.int64), senders=2)
    server.close()
    most = math.floor(2**59 / largest)
    with pytest.raises(InvalidValueError, match=f"available must be at most {most}"):
        server.open(available=most + 1)


def test_the_engine_gives_up_rounds_of_too_few_participants(
    problem: Any, plan_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plan = plan_of(mode="participants_only", secure_sum=SecureSum(12, 0))
    engine = problem.engine(plan)
    with caplog.at_level(logging.WARNING, "turnout"):
        engine.run(12)
    steps = [record["step"] for record in engine.server.history.to_records()]
    few = [record for record in caplog.records if "secure_sum needs 12" in record.getMessage()]
    assert 0 < len(few) == steps.count(False) < 12


def test_the_noise_is_that_of_a_trusted_server(problem: Any, plan_of: Any) -> None:
    """With as many senders as clients the noise of a round is as long as the server's would be."""
    lengths = {}
    for mode, secure in [("trusted_server", None), ("always_send", SecureSum(40, 0))]:
        plan = plan_of(mode=mode, secure_sum=secure)
        lengths[mode] = problem.engine(plan).check().noise
    assert math.isclose(lengths["always_send"], lengths["trusted_server"], rel_tol=1e-9)


@pytest.fixture
def made(plan_of: Any) -> Any:
    plan = plan_of(mode="always_send", secure_sum=SecureSum(3, 0))
    secrets = [_core.HpkeKey.generate(0) for _ in range(3)]
    keys = checked_keys([key_text(secret.config) for secret in secrets])
    purpose = Purpose(17, plan.fingerprint, 2, 6, keys)
    values = [np.random.default_rng(one).integers(-(2**56), 2**56, 6) for one in range(5)]
    sealed = {one: purpose.sealed(each, one) for one, each in enumerate(values)}
    return plan, secrets, purpose, values, sealed


def test_shares_add_up_to_the_updates(made: Any) -> None:
    plan, secrets, purpose, values, sealed = made
    sums = [
        purpose.added(secret, plan, {one: shares[at] for one, shares in sealed.items()})
        for at, secret in enumerate(secrets)
    ]
    np.testing.assert_array_equal(combined(sums, 6), sum(values))
    # All sums but one say nothing.
    assert not np.array_equal(combined(sums[:2], 6), sum(values))
    for wrong in ([sums[0], sums[1][:-1]], [sums[0], b"\xff" * len(sums[0])]):
        with pytest.raises(CorruptDataError, match="not a sum of shares"):
            combined(wrong, 6)


def test_shares_open_for_their_own_purpose_only(made: Any) -> None:
    plan, secrets, purpose, _values, sealed = made
    first = {one: shares[0] for one, shares in sealed.items()}
    others = [
        replace(purpose, run=18),
        replace(purpose, plan="another"),
        replace(purpose, round=3),
        replace(purpose, length=7),
        replace(purpose, keys=purpose.keys[:2]),
    ]
    for other in others:
        assert other.added(secrets[0], plan, first) == list(sealed)
    moved = {**first, 3: first[4], 9: b""}
    assert purpose.added(secrets[0], plan, moved) == [3, 9]
    assert purpose.added(secrets[1], plan, first) == list(sealed)
    with pytest.raises(MissingPartyError, match="at least 3 clients, got 2"):
        purpose.added(secrets[0], plan, {0: first[0], 1: first[1]})


def test_shares_of_all_aggregators_but_one_are_uniform(made: Any) -> None:
    """Whatever the update is: here it is zero, and any two of three shares together are random."""
    field = _core.PrimeField(2**61 - 1)
    _plan, secrets, purpose, _values, _sealed = made
    length = 20_000
    purpose = replace(purpose, length=length)
    zero = purpose.sealed(np.zeros(length, np.int64), 0)
    assert [len(one) for one in zero] == [32 + 55, 32 + 55, length * 61 // 8 + 55]
    context = purpose._context(0)
    opened = [
        secret.open(b"turnout federated share 1", context, one)
        for secret, one in zip(secrets, zero, strict=True)
    ]
    shares = [field.expand(seed, length) for seed in opened[:2]]
    shares.append(field.unpack(opened[2], length))
    assert not np.any(field.sum(np.stack(shares)))
    from scipy import stats

    for share in [*shares, field.add(shares[0], shares[2]), field.add(shares[1], shares[2])]:
        assert stats.kstest(share.astype(float) / 2**61, "uniform").pvalue > ALPHA
