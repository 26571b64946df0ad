"""Draw by rejection: a fixed number of proposals from the reference, and exact trials."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from turnout import _core
from turnout._seeds import derived
from turnout._types import Floats
from turnout.samplers.drawing import evaluated
from turnout.samplers.reference import Reference

#: The chance that no trial is accepted, at most, where the number of trials is chosen for the user.
FALLBACK = 1e-6

#: More trials than this are never chosen for the user.
MOST = 2**20

#: Points that are evaluated at once.
_CHUNK = 2**18


def automatic_trials(most: float) -> int:
    """Return the number of trials after which the chance of the fall-back is at most 1e-6.

    The chance of acceptance is at least ``exp(-most)``, whatever the data. So the number depends on
    public parameters only.
    """
    return min(MOST, math.ceil(-math.log(FALLBACK) * math.exp(min(most, 64.0))) + 1)


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
    clipped to [0, most]. The first accepted proposal is the draw. If no proposal is accepted, the
    draw is one more point from the reference. All trials are always made. As the acceptance lies
    between ``exp(-most)`` and 1, the density of the draw relative to the reference lies between
    ``exp(-most)`` and ``exp(most)``, whatever the gaps are.

    Parameters
    ----------
    reference
        The distribution that proposals come from.
    gaps
        Minus the logarithm of the acceptance at points of shape (n, d); NaN is read as ``most``.
    most
        The largest gap.
    trials
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
