"""What a training came to, round by round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import LocalSampling, PrivacyLedger
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import Server


def test_epsilon_is_that_of_the_ledger_after_each_round(problem: Any, plan_of: Any) -> None:
    ledger = PrivacyLedger(80.0, 1e-5)
    ledger.spend(LocalSampling(0.1, 2.0), label="another release")
    engine = problem.engine(plan_of(), ledger=ledger)
    spent: list[float] = []
    engine.run(
        4,
        evaluate=lambda model: {"norm": np.linalg.norm(model)},
        callback=lambda number, model: spent.append(engine.server.ledger.spent()),
    )
    records = engine.server.history.to_records()
    assert [row["round"] for row in records] == [1, 2, 3, 4]
    assert [row["available"] for row in records] == [40] * 4
    np.testing.assert_allclose([row["epsilon"] for row in records], spent, rtol=1e-9)
    assert records[-1]["norm"] == np.linalg.norm(engine.server.parameters)
    assert len(engine.server.history) == 4
    assert "4 rounds, measured: norm" in repr(engine.server.history)


def test_in_a_long_training_epsilon_is_never_too_small(problem: Any, plan_of: Any) -> None:
    plan = plan_of(noise_multiplier=4.0)
    engine = problem.engine(plan, ledger=PrivacyLedger(80.0, 1e-5))
    engine.run(30)
    shown = [row["epsilon"] for row in engine.server.history.to_records()]
    assert len(set(shown)) == 20
    assert shown == sorted(shown)
    for number in (1, 2, 15, 16, 30):
        assert shown[number - 1] >= plan.mechanism.compose(number).epsilon(1e-5) * (1 - 1e-9)
    assert shown[-1] == pytest.approx(engine.server.ledger.spent())


def test_rounds_that_were_given_up_are_paid(problem: Any, plan_of: Any) -> None:
    server = Server(plan_of(), problem.start(), problem.engine(plan_of()).server._optimizer,
                    ledger=PrivacyLedger(80.0, 1e-5))  # fmt: skip
    server.open(available=3)
    server._abandon()
    server.open(available=5)
    server.close()
    first, second = server.history.to_records()
    assert (first["step"], second["step"]) == (False, True)
    assert (first["available"], second["available"]) == (3, 5)
    assert 0.0 < first["epsilon"] < second["epsilon"]


def test_a_training_without_a_ledger_has_no_epsilon(problem: Any, plan_of: Any) -> None:
    engine = problem.engine(plan_of())
    with pytest.raises(InvalidValueError, match="history must have a number to draw"):
        engine.server.history.plot()
    engine.run(5, evaluate=lambda model: {"norm": np.linalg.norm(model)}, evaluate_every=3)
    records = engine.server.history.to_records()
    assert [row["epsilon"] for row in records] == [None] * 5
    assert [row["norm"] is not None for row in records] == [False, False, True, False, True]
    assert engine.server.history.to_pandas().shape == (5, 5)


def test_the_picture_has_a_panel_for_each_number(problem: Any, plan_of: Any) -> None:
    engine = problem.engine(plan_of(), ledger=PrivacyLedger(80.0, 1e-5))
    engine.run(6, evaluate=lambda model: {"loss": float(model @ model), "size": 1.0})
    figure = engine.server.history.plot()
    titles = [axes.get_title(loc="left").split(":")[0] for axes in figure.axes]
    assert titles == ["epsilon", "loss", "size"]
    records = engine.server.history.to_records()
    for axes, name in zip(figure.axes, titles, strict=True):
        drawn = axes.lines[0].get_xydata()
        np.testing.assert_array_equal(drawn, [(row["round"], row[name]) for row in records])


def test_a_number_that_is_not_finite_does_not_spoil_the_picture(problem: Any, plan_of: Any) -> None:
    engine = problem.engine(plan_of(), ledger=PrivacyLedger(80.0, 1e-5))
    losses = iter([2.0, np.inf, np.nan, 1.0])
    engine.run(4, evaluate=lambda model: {"loss": next(losses), "ratio": np.nan})
    figure = engine.server.history.plot()
    assert len(figure.axes) == 2  # of the ratio there is nothing to draw
    assert figure.axes[1].get_ylim() == (0.0, 1.08 * 2.0)
    figure.canvas.draw()


def test_rounds_keep_their_numbers_after_a_checkpoint(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    ledger, more = PrivacyLedger(80.0, 1e-5), {"checkpoint": tmp_path / "training.npz"}
    problem.engine(plan_of(), ledger=ledger, **more).run(30)
    engine = problem.engine(plan_of(), ledger=PrivacyLedger(80.0, 1e-5), **more)
    assert engine.resume()
    engine.run(55)
    records = engine.server.history.to_records()
    assert [row["round"] for row in records] == list(range(31, 56))
    axes = engine.server.history.plot().axes[0]
    assert axes.lines[0].get_xydata()[[0, -1], 0].tolist() == [31, 55]
    assert axes.get_xlim() == (30.5, 55.5)


@pytest.mark.parametrize(
    ("found", "error", "text"),
    [
        (0.5, InvalidTypeError, "evaluate must be a function that gives a dictionary"),
        ({"loss": "low"}, InvalidTypeError, "evaluate: loss"),
        ({3: 0.5}, InvalidValueError, "must name its numbers"),
        ({"epsilon": 0.5}, InvalidValueError, "other than round, available, step, epsilon"),
    ],
)
def test_what_is_no_number_with_a_name_is_refused(
    problem: Any, plan_of: Any, found: Any, error: type[Exception], text: str
) -> None:
    engine = problem.engine(plan_of())
    with pytest.raises(error, match=text):
        engine.run(2, evaluate=lambda model: found)
    with pytest.raises(InvalidTypeError, match="evaluate must be a function"):
        engine.run(2, evaluate=3)
