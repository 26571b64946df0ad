"""Distances between frequencies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from turnout._types import Floats
from turnout.errors import InvalidValueError


def _hellinger(one: Floats, other: Floats) -> float:
    return float(np.sqrt(0.5 * ((np.sqrt(one) - np.sqrt(other)) ** 2).sum()))


def _kl(one: Floats, other: Floats) -> float:
    """KL divergence of the estimate from the reference, in nats: sum of r log(r / f)."""
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
