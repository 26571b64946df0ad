"""``turnout estimate`` of a grouped tally: one table, one JSON object, one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from turnout import GroupedTally
from turnout.cli.tables import digits_for, percent, printable
from turnout.collecting.keys import shown_part, time_column, to_json
from turnout.errors import EstimatorError
from turnout.frequency.groups import GroupedEstimate

__all__ = ["chosen_groups", "draw_groups", "groups_table", "interval_of", "json_records"]


def chosen_groups(grouped: GroupedTally, by: Sequence[str]) -> GroupedTally:
    """Keep the columns that are wanted; all if none is named."""
    return grouped.over(*by) if by else grouped


def json_records(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the records of groups in terms of JSON: what is not known is null."""
    return [
        {
            key: _plain(value)
            if key != "group"
            else {name: _text_of_time(part) for name, part in value.items()}
            for key, value in record.items()
        }
        for record in records
    ]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text_of_time(part: Any) -> Any:
    described = to_json(part)
    return next(iter(described.values())) if isinstance(described, dict) else described


def groups_table(names: Sequence[str], records: Sequence[dict[str, Any]], level: float) -> Table:
    """Draw the estimates of all groups as one table; a group is named in its first row."""
    errors = sorted(
        record["standard_error"] for record in records if math.isfinite(record["standard_error"])
    )
    digits = digits_for(errors[len(errors) // 2]) if errors else 2
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    # Many columns: what can be spared between them goes to the labels.
    table.collapse_padding, table.pad_edge = True, False
    for name in names:
        table.add_column(printable(name), overflow="fold", style="cyan")
    table.add_column("reports", justify="right", no_wrap=True)
    table.add_column("label", overflow="fold")
    for name in ("frequency", "std. error", f"{percent(level)} interval"):
        table.add_column(name, justify="right", no_wrap=True)
    before: dict[str, Any] | None = None
    for record in records:
        group = record["group"]
        new = before is None or list(group.values()) != list(before.values())
        if new and before is not None:
            table.add_section()
        before = group
        head = [printable(shown_part(part)) for part in group.values()]
        head.append(f"{record['received']:,}")
        if record["reason"] is not None:
            if new:
                nothing = [f"({record['reason'].removeprefix('the group has ')})", "", "", ""]
                table.add_row(*map(Text, [*head, *nothing]), style="dim")
            continue
        limits = "none"
        if record["low"] is not None:
            limits = f"{percent(record['low'], digits)} – {percent(record['high'], digits)}"
        cells = [
            printable(str(record["label"])),
            percent(record["frequency"], digits),
            percent(record["standard_error"], digits),
            limits,
        ]
        table.add_row(*map(Text, [*(head if new else [""] * len(head)), *cells]))
    return table


def draw_groups(
    estimate: GroupedEstimate, level: float, simultaneous: str | None, over: str
) -> Any:
    """Draw a series if a column is the time, else groups below each other."""
    time = time_column(estimate.names, estimate)
    drawn: Any = estimate if time is None else estimate.series(time)
    return drawn.plot(level=level, simultaneous=simultaneous, over=over)


def interval_of(
    estimate: GroupedEstimate, level: float, simultaneous: str | None, over: str
) -> tuple[dict[str, Any], str | None]:
    """Say how the intervals were made, or why there are none."""
    described: dict[str, Any] = {"level": level, "simultaneous": simultaneous}
    described["over"] = over if simultaneous else None
    try:
        estimate.interval(level, simultaneous=simultaneous, over=over)
    except EstimatorError as error:
        return described, str(error)
    return described, None
