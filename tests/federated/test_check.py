"""A round that is tried without being paid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import SGD, Adam, InProcessEngine, RandomParticipationSGD, local_steps

QUIET = {"client_rate": 1.0, "sample_rate": 1.0, "noise_multiplier": 1e-4, "clip": 100.0}


def made(problem: Any, plan: Any, gradients: Any = None, rate: float = 0.2, **more: Any) -> Any:
    return InProcessEngine(
        plan,
        problem.start(),
        gradients or problem.gradients,
        problem.size,
        SGD(rate),
        clients=problem.clients,
        **more,
    )


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("seed", [11, None])
def test_nothing_is_paid_written_or_changed(
    problem: Any, plan_of: Any, batched: bool, seed: int | None, tmp_path: Path
) -> None:
    plan, ledger = plan_of(seed=seed), PrivacyLedger(50.0, 1e-5)
    more = {"batched": batched, "ledger": ledger, "checkpoint": tmp_path / "training.npz"}
    engine = made(problem, plan, **more)
    for _ in range(2):
        found = engine.check()
        assert 0 < found.gradients <= problem.clients * problem.size
        assert engine.server.round == 0
    assert ledger.spent() == 0.0
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(engine.server.parameters, problem.start())
    if seed is not None:
        trained = made(problem, plan_of(), batched=batched).run(3)
        np.testing.assert_array_equal(engine.run(3), trained)


def test_its_numbers_are_those_of_the_loss_itself(problem: Any, plan_of: Any) -> None:
    found = made(problem, plan_of(**QUIET)).check()
    rows, targets = problem.rows.reshape(-1, 3), problem.targets.ravel()
    gradients = -rows * targets[:, None]
    moved = -0.2 * gradients.mean(axis=0)

    def loss(model: Any) -> float:
        return float(np.mean((rows @ model - targets) ** 2) / 2.0)

    assert found.gradients == len(targets)
    assert found.loss_change == pytest.approx(loss(moved) - loss(np.zeros(3)), rel=1e-9)
    assert found.noisy_loss_change == pytest.approx(found.loss_change, rel=1e-4)
    assert found.median_norm == pytest.approx(np.median(np.linalg.norm(gradients, axis=1)))
    assert found.clipped == 0.0
    low = made(problem, plan_of(**{**QUIET, "clip": 0.7})).check()
    assert low.clipped == np.mean(np.linalg.norm(gradients, axis=1) > 0.7)
    assert f"{low.clipped:.0%} are clipped" in str(low)


def test_the_noise_is_that_of_the_mode(problem: Any, plan_of: Any) -> None:
    found = made(problem, plan_of(**{**QUIET, "noise_multiplier": 0.5})).check()
    rows, targets = problem.rows.reshape(-1, 3), problem.targets.ravel()
    mean = np.linalg.norm((rows * targets[:, None]).mean(axis=0))
    assert found.noise == pytest.approx(0.5 * 100.0 * np.sqrt(3) / 240 / mean)
    noises = {
        mode: made(problem, plan_of(mode=mode)).check().noise
        for mode in ("trusted_server", "always_send", "participants_only")
    }
    assert noises["always_send"] == pytest.approx(np.sqrt(40) * noises["trusted_server"])
    assert noises["participants_only"] == pytest.approx(np.sqrt(12) * noises["trusted_server"])


@pytest.mark.parametrize(
    ("gradients", "error", "text"),
    [
        (lambda count: np.full((count, 3), np.nan), InvalidValueError, "must be finite numbers"),
        (lambda count: np.full((count, 3), np.inf), InvalidValueError, "must be finite numbers"),
        (lambda count: np.zeros((count, 2)), InvalidValueError, r"shape \(examples, 3\)"),
        (lambda count: np.zeros((count + 1, 3)), InvalidValueError, "one gradient for each"),
        (lambda count: np.zeros((count, 3), np.int64), InvalidTypeError, "float32 or float64"),
    ],
)
def test_wrong_gradients_are_found(
    problem: Any, plan_of: Any, gradients: Any, error: type[Exception], text: str
) -> None:
    engine = made(problem, plan_of(), lambda model, client, elements: gradients(elements.size))
    with pytest.raises(error, match=text):
        engine.check()


def test_some_gradients_that_are_not_finite_are_counted(problem: Any, plan_of: Any) -> None:
    problem.rows[:, 0] = np.nan
    found = made(problem, plan_of(**QUIET)).check()
    assert (found.gradients, found.not_finite) == (240, 40)
    assert "40 are not finite" in str(found)


def test_a_learning_rate_that_is_too_large_is_an_error(problem: Any, plan_of: Any) -> None:
    plan = plan_of(**QUIET)
    made(problem, plan, rate=1.0).check()
    with pytest.raises(InvalidValueError, match=r"first step makes the loss larger.*after 8 steps"):
        made(problem, plan, rate=5.0).check()
    with pytest.raises(InvalidValueError, match="leads to a model that is not finite"):
        made(problem, plan, rate=1.7e308).check()

    def growing(model: Any, client: Any, elements: Any) -> Any:
        return np.exp(100.0 * model) * problem.gradients(problem.start(), client, elements)

    with (
        np.errstate(over="ignore"),
        pytest.raises(InvalidValueError, match="gradients are not finite any more"),
    ):
        made(problem, plan, growing, rate=100.0).check()


def test_a_first_step_that_is_made_up_for_is_no_error(problem: Any, plan_of: Any) -> None:
    """Adam's first step is as long as its rate, however small the gradients are."""
    start = problem.engine(plan_of(**QUIET)).run(40) + 0.004

    def check(rate: float) -> Any:
        return InProcessEngine(
            plan_of(**QUIET), start, problem.gradients, 6, Adam(rate), clients=40
        ).check()

    assert check(0.001).loss_change < 0.0
    found = check(0.013)
    assert found.loss_change > 0.0
    assert "later ones make up for it" in str(found)
    with pytest.raises(InvalidValueError, match="after 8 steps"):
        check(3.0)


