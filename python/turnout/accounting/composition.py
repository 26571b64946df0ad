"""Composition: what many releases spend together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from typing import ClassVar, Protocol, overload

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._search import first_at_most
from turnout.accounting import privacy_loss
from turnout.accounting.values import Divergence, directions, nonnegative, shaped, unit_interval

__all__ = ["Composition", "Release"]

Floats = npt.NDArray[np.float64]

#: How close the values of one round are to the exact ones, relatively.
_EXACT = 1e-8

#: The relative width at which a search for epsilon ends.
_WIDTH = 1e-10

#: How much of the standard deviation of the sum a grid may move its mean by.
_DRIFT = 1e-5

#: Points of the grid of losses within one standard deviation of a round.
_COARSEST, _FINEST = 20.0, 200.0

#: Points of the grid of losses per doubling, far from zero.
_DENSITY = 512

#: Lower values need a finer grid to be as tight.
_FINER = 8.0

#: The delta for which the length of a sum is looked at.
_TYPICAL = 1e-6

#: The part of delta by which lower values may be off.
_CHANCE = 0.01

#: How many tilts are tried for each power of ten, and the largest one that the farthest loss gets:
#: what is rarer than 1e-300 is not on the grid, so that far less leaves nothing but that loss.
_TILTS, _STEEPEST = 15.2, 1e6

#: The farthest loss is at most so many steps away: whole numbers that floating point holds.
_MOST_STEPS = 2.0**52


class Release(Hashable, Protocol):
    """What composition asks of a mechanism, which compares and hashes by its parameters."""

    #: Whether delta is that of the worst pair of laws, but for rounding.
    exact: ClassVar[bool]

    @property
    def lattice(self) -> float | None:
        """A step of which all privacy losses are multiples, if there is one."""

    def delta(self, epsilon: float, adjacency: str | None = None) -> float:
        """Bound delta at an epsilon, from above."""

    def epsilon(self, delta: float, adjacency: str | None = None) -> float:
        """Bound epsilon at a delta, from above."""

    def tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""


class Composition:
    """Several releases from the same data, each of which may depend on the ones before it.

    Made by :func:`compose` and :meth:`Mechanism.compose`. The upper values are guarantees: privacy
    losses are put on a grid pessimistically, and what is truncated or rounded is added. The lower
    values show how tight they are: they bound the loss of the worst pair of laws of the mechanisms
    from below, but for rounding.

    Notes
    -----
    The profile of a mechanism is the supremum over its neighbouring data sets, so that it dominates
    each of them under adaptive composition (Zhu, Dong, Wang, "Optimal Accounting of Differential
    Privacy via Characteristic Function", 2022). Sums of losses are computed by Fourier transforms
    under an exponential tilt, so that very small deltas are bounded closely too.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> training = LocalSampling(sample_rate=0.01, noise_multiplier=1.0).compose(rounds=1000)
    >>> low, high = training.epsilon_bounds(1e-5)
    >>> low <= high == training.epsilon(1e-5)
    True
    >>> round(high, 2)
    1.83
    """

    def __init__(self, parts: Iterable[tuple[Release, int]], adjacency: str) -> None:
        merged: dict[Release, int] = {}
        for mechanism, rounds in parts:
            merged[mechanism] = merged.get(mechanism, 0) + rounds
        self._parts = tuple(merged.items())
        self._adjacency = adjacency
        self._grids: dict[tuple[str, float, bool], _Grid] = {}

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """The mechanisms, and how often each is used."""
        return self._parts

    @property
    def rounds(self) -> int:
        """How many releases there are."""
        return sum(rounds for _, rounds in self._parts)

    @property
    def adjacency(self) -> str:
        """What neighbouring data sets are."""
        return self._adjacency

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> Floats | float: ...
    def delta(self, epsilon: npt.ArrayLike) -> Floats | float:
        """Bound delta at an epsilon, from above.

        Parameters
        ----------
        epsilon
            One or many finite numbers of at least 0, of any shape.

        Returns
        -------
        float or numpy.ndarray
            Delta in [0, 1], float64, in the shape of ``epsilon``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``epsilon`` is out of range.
        """
        points = nonnegative("epsilon", epsilon)
        return shaped(np.array([self._delta(float(e), True) for e in points.ravel()]), points)

    def delta_bounds(self, epsilon: float) -> tuple[float, float]:
        """Bound delta at an epsilon, from below and from above.

        Parameters
        ----------
        epsilon
            A finite number of at least 0.

        Returns
        -------
        tuple of float
            The lower and the upper value.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``epsilon`` is out of range.
        """
        point = float(nonnegative("epsilon", _arguments.number("epsilon", epsilon)))
        upper = self._delta(point, True)
        return min(upper, self._delta(point, False)), upper

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike) -> Floats | float: ...
    def epsilon(self, delta: npt.ArrayLike) -> Floats | float:
        """Bound epsilon at a delta, from above.

        Parameters
        ----------
        delta
            One or many numbers in [0, 1], of any shape.

        Returns
        -------
        float or numpy.ndarray
            Epsilon, float64, in the shape of ``delta``; infinity where there is none.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``delta`` is out of range.
        """
        targets = unit_interval("delta", delta)
        return shaped(np.array([self._epsilon(float(d), True) for d in targets.ravel()]), targets)

    def epsilon_bounds(self, delta: float) -> tuple[float, float]:
        """Bound epsilon at a delta, from below and from above.

        Parameters
        ----------
        delta
            A number in [0, 1].

        Returns
        -------
        tuple of float
            The lower and the upper value.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``delta`` is out of range.
        """
        target = float(unit_interval("delta", _arguments.number("delta", delta)))
        upper = self._epsilon(target, True)
        return min(upper, self._epsilon(target, False)), upper

    def __repr__(self) -> str:
        """Show what is composed."""
        listed = ", ".join(f"{rounds} x {mechanism!r}" for mechanism, rounds in self._parts)
        return f"Composition({listed}; {self._adjacency})"

    def _single(self) -> Release | None:
        return self._parts[0][0] if self.rounds == 1 else None

    def _delta(self, epsilon: float, upper: bool) -> float:
        single = self._single()
        if single is not None and (upper or single.exact):
            return single.delta(epsilon, self._adjacency) * (1.0 if upper else 1.0 - _EXACT)
        return max(
            self._grid(pair, upper, epsilon=epsilon).delta(epsilon, upper)
            for pair in directions(self._adjacency)
        )

    def _epsilon(self, delta: float, upper: bool) -> float:
        single = self._single()
        if single is not None and (upper or single.exact):
            return single.epsilon(delta, self._adjacency) * (1.0 if upper else 1.0 - _EXACT)
        if delta >= 1.0:
            return 0.0
        if delta <= 0.0:
            return self._largest_loss() if upper else 0.0
        return max(
            self._grid(pair, upper, delta=delta).epsilon(delta, upper)
            for pair in directions(self._adjacency)
        )

    def _largest_loss(self) -> float:
        """Add up the largest losses, if they are bounded; rounded up."""
        ends = [(m.epsilon(0.0, self._adjacency), rounds) for m, rounds in self._parts]
        if any(math.isinf(end) for end, _ in ends):
            return math.inf
        exact = sum((rounds * Fraction(end) for end, rounds in ends), Fraction(0))
        nearest = float(exact)
        return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)

    def _grid(
        self, pair: tuple[str, str], upper: bool, *, delta: float = 0.0, epsilon: float = 0.0
    ) -> _Grid:
        """Give a grid whose truncated mass does not matter at a delta, or at an epsilon."""
        if delta <= 0.0:
            delta = max(self._made(pair, 1e-30, True).chernoff(epsilon), 1e-290)
        exponent = math.floor(math.log10(delta))
        return self._made(pair, min(1e-30, 10.0 ** max(exponent - 8, -300)), upper)

    def _made(self, pair: tuple[str, str], floor: float, upper: bool) -> _Grid:
        key = (pair[0], floor, upper)
        if key not in self._grids:
            finer = 1.0 if upper else _FINER
            self._grids[key] = _Grid(self._parts, pair, floor / self.rounds, finer)
        return self._grids[key]


class _Points:
    """Epsilons that hash by their content."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self._key = values.tobytes()

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Points) and other._key == self._key


