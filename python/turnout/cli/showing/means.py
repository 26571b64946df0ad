"""What a number is on average, and how it is distributed: means, quantiles and shares of bins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from rich.table import Table

from turnout import GroupedTally
from turnout.cli.showing.shown import (
    Showing,
    Shown,
    Wish,
    group_interval,
    group_rows,
    group_table,
    interval_of_groups,
    json_group,
    method_word,
    plain,
    rows_of,
)
from turnout.cli.tables import percent, table
from turnout.distribution.law import METHODS
from turnout.errors import InvalidValueError
from turnout.mean.estimators import ESTIMATORS
from turnout.reporting.means import digits_of, named
from turnout.reporting.words import decimals, limits, rounded, span

_FIELDS = ("mean", "standard_error", "low", "high")

#: Options that say nothing about a mean, and why.
_REFUSED = {
    "--project": "a mean is no share that others add up with to 1",
    "--shrink": "a mean is no share that has others beside it",
    "--across": "a mean is no share that has others beside it",
    "--clip": "a mean is no share between 0 and 1",
    "--sort": "a mean has no labels",
    "--top": "a mean has no labels",
}

_TOGETHER = {
    "labels": "coordinates of a group",
    "groups": "groups of a coordinate",
    "all": "means of all groups",
}


class Means(Showing):
    """Shows means: see :class:`turnout.cli.showing.shown.Showing`."""

    #: What was counted, options that say nothing about it and why, and the estimators it has.
    counted: ClassVar[str] = "a tally of numbers"
    refused: ClassVar[Mapping[str, str]] = _REFUSED
    methods: ClassVar[Collection[str]] = ESTIMATORS

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say which numbers can be given."""
        return "numbers", span(domain)

    def check(self, wish: Wish) -> None:
        """Refuse the options that are about labels, and an estimator of shares."""
        for option, reason in self.refused.items():
            if option in wish.given:
                raise InvalidValueError(f"{option} does not apply to {self.counted}: {reason}")
        if wish.method not in self.methods:
            raise InvalidValueError(
                f"--method must be {' or '.join(self.methods)} for {self.counted}, got "
                f"{method_word(wish.method)}"
            )

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the mean, or those of several coordinates."""
        result = tally.estimate(wish.method)
        level, simultaneous = wish.level, wish.simultaneous
        method = result.interval(level, simultaneous=simultaneous).method
        records = result.to_records(level, simultaneous=simultaneous)
        scope = ""
        if len(records) > 1:
            together = f"all {len(records)} coordinates at once ({simultaneous})"
            scope = f", for {'each coordinate by itself' if simultaneous is None else together}"
        return Shown.of(
            result,
            wish,
            interval={"level": level, "simultaneous": simultaneous, "method": method},
            rows=[
                *rows_of(result, result.method),
                self.asked(result.domain),
                ("interval", f"{percent(level)}, {method}{scope}"),
            ],
            below=[_plain_table(records, level)],
            values=lambda: _values(records),
        )

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate the mean in each group."""
        result = grouped.estimate(wish.method)
        interval, _ = group_interval(result, wish)
        records = result.to_records(**wish.scope)
        size = grouped.domain.dimensions
        estimates = [
            {
                "group": json_group(records[start]["group"]),
                "nodes": records[start]["nodes"],
                "received": records[start]["received"],
                **_values(records[start : start + size]),
                "reason": records[start]["reason"],
            }
            for start in range(0, len(records), size)
        ]
        rows = group_rows(grouped, wish, _TOGETHER[wish.over])
        return Shown.of(
            result,
            wish,
            grouped,
            interval=interval,
            rows=[*rows[:-1], self.asked(grouped.domain), rows[-1]],
            below=[_table(grouped.names, records, size, wish.level)],
            values=lambda: {"estimates": estimates},
        )


