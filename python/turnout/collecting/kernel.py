"""Kinds whose reports the compiled core draws and counts."""

from __future__ import annotations

from typing import Protocol

from turnout._types import Array, Unsigned
from turnout.collecting.drawing import Counts as Counted
from turnout.collecting.drawing import Drawn, Noise
from turnout.collecting.kind import Kind
from turnout.collecting.sums import WeightedSums
from turnout.collecting.taking_part import probabilities_of
from turnout.collecting.tally import T
from turnout.participation import Participation


class Kernel(Protocol):
    """What the compiled core offers for one kind."""

    @property
    def realized_epsilon(self) -> float: ...
    @property
    def support_probabilities(self) -> tuple[float, float]: ...
    def randomize(self, codes: Array, rate: float, seed: Noise = None) -> Array: ...
    def randomize_personalized(
        self, codes: Array, probabilities: Array, seed: Noise = None
    ) -> tuple[Array, Array]: ...
    def check(self, reports: Array) -> None: ...
    def supports(self, reports: Array) -> Unsigned: ...
    def tally(self, reports: Array) -> Array: ...
    def tally_personalized(
        self, reports: Array, probabilities: Array
    ) -> tuple[Array, Unsigned, Unsigned]: ...
    def collect(self, codes: Array, rate: float, seed: Noise = None) -> tuple[Array, int]: ...
    def collect_personalized(
        self, codes: Array, probabilities: Array, seed: Noise = None
    ) -> tuple[Array, int, Unsigned, Unsigned]: ...
    def simulate(
        self, true_counts: Unsigned, rate: float, seed: int | None = None
    ) -> tuple[Array, int]: ...


class KernelKind(Kind[T]):
    """Base class of the kinds that have a kernel, in ``_core`` by itself."""

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
        rate = participation.uniform_rate
        if rate is not None:
            return Drawn(self._kernel.randomize(answers, rate, noise))
        probabilities = probabilities_of(participation)
        return Drawn(*self._kernel.randomize_personalized(answers, probabilities, noise))

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counted:
        """Count the support: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        if probabilities is None:
            return Counted(self._kernel.tally(reports), len(reports))
        support, *sums = self._kernel.tally_personalized(reports, probabilities)
        return Counted(support, len(reports), WeightedSums(*sums))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counted:
        """Randomize and count: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        rate = participation.uniform_rate
        if rate is not None:
            return Counted(*self._kernel.collect(answers, rate, noise))
        probabilities = probabilities_of(participation)
        support, received, *sums = self._kernel.collect_personalized(answers, probabilities, noise)
        return Counted(support, received, WeightedSums(*sums))
