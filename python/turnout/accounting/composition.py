"""Composition of releases: what they spend together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol, overload

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._rounding import rounded_up
from turnout._search import first_at_most
from turnout._types import Floats
from turnout.accounting.loss_grid import WIDTH, LossGrid, Parts, Real, first_below
from turnout.accounting.values import (
    Bracket,
    Reached,
    directions,
    nonnegative,
    shaped,
    unit_interval,
)

#: What reaches the delta of a mechanism that is known exactly.
WORST = "the worst data"

#: Lower values need a finer grid to be as tight.
_FINER = 8.0


#: A coarse one tells which data lose most.
_COARSER = 0.4


class Release(Real, Protocol):
    """The interface of a mechanism for composition; it compares and hashes by its parameters."""

    def delta(self, epsilon: float, adjacency: str | None = None) -> float:
        """Return an upper bound of delta at an epsilon."""

    def epsilon(self, delta: float, adjacency: str | None = None) -> float:
        """Return an upper bound of epsilon at a delta."""

    def _reached(self) -> tuple[Real, ...]:
        """Return the worst known pairs of laws that neighbouring data sets can have."""

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta that is reached at an epsilon, in the directions of an adjacency."""


class Composition:
    """Several releases from the same data, each of which may depend on the earlier ones.

    :func:`compose` and :meth:`Mechanism.compose` return it. The upper values are guarantees:
    privacy losses are rounded pessimistically to a grid, and truncation and rounding errors are
    added. The lower values show how tight they are: up to rounding, they bound from below the loss
    of possible data, which the result names.

    Notes
    -----
    The profile of a mechanism is the supremum over its neighbouring data sets, so it dominates each
    of them under adaptive composition (Zhu, Dong, Wang, "Optimal Accounting of Differential Privacy
    via Characteristic Function", 2022). Sums of losses are computed by Fourier transforms under an
    exponential tilt, so that bounds of very small deltas are tight too.

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
        self._chosen: dict[tuple[str, float, float, Release], Real] = {}
        self._grids: dict[tuple[str, float, bool, Parts], LossGrid] = {}

    @property
    def parts(self) -> tuple[tuple[Release, int], ...]:
        """The mechanisms, and the number of times that each is used."""
        return self._parts

    @property
    def rounds(self) -> int:
        """The number of releases."""
        return sum(rounds for _, rounds in self._parts)

    @property
    def adjacency(self) -> str:
        """The neighbouring data sets."""
        return self._adjacency

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: npt.ArrayLike) -> Floats | float: ...
    def delta(self, epsilon: npt.ArrayLike) -> Floats | float:
        """Return an upper bound of delta at an epsilon.

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
        return shaped(np.array([self._delta(float(e)) for e in points.ravel()]), points)

    def delta_bounds(self, epsilon: float) -> Bracket:
        """Return a lower and an upper bound of delta at an epsilon.

        Parameters
        ----------
        epsilon
            A finite number of at least 0.

        Returns
        -------
        Bracket
            The pair of the lower and the upper value. ``reached`` names the data that reach the
            lower one, and ``exact`` says whether these data also reach the upper one.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``epsilon`` is out of range.
        """
        point = float(nonnegative("epsilon", _arguments.number("epsilon", epsilon)))
        upper = self._delta(point)
        found = self._reached_delta(point)
        return Bracket(min(upper, found.value), upper, found.name, found.exact)

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: npt.ArrayLike) -> Floats | float: ...
    def epsilon(self, delta: npt.ArrayLike) -> Floats | float:
        """Return an upper bound of epsilon at a delta.

        Parameters
        ----------
        delta
            One or many numbers in [0, 1], of any shape.

        Returns
        -------
        float or numpy.ndarray
            Epsilon, float64, in the shape of ``delta``; infinity where no epsilon exists.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``delta`` is out of range.
        """
        targets = unit_interval("delta", delta)
        return shaped(np.array([self._epsilon(float(d)) for d in targets.ravel()]), targets)

    def epsilon_bounds(self, delta: float) -> Bracket:
        """Return a lower and an upper bound of epsilon at a delta.

        Parameters
        ----------
        delta
            A number in [0, 1].

        Returns
        -------
        Bracket
            The pair of the lower and the upper value. ``reached`` names the data that reach the
            lower one, and ``exact`` says whether these data also reach the upper one.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``delta`` is out of range.
        """
        target = float(unit_interval("delta", _arguments.number("delta", delta)))
        upper = self._epsilon(target)
        found = self._reached_epsilon(target, upper)
        return Bracket(min(upper, found.value), upper, found.name, found.exact)

    def __repr__(self) -> str:
        """Show the mechanisms."""
        listed = ", ".join(f"{rounds} x {mechanism!r}" for mechanism, rounds in self._parts)
        return f"Composition({listed}; {self._adjacency})"

    def _single(self) -> Release | None:
        return self._parts[0][0] if self.rounds == 1 else None

    def _delta(self, epsilon: float) -> float:
        single = self._single()
        if single is not None:
            return single.delta(epsilon, self._adjacency)
        return max(
            self._bound(pair, self._parts, True, epsilon=epsilon)
            for pair in directions(self._adjacency)
        )

    def _epsilon(self, delta: float) -> float:
        single = self._single()
        if single is not None:
            return single.epsilon(delta, self._adjacency)
        if delta >= 1.0:
            return 0.0
        if delta <= 0.0:
            return self._largest_loss()
        return max(
            self._bound(pair, self._parts, True, delta=delta)
            for pair in directions(self._adjacency)
        )

    def _reached_delta(self, epsilon: float) -> Reached:
        single = self._single()
        if single is not None:
            return single._reached_delta(epsilon, self._adjacency)
        return self._best_reached(epsilon=epsilon)

    def _reached_epsilon(self, delta: float, upper: float) -> Reached:
        single = self._single()
        if single is not None:
            return self._reached_alone(single, delta, upper)
        if not 0.0 < delta < 1.0:
            return Reached(0.0, "", False)
        return self._best_reached(delta=delta)

    def _best_reached(self, *, epsilon: float = 0.0, delta: float = 0.0) -> Reached:
        """Return the largest lower value over all directions: of epsilon at a delta, or delta."""
        best = Reached(0.0, "", False)
        for pair in directions(self._adjacency):
            parts = self._reached(pair, epsilon=epsilon, delta=delta)
            if parts is not None:
                value = self._bound(pair, parts, False, delta=delta, epsilon=epsilon)
                best = max(best, self._named(value, parts, pair[0]))
        return best

    def _reached_alone(self, single: Release, delta: float, upper: float) -> Reached:
        if single._reached() == (single,) and not 0.0 < upper < math.inf:
            return Reached(upper, WORST, True)

        def reached(epsilon: float) -> float:
            return single._reached_delta(epsilon, self._adjacency).value

        if upper <= 0.0 or reached(0.0) <= delta:
            return Reached(0.0, "", False)
        high = upper
        if math.isinf(upper):
            high = first_below(reached, delta, 1.0)
            if math.isinf(high):
                return Reached(math.inf, single._reached_delta(1e9, self._adjacency).name, False)
        if reached(high) > delta:
            low = high
        else:
            low = first_at_most(reached, delta, 0.0, high, width=WIDTH) * (1.0 - 2.0 * WIDTH)
        found = single._reached_delta(low, self._adjacency)
        return Reached(low, found.name, found.exact)

    def _reached(
        self, pair: tuple[str, str], *, epsilon: float = 0.0, delta: float = 0.0
    ) -> Parts | None:
        """Choose for each mechanism the data with the largest total loss; None if unknown.

        The choice uses a coarse grid, and treats each mechanism as if it were the whole
        composition. This is safe, since data can have any choice.
        """
        parts: list[tuple[Real, int]] = []
        for mechanism, rounds in self._parts:
            laws = mechanism._reached()
            if not laws:
                return None
            if len(laws) > 1:
                key = (pair[0], delta, epsilon, mechanism)
                if key not in self._chosen:
                    self._chosen[key] = self._worst(pair, laws, epsilon, delta)
                laws = (self._chosen[key],)
            parts.append((laws[0], rounds))
        return tuple(parts)

    def _worst(
        self, pair: tuple[str, str], laws: tuple[Real, ...], epsilon: float, delta: float
    ) -> Real:
        """Return the law that loses most, of those given and of those near the best of them."""
        spent = {law: self._coarse(pair, law, epsilon, delta) for law in laws}
        while True:
            best = max(spent, key=spent.__getitem__)
            new = [law for law in getattr(best, "near", ()) if law not in spent]
            if not new:
                return best
            spent |= {law: self._coarse(pair, law, epsilon, delta) for law in new}

    def _coarse(self, pair: tuple[str, str], law: Real, epsilon: float, delta: float) -> float:
        floor = 1e-8 * min(1e-12, delta or 1e-22) / self.rounds
        return _value(LossGrid(((law, self.rounds),), pair, floor, _COARSER), epsilon, delta, True)

    def _named(self, value: float, parts: Parts, direction: str) -> Reached:
        names = dict.fromkeys(law.name for law, _ in parts)
        exact = all(
            law == mechanism or direction in getattr(law, "attains", ())
            for (law, _), (mechanism, _) in zip(parts, self._parts, strict=True)
        )
        return Reached(value, "; ".join(names), exact)

    def _largest_loss(self) -> float:
        """Return the sum of the largest losses, if they are bounded, rounded up."""
        ends = [(m.epsilon(0.0, self._adjacency), rounds) for m, rounds in self._parts]
        if any(math.isinf(end) for end, _ in ends):
            return math.inf
        return rounded_up(sum((rounds * Fraction(end) for end, rounds in ends), Fraction(0)))

    def _bound(
        self,
        pair: tuple[str, str],
        parts: Parts,
        upper: bool,
        *,
        delta: float = 0.0,
        epsilon: float = 0.0,
    ) -> float:
        """Compute a bound on a grid whose truncated mass is negligible."""
        mass = delta
        if delta <= 0.0:
            mass = max(self._made(pair, 1e-30, parts, True).chernoff(epsilon), 1e-290)
        floor = min(1e-30, 10.0 ** max(math.floor(math.log10(mass)) - 8, -300))
        # Each way to keep to the grid is better for some losses.
        known = not upper and any(hasattr(law, "_outcomes") for law, _ in parts)
        return max(
            _value(self._made(pair, floor, parts, upper, merged), epsilon, delta, upper)
            for merged in ((False, True) if known else (False,))
        )

    def _made(
        self,
        pair: tuple[str, str],
        floor: float,
        parts: Parts,
        upper: bool,
        merged: bool = False,
    ) -> LossGrid:
        finer = 1.0 if upper else _FINER
        key = (pair[0], floor * finer, merged, parts)
        if key not in self._grids:
            self._grids[key] = LossGrid(parts, pair, floor / self.rounds, finer, merged=merged)
        return self._grids[key]


def _value(grid: LossGrid, epsilon: float, delta: float, upper: bool) -> float:
    """Bound epsilon at a delta above 0, else delta at an epsilon."""
    return grid.epsilon(delta, upper) if delta > 0.0 else grid.delta(epsilon, upper)
