"""Estimates of several attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from turnout import _arguments
from turnout._drawing import interval_words, panels
from turnout._tables import Tabular
from turnout._types import Figure
from turnout.collecting.intervals import tail_probability
from turnout.collecting.plan import Plan
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.intervals import Interval
from turnout.products import Questions

Self = TypeVar("Self", bound="AttributeEstimate")


@dataclass(frozen=True, eq=False, repr=False)
class AttributeEstimate(Tabular, Mapping[str, FrequencyEstimate]):
    """How often each answer to each question occurs: a mapping from attributes to estimates.

    Made by :meth:`AttributeTally.estimate`.

    Attributes
    ----------
    plan
        What the data was collected by.
    method
        The estimator.
    nodes, received
        The numbers of nodes and of reports.
    estimates
        For each attribute its :class:`turnout.FrequencyEstimate`.

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

    plan: Plan
    method: str
    nodes: int
    received: int
    estimates: dict[str, FrequencyEstimate]

    _columns = ("attribute", "label", "count", "frequency", "standard_error", "low", "high")

    @property
    def domain(self) -> Questions:
        """The answers that can be given to all questions."""
        domain: Questions = self.plan.domain
        return domain

    @property
    def answers(self) -> int:
        """The number of answers to all attributes."""
        return sum(estimate.domain.size for estimate in self.estimates.values())

    @property
    def postprocessing(self) -> str:
        """What was done to the frequencies of all attributes: see :meth:`project`."""
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
        """Confidence intervals of the frequencies of all attributes, one after the other.

        Parameters
        ----------
        level, method
            As for :meth:`turnout.FrequencyEstimate.interval`.
        simultaneous
            None: the level holds for each answer by itself. ``"bonferroni"``: it holds for all
            answers to all questions at once (``"sidak"`` is the same here: the reports of a person
            belong together).

        Returns
        -------
        Interval
            Lower and upper limits, one for each answer to each question.

        Raises
        ------
        InvalidValueError, EstimatorError
            As :meth:`turnout.FrequencyEstimate.interval`.
        """
        each = self.each_level(level, simultaneous)
        found = [estimate.interval(each, method=method) for estimate in self.estimates.values()]
        names = dict.fromkeys(one.method for one in found)
        return Interval(
            np.concatenate([one.low for one in found]),
            np.concatenate([one.high for one in found]),
            level,
            " or ".join(names),
            simultaneous,
        )

    def each_level(self, level: float, simultaneous: str | None) -> float:
        """Find the level of one interval, of those that hold together.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        """
        level = _arguments.confidence("level", level)
        _arguments.choice("simultaneous", simultaneous, (None, "bonferroni", "sidak"))
        if simultaneous is None:
            return level
        return 1.0 - tail_probability(level, self.answers, "bonferroni")

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each answer to each question, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.
        top
            List so many answers to each question only, those with the largest frequencies.

        Returns
        -------
        list of dict
            ``attribute``, and what :meth:`turnout.FrequencyEstimate.to_records` gives.

        Raises
        ------
        InvalidValueError
            If an argument is out of range.
        """
        each = self.each_level(level, simultaneous)
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
        each = self.each_level(level, simultaneous)
        figure = panels(
            {name: partial(one.plot, level=each) for name, one in self.estimates.items()}
        )
        if simultaneous is not None:
            words = interval_words(level, simultaneous)
            figure.suptitle(f"{words} of all questions", fontsize=10, x=0.02, ha="left")
        return figure

    def __repr__(self) -> str:
        """Show how it was made."""
        return (
            f"{type(self).__name__}({self.method!r}, {', '.join(self.estimates)}: {self.received} "
            f"reports of {self.nodes} nodes)"
        )
