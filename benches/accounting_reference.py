"""Delta of random participation in NumPy and SciPy: the program that turnout is measured against.

Written from the formula alone. With ``a = e^epsilon`` and i other elements sampled, which has
probability ``w_i``, delta is at most the sum over i of ``w_i`` times the integral of the positive
part of

    remove   pq N(i+1) - p (a-1+q) N(i) - (a-1) (1-p) c_i N(0)
    add      p (q - (a-1) (1-q)) N(0) - pqa N(1) - (a-1) (1-p) c_i N(i)

for shares ``c_i`` of mean one. The best of them share one place t, seen from the far Gaussian,
which is found by Newton's method for all points of a grid at once. Rates are inside (0, 1). What is
computed is the nearest value, not an upper bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

Floats = npt.NDArray[np.float64]

#: The mass of the binomial law that is cut off on either side.
CUT = 1e-18
NEWTON_STEPS = 100


def delta(
    epsilon: npt.ArrayLike, noise: npt.ArrayLike, p: float, q: float, local_size: int
) -> Floats:
    """Return the larger of both directions, for arrays that broadcast against each other."""
    points, sigmas = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(noise, float))
    sampled, weights = sizes(q, local_size)
    gain, step = np.expm1(points)[..., np.newaxis], 1.0 / sigmas[..., np.newaxis]
    far = gain * (1.0 - p)
    remove = best((p * q + 0.0 * gain, p * (gain + q), far), (sampled + 1.0, weights), step)
    single = p * (q - gain * (1.0 - q))
    add = best((np.maximum(single, 1e-300), p * q * (1.0 + gain), far), (sampled, weights), step)
    return np.maximum(remove, np.where(single[..., 0] > 0.0, add, 0.0))


def sizes(q: float, local_size: int) -> tuple[Floats, Floats]:
    """Return the numbers of other elements that are sampled, and their probabilities."""
    first = max(0, int(stats.binom.ppf(CUT, local_size, q)) - 1)
    last = min(local_size, local_size - int(stats.binom.ppf(CUT, local_size, 1.0 - q)) + 1)
    sampled = np.arange(first, last + 1)
    return sampled.astype(float), stats.binom.pmf(sampled, local_size, q)


def best(
    coefficients: tuple[Floats, Floats, Floats], law: tuple[Floats, Floats], step: Floats
) -> Floats:
    """Return the sum over the last axis, of places with their weights, for the best shares."""
    (single, near, far), (places, weights) = coefficients, law
    distance = places * step
    begins = distance - 0.5 * step + np.log(near / single) / step
    logs = np.log(weights) + np.log(single / far) - 0.5 * distance**2
    with np.errstate(divide="ignore"):
        enough = np.maximum(begins + np.log(2) / step, (np.log(2) - logs) / distance)
    low, t = begins.min(axis=-1, keepdims=True), enough.min(axis=-1, keepdims=True)
    for _ in range(NEWTON_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            terms = np.exp(logs + distance * t)
            lacks = -np.expm1(np.minimum(0.0, step * (begins - t)))
            used = (terms * lacks).sum(axis=-1, keepdims=True)
            growth = np.where(lacks > 0.0, distance * lacks + step * (1.0 - lacks), 0.0)
            slope = (terms * growth).sum(axis=-1, keepdims=True)
            move = np.log(used) * used / slope
        moved = t - move
        moved = np.where(moved > low, moved, 0.5 * (t + low))
        done = np.abs(moved - t) <= 1e-13 * (1.0 + np.abs(t))
        t = moved
        if done.all():
            break
    begin = np.maximum(t, begins)
    missed = special.ndtr(-begin)
    with np.errstate(over="ignore", invalid="ignore"):
        shares = np.where((begins < t) & (missed > 0.0), terms * lacks / weights, 0.0)
    inside = single * special.ndtr(distance - begin) - near * special.ndtr(distance - step - begin)
    return np.asarray((inside - far * np.where(missed > 0.0, shares, 0.0) * missed) @ weights)


def calibrate(epsilon: float, target: float, p: float, q: float, local_size: int) -> float:
    """Return the noise at which delta is the target, by Brent's method."""

    def excess(logarithm: float) -> float:
        return float(np.log(delta(epsilon, np.exp(logarithm), p, q, local_size) / target))

    return float(np.exp(optimize.brentq(excess, -1.0, 3.0, xtol=1e-12, rtol=1e-12)))
