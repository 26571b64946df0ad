"""Adaptive integrals over boxes of one or two dimensions, many functions at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from turnout._types import Floats

#: Gauss's rule on lines and for each side of squares, and the nodes above 0 on [-1, 1] that
#: Kronrod's adds.
_GAUSS = {1: 7, 2: 3}
_ADDED = {
    1: (0.2077849550078985, 0.5860872354676911, 0.8648644233597691, 0.9914553711208126),
    2: (0.4342437493468026, 0.9604912687080203),
}

_FIRST = {1: 64, 2: 16}


@dataclass(frozen=True)
class Integral:
    """Integrals of several functions over one box.

    ``values`` and estimated absolute ``errors`` have one entry for each function.
    """

    values: Floats
    errors: Floats


def rule(dimensions: int) -> tuple[Floats, Floats, Floats]:
    """Nodes on [-1, 1]^d of shape (m, d), weights of the rule, weights of the embedded rule."""
    own, weights = np.polynomial.legendre.leggauss(_GAUSS[dimensions])
    added = np.array(_ADDED[dimensions])
    nodes = np.concatenate([own, added, -added])
    # The weights that are exact for as many Legendre polynomials as there are nodes: the integrals
    # of all but the constant one are 0.
    integrals = 2.0 * np.eye(nodes.size)[0]
    fine = np.linalg.solve(np.polynomial.legendre.legvander(nodes, nodes.size - 1).T, integrals)
    coarse = np.concatenate([weights, np.zeros(2 * added.size)])
    if dimensions == 1:
        return nodes[:, None], fine, coarse
    grid = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid, np.outer(fine, fine).ravel(), np.outer(coarse, coarse).ravel()


def integrate(
    function: Callable[[Floats], Floats],
    low: Floats,
    high: Floats,
    *,
    tolerance: float,
    evaluations: int,
) -> Integral:
    """Integrate over a box; cells are halved in every direction where the error is largest.

    Parameters
    ----------
    function
        Gives values of shape (n, m) for m functions at points of shape (n, d).
    low, high
        The corners of the box, shape (d,), d = 1 or 2.
    tolerance
        The absolute error to reach for every function.
    evaluations
        About how often the function may be evaluated in all.

    Returns
    -------
    Integral
        The error is the summed difference to an embedded rule of lower order: an estimate, large
        where the function has kinks or jumps, no proof.
    """
    nodes, fine, coarse = rule(low.size)
    cells = _FIRST[low.size]
    edges = [np.linspace(*side, cells + 1) for side in zip(low, high, strict=True)]
    corner = np.stack(np.meshgrid(*(edge[:-1] for edge in edges), indexing="ij"), axis=-1)
    corners = corner.reshape(-1, low.size)
    sides = np.broadcast_to((high - low) / cells, corners.shape).copy()
    total, doubt = _cells(function, corners, sides, (nodes, fine, coarse))
    used = len(corners) * len(nodes)
    while used < evaluations:
        errors = doubt.sum(axis=0)
        if (errors <= tolerance).all():
            break
        # The worst cells by the function that is furthest from its tolerance; at least the worst.
        share = (doubt / np.maximum(errors, 1e-300)) @ (errors > tolerance).astype(np.float64)
        order = np.argsort(-share)
        until = int(np.searchsorted(np.cumsum(share[order]), 0.7 * share.sum())) + 1
        halves = 2**low.size
        until = max(1, min(until, (evaluations - used) // (halves * len(nodes))))
        split = order[:until]
        smaller = sides[split] / 2
        moved = np.stack(np.meshgrid(*[[0.0, 1.0]] * low.size, indexing="ij"), axis=-1)
        children = np.concatenate(
            [corners[split] + shift * smaller for shift in moved.reshape(-1, low.size)]
        )
        kept = np.ones(len(corners), dtype=bool)
        kept[split] = False
        sizes = np.tile(smaller, (halves, 1))
        new_total, new_doubt = _cells(function, children, sizes, (nodes, fine, coarse))
        corners = np.concatenate([corners[kept], children])
        sides = np.concatenate([sides[kept], sizes])
        total = np.concatenate([total[kept], new_total])
        doubt = np.concatenate([doubt[kept], new_doubt])
        used += len(children) * len(nodes)
    return Integral(total.sum(axis=0), doubt.sum(axis=0))


def _cells(
    function: Callable[[Floats], Floats],
    corners: Floats,
    sides: Floats,
    rules: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats]:
    nodes, fine, coarse = rules
    points = corners[:, None, :] + sides[:, None, :] * (nodes + 1) / 2
    values = function(points.reshape(-1, corners.shape[1]))
    values = values.reshape(len(corners), len(nodes), -1)
    volume = np.prod(sides / 2, axis=1)[:, None]
    with np.errstate(invalid="ignore"):
        better = np.einsum("cnm,n->cm", values, fine)
        doubt = np.abs(better - np.einsum("cnm,n->cm", values, coarse))
    return volume * better, volume * np.where(np.isfinite(doubt), doubt, 0.0)
