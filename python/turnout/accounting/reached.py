"""Possible clients, whose losses are lower bounds of the exact loss."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from turnout._types import Floats
from turnout.accounting.values import Divergence, Outcomes, by_loss

#: Beyond this distance from all means, in units of the noise, one box reaches to infinity.
_REACH = 9.0

#: What is taken from a delta for rounding, in parts of the mass of its event.
_ROUNDING = 1e-13

#: The width of the boxes on a line, and how many there are on a plane, about.
_LINE, _PLANE = 4e-3, 120_000

#: No client shows more of its gradients than this, in sums and in units of the noise.
_MOST_SUMS, _FARTHEST = 500, 40.0

#: The angles between the new gradient and the others.
_ANGLES = (0.0, 30.0, 45.0, 60.0, 75.0, 90.0, 180.0)

#: By how many degrees the best of them is turned, as long as that is better.
_TURN = 7.5


@dataclasses.dataclass(frozen=True)
class Client:
    """One client's gradients, and the law of their view in a round of random participation.

    The new gradient and ``shown`` others have full norm; the others all have one direction.
    Gradients that are not shown are zero. Space is divided into boxes, and the adversary sees only
    the box. This is post-processing: the loss of the boxes is at most that of the round.
    """

    client_rate: float
    sample_rate: float
    shown: int
    noise_multiplier: float
    angle: float

    @property
    def name(self) -> str:
        """The gradients in words."""
        if self.shown == 0:
            return "all other gradients zero"
        known = {0.0: "aligned with", 90.0: "orthogonal to", 180.0: "opposed to"}
        how = known.get(self.angle, f"at {self.angle:g} degrees to")
        return f"{self.shown:,} other gradients {how} the new one"

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        return self._outcomes(direction)._tail(epsilon, _ROUNDING)

    def _outcomes(self, direction: str) -> Outcomes:
        """Return what the adversary may see, in one direction."""
        return _laws(self)[direction]

    @property
    def near(self) -> tuple[Client, ...]:
        """Clients whose other gradients are turned a little."""
        if self.shown == 0:
            return ()
        turned = (self.angle - _TURN, self.angle + _TURN)
        return tuple(
            dataclasses.replace(self, angle=angle) for angle in turned if 0.0 <= angle <= 180.0
        )


def clients(
    client_rate: float, sample_rate: float, local_size: int, noise_multiplier: float
) -> tuple[Client, ...]:
    """Return clients whose rounds may be among the worst.

    Examples
    --------
    >>> [client.name for client in clients(0.1, 0.5, 0, 1.0)]
    ['all other gradients zero']
    >>> clients(0.1, 0.5, 3, 1.0)[2].name
    '3 other gradients at 30 degrees to the new one'
    """
    shown = _shown(sample_rate, local_size, noise_multiplier)
    placed = [(0, 0.0), *((shown, angle) for angle in _ANGLES if shown)]
    return tuple(
        Client(client_rate, sample_rate, many, noise_multiplier, angle) for many, angle in placed
    )


def _shown(rate: float, size: int, noise: float) -> int:
    """Choose the number of nonzero gradients, so that their sum reveals who takes part."""
    if rate <= 0.0:
        return 0
    far = _FARTHEST * noise / rate
    spread = (_MOST_SUMS / 20.0) ** 2 / max(rate * (1.0 - rate), 1e-300)
    return int(min(size, max(1.0, min(far, spread))))


def _sums(client: Client) -> tuple[Floats, Floats]:
    """Return the possible numbers of sampled shown gradients, and their probabilities."""
    # It takes longer to import than all of turnout.
    from scipy import stats  # noqa: PLC0415

    law = stats.binom(client.shown, client.sample_rate)
    low, high = (int(law.ppf(tail)) for tail in (1e-25, 1.0 - 1e-16))
    counts = np.arange(max(0, low), min(client.shown, high + 8) + 1.0)
    masses = law.pmf(counts)
    return counts[masses > 0.0], masses[masses > 0.0] / masses.sum()


@functools.lru_cache(maxsize=12)
def _laws(client: Client) -> dict[str, Outcomes]:
    p, q, step = client.client_rate, client.sample_rate, 1.0 / client.noise_multiplier
    counts, masses = _sums(client)
    along, across = _parts(client.angle)
    plane = client.shown > 0 and across > 0.0
    # One axis along the shown gradients, the other at a right angle to it.
    means = counts * step
    shift, side = along * step, across * step if plane else 0.0
    places = np.concatenate([np.zeros(1), means, means + shift])
    pieces = _pieces(places)
    width = _LINE
    if plane:
        sides = _pieces(np.array([0.0, side]))
        area = sum(high - low for low, high in pieces) * sum(high - low for low, high in sides)
        width = math.sqrt(area / _PLANE)
    edges = _edges(pieces, width)
    away = _masses(edges, np.zeros(1))[0]
    absent, sampled = (masses @ _masses(edges, means + move) for move in (0.0, shift))
    near, far = np.ones(1), np.ones(1)
    if plane:
        heights = _edges(sides, width)
        near, far = (_masses(heights, np.array([move]))[0] for move in (0.0, side))
    without = np.multiply.outer((1.0 - p) * away + p * absent, near)
    with_it = np.multiply.outer((1.0 - p) * away + p * (1.0 - q) * absent, near)
    with_it += np.multiply.outer(p * q * sampled, far)
    one, other = with_it.ravel(), without.ravel()
    kept = (one > 1e-290) & (other > 1e-290)
    # What no number tells apart is seen as the box that is told apart best.
    losses = np.log(one[kept]) - np.log(other[kept])
    places = np.flatnonzero(kept)[[losses.argmax(), losses.argmin()]]
    for place, rest in zip(places, (~kept & (one > other), ~kept & (one <= other)), strict=True):
        one[place] += one[rest].sum()
        other[place] += other[rest].sum()
    one, other = one[kept], other[kept]
    return {"remove": by_loss(one, other), "add": by_loss(other, one)}


def _pieces(means: Floats) -> list[tuple[float, float]]:
    """Return the pieces of a line near one of the means."""
    ordered = np.unique(means)
    apart = np.flatnonzero(np.diff(ordered) > 2.0 * _REACH)
    starts = ordered[np.concatenate([[0], apart + 1])]
    ends = ordered[np.concatenate([apart, [ordered.size - 1]])]
    return [(low - _REACH, high + _REACH) for low, high in zip(starts, ends, strict=True)]


def _edges(pieces: list[tuple[float, float]], width: float) -> Floats:
    """Divide the pieces into boxes; the space between two pieces is one box."""
    return np.concatenate(
        [np.linspace(low, high, math.ceil((high - low) / width) + 2) for low, high in pieces]
    )


def _parts(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact for right angles and for zero."""
    if angle % 180.0 == 0.0:
        return (1.0 if angle % 360.0 == 0.0 else -1.0), 0.0
    if angle == 90.0:
        return 0.0, 1.0
    return math.cos(math.radians(angle)), math.sin(math.radians(angle))


def _masses(edges: Floats, means: Floats) -> Floats:
    """Return the masses of the pieces of a line under unit Gaussians; the outer two are tails."""
    from scipy import special  # noqa: PLC0415 (slow)

    points = edges[1:-1][None, :] - means[:, None]
    # Differences of the smaller tail keep their relative accuracy on both sides.
    below, above = special.ndtr(points), special.ndtr(-points)
    inner = np.where(points[:, :-1] < 0.0, np.diff(below), -np.diff(above))
    return np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)
