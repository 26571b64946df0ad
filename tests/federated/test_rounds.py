"""What an open round takes: every honest update, nothing that no honest client sends."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError, ProtocolError
from turnout.federated import SGD, Client, RandomParticipationSGD, Server, Update, draws
from turnout.federated.checkpoint import read_checkpoint
from turnout.federated.rounds import largest_update

MODES = ("trusted_server", "always_send", "participants_only")
SIZE, CLIENTS = 6, 10


def plan_of(**changes: Any) -> RandomParticipationSGD:
    chosen: dict[str, Any] = {
        "client_rate": 1.0, "sample_rate": 1.0, "clip": 1.0, "noise_multiplier": 1.5,
        "local_size": SIZE, "seed": 3,
    }  # fmt: skip
    chosen.update(changes)
    if chosen.get("noise") == "none":
        del chosen["noise_multiplier"]
    return RandomParticipationSGD(**chosen)


def opened(plan: RandomParticipationSGD, parameters: int = 2, **options: Any) -> Server:
    server = Server(plan, np.zeros(parameters), SGD(1.0), **options)
    server.open(CLIENTS)
    return server


def honest(plan: RandomParticipationSGD, parameters: int, index: int) -> Update:
    """Give the longest update there is: all gradients clipped, and in one direction."""
    client = Client(plan, SIZE, parameters=parameters, index=index)
    gradients = np.full((SIZE, parameters), 7.0)
    update = client.answer(0, lambda elements: gradients)
    assert update is not None
    return update


def scaled(plan: RandomParticipationSGD, norm: float) -> Update:
    """Give an update of two numbers and about this norm, in units of the clip."""
    values = np.array([norm * plan.clip, 0.0])
    if plan.grid is not None:
        values = np.rint(values / plan.grid.step).astype(np.int64)
    return Update(0, values, plan.fingerprint)


@pytest.mark.parametrize("parameters", [1, 2, 10, 1000, 10**6, 10**10])
def test_noise_is_longer_than_it_is_taken_for_with_probability_2_to_the_minus_64(
    parameters: int,
) -> None:
    silent, noisy = plan_of(), plan_of(mode="always_send")
    room = (largest_update(noisy, parameters) - largest_update(silent, parameters)) / 2.0**24
    assert stats.chi2.logsf(room**2, parameters) <= -64.0 * math.log(2.0)
    # As is proven of the norm of a Gaussian vector, whatever its length.
    assert (room - math.sqrt(parameters)) ** 2 / 2.0 >= 64.0 * math.log(2.0)
    # It is not far off: a tenth of it is exceeded all the time.
    assert stats.chi2.sf((room / 10.0) ** 2, parameters) > 0.1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("noise", ["exact", "float", "none"])
@pytest.mark.parametrize("parameters", [1, 2, 40_000])
def test_every_honest_update_is_taken(mode: str, noise: str, parameters: int) -> None:
    plan = plan_of(mode=mode, noise=noise)
    server = opened(plan, parameters)
    for index in range(CLIENTS):
        server.add(honest(plan, parameters, index), index)
    assert np.isfinite(server.close()).all()


@pytest.mark.parametrize("noise", ["exact", "float", "none"])
def test_without_noise_the_bound_is_that_of_the_longest_honest_update(noise: str) -> None:
    plan = plan_of(noise=noise)
    server = opened(plan)
    server.add(scaled(plan, SIZE), 0)
    with pytest.raises(InvalidValueError, match="which no honest client's exceeds"):
        server.add(scaled(plan, SIZE * (1 + 1e-6)), 1)
    assert np.linalg.norm(honest(plan, 2, 0).values) <= largest_update(plan, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("noise", ["exact", "float", "none"])
def test_what_no_honest_client_sends_is_refused_and_locks_nobody_out(mode: str, noise: str) -> None:
    plan = plan_of(mode=mode, noise=noise)
    kind = np.int64 if noise == "exact" else np.float64
    largest = 2**62 if noise == "exact" else 1e308
    attacks = [[largest, 0], [-largest, largest], [0, largest // 2], [0, largest // 2**20]]
    if noise == "exact":
        attacks += [[-(2**63), 0], [2**63 - 1, -(2**63)]]
    server, alone = opened(plan), opened(plan)
    for attack in attacks:
        with pytest.raises(InvalidValueError, match="finite and have a norm of at most"):
            server.add(Update(0, np.array(attack, kind), plan.fingerprint), 0)
    with pytest.raises(InvalidValueError, match="norm"):
        server.add(scaled(plan, 1000.0), 0)
    for index in range(1, CLIENTS):
        for half in (server, alone):
            half.add(honest(plan, 2, index), index)
    np.testing.assert_array_equal(server.close(), alone.close())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e200])
@pytest.mark.parametrize("clip", [1e-300, 1.0, 1e300, math.inf])
def test_numbers_beyond_all_bounds_are_refused(bad: float, clip: float) -> None:
    if clip >= 1e300 and bad == -1e200:
        return  # an honest one
    plan = plan_of(noise="none", clip=clip)
    server = opened(plan)
    for values in ([bad, 0.0], [bad, bad]):
        with pytest.raises(InvalidValueError, match="must be finite"):
            server.add(Update(0, np.array(values), plan.fingerprint), 0)
    if clip < math.inf:
        server.add(scaled(plan, SIZE), 0)
        with pytest.raises(InvalidValueError, match="norm of at most"):
            server.add(scaled(plan, SIZE * 1.01), 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_has_one_update_in_a_round(mode: str) -> None:
    plan = plan_of(mode=mode)
    server, once = opened(plan), opened(plan)
    update = honest(plan, 2, 0)
    # A refused one does not count, nor does silence.
    with pytest.raises(InvalidValueError):
        server.add(Update(0, np.array([2**62, 0]), plan.fingerprint), "a")
    server.add(None, "a")
    server.add(update, "a")
    for _ in range(3):
        with pytest.raises(ProtocolError, match="the second one of client 'a' in round 0"):
            server.add(update, "a")
    # Another client may have the same numbers: with few parameters and no noise many have.
    server.add(update, "b")
    once.add(update, 0)
    once.add(update, 1)
    np.testing.assert_array_equal(server.close(), once.close())
    server.open(CLIENTS)
    server.add(Update(1, update.values, plan.fingerprint), "a")


@pytest.mark.parametrize("client", [None, [1], {}, np.zeros(1)])
def test_a_client_has_a_name(client: Any) -> None:
    server = opened(plan_of())
    for update in (None, honest(server.plan, 2, 0)):
        with pytest.raises(InvalidTypeError, match="client must be a number or a name"):
            server.add(update, client)


@pytest.mark.parametrize("mode", ["trusted_server", "always_send"])
def test_sums_are_exact_however_large(mode: str) -> None:
    # Without a stated size a client may have as many elements as fit its grid.
    plan = plan_of(local_size=None, nominal_local_size=1, mode=mode)
    largest = 2**61 - 2**30
    columns = np.array([largest, -largest, 2**60 + 1, 3, 0])
    updates = [np.where(np.arange(5) == place % 5, columns, 0) for place in range(40)]
    updates += [np.array([largest // 3, largest // 3, -largest // 3, -1, 2**40])] * 7
    total = sum(values.astype(object) for values in updates)
    if mode == "trusted_server":
        total = total + draws.server_noise(plan, 5, 0).astype(object)
    assert plan.grid is not None
    for order in (updates, updates[::-1]):
        server = Server(plan, np.zeros(5), SGD(1.0))
        server.open(len(order))
        for client, values in enumerate(order):
            server.add(Update(0, values, plan.fingerprint), client)
        assert np.abs(total).max() > 2**63
        factor = plan.grid.step * plan._scale(len(order))
        expected = [-float(Fraction(int(number))) * factor for number in total]
        assert server.close().tolist() == expected


def test_an_engine_and_its_halves_agree_on_large_sums() -> None:
    plan = plan_of(local_size=None, nominal_local_size=1, grid_bits=36, noise_multiplier=2**-4)
    assert plan.grid is not None
    size = int(2**61 / plan.grid.radius) - 1
    sent = np.array([size * int(plan.grid.radius), 1], np.int64)
    rounds = [opened(plan), opened(plan)]
    for client in range(CLIENTS):
        rounds[0].add(Update(0, sent, plan.fingerprint), client)
        rounds[1].put(sent)
    np.testing.assert_array_equal(rounds[0].close(), rounds[1].close())


def test_a_model_that_is_not_finite_is_neither_kept_nor_saved(tmp_path: Path) -> None:
    path = tmp_path / "training.npz"
    # Nothing bounds a client here, and the sum stays finite all the same.
    plan = plan_of(noise="none", clip=math.inf, client_rate=1e-5)
    server = opened(plan, checkpoint=path)
    server.close()
    before, model = path.read_bytes(), server.parameters
    server.open(CLIENTS)
    huge = Update(1, np.array([5e306, -5e306]), plan.fingerprint)
    server.add(huge, 0)
    with pytest.raises(InvalidValueError, match="round 1 leads to a model that is not finite"):
        server.close()
    np.testing.assert_array_equal(server.parameters, model)
    assert path.read_bytes() == before
    assert server.round == 2
    server.open(CLIENTS)
    server.add(Update(2, np.ones(2), plan.fingerprint), 0)
    assert np.isfinite(server.close()).all()


def test_a_model_of_float32_is_finite_in_float32() -> None:
    plan = plan_of(noise="none", clip=math.inf)
    server = Server(plan, np.zeros(2, np.float32), SGD(1.0))
    server.open(1)
    server.add(Update(0, np.array([1e40, 0.0]), plan.fingerprint), 0)
    with pytest.raises(InvalidValueError, match="not finite"):
        server.close()
    assert server.parameters.tolist() == [0.0, 0.0]


def test_a_model_that_is_not_finite_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "training.npz"
    plan = plan_of(noise="none")
    server = opened(plan, checkpoint=path)
    server._vector[0] = np.inf
    server._abandon()
    server.write(path)
    assert not np.isfinite(read_checkpoint(path).parameters).all()
    with pytest.raises(CorruptDataError, match=r"training\.npz: .* not finite"):
        Server(plan, np.zeros(2), SGD(1.0), checkpoint=path).resume()
