"""The sum of the privacy losses of several releases on one grid."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable
from typing import Protocol

import numpy as np

from turnout._search import first_at_most
from turnout._types import Floats
from turnout.accounting import privacy_loss
from turnout.accounting.values import Divergence

#: How close the values of one round are to the exact ones, relatively.
EXACT = 1e-8

#: The relative width at which a search for epsilon ends.
WIDTH = 1e-10

#: How much of the standard deviation of the sum a grid may move its mean by.
_DRIFT = 1e-5

#: Points of the grid of losses within one standard deviation of a round.
_COARSEST, _FINEST = 20.0, 200.0

#: Points of the grid of losses per doubling, far from zero.
_DENSITY = 512

#: The delta for which the length of a sum is looked at.
_TYPICAL = 1e-6

#: The part of delta by which lower values may be off.
_CHANCE = 0.01

#: How many tilts are tried for each power of ten, and the largest tilt of the farthest loss. The
#: grid has nothing rarer than 1e-300, so a far smaller tilt already leaves only that loss.
_TILTS, _STEEPEST = 15.2, 1e6

#: The farthest loss is at most so many steps away: whole numbers that floating point holds.
_MOST_STEPS = 2.0**52


class Real(Hashable, Protocol):
    """A pair of laws, which compares and hashes by its parameters.

    It may have a ``_lattice``, a step of which all its privacy losses are multiples; the directions
    of a replacement (``replaced``); the directions in which no data lose more (``attains``); others
    like it that may lose more (``near``); and outcomes of positive masses under both laws
    (``_outcomes``), by direction, so that lower values need not allow for what the grid adds.
    """

    @property
    def name(self) -> str:
        """The data that have these laws, in words."""

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""


#: Pairs of laws, and how often each is used.
Parts = tuple[tuple[Real, int], ...]


def _tail(mechanism: Real, direction: str, epsilon: Floats) -> Divergence:
    return _cached(mechanism, direction, epsilon.tobytes())


@functools.lru_cache(maxsize=128)
def _cached(mechanism: Real, direction: str, points: bytes) -> Divergence:
    return mechanism._tail(direction, np.frombuffer(points))


def _ways(law: Real, pair: tuple[str, str]) -> tuple[str, str]:
    """Return the directions of a law: those of a replacement may lose differently."""
    replaced: tuple[str, str] = getattr(law, "replaced", pair)
    return replaced if pair[0] == "replace" else pair


class LossGrid:
    """The losses of all parts in one direction, on one grid.

    If ``merged``, known outcomes are rounded down, for lower values only.
    """

    def __init__(
        self,
        parts: Parts,
        pair: tuple[str, str],
        floor: float,
        finer: float,
        *,
        merged: bool = False,
    ) -> None:
        self._parts = parts
        self._outcomes = [
            getattr(mechanism, "_outcomes", None) if merged else None for mechanism, _ in parts
        ]
        self._finer = finer
        # The reverse direction and the reverse pair need the same evaluations.
        self._profiles = [functools.partial(_tail, mechanism) for mechanism, _ in parts]
        self._pairs = pairs = [_ways(mechanism, pair) for mechanism, _ in parts]
        reached = [
            [privacy_loss.reach(profile, way, floor) for way in ways]
            for profile, ways in zip(self._profiles, pairs, strict=True)
        ]
        self._ends = [(right[0], left[0]) for right, left in reached]
        scales = [
            privacy_loss.scale_of(profile, *ways, ends)
            for profile, ways, ends in zip(self._profiles, pairs, self._ends, strict=True)
        ]
        rounds = sum(count for _, count in parts)
        square = sum(count * scale * scale for (_, count), scale in zip(parts, scales, strict=True))
        self.spread = math.sqrt(square)
        # What upper values of delta keep beyond all losses may be no outcome that there is.
        self.least = privacy_loss.combined(
            [
                (min(right[1], privacy_loss.endless(profile, ways[0])), count)
                for profile, (_, count), ways, (right, _) in zip(
                    self._profiles, parts, pairs, reached, strict=True
                )
            ]
        ) * (1.0 - EXACT)
        if self.spread <= 0.0:
            # Every loss is zero or infinite, or too small for a number: none loses more than this.
            zero = np.zeros(1)
            self.most = privacy_loss.combined(
                [
                    (float(mechanism._tail(ways[0], zero).delta[0]), count)
                    for (mechanism, count), ways in zip(parts, pairs, strict=True)
                ]
            )
            return
        # Connecting dots moves the mean of each loss by at most step^2 / 8.
        single = self.spread / math.sqrt(rounds)
        step = math.sqrt(8.0 * _DRIFT * self.spread / rounds)
        farthest = max(max(ends) for ends in self._ends)
        step = min(max(step, single / _FINEST), single / _COARSEST) / finer
        self._step = max(step, farthest / _MOST_STEPS)
        lattice: float | None = getattr(parts[0][0], "_lattice", None)
        if len(parts) == 1 and lattice is not None:
            # Grid points on the losses themselves: nothing is rounded.
            self._step = lattice / max(1, math.ceil(lattice / self._step))
        self._losses = self._connected()
        # A loss that is as rare as it is large hardly counts for the spread: its tilts are smaller.
        least = min(1e-3 / self.spread, 1.0 / farthest)
        most = min(10.0**3.3 / self.spread, _STEEPEST / farthest)
        self._orders = np.geomspace(least, most, math.ceil(_TILTS * math.log10(most / least)))
        self._moments = self._log_moments(self._losses)
        # Where the sum is long for its step, a coarser one.
        order = float(self._orders[self._best(_TYPICAL)[0]])
        low, high = privacy_loss.window(self._losses, order)
        if high - low > privacy_loss.LONGEST:
            self._step *= (high - low) / privacy_loss.LONGEST
            self._losses = self._connected()
            self._moments = self._log_moments(self._losses)

    def _connected(self) -> privacy_loss.Parts:
        density = round(_DENSITY * self._finer)
        return [
            (
                privacy_loss.connect(profile, ways, self._step, ends, density)
                if outcomes is None
                else privacy_loss.merge(outcomes(ways[0]), self._step, ends, density),
                count,
            )
            for profile, outcomes, (_, count), ways, ends in zip(
                self._profiles, self._outcomes, self._parts, self._pairs, self._ends, strict=True
            )
        ]

    def _grown(self, delta: float) -> tuple[float, float]:
        """Bound how much the grid raised the sum, and the part of delta where it is more."""
        if all(outcomes is not None for outcomes in self._outcomes):
            return 0.0, 0.0
        chance = _CHANCE * delta
        return privacy_loss.growth(self._losses, chance), chance

    def _log_moments(self, parts: privacy_loss.Parts) -> Floats:
        return np.array(
            [sum(count * loss.log_moment(float(o)) for loss, count in parts) for o in self._orders]
        )

    @property
    def _offset(self) -> float:
        """What the sum of the losses has beside its multiple of the step."""
        return sum(count * loss.offset for loss, count in self._losses)

    def chernoff(self, epsilon: float) -> float:
        """Estimate delta at an epsilon."""
        if self.spread <= 0.0:
            return self.least
        return math.exp(min(0.0, float((self._moments - self._orders * epsilon).min())))

    def delta(self, epsilon: float, upper: bool) -> float:
        """Bound delta at an epsilon, from above or from below."""
        if self.spread <= 0.0:
            return self.most if upper else self.least
        epsilon -= self._offset
        law = self._law(int((self._moments - self._orders * epsilon).argmin()))
        if upper:
            return law.delta(epsilon, upper=True)
        grown, chance = self._grown(max(law.delta(epsilon, upper=False), 1e-300))
        # Losses without end are in no sum: they are apart from those that are finite.
        return min(1.0, self.least + max(0.0, law.delta(epsilon + grown, upper=False) - chance))

    def epsilon(self, delta: float, upper: bool) -> float:
        """Bound epsilon at a delta, from above or from below."""
        if self.spread <= 0.0:
            lost = self.most if upper else self.least
            return 0.0 if lost <= delta else math.inf
        if upper and privacy_loss.infinite_mass(self._losses) >= delta:
            return math.inf
        best, chernoff = self._best(delta)
        law = self._law(best)
        start = max(chernoff, self.spread)
        return self._upper(law, delta, start) if upper else self._lower(law, delta, start)

    def _best(self, delta: float) -> tuple[int, float]:
        """Return the tilt that minimises Chernoff's bound of epsilon, and that bound."""
        orders = self._orders
        bounds = (
            self._moments
            - math.log(delta)
            + orders * np.log(orders)
            - (1.0 + orders) * np.log1p(orders)
        ) / orders
        best = int(bounds.argmin())
        return best, float(bounds[best])

    def _law(self, best: int) -> privacy_loss.Sum:
        """Return the sum under the best tilt, or under a smaller one if the window is too long."""
        for place in range(best, -1, -1):
            low, high = privacy_loss.window(self._losses, float(self._orders[place]))
            if high - low <= 2 * privacy_loss.LONGEST and max(high, -low) <= _MOST_STEPS:
                return privacy_loss.Sum(self._losses, float(self._orders[place]), (low, high))
        return privacy_loss.Sum(self._losses, 0.0, (0, 0))

    def _upper(self, law: privacy_loss.Sum, delta: float, start: float) -> float:
        def bound(epsilon: float) -> float:
            return law.delta(epsilon, upper=True)

        low = law.least_epsilon
        if bound(low) <= delta:
            return low
        high = first_below(bound, delta, max(start, 1.1 * low))
        if math.isinf(high):
            return high
        return first_at_most(bound, delta, low, high, width=WIDTH)

    def _lower(self, law: privacy_loss.Sum, delta: float, start: float) -> float:
        grown, chance = self._grown(delta)

        def bound(epsilon: float) -> float:
            return self.least + law.delta(epsilon, upper=False) - chance

        if self.least > delta:
            return math.inf
        high = first_below(bound, delta, max(start, 1.1 * law.least_epsilon))
        # Far below, the tilted law says nothing: look for where it does.
        below = (high * (1.0 - 2.0**power) for power in range(-12, 1))
        low = next((epsilon for epsilon in below if bound(epsilon) > delta), -1.0)
        if low < 0.0:
            return 0.0
        found = first_at_most(bound, delta, low, high, width=WIDTH)
        return max(0.0, found * (1.0 - 2.0 * WIDTH) - grown + self._offset)


def first_below(function: Callable[[float], float], target: float, start: float) -> float:
    """Search upwards for where a function is at most a target; infinity if nowhere."""
    for _ in range(60):
        if function(start) <= target:
            return start
        start *= 1.25
    return math.inf
