"""What is known of one answer, and of many, column by column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from turnout._tables import records_of
from turnout._types import Floats, Integers

#: In which order answers are shown: by share, by label, or as the domain has them.
ORDERS: Final = ("frequency", "label", "domain")


@dataclass(frozen=True)
class AnswerEstimate:
    """What is estimated of one answer: ``estimate["yes"]``.

    Attributes
    ----------
    label
        The answer.
    count
        How many nodes give it.
    frequency
        Their share of all nodes.
    standard_error
        Of the frequency.
    low, high
        The limits of its 95 % interval; None where the estimator is biased or says nothing. For
        other levels see :meth:`turnout.FrequencyEstimate.interval`.
    """

    label: Hashable
    count: float
    frequency: float
    standard_error: float
    low: float | None
    high: float | None


class Columns(NamedTuple):
    """What is known of some answers, one entry for each.

    Attributes
    ----------
    labels
        The answers.
    counts, frequencies, standard_errors
        How many nodes give them, their share of all nodes, and the standard error of that.
    low, high
        Its limits; nan where there are none.
    """

    labels: Sequence[Any]
    counts: Floats
    frequencies: Floats
    standard_errors: Floats
    low: Floats
    high: Floats

    def part(self, start: int, stop: int) -> Columns:
        """Give what is known of some of the answers that follow each other."""
        here = slice(start, stop)
        columns: Any = (column[here] for column in self)
        return Columns(*columns)

    def records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer; limits that are not known are None.

        Examples
        --------
        >>> one, nothing = np.ones(1), np.full(1, np.nan)
        >>> Columns(["yes"], one, one, one, nothing, nothing).records()[0]["low"] is None
        True
        """
        names = ("label", "count", "frequency", "standard_error", "low", "high")
        return records_of(names, *self)


def ordered(estimate: Any, order: str, top: int | None) -> Integers:
    """Give the codes of the answers of an estimate that are shown, in one of :data:`ORDERS`.

    Parameters
    ----------
    estimate
        A :class:`turnout.FrequencyEstimate`.
    order
        In which order.
    top
        How many, those with the largest frequencies; None for all.
    """
    codes: Integers = np.arange(estimate.domain.size)[estimate.most_frequent(top)]
    if order == "frequency":
        codes = codes[np.argsort(-estimate.frequencies[codes], kind="stable")]
    elif order == "label":
        labels = estimate.domain.decode(codes)
        codes = codes[sorted(range(len(labels)), key=_sortable(labels).__getitem__)]
    return codes


def sorted_records(records: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Sort the records of an estimate in one of :data:`ORDERS`."""
    if order == "frequency":
        return sorted(records, key=lambda record: -record["frequency"])
    if order == "label":
        keys = _sortable([record["label"] for record in records])
        return [records[place] for place in sorted(range(len(records)), key=keys.__getitem__)]
    return records


def _sortable(labels: Sequence[Any]) -> Sequence[Any]:
    """Labels of several types have no order; their texts do."""
    try:
        sorted(labels)
    except TypeError:
        return [str(label) for label in labels]
    return labels
