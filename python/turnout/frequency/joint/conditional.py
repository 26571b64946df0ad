"""Conditional shares: how people with one answer answered another question."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from turnout._tables import WithSimultaneous
from turnout._types import Array, Axes, Floats, Truths
from turnout.collecting.intervals import checked_level, critical_value
from turnout.domain import Domain
from turnout.frequency.estimation.covariance import Covariance
from turnout.frequency.joint.pictures import plot_shares


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
        result: Floats = self._together(cells).sum(axis=1)
        return result

    def _together(self, cells: Array) -> Array:
        """Reshape a sum to one row."""
        rest = [axis for axis in range(len(self.shape)) if axis not in self.kept]
        ordered = np.transpose(cells.reshape(self.shape), (*self.kept, *rest))
        return ordered.reshape(math.prod(self.shape[axis] for axis in self.kept), -1)

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
        """Return the variances of sums and of sums of consecutive sums, and their covariances.

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
        """Add the terms of aligned answers of Hadamard response, by rows of coefficients."""
        size = self.covariance.frequencies.size
        cells = self._together(np.arange(size))
        sums = len(cells)
        rows = np.zeros((sums, size))
        np.put_along_axis(rows, cells, 1.0, axis=1)
        large = np.repeat(rows.reshape(sums // inner, inner, size).sum(axis=1), inner, axis=0)
        held, aligned = self.covariance.frequencies, self.covariance.aligned
        part = Covariance(held, np.zeros(size), 0.0, 0.0, 0.0, aligned)
        small, whole, together = (part._form(each) for each in (rows, large, rows + large))
        return small, whole, (together - small - whole) / 2


class ConditionalShare(NamedTuple):
    """One share among the people who gave some answer, with its 95 % interval.

    Attributes
    ----------
    share
        The estimate; NaN if the estimated number of people who gave the answer is zero.
    standard_error
        The standard error by the delta method.
    low, high
        Fieller's limits.
    """

    share: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class ShareInterval:
    """Fieller's limits of conditional shares.

    Attributes
    ----------
    low, high
        The limits, a row for each group.
    level
        The confidence level.
    simultaneous
        How the level holds for all shares simultaneously, or None if it does not.
    """

    low: Floats
    high: Floats
    level: float
    simultaneous: str | None

    def contains(self, truth: Any) -> Truths:
        """Return which limits contain the given shares, in their shape."""
        given = np.asarray(truth, np.float64)
        held: Truths = (self.low <= given) & (given <= self.high)
        return held


class ConditionalShares(WithSimultaneous):
    """The shares of the answers to one question among people with each answer to others.

    :meth:`JointEstimate.conditional` returns it. A conditional share is a joint share divided by
    the share of all people who gave the answer: a ratio of two estimates with correlated errors.
    Its limits are those of Fieller (1954): all ratios ``r`` for which the joint share minus ``r``
    times the other is within its error of zero. They are valid however uncertain the denominator
    is. If it may be zero they are 0 and 1, since a share lies there. The standard error is that of
    the delta method, which needs a denominator far from zero.

    Parameters
    ----------
    cells
        The sums over the table, the questions of ``given`` first.
    frequencies
        The joint shares.
    given
        The questions of the condition.
    of
        The name of the question of the shares, and its answers.
    clipped
        Whether intervals are cut to [0, 1].

    Examples
    --------
    >>> import turnout as tn
    >>> joint = tn.JointTable(3.0, {"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> shares = joint.simulate([3000, 2000, 1000, 4000], seed=1).estimate().conditional(
    ...     "vote", given="sex"
    ... )
    >>> shares.shares.round(1)
    array([[0.6, 0.4],
           [0.2, 0.8]])
    >>> shares["f", "yes"].low < 0.4 < shares["f", "yes"].high
    True
    """

    _columns = ("label", "share", "standard_error", "low", "high")

    def __init__(
        self,
        cells: Cells,
        frequencies: Floats,
        given: Mapping[str, Domain],
        of: tuple[str, Domain],
        *,
        clipped: bool = False,
    ) -> None:
        self._clipped = clipped
        self._given, (self._of, self._answers) = dict(given), of
        size = self._answers.size
        self._small, self._large, self._both = cells.with_those_among(size)
        self._joint = cells.summed(frequencies)
        self._among = np.repeat(self._joint.reshape(-1, size).sum(axis=1), size)

    def clip_intervals(self) -> ConditionalShares:
        """Cut intervals to [0, 1]: see :meth:`turnout.FrequencyEstimate.clip_intervals`."""
        changed = copy.copy(self)
        changed._clipped = True
        return changed

    @property
    def given(self) -> Mapping[str, Domain]:
        """The questions of the condition, with their answers."""
        return dict(self._given)

    @property
    def of(self) -> str:
        """The question of the shares."""
        return self._of

    @property
    def groups(self) -> list[Hashable]:
        """The answers to ``given``, in order: tuples where there are several questions."""
        labels = [domain.labels for domain in self._given.values()]
        return list(labels[0]) if len(labels) == 1 else list(itertools.product(*labels))

    @property
    def shares(self) -> Floats:
        """The shares, a row for each of :attr:`groups`; NaN where the estimated group is empty."""
        among = np.where(self._among > 0, self._among, np.nan)
        return self._shaped(self._joint / among)

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of the delta method, of the same shape."""
        shares = self.shares.ravel()
        variances = self._small - 2 * shares * self._both + shares**2 * self._large
        return self._shaped(np.sqrt(np.maximum(variances, 0.0)) / np.abs(self._among))

    def interval(self, level: float = 0.95, *, simultaneous: str | None = None) -> ShareInterval:
        """Return Fieller's confidence limits of the shares.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        simultaneous
            None: for each share separately. ``"bonferroni"`` or ``"sidak"``: for all
            simultaneously.

        Returns
        -------
        ShareInterval
            Limits of the shape of :attr:`shares`; 0 and 1 where nothing is known.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        level = checked_level(level, simultaneous)
        z = critical_value(level, self._joint.size, simultaneous)
        a = self._among**2 - z**2 * self._large
        b = self._among * self._joint - z**2 * self._both
        c = self._joint**2 - z**2 * self._small
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        known = (a > 0) & (self._among > 0)
        divisor = np.where(known, a, 1.0)
        low = np.where(known, (b - root) / divisor, 0.0)
        high = np.where(known, (b + root) / divisor, 1.0)
        if self._clipped:
            low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
        return ShareInterval(self._shaped(low), self._shaped(high), level, simultaneous)

    def _shaped(self, flat: Floats) -> Floats:
        return flat.reshape(-1, self._answers.size)

    def __getitem__(self, key: Any) -> ConditionalShare:
        """Return one share: ``shares["f", "yes"]``, the answers to ``given`` first.

        Raises
        ------
        KeyError
            If the answers are not in the table.
        """
        answers = key if isinstance(key, tuple) else (key,)
        domains = [*self._given.values(), self._answers]
        try:
            codes = [each.labels.index(one) for each, one in zip(domains, answers, strict=True)]
        except ValueError as error:
            raise KeyError(key) from error
        place = np.ravel_multi_index(codes, [each.size for each in domains])
        return ConditionalShare(*(column[place] for column in self._numbers(self.interval())))

    def _numbers(self, limits: ShareInterval) -> list[list[float]]:
        """List the fields of :class:`ConditionalShare`, each for all shares in a row."""
        columns = (self.shares, self.standard_errors, limits.low, limits.high)
        return [column.ravel().tolist() for column in columns]

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return tuple(self._given)

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each share, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        list of dict
            Dictionaries with ``group`` (a dictionary of the answers to ``given``), ``label``,
            ``share``, ``standard_error``, ``low`` and ``high``.

        Raises
        ------
        InvalidValueError
            As :meth:`interval`.
        """
        numbers = self._numbers(self.interval(level, simultaneous=simultaneous))
        domains = [*self._given.values(), self._answers]
        cells = itertools.product(*(each.labels for each in domains))
        return [
            {
                "group": dict(zip(self._given, among, strict=True)),
                "label": label,
                **dict(zip(self._columns[1:], share, strict=True)),
            }
            for (*among, label), *share in zip(cells, *numbers, strict=True)
        ]

    def plot(
        self, *, ax: Axes | None = None, level: float = 0.95, simultaneous: str | None = None
    ) -> Axes:
        """Draw the shares with their limits: answers in rows, a colour for each group.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            As :meth:`interval`.
        """
        return plot_shares(self, ax, level, simultaneous)

    def __repr__(self) -> str:
        """Show the questions and the number of shares."""
        known = sum(not math.isnan(share) for share in self.shares[:, 0].tolist())
        return (
            f"ConditionalShares({self._of!r} given {', '.join(map(repr, self._given))}: "
            f"{known} groups, {self._answers.size} answers)"
        )
