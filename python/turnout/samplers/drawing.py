"""Draw with an exact guarantee: choose among proposals from the reference.

Proposals never depend on private data. Only the choice among them does, and
integer weights make that choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._seeds import derived
from turnout._types import Floats
from turnout.samplers.reference import Reference

#: More proposals than this are never chosen for the user.
MOST = 2**20

#: Points that are evaluated at once.
_CHUNK = 2**18


def automatic_proposals(epsilon: float) -> int:
    """Return the default number of proposals for resampling.

    Up to epsilon = 16 a weight is at most 1/256 of their sum, whatever the data.
    """
    return int(min(MOST, max(1024, math.ceil(256.0 * math.exp(min(epsilon, 64.0) / 2.0)))))


def usable_proposals(proposals: Any, epsilon: float) -> int:
    """Return the requested number of proposals, or the number that epsilon needs.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a valid number of proposals.
    """
    if proposals is None:
        return automatic_proposals(epsilon)
    return _arguments.integer("proposals", proposals, least=2, most=2**30)


def resampling(
    reference: Reference,
    log_density: Callable[[Floats], Floats],
    *,
    band: _core.SamplerBand,
    proposals: int,
    count: int,
    seed: int | None,
) -> Floats:
    """Draw by mollified resampling: one of a fixed number of proposals, by clipped weights.

    The weights are integers within the limits of the band and have a fixed sum, so the
    probabilities of any choice under two data sets differ by at most ``exp(epsilon)``, exactly,
    even given the proposals. Every proposal is distributed as the reference, so the density of the
    draw relative to it stays within the band. No normaliser has to be known.

    Parameters
    ----------
    reference
        The distribution that proposals come from.
    log_density
        The logarithm of any density estimate, up to a constant, at points of shape (n, d). Minus
        infinity and NaN are read as zero density.
    band
        The band of the core.
    proposals
        How many proposals a draw sees.
    count
        The number of draws.
    seed
        For tests and simulations only.

    Returns
    -------
    numpy.ndarray
        float64 of shape (count, d).
    """
    result = np.empty((count, reference.dimensions))
    for row in range(count):
        points = reference._draw_spread(proposals, seed=derived(seed, 1, row))
        ratios = log_ratios(reference, log_density, points)
        chosen = band.resample(ratios[None, :], seed=derived(seed, 2, row))
        result[row] = points[chosen[0]]
    return result


def log_ratios(
    reference: Reference, log_density: Callable[[Floats], Floats], points: Floats
) -> Floats:
    """Return log P/Q0 at points, or minus infinity where either is not a number."""
    with np.errstate(all="ignore"):
        ratios = evaluated(log_density, points) - evaluated(reference.log_density, points)
    return np.where(np.isnan(ratios), -np.inf, ratios)


def evaluated(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Evaluate a function at points of shape (n, d), a limited number of points at a time."""
    values = np.empty(len(points))
    for first in range(0, len(points), _CHUNK):
        part = slice(first, first + _CHUNK)
        # A copy: what evaluates the points must not be able to change what is released.
        values[part] = function(points[part].copy())
    return values
