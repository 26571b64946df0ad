"""Sums over the cells of a joint table, and how sure they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from turnout._types import Floats
from turnout.frequency.estimation.covariance import Covariance


@dataclass(frozen=True)
class Cells:
    """The cells of a table, summed over all questions but some.

    Two cells have the covariance ``c + l (f_i + f_j) + m f_i f_j``, so that variances and
    covariances of sums need sums alone, not a matrix of all pairs of cells.

    Attributes
    ----------
    covariance
        The covariances of the cells.
    shape
        The number of answers to each question.
    kept
        The questions that are not summed over, in the order that is wanted.
    """

    covariance: Covariance
    shape: tuple[int, ...]
    kept: tuple[int, ...]

    def summed(self, cells: Floats) -> Floats:
        """Sum an array of all cells; one entry for each combination of the questions kept."""
        rest = [axis for axis in range(len(self.shape)) if axis not in self.kept]
        ordered = np.transpose(cells.reshape(self.shape), (*self.kept, *rest))
        size = math.prod(self.shape[axis] for axis in self.kept)
        result: Floats = ordered.reshape(size, -1).sum(axis=1)
        return result

    @cached_property
    def _own(self) -> Floats:
        """What the variances of the cells exceed the covariance of a cell with one like it by."""
        found, f = self.covariance, self.covariance.frequencies
        return found.variances - found.constant - (2 * found.linear + found.product * f) * f

    @cached_property
    def variances(self) -> Floats:
        """The variances of the sums."""
        return self.with_those_among(1)[0]

    def with_those_among(self, inner: int) -> tuple[Floats, Floats, Floats]:
        """Give variances of the sums and of sums of so many in a row, and their covariances.

        Parameters
        ----------
        inner
            How many sums that follow each other make up a larger one.

        Returns
        -------
        tuple
            The variances of the sums, those of the larger ones, one for each sum that is in it, and
            the covariance of both.
        """
        found = self.covariance
        own, held = self.summed(self._own), self.summed(found.frequencies)
        count = found.frequencies.size // own.size
        large_own, large = (
            np.repeat(each.reshape(-1, inner).sum(axis=1), inner) for each in (own, held)
        )
        many = count * inner

        def both(alike: Floats, n: int, m: int, f: Floats, g: Floats) -> Floats:
            common = found.constant * n * m + found.linear * (m * f + n * g)
            result: Floats = alike + common + found.product * f * g
            return result

        small = both(own, count, count, held, held)
        whole = both(large_own, many, many, large, large)
        across = both(own, count, many, held, large)
        if found.aligned:
            more = self._aligned(inner)
            small, whole, across = small + more[0], whole + more[1], across + more[2]
        return np.maximum(small, 0.0), np.maximum(whole, 0.0), across

    def _aligned(self, inner: int) -> tuple[Floats, Floats, Floats]:
        """Add what aligned answers of Hadamard response do, by rows of coefficients."""
        size = self.covariance.frequencies.size
        cells = np.arange(size).reshape(self.shape)
        rest = [axis for axis in range(len(self.shape)) if axis not in self.kept]
        sums = math.prod(self.shape[axis] for axis in self.kept)
        ordered = np.transpose(cells, (*self.kept, *rest)).reshape(sums, -1)
        rows = np.zeros((sums, size))
        np.put_along_axis(rows, ordered, 1.0, axis=1)
        large = np.repeat(rows.reshape(sums // inner, inner, size).sum(axis=1), inner, axis=0)
        held, aligned = self.covariance.frequencies, self.covariance.aligned
        part = Covariance(held, np.zeros(size), 0.0, 0.0, 0.0, aligned)
        small, whole, together = (part.form(each) for each in (rows, large, rows + large))
        return small, whole, (together - small - whole) / 2
