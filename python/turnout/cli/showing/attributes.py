"""How often each answer to each of several questions is given: one table for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from turnout import GroupedTally
from turnout.cli.showing.frequencies import TOGETHER, projection_rows
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    counts_of,
    cut,
    cut_words,
    group_interval,
    group_rows,
    group_table,
    groups_record,
    json_record,
    rows_of,
)
from turnout.cli.tables import digits_for, percent, print_estimates, printable
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.columns import ordered
from turnout.frequency.estimation.estimate import SHRUNK

#: So many rows of groups are shown.
_MOST_ROWS = 1000


class Attributes:
    """Shows several questions: see :class:`turnout.cli.showing.shown.Showing`."""

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say how many answers each question has."""
        each = [f"{name} ({one.size:,} answers)" for name, one in domain.columns.items()]
        return "questions", ", ".join(each)

    def check(self, wish: Wish) -> None:
        """Take all options."""

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the frequencies of the answers to each question."""
        result = tally.estimate(wish.method)
        if wish.postprocessing == SHRUNK:
            result = result.shrink()
        else:
            result = result.project(wish.postprocessing)
        result = cut(result, wish)
        level, simultaneous = wish.level, wish.simultaneous
        interval = result.interval(level, simultaneous=simultaneous)
        scope = "each label by itself"
        if simultaneous is not None:
            scope = f"all {result.answers:,} labels of all questions at once"
        each = result.each_level(level, simultaneous)

        def print_all(console: Console) -> None:
            for name, estimate in result.items():
                console.print(Text(f"\n{printable(name)}", style="bold"))
                codes = ordered(estimate, wish.order, wish.top)
                print_estimates(console, estimate, codes, each, None)

        return Shown(
            lambda: {
                **counts_of(result, result.method, postprocessing=result.postprocessing),
                "interval": {
                    "level": level,
                    "simultaneous": simultaneous,
                    "method": interval.method,
                },
                "plan": result.plan.to_dict(),
                "estimates": result.to_records(level, simultaneous=simultaneous, top=wish.top),
            },
            lambda: result.to_arrow(level, simultaneous=simultaneous),
            [
                *rows_of(result, result.method),
                self.asked(result.domain),
                ("interval", f"{percent(level)}, {interval.method}, for {scope}{cut_words(wish)}"),
                *projection_rows(result.postprocessing),
            ],
            [print_all],
            lambda: result.plot(level=level, simultaneous=simultaneous),
        )

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate the answers to each question in each group."""
        if wish.postprocessing != "none":
            raise InvalidValueError(
                "--project and --shrink do not apply to groups of several questions"
            )
        result = cut(grouped.estimate(wish.method), wish)
        interval, _ = group_interval(result, wish)
        records = result.to_records(**wish.scope, top=wish.top)
        return Shown(
            lambda: groups_record(grouped, result, interval, [*map(json_record, records)]),
            lambda: result.to_arrow(**wish.scope),
            [*group_rows(grouped, wish, TOGETHER[wish.over]), self.asked(grouped.domain)],
            [_table(grouped.names, records[:_MOST_ROWS], wish.level)],
            lambda: result.plot(**wish.scope),
        )


def _table(names: Sequence[str], records: list[dict[str, Any]], level: float) -> Any:
    errors = sorted(record["standard_error"] for record in records if record["reason"] is None)
    digits = digits_for(errors[len(errors) // 2]) if errors else 2

    def cells(record: dict[str, Any]) -> list[str]:
        limits = "none"
        if record["low"] is not None:
            limits = f"{percent(record['low'], digits)} – {percent(record['high'], digits)}"
        return [
            printable(record["attribute"]),
            printable(str(record["label"])),
            percent(record["frequency"], digits),
            limits,
        ]

    head = ["question", "label", "frequency", f"{percent(level)} interval"]
    return group_table(names, records, head, cells, words=2)
