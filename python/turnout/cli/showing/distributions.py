"""How a number is distributed: the mean and quantiles with intervals, and the shares of bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.table import Table

from turnout import GroupedTally
from turnout.cli.showing.means import Means
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    group_rows,
    group_table,
    interval_of_groups,
    json_group,
    plain,
    rows_of,
)
from turnout.cli.tables import percent, table
from turnout.distribution.law import METHODS
from turnout.reporting.distributions import digits_of, named
from turnout.reporting.numbers import limits, rounded, span

#: Options that say nothing about a distribution, and why.
_REFUSED = {
    "--clip": "the intervals of its bins are as they were made; those shown are of numbers",
    "--project": "the shares of its bins are not negative and add up to 1",
    "--shrink": "the shares of its bins are made of those of their neighbours",
    "--sort": "bins have an order of their own",
    "--top": "bins have an order of their own; --json has them all",
}

_TOGETHER = {
    "labels": "bins of a group",
    "groups": "medians of all groups",
    "all": "medians of all groups",
}

#: The quantiles of a group.
_QUARTILES = (0.25, 0.5, 0.75)


class Distributions(Means):
    """Shows distributions: see :class:`turnout.cli.showing.shown.Showing`."""

    counted = "a distribution"
    refused = _REFUSED
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
            below=[_plain_table(rows, result.domain.width, level)],
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
        rows = group_rows(grouped, wish, _TOGETHER[wish.over])
        return Shown.of(
            result,
            wish,
            grouped,
            interval=interval_of_groups(wish),
            rows=[*rows[:-1], self.asked(grouped.domain), rows[-1]],
            below=[_table(grouped.names, records, width, wish.level)],
            values=lambda: {"edges": result.domain.edges.tolist(), "estimates": estimates},
        )


def _numbers(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Give the mean and the quantiles in terms of JSON."""
    mean = [{name: row[name] for name in ("value", "low", "high")} for row in rows[:1]]
    quantiles = [
        {name: row[name] for name in ("probability", "value", "low", "high")} for row in rows[1:]
    ]
    return {"mean": mean[0] if mean else None, "quantiles": quantiles}


def _plain_table(rows: list[dict[str, Any]], width: float, level: float) -> Table:
    """Draw a row for the mean and for each quantile."""
    digits = digits_of(width)
    cells = [
        (named(row), rounded(row["value"], digits), limits(row["low"], row["high"], digits))
        for row in rows
    ]
    return table(("", "number", f"{percent(level)} interval"), cells, right=(1, 2))


def _table(
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