@pytest.mark.parametrize("rate", [1e4, 1e10])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_network_that_explodes_is_refused(rate: float, layers: int) -> None:
    """Of a network with clipped gradients, sums along the way would make up for any first step."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(100, 10, 4))
    labels = rows @ random.normal(size=4) + random.normal(size=(100, 10)) > 0.0
    start = [random.normal(size=(4, 8)) / 2.0, random.normal(size=8) / 3.0][-layers:]
    if layers == 1:
        start = [random.normal(size=4)]

    def gradients(model: Any, client: int, elements: Any) -> Any:
        x = rows[client, elements]
        hidden = np.maximum(x @ model[0], 0.0) if layers == 2 else x
        with np.errstate(over="ignore"):
            slope = 1.0 / (1.0 + np.exp(-hidden @ model[-1])) - labels[client, elements]
        last = slope[:, None] * hidden
        if layers == 1:
            return [last]
        back = slope[:, None] * model[1] * (hidden > 0.0)
        return [x[:, :, None] * back[:, None, :], last]

    def engine(rate: float) -> InProcessEngine:
        plan = RandomParticipationSGD(
            1.0, 1.0, clip=1.0, noise_multiplier=1e-4, local_size=10, seed=1
        )
        return InProcessEngine(plan, start, gradients, 10, SGD(rate), clients=100)

    assert engine(0.5).check().loss_change < 0.0
    with pytest.raises(InvalidValueError, match="learning_rate is too large"):
        engine(rate).check()


def test_a_long_step_changes_a_loss_by_no_more_than_there_is() -> None:
    """The logistic loss of separable rows falls to 0, not below it, however long the step is."""
    rows = np.array([[1.0], [2.0]])

    def gradients(model: Any, client: int, elements: Any) -> Any:
        return -rows[elements] / (1.0 + np.exp(rows[elements] @ model))[:, None]

    plan = RandomParticipationSGD(1.0, 1.0, clip=9.0, noise_multiplier=1e-4, local_size=2, seed=1)
    for rate in (3.0, 100.0):
        engine = InProcessEngine(plan, np.zeros(1), gradients, 2, SGD(rate), clients=9)
        assert -2.5 * np.log(2.0) < engine.check().loss_change < -0.4 * np.log(2.0)


def test_a_model_beyond_its_dtype_is_not_finite(problem: Any, plan_of: Any) -> None:
    engine = InProcessEngine(
        plan_of(), np.zeros(3, np.float32), problem.gradients, 6, SGD(1e39), clients=40
    )
    with pytest.raises(InvalidValueError, match="leads to a model that is not finite"):
        engine.check()


def test_gradients_far_longer_than_the_clip_are_said(problem: Any, plan_of: Any) -> None:
    assert "far longer than the clip of 1e-05" in str(made(problem, plan_of(clip=1e-5)).check())
    assert "far longer" not in str(made(problem, plan_of()).check())


def test_noise_that_leads_nowhere_is_said(problem: Any, plan_of: Any) -> None:
    found = made(problem, plan_of(noise_multiplier=1e4)).check()
    assert found.loss_change < 0.0 < found.noisy_loss_change
    assert "with this noise a step makes the loss larger" in str(found)


def test_a_small_training_tries_one_element_at_least(problem: Any, plan_of: Any) -> None:
    assert made(problem, plan_of(client_rate=1e-9)).check().gradients == 8
    engine = InProcessEngine(plan_of(), problem.start(), problem.gradients, 0, SGD(0.1), clients=5)
    with pytest.raises(InvalidValueError, match="sizes must be above 0 for at least one client"):
        engine.check()


@pytest.mark.parametrize("batched", [False, True])
def test_clients_are_checked_as_a_whole(problem: Any, batched: bool) -> None:
    plan = RandomParticipationSGD(1.0, 1.0, clip=50.0, noise_multiplier=1e-4, unit="client", seed=1)
    steps = problem.gradients if batched else local_steps(problem.gradients, 0.1, batch_size=2)
    engine = InProcessEngine(
        plan, problem.start(), steps, problem.size, SGD(0.5),
        clients=problem.clients, batched=batched,
    )  # fmt: skip
    found = engine.check()
    assert found.gradients == problem.clients
    assert found.loss_change < 0.0


def test_the_rate_is_tried_from_rest(problem: Any, plan_of: Any) -> None:
    engine = InProcessEngine(
        plan_of(**QUIET), problem.start(), problem.gradients, 6, Adam(0.05), clients=40
    )
    engine.run(3)
    assert engine.check().loss_change < 0.0
    assert engine.server.round == 3
