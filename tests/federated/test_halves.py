"""Client and server: what is drawn, paid, sent, added up and refused."""

from __future__ import annotations

import warnings
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout import _core
from turnout.accounting import PrivacyLedger, compose
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.federated import SGD, Client, RandomParticipationSGD, Server, Update

ALPHA = 1e-6


def plan_of(**changes: Any) -> RandomParticipationSGD:
    chosen: dict[str, Any] = {
        "client_rate": 0.3, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.5,
        "local_size": 6,
    }  # fmt: skip
    chosen.update(changes)
    return RandomParticipationSGD(**chosen)


@pytest.mark.parametrize("seed", [None, 5])
def test_participation_and_samples_have_the_law_that_is_accounted_for(seed: int | None) -> None:
    # The joint law of all: not at all with 1 - p, else each of 8 sets of 3 elements.
    plan = plan_of(client_rate=0.4, sample_rate=0.3, seed=seed)
    rounds, counts = 20_000, np.zeros(9)
    client = Client(plan, 3, parameters=1, index=2)
    for number in range(rounds):
        draw = client.draw(number)
        place = 8 if not draw.takes_part else int((2**draw.elements).sum())
        assert draw.takes_part or draw.elements.size == 0
        counts[place] += 1
    sampled = [0.3 ** bin(s).count("1") * 0.7 ** (3 - bin(s).count("1")) for s in range(8)]
    expected = rounds * np.array([*(0.4 * np.array(sampled)), 0.6])
    assert stats.chisquare(counts, expected).pvalue > ALPHA


def test_a_draw_shows_nothing_private_in_a_log() -> None:
    draw = Client(plan_of(client_rate=1.0), 6, parameters=2).draw(3)
    assert repr(draw) == "Draw(round=3)"


def test_each_client_pays_for_every_round_it_draws_and_stops_before_its_budget() -> None:
    plan = plan_of(noise_multiplier=4.0)
    ledger = PrivacyLedger(0.8, 1e-5)
    affordable = ledger.affordable_rounds(plan.mechanism)
    assert affordable > 2
    client = Client(plan, 6, parameters=2, ledger=ledger)
    asked: list[Any] = []

    def gradients_of(elements: Any) -> Any:
        asked.append(elements)
        return np.ones((elements.size, 2))

    for number in range(affordable):
        client.answer(number, gradients_of)
    before, spent = len(asked), ledger.spent()
    assert spent == compose([(plan.mechanism, affordable)]).epsilon(1e-5)
    with pytest.raises(BudgetExceededError, match="would bring epsilon to"):
        client.answer(affordable, gradients_of)
    assert len(asked) == before
    assert ledger.spent() == spent


def test_a_target_gives_halves_a_ledger_with_its_budget() -> None:
    plan = plan_of(noise_multiplier=None, epsilon=2.0, delta=1e-5, rounds=3)
    client, server = Client(plan, 6, parameters=2), Server(plan, np.zeros(2), SGD(0.1))
    for number in range(3):
        server.open(5)
        server.add(client.answer(number, lambda elements: np.ones((elements.size, 2))), "it")
        server.close()
    for half in (client, server):
        assert half.ledger is not None
        assert half.ledger.spent() <= 2.0
        assert half.ledger.spent() == compose([(plan.mechanism, 3)]).epsilon(1e-5)
    with pytest.raises(BudgetExceededError):
        server.open(5)
    with pytest.raises(BudgetExceededError):
        client.draw(3)


def test_a_round_is_drawn_once() -> None:
    client = Client(plan_of(), 6, parameters=2)
    client.draw(4)
    for number in (4, 0):
        with pytest.raises(ProtocolError, match="round must be above 4"):
            client.draw(number)
    client.draw(9)


