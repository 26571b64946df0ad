"""A density estimate of few records over many cells, relative to a public reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnout._types import Floats, Integers
from turnout.samplers.tables.columns import Column
from turnout.samplers.tables.reference import CellReference

#: The share of the reference in a column of the product, and in one of a record's surroundings.
_PRODUCT, _RECORD = 0.1, 0.5

#: What a neighbour of an ordered cell gets, relative to it, and so on.
_NEIGHBOUR = 0.1

#: More records than so many stand for all: the time of a draw stays small.
_MOST = 512


class CellEstimate:
    """The reference, tilted towards a person's records.

    Two parts: the *product* of the columns' own distributions, each mixed with the reference's, and
    the mean over records of a product of *surroundings*: the record's own value in a column, or
    with a fixed share one of the reference. The product alone is best with a uniform reference, and
    both, in equal parts, with one that already has the pairs of columns.

    Parameters
    ----------
    columns, reference
        What is public.
    records
        The person's codes, of shape (n, d).
    pairs
        Whether both parts are taken.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        reference: CellReference,
        records: Integers,
        *,
        pairs: bool,
    ) -> None:
        self.reference = reference
        places = np.linspace(0, len(records) - 1, min(len(records), _MOST)).astype(np.int64)
        self.records = records[places] if pairs else None
        self.product: list[Floats] = []
        self.surroundings: list[Floats] = []
        for column, codes, shares in zip(columns, records.T, reference.marginals, strict=True):
            near = _near(column, shares)
            own = np.bincount(codes, minlength=column.cells) / len(records)
            self.product.append(np.log((1.0 - _PRODUCT) * (own @ near) + _PRODUCT))
            self.surroundings.append(np.log((1.0 - _RECORD) * near + _RECORD))

    def ratios(self, codes: Integers) -> Floats:
        """Give the log-density relative to the reference, up to a constant, at rows of codes."""
        result: Floats = np.zeros(len(codes))
        for place, logs in enumerate(self.product):
            result += logs[codes[:, place]]
        if self.records is None:
            return result
        near = np.zeros((len(codes), len(self.records)))
        for place, table in enumerate(self.surroundings):
            # One row for each cell of a proposal: what each record makes of it.
            near += table[self.records[:, place]].T[codes[:, place]]
        most = near.max(axis=1)
        with np.errstate(under="ignore"):
            mean = np.exp(near - most[:, None]).mean(axis=1)
        both: Floats = np.logaddexp(result, most + np.log(mean))
        return both

    def score_samples(self, points: Floats) -> Floats:
        """Give the log-density at points, which are rows of codes."""
        result: Floats = self.reference.log_density(points) + self.ratios(points.astype(np.int64))
        return result


def _near(column: Column, shares: Floats) -> Floats:
    """Give the distribution around each cell, over the reference's share of each.

    Of ordered cells the neighbours have a part.
    """
    near = np.eye(column.cells)
    if column.ordered:
        places = np.arange(column.values)
        near[: column.values, : column.values] = _NEIGHBOUR ** np.abs(places[:, None] - places)
    result: Floats = near / (near @ shares)[:, None]
    return result
