"""Draws whose guarantee is exact: a choice among proposals from the reference.

Proposals never depend on private data. What does is which of them is returned, and that is decided
by exact trials or by integer weights.
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

#: The chance that no trial is accepted, at most, where the number of trials is chosen for the user.
FALLBACK = 1e-6

#: More trials or proposals than this are never chosen for the user.
MOST = 2**20

#: Points that are evaluated at once.
_CHUNK = 2**18


def automatic_trials(most: float) -> int:
    """Give the number of trials after which the fall-back has a chance of at most 1e-6.

    The chance of acceptance is at least ``exp(-most)``, whatever the data: the number depends on
    public parameters only.
    """
    return min(MOST, math.ceil(-math.log(FALLBACK) * math.exp(min(most, 64.0))) + 1)


def automatic_proposals(epsilon: float) -> int:
    """Give a number of proposals for resampling.

    Up to epsilon = 16 a weight is at most 1/256 of their sum, whatever the data.
    """
    return int(min(MOST, max(1024, math.ceil(256.0 * math.exp(min(epsilon, 64.0) / 2.0)))))


def usable_proposals(proposals: Any, epsilon: float) -> int:
    """Return a number of proposals: what was asked for, or what epsilon needs.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is no number of proposals.
    """
    if proposals is None:
        return automatic_proposals(epsilon)
    return _arguments.integer("proposals", proposals, least=2, most=2**30)


def rejection(
    reference: Reference,
    gaps: Callable[[Floats], Floats],
    *,
    most: float,
    trials: int,
    count: int,
    seed: int | None,
) -> Floats:
    """Draw by a fixed number of rejection trials.

    Each proposal x is accepted with probability ``exp(-g(x))`` exactly, where g(x) is the gap
    clipped to [0, most]; the first that is accepted is the draw, and if none is, one more draw from
    the reference. All trials are always made. As the acceptance lies between ``exp(-most)`` and 1,
    the density of the draw relative to the reference lies between ``exp(-most)`` and ``exp(most)``,
    whatever the gaps are.

    Parameters
    ----------
    reference
        Where proposals come from.
    gaps
        Minus the logarithm of the acceptance at points of shape (n, d); NaN is read as ``most``.
    most
        The largest gap.
    trials
        How many proposals a draw sees.
    count
        How many draws.
    seed
        For tests and simulations only.

    Returns
    -------
    numpy.ndarray
        float64 of shape (count, d).
    """
    result = np.empty((count, reference.dimensions))
    rows = max(1, _CHUNK // trials)
    for start in range(0, count, rows):
        size = min(rows, count - start)
        proposals = reference.draw(size * trials, seed=derived(seed, 1, start))
        gap = evaluated(gaps, proposals)
        accepted = _core.first_accepted(
            gap.reshape(size, trials), most, seed=derived(seed, 2, start)
        )
        # Drawn whether it is needed or not: time tells nothing.
        drawn = reference.draw(size, seed=derived(seed, 3, start))
        rest = proposals.reshape(size, trials, -1)
        some = accepted >= 0
        drawn[some] = rest[some, accepted[some]]
        result[start : start + size] = drawn
    return result


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
    draw relative to it stays within the band. There is no normaliser to know.

    Parameters
    ----------
    reference
        Where proposals come from.
    log_density
        The logarithm of any density estimate, up to a constant, at points of shape (n, d). Minus
        infinity and NaN are read as zero density.
    band
        The band of the core.
    proposals
        How many proposals a draw sees.
    count
        How many draws.
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
    """Give log P/Q0 at points; minus infinity where either is not a number."""
    with np.errstate(all="ignore"):
        ratios = evaluated(log_density, points) - evaluated(reference.log_density, points)
    return np.where(np.isnan(ratios), -np.inf, ratios)


def evaluated(function: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Evaluate a function of points of shape (n, d), of not too many of them at once."""
    values = np.empty(len(points))
    for first in range(0, len(points), _CHUNK):
        part = slice(first, first + _CHUNK)
        # A copy: what evaluates the points must not be able to change what is released.
        values[part] = function(points[part].copy())
    return values
