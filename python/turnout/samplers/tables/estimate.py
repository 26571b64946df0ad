"""Estimate the density of few records over many cells, relative to a public reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from turnout._types import Floats, Integers
from turnout.samplers.tables.columns import Column
from turnout.samplers.tables.reference import CellReference

#: The largest share of the reference in a column.
_MOST_OF_REFERENCE = 0.1

#: What a neighbour of an ordered cell gets at most, relative to it, and so on.
_MOST_OF_NEIGHBOUR = 0.03

#: More records than so many stand for all: the time of a draw stays small.
_MOST = 512


class CellEstimate:
    """A density estimate: the reference, tilted towards a person's records.

    It has two parts. One is the *product* of the columns' own distributions, each mixed with the
    reference's. The other is the mean over records of a product of *surroundings*: the record's own
    value in a column, or with a fixed share a value of the reference. With a uniform reference, the
    product alone is best. With a reference that already has the pairs of columns, both parts in
    equal shares are best. The share of the reference is the same in both parts. It is no more than
    the band needs.

    Parameters
    ----------
    columns, reference
        The columns and the reference, which are public.
    records
        The person's codes, of shape (n, d).
    pairs
        Whether both parts are used.
    epsilon
        Privacy of one draw.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        reference: CellReference,
        records: Integers,
        *,
        pairs: bool,
        epsilon: float,
    ) -> None:
        share = _within(epsilon, _MOST_OF_REFERENCE)
        self.reference = reference
        places = np.linspace(0, len(records) - 1, min(len(records), _MOST)).astype(np.int64)
        self.records = records[places] if pairs else None
        self.product: list[Floats] = []
        self.surroundings: list[Floats] = []
        for column, codes, shares in zip(columns, records.T, reference.marginals, strict=True):
            near = _near(column, shares, epsilon)
            own = np.bincount(codes, minlength=column.cells) / len(records)
            self.product.append(np.log(own @ _tilted(near, share)))
            self.surroundings.append(np.log(_tilted(near, share)))

    def ratios(self, codes: Integers) -> Floats:
        """Return the log-density relative to the reference, up to a constant, at rows of codes."""
        result: Floats = np.zeros(len(codes))
        for place, logs in enumerate(self.product):
            result += logs[codes[:, place]]
        if self.records is None:
            return result
        # One row for each cell of a column: what each record makes of it. The sums over columns are
        # a product of matrices.
        cells = [len(table) for table in self.surroundings]
        held = np.concatenate(
            [table[own].T for table, own in zip(self.surroundings, self.records.T, strict=True)]
        )
        chosen = np.zeros((len(codes), sum(cells)))
        starts = np.cumsum([0, *cells[:-1]])
        np.put_along_axis(chosen, codes + starts, 1.0, axis=1)
        near = chosen @ held
        most = near.max(axis=1)
        with np.errstate(under="ignore"):
            mean = np.exp(np.subtract(near, most[:, None], out=near), out=near).mean(axis=1)
        both: Floats = np.logaddexp(result, most + np.log(mean))
        return both

    def score_samples(self, points: Floats) -> Floats:
        """Return the log-density at points; each point is a row of codes."""
        result: Floats = self.reference.log_density(points) + self.ratios(points.astype(np.int64))
        return result


def tilts_of(column: Column, shares: Floats, epsilon: float) -> Floats:
    """Return a column's part of the product over the reference, for records in each cell (rows)."""
    return _tilted(_near(column, shares, epsilon), _within(epsilon, _MOST_OF_REFERENCE))


def _within(epsilon: float, most: float) -> float:
    """Return a share, or what the band keeps of the reference if that is less."""
    return min(most, math.exp(-epsilon / 2.0))


def _tilted(near: Floats, share: float) -> Floats:
    return (1.0 - share) * near + share


def _near(column: Column, shares: Floats, epsilon: float) -> Floats:
    """Return the distribution around each cell, over the reference's share of each.

    If cells are ordered, neighbours have a part.
    """
    near = np.eye(column.cells)
    if column.ordered:
        places = np.arange(column.values)
        apart = np.abs(places[:, None] - places)
        near[: column.values, : column.values] = _within(epsilon, _MOST_OF_NEIGHBOUR) ** apart
    result: Floats = near / (near @ shares)[:, None]
    return result
