"""How a number is distributed, as a report tells it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from turnout.collecting.plan import Plan
from turnout.reporting.contents import Contents
from turnout.reporting.numbers import decimals, limits, rounded, span
from turnout.reporting.wording import Content, group_key
from turnout.reporting.words import number, percent

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


class DistributionWording:
    """Tells distributions: see :class:`turnout.reporting.wording.Wording`."""

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

    def draws_groups(self, plan: Plan) -> bool:
        """There is a picture of groups."""
        return True

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

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Bounds stand on the page as they are."""
        return []


def _estimate_by(contents: Contents, names: Sequence[str]) -> Any:
    """Find the estimate by some columns."""
    found = [contents.groups]
    found += [
        series.estimate for series in (contents.series, contents.several) if series is not None
    ]
    return next(each for each in found if each is not None and set(each.names) == set(names))
