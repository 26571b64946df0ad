"""The distribution under which the counts of cells are likeliest, and a smooth one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout._types import Floats
from turnout.distribution.law import WaveLaw

#: The methods by name, the default first.
METHODS: Final = ("ems", "ml")

#: Smoothing stops when the log-likelihood of all reports changes by less, as published; the largest
#: likelihood is found when no distribution can have one that is larger by more.
TOLERANCE: Final = 1e-3

#: What sums of 64-bit numbers cannot tell apart, as a share: of more than 10^9 reports.
_ROUNDING: Final = 1e-12

_MOST_STEPS: Final = {"ems": 20_000, "ml": 200}

#: The number of bins for which (1, 2, 1) / 4 has the right width.
_FINE: Final = 256


@dataclass(frozen=True)
class Solution:
    """A distribution over the bins.

    Attributes
    ----------
    frequencies
        One for each bin: non-negative, adding up to one.
    steps
        How many steps it took.
    converged
        Whether the rule for stopping was met.
    """

    frequencies: Floats
    steps: int
    converged: bool


def solved(law: WaveLaw, counts: Floats, method: str) -> Solution:
    """Find the distribution for counts of the cells, whose sum is how many reports they are worth.

    Examples
    --------
    >>> law = WaveLaw(3, 1, 8, 1)
    >>> solved(law, np.array([26.0, 12.0, 12.0]), "ml").frequencies.round(3)
    array([0.6, 0.2, 0.2])
    """
    return _smoothed(law, counts) if method == "ems" else _likeliest(law, counts)


def _smoothed(law: WaveLaw, counts: Floats) -> Solution:
    """Expectation-maximisation, each step followed by an average over neighbours.

    The published average is (1, 2, 1) / 4; on a grid of few bins that is so wide that it hides what
    reports say. Below 256 bins the weights of the neighbours are those that smooth as many units of
    the number as on 256 bins. At an end, what would fall outside stays.
    """
    aside = 0.25 * min(1.0, (law.bins / _FINE) ** 2)
    frequencies = np.full(law.bins, 1.0 / law.bins)
    before = -np.inf
    seen = counts > 0
    for step in range(_MOST_STEPS["ems"]):
        shares = law.cell_shares(frequencies)
        value = float(counts[seen] @ np.log(shares[seen]))
        if abs(value - before) < max(TOLERANCE, 1e-3 * _ROUNDING * abs(value)):
            return Solution(frequencies, step, True)
        before = value
        updated = frequencies * law.bin_sums(counts / shares)
        updated /= updated.sum()
        padded = np.concatenate([updated[:1], updated, updated[-1:]])
        frequencies = aside * (padded[:-2] + padded[2:]) + (1 - 2 * aside) * updated
    return Solution(frequencies, _MOST_STEPS["ems"], False)


def _likeliest(law: WaveLaw, counts: Floats) -> Solution:
    """Newton's method on the conditions of the maximum, kept inside of the simplex.

    With multipliers ``z``: ``P^T (c / P f) + z = S`` and ``f z = mu`` for a falling ``mu``, ``S``
    the sum of the counts ``c``. By concavity the log-likelihood is nowhere larger by more than
    ``max P^T (c / P f) - S``.
    """
    total = float(counts.sum())
    frequencies = np.full(law.bins, 1.0 / law.bins)
    multipliers = np.full(law.bins, total)
    for step in range(_MOST_STEPS["ml"]):
        shares = law.cell_shares(frequencies)
        gradient = law.bin_sums(counts / shares)
        scaled = frequencies / frequencies.sum()
        gap = float(law.bin_sums(counts / law.cell_shares(scaled)).max()) - total
        if gap <= max(TOLERANCE, _ROUNDING * total):
            return Solution(scaled, step, True)
        aim = 0.1 * float(frequencies @ multipliers) / law.bins
        curvature = law.information(counts / shares**2)
        curvature[np.diag_indices(law.bins)] += multipliers / frequencies
        change = np.linalg.solve(curvature, gradient - total + aim / frequencies)
        other = aim / frequencies - multipliers - multipliers / frequencies * change
        frequencies = frequencies + _inside(frequencies, change) * change
        multipliers = multipliers + _inside(multipliers, other) * other
    return Solution(frequencies / frequencies.sum(), _MOST_STEPS["ml"], False)


def _inside(point: Floats, change: npt.NDArray[np.floating[Any]]) -> float:
    """How far a change can be followed with all numbers above zero, and not further than it is."""
    falling = change < 0
    if not falling.any():
        return 1.0
    return min(1.0, 0.995 * float((-point[falling] / change[falling]).min()))
