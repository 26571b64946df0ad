"""scikit-learn's digits, divided among clients: what the tests of JAX and PyTorch train on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

CLIENTS, SIZE = 75, 20
#: A plan that learns them, and costs little because the noise does.
PLAN: dict[str, Any] = {
    "client_rate": 0.4, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.0, "local_size": 20,
    "batch_slack": 0.01, "seed": 5,
}  # fmt: skip


class Digits:
    """Images (1, 8, 8) from 0 to 1 and labels: of clients, and others to measure with."""

    def __init__(self) -> None:
        found = load_digits()
        order = np.random.default_rng(0).permutation(len(found.target))
        images = (found.images[order, None] / 16.0).astype(np.float32)
        labels = found.target[order].astype(np.int64)
        many = CLIENTS * SIZE
        self.images: npt.NDArray[Any] = images[:many].reshape(CLIENTS, SIZE, 1, 8, 8)
        self.labels: npt.NDArray[Any] = labels[:many].reshape(CLIENTS, SIZE)
        self.test = images[many:], labels[many:]
