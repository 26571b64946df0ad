"""What a number is on average: means with intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from rich.table import Table

from turnout import GroupedTally
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    group_interval,
    group_rows,
    group_table,
    json_group,
    method_word,
    plain,
    rows_of,
)
from turnout.cli.tables import percent, table
from turnout.errors import InvalidValueError
from turnout.mean.estimators import ESTIMATORS
from turnout.reporting.numbers import decimals, limits, rounded, span

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


class Means:
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
