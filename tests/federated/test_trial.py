"""Gradients that are wrong for every element: found before anything is spent, or in the round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import PrivacyLedger
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import SGD, Client, InProcessEngine, Server

WRONG = [
    (lambda count: np.full((count, 3), np.nan), InvalidValueError, "must be finite numbers"),
    (lambda count: np.full((count, 3), np.inf), InvalidValueError, "must be finite numbers"),
    (lambda count: np.zeros((count, 2)), InvalidValueError, r"must have shape \(examples, 3\)"),
    (lambda count: np.zeros(3), InvalidValueError, r"must have shape \(examples, 3\)"),
    (lambda count: np.zeros((count, 3), np.float16), InvalidTypeError, "float32 or float64"),
    (lambda count: np.zeros((count, 3), np.int64), InvalidTypeError, "float32 or float64"),
]
MISCOUNTED = [
    (lambda count: np.zeros((1, 3)), InvalidValueError, "neither their mean, nor a change by"),
    (lambda count: np.zeros((count + 1, 3)), InvalidValueError, "each of the 2 elements, got 3"),
]
WIDE = 50.0


def spending(plan_of: Any, **changes: Any) -> tuple[Any, PrivacyLedger]:
    return plan_of(noise_multiplier=4.0, **changes), PrivacyLedger(WIDE, 1e-5)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("case", WRONG + MISCOUNTED)
def test_the_engine_finds_it_before_anything_is_spent(
    plan_of: Any, case: Any, batched: bool, tmp_path: Path
) -> None:
    wrong, error, text = case
    plan, ledger = spending(plan_of, seed=None)
    engine = InProcessEngine(
        plan,
        np.zeros(3),
        lambda model, client, elements: wrong(elements.size),
        6,
        SGD(0.1),
        clients=40,
        ledger=ledger,
        checkpoint=tmp_path / "training.npz",
        batched=batched,
    )
    for _ in range(2):  # and again: nothing is remembered as tried
        with pytest.raises(error, match=text):
            engine.run(5)
    assert (ledger.spent(), engine.server.round) == (0.0, 0)
    assert not list(tmp_path.iterdir())


def test_the_engine_tries_several_clients(problem: Any, plan_of: Any) -> None:
    problem.rows[:5, :2] = np.nan
    plan, ledger = spending(plan_of)
    sizes = np.array([0, 0, *[6] * 38])
    engine = InProcessEngine(
        plan, problem.start(), problem.gradients, sizes, SGD(0.1), ledger=ledger
    )
    assert np.isfinite(engine.run(2)).all()
    assert engine.server.round == 2
    problem.rows[:, :2] = np.nan
    again = InProcessEngine(plan, problem.start(), problem.gradients, sizes, SGD(0.1))
    with pytest.raises(InvalidValueError, match="nothing was spent"):
        again.run(1)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("mode", ["trusted_server", "always_send", "participants_only"])
def test_a_round_whose_gradients_are_all_nan_is_an_error_and_stays_paid(
    problem: Any, plan_of: Any, mode: str, batched: bool
) -> None:
    plan, ledger = spending(plan_of, mode=mode)
    engine = problem.engine(plan, ledger=ledger, batched=batched)
    engine.run(2)
    model = engine.server.parameters
    rows = problem.rows.copy()
    problem.rows[:] = np.nan
    with pytest.raises(InvalidValueError, match=r"for all \d+ elements that round 2 sampled"):
        engine.run(5)
    np.testing.assert_array_equal(engine.server.parameters, model)
    assert engine.server.round == 3
    assert engine.server.ledger.entries[0].rounds == 3
    # One element with a gradient is enough: the others count as zero.
    problem.rows[:, 1:] = rows[:, 1:]
    assert np.isfinite(engine.run(5)).all()


def test_a_round_that_samples_nobody_is_no_error(plan_of: Any) -> None:
    plan, ledger = spending(plan_of, client_rate=1e-9)
    engine = InProcessEngine(
        plan, np.zeros(3), lambda model, client, elements: np.ones((elements.size, 3)), 6, SGD(0.1),
        clients=40, ledger=ledger,
    )  # fmt: skip
    engine.run(3)
    assert engine.server.round == 3


@pytest.mark.parametrize(("wrong", "error", "text"), WRONG)
def test_a_server_tries_made_up_elements_before_it_pays(
    plan_of: Any, wrong: Any, error: type[Exception], text: str
) -> None:
    plan, ledger = spending(plan_of)
    server = Server(plan, np.zeros(3), SGD(0.1), ledger=ledger, trial=lambda model: wrong(4))
    with pytest.raises(error, match=text):
        server.open(available=10)
    assert (ledger.spent(), server.round) == (0.0, 0)
    calls: list[Any] = []

    def good(model: Any) -> Any:
        calls.append(model)
        return np.ones((4, 3))

    server = Server(plan, np.zeros(3), SGD(0.1), ledger=ledger, trial=good)
    for _ in range(2):
        server.open(available=10)
        server.close()
    assert len(calls) == 1


@pytest.mark.parametrize(("wrong", "error", "text"), WRONG)
def test_a_client_tries_made_up_elements_before_it_pays_or_draws(
    plan_of: Any, wrong: Any, error: type[Exception], text: str
) -> None:
    plan, ledger = spending(plan_of, client_rate=1.0)
    for size in (0, 6):  # whether it has data makes no difference
        client = Client(plan, size, parameters=3, ledger=ledger)
        with pytest.raises(error, match=text):
            client.answer(0, lambda elements: pytest.fail("drawn"), trial=lambda: wrong(4))
        assert ledger.spent() == 0.0
    update = client.answer(
        0, lambda elements: np.ones((elements.size, 3)), trial=lambda: np.ones((1, 3))
    )
    assert update is not None
    # What was tried is not tried again.
    client.answer(
        1, lambda elements: np.ones((elements.size, 3)), trial=lambda: pytest.fail("tried")
    )


def test_what_all_gradients_of_a_client_are_shows_in_nothing_that_it_sends(plan_of: Any) -> None:
    plan = plan_of(client_rate=1.0, sample_rate=1.0, mode="always_send")
    broken = Client(plan, 6, parameters=3).answer(
        0, lambda elements: np.full((elements.size, 3), np.nan), trial=lambda: np.ones((1, 3))
    )
    absent = Client(plan, 0, parameters=3).answer(0, lambda elements: pytest.fail("no elements"))
    assert broken is not None
    assert absent is not None
    np.testing.assert_array_equal(broken.values, absent.values)


def test_a_trial_gives_at_least_one_gradient_and_is_a_function(plan_of: Any) -> None:
    server = Server(plan_of(), np.zeros(3), SGD(0.1), trial=lambda model: np.ones((0, 3)))
    with pytest.raises(InvalidValueError, match="at least one gradient"):
        server.open(available=1)
    with pytest.raises(InvalidTypeError, match="trial must be a function"):
        Server(plan_of(), np.zeros(3), SGD(0.1), trial=np.ones((1, 3)))  # type: ignore[arg-type]
