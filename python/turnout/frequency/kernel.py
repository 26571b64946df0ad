"""The compiled kernel of an oracle, and the calls that give it answers and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from turnout._core import NoiseStreams
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.collecting.taking_part import common_rate
from turnout.participation import Participation, Personalized

if TYPE_CHECKING:
    from turnout.collecting.reports import Reports
    from turnout.frequency.oracle import FrequencyOracle
    from turnout.frequency.tally import Tally

__all__ = [
    "Noise",
    "collected",
    "randomized",
]

Array = npt.NDArray[Any]
Counts = npt.NDArray[np.uint64]

#: Where noise comes from: fresh from the operating system, a seed, or the streams of a job's key.
Noise = int | NoiseStreams | None


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
        self, true_counts: Counts, rate: float, seed: Noise = None
    ) -> tuple[Array, int]: ...


def randomized(
    oracle: FrequencyOracle, codes: Array, participation: Participation, noise: Noise
) -> Reports:
    """Randomize codes that the oracle's domain gave.

    Raises
    ------
    CodeOutsideDomainError
        If a code is outside the domain.
    InvalidValueError
        If there are not as many personal probabilities as codes.
    """
    from turnout.collecting.reports import Reports  # noqa: PLC0415

    if isinstance(participation, Personalized):
        reports, probabilities = oracle._kernel.randomize_personalized(
            codes, participation.probabilities, noise
        )
        design = DesignSums.of(participation.probabilities)
        return Reports._made(oracle, participation, reports, codes.size, probabilities, design)
    reports = oracle._kernel.randomize(codes, common_rate(participation), noise)
    return Reports._made(oracle, participation, reports, codes.size)


def collected(
    oracle: FrequencyOracle, codes: Array, participation: Participation, noise: Noise
) -> Tally:
    """Randomize and count codes that the oracle's domain gave, in one pass.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :func:`randomized`.
    """
    from turnout.collecting.plan import Plan  # noqa: PLC0415
    from turnout.frequency.tally import Tally  # noqa: PLC0415

    plan = Plan(oracle, participation)
    if isinstance(participation, Personalized):
        support, received, *sums = oracle._kernel.collect_personalized(
            codes, participation.probabilities, noise
        )
        weights, design = WeightedSums(*sums), DesignSums.of(participation.probabilities)
        return Tally(plan, support, received, codes.size, weights=weights, design=design)
    support, received = oracle._kernel.collect(codes, common_rate(participation), noise)
    return Tally(plan, support, received, codes.size)
