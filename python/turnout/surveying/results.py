"""What a survey gives: a table for each column, or each group, and what was done in words."""

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
    """The shares of the answers, or mean and quantiles, with intervals: of all, or of each group.

    Made by :func:`turnout.survey`. It prints what was done; :meth:`to_pandas`, :meth:`to_polars`
    and :meth:`to_arrow` give the table, and :meth:`plot` draws it.

    Attributes
    ----------
    tally
        What the reports were counted to: a tally, or one for each group; of ``trust="aggregators"``
        the :class:`turnout.distributed.RoundResult`.
    estimate
        The estimate of it, with everything that it can do.
    column
        The column of the answers; of several together their names, ``"sex × vote"``.
    by
        The columns of the groups.
    statement
        What was done, and what epsilon means: a line each.
    notes
        What a reader should know: where the labels come from, and whether another way would be far
        better.
    mechanism
        Of ``trust="aggregators"`` what counted, with its ``guarantee``; a
        dictionary of groups if there are any; else None.
    left_out
        How many rows do not count, and why: they are in no other number.
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
            If an argument is of the wrong type, or none of the allowed values.
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
        """Cut the intervals of shares to [0, 1], wherever they are shown.

        Returns
        -------
        SurveyResult
            The same result: see :meth:`turnout.FrequencyEstimate.clip_intervals`.

        Raises
        ------
        InvalidValueError
            If it is of numbers.
        """
        if not hasattr(self.estimate, "clip_intervals"):
            raise InvalidValueError(
                f"intervals of shares can be cut to [0, 1], and {self.column!r} has numbers"
            )
        return replace(self, estimate=self.estimate.clip_intervals())

    def plot(self, **options: Any) -> Any:
        """Draw the estimate: see its own ``plot``.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return self.estimate.plot(**options)

    def explain(self) -> str:
        """Say in a few lines what was done, what epsilon means, and how many people answered.

        Returns
        -------
        str
            One sentence a line.
        """
        return "\n".join([*self.statement, *self.notes])

    def __repr__(self) -> str:
        """Show what was done."""
        return self.explain()


@dataclass(frozen=True, eq=False, repr=False)
class SurveyResults(Mapping[str, SurveyResult]):
    """The result of each column of a survey of several: a mapping from the names of the columns.

    Attributes
    ----------
    results
        One :class:`SurveyResult` for each column.
    statement
        What was done, and what epsilon means: a line each. It holds for all columns together.
    epsilon
        The privacy of all that is known of a person from the columns together.
    notes
        What a reader should know of the whole.
    left_out
        How many rows do not count, and why: a row that lacks one of the answers is left out of all.
    """

    results: Mapping[str, SurveyResult]
    statement: tuple[str, ...]
    epsilon: float
    notes: tuple[str, ...] = field(default=())
    left_out: LeftOut = field(default=NOTHING)

    def __getitem__(self, column: str) -> SurveyResult:
        """Give the result of a column."""
        if column not in self.results:
            raise InvalidValueError(
                f"the survey has no column {_arguments.shown(column)}, but "
                f"{_arguments.listed(list(self.results))}"
            )
        return self.results[column]

    def __iter__(self) -> Iterator[str]:
        """List the columns."""
        return iter(self.results)

    def __len__(self) -> int:
        """Count the columns."""
        return len(self.results)

    def clip_intervals(self) -> SurveyResults:
        """Cut the intervals of shares to [0, 1], of each column that has shares.

        Returns
        -------
        SurveyResults
            The same results: see :meth:`turnout.FrequencyEstimate.clip_intervals`.
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
            If there are groups: each column is then a picture of its own.
        MissingExtraError
            If matplotlib is not installed.
        """
        if any(result.by for result in self.values()):
            raise InvalidValueError("columns in groups are drawn each: [column].plot()")
        return panels({name: partial(one.plot, level=level) for name, one in self.items()})

    def explain(self) -> str:
        """Say in a few lines what was done, what epsilon means, and what each column needs to say.

        Returns
        -------
        str
            One sentence a line.
        """
        each = [f"{name!r}: {note}" for name, one in self.items() for note in one.notes]
        return "\n".join([*self.statement, *self.notes, *each])

    def __repr__(self) -> str:
        """Show what was done."""
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
    """Put the results of columns together, and what is said of all; one column is a result.

    What is said of rows ``without`` an answer comes first.
    """
    [first, *_] = results.values()
    if len(results) > 1:
        return SurveyResults(results, (*without, *statement), epsilon, notes, first.left_out)
    statement, notes = (*without, *first.statement), (*notes, *first.notes)
    return replace(first, statement=statement, notes=notes)


class ShareGroups(EstimatesOfGroups[FrequencyEstimate]):
    """The shares of the answers in groups that were counted each by itself.

    Parameters
    ----------
    names
        The columns of the groups.
    estimates
        The estimate of each.
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
        """Cut the intervals of all groups to [0, 1]."""
        return ShareGroups(self.names, {key: each.clip_intervals() for key, each in self.items()})

    def plot(
        self, *, level: float = 0.95, simultaneous: str | None = None, over: str = "all"
    ) -> Figure:
        """Draw a panel for each group, or for each of the largest of more than a dozen.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`turnout.frequency.groups.GroupedEstimate.interval`.

        Returns
        -------
        matplotlib.figure.Figure
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or none of the allowed values.
        """
        each = each_level(level, simultaneous, over, len(self._unknown), len(self))
        keys = list(self)
        drawn = largest([one.nodes for one in self.values()], _PANELS)
        return panels(
            {shown_key(keys[place]): partial(self[keys[place]].plot, level=each) for place in drawn}
        )