def _values(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the numbers of one mean, or lists of them of several coordinates."""
    if len(records) == 1:
        return {name: plain(records[0][name]) for name in _FIELDS}
    return {name: [plain(record[name]) for record in records] for name in _FIELDS}


def _plain_table(records: list[dict[str, Any]], level: float) -> Table:
    """Draw a row for each coordinate."""
    size = len(records)
    digits = decimals(record["standard_error"] for record in records)
    cells = [_cells(record, size, digits) for record in records]
    return table(_head(size, level), cells, right=range(4))


def _head(size: int, level: float) -> list[str]:
    coordinate = ["coordinate"] if size > 1 else []
    return [*coordinate, "mean", "std. error", f"{percent(level)} interval"]


def _cells(record: dict[str, Any], size: int, digits: int | None) -> list[str]:
    return [
        *([str(record["coordinate"])] if size > 1 else []),
        rounded(record["mean"], digits),
        rounded(record["standard_error"], digits),
        limits(record["low"], record["high"], digits),
    ]


def _table(names: tuple[str, ...], records: list[dict[str, Any]], size: int, level: float) -> Table:
    digits = decimals(record["standard_error"] for record in records)
    return group_table(
        names,
        records,
        _head(size, level),
        lambda record: _cells(record, size, digits),
        words=0,
        apart=size > 1,
    )


#: Options that say nothing about a distribution, and why.
_REFUSED_OF_BINS = {
    "--clip": "the intervals of its bins are as they were made; those shown are of numbers",
    "--project": "the shares of its bins are not negative and add up to 1",
    "--shrink": "the shares of its bins are made of those of their neighbours",
    "--sort": "bins have an order of their own",
    "--top": "bins have an order of their own; --json has them all",
}

_MEDIANS_TOGETHER = {
    "labels": "bins of a group",
    "groups": "medians of all groups",
    "all": "medians of all groups",
}

#: The quantiles of a group.
_QUARTILES = (0.25, 0.5, 0.75)


class Distributions(Means):
    """Shows distributions: see :class:`turnout.cli.showing.shown.Showing`."""

    counted = "a distribution"
    refused = _REFUSED_OF_BINS
    methods = METHODS

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say which numbers can be given, and how many bins they are in."""
        return "numbers", f"{span(domain)}, in {domain.bins:,} bins"

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the mean, quantiles, and the share of each bin."""
        result = tally.estimate(wish.method)
        level, simultaneous = wish.level, wish.simultaneous
        rows = result.summary(level)
        interval = result.interval(level, simultaneous=simultaneous)
        shown = Shown.of(
            result,
            wish,
            interval={"level": level, "simultaneous": simultaneous, "method": interval.method},
            rows=[
                *rows_of(result, result.method),
                self.asked(result.domain),
                ("interval", f"{percent(level)}, each by itself; --json has those of all bins"),
            ],
            below=[_summary_table(rows, result.domain.width, level)],
            values=lambda: {
                **_numbers(rows),
                "estimates": result.to_records(level, simultaneous=simultaneous),
            },
            converged=result.converged,
        )
        # A picture has the interval of one quantile.
        return replace(shown, draw=lambda: result.plot(level=level))

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate the distribution in each group."""
        result = grouped.estimate(wish.method)
        each = result.each_median(wish.level, wish.simultaneous, wish.over)
        records: list[dict[str, Any]] = []
        estimates: list[dict[str, Any]] = []
        for key, tally in grouped.items():
            reason = result.reasons.get(key)
            head = {
                "group": dict(zip(grouped.names, key, strict=True)),
                "nodes": tally.nodes,
                "received": tally.received,
                "reason": reason,
            }
            summary = [] if reason else result[key].summary(each, _QUARTILES)
            records.append({**head, "rows": summary})
            shares = [] if reason else [plain(share) for share in result[key].frequencies.tolist()]
            numbers = {**_numbers(summary), "frequencies": shares}
            estimates.append({**head, "group": json_group(head["group"]), **numbers})
        width = grouped.domain.width
        rows = group_rows(grouped, wish, _MEDIANS_TOGETHER[wish.over])
        return Shown.of(
            result,
            wish,
            grouped,
            interval=interval_of_groups(wish),
            rows=[*rows[:-1], self.asked(grouped.domain), rows[-1]],
            below=[_quartiles_table(grouped.names, records, width, wish.level)],
            values=lambda: {"edges": result.domain.edges.tolist(), "estimates": estimates},
        )


def _numbers(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the mean and the quantiles in terms of JSON."""
    mean = [{name: row[name] for name in ("value", "low", "high")} for row in rows[:1]]
    quantiles = [
        {name: row[name] for name in ("probability", "value", "low", "high")} for row in rows[1:]
    ]
    return {"mean": mean[0] if mean else None, "quantiles": quantiles}


def _summary_table(rows: list[dict[str, Any]], width: float, level: float) -> Table:
    """Draw a row for the mean and for each quantile."""
    digits = digits_of(width)
    cells = [
        (named(row), rounded(row["value"], digits), limits(row["low"], row["high"], digits))
        for row in rows
    ]
    return table(("", "number", f"{percent(level)} interval"), cells, right=(1, 2))


def _quartiles_table(
    names: tuple[str, ...], records: list[dict[str, Any]], width: float, level: float
) -> Table:
    digits = digits_of(width)

    def cells(record: dict[str, Any]) -> list[str]:
        mean, lower, median, upper = record["rows"]
        return [
            rounded(mean["value"], digits),
            rounded(lower["value"], digits),
            rounded(median["value"], digits),
            limits(median["low"], median["high"], digits),
            rounded(upper["value"], digits),
        ]

    head = ["mean", "25 %", "median", f"{percent(level)} interval", "75 %"]
    return group_table(names, records, head, cells, words=0, apart=False)
