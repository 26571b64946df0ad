"""Define public distributions over the cells of a table, as a tree of pairs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from turnout._types import Floats, Integers
from turnout.samplers.reference import Reference
from turnout.samplers.tables.columns import Column

#: This share of each distribution is uniform, so that what a public table lacks is possible.
_UNIFORM = 0.05

#: A conditional distribution counts so many records of its column's own distribution.
_PRIOR = 20.0


@dataclass(frozen=True, eq=False)
class CollectedReference:
    """A reference for tables from people's reports, made by :func:`collect_reference`.

    Attributes
    ----------
    epsilon
        The epsilon that each person who reported has spent on it.
    users
        How many people reported.
    marginals
        The shares of each column's cells, by the column's name.
    pairs
        The shares of pairs of cells of two columns, by the columns' names; empty if only columns
        were collected.
    """

    epsilon: float
    users: int
    marginals: dict[str, Floats]
    pairs: dict[tuple[str, str], Floats]


class CellReference(Reference):
    """A distribution over cells in which each column depends on one other column at most.

    A point is a row of codes.

    Parameters
    ----------
    columns
        The columns.
    records
        Codes of public records, of shape (n, d), or what was collected; None for the uniform
        distribution over values. The columns depend on each other by the tree of the largest mutual
        information (Chow and Liu, 1968).
    """

    def __init__(
        self, columns: Sequence[Column], records: Integers | CollectedReference | None = None
    ) -> None:
        self.cells = [column.cells for column in columns]
        self.dimensions = self.words = len(columns)
        self.marginals = [column.shares for column in columns]
        #: In an order in which parents come first: the column, its parent, and its distribution
        #: for each code of the parent.
        self.steps: list[tuple[int, int | None, Floats]] = [
            (place, None, shares[None, :]) for place, shares in enumerate(self.marginals)
        ]
        #: Whether it is that of a public table.
        self.learned = records is not None
        if isinstance(records, CollectedReference):
            names = [column.name for column in columns]
            shares = [records.marginals[name] for name in names]
            places = {name: place for place, name in enumerate(names)}
            # A table of a pair has the reports of a part of the people.
            people = records.users / max(len(records.pairs), 1)
            tables = {
                (places[one], places[other]): table * people
                for (one, other), table in records.pairs.items()
            }
            tables |= {(other, one): table.T for (one, other), table in tables.items()}
            self._learn(shares, tables)
        elif records is not None:
            shares = [
                np.bincount(codes, minlength=cells) / len(records)
                for codes, cells in zip(records.T, self.cells, strict=True)
            ]
            pairs = itertools.permutations(range(self.dimensions), 2)
            self._learn(shares, {pair: _pair(records, *pair, self.cells) for pair in pairs})
        self._logs = [np.log(table) for _, _, table in self.steps]
        self._sums = [np.cumsum(table, axis=1)[:, :-1] for _, _, table in self.steps]

    def _learn(self, shares: list[Floats], pairs: dict[tuple[int, int], Floats]) -> None:
        """Learn from the shares of columns, and from counts of pairs if there are any."""
        uniform = self.marginals
        own = [
            (1.0 - _UNIFORM) * found + _UNIFORM * even
            for found, even in zip(shares, uniform, strict=True)
        ]
        if not pairs:
            self.marginals = own
            self.steps = [(place, None, found[None, :]) for place, found in enumerate(own)]
            return
        shared = {pair: _information(joint) for pair, joint in pairs.items()}
        self.steps = [(0, None, own[0][None, :])]
        inside, outside = [0], set(range(1, self.dimensions))
        while outside:
            # Prim's algorithm; the first of equals, so that everybody has the same reference.
            among = itertools.product(inside, sorted(outside))
            parent, child = max(among, key=lambda pair: shared[pair])
            joint = pairs[parent, child]
            given = joint.sum(axis=1, keepdims=True)
            table = (joint + _PRIOR * own[child]) / (given + _PRIOR)
            table = (1.0 - _UNIFORM) * table + _UNIFORM * uniform[child]
            self.steps.append((child, parent, table / table.sum(axis=1, keepdims=True)))
            inside.append(child)
            outside.remove(child)
        marginals = dict.fromkeys(range(self.dimensions), np.ones(1))
        for child, source, table in self.steps:
            marginals[child] = table[0] if source is None else marginals[source] @ table
        self.marginals = [marginals[place] for place in range(self.dimensions)]

    def log_density(self, points: Floats) -> Floats:
        """Return the log-probability of rows of codes."""
        codes = points.astype(np.int64)
        result = np.zeros(len(codes))
        for (child, parent, _), logs in zip(self.steps, self._logs, strict=True):
            result += logs[0 if parent is None else codes[:, parent], codes[:, child]]
        return result

    def transform(self, uniforms: Floats) -> Floats:
        """Turn uniform numbers of shape (n, d) into rows of codes."""
        codes = np.empty(uniforms.shape, np.int64)
        for (child, parent, _), sums in zip(self.steps, self._sums, strict=True):
            numbers = uniforms[:, child]
            if parent is None:
                codes[:, child] = np.searchsorted(sums[0], numbers, side="right")
            else:
                codes[:, child] = (sums[codes[:, parent]] <= numbers[:, None]).sum(axis=1)
        return codes.astype(np.float64)


def _pair(records: Integers, one: int, other: int, cells: Sequence[int]) -> Floats:
    both = records[:, one] * cells[other] + records[:, other]
    counts = np.bincount(both, minlength=cells[one] * cells[other])
    return counts.reshape(cells[one], cells[other]).astype(np.float64)


def _information(joint: Floats) -> float:
    """Return the mutual information of a table of counts, in nats."""
    shares = joint / joint.sum()
    apart = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    some = shares > 0.0
    return float((shares[some] * np.log(shares[some] / apart[some])).sum())