def test_a_draw_is_answered_once_and_by_its_own_client() -> None:
    plan = plan_of(client_rate=1.0, sample_rate=1.0)
    client, other = Client(plan, 2, parameters=2), Client(plan, 2, parameters=2)
    old = client.draw(0)
    draw = client.draw(1)
    other.draw(1)
    for wrong in (old, other.draw(2)):
        with pytest.raises(ProtocolError, match="draw must be the client's last one"):
            client.update(wrong, np.ones((2, 2)))
    with pytest.raises(ProtocolError, match="use update"):
        client.silence(draw)
    assert client.update(draw, np.ones((2, 2))).round == 1
    with pytest.raises(ProtocolError, match="not yet answered"):
        client.update(draw, np.ones((2, 2)))
    never = Client(plan_of(client_rate=1e-12), 2, parameters=2)
    draw = never.draw(0)
    with pytest.raises(ProtocolError, match="use silence"):
        never.update(draw, np.ones((0, 2)))


def test_neighbours_differ_by_the_clipping_norm_at_most_exactly() -> None:
    random = np.random.default_rng(3)
    plan = plan_of(client_rate=1.0, sample_rate=1.0, clip=0.7)
    assert plan.grid is not None
    bound = (Fraction(plan.clip) / Fraction(plan.grid.step)) ** 2
    for dtype, width in [(np.float32, 1), (np.float64, 1), (np.float32, 300), (np.float64, 300)]:
        gradients = (random.normal(size=(6, width)) * 10.0 ** random.uniform(-3, 3, (6, 1))).astype(
            dtype
        )
        whole = Client(plan, 6, parameters=width).answer(0, lambda elements, g=gradients: g)
        fewer = Client(plan, 5, parameters=width).answer(0, lambda elements, g=gradients: g[:5])
        assert whole is not None
        assert fewer is not None
        moved = [int(value) for value in whole.values - fewer.values]
        assert sum(value**2 for value in moved) <= bound
        assert plan.grid.radius * 0.999 < np.linalg.norm(np.array(moved, float)) or (
            np.linalg.norm(gradients[5].astype(float)) < plan.clip
        )


@pytest.mark.parametrize("mode", ["trusted_server", "always_send", "participants_only"])
@pytest.mark.parametrize("noise", ["exact", "float"])
def test_the_gradient_is_unbiased_with_the_variance_of_the_mode(
    statistical: ModuleType, mode: str, noise: str
) -> None:
    clients, rounds, sigma = 3, 2500, 0.8
    plan = plan_of(mode=mode, noise=noise, noise_multiplier=sigma, sample_rate=0.25, seed=2)
    gradients = np.array([[0.6, 0.0], [0.0, -3.0]])
    half = [Client(plan, 2, parameters=2, index=index) for index in range(clients)]
    server = Server(plan, np.zeros(2), SGD(1.0))
    steps = []
    for number in range(rounds):
        before = server.parameters
        server.open(clients)
        for index, client in enumerate(half):
            server.add(client.answer(number, lambda elements: gradients[elements]), index)
        steps.append(before - server.close())
    scale = plan._scale(clients)
    clipped = np.array([[0.6, 0.0], [0.0, -1.0]])
    expected = clipped.sum(axis=0) * 0.3 * 0.25 * clients * scale
    statistical.check_mean(steps, expected, slack=1e-6)
    senders = {"trusted_server": 1.0, "always_send": clients, "participants_only": 0.3 * clients}
    own = 0.3 * 0.25 * (1 - 0.3 * 0.25) * clients
    variance = (own * np.abs(clipped.sum(axis=0)) ** 2 + senders[mode] * sigma**2) * scale**2
    statistical.check_variance(steps, variance, slack=1e-6)


def test_only_in_always_send_a_client_that_stays_away_says_something() -> None:
    for mode in ("trusted_server", "participants_only"):
        client = Client(plan_of(client_rate=1e-12, mode=mode), 6, parameters=3)
        assert client.answer(0, lambda elements: pytest.fail("no gradient is needed")) is None
    client = Client(plan_of(client_rate=1e-12, mode="always_send"), 6, parameters=2000)
    update = client.answer(0, lambda elements: pytest.fail("no gradient is needed"))
    assert update is not None
    assert np.abs(update.values).max() > 2**24
    assert update.values.std() == pytest.approx(2**24, rel=0.15)


