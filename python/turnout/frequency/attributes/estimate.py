"""Tallies and estimates of several attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from turnout import _arguments
from turnout._drawing import interval_words, panels
from turnout._tables import WithTop
from turnout._types import Figure
from turnout.collecting.estimate import COUNTED, BaseEstimate
from turnout.collecting.groups.estimate import BaseGroupedEstimate
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.intervals import checked_level, tail_probability
from turnout.collecting.parted import PartedTally
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.intervals import Interval
from turnout.frequency.groups.estimate import GroupedEstimate
from turnout.frequency.tally import Tally
from turnout.products import Questions

Self = TypeVar("Self", bound="AttributeEstimate")


@dataclass(frozen=True, eq=False, repr=False)
class AttributeEstimate(WithTop, BaseEstimate[Questions], Mapping[str, FrequencyEstimate]):
    """The frequencies of the answers to each question: a mapping from attributes to estimates.

    :meth:`AttributeTally.estimate` returns it.

    Attributes
    ----------
    plan
        The plan of the data.
    method
        The estimator.
    nodes, received
        The numbers of nodes and of reports.
    estimates
        The :class:`turnout.FrequencyEstimate` of each attribute.

    Examples
    --------
    >>> import turnout as tn
    >>> both = tn.SplitBudget(6.0, {"sex": ["f", "m"], "age": 4})
    >>> table = {"sex": ["f", "m"] * 2000, "age": [0, 1, 1, 3] * 1000}
    >>> estimate = both.collect(table, seed=1).estimate()
    >>> round(estimate["sex"]["f"].frequency, 1)
    0.5
    >>> [record["attribute"] for record in estimate.to_records()][:3]
    ['sex', 'sex', 'age']
    """

    estimates: dict[str, FrequencyEstimate]

    _columns = ("attribute", "label", "count", "frequency", "standard_error", "low", "high")

    @property
    def _unanswered(self) -> dict[str, Domain]:
        """The attributes that are left out, since nobody has reported them yet."""
        domains = self.plan.oracle.domains
        return {name: each for name, each in domains.items() if name not in self.estimates}

    @property
    def postprocessing(self) -> str:
        """The post-processing of all attributes; see :meth:`project`."""
        return next(iter(self.estimates.values())).postprocessing

    def __getitem__(self, name: str) -> FrequencyEstimate:
        """Return the estimate of one attribute."""
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        """List the names of the attributes."""
        return iter(self.estimates)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.estimates)

    def project(self, method: str) -> AttributeEstimate:
        """Post-process each attribute: see :meth:`turnout.FrequencyEstimate.project`."""
        return self._each(lambda estimate: estimate.project(method))

    def shrink(self) -> AttributeEstimate:
        """Shrink within each attribute: see :meth:`turnout.FrequencyEstimate.shrink`."""
        return self._each(lambda estimate: estimate.shrink())

    def clip_intervals(self) -> AttributeEstimate:
        """Cut intervals to [0, 1]: see :meth:`turnout.FrequencyEstimate.clip_intervals`."""
        return self._each(lambda estimate: estimate.clip_intervals())

    def _each(self: Self, change: Callable[[FrequencyEstimate], FrequencyEstimate]) -> Self:
        changed = {name: change(estimate) for name, estimate in self.estimates.items()}
        return replace(self, estimates=changed)

    def interval(
        self, level: float = 0.95, *, method: str = "auto", simultaneous: str | None = None
    ) -> Interval:
        """Return confidence intervals of the frequencies of all attributes, one after the other.

        Parameters
        ----------
        level, method
            As for :meth:`turnout.FrequencyEstimate.interval`.
        simultaneous
            None: the level holds for each answer separately. ``"bonferroni"``: it holds for all
            answers to all questions simultaneously (``"sidak"`` is the same here, since the reports
            of a person are related).

        Returns
        -------
        Interval
            Lower and upper limits, one for each answer to each question.

        Raises
        ------
        InvalidValueError, EstimatorError
            As :meth:`turnout.FrequencyEstimate.interval`.
        """
        each = self._each_level(level, simultaneous)
        found = [estimate.interval(each, method=method) for estimate in self.estimates.values()]
        names = dict.fromkeys(one.method for one in found)
        return Interval(
            np.concatenate([one.low for one in found]),
            np.concatenate([one.high for one in found]),
            level,
            " or ".join(names),
            simultaneous,
        )

    def _each_level(self, level: float, simultaneous: str | None) -> float:
        """Return the level of one interval, given what holds simultaneously.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        level = checked_level(level, simultaneous)
        if simultaneous is None:
            return level
        answers = sum(estimate.domain.size for estimate in self.estimates.values())
        return 1.0 - tail_probability(level, answers, "bonferroni")

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each answer to each question, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.
        top
            List only this many answers to each question, those with the largest frequencies.

        Returns
        -------
        list of dict
            Dictionaries with ``attribute``, and the names of
            :meth:`turnout.FrequencyEstimate.to_records`.

        Raises
        ------
        InvalidValueError
            If an argument is out of range.
        """
        each = self._each_level(level, simultaneous)
        return [
            {"attribute": name, **record}
            for name, estimate in self.estimates.items()
            for record in estimate.to_records(each, top=top)
        ]

    def plot(self, *, level: float = 0.95, simultaneous: str | None = None) -> Figure:
        """Draw a panel for each attribute.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        each = self._each_level(level, simultaneous)
        figure = panels(
            {name: partial(one.plot, level=each) for name, one in self.estimates.items()}
        )
        if simultaneous is not None:
            words = interval_words(level, simultaneous)
            figure.suptitle(f"{words} of all questions", fontsize=10, x=0.02, ha="left")
        return figure

    def __repr__(self) -> str:
        """Show the method and the plan."""
        return (
            f"{type(self).__name__}({self.method!r}, {', '.join(self.estimates)}: {self.received} "
            f"reports of {self.nodes} nodes)"
        )


