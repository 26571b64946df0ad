"""How much of a distribution lies where another one is densest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.samplers.base import points
from turnout.samplers.study.metrics import box, distributions, is_array, log_density

#: Cells to the side of the box in which level sets are found, where there are no draws.
_LATTICE = {1: 1 << 16, 2: 512}


@dataclass(frozen=True)
class Coverage:
    """How much of a distribution lies where another one has most of its mass.

    Attributes
    ----------
    value
        The mass of the first distribution on the densest part of the second that holds the level.
    standard_error
        From samples: of the samples of the first distribution, and of the threshold if it comes
        from draws of the second. Zero where both were computed.
    threshold
        The log-density (log-probability) from which a point belongs to the densest part.
    level
        The mass of the densest part that was asked for.
    """

    value: float
    standard_error: float
    threshold: float
    level: float

    def __float__(self) -> float:
        return self.value


def mode_coverage(
    p: Any,
    q: Any,
    *,
    level: float = 0.95,
    draws: Any = None,
    bounds: Any = None,
    cells: int | None = None,
) -> Coverage:
    """Mass of p where q is densest: with t such that Q(log q > t) >= level, P(log q > t).

    A value far below the level tells that q misses modes of p. A value near it tells little by
    itself: a wide q covers everything.

    Parameters
    ----------
    p
        Records of p of shape (n_records, n_features), or a density; for a finite domain an array
        of probabilities.
    q
        A density, as :mod:`turnout.samplers.study.metrics` says; for a finite domain an array of
        probabilities.
    level
        The mass of q's densest part.
    draws
        Draws of q, from which the threshold is taken. Without them it is computed over ``bounds``.
    bounds
        The box, in one or two dimensions: needed where p is a density, or there are no draws.
    cells
        The number of cells to the side of the box: 65,536 on the line and 512 in the plane by
        default.

    Returns
    -------
    Coverage
        With standard errors where samples come in.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Notes
    -----
    With draws the densest part is that of the fewest points with the largest density that make up
    the level, ties included, so that it never has less than the level. The error of its threshold
    is taken from how the coverage changes when the level moves by its own standard error. Without
    draws the level set is found on the midpoints of the cells.

    Examples
    --------
    >>> mode_coverage([0.5, 0.5, 0.0], [0.8, 0.1, 0.1], level=0.7).value
    0.5
    >>> from scipy import stats
    >>> round(mode_coverage(stats.norm(0, 2), stats.norm(), bounds=(-20, 20)).value, 3)
    0.673
    """
    level = _arguments.confidence("level", level)
    if is_array(q):
        return _finite_coverage(*distributions(p, q), level)
    log_q = log_density("q", q)
    lattice = None if bounds is None else _lattice(*box(bounds), cells)
    if lattice is None and (draws is None or not is_array(p)):
        raise InvalidValueError("bounds must be given where p is a density or q has no draws")
    of_q = None if lattice is None else log_q(lattice[0])
    if draws is not None:
        own = log_q(points("draws", draws))
        weights = np.full(own.size, 1.0 / own.size)
        spread = math.sqrt(level * (1 - level) / own.size)
    else:
        assert lattice is not None
        assert of_q is not None
        own, spread = of_q, 0.0
        weights = np.exp(own) * lattice[1]
        _check_mass("q", float(weights.sum()), level)
    if is_array(p):
        reached = log_q(points("p", p))
        masses = np.full(reached.size, 1.0 / reached.size)
    else:
        assert lattice is not None
        assert of_q is not None
        reached = of_q
        masses = np.exp(log_density("p", p)(lattice[0])) * lattice[1]
    threshold = _threshold(own, weights, level)
    value = float(masses[reached >= threshold].sum())
    square = value * (1 - value) / reached.size if is_array(p) else 0.0
    if spread:
        sides = [
            float(masses[reached >= _threshold(own, weights, side)].sum())
            for side in (max(level - spread, 0.0), min(level + spread, 1.0))
        ]
        square += ((sides[1] - sides[0]) / 2) ** 2
    return Coverage(min(value, 1.0), math.sqrt(max(square, 0.0)), threshold, level)


def _threshold(values: Floats, weights: Floats, level: float) -> float:
    """Find the largest value such that those from it on have at least a share of the weights."""
    order = np.argsort(-values, kind="stable")
    held = np.cumsum(weights[order])
    place = int(np.searchsorted(held, level * held[-1] * (1 - 1e-12)))
    return float(values[order[min(place, values.size - 1)]])


def _finite_coverage(p: Floats, q: Floats, level: float) -> Coverage:
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    threshold = _threshold(logs, q, level)
    # Probabilities that differ by rounding alone belong together.
    inside = (logs >= threshold) | (np.abs(q - math.exp(threshold)) <= 1e-12)
    return Coverage(min(float(p[inside].sum()), 1.0), 0.0, threshold, level)


def _lattice(low: Floats, high: Floats, cells: int | None) -> tuple[Floats, float]:
    """Give the midpoints of equal cells, and the volume of a cell."""
    count = _LATTICE[low.size]
    if cells is not None:
        count = _arguments.integer("cells", cells, least=2, most=2 ** (24 // low.size))
    sides = (high - low) / count
    axes = [start + side * (np.arange(count) + 0.5) for start, side in zip(low, sides, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, low.size)
    return grid, float(np.prod(sides))


def _check_mass(argument: str, mass: float, level: float) -> None:
    if mass < level:
        raise InvalidValueError(
            f"bounds must hold a mass of at least level = {level:g} of {argument}, got {mass:.4g}"
        )
