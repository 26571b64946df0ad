"""What a number is on average, as a report tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from turnout.collecting.plan import Plan
from turnout.reporting.contents import Contents
from turnout.reporting.numbers import decimals, limits, rounded, span
from turnout.reporting.wording import Content, group_key
from turnout.reporting.words import METHODS, number, percent


class MeanWording:
    """Tells means: see :class:`turnout.reporting.wording.Wording`."""

    what: ClassVar[str] = "The mean"
    of_a_group: ClassVar[str] = "Means are over"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "all coordinates of a group at once",
        "groups": "all groups of a coordinate at once",
        "all": "all means of all groups at once",
    }

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say which numbers could be given."""
        bounds = plan.domain
        size = bounds.dimensions
        words = "bounds of the number that was asked for"
        if size > 1:
            words = f"bounds of the {size:,} numbers that were asked for"
        return f"{number(bounds.low)} to {number(bounds.high)}", words

    def estimate(self, contents: Contents) -> Content:
        """Tell the mean with its interval, or those of several coordinates."""
        level = contents.level
        records = contents.estimate.to_records(level, simultaneous=contents.simultaneous)
        digits = decimals(record["standard_error"] for record in records)
        size = len(records)
        people = "all questions to people" if len(contents.asked) > 1 else "all people asked"
        rows = [
            (
                f"coordinate {record['coordinate']}" if size > 1 else people,
                rounded(record["mean"], digits),
                rounded(record["standard_error"], digits),
                limits(record["low"], record["high"], digits),
            )
            for record in records
        ]
        head = ("mean of", "mean", "standard error", f"{percent(level)} interval")
        caption = f"The mean over {people}"
        if size > 1:
            caption = f"The means of {size:,} coordinates over {people}"
        lead = [_sentence(records[0], digits, level, people)] if size == 1 else []
        words = _interval_words(contents, size)
        return Content(caption, head, rows, of=size, lead=lead, words=words)

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the mean in each group."""
        names = list(records[0]["group"])
        digits = decimals(record["standard_error"] for record in records)
        several = contents.plan.domain.dimensions > 1
        rows = [
            (
                *group_key(record),
                *([str(record["coordinate"])] if several else []),
                f"{record['received']:,}",
                record["reason"] or rounded(record["mean"], digits),
                "–" if record["reason"] else rounded(record["standard_error"], digits),
                "–" if record["reason"] else limits(record["low"], record["high"], digits),
            )
            for record in records
        ]
        coordinate = ["coordinate"] if several else []
        interval = f"{percent(contents.level)} interval"
        head = (*names, *coordinate, "reports", "mean", "standard error", interval)
        caption = f"Means with {percent(contents.level)} intervals"
        return Content(caption, head, rows, names=len(names) + several)

    def draws_groups(self, plan: Plan) -> bool:
        """Tell whether each person gave one number only."""
        one: bool = plan.domain.dimensions == 1
        return one

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw the mean, or one below the other."""
        return estimate.plot(level=level, simultaneous=simultaneous).figure

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say which numbers are reported."""
        oracle = plan.oracle
        return [
            ("numbers that could be given", span(plan.domain)),
            ("standard error of one report, at most", f"{oracle.worst_variance**0.5:.6g}"),
        ]

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Bounds stand on the page as they are."""
        return []


def _sentence(record: dict[str, Any], digits: int | None, level: float, people: str) -> str:
    mean = rounded(record["mean"], digits)
    if record["low"] is None:
        return f"The mean over {people} is estimated as {mean}; how far it may be off is not known."
    low, high = rounded(record["low"], digits), rounded(record["high"], digits)
    return (
        f"The mean over {people} is estimated as {mean}: between {low} and {high}, with "
        f"{percent(level)} confidence."
    )


def _interval_words(contents: Contents, size: int) -> str:
    interval = contents.estimate.interval(contents.level, simultaneous=contents.simultaneous)
    scope = ""
    if size > 1:
        scope = ", for each coordinate by itself"
        if contents.simultaneous is not None:
            scope = f", for all coordinates at once ({METHODS[contents.simultaneous]})"
    return (
        "The noise of the reports is taken out of the mean, so that it can come out beyond the "
        f"bounds where few reported. Of intervals made like these, {percent(contents.level)} hold "
        f"the true mean{scope} (method: {interval.method})."
    )