def test_without_a_seed_noise_is_never_the_same() -> None:
    plan = plan_of(mode="always_send")
    seen = {Client(plan, 0, parameters=2).answer(0, list).values.tobytes() for _ in range(50)}
    assert len(seen) == 50


def test_a_client_with_more_elements_than_the_bound_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="size must be at most local_size = 6"):
        Client(plan_of(), 7, parameters=2)
    unbounded = plan_of(local_size=None, nominal_local_size=6)
    assert Client(unbounded, 7, parameters=2).size == 7


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (np.ones((3, 2)), InvalidValueError, "one gradient for each of the 2 elements"),
        (np.ones((2, 3)), InvalidValueError, "gradients"),
        (np.ones((2, 2), dtype=np.int64), InvalidTypeError, "gradients"),
        (np.ones(2), (InvalidValueError, InvalidTypeError), "gradients"),
        ("gradients", (InvalidValueError, InvalidTypeError), "gradients"),
        (None, (InvalidValueError, InvalidTypeError), "gradients"),
    ],
)
def test_wrong_gradients_are_named_and_the_draw_stays_open(
    gradients: Any, error: Any, message: str
) -> None:
    client = Client(plan_of(client_rate=1.0, sample_rate=1.0), 2, parameters=2)
    draw = client.draw(0)
    with pytest.raises(error, match=message):
        client.update(draw, gradients)
    assert client.update(draw, np.ones((2, 2))).values.size == 2


def test_gradients_may_be_nested_as_the_model_is() -> None:
    random = np.random.default_rng(1)
    model = {"w": np.zeros((4, 3), np.float32), "b": [np.zeros(3, np.float32), np.zeros(())]}
    gradients = {
        "w": random.normal(size=(2, 4, 3)).astype(np.float32),
        "b": [random.normal(size=(2, 3)).astype(np.float32), random.normal(size=2)],
    }
    plan = plan_of(client_rate=1.0, sample_rate=1.0)
    nested = Client(plan, 2, parameters=model).answer(0, lambda elements: gradients)
    flat = np.concatenate(
        [gradients["b"][0], gradients["b"][1][:, None], gradients["w"].reshape(2, -1)],
        axis=1,
        dtype=np.float64,
    )
    plain = Client(plan, 2, parameters=16).answer(0, lambda elements: flat)
    assert nested is not None
    assert plain is not None
    # float32 and float64 rows may be truncated to neighbouring steps.
    assert np.abs(nested.values - plain.values).max() <= 4


def opened(**changes: Any) -> Any:
    server = Server(plan_of(**changes), np.zeros(2), SGD(0.1))
    server.open(1)
    return server


def test_updates_of_another_round_plan_or_form_are_refused_and_change_nothing() -> None:
    server = opened(seed=1)
    good = np.array([5, 7])
    mine = server.plan.fingerprint
    cases = [
        (Update(1, good, mine), ProtocolError, "update must be for round 0"),
        (Update(0, good, "other"), PlanMismatchError, "made under plan other"),
        (Update(0, np.array([1, 2, 3]), mine), InvalidTypeError, "update must hold 2 values"),
        (Update(0, good.astype(float), mine), InvalidTypeError, "of dtype int64"),
        (Update(0, np.array([2**62 + 1, 0]), mine), InvalidValueError, "a norm of at most"),
        (Update(0, np.array([-(2**63), 0]), mine), InvalidValueError, "a norm of at most"),
        ("update", InvalidTypeError, "an Update or None"),
    ]
    for update, error, message in cases:
        with pytest.raises(error, match=message):
            server.add(update, 0)
    server.add(None, 0)
    server.add(Update(0, good, mine), 0)
    with pytest.raises(ProtocolError, match="one client more than the 1 available clients"):
        server.add(Update(0, good, mine), 1)
    other = opened(seed=1)
    other.add(Update(0, good, mine), 0)
    np.testing.assert_array_equal(server.close(), other.close())


