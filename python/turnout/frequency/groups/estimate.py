"""Estimated frequencies of all groups, also over time, with intervals that can hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turnout import _arguments
from turnout._types import Figure, Floats
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.groups.tally import GroupedTally
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import (
    ACROSS,
    POSTPROCESSING,
    SHRUNK,
    FrequencyEstimate,
    postprocessed,
    shrunk_across,
)
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.intervals import AVERAGE
from turnout.frequency.groups.comparison import GroupDifference, difference
from turnout.frequency.groups.pictures import lines_of_labels, plot_groups
from turnout.products import questions_of


class GroupedEstimate(BaseGroupedEstimate[FrequencyEstimate]):
    """How often each answer occurs in each group, with standard errors and intervals.

    Made by :meth:`GroupedTally.estimate`. ``estimate["DE"]`` is the
    :class:`turnout.FrequencyEstimate` of one group. A group from which nothing can be estimated,
    because nobody in it reported, is in the tables with nan and the reason.

    Parameters
    ----------
    tally
        What is estimated from.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    postprocessing
        The projection, as in :meth:`turnout.FrequencyEstimate.project`, or ``"empirical_bayes"``
        as in :meth:`turnout.FrequencyEstimate.shrink`, within each group, or
        ``"empirical_bayes_across_groups"``: see :meth:`shrink`.
    clipped
        Whether intervals are cut to [0, 1].

    Raises
    ------
    InvalidValueError
        If there is no such method or projection.
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

    __slots__ = ("_clipped", "_postprocessing")

    _columns = ("nodes", "received", *FrequencyEstimate._columns, "reason")
    _on_average = (AVERAGE,)

    def __init__(
        self,
        tally: GroupedTally[Any],
        method: str = "hajek",
        *,
        postprocessing: str = "none",
        clipped: bool = False,
    ) -> None:
        _arguments.choice("method", method, tuple(ESTIMATORS))
        _arguments.choice("postprocessing", postprocessing, (*POSTPROCESSING, ACROSS))
        self._postprocessing = postprocessing
        self._clipped = clipped
        super().__init__(tally, method)
        if postprocessing == ACROSS:
            made = shrunk_across(list(self._estimates.values()))
            self._estimates = dict(zip(self._estimates, made, strict=True))

    def _estimated(self, tally: Any) -> FrequencyEstimate:
        by_itself = "none" if self._postprocessing == ACROSS else self._postprocessing
        found = postprocessed(super()._estimated(tally), by_itself)
        return found.clip_intervals() if self._clipped else found

    @property
    def total(self) -> FrequencyEstimate:
        """The estimate of the nodes of all groups together; shrunk if those of the groups are.

        Raises
        ------
        EstimatorError
            If there is nothing to estimate it from.
        """
        total = super().total
        return total.shrink() if self._postprocessing == ACROSS else total

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
        return self.numbers

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of :attr:`frequencies` before post-processing, of the same shape."""
        return self._table("standard_errors")

    @property
    def counts(self) -> Floats:
        """The numbers of nodes that hold each answer, of the same shape."""
        return self._table("counts")

    def clip_intervals(self) -> GroupedEstimate:
        """Cut the intervals of all groups to [0, 1], and those of series of them.

        Returns
        -------
        GroupedEstimate
            The same estimates, as by :meth:`turnout.FrequencyEstimate.clip_intervals`. Differences
            of groups keep the intervals that they have.
        """
        return self._made_anew(self._postprocessing, clipped=True)

    def _made_anew(self, postprocessing: str, *, clipped: bool) -> GroupedEstimate:
        return GroupedEstimate(
            self._tally, self._method, postprocessing=postprocessing, clipped=clipped
        )

    def project(self, method: str) -> GroupedEstimate:
        """Post-process the estimate of each group into a distribution.

        Parameters
        ----------
        method
            As for :meth:`turnout.FrequencyEstimate.project`.

        Returns
        -------
        GroupedEstimate
            The post-processed estimates; standard errors and intervals stay those before.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        """
        return self._made_anew(method, clipped=self._clipped)

    def shrink(self, *, across: bool = False) -> GroupedEstimate:
        """Draw the answers of each group towards each other; groups too, where that is asked.

        Parameters
        ----------
        across
            False: as :meth:`turnout.FrequencyEstimate.shrink` within each group, which learns
            nothing from the others. True: the same answer in the other groups says something of it,
            too, as much as the groups are alike; a group unlike the others stays as it was. What
            is seen of one group then depends on the people of all.

        Returns
        -------
        GroupedEstimate
            The shrunken estimates; standard errors and intervals stay those before.

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
        asked = _arguments.instance("across", across, bool, "True or False")
        word = ACROSS if asked else SHRUNK
        return self._made_anew(word, clipped=self._clipped)

    def _entries(self) -> str:
        return f"{self.domain.size} answers"

    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        return [(label,) for label in self.domain.labels[:top]]

    def lines(self, labels: Any, level: float, simultaneous: str | None, over: str) -> Lines:
        """Say what is drawn of a series: the answers, by default the six most frequent."""
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
            The frequencies of the first less those of the second, with intervals.

        Raises
        ------
        KeyError
            If there is no such group.
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
        # Limits that are cut would make those of the difference too narrow.
        one, other = (replace(self[key], clipped=False) for key in keys)
        return difference((keys[0], one), (keys[1], other), level, simultaneous)

    def series(self, time: str | None = None) -> Series[GroupedEstimate]:
        """Read the groups as a series over time, one for each group of the other columns.

        Parameters
        ----------
        time
            The column that is the time: dates, moments, times of day, numbers or texts, in their
            order. By default the only column whose values are dates or moments, or the only column.

        Returns
        -------
        Series
            The estimates in the order of time.

        Raises
        ------
        InvalidValueError
            If there is no such column, or none is given and it is not clear which.
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
        """Draw a panel for each answer: the groups below each other with their intervals.

        Parameters
        ----------
        labels
            The answers that are drawn; by default all, or the twelve most frequent of more.
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
            If an argument is none of the allowed values, a label is none of the domain, or there
            are no groups.
        """
        return plot_groups(self, labels, level, simultaneous, over)
