"""Privacy losses on a grid, and their sums over many rounds.

A grid connects the dots of a profile (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the
Dots: Tighter Discrete Approximations of Privacy Loss Distributions", 2022): between two points a
convex profile lies below its chord, so the grid's profile is nowhere too small. Each outcome is
split at random between the two grid points around its loss, with almost the same mean. Chernoff's
method bounds how much the sum of many losses may have grown, which gives the lower values. Where
the outcomes themselves are known, their losses are rounded down instead.

Sums are computed under an exponentially tilted law that is centred at the result. The rounding
errors of the Fourier transform are then small relative to the result, however small delta is. A
proven bound of these errors is added to upper values and subtracted from lower ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from turnout._search import least_at_most
from turnout._types import Array, Floats, Integers, Truths
from turnout.accounting.values import Divergence, Outcomes

#: The divergence in a direction at some epsilons.
Profile = Callable[[str, Floats], Divergence]

#: The unit of rounding.
_UNIT = 2.0**-53

#: By so much of itself a dot may be above the line of its neighbours: what rounding does.
_BENT = 1e-9

#: How imprecise the masses of outcomes are, relatively, and so their losses.
_IMPRECISE = 2e-13

#: Nothing is left across a gap of this size: its exponential is no number.
_FAR = 700.0

#: Epsilon at which a profile has reached its limit, the mass of infinite loss.
_BEYOND = 1e9

#: Tilted mass outside of the window of a sum.
_OUTSIDE = 1e-14

#: The logarithm of the largest factor by which the tilt is undone.
_FARTHEST = 690.0

#: The exponential function overflows above it.
_OVERFLOW = 709.0

#: The longest Fourier transform.
LONGEST = 2**20


class Cells(NamedTuple):
    """The cells between the points of a grid."""

    #: The first law's mass in a cell.
    mass: Floats
    #: The width of a cell.
    width: Floats
    #: A bound of the variance of the split of an outcome between the ends of its cell.
    spread: Floats


@dataclasses.dataclass(frozen=True)
class Loss:
    """A law of the privacy loss on multiples of a step, with some mass at infinity."""

    #: Which multiples carry mass, ascending.
    index: Integers
    #: Their masses under the first law.
    mass: Floats
    #: The mass of infinite loss.
    infinite: float
    step: float
    #: Where the mass was before it was split between the points.
    cells: Cells
    #: What each loss has beside its multiple of the step; a sum of losses leaves it out.
    offset: float = 0.0

    def log_moment(self, order: float) -> float:
        """Return the logarithm of the mean of ``e^(order * loss)`` over finite losses."""
        return _log_mean(order * self.step * self.index.astype(np.float64), self.mass)


Parts = Sequence[tuple[Loss, int]]


def reach(profile: Profile, direction: str, floor: float) -> tuple[float, float]:
    """Find the epsilon at which delta stops falling.

    Parameters
    ----------
    profile, direction
        The profile of a mechanism and one of its directions.
    floor
        The amount by which delta may exceed its limit there.

    Returns
    -------
    tuple of float
        An epsilon, and the limit of delta.
    """

    def delta(epsilon: float) -> float:
        return float(profile(direction, np.array([epsilon])).delta[0])

    limit = delta(_BEYOND)
    target = limit * (1.0 + 1e-9) + floor
    if delta(0.0) <= target:
        return 0.0, limit
    return least_at_most(delta, target, width=1e-3), limit


def endless(profile: Profile, direction: str) -> float:
    """Return the mass of outcomes that the second law does not have."""
    return float(profile(direction, np.array([_BEYOND])).first[0])


def scale_of(profile: Profile, forward: str, backward: str, ends: tuple[float, float]) -> float:
    """Return the root mean square of the privacy loss, with losses above 1 counted as 1."""
    total = 0.0
    for end, one, other in ((ends[0], forward, False), (ends[1], backward, True)):
        if end <= 0.0:
            continue
        points = np.minimum(end, 1.0) * np.logspace(-9, 0, 200)
        divergence = profile(one, points)
        tail = divergence.second if other else divergence.first
        height = 2.0 * points * tail
        total += float((0.5 * (height[1:] + height[:-1]) * np.diff(points)).sum())
    return math.sqrt(total)


def grid(largest: int, density: int) -> Integers:
    """Return 0 and whole numbers up to a largest one, with `density` numbers per doubling."""
    parts = [np.arange(0, min(2 * density, largest + 1))]
    start, gap = 2 * density, 2
    while start <= largest:
        parts.append(np.arange(start, min(2 * start, largest + 1), gap))
        start, gap = 2 * start, 2 * gap
    points = np.concatenate(parts)
    return points if points[-1] == largest else np.append(points, largest)


def _ends(ends: tuple[float, float], step: float, density: int = 512) -> tuple[Integers, Integers]:
    right, left = (grid(max(1, math.ceil(end / step)), density) for end in ends)
    return right, left


def dots(
    profile: Profile, forward: str, backward: str, step: float, floor: float
) -> tuple[Integers, Floats]:
    """Evaluate a profile on both sides of zero.

    Returns
    -------
    tuple of numpy.ndarray
        Ascending multiples of ``step``, and delta of the forward direction at each.
    """
    ends = (reach(profile, forward, floor)[0], reach(profile, backward, floor)[0])
    right, left = _ends(ends, step)
    above = profile(forward, _places(right, step)).delta
    below = profile(backward, _places(left, step)).delta
    left = -left[:0:-1]
    reverse = np.exp(left * step) * below[:0:-1] - np.expm1(left * step)
    both = np.concatenate([reverse, above])
    # The two directions meet at 0, up to rounding; a profile never rises.
    return np.concatenate([left, right]), np.minimum(np.maximum.accumulate(both[::-1])[::-1], 1.0)


def connect(
    profile: Profile, pair: tuple[str, str], step: float, ends: tuple[float, float], density: int
) -> Loss:
    """Connect the dots of a profile to a law of losses.

    Below zero the profile is ``1 - a + a delta_backward(1/a)``; its linear part cancels from the
    masses, so that they are as exact on the left as on the right. A profile that is the least of
    several bounds can have dots above the line of their neighbours. They are left out, since no
    exact profile has them. A mass that rounding made negative is set to zero, and every mass is
    raised by the possible rounding error, which can only raise the profile.
    """
    right, left = _ends(ends, step, density)
    ahead, behind = profile(pair[0], _places(right, step)), profile(pair[1], _places(left, step))
    right, ahead = _convex(right, ahead, step)
    left, behind = _convex(left, behind, step)
    after, before = _places(right, step), _places(left, step)
    above, below = ahead.delta, behind.delta
    above[0] = below[0] = max(above[0], below[0])
    # What falls between two points on the right, seen from its upper and from its lower end.
    gaps = np.diff(right) * step
    falls = -np.diff(above)
    arrives = np.append(0.0, falls / -np.expm1(-gaps))
    leaves = np.append(falls / _growth(gaps), 0.0)
    # On the left a * delta_backward(1/a) rises towards zero.
    gaps = np.diff(left) * step
    scaled = np.exp(-left * step) * below * (1.0 + _UNIT * (8.0 + 4.0 * left * step))
    rises = -np.diff(scaled)
    towards = np.append(0.0, rises / _growth(gaps))
    away = np.append(rises / -np.expm1(-gaps), scaled[-1])

    rounding = 16.0 * _UNIT
    upper = np.maximum(0.0, arrives - leaves) + rounding * (arrives + leaves)
    lower = np.maximum(0.0, towards - away) + rounding * np.abs(towards + away)
    upper[0] = max(0.0, 1.0 - away[0] - leaves[0]) + rounding * (1.0 + away[0] + leaves[0])
    index = np.concatenate([-left[:0:-1], right])
    mass = np.concatenate([lower[:0:-1], upper])
    kept = mass > 0.0
    sides = (_cells(ahead.first, ahead.second, after), _cells(behind.second, behind.first, before))
    cells = Cells(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    return Loss(index[kept], mass[kept], float(above[-1]), step, cells)


def merge(outcomes: Outcomes, step: float, ends: tuple[float, float], density: int) -> Loss:
    """Round the losses of outcomes down to a grid: its profile is nowhere too large.

    Outcomes nearest to a grid point form two groups, with losses above and below the point. All of
    one group together with a share of the other have the loss of the point as a whole. To merge
    them is post-processing. What is left over is rounded down: to the point, or to the next one. An
    offset puts a point where most losses are: in most rounds, next to nothing is learnt.
    """
    one = np.maximum(0.0, np.diff(outcomes.first)) * (1.0 - _IMPRECISE)
    usual = _usual(outcomes, one, step)
    losses = outcomes.loss - _IMPRECISE - usual
    right, left = _ends((ends[0] + abs(usual), ends[1] + abs(usual)), step, density)
    index = np.concatenate([-left[:0:-1], right])
    places = _places(index, step)
    at = np.searchsorted(0.5 * (places[1:] + places[:-1]), losses)
    # By how much the first law exceeds the second one, times the ratio of the point.
    excess = -one * np.expm1(np.minimum(places[at] - losses, _FAR))
    above = excess >= 0.0

    def total(values: Floats, chosen: Truths) -> Floats:
        return np.bincount(at[chosen], values[chosen], minlength=index.size).astype(np.float64)

    lacking = -total(excess, ~above)
    enough = total(excess, above) / np.where(lacking > 0.0, lacking, 1.0)
    share, below = np.minimum(1.0, enough), total(one, ~above)
    mass = total(one, above) + share * below
    mass[:-1] += ((1.0 - share) * below)[1:]
    kept = mass > 0.0
    nothing = np.empty(0)
    return Loss(index[kept], mass[kept], 0.0, step, Cells(nothing, nothing, nothing), usual)


def _usual(outcomes: Outcomes, one: Floats, step: float) -> float:
    """Return a loss around which outcomes within half a step merge to just that loss."""
    middle = float(outcomes.loss[np.searchsorted(np.cumsum(one), 0.5 * one.sum())])
    for _ in range(3):
        close = np.abs(outcomes.loss - middle) <= 0.5 * step
        mass = float(one[close].sum())
        other = float((one[close] * np.exp(middle - outcomes.loss[close])).sum())
        if mass <= 0.0 or other <= 0.0:
            break
        middle += math.log(mass / other)
    return middle


def _convex(index: Integers, profile: Divergence, step: float) -> tuple[Integers, Divergence]:
    """Leave out dots that violate convexity in ``e^epsilon``, which every profile has."""
    delta = _falling(profile.delta)
    gaps = np.diff(index) * step
    falls = -np.diff(delta)
    with np.errstate(invalid="ignore"):
        over = falls[:-1] / -np.expm1(-gaps[:-1]) - falls[1:] / _growth(gaps[1:])
    if (over >= -_BENT * delta[1:-1]).all():
        return index, profile._replace(delta=delta)
    kept: list[int] = []
    places, values = (index * step).tolist(), delta.tolist()
    for new in range(len(values)):
        while len(kept) > 1:
            first, middle = kept[-2], kept[-1]
            arrives = (values[first] - values[middle]) / -math.expm1(places[first] - places[middle])
            gap = places[new] - places[middle]
            leaves = (values[middle] - values[new]) / math.expm1(gap) if gap < _FAR else 0.0
            if arrives >= leaves:
                break
            kept.pop()
        kept.append(new)
    return index[kept], Divergence(*(column[kept] for column in profile._replace(delta=delta)))


def _growth(gaps: Floats) -> Floats:
    """Return ``e^gap - 1``, or infinity for a gap that no mass crosses."""
    with np.errstate(over="ignore"):
        grown: Floats = np.expm1(gaps)
    return grown


def _places(index: Integers, step: float) -> Floats:
    return index.astype(np.float64) * step


def _falling(delta: Floats) -> Floats:
    result: Floats = np.maximum.accumulate(delta[::-1])[::-1].copy()
    return result


def _cells(one: Floats, two: Floats, points: Floats) -> Cells:
    """Return the cells between points, from the tails of both laws.

    The masses of both laws give the mean loss in a cell, up to the square of its width. The split
    of an outcome at y in a cell of width w has a variance of at most ``(1 + w) y (w - y)``, concave
    in y.
    """
    mass = np.maximum(0.0, -np.diff(one))
    other = np.maximum(0.0, -np.diff(two))
    width = np.diff(points)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place = np.abs(np.log(mass / other)) - points[:-1]
    place = np.where(np.isfinite(place), np.clip(place, 0.0, width), 0.5 * width)
    spread = (1.0 + width) * (place * (width - place) + 0.125 * width**3)
    return Cells(mass, width, spread)


def infinite_mass(parts: Parts) -> float:
    """Return an upper bound of the mass of infinite loss of a sum."""
    excess = sum(
        count * max(0.0, math.log(float(loss.mass.sum()) + loss.infinite)) for loss, count in parts
    )
    if excess >= 1.0:
        return 1.0
    return min(1.0, combined([(loss.infinite, count) for loss, count in parts]) * math.exp(excess))


def combined(masses: Sequence[tuple[float, int]]) -> float:
    """Return the probability of at least one of many rare events, rounded up."""
    if any(mass >= 1.0 for mass, _ in masses):
        return 1.0
    none = sum(count * math.log1p(-mass) for mass, count in masses)
    return min(1.0, -math.expm1(none) * (1.0 + 1e-12))


def growth(parts: Parts, chance: float) -> float:
    """Bound how much the grid raises the sum of losses, except with a small probability.

    It is Chernoff's bound, with Bennett's for each cell: the split moves a loss up by at most the
    width w of its cell, and on average by half of its variance.
    """
    largest = max(float(loss.cells.width.max(initial=0.0)) for loss, _ in parts)
    total = sum(count * float((loss.cells.mass * loss.cells.spread).sum()) for loss, count in parts)
    surprise = -math.log(chance)
    best = largest * sum(count for _, count in parts)
    for order in np.logspace(-2.0, 2.0, 33) * math.sqrt(2.0 * surprise / max(total, 1e-300)):
        if order * largest > 500.0:
            break
        exponent = 0.0
        for loss, count in parts:
            mass, width, spread = loss.cells
            reached = order * width
            bend = np.where(
                reached < 1e-3,
                1.0 + reached,
                2.0 * (np.expm1(reached) - reached) / np.maximum(reached, 1e-300) ** 2,
            )
            means = float((mass * spread).sum())
            exponent += count * 0.5 * order * (means + order * float((mass * spread * bend).sum()))
        best = min(best, float((exponent + surprise) / order))
    return best


def window(parts: Parts, order: float) -> tuple[int, int]:
    """Find multiples outside of which a tilted sum has almost no mass.

    The range that no single loss is likely to reach is cut first, since the far tail of a rare
    large loss would spoil Chernoff's bound. Then the bound is applied.
    """
    cut = [(*_common(loss, order, count), count) for loss, count in parts]
    low = sum(count * int(index[0]) for index, _, count in cut)
    high = sum(count * int(index[-1]) for index, _, count in cut)
    spread = 0.0
    for index, tilted, count in cut:
        mean = float((tilted * index).sum())
        spread += count * float((tilted * (index - mean) ** 2).sum())
    surprise = -math.log(_OUTSIDE)
    for tilt in np.logspace(-3.0, 1.5, 37) / max(math.sqrt(spread), 1.0):
        up = sum(count * _log_mean(index * tilt, tilted) for index, tilted, count in cut)
        down = sum(count * _log_mean(-index * tilt, tilted) for index, tilted, count in cut)
        high = min(high, math.ceil((up + surprise) / tilt))
        low = max(low, math.floor(-(down + surprise) / tilt))
    return low, max(low, high)


def _common(loss: Loss, order: float, count: int) -> tuple[Floats, Floats]:
    """Return the tilted law without the ends that none of `count` losses is likely to reach."""
    tilted = loss.mass * np.exp(order * loss.step * loss.index - loss.log_moment(order))
    rare = 0.5 * _OUTSIDE / count
    first = int(np.searchsorted(np.cumsum(tilted), rare))
    last = tilted.size - int(np.searchsorted(np.cumsum(tilted[::-1]), rare))
    first = min(first, last - 1)
    return loss.index[first:last].astype(np.float64), tilted[first:last]


def _log_mean(exponents: Floats, weights: Floats) -> float:
    top = float(exponents.max())
    return top + math.log(float((weights * np.exp(exponents - top)).sum()))


class Sum:
    """The law of a sum of independent privacy losses, computed in one window.

    Parameters
    ----------
    parts
        Losses on the same step, and the number of times that each is added.
    order
        The order of the exponential tilt, at least 0.
    place
        The :func:`window` of the tilted sum.
    """

    def __init__(self, parts: Parts, order: float, place: tuple[int, int]) -> None:
        step = parts[0][0].step
        self._order = order
        self._infinite = infinite_mass(parts)
        self._log_moment = 0.0
        low, high = place
        length = _fast_length(high - low + 1)
        product = np.ones(length // 2 + 1, dtype=np.complex128)
        rounds = sum(count for _, count in parts)
        transform = 10.0 * _UNIT * (1.0 + math.log2(length))
        growth = moments = 0.0
        for loss, count in parts:
            moment = loss.log_moment(order)
            exponents = order * step * loss.index
            folded = np.bincount(
                loss.index % length, loss.mass * np.exp(exponents - moment), minlength=length
            )
            product *= power(np.fft.rfft(folded), count)
            growth += count * transform * float(np.linalg.norm(folded))
            moments += count * (4.0 + 2.0 * float(np.abs(exponents).max()))
            self._log_moment += count * moment
        values = np.roll(np.fft.irfft(product, length), -(low % length))[: high - low + 1]
        # This bounds the error of a transform in the Euclidean norm (Higham, "Accuracy and
        # Stability of Numerical Algorithms", Theorem 24.2). No factor has a modulus above one, so
        # each factor of a power adds at most this error.
        norm = float(np.linalg.norm(values))
        self._usable = order > 0.0 and growth * math.sqrt(length) < 0.1
        self._error = 2.0 * (growth + (transform + 4.0 * _UNIT * (rounds + len(parts))) * norm)
        self._rounding = _UNIT * moments
        # Beyond this the weight is below 1e-20, and the tilted law's mass is one.
        self._matters = 46.0 / order if order > 0.0 else math.inf
        self._values = np.maximum(values, 0.0)
        self._losses = (low + np.arange(self._values.size)) * step

    @property
    def least_epsilon(self) -> float:
        """The least epsilon at which this tilt gives a bound."""
        far = self._log_moment - _FARTHEST
        return max(0.0, far / self._order) if self._order > 0.0 else 0.0

    def delta(self, epsilon: float, *, upper: bool) -> float:
        """Bound delta at an epsilon, from above or from below."""
        exponent = self._log_moment - self._order * epsilon
        if not self._usable or exponent > _FARTHEST + 1.0:
            return 1.0 if upper else 0.0
        start, stop = np.searchsorted(self._losses, [epsilon, epsilon + self._matters], "right")
        excess = self._losses[start:stop] - epsilon
        weight = -np.expm1(-excess) * np.exp(-self._order * excess)
        value = float((self._values[start:stop] * weight).sum())
        error = self._error * float(np.linalg.norm(weight)) + 4.0 * _OUTSIDE
        rounding = self._rounding + 32.0 * _UNIT * (1.0 + abs(exponent))
        if upper:
            if exponent + rounding > _OVERFLOW:
                return 1.0
            return min(1.0, math.exp(exponent + rounding) * (value + error) + self._infinite)
        return max(0.0, math.exp(exponent - rounding) * (value - error))


def _fast_length(least: int) -> int:
    """Return the next even length without a prime factor above 5."""
    from scipy import fft  # noqa: PLC0415 (slow)

    return 2 * int(fft.next_fast_len(max(1, -(-least // 2)), real=True))


def power(values: Array, exponent: int) -> Array:
    """Raise to a power by squaring; each factor adds at most a few units of rounding."""
    result = np.ones_like(values)
    while exponent:
        if exponent & 1:
            result = result * values
        exponent >>= 1
        if exponent:
            values = values * values
    return result
