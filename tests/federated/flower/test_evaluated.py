"""What the server measures of the models, in the history of its training and in its picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flwr.app import ArrayRecord, Context, MetricRecord, RecordDict

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
from turnout.federated.flower import (
    RandomParticipationStrategy,
    client_app,
    pack,
    server_app,
    unpack,
)
from turnout.federated.trees import vector

NODES, ROUNDS = 3, 4


def plan_of(**changed: Any) -> RandomParticipationSGD:
    usual: dict[str, Any] = {
        "client_rate": 0.7, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.0,
        "local_size": 12, "mode": "always_send", "seed": 4,
    }  # fmt: skip
    return RandomParticipationSGD(**{**usual, **changed})


@pytest.fixture
def measure(model: ModuleType) -> Callable[[Any], dict[str, Any]]:
    """Measure a model on made-up rows, as an engine and a strategy may."""
    rows = np.random.default_rng(9).normal(size=(30, model.COLUMNS))

    def measured(now: Any) -> dict[str, Any]:
        errors = rows @ vector(now) - 1.0
        # One number as NumPy has it.
        return {"loss": np.float32(np.mean(errors**2)), "accuracy": float(np.mean(errors < 0.5))}

    return measured


@pytest.fixture
def grid(grid_of: Callable[..., Any], model: ModuleType) -> Any:
    def local(context: Context) -> Any:
        number = int(context.node_config["partition-id"])

        def gradients(now: Any, elements: Any) -> Any:
            return model.gradients(now, number, elements)

        return len(model.rows_of(number)), gradients

    return grid_of([client_app(local, plan=plan_of())] * NODES)


def test_the_history_is_that_of_the_engine(
    grid: Any, model: ModuleType, measure: Callable[[Any], Any]
) -> None:
    kept: list[Any] = []
    app = server_app(
        plan_of(),
        model.NAMED,
        SGD(0.5),
        rounds=ROUNDS,
        evaluate=lambda number, now: measure(now),
        on_end=lambda now, server, context: kept.append(server.history),
    )
    app(grid, Context(1, 0, {}, RecordDict(), {}))
    sizes = [len(model.rows_of(client)) for client in range(NODES)]
    engine = InProcessEngine(plan_of(), model.NAMED, model.gradients, sizes, SGD(0.5))
    engine.run(ROUNDS, evaluate=measure)
    (history,) = kept
    rows = history.to_records()
    assert rows == engine.server.history.to_records()
    assert [row["round"] for row in rows] == [1, 2, 3, 4]
    assert len({row["loss"] for row in rows}) == ROUNDS
    assert all(0.0 <= row["accuracy"] <= 1.0 for row in rows)
    pytest.importorskip("matplotlib")
    drawn = [axes.lines[0].get_ydata() for axes in history.plot().axes]
    expected = [[row[name] for row in rows] for name in ("loss", "accuracy")]
    np.testing.assert_array_equal(drawn, expected)


def test_a_strategy_that_goes_on_measures_its_own_rounds(
    grid: Any, model: ModuleType, measure: Callable[[Any], Any], tmp_path: Path
) -> None:
    """Lists, which Flower takes too, are not in the history; a missing measurement is None."""

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord | None:
        if number == 3:
            return None
        found = {name: float(value) for name, value in measure(unpack(arrays)).items()}
        return MetricRecord({**found, "each": [1.0, 2.0]})

    def trained(rounds: int) -> Any:
        strategy = RandomParticipationStrategy(
            plan_of(), SGD(0.5), checkpoint=tmp_path / "training.npz"
        )
        result = strategy.start(grid, pack(model.NAMED), rounds, evaluate_fn=evaluate)
        return strategy.server.history.to_records(), result

    first, result = trained(2)
    assert [sorted(row) for row in first] == [
        ["accuracy", "available", "epsilon", "loss", "round", "step"]
    ] * 2
    for number, row in zip((1, 2), first, strict=True):
        assert row["loss"] == result.evaluate_metrics_serverapp[number]["loss"]
    second, result = trained(4)
    assert [row["loss"] for row in second] == [
        None, result.evaluate_metrics_serverapp[2]["loss"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "error"),
    [({"epsilon": 1.0}, InvalidValueError), ({"loss": "small"}, InvalidTypeError),
     ([0.5], InvalidTypeError)],
)  # fmt: skip
def test_what_is_no_measurement_is_refused_before_a_round_is_paid(
    found: Any, error: type[Exception], grid: Any, model: ModuleType
) -> None:
    app = server_app(
        plan_of(), model.NAMED, SGD(0.5), rounds=ROUNDS, evaluate=lambda number, now: found
    )
    with pytest.raises(error, match="evaluate"):
        app(grid, Context(1, 0, {}, RecordDict(), {}))
    assert not grid.asked
