"""The description of the mean and quantiles of a column of numbers in a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from turnout.collecting.plan import Plan
from turnout.reporting.frequencies import OrderedShares
from turnout.reporting.means import Means
from turnout.reporting.telling import View
from turnout.reporting.words import decimals, limits, percent, rounded, span


class Numbers(Means):
    """The description of the surveyed mean and quantiles of numbers; the domain is the estimate."""

    what: ClassVar[str] = "The share of the people up to each number"
    of_a_group: ClassVar[str] = "Means and quantiles are over"
    counted: ClassVar[str] = "a survey of numbers"
    found: ClassVar[str] = "Estimated numbers"

    def domain_of(self, estimate: Any) -> Any:
        """Return the estimate, which knows its bounds and its quantiles."""
        return estimate

    def asked(self, domain: Any) -> tuple[str, str]:
        """State which numbers are possible."""
        return "numbers", span(domain.grid.bounds)

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name what a number is, its standard error and interval."""
        return ["statistic", "value", "std. error", f"{percent(level)} interval"], 1

    def cells(self, record: Mapping[str, Any], digits: int | None) -> list[str]:
        """Write the mean or a quantile; of a quantile no standard error is known."""
        value, error = (
            "" if record[name] is None else rounded(record[name], digits)
            for name in ("value", "standard_error")
        )
        interval = limits(record["low"], record["high"], digits)
        return [record["statistic"], value, error, interval]

    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write the mean or a quantile and its limits."""
        interval = limits(record["low"], record["high"], digits)
        return record["statistic"], rounded(record["value"], digits), interval

    def digits(self, domain: Any, records: Sequence[Mapping[str, Any]]) -> int | None:
        """Show the standard error of every mean with two digits."""
        return decimals(each["standard_error"] for each in records if each["standard_error"])

    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State that each number has a separate interval."""
        return "each number by itself"

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the mean and the quantiles."""
        records: list[dict[str, Any]] = estimate.to_records(view.level)
        return records

    def caption(self, domain: Any, view: View, people: str) -> str:
        """State whose numbers these are."""
        return f"Mean and quantiles over {people}"

    def group_caption(self, domain: Any, view: View) -> str:
        """State what is shown of each group."""
        return "Mean and quantiles of each group"

    def lead(
        self, records: Sequence[Mapping[str, Any]], digits: Any, view: View, people: str
    ) -> str:
        """Say the mean."""
        mean = records[0]
        low, high = rounded(mean["low"], digits), rounded(mean["high"], digits)
        return (
            f"The mean over {people} is estimated as {rounded(mean['value'], digits)}: between "
            f"{low} and {high}, with {percent(view.level)} confidence."
        )

    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals cover."""
        return (
            "The noise of the reports is taken out of the numbers. Of intervals made like these, "
            f"{percent(view.level)} hold the true number, each by itself."
        )

    def entries(self, domain: Any) -> int:
        """State how many numbers there are."""
        return 1 + len(domain.probabilities)

    def draw(self, estimate: Any, view: View) -> Any:
        """Draw the share of the people up to each number."""
        return estimate.plot(level=view.level).figure

    def draw_groups(self, estimate: Any, view: View) -> Any:
        """Draw a line for each group."""
        return self.draw(estimate, view)

    def draws_groups(self, domain: Any) -> bool:
        """Tell that groups are drawn."""
        return True

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State which points are reported, and how."""
        return [
            ("points of the histogram", f"{plan.domain.size:,}"),
            *OrderedShares().making(plan),
        ]
