"""The trial of a node on made-up elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.federated.flower.test_node import (
    ALWAYS,
    BUDGET,
    SIZE,
    asked,
    entries,
    never,
    ones,
    plan_of,
)

from turnout.errors import InvalidTypeError
from turnout.federated.flower import client_app, participation_mod

# The trial on made-up elements.


WRONG = [
    (lambda model: {"weights": np.ones((2, 2, 2)), "bias": np.full((2, 1), np.nan)}, "finite"),
    (lambda model: {"weights": np.ones((2, 2, 2)), "bias": np.ones(2)}, "must have shape"),
    (lambda model: {"weights": np.ones((2, 2, 2)), "bias": np.ones((2, 1), int)}, "float64"),
    (lambda model: 1 / 0, "see the node's log"),
]


@pytest.mark.parametrize(("trial", "text"), WRONG)
@pytest.mark.parametrize("mode", ["trusted_server", "participants_only", "always_send"])
def test_a_trial_that_fails_is_told_and_nothing_is_paid(
    trial: Any, text: str, mode: str, context: Any
) -> None:
    # The same whether the node has data or not, since the trial has none of them.
    for size in (0, SIZE):
        app = client_app(
            lambda at, size=size: (size, never),
            budget=BUDGET,
            size_bound=SIZE,
            trusts_server=True,
            trial=trial,
        )
        node = context()
        reply = app(asked(plan_of(**ALWAYS, mode=mode)), node)
        assert reply.has_error()
        assert "the trial of the gradients failed" in reply.error.reason
        assert text in reply.error.reason
        assert "turnout-ledger" not in node.state


def test_a_trial_that_succeeds_is_made_once_in_a_run(context: Any) -> None:
    calls: list[Any] = []

    def trial(model: Any) -> Any:
        calls.append(model)
        return ones(model, np.arange(2))

    def failing(message: Any, at: Any) -> Any:
        raise ValueError("the handler fails, and the node sends noise alone")

    node, plan = context(), plan_of(**ALWAYS)
    mod = participation_mod(SIZE, budget=BUDGET, trial=trial)
    for number in range(3):
        reply = mod(asked(plan, number), node, failing)
        assert not reply.has_error()
    assert len(calls) == 1
    assert entries(node) == 3
    with pytest.raises(InvalidTypeError, match="trial must be a function"):
        participation_mod(SIZE, trial=3)  # type: ignore[arg-type]
