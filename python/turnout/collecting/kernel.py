"""Kinds whose reports the compiled core draws and counts."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from turnout._types import Array, Unsigned
from turnout.collecting.drawing import Counts as Counted
from turnout.collecting.drawing import Drawn, Noise, rates_of
from turnout.collecting.kind import Kind
from turnout.collecting.sums import WeightedSums
from turnout.collecting.tally import T
from turnout.participation import Participation

#: Support, the number of reports, and the sums of weights and of their squares of nodes with rates
#: of their own.
Tallied = tuple[Array, int, tuple[Unsigned, Unsigned] | None]


class Kernel(Protocol):
    """What the compiled core offers for one kind."""

    @property
    def realized_epsilon(self) -> float: ...
    @property
    def support_probabilities(self) -> tuple[float, float]: ...
    def randomize(
        self, codes: Array, rate: float | Array, seed: Noise = None
    ) -> tuple[Array, Array | None]: ...
    def check(self, reports: Array) -> None: ...
    def supports(self, reports: Array) -> Unsigned: ...
    def tally(self, reports: Array, probabilities: Array | None = None) -> Tallied: ...
    def collect(self, codes: Array, rate: float | Array, seed: Noise = None) -> Tallied: ...
    def simulate(self, true_counts: Unsigned, rate: float, seed: int | None = None) -> Tallied: ...


class KernelKind(Kind[T]):
    """Base class of the kinds that have a kernel, in ``_core`` by itself."""

    #: The type of the support counts: signed where reports hold scores that may be negative.
    support_dtype: ClassVar[np.dtype[Any]] = np.dtype(np.uint64)

    @property
    def _kernel(self) -> Kernel:
        """What the compiled core offers; an oracle of one's own has none and says the rest."""
        kernel: Kernel | None = getattr(self, "_core", None)
        if kernel is None:
            raise NotImplementedError(f"{type(self).__name__} has no compiled kernel")
        return kernel

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._kernel.realized_epsilon

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize codes: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        return Drawn(*self._kernel.randomize(answers, rates_of(participation), noise))

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counted:
        """Count the support: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        return self._counted(self._kernel.tally(reports, probabilities))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counted:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return self._counted(self._kernel.collect(answers, rates_of(participation), noise))

    def _counted(self, tallied: Tallied) -> Counted:
        support, received, sums = tallied
        weights = None if sums is None else WeightedSums(*sums)
        return Counted(support.view(self.support_dtype), received, weights)
