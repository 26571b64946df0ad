"""The content of a page: of a tally, of a round of parties that add up, or of a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from turnout import _arguments
from turnout.collecting.estimate import BaseEstimate
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.tally import BaseTally
from turnout.distributed.parameters import Parameters
from turnout.distributed.results import BaseResult, CostLedger
from turnout.errors import InvalidValueError
from turnout.mean.estimate import MeanEstimate
from turnout.reporting.aggregates import OfRounds, telling_sums
from turnout.reporting.collected import Collected, OfReports, OfSeveral
from turnout.reporting.contents import Contents, Part
from turnout.reporting.numbers import Numbers
from turnout.reporting.spending import Ledger
from turnout.reporting.telling import View
from turnout.surveying.numbers import NumberEstimate, NumberGroups
from turnout.surveying.results import SurveyResult, SurveyResults

#: What options are of that say nothing about counts without reports, and about numbers.
_OF_TALLIES = {
    "given": "questions that were asked together, with local reports",
    "marginal": "questions that were asked together, with local reports",
    "consistent": "tables of two questions",
    "time": "tallies by group",
}
_OF_SHARES = {**_OF_TALLIES, "simultaneous": "shares and means alone", "clip": "shares"}


@dataclass(frozen=True)
class Document:
    """The content of a page.

    Attributes
    ----------
    title
        The heading where none is given.
    contents
        The estimates: of one collection, or of each column of a survey.
    collected
        What was collected, of all of them.
    notes
        What a reader should know besides.
    ledger
        What a person spends who reports again and again, where that is known.
    """

    title: str
    contents: Sequence[Contents]
    collected: Collected
    notes: Sequence[str] = ()
    ledger: Ledger | None = None

    @classmethod
    def of(cls, collection: Any, view: View) -> Document:
        """Estimate the content of the page of a collection.

        Raises
        ------
        InvalidTypeError
            If it is not one.
        InvalidValueError
            If an argument is none of the allowed values, or says nothing about it.
        EstimatorError
            If the method does not apply to the participation.
        """
        if isinstance(collection, SurveyResults):
            each = {name: _of_survey(one, _fitting(one, view)) for name, one in collection.items()}
            contents = [replace(one, heading=name) for name, one in each.items()]
            of_each = {name: one.collected for name, one in each.items()}
            notes = [f"{name}: {note}" for name, one in collection.items() for note in one.notes]
            collected = OfSeveral(
                of_each, collection.statement, collection.epsilon, collection.left_out
            )
            title = f"A survey of {', '.join(collection)}"
            return cls(title, contents, collected, (*collection.notes, *notes))
        if isinstance(collection, SurveyResult):
            found = _of_survey(collection, view)
            title = f"A survey of {collection.column}"
            return cls(title, [found], found.collected, collection.notes)
        estimate, costs = collection, list[CostLedger]()
        if isinstance(collection, BaseResult):
            estimate, costs = collection.estimate, [collection.costs]
        if _is_of_a_round(estimate):
            title = "Counts of a round"
            if isinstance(estimate, MeanEstimate):
                title = "The mean of a round"
            found = _of_rounds(estimate, view, costs=costs)
            return cls(title, [found], found.collected)
        _arguments.instance(
            "tally",
            collection,
            (BaseTally, GroupedTally),
            "a tally, a GroupedTally, the result of a survey or of a round",
        )
        found = Contents.of(collection, view)
        return cls("Report of a collection", [found], found.collected)

    @classmethod
    def of_times(cls, tally: Any, view: View, times: Sequence[int]) -> Document:
        """Estimate the content of the page of a tally that was added up.

        Parameters
        ----------
        tally, view
            As for :meth:`of`.
        times
            How many people were asked at each time, who may be the same.
        """
        found = Contents.of(tally, view)
        if isinstance(found.collected, OfReports):
            found = replace(found, collected=replace(found.collected, times=times))
        return cls("Report of a collection", [found], found.collected)


def _of_survey(result: SurveyResult, view: View) -> Contents:
    """Show a column of a survey, with its estimates."""
    estimate = result.estimate
    if result.mechanism is not None:
        rounds = result.tally.values() if result.by else [result.tally]
        return _of_rounds(estimate, view, result, costs=[one.costs for one in rounds])
    if isinstance(estimate, (NumberEstimate, NumberGroups)):
        return _of_numbers(result, view)
    clip = view.clip or _clipped(estimate)
    method = view.method or estimate.method
    return Contents.of(result.tally, replace(view, method=method, clip=clip))


def _fitting(result: SurveyResult, view: View) -> View:
    """Leave out what says nothing about a column, and something about others beside it."""
    estimate = result.estimate
    if isinstance(estimate, (NumberEstimate, NumberGroups)):
        view = replace(view, simultaneous=None)
    return view if hasattr(estimate, "clip_intervals") else replace(view, clip=False)


def _of_numbers(result: SurveyResult, view: View) -> Contents:
    """Show the mean and quantiles of all people or of groups."""
    _refuse(view, _OF_SHARES, f"numbers, which {result.column!r} has")
    estimate, kind = result.estimate, Numbers()
    grouped = result.tally if isinstance(result.tally, GroupedTally) else None
    whole: BaseTally = result.tally if grouped is None else grouped.total
    collected = OfReports(whole, grouped, None, kind, estimate, "hajek")
    return Contents(view, collected, [_part(estimate, kind, result.by)])


def _is_of_a_round(estimate: Any) -> bool:
    """Return whether a server computed the estimate from the sums of a round."""
    return isinstance(estimate, BaseEstimate) and isinstance(estimate.plan, Parameters)


def _of_rounds(
    estimate: Any,
    view: View,
    result: SurveyResult | None = None,
    *,
    costs: Sequence[CostLedger] = (),
) -> Contents:
    """Show the results of one round, or of one for each group."""
    if view.method is not None:
        raise InvalidValueError(f"method applies to local reports, got {view.method!r} for a round")
    _refuse(view, _OF_TALLIES, "sums that parties added up")
    by = () if result is None else result.by
    left_out = estimate.left_out if result is None else result.left_out
    view = replace(view, method="hajek", clip=view.clip or _clipped(estimate))
    kind = telling_sums(estimate.domain)
    part = _part(view.cut(estimate), kind, by)
    each = estimate if by else {(): estimate}
    return Contents(view, OfRounds(each, costs, by, left_out), [part])


def _part(estimate: Any, kind: Any, by: Sequence[str]) -> Part:
    if not by:
        words = "with its interval; the numbers are in the table"
        return Part("estimate", "Estimates", kind, estimate, words)
    names = ", ".join(by)
    words = f"by {names}, with intervals; the numbers are in the table"
    return Part("groups", f"By {names}", kind, estimate, words)


def _clipped(estimate: Any) -> bool:
    """Return whether the intervals of an estimate are already cut to [0, 1]."""
    each = list(estimate.values()) if isinstance(estimate, Mapping) else [estimate]
    return any(getattr(one, "clipped", False) for one in (estimate, *each))


def _refuse(view: View, options: Mapping[str, str], what: str) -> None:
    """Refuse options that do not apply to the content."""
    for name, of in options.items():
        if getattr(view, name):
            raise InvalidValueError(f"{name} is of {of}, and these are {what}")
