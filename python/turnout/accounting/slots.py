"""One person's gradient in one of many noisy sums, and nobody knows in which.

A bound of the mean excess of a ratio over a strike is a divergence: its delta is that mean, and it
also holds the masses of the event with and without the person.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout._types import Floats
from turnout.accounting.privacy_loss import power
from turnout.accounting.values import Divergence, larger, smaller

#: How many points of the mean of the likelihood ratios there are.
_POINTS = 2**18

#: Ratios are capped where the shifted law has this many standard deviations behind it. A low cap
#: gives a finer grid, and a high cap cuts off less. The best bound is used.
_CAPS = (4.4, 7.0)

#: The logarithm of the mass that may be outside of the window, and of what rounding to the grid
#: may exceed its bound by.
_OUTSIDE, _EXCEEDED = -42.0, -25.0

#: The logarithm of the largest ratio that is looked at.
_FARTHEST = 120.0

#: What normal probabilities and their arguments may be off by, relatively.
_ROUNDING = 2.0**-49

#: Of so many points moments are computed.
_COARSE = 2**13

#: The most points of the law of one ratio.
_MOST_CELLS = 2**19

#: How exact the masses of events are, relatively.
_EXACT = 1e-11

#: The thresholds of the largest of all outputs that are tried.
_THRESHOLDS = np.linspace(-1.0, 9.5, 211)


class _Law(NamedTuple):
    """The mean of the likelihood ratios of all slots, on a grid, without the person.

    The ratio of a slot is ``X = exp(z / sigma - 1 / (2 sigma^2))``, z standard normal; with the
    person, one slot has the law weighted by X. Each ratio is capped, and split between the grid
    points around it so that its mean stays. This is a larger law in convex order.
    """

    places: Floats
    #: From each place on, and nothing at the end: the masses with and without the person.
    above: tuple[npt.NDArray[np.longdouble], npt.NDArray[np.longdouble]]
    below: tuple[npt.NDArray[np.longdouble], npt.NDArray[np.longdouble]]
    #: What rounding may do to either mass, and what the cap may have taken of the mean.
    error: float
    capped: float
    #: By how much the grid may move the mean of the ratios, but for what is beyond :data:`error`.
    moved: float


def calls(strikes: Floats, noise: float, slots: int) -> Divergence:
    """Return an upper bound of ``E[(mean of X - strike)_+]``."""
    found = []
    for law in (_law(noise, slots, far) for far in _CAPS):
        tail = _call(law, strikes)
        found.append(tail._replace(delta=tail.delta + law.error * (1.0 + strikes) + law.capped))
    return functools.reduce(smaller, found)


def puts(strikes: Floats, noise: float, slots: int) -> Divergence:
    """Return an upper bound of ``E[(strike - mean of X)_+]``."""
    found = []
    for law in (_law(noise, slots, far) for far in _CAPS):
        tail = _put(law, strikes)
        found.append(tail._replace(delta=tail.delta + law.error * (1.0 + strikes)))
    return functools.reduce(smaller, found)


def real_calls(strikes: Floats, noise: float, slots: int) -> Divergence:
    """Return a lower bound of ``E[(mean of X - strike)_+]``.

    The split almost never moves the mean by more than :attr:`_Law.moved` (Hoeffding). Another bound
    comes from the largest output alone.
    """
    best = _of_event(strikes, _largest(noise, slots)[0], 1.0)
    for law in (_law(noise, slots, far) for far in _CAPS):
        tail = _call(law, strikes + law.moved)
        found = tail._replace(delta=tail.delta - law.error * (1.0 + strikes))
        best = larger(best, found)
    return best


def real_puts(strikes: Floats, noise: float, slots: int) -> Divergence:
    """Return a lower bound of ``E[(strike - mean of X)_+]``."""
    best = _of_event(strikes, _largest(noise, slots)[1], -1.0)
    for law in (_law(noise, slots, far) for far in _CAPS):
        tail = _put(law, strikes - law.moved)
        found = tail._replace(delta=tail.delta - law.error * (1.0 + strikes) - law.capped)
        best = larger(best, found)
    return best


def _of_event(strikes: Floats, masses: tuple[Floats, Floats], sign: float) -> Divergence:
    """Return the best bound of some events, from their masses."""
    one, other = masses
    paid = strikes[:, None] * other[None, :]
    values = sign * (one[None, :] - paid) - _EXACT * (one[None, :] + paid)
    best = values.argmax(axis=1)
    return Divergence(np.maximum(0.0, values[np.arange(best.size), best]), one[best], other[best])


@functools.lru_cache(maxsize=32)
def _largest(noise: float, slots: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Return the probabilities that the largest output is above and below each threshold.

    They are given with the person, and without.
    """
    from scipy import special  # noqa: PLC0415 (slow)

    others = special.log_ndtr(_THRESHOLDS)
    own = (slots - 1) * others + special.log_ndtr(_THRESHOLDS - 1.0 / noise)
    without = slots * others
    above = -np.expm1(own), -np.expm1(without)
    below = np.exp(np.maximum(own, -700.0)), np.exp(np.maximum(without, -700.0))
    return above, below


