"""Adaptive integrals over boxes of one or two dimensions, many functions at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from turnout._types import Floats

#: Kronrod's rules on [-1, 1]: positive nodes (0 last), their weights, and those of the Gauss rule
#: that uses every second node. 15 points on lines, 7 to the side on squares.
_FIFTEEN = (
    (
        0.9914553711208126392069,
        0.9491079123427585245262,
        0.8648644233597690727897,
        0.7415311855993944398639,
        0.5860872354676911302941,
        0.4058451513773971669066,
        0.2077849550078984676007,
        0.0,
    ),
    (
        0.0229353220105292249637,
        0.0630920926299785532907,
        0.1047900103222501838399,
        0.1406532597155259187452,
        0.1690047266392679028266,
        0.1903505780647854099133,
        0.2044329400752988924142,
        0.2094821410847278280130,
    ),
    (
        0.0,
        0.1294849661688696932706,
        0.0,
        0.2797053914892766679015,
        0.0,
        0.3818300505051189449504,
        0.0,
        0.4179591836734693877551,
    ),
)
_SEVEN = (
    (0.9604912687080202834235, 0.7745966692414833770359, 0.4342437493468025580021, 0.0),
    (
        0.1046562260264672651938,
        0.2684880898683334407286,
        0.4013974147759622229051,
        0.4509165386584741423451,
    ),
    (0.0, 5 / 9, 0.0, 8 / 9),
)

_FIRST = {1: 64, 2: 16}


@dataclass(frozen=True)
class Integral:
    """Integrals of several functions over one box.

    ``values`` and estimated absolute ``errors`` have one entry for each function.
    """

    values: Floats
    errors: Floats


def rule(dimension: int) -> tuple[Floats, Floats, Floats]:
    """Nodes on [-1, 1]^d of shape (m, d), weights of the rule, weights of the embedded rule."""
    half = _FIFTEEN if dimension == 1 else _SEVEN
    nodes = np.concatenate([-np.array(half[0]), np.array(half[0][-2::-1])])
    fine, coarse = (np.concatenate([side, side[-2::-1]]) for side in map(np.array, half[1:]))
    if dimension == 1:
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
