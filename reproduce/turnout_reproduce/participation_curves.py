"""Curves of the participation paper: the baselines, the sound bound, the theorem, real clients.

No bound of a round can be below the delta of a client that can exist.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from turnout._progress import track
from turnout._search import first_at_most
from turnout._types import Floats
from turnout.accounting import (
    CentralShuffling,
    LocalSampling,
    RandomParticipation,
    WeakClientSampling,
)
from turnout.accounting.curves import theorem
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.paper import theorem_4_1_delta
from turnout.accounting.participation import participation_delta
from turnout_reproduce.curves import Curve
from turnout_reproduce.outcome import Scale

SOURCE: Final = (
    "Hasircioglu, Gunduz: Privacy Amplification via Random Participation in Federated Learning"
)

#: The local sizes of the paper's Figures 1 to 3.
SIZES: Final = (1, 10, 100)
_SCHEMES: Final = "baselines and sound bound"
_THEOREM: Final = "Theorem 4.1 (dashed) and real clients (dots)"
#: Below this nothing is drawn or judged.
_LEAST_DELTA, _LEAST_EPSILON = 1e-12, 1e-9


#: Of a search.
_WIDTH: Final = 1e-9
#: Into how many cells what is seen is put.
_CELLS: Final = 400


@dataclasses.dataclass(frozen=True)
class Axes:
    """What a figure has on its axes.

    Attributes
    ----------
    points
        Along x.
    at
        What the mechanism is at a point.
    level
        The epsilon at a point if delta is drawn, the delta if epsilon is.
    epsilon
        Whether epsilon is drawn.
    """

    points: Floats
    at: Callable[[Any, float], Any]
    level: Callable[[float], float]
    epsilon: bool

    @property
    def least(self) -> float:
        """The smallest value that is drawn and judged."""
        return _LEAST_EPSILON if self.epsilon else _LEAST_DELTA

    def bound(self, mechanism: Mechanism, point: float) -> float:
        """Give what the library says."""
        placed, level = self.at(mechanism, point), self.level(point)
        return float(placed.epsilon(level) if self.epsilon else placed.delta(level))

    def theorem(self, mechanism: RandomParticipation, point: float) -> float:
        """Give what Theorem 4.1 says, which is no bound."""
        placed, level = self.at(mechanism, point), self.level(point)
        return float(theorem(placed, "epsilon" if self.epsilon else "delta", level))

    def real(self, mechanism: RandomParticipation, point: float) -> float:
        """Give what a client that can exist loses at least."""
        placed, level = self.at(mechanism, point), self.level(point)
        return real_epsilon(placed, level) if self.epsilon else real_delta(placed, level)


@dataclasses.dataclass(frozen=True)
class Values:
    """All curves of a figure.

    Attributes
    ----------
    axes
        What it has on its axes.
    central, weak, local
        Central shuffling, weak client sampling and only local sampling.
    bound, theorem, real
        For each local size.
    """

    axes: Axes
    central: Floats
    weak: Floats
    local: Floats
    bound: dict[int, Floats]
    theorem: dict[int, Floats]
    real: dict[int, Floats]

    @classmethod
    def of(cls, axes: Axes, rates: tuple[float, float], noise: float, scale: Scale) -> Values:
        """Compute them for a client rate and a sample rate."""
        p, q = rates

        def along(value: Callable[[Any, float], float], mechanism: Mechanism) -> Floats:
            return np.array([value(mechanism, float(point)) for point in axes.points])

        schemes = {size: RandomParticipation(p, q, size, noise) for size in SIZES}
        bound: dict[int, Floats] = {}
        theorem: dict[int, Floats] = {}
        real: dict[int, Floats] = {}
        kinds = ((axes.bound, bound), (axes.theorem, theorem), (axes.real, real))
        work = [(value, found, size) for value, found in kinds for size in SIZES]
        for value, found, size in track(work, "curves", scale.progress):
            found[size] = along(value, schemes[size])
        return cls(
            axes,
            along(axes.bound, CentralShuffling(p, q, noise)),
            along(axes.bound, WeakClientSampling(p, q, noise)),
            along(axes.bound, LocalSampling(q, noise)),
            bound,
            theorem,
            real,
        )

    def curves(self) -> tuple[Curve, ...]:
        """Give what is drawn: bounds, and beside them what the paper claims."""
        points = tuple(self.axes.points.tolist())

        def curve(label: str, values: Floats, panel: str) -> Curve:
            shown = np.where(values >= self.axes.least, values, np.nan)
            return Curve(label, points, tuple(shown.tolist()), panel=panel)

        return (
            curve("only local sampling", self.local, _SCHEMES),
            curve("weak client sampling", self.weak, _SCHEMES),
            *(curve(f"sound bound, d = {d}", self.bound[d], _SCHEMES) for d in SIZES[::-1]),
            curve("central shuffling", self.central, _SCHEMES),
            *(curve(f"Theorem 4.1, d = {d}", self.theorem[d], _THEOREM) for d in SIZES),
            *(curve(f"real client, d = {d}", self.real[d], _THEOREM) for d in SIZES),
        )

    def largest(self, above: Floats, below: Floats) -> tuple[float, float]:
        """Give the largest ratio where the first is drawn, and the point of it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(above >= self.axes.least, above / below, 0.0)
        # A theorem that says 0 where a client loses something is no number.
        ratios = np.where(np.isfinite(ratios), ratios, 0.0)
        place = int(ratios.argmax())
        return float(ratios[place]), float(self.axes.points[place])


