"""The results of a survey: a table for each column or group, and a description in words."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from turnout import _arguments
from turnout._drawing import largest, panels
from turnout._tables import WithGroups
from turnout.collecting.groups.apart import EstimatesOfGroups
from turnout.collecting.intervals import each_level
from turnout.collecting.keys import Key, shown_key
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.products import questions_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: So many groups are drawn, the largest of more.
_PANELS: Final = 12


@dataclass(frozen=True, eq=False, repr=False)
class SurveyResult(WithGroups):
    """The result of one column: shares, or mean and quantiles, with intervals.

    :func:`turnout.survey` returns it, for all people or for each group. It prints a description;
    :meth:`to_pandas`, :meth:`to_polars` and :meth:`to_arrow` return the table, and :meth:`plot`
    draws it.

    Attributes
    ----------
    tally
        The counted reports: a tally, or one for each group; with ``trust="aggregators"`` the
        :class:`turnout.distributed.RoundResult`.
    estimate
        The estimate from the tally, with all its methods.
    column
        The column of the answers; for several columns together their names, ``"sex × vote"``.
    by
        The columns of the groups.
    statement
        Sentences about the survey and about epsilon, one on each line.
    notes
        Notes for the reader: the origin of the labels, and whether another way would be far better.
    mechanism
        With ``trust="aggregators"`` the mechanism that counted, with its ``guarantee``, or a
        dictionary by group if there are groups; otherwise None.
    left_out
        The number of rows that do not count, with the reasons. No other number includes them.
    """

    tally: Any
    estimate: Any
    column: str
    by: tuple[str, ...]
    statement: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())
    mechanism: Any = field(default=None)
    left_out: LeftOut = field(default=NOTHING)

    @property
    def _columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.estimate._columns  # type: ignore[no-any-return]

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.by

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return self.estimate._label_columns  # type: ignore[no-any-return]

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List one dictionary for each answer, or mean and quantile, of each group.

        Parameters
        ----------
        level
            The confidence level of the intervals, between 0 and 1.
        simultaneous
            Whether the intervals hold together: None, ``"bonferroni"`` or ``"sidak"``.
        over
            Of groups: whether they hold together over ``"all"`` entries, ``"labels"`` or
            ``"groups"``.
        top
            List so many answers only, the most frequent ones.

        Returns
        -------
        list of dict
            As the estimate's ``to_records`` gives them.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or not one of the allowed values.
        """
        given = {"simultaneous": simultaneous, "over": None if over == "all" else over, "top": top}
        options = {name: value for name, value in given.items() if value is not None}
        takes = inspect.signature(self.estimate.to_records).parameters
        for name, value in options.items():
            if name not in takes:
                raise InvalidValueError(
                    f"{name} says nothing about a {type(self.estimate).__name__}, got {value!r}"
                )
        records: list[dict[str, Any]] = self.estimate.to_records(level, **options)
        return records

    def clip_intervals(self) -> SurveyResult:
        """Clip the displayed intervals of shares to [0, 1].

        Returns
        -------
        SurveyResult
            The same result with clipped intervals: see
            :meth:`turnout.FrequencyEstimate.clip_intervals`.

        Raises
        ------
        InvalidValueError
            If the result is about numbers.
        """
        if not hasattr(self.estimate, "clip_intervals"):
            raise InvalidValueError(
                f"intervals of shares can be cut to [0, 1], and {self.column!r} has numbers"
            )
        return replace(self, estimate=self.estimate.clip_intervals())

    def plot(self, **options: Any) -> Any:
        """Draw the estimate, as its own ``plot`` does.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return self.estimate.plot(**options)

    def explain(self) -> str:
        """Describe in a few lines the survey, the meaning of epsilon, and the number of people.

        Returns
        -------
        str
            One sentence on each line.
        """
        return "\n".join([*self.statement, *self.notes])

    def __repr__(self) -> str:
        """Show the description of the survey."""
        return self.explain()


@dataclass(frozen=True, eq=False, repr=False)
class SurveyResults(Mapping[str, SurveyResult]):
    """The results of a survey of several columns: a mapping from the names of the columns.

    Attributes
    ----------
    results
        One :class:`SurveyResult` for each column.
    statement
        Sentences about the survey and about epsilon, one on each line. They apply to all columns
        together.
    epsilon
        The privacy of everything that all columns together reveal about a person.
    notes
        Notes for the reader about all columns.
    left_out
        The number of rows that do not count, with the reasons. A row that lacks one of the answers
        is left out of all columns.
    """

    results: Mapping[str, SurveyResult]
    statement: tuple[str, ...]
    epsilon: float
    notes: tuple[str, ...] = field(default=())
    left_out: LeftOut = field(default=NOTHING)

    def __getitem__(self, column: str) -> SurveyResult:
        """Return the result of a column."""
        if column not in self.results:
            raise InvalidValueError(
                f"the survey has no column {_arguments.shown(column)}, but "
                f"{_arguments.listed(list(self.results))}"
            )
        return self.results[column]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the columns."""
        return iter(self.results)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.results)

    def clip_intervals(self) -> SurveyResults:
        """Clip the intervals of shares to [0, 1] in each column that has shares.

        Returns
        -------
        SurveyResults
            The same results with clipped intervals: see
            :meth:`turnout.FrequencyEstimate.clip_intervals`.
        """
        cut = {
            name: one.clip_intervals() if hasattr(one.estimate, "clip_intervals") else one
            for name, one in self.items()
        }
        return replace(self, results=cut)

    def plot(self, level: float = 0.95) -> Figure:
        """Draw a panel for each column.

        Parameters
        ----------
        level
            The confidence level of the intervals, between 0 and 1.

        Raises
        ------
        InvalidValueError
            If there are groups: draw each column separately then.
        MissingExtraError
            If matplotlib is not installed.
        """
        if any(result.by for result in self.values()):
            raise InvalidValueError("plot grouped columns one by one: [column].plot()")
        return panels({name: partial(one.plot, level=level) for name, one in self.items()})

    def explain(self) -> str:
        """Describe in a few lines the survey, the meaning of epsilon, and each column's notes.

        Returns
        -------
        str
            One sentence on each line.
        """
        each = [f"{name!r}: {note}" for name, one in self.items() for note in one.notes]
        return "\n".join([*self.statement, *self.notes, *each])

    def __repr__(self) -> str:
        """Show the description of the survey."""
        return self.explain()

    def _repr_html_(self) -> str:
        """Show the tables below each other in a notebook."""
        return "".join(result._repr_html_() for result in self.values())


