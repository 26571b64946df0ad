"""Projections of frequencies to distributions, and distances between frequencies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from turnout._types import Floats
from turnout.errors import EstimatorError, InvalidValueError


def simplex(frequencies: Floats) -> Floats:
    """Find the nearest frequencies (Euclidean) that are non-negative and add up to one.

    Duchi, Shalev-Shwartz, Singer, Chandra, "Efficient projections onto the l1-ball for learning in
    high dimensions" (2008), figure 1. Shifting all entries by the same number does not change the
    projection. So it is also the weighted least-squares projection if all answers have one variance
    and one covariance, whatever the latter. It makes no difference that estimates of some oracles
    do not add up to one.

    Examples
    --------
    >>> simplex(np.array([0.7, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    # The projection does not change when all entries are shifted: huge ones keep their digits.
    frequencies = frequencies - frequencies.max()
    descending = np.sort(frequencies)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, frequencies.size + 1)
    last = int(np.flatnonzero(descending > excess)[-1])
    result: Floats = np.maximum(frequencies - excess[last], 0.0)
    return result


def summing_to_one(frequencies: Floats) -> Floats:
    """Shift all frequencies alike, so that they add up to one."""
    shifted: Floats = frequencies + (1.0 - frequencies.sum()) / frequencies.size
    return shifted


def norm_sub(frequencies: Floats) -> Floats:
    """Set negatives to zero and shift the rest until they add up to one.

    Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li, "Locally differentially private frequency estimation
    with consistency" (2020). The result is the Euclidean projection too if the positive entries add
    up to at least one, as those of direct encoding by ``"hajek"`` with a common rate do. The
    estimates of oracles whose reports support any number of answers add up to one only on average.
    If their positive ones add up to less, this raises only those, while :func:`simplex` raises all.

    Examples
    --------
    >>> norm_sub(np.array([0.7, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    positive = frequencies > 0
    if not positive.any():
        positive = frequencies == frequencies.max()
    while True:
        shift = (1.0 - frequencies[positive].sum()) / positive.sum()
        remaining = positive & (frequencies + shift > 0)
        if not remaining.any():
            # The entries are so huge that one is lost in rounding.
            return simplex(frequencies)
        if (remaining == positive).all():
            return np.where(positive, frequencies + shift, 0.0)
        positive = remaining


def clip_normalize(frequencies: Floats) -> Floats:
    """Set negatives to zero and divide by the sum.

    Raises
    ------
    EstimatorError
        If no frequency is positive.

    Examples
    --------
    >>> clip_normalize(np.array([0.75, 0.5, -0.1]))
    array([0.6, 0.4, 0. ])
    """
    clipped = np.maximum(frequencies, 0.0)
    total = clipped.sum()
    if total <= 0.0:
        raise EstimatorError('"clip_normalize" needs at least one positive estimate: use "simplex"')
    result: Floats = clipped / total
    return result


#: All ways of post-processing by name.
PROJECTIONS: dict[str, Callable[[Floats], Floats]] = {
    "simplex": simplex,
    "norm_sub": norm_sub,
    "clip_normalize": clip_normalize,
}


def _hellinger(one: Floats, other: Floats) -> float:
    return float(np.sqrt(0.5 * ((np.sqrt(one) - np.sqrt(other)) ** 2).sum()))


def _kl(one: Floats, other: Floats) -> float:
    """Return the KL divergence of the estimate from the reference, in nats: sum of r log(r / f)."""
    held = other > 0
    with np.errstate(divide="ignore"):
        return float((other[held] * (np.log(other[held]) - np.log(one[held]))).sum())


#: All distances by name, each of (estimate, reference).
DISTANCES: dict[str, Callable[[Floats, Floats], float]] = {
    "total_variation": lambda one, other: float(0.5 * np.abs(one - other).sum()),
    "l1": lambda one, other: float(np.abs(one - other).sum()),
    "l2": lambda one, other: float(np.sqrt(((one - other) ** 2).sum())),
    "rmse": lambda one, other: float(np.sqrt(((one - other) ** 2).mean())),
    "max": lambda one, other: float(np.abs(one - other).max()),
    "hellinger": _hellinger,
    "kl": _kl,
}

_OF_DISTRIBUTIONS = ("hellinger", "kl")
_TOLERANCE = 1e-6


def distance(estimate: Floats, reference: Floats, metric: str) -> float:
    """Measure the distance of an estimate from a reference.

    Raises
    ------
    InvalidValueError
        If the metric is defined for distributions only and one side has negative entries or does
        not add up to one.

    Examples
    --------
    >>> distance(np.array([0.5, 0.5]), np.array([0.25, 0.75]), "total_variation")
    0.25
    """
    if metric in _OF_DISTRIBUTIONS:
        for name, side in (("the estimate", estimate), ("reference", reference)):
            if (side < 0).any():
                position = int(np.flatnonzero(side < 0)[0])
                raise InvalidValueError(
                    f"{metric!r} is defined for distributions, and {name} has the negative entry "
                    f"{side[position]:g} at code {position}: project it first"
                )
            if abs(side.sum() - 1.0) > _TOLERANCE:
                raise InvalidValueError(
                    f"{metric!r} is defined for distributions, and {name} does not add up to 1 but "
                    f"to {side.sum():g}: project or normalise it first"
                )
    return DISTANCES[metric](estimate, reference)
