"""Estimated frequencies of groups, also over time, with intervals that can be simultaneous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._tables import Tabular, records_of
from turnout._types import Figure, Floats, Truths
from turnout.collecting.estimate import COUNTED
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.intervals import checked_level, tail_probability
from turnout.collecting.keys import Key, shown_key
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import (
    ACROSS,
    SHRUNK,
    FrequencyEstimate,
    shrunk_across,
)
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.intervals import AVERAGE, Interval
from turnout.frequency.estimation.projection import PROJECTIONS
from turnout.frequency.groups.pictures import lines_of_labels, plot_groups
from turnout.products import questions_of


@dataclass(frozen=True, eq=False)
class GroupDifference(Tabular):
    """The difference of the frequency of each answer between two groups.

    The groups have different people, whose noise is independent: variances add. (With hash
    functions that all reports share, the errors of both groups are positively correlated, and the
    standard error is a little too large.) The limits combine those of both groups by the
    square-and-add method, so they are as good as these for rare answers and few reports.

    Attributes
    ----------
    first, second
        The keys of the groups.
    domain
        The answers.
    differences
        The frequencies of the first group minus those of the second, before post-processing;
        float64, one for each answer.
    standard_errors
        Their standard errors.
    low, high
        The limits of the differences.
    level, simultaneous
        The confidence level, and whether it holds for all answers simultaneously.

    Notes
    -----
    Newcombe, "Interval estimation for the difference between independent proportions: comparison of
    eleven methods" (1998), method 10; Zou and Donner, "Construction of confidence limits about
    effect measures: a general approach" (2008).
    """

    first: Key
    second: Key
    domain: Domain
    differences: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    level: float
    simultaneous: str | None

    _columns = ("label", "difference", "standard_error", "low", "high")

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    @property
    def distinct(self) -> Truths:
        """Whether the interval of each difference excludes zero."""
        return (self.low > 0) | (self.high < 0)

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer.

        Returns
        -------
        list of dict
            Dictionaries with ``label``, ``difference``, ``standard_error``, ``low``, ``high``;
            infinite limits are None.
        """
        numbers = (self.differences, self.standard_errors, self.low, self.high)
        return records_of(self._columns, self.domain.labels, *numbers)

    def __repr__(self) -> str:
        """Show the groups and the number of answers that differ."""
        return (
            f"GroupDifference({shown_key(self.first)!r} less {shown_key(self.second)!r}: "
            f"{int(self.distinct.sum())} of {self.domain.size} answers differ, "
            f"level={self.level:g})"
        )