def together(
    results: Mapping[str, SurveyResult],
    without: tuple[str, ...],
    statement: tuple[str, ...],
    notes: tuple[str, ...],
    epsilon: float,
) -> SurveyResult | SurveyResults:
    """Combine the results of columns and their descriptions; return the result of a single column.

    What is said of rows ``without`` an answer comes first.
    """
    [first, *_] = results.values()
    if len(results) > 1:
        return SurveyResults(results, (*without, *statement), epsilon, notes, first.left_out)
    statement, notes = (*without, *first.statement), (*notes, *first.notes)
    return replace(first, statement=statement, notes=notes)


class ShareGroups(EstimatesOfGroups[FrequencyEstimate]):
    """The shares of the answers in groups that were counted separately.

    Parameters
    ----------
    names
        The columns of the groups.
    estimates
        The estimate of each group.
    """

    def __init__(self, names: tuple[str, ...], estimates: Mapping[Key, FrequencyEstimate]) -> None:
        [first, *_] = estimates.values()
        unknown = [dict.fromkeys(FrequencyEstimate._columns)] * first.domain.size
        super().__init__(names, estimates, estimates, unknown)

    @property
    def domain(self) -> Domain:
        """The answers."""
        [first, *_] = self.values()
        return first.domain

    @property
    def _label_columns(self) -> tuple[str, ...]:
        return questions_of(self.domain)

    def clip_intervals(self) -> ShareGroups:
        """Clip the intervals of all groups to [0, 1]."""
        return ShareGroups(self.names, {key: each.clip_intervals() for key, each in self.items()})

    def plot(
        self, *, level: float = 0.95, simultaneous: str | None = None, over: str = "all"
    ) -> Figure:
        """Draw a panel for each group; with more than a dozen groups, for the largest ones.

        Parameters
        ----------
        level, simultaneous, over
            As in :meth:`turnout.frequency.groups.GroupedEstimate.interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or not one of the allowed values.
        """
        each = each_level(level, simultaneous, over, len(self._unknown), len(self))
        keys = list(self)
        drawn = largest([one.nodes for one in self.values()], _PANELS)
        return panels(
            {shown_key(keys[place]): partial(self[keys[place]].plot, level=each) for place in drawn}
        )
