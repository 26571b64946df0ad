"""Composition by privacy-loss distributions, computed a second time.

A pair of laws is given as outcomes with masses (P, Q). To compose it by Fourier transform the
losses log(P/Q) must lie on a grid k h. Two ways to get there bracket the truth:

- lower: outcomes are merged, which is post-processing, or their loss is rounded down;
- upper: an outcome between two points of the grid is split into both so that the sums of P and Q
  stay: the original is a post-processing of that.

Both are off by O(h^2) for a smooth pair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import fft, special, stats

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Losses:
    """Masses of P on the losses (start + k) * step, and on an infinite loss."""

    step: float
    start: int
    masses: Floats
    infinite: float = 0.0

    def compose(self, rounds: int, reach: float, *, lower: bool) -> Losses:
        """Return the law of the sum of independent losses, kept within ``reach`` of zero.

        What one round has beyond that goes to the safe side. The transform works on a circle: it
        must be so long that sums that wrap around have no mass to speak of.
        """
        half = int(np.ceil(reach / self.step))
        size = fft.next_fast_len(2 * half + 1, real=True)
        places = self.start + np.arange(len(self.masses))
        infinite = self.infinite if not lower else 0.0
        circle = np.zeros(size)
        within = np.abs(places) <= half
        circle[places[within] % size] = self.masses[within]
        if lower:
            circle[half] += self.masses[places > half].sum()
        else:
            infinite += float(self.masses[places > half].sum())
            circle[-half] += self.masses[places < -half].sum()
        whole = fft.irfft(fft.rfft(circle, workers=2) ** rounds, size, workers=2)
        infinite = -float(np.expm1(rounds * np.log1p(-infinite)))
        centred = np.roll(np.maximum(whole, 0.0), size // 2)
        return Losses(self.step, -(size // 2), centred, infinite)

    def delta(self, epsilon: float) -> float:
        """Compute E_P[1 - e^(epsilon - loss)]_+."""
        first = max(0, math.floor(epsilon / self.step) + 1 - self.start)
        losses = (self.start + np.arange(first, len(self.masses))) * self.step
        return float(self.masses[first:] @ -np.expm1(epsilon - losses)) + self.infinite

    def epsilon(self, delta: float) -> float:
        """Find the epsilon at which delta is reached, to 1e-9."""
        low, high = 0.0, float((self.start + len(self.masses)) * self.step)
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return (low + high) / 2


def lower_losses(one: Floats, other: Floats, step: float) -> Losses:
    """Return losses on the grid whose divergences are nowhere above those of the pair.

    Outcomes nearest to point k are one group, those below the point and those above it. Merging all
    of the one side with a part of the other gives the ratio e^(k h) exactly; what is left over
    is rounded down.
    """
    kept = (one > 0) & (other > 0)
    one, other = one[kept], other[kept]
    loss = np.log(one / other)
    point = np.round(loss / step).astype(np.int64)
    start = int(point.min()) - 1
    place = point - start
    size = int(place.max()) + 1
    # How far each outcome is above its point, as P - e^(k h) Q; negative below.
    excess = one * -np.expm1(point * step - loss)
    up = excess >= 0
    more = np.bincount(place[up], weights=excess[up], minlength=size)
    less = np.bincount(place[~up], weights=-excess[~up], minlength=size)
    above = np.bincount(place[up], weights=one[up], minlength=size)
    below = np.bincount(place[~up], weights=one[~up], minlength=size)
    share = np.minimum(1.0, more / np.where(less > 0, less, 1.0))
    masses = above + share * below
    masses[:-1] += ((1 - share) * below)[1:]
    return Losses(step, start, masses)


def upper_losses(one: Floats, other: Floats, step: float, infinite: float) -> Losses:
    """Return losses on the grid whose divergences are nowhere below those of the pair."""
    both = (one > 0) & (other > 0)
    infinite += float(one[(other <= 0)].sum())
    one, other = one[both], other[both]
    loss = np.log(one / other)
    point = np.floor(loss / step).astype(np.int64)
    start = int(point.min())
    # P = P1 + P2, Q = Q1 + Q2 with P1 = e^(k h) Q1 and P2 = e^((k+1) h) Q2.
    second = one * -np.expm1(point * step - loss) / -np.expm1(-step)
    second = np.minimum(second, one)
    size = int(point.max()) - start + 2
    masses = np.bincount(point - start, weights=one - second, minlength=size)
    masses += np.bincount(point - start + 1, weights=second, minlength=size)
    return Losses(step, start, masses, infinite)


#: The rates of clients and samples, the number of other elements, the noise multiplier.
Setting = tuple[float, float, float, float]


def participation_events(losses: Floats, setting: Setting, adjacency: str) -> tuple[Floats, Floats]:
    """Return P(loss > l) and Q(loss > l) of the sound bound for increasing l of any sign.

    Above zero from the pair of that adjacency, below zero from the complement of the other one:
    H(alpha) of P against Q is 1 - alpha + alpha H(1/alpha) of Q against P.
    """
    other = "add" if adjacency == "remove" else "remove"
    here = _events(losses[losses >= 0], setting, adjacency)
    there = _events(-losses[losses < 0], setting, other)
    return (
        np.concatenate([1 - there[1], here[0]]),
        np.concatenate([1 - there[0], here[1]]),
    )


def _events(losses: Floats, setting: Setting, adjacency: str) -> tuple[Floats, Floats]:
    """Return the same for l >= 0, summed over the number i of other sampled elements."""
    p, q, local_size, sigma = setting
    gain, offset = np.expm1(losses), int(adjacency == "remove")
    counts, masses = _sampled(local_size, q, sigma)
    single = p * q if offset else p * (q * (1 + gain) - gain)
    near = p * (gain + q) if offset else p * q * (1 + gain)
    single = np.broadcast_to(single, losses.shape)
    hidden = single > 0
    places = (counts + offset) / sigma
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        level = np.where(hidden, np.log(near / np.where(hidden, single, 1.0)), 0.0)
        starts = places[:, None] - 0.5 / sigma + level * sigma
        away = gain * (1 - p)
        # Where the shares of the client that stays away are used up, by bisection.
        low, high = starts.min(axis=0), starts.min(axis=0) + 1e3
        for _ in range(80):
            middle = 0.5 * (low + high)
            grown = np.log(masses)[:, None] + places[:, None] * (middle - places[:, None] / 2)
            lacks = -np.expm1(np.minimum(0.0, (starts - middle) / sigma))
            used = (single * np.exp(grown) * lacks).sum(axis=0)
            low, high = np.where(used <= away, middle, low), np.where(used <= away, high, middle)
    begins = np.maximum(starts, low)
    sampled, absent = (
        masses @ special.ndtr(places[:, None] - back / sigma - begins) for back in (0, 1)
    )
    if not offset:
        sampled, absent = absent, sampled
    outside = special.ndtr(-low)
    without = (1 - p) * outside + p * absent
    with_element = (1 - p) * outside + p * ((1 - q) * absent + q * sampled)
    pair = (with_element, without) if offset else (without, with_element)
    return np.where(hidden, pair[0], 0.0), np.where(hidden, pair[1], 0.0)


def _sampled(local_size: float, q: float, sigma: float) -> tuple[Floats, Floats]:
    """Return the numbers of other sampled elements; for infinitely many the client cannot hide."""
    if math.isinf(local_size):
        return np.array([math.ceil(100.0 * sigma)]), np.ones(1)
    counts = np.arange(int(local_size) + 1)
    law = stats.binom.pmf(counts, int(local_size), q)
    return counts[law > 1e-22].astype(float), law[law > 1e-22]


def bracket(events: tuple[Floats, Floats], losses: Floats, step: float) -> tuple[Losses, Losses]:
    """Return lower and upper losses of a pair known by P(loss > l), Q(loss > l) at some l.

    The cells between neighbouring l are merged for the lower and split to their two ends for the
    upper losses. What lies below all l is dropped or moved up, what lies above is dropped or
    infinite.
    """
    one, other = -np.diff(events[0]), -np.diff(events[1])
    # Rounding leaves nothing in thin tails; elsewhere a cell's loss lies in the cell.
    kept = (one > 0) & (other > 0)
    one, other, low, high = one[kept], other[kept], losses[:-1][kept], losses[1:][kept]
    loss = np.clip(np.log(one / other), low, high)
    # P = P1 + P2, Q = Q1 + Q2 with P1 = e^low Q1 and P2 = e^high Q2.
    second = one * np.expm1(low - loss) / np.expm1(low - high)
    bottom = max(0.0, 1 - float(events[0][0]))
    atoms = np.concatenate([one - second, second, [bottom]])
    places = np.concatenate([low, high, losses[:1]])
    infinite = max(0.0, float(events[0][-1]))
    below = lower_losses(one, one * np.exp(-loss), step)
    return below, upper_losses(atoms, atoms * np.exp(-places), step, infinite)


def composed_bracket(
    setting: Setting,
    rounds: int,
    adjacency: str,
    *,
    step: float = 1e-5,
    reach: float = 8.0,
    points: int = 20_000,
    scale: float = 1e-4,
) -> tuple[Losses, Losses]:
    """Return lower and upper losses of the sound bound over several rounds.

    The losses of one round lie close to zero but for a small mass: so do the points.
    """
    losses = scale * np.sinh(np.linspace(-1, 1, points + 1) * np.arcsinh(reach / scale))
    # The bounds of the two adjacencies meet in a kink: a mass at the loss zero, in its own cell.
    losses = np.insert(losses, np.searchsorted(losses, 0.0), -1e-300)
    events = participation_events(losses, setting, adjacency)
    below, above = bracket(events, losses, step)
    return below.compose(rounds, reach, lower=True), above.compose(rounds, reach, lower=False)
