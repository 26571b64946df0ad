"""What tests of estimates share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

Floats = npt.NDArray[np.float64]


#: People in each answer to "native country" in the Adult data; of other numbers of answers every
#: so many-th, or each several times.
NATIVE_COUNTRY = (
    29170, 643, 583, 198, 137, 121, 114, 106, 100, 95, 90, 81, 80, 75, 73, 70, 67, 64, 62, 60, 59,
    51, 44, 43, 37, 34, 31, 29, 29, 28, 24, 20, 19, 19, 18, 18, 16, 14, 13, 13, 12, 1,
)  # fmt: skip


def shapes_of(k: int, seed: int) -> dict[str, Floats]:
    """Frequencies of eleven shapes."""
    ranks = np.arange(1.0, k + 1.0)
    generator = np.random.default_rng(seed)
    shapes = {
        "zipf": 1 / ranks,
        "uniform": np.ones(k),
        "geometric": 0.9**ranks,
        "sparse": (ranks <= max(1, k // 10)).astype(np.float64),
        "half on one": np.r_[1.0, np.full(k - 1, 1 / (k - 1))],
        "bell": np.exp(-0.5 * ((ranks - (k + 1) / 2) / (k / 6)) ** 2),
        "dirichlet .5": generator.gamma(0.5, size=k),
        "dirichlet 1": generator.gamma(1.0, size=k),
        "ramp": ranks,
        "native country": np.array(NATIVE_COUNTRY)[np.linspace(0, 41, k).astype(int)] + 0.0,
        "two levels": np.where(ranks <= k // 2, 3.0, 1.0),
    }
    return {name: shape / shape.sum() for name, shape in shapes.items()}


@pytest.fixture
def populations() -> Callable[[int, int], dict[str, Floats]]:
    """Frequencies of eleven shapes, for a number of answers and a seed."""
    return shapes_of