def _call(law: _Law, strikes: Floats) -> Divergence:
    place = np.searchsorted(law.places, strikes, side="right")
    first, second = (mass[place] for mass in law.above)
    value = np.where(second > 0.0, first - strikes.astype(np.longdouble) * second, 0.0)
    return Divergence(*(np.maximum(0.0, x).astype(np.float64) for x in (value, first, second)))


def _put(law: _Law, strikes: Floats) -> Divergence:
    place = np.searchsorted(law.places, strikes, side="left")
    first, second = (mass[place] for mass in law.below)
    value = strikes.astype(np.longdouble) * second - first
    return Divergence(*(np.maximum(0.0, x).astype(np.float64) for x in (value, first, second)))


@functools.lru_cache(maxsize=24)
def _law(noise: float, slots: int, far: float) -> _Law:
    # It takes longer to import than all of turnout.
    from scipy import fft, special  # noqa: PLC0415

    shift = 1.0 / noise
    largest = math.exp(min(_FARTHEST, far * shift + 0.5 * shift**2))
    edge = math.log(largest) / shift + 0.5 * shift
    beyond = special.ndtr(shift - edge)
    capped = max(0.0, float(beyond - largest * special.ndtr(-edge))) * (1.0 + 1e-9) + 1e-300
    # A coarser law is larger in convex order, and so are its moments.
    least = math.exp(-(far + 4.0) * shift - 0.5 * shift**2)
    coarse = np.concatenate([[0.0], np.geomspace(max(least, largest * 1e-9), largest, _COARSE - 1)])
    low, high = _window(coarse, _split(coarse, shift)[0], slots)
    step = (high - low) / (_POINTS - 4)
    most = math.ceil(largest / step)
    fewest = min(max(1, math.floor(least / step)), most - 1) if most > 1 else 1
    if most - fewest > _MOST_CELLS:
        step *= (most - fewest) / _MOST_CELLS
        most = math.ceil(largest / step)
        fewest = max(1, math.floor(least / step))
    index = np.append(0, np.arange(fewest, most + 1))
    points = step * index
    mass, lost = _split(points, shift)
    # The law with the person has masses in proportion to the ratio, but for what the cap took.
    own = points * mass
    start = math.floor(low / step)
    kind = np.longdouble
    transformed, weighted = (
        fft.rfft(np.bincount(index % _POINTS, law, minlength=_POINTS).astype(kind))
        for law in (mass, own)
    )
    others = power(transformed, slots - 1)
    laws = []
    for factor in (weighted, transformed):
        values = np.roll(fft.irfft(others * factor, _POINTS), -(start % _POINTS))
        laws.append(np.maximum(values, 0.0))
    unit = float(np.finfo(kind).eps)
    transform = 10.0 * unit * (1.0 + math.log2(_POINTS))
    norms = float(np.linalg.norm(mass)) * slots + float(np.linalg.norm(own))
    off = sum(float(np.linalg.norm(law.astype(np.float64))) for law in laws)
    error = 2.0 * (transform * norms + (transform + 4.0 * unit * slots) * off)
    error *= math.sqrt(_POINTS)
    error += lost
    error += _wrapped(points, mass, slots, (start * step, (start + _POINTS - 1) * step))
    error += math.exp(_EXCEEDED) * step
    places = (start + np.arange(_POINTS, dtype=np.float64)) * (step / slots)
    above = tuple(np.append(np.cumsum(law[::-1])[::-1], kind(0.0)) for law in laws)
    below = tuple(np.append(kind(0.0), np.cumsum(law)) for law in laws)
    moved = math.sqrt(-0.5 * _EXCEEDED / slots) * step
    return _Law(
        places, (above[0], above[1]), (below[0], below[1]), min(2.0 * error, 1e100), capped, moved
    )


