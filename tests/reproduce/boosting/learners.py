"""The weak learner that tests of boosting share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Nearby:
    """The simplest learner: is a point where most of the records are?"""

    def __init__(self, odds: float = 2.0) -> None:
        self.odds = odds

    def fit(self, X: Floats, y: Any) -> Nearby:
        self.low, self.high = np.quantile(X[y == 1], [0.05, 0.95], axis=0)
        return self

    def decision_function(self, X: Floats) -> Floats:
        inside = ((self.low <= X) & (self.high >= X)).all(axis=1)
        return np.where(inside, self.odds, -self.odds)