def test_floating_updates_must_be_finite() -> None:
    server = opened(noise="float")
    with pytest.raises(InvalidValueError, match="finite"):
        server.add(Update(0, np.array([np.nan, 0.0]), server.plan.fingerprint), 0)


@pytest.mark.parametrize("values", [[1, 2], np.ones((2, 2)), np.ones(2, np.float32), None])
def test_values_of_an_update_are_one_array(values: Any) -> None:
    with pytest.raises(InvalidTypeError, match="values must be a one-dimensional"):
        Update(0, values, "plan")


def test_steps_out_of_order_are_refused() -> None:
    server = Server(plan_of(), np.zeros(2), SGD(0.1))
    sums = np.zeros(2, np.int64)
    for step in (
        server.close,
        server._abandon,
        lambda: server.add(None, 0),
        lambda: server.put(sums),
    ):
        with pytest.raises(ProtocolError, match="no round is open"):
            step()
    server.open(3)
    with pytest.raises(ProtocolError, match="round 0 is open"):
        server.open(3)
    with pytest.raises(ProtocolError, match="round 0 is open"):
        server.write("never")
    server._abandon()
    assert server.round == 1


def test_an_abandoned_round_stays_paid() -> None:
    plan = plan_of()
    server = Server(plan, np.zeros(2), SGD(0.1), ledger=PrivacyLedger(9.0, 1e-5))
    server.open(3)
    server._abandon()
    server.open(3)
    server.close()
    assert server.ledger is not None
    assert server.ledger.spent() == compose([(plan.mechanism, 2)]).epsilon(1e-5)


def test_a_sum_beyond_floating_point_gives_the_round_up_without_a_warning() -> None:
    plan = RandomParticipationSGD(
        1.0, 1.0, 1e308, noise_multiplier=1.0, noise="float", local_size=1, seed=1
    )
    server = Server(plan, np.zeros(200), SGD(0.1))
    server.open(1)
    server.put(np.full(200, 1.7e308))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidValueError, match="not finite"):
            server.close()
    assert server.round == 1
    with pytest.raises(ProtocolError, match="no round is open"):
        server.close()


def test_a_server_needs_an_optimizer_and_a_finite_model() -> None:
    with pytest.raises(InvalidTypeError, match="optimizer must be an optimizer"):
        Server(plan_of(), np.zeros(2), "SGD")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="parameters must be finite"):
        Server(plan_of(), np.array([1.0, np.nan]), SGD(0.1))
    with pytest.raises(InvalidValueError, match="at least one number"):
        Server(plan_of(), np.zeros(0), SGD(0.1))


def test_the_seeded_coin_of_a_client_is_that_of_the_whole_population() -> None:
    plan = plan_of(client_rate=0.2, seed=8)
    from turnout.federated import draws

    everybody = set(draws.participants(plan, 500, 3).tolist())
    alone = {index for index in range(500) if draws.takes_part(plan, index, 3)}
    assert alone == everybody
    assert 50 < len(alone) < 150


def test_noise_of_a_round_is_its_own() -> None:
    from turnout.federated import draws

    plan = plan_of(seed=8, mode="always_send")
    seen = {draws.server_noise(plan, 4, number).tobytes() for number in range(20)}
    seen |= {
        draws.made_safe(plan, np.zeros(4, np.int64), index, 0).tobytes() for index in range(20)
    }
    assert len(seen) == 40
    assert isinstance(Client(plan, 1, parameters=1), Client)
    assert _core.rounded_gaussian(3, 24, 1).dtype == np.int64
