"""The description of means and distributions of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from turnout.collecting.estimate import COUNTED, counts_of
from turnout.collecting.groups.series import Series
from turnout.collecting.plan import Plan
from turnout.distribution.law import METHODS as DISTRIBUTION_METHODS
from turnout.mean.estimators import ESTIMATORS
from turnout.reporting.telling import Telling, View, by_group, groups_of, json_group
from turnout.reporting.words import METHODS, decimals, limits, percent, rounded, span

_FIELDS = ("mean", "standard_error", "low", "high")


class Means(Telling):
    """The description of means: see :class:`turnout.reporting.telling.Telling`."""

    what: ClassVar[str] = "The mean"
    noise: ClassVar[str] = "The noise of the reports is taken out of the mean"
    of_a_group: ClassVar[str] = "Means are over"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "all coordinates of a group at once",
        "groups": "all groups of a coordinate at once",
        "all": "all means of all groups at once",
    }
    counted: ClassVar[str] = "a tally of numbers"
    refused: ClassVar[Mapping[str, str]] = {
        "--project": "a mean is not a share of a whole",
        "--shrink": "a mean is not a share among others",
        "--across": "a mean is not a share among others",
        "--clip": "a mean is not a share between 0 and 1",
        "--sort": "a mean has no labels",
        "--top": "a mean has no labels",
    }
    methods: ClassVar[Collection[str]] = ESTIMATORS

    def asked(self, domain: Any) -> tuple[str, str]:
        """State which numbers are possible."""
        return "numbers", span(domain)

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name the coordinate, if there are several, and the numbers."""
        coordinate = ["coordinate"] if domain.dimensions > 1 else []
        numbers = ["mean", "std. error", f"{percent(level)} interval"]
        return [*coordinate, *numbers], len(coordinate)

    def cells(self, record: Mapping[str, Any], digits: int | None) -> list[str]:
        """Write a mean."""
        return [
            *([str(record["coordinate"])] if "coordinate" in record else []),
            rounded(record["mean"], digits),
            rounded(record["standard_error"], digits),
            limits(record["low"], record["high"], digits),
        ]

    found: ClassVar[str] = "Estimated mean"

    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write a mean and its limits."""
        name = f"coordinate {record['coordinate']}" if "coordinate" in record else ""
        low, high = record["low"], record["high"]
        return name, rounded(record["mean"], digits), limits(low, high, digits)

    def digits(self, domain: Any, records: Sequence[Mapping[str, Any]]) -> int | None:
        """Show every standard error with two digits."""
        return decimals(record["standard_error"] for record in records)

    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State which coordinates the simultaneous intervals cover, if there are several."""
        if domain.dimensions == 1:
            return ""
        together = f"all {domain.dimensions:,} coordinates at once"
        return "each coordinate by itself" if simultaneous is None else together

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the coordinates, without the number of the only one."""
        records: list[dict[str, Any]] = estimate.to_records(**view.scope_of(estimate))
        if self.domain_of(estimate).dimensions == 1:
            for record in records:
                del record["coordinate"]
        return records

    def caption(self, domain: Any, view: View, people: str) -> str:
        """State whose mean it is."""
        if domain.dimensions > 1:
            return f"The means of {domain.dimensions:,} coordinates over {people}"
        return f"The mean over {people}"

    def group_caption(self, domain: Any, view: View) -> str:
        """State which intervals means have."""
        return f"Means with {percent(view.level)} intervals"

    def lead(
        self, records: Sequence[Mapping[str, Any]], digits: Any, view: View, people: str
    ) -> str:
        """Say the mean, if it is one."""
        if len(records) > 1:
            return ""
        record, known = records[0], "; its error is not known."
        if record["low"] is not None:
            low, high = rounded(record["low"], digits), rounded(record["high"], digits)
            known = f": between {low} and {high}, with {percent(view.level)} confidence."
        return f"The mean over {people} is estimated as {rounded(record['mean'], digits)}{known}"

    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals cover."""
        scope = self.scope(estimate.domain, view.simultaneous)
        together = f" ({METHODS[view.simultaneous]})" if view.simultaneous else ""
        for_all = f", for {scope}{together}" if scope else ""
        return (
            f"{self.noise}, so it can come out beyond the bounds if few people reported. "
            f"Of intervals made like these, {percent(view.level)} hold the true mean{for_all} "
            f"(method: {self.interval_method(estimate, view)})."
        )

    def entries(self, domain: Any) -> int:
        """State how many coordinates there are."""
        size: int = domain.dimensions
        return size

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return the mean, or lists of those of several coordinates; of groups those of each."""
        records = self.records(estimate, view)
        if not groups_of(estimate):
            return _together(records)
        size = estimate.domain.dimensions
        return {
            "estimates": [
                {
                    "group": json_group(first["group"]),
                    "nodes": first["nodes"],
                    "received": first["received"],
                    **_together(records[start : start + size]),
                    "reason": first["reason"],
                }
                for start, first in list(enumerate(records))[::size]
            ]
        }

    def draws_groups(self, domain: Any) -> bool:
        """Return whether each person gave one number only."""
        one: bool = domain.dimensions == 1
        return one

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State which numbers are reported."""
        oracle = plan.oracle
        return [
            ("numbers that could be given", span(plan.domain)),
            ("standard error of one report, at most", f"{oracle.worst_variance**0.5:.6g}"),
        ]

    def planned(self, oracle: Any) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        """Describe what one report under a plan reveals: in words, and for programs."""
        error = oracle.worst_variance**0.5
        told = [("one report", f"standard error of at most {error:.4g}")]
        return told, {"report_standard_error": error}


