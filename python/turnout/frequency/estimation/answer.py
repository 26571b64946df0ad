"""Results for one answer, and for many answers as columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._tables import WithTop, arrow_columns, records_of
from turnout._types import Floats, Integers
from turnout.domain import Domain
from turnout.errors import TurnoutError
from turnout.frequency.estimation.projection import DISTANCES, distance
from turnout.products import questions_of

#: In which order answers are shown: by share, by label, or as the domain has them.
ORDERS: Final = ("frequency", "label", "domain")


@dataclass(frozen=True)
class AnswerEstimate:
    """The estimate of one answer: ``estimate["yes"]``.

    Attributes
    ----------
    label
        The answer.
    count
        The estimated number of nodes that give it.
    frequency
        The estimated share of all nodes.
    standard_error
        The standard error of the frequency.
    low, high
        The limits of its 95 % interval; None if the estimator is biased or uninformative. For other
        levels see :meth:`turnout.FrequencyEstimate.interval`.
    """

    label: Hashable
    count: float
    frequency: float
    standard_error: float
    low: float | None
    high: float | None


class Columns(NamedTuple):
    """The results for some answers, one entry for each.

    Attributes
    ----------
    labels
        The answers.
    counts, frequencies, standard_errors
        The numbers of nodes that give them, their shares of all nodes, and the standard errors of
        the shares.
    low, high
        The limits of the shares; nan where there are none.
    """

    labels: Sequence[Any]
    counts: Floats
    frequencies: Floats
    standard_errors: Floats
    low: Floats
    high: Floats

    def part(self, start: int, stop: int) -> Columns:
        """Return the results for some consecutive answers."""
        here = slice(start, stop)
        columns: Any = (column[here] for column in self)
        return Columns(*columns)

    def records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer; unknown limits are None.

        Examples
        --------
        >>> one, nothing = np.ones(1), np.full(1, np.nan)
        >>> Columns(["yes"], one, one, one, nothing, nothing).records()[0]["low"] is None
        True
        """
        names = ("label", "count", "frequency", "standard_error", "low", "high")
        return records_of(names, *self)


class Answered(WithTop, ABC):
    """Base class of estimated frequencies: single answers, tables and distances."""

    frequencies: Floats

    _columns = ("label", "count", "frequency", "standard_error", "low", "high")

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The answers."""

    @abstractmethod
    def _columns_of(
        self,
        codes: Integers | slice = slice(None),
        level: float = 0.95,
        simultaneous: str | None = None,
    ) -> Columns:
        """Return the results for some answers as columns."""

    def distance(self, reference: Any, metric: str = "total_variation") -> float:
        """Measure the distance to other frequencies.

        Parameters
        ----------
        reference
            One frequency for each answer, or another estimate of the same domain.
        metric
            ``"total_variation"``, ``"l1"``, ``"l2"``, ``"rmse"``, ``"max"``, ``"hellinger"``, or
            ``"kl"`` (of the reference from this estimate, in nats).

        Returns
        -------
        float
            The distance.

        Raises
        ------
        InvalidValueError
            If the sizes or domains differ, the metric does not exist, or it needs distributions and
            one side has negative entries or does not add up to one.

        Examples
        --------
        >>> import turnout as tn
        >>> estimate = tn.DirectEncoding(5.0, 2).simulate([30, 70], seed=1).estimate()
        >>> estimate.distance([0.3, 0.7]) < 0.1
        True
        """
        _arguments.choice("metric", metric, tuple(DISTANCES))
        other = reference
        if isinstance(reference, Answered):
            if reference.domain != self.domain:
                raise _arguments.invalid(
                    f"reference must be of the same domain {self.domain!r}", reference.domain
                )
            other = reference.frequencies
        return distance(
            self.frequencies, _arguments.frequencies("reference", other, self.domain.size), metric
        )

    def __getitem__(self, label: Any) -> AnswerEstimate:
        """Return the estimate of one answer, with its 95 % interval.

        Raises
        ------
        KeyError
            If the label is not in the domain.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(3.0, ["no", "yes"])
        >>> estimate = oracle.collect(["no"] * 900 + ["yes"] * 100, seed=1).estimate()
        >>> estimate["yes"].low < 0.1 < estimate["yes"].high
        True
        """
        try:
            code = int(self.domain.encode([label])[0])
        except TurnoutError as error:
            raise KeyError(label) from error
        return AnswerEstimate(**self._columns_of(np.array([code])).records()[0])

    def _most_frequent(self, top: int | None) -> Integers | slice:
        """Find the answers with the largest frequencies, in the order of the domain.

        Parameters
        ----------
        top
            The number of answers; None for all.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``top`` is not a number of answers.
        """
        if top is None or _arguments.integer("top", top, least=1) >= self.domain.size:
            return slice(None)
        return np.sort(np.argsort(-self.frequencies, kind="stable")[:top])

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each answer, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.
        top
            List only this many answers, those with the largest frequencies. Simultaneous limits
            still hold for all answers.

        Returns
        -------
        list of dict
            Dictionaries with ``label``, ``count``, ``frequency``, ``standard_error``, ``low`` and
            ``high``, in the order of the domain. The limits are None if the estimator is biased, or
            if they are infinite.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> estimate = tn.DirectEncoding(1.0, 2).simulate([30, 70], seed=1).estimate()
        >>> [record["label"] for record in estimate.to_records()]
        [0, 1]
        >>> [record["label"] for record in estimate.to_records(top=1)]
        [1]
        """
        return self._columns_of(self._most_frequent(top), level, simultaneous).records()

    def to_arrow(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level, simultaneous, top
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            The columns of :meth:`to_records`, with null for an unknown number. If labels are
            combinations of answers, a column for each question instead of ``label``.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        found = self._columns_of(self._most_frequent(top), level, simultaneous)
        return arrow_columns(dict(zip(self._columns, found, strict=True)), self._label_columns)

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    def _first_rows(self, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the most frequent of many answers, in their order."""
        records = self.to_records(top=most)
        if self.domain.size > most:
            records.sort(key=lambda record: -record["frequency"])
        return records, self.domain.size


def ordered(estimate: Any, order: str, top: int | None) -> Integers:
    """Return the codes of the answers to show, in one of :data:`ORDERS`.

    Parameters
    ----------
    estimate
        A :class:`turnout.FrequencyEstimate`.
    order
        The order.
    top
        The number of answers, those with the largest frequencies; None for all.
    """
    codes: Integers = np.arange(estimate.domain.size)[estimate._most_frequent(top)]
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
    """Return a sort key: labels of several types have no order, their texts do."""
    try:
        sorted(labels)
    except TypeError:
        return [str(label) for label in labels]
    return labels