class GroupedEstimate(BaseGroupedEstimate[FrequencyEstimate]):
    """The frequency of each answer in each group, with standard errors and intervals.

    :meth:`GroupedTally.estimate` returns it. ``estimate["DE"]`` is the
    :class:`turnout.FrequencyEstimate` of one group. A group without reports allows no estimate;
    tables show it with nan and the reason.

    Parameters
    ----------
    tally
        The tally to estimate from.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.

    Raises
    ------
    InvalidValueError
        If the method does not exist.
    EstimatorError
        If the method does not apply to this participation.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
    >>> grouped = tn.GroupedTally(
    ...     ["country"],
    ...     {
    ...         "DE": oracle.simulate([9000, 1000], seed=1),
    ...         "FR": oracle.simulate([5000, 5000], seed=2),
    ...         "NL": oracle.simulate([0, 0]),
    ...     },
    ... )
    >>> estimate = grouped.estimate()
    >>> estimate.frequencies.round(1)
    array([[0.9, 0.1],
           [0.5, 0.5],
           [nan, nan]])
    >>> estimate.reasons
    mappingproxy({('NL',): 'the group has no nodes'})
    """

    _columns = (*COUNTED, *FrequencyEstimate._columns, "reason")
    _methods = ESTIMATORS
    _on_average = (AVERAGE,)
    _postprocessing = "none"

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    @property
    def postprocessing(self) -> str:
        """``"none"``, or the name of the projection that was applied."""
        return self._postprocessing

    @property
    def frequencies(self) -> Floats:
        """The frequencies, float64 of the shape (groups, answers); nan where there is no estimate.

        Each is the share of the nodes of the group.
        """
        return self._every_number

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of :attr:`frequencies` before post-processing, of the same shape."""
        return self._table("standard_errors")

    @property
    def counts(self) -> Floats:
        """The numbers of nodes that hold each answer, of the same shape."""
        return self._table("counts")

    def clip_intervals(self) -> GroupedEstimate:
        """Return the same estimates with intervals cut to [0, 1], also in series.

        Returns
        -------
        GroupedEstimate
            The same estimates, as by :meth:`turnout.FrequencyEstimate.clip_intervals`. Differences
            of groups keep their intervals.
        """
        return self._changed(methodcaller("clip_intervals"))

    def project(self, method: str) -> GroupedEstimate:
        """Post-process the estimate of each group into a distribution.

        Parameters
        ----------
        method
            As for :meth:`turnout.FrequencyEstimate.project`.

        Returns
        -------
        GroupedEstimate
            The post-processed estimates; standard errors and intervals stay those of the original.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        """
        _arguments.choice("method", method, ("none", *PROJECTIONS))
        made = self._changed(methodcaller("project", method))
        made._postprocessing = method
        return made

    def shrink(self, *, across: bool = False) -> GroupedEstimate:
        """Shrink the answers of each group towards each other, and optionally the groups too.

        Parameters
        ----------
        across
            False: as :meth:`turnout.FrequencyEstimate.shrink` within each group, without the other
            groups. True: also learn from the same answer in other groups, as much as the groups are
            alike; a group unlike the others stays as it was. The result for one group then depends
            on the people of all groups.

        Returns
        -------
        GroupedEstimate
            The shrunken estimates; standard errors and intervals stay those of the original.

        Raises
        ------
        EstimatorError
            If the estimator is biased, or a standard error is not known.
        InvalidTypeError
            If ``across`` is neither True nor False.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, ["no", "maybe", "yes"])
        >>> regions = {name: oracle.simulate([500, 300, 200], seed=name) for name in range(12)}
        >>> estimate = tn.GroupedTally(["region"], regions).estimate()
        >>> truth = [0.5, 0.3, 0.2]
        >>> alone, across = estimate.shrink(), estimate.shrink(across=True)
        >>> errors = [sum(each[key].distance(truth) for key in each) for each in (alone, across)]
        >>> errors[1] < 0.5 * errors[0]
        True
        >>> across[0].shrinkage.weights["other groups"] > 0.9
        True
        """
        estimates = None
        if _arguments.instance("across", across, bool, "True or False"):
            together = shrunk_across(list(self._estimates.values()))
            estimates = dict(zip(self._estimates, together, strict=True))
        made = self._changed(methodcaller("shrink"), estimates)
        made._postprocessing = ACROSS if across else SHRUNK
        return made

    def _entries(self) -> str:
        return f"{self.domain.size} answers"

    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        return [(label,) for label in self.domain.labels[:top]]

    def _lines(self, labels: Any, level: float, simultaneous: str | None, over: str) -> Lines:
        """Return the lines of a series: the answers, by default the six most frequent."""
        return lines_of_labels(self, labels, level, simultaneous, over)

    def compare(
        self, first: Any, second: Any, *, level: float = 0.95, simultaneous: str | None = None
    ) -> GroupDifference:
        """Compare the frequencies of two groups.

        Parameters
        ----------
        first, second
            The keys of two different groups.
        level
            The confidence level of the differences.
        simultaneous
            As for :meth:`turnout.FrequencyEstimate.interval`: over the labels.

        Returns
        -------
        GroupDifference
            The frequencies of the first minus those of the second, with intervals.

        Raises
        ------
        KeyError
            If a group does not exist.
        InvalidValueError
            If both are the same group, or an argument is none of the allowed values.
        EstimatorError
            If a group has no estimate, or the estimator is biased.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
        >>> shares = {"DE": oracle.simulate([900, 100], seed=1), "FR": oracle.simulate([600, 400])}
        >>> grouped = tn.GroupedTally(["country"], shares)
        >>> grouped.estimate().compare("DE", "FR").differences.shape
        (2,)
        """
        keys = self._found(first), self._found(second)
        if keys[0] == keys[1]:
            raise InvalidValueError(
                f"second must be another group than first, got {_arguments.shown(second)} twice"
            )
        level = checked_level(level, simultaneous)
        each = 1.0 - tail_probability(level, self.domain.size, simultaneous)
        # Limits that are cut would make those of the difference too narrow.
        one, other = (replace(self[key]._unprojected, clipped=False) for key in keys)
        near, far = one.interval(each), other.interval(each)
        # How far each limit is from its estimate, never below zero.
        below, above = _distances(one.frequencies, near)
        other_below, other_above = _distances(other.frequencies, far)
        differences = one.frequencies - other.frequencies
        return GroupDifference(
            *keys,
            self.domain,
            differences,
            np.hypot(one.standard_errors, other.standard_errors),
            differences - np.hypot(below, other_above),
            differences + np.hypot(above, other_below),
            level,
            simultaneous,
        )

    def series(self, time: str | None = None) -> Series[GroupedEstimate]:
        """Return the groups as a series over time, one for each group of the other columns.

        Parameters
        ----------
        time
            The column of the time: dates, moments, times of day, numbers or texts, in their order.
            By default the only column whose values are dates or moments, or the only column.

        Returns
        -------
        Series
            The estimates in the order of time.

        Raises
        ------
        InvalidValueError
            If the column does not exist, or is not given and ambiguous.
        """
        return Series(self, time)

    def plot(
        self,
        labels: Any = None,
        *,
        level: float = 0.95,
        simultaneous: str | None = None,
        over: str = "all",
    ) -> Figure:
        """Draw a panel for each answer, with the groups in rows with their intervals.

        Parameters
        ----------
        labels
            The answers to draw; by default all, or the twelve most frequent if there are more.
        level, simultaneous, over
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture, with the frequency of all groups together as a line in each panel.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, a label is not in the domain, or there are
            no groups.
        """
        return plot_groups(self, labels, level, simultaneous, over)


def _distances(middle: Floats, limits: Interval) -> tuple[Floats, Floats]:
    return np.maximum(middle - limits.low, 0.0), np.maximum(limits.high - middle, 0.0)
