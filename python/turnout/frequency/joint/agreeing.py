"""Tables of two questions that are given the sums over their rows and columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from turnout._types import Floats
from turnout.frequency.estimation.projection import summing_to_one
from turnout.frequency.estimation.shrinkage import Shrinkage, finished, posterior

#: How fast what two answers have beyond independence grows with the product of their shares:
#: not at all, up to in proportion.
_POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Its variances that are tried, of that which the table shows.
_SCALES = (0.0, *2.0 ** np.arange(-10, 4.5, 0.5))
_STEPS = 1000
_CLOSE = 1e-13


def agreed(cells: Floats, rows: Floats, columns: Floats) -> Floats:
    """Find the nearest table with these sums; it can have cells below zero."""
    cells = summing_to_one(cells)
    cells = cells + ((rows - cells.sum(axis=1)) / columns.size)[:, None]
    found: Floats = cells + (columns - cells.sum(axis=0)) / rows.size
    return found


def nearest(cells: Floats, rows: Floats, columns: Floats) -> Floats:
    """Find the nearest table with these sums, and no cell below zero.

    It is ``max(cells + a_i + b_j, 0)``; ``a`` and ``b`` are found in turn, each exactly, which
    climbs the concave dual problem. What is left to the sums is made up as Altschuler, Weed and
    Rigollet (2017, algorithm 2) do.

    Parameters
    ----------
    cells
        The table, of shape (r, c).
    rows, columns
        Distributions.

    Examples
    --------
    >>> nearest(np.array([[0.6, 0.0], [-0.1, 0.5]]), np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    across = np.zeros(columns.size)
    made = np.maximum(cells, 0.0)
    for _ in range(_STEPS):
        down = _shifts(cells + across, rows)
        across = _shifts((cells + down[:, None]).T, columns)
        made = np.maximum(cells + down[:, None] + across, 0.0)
        if np.abs(made.sum(axis=1) - rows).max() < _CLOSE:
            break
    made *= _at_most(made.sum(axis=1), rows)[:, None]
    made *= _at_most(made.sum(axis=0), columns)
    short = np.maximum(rows - made.sum(axis=1), 0.0)
    missing = np.maximum(columns - made.sum(axis=0), 0.0)
    made += np.outer(short, missing) / max(float(short.sum()), 1e-300)
    return made


def _shifts(cells: Floats, sums: Floats) -> Floats:
    """Return the shift of each row that gives its positive parts the required sum."""
    found = -np.sort(-cells, axis=1)
    shifts = (sums[:, None] - np.cumsum(found, axis=1)) / np.arange(1, cells.shape[1] + 1)
    last = (found + shifts >= 0.0).sum(axis=1) - 1
    result: Floats = np.take_along_axis(shifts, np.maximum(last, 0)[:, None], axis=1)[:, 0]
    return result


def _at_most(sums: Floats, wanted: Floats) -> Floats:
    return np.minimum(wanted / np.maximum(sums, 1e-300), 1.0)


def drawn_together(
    cells: Floats,
    variances: Floats,
    rows: tuple[Floats, Floats, Floats],
    columns: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Shrinkage]:
    """Shrink a table: towards independence of its questions, and its cells towards each other.

    Two posterior means are combined. One learns the distribution of shares from all cells, as
    :func:`turnout.frequency.estimation.shrinkage.shrunk` does. The other is the product of the
    questions' shares plus a deviation of each cell, which is normal with a variance
    ``t (f_i f_j)^g``; ``t`` and ``g`` are averaged by their evidence. The weights minimise an
    unbiased estimate of the squared error (Stein 1981). The result is the nearest table with the
    right sums.

    Parameters
    ----------
    cells, variances
        Estimates that have the sums of the questions, of shape (r, c), and their variances before
        they were made to have them.
    rows, columns
        Of each question its shares, their variances, and its shares after shrinking.

    Returns
    -------
    tuple
        The table, and how it came about.
    """
    (own, errors, shares), (other, others, answers) = rows, columns
    up, along = own.size, other.size
    # The sums are known better than those of the cells: what is left is of the cells alone.
    inner = variances * ((1.0 - 1.0 / up) * (1.0 - 1.0 / along))
    doubt = inner + errors[:, None] / along**2 + others / up**2
    known = posterior(cells.ravel(), doubt.ravel())
    like, how = finished(known)
    like = like.reshape(cells.shape)
    independent = np.outer(shares, answers)
    if not inner.any():
        return nearest(like, shares, answers), how
    kept = _kept(cells - np.outer(own, other), inner, independent)
    apart = independent + kept * (cells - np.outer(own, other))
    freedom = float((kept * inner).sum() + errors.sum() / along + others.sum() / up)
    between = like - apart
    gain = float(((cells - apart) * between).sum()) - (float(known.spread.sum()) - freedom)
    weight = min(max(gain / max(float((between**2).sum()), 1e-300), 0.0), 1.0)
    made = nearest(apart + weight * between, shares, answers)
    weights = {name: round(weight * each, 4) for name, each in how.weights.items()}
    weights["independence"] = round(1.0 - weight, 4)
    weights = dict(sorted(weights.items(), key=lambda item: -item[1]))
    errors_of_cells = np.sqrt(doubt[doubt > 0.0])
    moved = float((np.abs(made - cells)[doubt > 0.0] / errors_of_cells).max())
    return made, replace(how, weights=weights, moved=moved)


def _kept(beyond: Floats, variances: Floats, independent: Floats) -> Floats:
    """Return the kept part of each cell's deviation from independence."""
    # A share that is estimated as zero is taken for a rare one.
    products = np.maximum(independent, 1e-3 / independent.size)
    variances = np.maximum(variances, 1e-12 * variances.max())
    squares = beyond**2
    scores, parts = [], []
    for power in _POWERS:
        growing = products ** (2.0 * power)
        growing *= squares.sum() / growing.sum()
        for scale in _SCALES if power == _POWERS[0] else _SCALES[1:]:
            total = variances + scale * growing
            scores.append(-0.5 * float((np.log(total) + squares / total).sum()))
            parts.append((power, scale))
    weights = np.exp(np.array(scores) - max(scores))
    weights /= weights.sum()
    kept = np.zeros_like(beyond)
    for (power, scale), weight in zip(parts, weights.tolist(), strict=True):
        if weight > 1e-6:
            growing = products ** (2.0 * power)
            growing *= scale * squares.sum() / growing.sum()
            kept += weight * growing / (variances + growing)
    return kept