class AttributeTally(PartedTally, Mapping[str, Tally]):
    """The support of each answer of each attribute: a mapping from names to tallies.

    Tallies of different nodes under the same plan add up, in any order.

    Examples
    --------
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"a": 2, "b": 3})
    >>> monday = one.collect({"a": [0] * 60, "b": [1] * 60})
    >>> tuesday = one.collect({"a": [1] * 40, "b": [2] * 40})
    >>> (monday + tuesday).nodes
    100
    >>> AttributeTally.from_bytes(monday.to_bytes()) == monday
    True
    >>> list(monday)
    ['a', 'b']
    """

    told: ClassVar[str] = "questions"

    #: The class of its estimates.
    _estimate_type: ClassVar[type[AttributeEstimate]] = AttributeEstimate

    def __getitem__(self, name: str) -> Tally:
        """Return the tally of one attribute."""
        places = {each: place for place, each in enumerate(self)}
        tally: Tally = self.parts[places[name]]
        return tally

    def __iter__(self) -> Iterator[str]:
        """List the names of the attributes."""
        return iter(self.plan.oracle.domains)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self.parts)

    __eq__ = PartedTally.__eq__
    __hash__ = PartedTally.__hash__

    def estimate(self, method: str = "hajek") -> AttributeEstimate:
        """Estimate the frequencies of the answers of each attribute.

        Parameters
        ----------
        method
            The estimator, as in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        AttributeEstimate
            The frequencies of each attribute among all nodes, with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If the method does not apply, or an attribute has no report.
        """
        return self._estimate_of(list(self), method)

    def _estimate_answered(self, method: str) -> AttributeEstimate:
        """Estimate the attributes that have reports, and leave out the others.

        Raises
        ------
        InvalidValueError, EstimatorError
            As :meth:`estimate`, if no attribute has a report.
        """
        answered = [name for name, tally in self.items() if tally.received]
        return self._estimate_of(answered or list(self), method)

    def _estimate_of(self, names: Sequence[str], method: str) -> AttributeEstimate:
        each = {name: self[name].estimate(method) for name in names}
        known = self.plan, method, self.nodes, self.received
        return self._estimate_type(*known, each, left_out=self.left_out)


class GroupedAttributeEstimate(BaseGroupedEstimate[AttributeEstimate]):
    """The frequencies of the answers to each question in each group.

    :meth:`turnout.GroupedTally.estimate` returns it. ``estimate["DE"]["age"]`` is the
    :class:`turnout.FrequencyEstimate` of one question in one group.

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
    >>> both = tn.SplitBudget(6.0, {"sex": ["f", "m"], "age": 4})
    >>> answers = {"sex": ["f"] * 900, "age": [3] * 900}
    >>> countries = {country: both.collect(answers, seed=1) for country in ("DE", "FR")}
    >>> estimate = tn.GroupedTally(["country"], countries).estimate()
    >>> estimate["FR"]["sex"]["f"].frequency > 0.8
    True
    """

    _columns = (*COUNTED, *AttributeEstimate._columns, "reason")
    _methods = ESTIMATORS

    def clip_intervals(self) -> GroupedAttributeEstimate:
        """Cut intervals to [0, 1]: see :meth:`turnout.FrequencyEstimate.clip_intervals`."""
        return self._changed(methodcaller("clip_intervals"))

    @property
    def _domains(self) -> Mapping[str, Domain]:
        domains: Mapping[str, Domain] = self.plan.oracle.domains
        return domains

    def attribute(self, name: str) -> GroupedEstimate:
        """Return the estimates of one question, with pictures, series and comparisons of groups.

        Raises
        ------
        InvalidValueError
            If the question does not exist.
        """
        _arguments.choice("name", name, tuple(self._domains))
        tallies = {key: tally[name] for key, tally in self._tally.items()}
        grouped = GroupedTally(self.names, tallies, of_no_group=self._tally.of_no_group)
        found = GroupedEstimate(grouped, self._method)
        return found.clip_intervals() if self._changes else found

    def series(self, time: str | None = None) -> NoReturn:
        """Refuse, because a series shows one question: call :meth:`attribute` first.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "a series over time shows one question: use estimate.attribute(name).series(), or "
            "group by columns without a time"
        )

    def plot(self, **options: Any) -> NoReturn:
        """Refuse, because a picture of groups shows one question: call :meth:`attribute` first.

        Raises
        ------
        InvalidValueError
            Always.
        """
        raise InvalidValueError(
            "a picture of groups shows one question: estimate.attribute(name).plot() draws it"
        )

    def _entries(self) -> str:
        return f"{len(self._domains)} attributes each"

    def _listed(self, top: int | None = None) -> Sequence[tuple[Any, ...]]:
        return [
            (name, label) for name, domain in self._domains.items() for label in domain.labels[:top]
        ]