def _split(points: Floats, shift: float) -> tuple[Floats, float]:
    """Split the law of a capped ratio between points, and keep its mean.

    The result also holds how far rounding may move the mean: each normal probability is off by a
    few units, which affects only its own cell.
    """
    from scipy import special  # noqa: PLC0415 (slow)

    with np.errstate(divide="ignore"):
        edges = np.log(points) / shift + 0.5 * shift
    masses, tails = _between(special, edges)
    means, others = _between(special, edges - shift)
    gaps = np.diff(points)
    up = np.clip((means - points[:-1] * masses) / gaps, 0.0, masses)
    law = np.append(masses - up, 0.0)
    law[1:] += up
    law[-1] += special.ndtr(-edges[-1])
    return law / law.sum(), _ROUNDING * float((points * tails + others).sum())


def _between(special: Any, edges: Floats) -> tuple[Floats, Floats]:
    """Return the normal masses between edges, from the smaller tail, and that tail."""
    below, above = special.ndtr(edges), special.ndtr(-edges)
    found = np.where(edges[:-1] < 0.0, np.diff(below), -np.diff(above))
    return found, np.minimum(below, above)


def _exponents(points: Floats, mass: Floats, slots: int) -> tuple[Floats, Floats]:
    """Return orders, and the logarithms of the moments of the sum around its mean."""
    mean = float((points * mass).sum())
    spread = math.sqrt(max(float(((points - mean) ** 2 * mass).sum()), 1e-300))
    most = 600.0 / points[-1]
    orders = np.geomspace(1e-3, 1e3, 61) / (spread * math.sqrt(slots))
    orders = np.unique(np.minimum(orders, most))
    signed = np.concatenate([-orders[::-1], orders])
    kept = mass > 0.0
    centred, kept_mass = points[kept] - mean, mass[kept]
    moments = np.array(
        [np.log1p(float((kept_mass * (np.expm1(o * centred) - o * centred)).sum())) for o in signed]
    )
    return signed, slots * moments


def _window(points: Floats, mass: Floats, slots: int) -> tuple[float, float]:
    """Find sums outside of which there is almost no mass."""
    mean = slots * float((points * mass).sum())
    orders, moments = _exponents(points, mass, slots)
    reach = (moments - _OUTSIDE) / np.abs(orders)
    low, high = reach[orders < 0.0].min(), reach[orders > 0.0].min()
    return max(0.0, mean - float(low)), mean + float(high) + points[-1]


def _wrapped(points: Floats, mass: Floats, slots: int, ends: tuple[float, float]) -> float:
    """Bound the mass outside of a window under the law, and under that with the person."""
    if points.size > _COARSE:
        # Coarser cells of the same law; the larger law in convex order only raises moments.
        stride = points.size // _COARSE + 1
        kept = np.append(np.arange(0, points.size - 1, stride), points.size - 1)
        place = np.clip(np.searchsorted(kept, np.arange(points.size), side="right") - 1, 0, None)
        place = np.minimum(place, kept.size - 2)
        share = (points - points[kept[place]]) / (points[kept[place + 1]] - points[kept[place]])
        lower = np.bincount(place, mass * (1.0 - share), minlength=kept.size)
        upper = np.bincount(place + 1, mass * share, minlength=kept.size)
        return _wrapped(points[kept], (lower + upper).astype(np.float64), slots, ends)
    mean = slots * float((points * mass).sum())
    orders, moments = _exponents(points, mass, slots)
    up, down = orders > 0.0, orders < 0.0
    over = float((moments - orders * (ends[1] - mean))[up].min())
    under = float((moments - orders * (ends[0] - mean))[down].min()) if ends[0] > 0.0 else -1e9
    weight = 1.0 + (ends[1] + float(1.0 / orders[up][0])) / slots
    return weight * (math.exp(min(0.0, over)) + math.exp(min(0.0, under)))