def real_delta(mechanism: RandomParticipation, epsilon: float) -> float:
    """Compute the delta that a round has for one of two clients, whichever has the larger.

    All gradients are of full norm. Those of the first client are all equal; the divergence of that
    is what the paper's Theorem 4.1 gives. Those of the second client, but for the protected
    element, are equal and at a right angle to it. What is seen along them tells how likely it is
    that the client takes part, r, and what is seen along the element is then only local sampling at
    the rate q r. The seen values are put into cells, which can only lower delta.

    Parameters
    ----------
    mechanism
        The round.
    epsilon
        At least zero.

    Returns
    -------
    float
        At most the true delta of the round, up to rounding.

    Examples
    --------
    >>> printed = RandomParticipation(0.1, 0.001, local_size=1000, noise_multiplier=0.646)
    >>> f"{real_delta(printed, 0.015):.3g}"
    '2.04e-06'
    """
    p, q, noise = mechanism.client_rate, mechanism.sample_rate, mechanism.noise_multiplier
    aligned = theorem_4_1_delta(epsilon, p, q, mechanism.local_size, noise)
    seen, rates = _posterior(mechanism)
    across = max(
        float(seen @ participation_delta(epsilon, noise, 1.0, q * rates, 0, adjacency=adjacency))
        for adjacency in ("remove", "add")
    )
    return max(float(aligned), across)


def real_epsilon(mechanism: RandomParticipation, delta: float) -> float:
    """Find the epsilon at which the delta of :func:`real_delta` falls to a level.

    Parameters
    ----------
    mechanism
        The round.
    delta
        Above zero.

    Returns
    -------
    float
        Zero if it is below the level everywhere.

    Examples
    --------
    >>> mechanism = RandomParticipation(0.1, 0.1, local_size=10, noise_multiplier=1.0)
    >>> real_epsilon(mechanism, 1e-6) < mechanism.epsilon(1e-6)
    True
    """

    def spent(epsilon: float) -> float:
        return real_delta(mechanism, epsilon)

    if spent(0.0) <= delta:
        return 0.0
    # The bound is above it.
    most = mechanism.epsilon(delta) * (1.0 + _WIDTH)
    return first_at_most(spent, delta, 0.0, most, _WIDTH)


def _posterior(mechanism: RandomParticipation) -> tuple[Floats, Floats]:
    """Give the probabilities of the cells, and that the client takes part in each of them."""
    from scipy import special, stats  # noqa: PLC0415 (slow)

    counts = np.arange(mechanism.local_size + 1.0)
    masses = stats.binom.pmf(counts, mechanism.local_size, mechanism.sample_rate)
    kept = masses > 1e-18
    means, masses = counts[kept] / mechanism.noise_multiplier, masses[kept]
    inner = np.linspace(-8.0, means.max() + 8.0, _CELLS - 1)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    away = (1.0 - mechanism.client_rate) * np.diff(special.ndtr(edges))
    there = mechanism.client_rate * (masses @ np.diff(special.ndtr(edges - means[:, None])))
    seen = away + there
    reached = seen > 0.0
    return seen[reached], np.minimum(1.0, there[reached] / seen[reached])