def _together(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one mean, or lists of them of several coordinates."""
    if len(records) == 1:
        return {name: records[0][name] for name in _FIELDS}
    return {name: [record[name] for record in records] for name in _FIELDS}


_QUARTILES = (0.25, 0.5, 0.75)

_NAMES = {0.25: "lower quartile", 0.5: "median", 0.75: "upper quartile"}


class Distributions(Means):
    """The description of distributions: mean and quantiles."""

    what: ClassVar[str] = "The distribution"
    of_a_group: ClassVar[str] = "Distributions are over"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "the median of each group by itself",
        "groups": "all medians of all groups at once",
        "all": "all medians of all groups at once",
    }
    counted: ClassVar[str] = "a distribution"
    refused: ClassVar[Mapping[str, str]] = {
        "--clip": "the intervals of its bins are as they were made; those shown are of numbers",
        "--project": "the shares of its bins are not negative and add up to 1",
        "--shrink": "the shares of its bins are made of those of their neighbours",
        "--sort": "bins have an order of their own",
        "--top": "bins have an order of their own; --json has them all",
    }
    methods: ClassVar[Collection[str]] = DISTRIBUTION_METHODS

    def asked(self, domain: Any) -> tuple[str, str]:
        """State which numbers are possible, and the number of bins."""
        return "numbers", f"{span(domain)}, in {domain.bins:,} bins"

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name what a number is of; of groups mean, quartiles and the interval of the median."""
        interval = f"{percent(level)} interval"
        if groups:
            return ["mean", "25 %", "median", interval, "75 %"], 0
        return ["", "number", interval], 1

    def cells(self, record: Mapping[str, Any], digits: int | None) -> list[str]:
        """Write a number, or those of a group."""
        if "summary" not in record:
            interval = limits(record["low"], record["high"], digits)
            return [_name(record["probability"]), rounded(record["value"], digits), interval]
        mean, lower, median, upper = record["summary"]
        numbers = [rounded(each["value"], digits) for each in (mean, lower, median, upper)]
        return [*numbers[:3], limits(median["low"], median["high"], digits), numbers[3]]

    found: ClassVar[str] = "Estimated distribution"

    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write a number and its limits; of a group the median."""
        each = record["summary"][2] if "summary" in record else record
        name = _name(0.5 if "summary" in record else each["probability"])
        return name, rounded(each["value"], digits), limits(each["low"], each["high"], digits)

    def digits(self, domain: Any, records: Sequence[Mapping[str, Any]]) -> int | None:
        """Tell neighbouring bins apart."""
        return decimals([domain.width])

    def interval_words(self, method: str, domain: Any, simultaneous: str | None) -> str:
        """State that the mean and each quantile have separate intervals."""
        return "for each number by itself; --json has those of all bins"

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the mean and the quantiles, or the mean and the quartiles of each group."""
        if not groups_of(estimate):
            rows: list[dict[str, Any]] = estimate.summary(view.level)
            return rows
        found = by_group(estimate)
        each = found._each_median(view.level, view.simultaneous, view.over)
        return [
            {
                "group": dict(zip(found.names, key, strict=True)),
                **counts_of(found.tally[key]),
                "reason": found.reasons.get(key),
                "summary": [] if key in found.reasons else found[key].summary(each, _QUARTILES),
            }
            for key in _keys(estimate)
        ]

    def caption(self, domain: Any, view: View, people: str) -> str:
        """State whose distribution it is."""
        return f"The distribution over {people}"

    def group_caption(self, domain: Any, view: View) -> str:
        """State which intervals are shown."""
        return f"Means and quartiles, with {percent(view.level)} intervals of medians"

    def lead(
        self, records: Sequence[Mapping[str, Any]], digits: Any, view: View, people: str
    ) -> str:
        """Say the median."""
        (median,) = (row for row in records if row["probability"] == 0.5)
        value, low, high = (rounded(median[name], digits) for name in ("value", "low", "high"))
        return (
            f"Half of {people} are estimated to have a number up to {value}: between {low} and "
            f"{high}, with {percent(view.level)} confidence."
        )

    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals cover."""
        return (
            "The noise of the reports is taken out of the distribution; the shares of neighbouring "
            f"bins are smoothed if reports do not tell them apart. Of intervals made like "
            f"these, {percent(view.level)} hold the true number, each by itself. The limits of "
            "quantiles are edges of bins."
        )

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return the mean, the quantiles and the bins; of groups the quartiles."""
        records = self.records(estimate, view)
        if not groups_of(estimate):
            return {**_summary(records), "estimates": estimate.to_records(**view.scope)}
        estimates = []
        for key, record in zip(estimate, records, strict=True):
            shares = [] if record["reason"] else estimate[key].frequencies.tolist()
            head = {name: record[name] for name in (*COUNTED, "reason")}
            numbers = {**_summary(record["summary"]), "frequencies": shares}
            estimates.append({"group": json_group(record["group"]), **head, **numbers})
        return {"edges": estimate.domain.edges.tolist(), "estimates": estimates}

    def draw(self, estimate: Any, view: View) -> Any:
        """Draw the shares of the bins, and the interval of one quantile."""
        return estimate.plot(level=view.level).figure

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State which numbers are reported, and as what."""
        oracle = plan.oracle
        return [
            ("numbers that could be given", f"{span(plan.domain)}, in {oracle.bins:,} bins"),
            ("a report", _report(oracle)),
        ]

    def planned(self, oracle: Any) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        """Describe the bins and one report under a plan: in words, and for programs."""
        told = [("bins", f"{oracle.bins:,}"), ("one report", _report(oracle))]
        return told, {"bins": oracle.bins, "window": oracle.window}


def _report(oracle: Any) -> str:
    return f"one of {oracle.cells:,} cells, {oracle.window:,} of them around the own bin"


def _name(probability: float | None) -> str:
    """Name a number of the summary of a distribution.

    Examples
    --------
    >>> _name(None), _name(0.5), _name(0.05)
    ('mean', 'median', 'quantile of 5 %')
    """
    if probability is None:
        return "mean"
    return _NAMES.get(probability, f"quantile of {percent(probability)}")


def _keys(estimate: Any) -> Iterator[Any]:
    """List the keys of groups, of a series in its order."""
    if not isinstance(estimate, Series):
        return iter(estimate)
    records = estimate.to_records()
    return iter(dict.fromkeys(tuple(record["group"].values()) for record in records))


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean and the quantiles as JSON-compatible values."""
    mean = [{name: row[name] for name in ("value", "low", "high")} for row in rows[:1]]
    quantiles = [
        {name: row[name] for name in ("probability", "value", "low", "high")} for row in rows[1:]
    ]
    return {"mean": mean[0] if mean else None, "quantiles": quantiles}
