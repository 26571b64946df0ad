"""Estimate shares among all people from one draw of each person's table, column by column."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._tables import WithIntervals
from turnout._types import Floats, Integers
from turnout.collecting.intervals import StatisticModel, critical_value, exact_interval
from turnout.samplers.tables.columns import table_codes
from turnout.samplers.tables.deconvolution import Weights, laws_of_values, weights_of
from turnout.samplers.tables.estimate import tilts_of
from turnout.samplers.tables.frames import read_frame
from turnout.samplers.tables.identified import ClippedBounds, TiltedBounds, nothing_known
from turnout.samplers.tables.sampler import TableSampler, combinations

_WIDE: Final = {
    "tilted": "A draw does not depend linearly on a person's records: people with different "
    "records can have the same law of a draw. The bounds hold whatever the people's records are, "
    "and more people make them no narrower than what the law of the draws leaves open.",
    "clipped": "The minimax law hides every combination of cells among all others, and what a "
    "person has in several cells is cut off in a way that the draws do not tell.",
    "learned": "Around a public table a draw tells of a column through all columns together: "
    "without an assumption nothing is bounded. Pass assume='one_value' if every person holds "
    "the same value in all records.",
}
_NOT_LISTED: Final = (
    " That every person holds one value is of no use here: with more than 4,096 combinations of "
    "cells the law of a draw is not listed for each."
)
_ONE: Final = (
    "This assumes that every person holds one value. Then the law of a draw is known for each "
    "value, and the effect of the sampler on the shares is removed. The intervals hold for any "
    "number of people, including the bias of the weights. If a person holds several values, they "
    "may not hold."
)


@dataclass(frozen=True, eq=False)
class ColumnEstimate(abc.ABC):
    """The shares of a column's cells among all people's records; each person counts once.

    Attributes
    ----------
    names
        What each cell holds.
    shares
        The share of each cell among the draws.
    draws
        How many draws there are.
    frequencies
        Estimates of the shares among the people; None if there are only bounds.
    why
        What the limits are based on, and why they are wide.
    """

    names: Sequence[str]
    shares: Floats
    draws: int
    frequencies: Floats | None
    why: str

    @abc.abstractmethod
    def limits(self, level: float) -> tuple[Floats, Floats]:
        """Return lower and upper limits, which hold for all cells at once."""


@dataclass(frozen=True, eq=False)
class _Bounded(ColumnEstimate):
    bounds: Callable[[Floats, Floats], tuple[Floats, Floats]]

    def limits(self, level: float) -> tuple[Floats, Floats]:
        # Draws of people with different laws vary less than those of one law: Hoeffding (1956).
        model = StatisticModel(a=0.0, b=self.draws, v0=0.0, v1=0.0, trials=self.draws)
        z = critical_value(level, self.shares.size, "bonferroni")
        return self.bounds(*exact_interval(model, self.shares * self.draws, z))


@dataclass(frozen=True, eq=False)
class _Undone(ColumnEstimate):
    means: Floats
    weights: Weights

    def limits(self, level: float) -> tuple[Floats, Floats]:
        half = self.weights.half(self.draws, 1.0 - (1.0 - level) / self.shares.size)
        low, high = self.means - self.weights.high - half, self.means - self.weights.low + half
        return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class TableEstimate(WithIntervals):
    """The estimates of one draw of each person's table, made by ``estimate()`` of draws.

    It estimates shares of cells among all people. Each person counts once, however many records
    there are. As a table, it has one row for each cell of each column.

    Attributes
    ----------
    users
        How many people there are, with one draw each.
    epsilon
        What a draw cost.
    assume
        ``"one_value"`` if every person is assumed to hold one value, else None.
    columns
        The estimate of each column, by the column's name: ``names`` of cells, ``shares`` of draws,
        ``frequencies`` (estimates; None if there are only bounds), ``limits(level)``, and ``why``,
        which says what the limits are based on and why they are wide.
    """

    users: int
    epsilon: float
    assume: str | None
    columns: dict[str, ColumnEstimate]

    _columns = ("column", "value", "share", "frequency", "low", "high")

    def to_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """List one dictionary for each cell of each column.

        Parameters
        ----------
        level
            The confidence with which all limits of a column hold at once.

        Returns
        -------
        list of dict
            With ``column``, ``value``, ``share`` (among the draws), ``frequency`` (an estimate of
            the share among the people; None if there are only bounds), ``low`` and ``high``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``level`` is not a confidence level.
        """
        level = _arguments.confidence("level", level)
        records = []
        for name, column in self.columns.items():
            low, high = column.limits(level)
            for cell, value in enumerate(column.names):
                found = None if column.frequencies is None else float(column.frequencies[cell])
                numbers = (float(column.shares[cell]), found, float(low[cell]), float(high[cell]))
                row = (name, value, *numbers)
                records.append(dict(zip(self._columns, row, strict=True)))
        return records

    def __repr__(self) -> str:
        assumed = "" if self.assume is None else f", assume={self.assume!r}"
        return f"<TableEstimate: {', '.join(self.columns)}, of {self.users:,} users{assumed}>"


def estimate_of_tables(sampler: TableSampler, draws: Any, *, one_value: bool) -> TableEstimate:
    """Estimate the shares of cells of all people's records.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter of the sampler, or a draw, cannot be used.
    """
    public = sampler._public()
    codes = table_codes(public.columns, "draws", read_frame("draws", draws, public.columns)[0])
    undo = one_value and public.law is not None
    made = _undone(sampler, codes) if undo else _bounded(sampler, codes, said=one_value)
    columns = {column.name: one for column, one in zip(public.columns, made, strict=True)}
    return TableEstimate(len(codes), public.epsilon, "one_value" if undo else None, columns)


def _shares(codes: Integers, cells: Sequence[int]) -> list[Floats]:
    return [
        np.bincount(own, minlength=count) / len(codes)
        for own, count in zip(codes.T, cells, strict=True)
    ]


def _undone(sampler: TableSampler, codes: Integers) -> list[ColumnEstimate]:
    """Undo what the sampler does to people who hold one value each."""
    public = sampler._public()
    law = public.law
    assert law is not None
    every = combinations(public.shape)
    if public.method == "minimax":
        with np.errstate(divide="ignore"):
            ratios = np.log(np.eye(len(every)))
    else:
        ratios = np.array([public.estimate(value[None]).ratios(every) for value in every])
    found = weights_of(laws_of_values(law, ratios), every, public.shape, len(codes))
    places = np.ravel_multi_index(tuple(codes.T), public.shape)
    result: list[ColumnEstimate] = []
    for column, shares, weights in zip(
        public.columns, _shares(codes, public.shape), found, strict=True
    ):
        means = weights.weights[places].mean(axis=0)
        frequencies = means - (weights.low + weights.high) / 2.0
        result.append(_Undone(column.names, shares, len(codes), frequencies, _ONE, means, weights))
    return result


def _bounded(sampler: TableSampler, codes: Integers, *, said: bool) -> list[ColumnEstimate]:
    """Bound the shares, whatever the people's records are."""
    public = sampler._public()
    result: list[ColumnEstimate] = []
    least = _least(sampler) if public.method == "minimax" else None
    for place, column in enumerate(public.columns):
        own = public.reference.marginals[place]
        bounds: Any = nothing_known
        why = "learned"
        if least is not None:
            every = combinations(public.shape)[:, place]
            bounds = ClippedBounds(np.bincount(every, least, column.cells).astype(np.float64))
            why = "clipped"
        elif not public.reference.learned:
            bounds = TiltedBounds(own, tilts_of(column, own, public.epsilon), public.epsilon)
            why = "tilted"
        shares = np.bincount(codes[:, place], minlength=column.cells) / len(codes)
        because = _WIDE[why] + (_NOT_LISTED if said else "")
        result.append(_Bounded(column.names, shares, len(codes), None, because, bounds))
    return result


def _least(sampler: TableSampler) -> Floats:
    """Return the largest probability of each combination that a person need not hold."""
    law = sampler._public().law
    assert law is not None
    limits = {weight: (low, high) for weight, low, high in law.limits}
    low, high = np.array([limits[weight] for weight in law.reference.tolist()], float).T / law.total
    gaps = np.sort(high - low)
    # The least gap of the others.
    gap = np.where(high - low == gaps[0], gaps[1], gaps[0])
    result: Floats = np.maximum(low, np.minimum(high, 1.0 - (low.sum() - low) - gap))
    return result
