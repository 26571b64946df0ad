"""Delta of random participation in NumPy and SciPy: the program that turnout is measured against.

Written from the formula alone. With ``alpha = e^epsilon``, ``alpha' = 1 + (alpha - 1) / (p q)`` and
``beta = alpha / alpha'``, delta is ``p q`` times the mean, over the number i of other elements that
are sampled, of the divergence at ``alpha'`` of one Gaussian from a mixture::

    remove   N(i+1)  from  (1 - beta) c1 N(0) + (c2 + beta (1 - c2)) N(i)
    add      N(0)    from  (1 - beta) c1 N(i) + (1 - beta) c2 N(0) + beta N(1)

where ``c1 = (1 - p) / (1 - p q)`` and ``c2 = p (1 - q) / (1 - p q)``. The event is a half-line;
its end is found by Newton's method, for all i and all points of a grid at once. Rates are inside
(0, 1). What is computed is the nearest value, not an upper bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

Floats = npt.NDArray[np.float64]

#: The mass of the binomial law that is cut off on either side.
CUT = 1e-18
NEWTON_STEPS = 60


def delta(
    epsilon: npt.ArrayLike, noise: npt.ArrayLike, p: float, q: float, local_size: int
) -> Floats:
    """Return the larger of both directions, for arrays that broadcast against each other."""
    points, sigmas = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(noise, float))
    sampled, weights = sizes(q, local_size)
    columns = points[..., np.newaxis], sigmas[..., np.newaxis]
    larger = np.maximum(
        remove(*columns, p, q, sampled) @ weights, add(*columns, p, q, sampled) @ weights
    )
    return np.asarray(p * q * larger)


def sizes(q: float, local_size: int) -> tuple[Floats, Floats]:
    """Return the numbers of other elements that are sampled, and their probabilities."""
    first = max(0, int(stats.binom.ppf(CUT, local_size, q)) - 1)
    last = min(local_size, local_size - int(stats.binom.ppf(CUT, local_size, 1.0 - q)) + 1)
    sampled = np.arange(first, last + 1)
    return sampled.astype(float), stats.binom.pmf(sampled, local_size, q)


def mixture(epsilon: Floats, p: float, q: float) -> tuple[Floats, Floats, float, float]:
    """Return ``alpha'``, ``beta``, ``c1`` and ``c2``."""
    raised = 1.0 + np.expm1(epsilon) / (p * q)
    return (
        raised,
        np.exp(epsilon) / raised,
        (1.0 - p) / (1.0 - p * q),
        p * (1.0 - q) / (1.0 - p * q),
    )


def remove(epsilon: Floats, noise: Floats, p: float, q: float, sampled: Floats) -> Floats:
    """Return the divergence of every term, last axis, of the law with the element."""
    raised, beta, c1, c2 = mixture(epsilon, p, q)
    far, near = (1.0 - beta) * c1, c2 + beta * (1.0 - c2)
    # Seen from the single Gaussian, the others lie at -(i + 1) and -1.
    end = -half_line(far, (sampled + 1.0) / noise, near, 1.0 / noise, 1.0 / raised)
    inside = special.ndtr(-end)
    others = far * special.ndtr(-end - (sampled + 1.0) / noise)
    others += near * special.ndtr(-end - 1.0 / noise)
    return np.maximum(0.0, inside - raised * others)


def add(epsilon: Floats, noise: Floats, p: float, q: float, sampled: Floats) -> Floats:
    """Return the divergence of every term, last axis, of the law without the element."""
    raised, beta, c1, c2 = mixture(epsilon, p, q)
    far, same = (1.0 - beta) * c1, (1.0 - beta) * c2
    # Where nothing else is sampled, the client's absence cannot be seen either.
    same = same + np.where(sampled > 0.0, 0.0, far)
    far = np.where(sampled > 0.0, far, 0.0)
    end = half_line(far, sampled / noise, beta, 1.0 / noise, 1.0 / raised - same)
    others = far * special.ndtr(end - sampled / noise) + same * special.ndtr(end)
    others += beta * special.ndtr(end - 1.0 / noise)
    return np.maximum(0.0, special.ndtr(end) - raised * others)


def half_line(
    first: Floats, first_shift: Floats, second: Floats, second_shift: Floats, level: Floats
) -> Floats:
    """Return where two likelihood ratios ``w exp(s z - s^2 / 2)`` add up to a level.

    The logarithm of the sum is convex and rises, so that Newton's method comes down to the root
    from any point above it; minus infinity where the level is not above zero.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        target = np.log(np.maximum(level, 0.0))
        logs = np.log(first) - 0.5 * first_shift**2, np.log(second) - 0.5 * second_shift**2
        alone = (target - logs[0]) / first_shift, (target - logs[1]) / second_shift
        z = np.fmin(np.where(first > 0.0, alone[0], np.inf), alone[1])
        for _ in range(NEWTON_STEPS):
            terms = logs[0] + first_shift * z, logs[1] + second_shift * z
            total = np.logaddexp(*terms)
            slope = first_shift * np.exp(terms[0] - total)
            slope += second_shift * np.exp(terms[1] - total)
            step = (total - target) / slope
            step = np.where(np.isfinite(step), step, 0.0)
            z = z - step
            if np.all(np.abs(step) <= 1e-13 * (1.0 + np.abs(np.where(np.isfinite(z), z, 0.0)))):
                break
    return np.where(level > 0.0, z, -np.inf)


def calibrate(epsilon: float, target: float, p: float, q: float, local_size: int) -> float:
    """Return the noise at which delta is the target, by Brent's method."""

    def excess(logarithm: float) -> float:
        return float(np.log(delta(epsilon, np.exp(logarithm), p, q, local_size) / target))

    return float(np.exp(optimize.brentq(excess, -1.0, 3.0, xtol=1e-12, rtol=1e-12)))
