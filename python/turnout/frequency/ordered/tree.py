"""A tree over ordered answers, and least squares on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout._types import Array, Floats, Integers


class Tree:
    """Runs of consecutive codes, each divided into the same number of parts on the next level.

    The whole domain, level -1, is not among the levels; the last level has single codes.

    Parameters
    ----------
    size
        The number of codes.
    fanout
        The number of parts.

    Examples
    --------
    >>> tree = Tree(10, 3)
    >>> tree.sizes
    (2, 4, 10)
    >>> tree.run(np.array([0, 8, 9]), 0)
    array([0, 0, 1])
    """

    def __init__(self, size: int, fanout: int) -> None:
        self.size = size
        self.fanout = fanout
        lengths = [1]
        while lengths[-1] * fanout < size:
            lengths.append(lengths[-1] * fanout)
        self._lengths = lengths[::-1]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of runs of each level."""
        return tuple(-(-self.size // length) for length in self._lengths)

    def run(self, codes: npt.NDArray[np.integer[Any]], level: int) -> Integers:
        """Return which run of a level holds each code."""
        return codes.astype(np.int64) // self._lengths[level]

    def sums(self, values: Array, level: int) -> Array:
        """Add up one value for each code over the runs of a level."""
        return np.add.reduceat(values, np.arange(0, self.size, self._lengths[level]))


class ConsistentTree:
    """The least-squares estimate of the codes from noisy values of all runs of all levels.

    Each run is the sum of its parts and the whole is one; errors count as independent, with one
    variance for each level. There are two passes over the tree (Hay, Rastogi, Miklau, Suciu 2010).
    Upwards, a run's own value and the sum of its parts are combined by inverse variance. Downwards,
    the difference between a run and its parts is given to the parts in proportion to their
    variances.

    Parameters
    ----------
    tree
        The runs.
    variances
        One variance for each level.
    """

    def __init__(self, tree: Tree, variances: Floats) -> None:
        self._tree = tree
        fanout, sizes = tree.fanout, tree.sizes
        # Levels are filled up to complete ones with runs that are known to hold nothing.
        self._full = [fanout ** (level + 1) for level in range(len(sizes))]
        known = np.zeros(self._full[-1])
        known[: tree.size] = variances[-1]
        #: How much a run's own value counts, and the share of what its parent lacks.
        self._own: list[Floats] = [np.ones(self._full[-1])]
        self._shares: list[Floats] = []
        for level in range(len(sizes) - 2, -2, -1):
            parts = known.reshape(-1, fanout)
            below = parts.sum(axis=1)
            share = np.divide(
                parts, below[:, None], out=np.zeros_like(parts), where=below[:, None] > 0
            )
            self._shares.insert(0, share.ravel())
            if level >= 0:
                own = below / (variances[level] + below)
                self._own.insert(0, own)
                known = variances[level] * own

    def leaves(self, observed: Sequence[Floats]) -> Floats:
        """Estimate one number for each code from the values of the runs of all levels."""
        fanout = self._tree.fanout
        values = [
            _padded(level[None], full)[0] for level, full in zip(observed, self._full, strict=True)
        ]
        for level in range(len(values) - 2, -1, -1):
            below = values[level + 1].reshape(-1, fanout).sum(axis=1)
            own = self._own[level]
            values[level] = own * values[level] + (1.0 - own) * below
        found = np.ones(1)
        for level, upward in enumerate(values):
            lacking = found - upward.reshape(-1, fanout).sum(axis=1)
            found = upward + self._shares[level] * np.repeat(lacking, fanout)
        return found[: self._tree.size].copy()

    def coefficients(self, rows: Floats) -> list[Floats]:
        """Trace weighted sums of the codes back to the values of the runs of all levels.

        Parameters
        ----------
        rows
            float64 of shape (m, k): the weights of ``m`` sums.

        Returns
        -------
        list of numpy.ndarray
            For each level the weights of its values, of shape (m, runs): :meth:`leaves` backwards.
            A constant is left out.
        """
        fanout, levels = self._tree.fanout, len(self._full)
        downward = [_padded(rows, self._full[-1])]
        lacking: list[Floats] = []
        for level in range(levels - 1, -1, -1):
            shared = downward[0] * self._shares[level]
            lacking.insert(0, shared.reshape(len(rows), -1, fanout).sum(axis=2))
            downward.insert(0, lacking[0])
        result = []
        above: Floats = np.zeros((len(rows), 1))
        for level in range(levels):
            upward = downward[level + 1] + np.repeat(above - lacking[level], fanout, axis=1)
            own = self._own[level]
            result.append((upward * own)[:, : self._tree.sizes[level]])
            above = upward * (1.0 - own)
        return result


def _padded(rows: Floats, size: int) -> Floats:
    padded = np.zeros((len(rows), size))
    padded[:, : rows.shape[1]] = rows
    return padded
