"""What the compiled core offers for an oracle."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from turnout.collecting.drawing import Noise

__all__ = ["Kernel"]

Array = npt.NDArray[Any]
Counts = npt.NDArray[np.uint64]


class Kernel(Protocol):
    """What the compiled core offers for one oracle."""

    @property
    def realized_epsilon(self) -> float: ...
    @property
    def support_probabilities(self) -> tuple[float, float]: ...
    def randomize(self, codes: Array, rate: float, seed: Noise = None) -> Array: ...
    def randomize_personalized(
        self, codes: Array, probabilities: Array, seed: Noise = None
    ) -> tuple[Array, Array]: ...
    def check(self, reports: Array) -> None: ...
    def supports(self, reports: Array) -> Counts: ...
    def tally(self, reports: Array) -> Array: ...
    def tally_personalized(
        self, reports: Array, probabilities: Array
    ) -> tuple[Array, Counts, Counts]: ...
    def collect(self, codes: Array, rate: float, seed: Noise = None) -> tuple[Array, int]: ...
    def collect_personalized(
        self, codes: Array, probabilities: Array, seed: Noise = None
    ) -> tuple[Array, int, Counts, Counts]: ...
    def simulate(
        self, true_counts: Counts, rate: float, seed: int | None = None
    ) -> tuple[Array, int]: ...
