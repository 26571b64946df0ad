"""What a number is on average, and how it is distributed, as a report tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from turnout.collecting.plan import Plan
from turnout.reporting.contents import Content, Contents, Wording, group_key
from turnout.reporting.words import METHODS, decimals, limits, number, percent, rounded, span


class MeanWording(Wording):
    """Tells means: see :class:`turnout.reporting.contents.Wording`."""

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

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say which numbers are reported."""
        oracle = plan.oracle
        return [
            ("numbers that could be given", span(plan.domain)),
            ("standard error of one report, at most", f"{oracle.worst_variance**0.5:.6g}"),
        ]


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


_QUARTILES = (0.25, 0.5, 0.75)

_NAMES = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}


def named(row: Mapping[str, Any]) -> str:
    """Name a row of the summary of a distribution.

    Examples
    --------
    >>> named({"probability": None}), named({"probability": 0.5}), named({"probability": 0.05})
    ('mean', 'median', 'quantile of 5 %')
    """
    share = row["probability"]
    if share is None:
        return "mean"
    return _NAMES.get(share, f"quantile of {percent(share)}")


def digits_of(width: float) -> int | None:
    """Decimals that tell neighbouring bins apart.

    Examples
    --------
    >>> digits_of(1.5625), digits_of(0.01)
    (1, 3)
    """
    return decimals([width])


class DistributionWording(MeanWording):
    """Tells distributions: see :class:`turnout.reporting.contents.Wording`."""

    what: ClassVar[str] = "The distribution"
    of_a_group: ClassVar[str] = "Distributions are over"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "the median of each group by itself",
        "groups": "the medians of all groups at once",
        "all": "the medians of all groups at once",
    }

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say which numbers could be given."""
        bounds = plan.domain
        words = f"bounds of the number that was asked for, in {bounds.bins:,} bins"
        return f"{number(bounds.low)} to {number(bounds.high)}", words

    def estimate(self, contents: Contents) -> Content:
        """Tell the mean and quantiles with their intervals."""
        level = contents.level
        digits = digits_of(contents.plan.domain.width)
        people = "all questions to people" if len(contents.asked) > 1 else "all people asked"
        records = contents.estimate.summary(level)
        rows = [
            (named(row), rounded(row["value"], digits), limits(row["low"], row["high"], digits))
            for row in records
        ]
        (median,) = (row for row in records if row["probability"] == 0.5)
        low, high = rounded(median["low"], digits), rounded(median["high"], digits)
        lead = (
            f"Half of {people} are estimated to have a number up to "
            f"{rounded(median['value'], digits)}: between {low} and {high}, with "
            f"{percent(level)} confidence."
        )
        words = (
            "The noise of the reports is taken out of the distribution; the shares of neighbouring "
            f"bins are made alike where reports do not tell them apart. Of intervals made like "
            f"these, {percent(level)} hold the true number, each by itself. The limits of "
            "quantiles are edges of bins."
        )
        head = ("of the distribution", "number", f"{percent(level)} interval")
        return Content(f"The distribution over {people}", head, rows, lead=[lead], words=words)

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the mean and the quartiles of each group."""
        names = list(records[0]["group"])
        digits = digits_of(contents.plan.domain.width)
        estimate = _estimate_by(contents, names)
        each = estimate.each_median(contents.level, contents.simultaneous, contents.over)
        rows: list[tuple[str, ...]] = []
        before: dict[str, Any] | None = None
        for record in records:
            if before is not None and record["group"] == before["group"]:
                continue
            before = record
            head = (*group_key(record), f"{record['received']:,}")
            if record["reason"]:
                rows.append((*head, record["reason"], "–", "–", "–", "–"))
                continue
            key = tuple(record["group"][name] for name in estimate.names)
            mean, lower, median, upper = estimate[key].summary(each, _QUARTILES)
            numbers = [rounded(row["value"], digits) for row in (mean, lower, median, upper)]
            interval = limits(median["low"], median["high"], digits)
            rows.append((*head, *numbers[:3], interval, numbers[3]))
        interval = f"{percent(contents.level)} interval"
        head = (*names, "reports", "mean", "lower quartile", "median", interval, "upper quartile")
        caption = f"Means and quartiles, with {percent(contents.level)} intervals of medians"
        return Content(caption, head, rows, names=len(names))

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw the shares of the bins."""
        return estimate.plot(level=level).figure

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say which numbers are reported, and as what."""
        oracle = plan.oracle
        cells = f"one of {oracle.cells:,} cells, {oracle.window:,} of them around the own bin"
        return [
            ("numbers that could be given", f"{span(plan.domain)}, in {oracle.bins:,} bins"),
            ("a report", cells),
        ]


def _estimate_by(contents: Contents, names: Sequence[str]) -> Any:
    """Find the estimate by some columns."""
    found = [contents.groups]
    found += [
        series.estimate for series in (contents.series, contents.several) if series is not None
    ]
    return next(each for each in found if each is not None and set(each.names) == set(names))
