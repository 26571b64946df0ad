"""A model that every test can compute: least squares, example by example."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout.federated import SGD, CosineDecay, InProcessEngine, RandomParticipationSGD

Floats = npt.NDArray[np.float64]


class LeastSquares:
    """Many clients with rows of numbers and targets; gradients one example at a time."""

    def __init__(self, clients: int, size: int, columns: int = 3, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.rows = random.normal(size=(clients, size, columns))
        truth = np.linspace(-1.0, 1.0, columns)
        self.targets = self.rows @ truth + random.normal(0.0, 0.1, (clients, size))
        self.clients, self.size, self.columns = clients, size, columns
        self.calls = 0

    def start(self) -> Floats:
        return np.zeros(self.columns)

    def gradients(self, model: Floats, clients: Any, elements: npt.NDArray[np.int64]) -> Floats:
        self.calls += 1
        owners = np.broadcast_to(clients, elements.shape)
        places = zip(owners.tolist(), elements.tolist(), strict=True)
        chosen = [(self.rows[place], self.targets[place]) for place in places]
        return np.array([row * (float(row @ model) - target) for row, target in chosen])

    def engine(self, plan: RandomParticipationSGD, **more: Any) -> InProcessEngine:
        optimizer = SGD(CosineDecay(0.2, rounds=12, final=0.05), momentum=0.5)
        return InProcessEngine(
            plan, self.start(), self.gradients, self.size, optimizer, clients=self.clients, **more
        )


@pytest.fixture
def problem() -> LeastSquares:
    return LeastSquares(clients=40, size=6)


@pytest.fixture
def plan_of() -> Any:
    def make(**changes: Any) -> RandomParticipationSGD:
        chosen: dict[str, Any] = {
            "client_rate": 0.3, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.5,
            "local_size": 6, "seed": 11,
        }  # fmt: skip
        return RandomParticipationSGD(**{**chosen, **changes})

    return make