def _tail(mechanism: Release, direction: str, epsilon: Floats) -> Divergence:
    return _cached(mechanism, direction, _Points(epsilon))


@functools.lru_cache(maxsize=32)
def _cached(mechanism: Release, direction: str, points: _Points) -> Divergence:
    return mechanism.tail(direction, points.values)


class _Grid:
    """The losses of all parts in one direction, on one grid."""

    def __init__(
        self,
        parts: tuple[tuple[Release, int], ...],
        pair: tuple[str, str],
        floor: float,
        finer: float,
    ) -> None:
        self._parts = parts
        self._pair = pair
        self._finer = finer
        forward, backward = pair
        # The reverse pair needs the same evaluations.
        self._profiles = [functools.partial(_tail, mechanism) for mechanism, _ in parts]
        reached = [
            (
                privacy_loss.reach(mechanism.tail, forward, floor),
                privacy_loss.reach(mechanism.tail, backward, floor),
            )
            for mechanism, _ in parts
        ]
        self._ends = [(right[0], left[0]) for right, left in reached]
        scales = [
            privacy_loss.scale_of(mechanism.tail, forward, backward, ends)
            for (mechanism, _), ends in zip(parts, self._ends, strict=True)
        ]
        rounds = sum(count for _, count in parts)
        square = sum(count * scale * scale for (_, count), scale in zip(parts, scales, strict=True))
        self.spread = math.sqrt(square)
        self.least = privacy_loss.combined(
            [(right[1], count) for (_, count), (right, _) in zip(parts, reached, strict=True)]
        )
        if self.spread <= 0.0:
            return
        # Connecting dots moves the mean of each loss by at most step^2 / 8.
        single = self.spread / math.sqrt(rounds)
        step = math.sqrt(8.0 * _DRIFT * self.spread / rounds)
        farthest = max(max(ends) for ends in self._ends)
        step = min(max(step, single / _FINEST), single / _COARSEST) / finer
        self._step = max(step, farthest / _MOST_STEPS)
        if len(parts) == 1 and parts[0][0].lattice is not None:
            # Grid points on the losses themselves: nothing is rounded.
            lattice = parts[0][0].lattice
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
            (privacy_loss.connect(profile, self._pair, self._step, ends, density), count)
            for profile, (_, count), ends in zip(
                self._profiles, self._parts, self._ends, strict=True
            )
        ]

    def _log_moments(self, parts: privacy_loss.Parts) -> Floats:
        return np.array(
            [sum(count * loss.log_moment(float(o)) for loss, count in parts) for o in self._orders]
        )

    def chernoff(self, epsilon: float) -> float:
        """Estimate delta at an epsilon."""
        if self.spread <= 0.0:
            return self.least
        return math.exp(min(0.0, float((self._moments - self._orders * epsilon).min())))

    def delta(self, epsilon: float, upper: bool) -> float:
        if self.spread <= 0.0:
            # Every loss is zero or infinite.
            return self.least * (1.0 if upper else 1.0 - _EXACT)
        law = self._law(int((self._moments - self._orders * epsilon).argmin()))
        if upper:
            return law.delta(epsilon, upper=True)
        chance = _CHANCE * max(law.delta(epsilon, upper=False), 1e-300)
        grown = epsilon + privacy_loss.growth(self._losses, chance)
        return max(0.0, law.delta(grown, upper=False) - chance)

    def epsilon(self, delta: float, upper: bool) -> float:
        if self.spread <= 0.0:
            least = self.least * (1.0 if upper else 1.0 - _EXACT)
            return 0.0 if least <= delta else math.inf
        if upper and privacy_loss.infinite_mass(self._losses) >= delta:
            return math.inf
        best, chernoff = self._best(delta)
        law = self._law(best)
        start = max(chernoff, self.spread)
        return self._upper(law, delta, start) if upper else self._lower(law, delta, start)

    def _best(self, delta: float) -> tuple[int, float]:
        """Find the tilt at which Chernoff's bound of epsilon is smallest, and that bound."""
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
        """Give the sum under the best tilt, or under a lesser one if its window were too long."""
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
        high = _first(bound, delta, max(start, 1.1 * low))
        if math.isinf(high):
            return high
        return first_at_most(bound, delta, low, high, width=_WIDTH)

    def _lower(self, law: privacy_loss.Sum, delta: float, start: float) -> float:
        chance = _CHANCE * delta

        def bound(epsilon: float) -> float:
            return law.delta(epsilon, upper=False) - chance

        high = _first(bound, delta, max(start, 1.1 * law.least_epsilon))
        # Far below, the tilted law says nothing: look for where it does.
        below = (high * (1.0 - 2.0**power) for power in range(-12, 1))
        low = next((epsilon for epsilon in below if bound(epsilon) > delta), -1.0)
        if low < 0.0:
            return 0.0
        found = first_at_most(bound, delta, low, high, width=_WIDTH)
        grown = privacy_loss.growth(self._losses, chance)
        return max(0.0, found * (1.0 - 2.0 * _WIDTH) - grown)


def _first(function: Callable[[float], float], target: float, start: float) -> float:
    """Go up from a start to where a function is at most a target; infinity if nowhere."""
    for _ in range(60):
        if function(start) <= target:
            return start
        start *= 1.25
    return math.inf
