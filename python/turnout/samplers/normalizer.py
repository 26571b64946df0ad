"""Compute normalisers of bounded scores, with an interval that holds whatever the score is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from turnout import _arguments, _core
from turnout._seeds import derived
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.samplers.drawing import evaluated
from turnout.samplers.reference import Reference

#: Relative room for the rounding of sums of exponentials.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LogNormalizer:
    """The logarithm of a normaliser, between proven bounds.

    Attributes
    ----------
    value
        The estimate, in nats.
    low, high
        Bounds that hold together with at least the stated confidence.
    confidence
        The probability, over the random points, that both bounds hold.
    points
        The number of points evaluated.
    """

    value: float
    low: float
    high: float
    confidence: float
    points: int

    @property
    def error(self) -> float:
        """The larger distance of a bound from the value."""
        return max(self.high - self.value, self.value - self.low)


def log_normalizer(
    score: Callable[[Floats], Floats],
    reference: Reference,
    *,
    least: float,
    most: float,
    points: int = 2**17,
    confidence: float = 1.0 - 1e-9,
    seed: int | None = None,
) -> LogNormalizer:
    """Integrate ``exp(score)`` under a reference, with a proven error bound.

    Randomised quadrature: the unit cube behind the reference (one or two uniform numbers a point)
    is cut into equal cells with two uniform points each; other references give independent pairs
    (plain Monte Carlo). The differences within the pairs bound the variance. Only the range of the
    score is assumed, so the bound holds for any classifier, smooth or not.

    Parameters
    ----------
    score
        Gives scores at points of shape (n, d).
    reference
        The distribution that is integrated under.
    least, most
        The range of the score; values outside are clipped to it, NaN is read as ``least``.
    points
        The approximate number of points to evaluate.
    confidence
        The probability that both bounds hold.
    seed
        Makes the points reproducible.

    Returns
    -------
    LogNormalizer
        Value and bounds of the logarithm.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``points`` is below 2, ``confidence`` is not a level, or the range is empty or not
        finite.

    Notes
    -----
    With pairs (a_j, b_j) in m cells, weights in a range R, v the mean of (a_j - b_j)^2 / 2 and
    L = log(4 / (1 - confidence)): the mean within-cell variance s^2 is at most
    ((c + sqrt(c^2 + 4 v)) / 2)^2 with c^2 = R^2 L / m, since the lower tail of a sum of independent
    non-negative variables is sub-Gaussian with their second moments (Maurer, "A bound on the
    deviation probability for sums of non-negative random variables", 2003). Bernstein's inequality
    then bounds the error of the mean by t / m, t = R L / 3 + sqrt((R L / 3)^2 + m s^2 L).

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.samplers import StandardNormal
    >>> found = log_normalizer(
    ...     lambda points: np.clip(points[:, 0], -0.5, 0.5), StandardNormal(1), least=-0.5,
    ...     most=0.5, seed=1,
    ... )
    >>> round(found.value, 3), found.error < 1e-3
    (0.09, True)
    """
    least, most = _arguments.number("least", least), _arguments.number("most", most)
    if not -math.inf < least <= most < math.inf:
        raise InvalidValueError(
            f"least and most must be finite and in order, got {least} and {most}"
        )
    level = _arguments.confidence("confidence", confidence)
    checked = _arguments.seed(seed)
    wanted = _arguments.integer("points", points, least=2)
    scores = np.array([evaluated(score, half) for half in _pairs(reference, wanted // 2, checked)])
    clipped = np.clip(np.where(np.isnan(scores), least, scores), least, most)
    # Relative to the top of the range, so that nothing overflows.
    values = np.exp(clipped - most)
    count = values.shape[1]
    span = 1.0 - math.exp(least - most)
    tail = math.log(4.0 / (1.0 - level))
    within = float(np.mean((values[0] - values[1]) ** 2) / 2.0)
    step = span * math.sqrt(tail / count)
    variance = ((step + math.sqrt(step**2 + 4.0 * within)) / 2.0) ** 2
    linear = span * tail / 3.0
    error = (linear + math.sqrt(linear**2 + count * variance * tail)) / count
    mean = float(values.mean())
    low = max(mean * (1.0 - _ROUNDING) - error, math.exp(least - most))
    high = min(mean * (1.0 + _ROUNDING) + error, 1.0)
    return LogNormalizer(
        value=most + math.log(mean),
        low=most + math.log(low),
        high=most + math.log(high),
        confidence=level,
        points=2 * count,
    )


def _pairs(reference: Reference, count: int, seed: int | None) -> tuple[Floats, Floats]:
    words = reference.words
    if words not in (1, 2):
        drawn = reference.draw(2 * count, seed=derived(seed, 4))
        return drawn[:count], drawn[count:]
    side = count if words == 1 else max(1, math.isqrt(count))
    axis = np.arange(side, dtype=np.float64)
    corners = np.stack(np.meshgrid(*[axis] * words, indexing="ij"), axis=-1).reshape(-1, words)
    inside = _core.uniforms(2 * corners.size, derived(seed, 4)).reshape(2, *corners.shape)
    cells = np.clip((corners + inside) / side, 2.0**-54, 1.0 - 2.0**-53)
    return reference.transform(cells[0]), reference.transform(cells[1])
