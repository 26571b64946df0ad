"""A model of five numbers, its data, and the plan of a run; shared by nodes, server and tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout.federated import RandomParticipationSGD, SecureSum
from turnout.federated.trees import vector

SIZE = 12
COLUMNS = 5

#: A nested model, and one of arrays with names, in an order that is not that of the names.
NESTED = {"weights": np.zeros(3), "layers": [np.zeros((1, 1)), (np.zeros(1, np.float32),)]}
NAMED = {"weights": np.zeros((1, 4)), "bias": np.zeros(1, np.float32)}


def plan_of(config: Any) -> RandomParticipationSGD:
    """The plan that a run's configuration describes."""
    target = {"epsilon": config["epsilon"], "delta": 1e-5, "rounds": config["rounds"]}
    return RandomParticipationSGD(
        config["client-rate"],
        0.5,
        1.0,
        **(target if config["epsilon"] else {"noise_multiplier": 1.0}),
        local_size=SIZE,
        mode=config["mode"],
        seed=config["seed"],
        secure_sum=SecureSum(config["least"], 0) if config.get("least") else None,
    )


def rows_of(client: int) -> npt.NDArray[np.float64]:
    """The elements of a client."""
    return np.random.default_rng(client).normal(size=(SIZE - client % 3, COLUMNS))


def gradients(model: Any, client: int, elements: Any) -> npt.NDArray[np.float64]:
    """Per-example gradients of least squares, one after the other."""
    numbers = vector(model)
    return np.array([row * (float(row @ numbers) - 1.0) for row in rows_of(client)[elements]])
