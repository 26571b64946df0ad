"""How often each answer to each of several questions is given: one table for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from turnout import GroupedTally
from turnout.cli.showing.frequencies import TOGETHER, projection_rows, share_table
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    cut,
    cut_words,
    group_interval,
    group_rows,
    json_record,
    rows_of,
)
from turnout.cli.tables import percent, print_estimates, printable
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.answer import ordered
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

        return Shown.of(
            result,
            wish,
            interval={"level": level, "simultaneous": simultaneous, "method": interval.method},
            rows=[
                *rows_of(result, result.method),
                self.asked(result.domain),
                ("interval", f"{percent(level)}, {interval.method}, for {scope}{cut_words(wish)}"),
                *projection_rows(result.postprocessing),
            ],
            below=[print_all],
            values=lambda: {
                "estimates": result.to_records(level, simultaneous=simultaneous, top=wish.top)
            },
            postprocessing=result.postprocessing,
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
        shown = Shown.of(
            result,
            wish,
            grouped,
            interval=interval,
            rows=[*group_rows(grouped, wish, TOGETHER[wish.over]), self.asked(grouped.domain)],
            below=[share_table(grouped.names, records[:_MOST_ROWS], wish.level)],
            values=lambda: {"estimates": [*map(json_record, records)]},
        )
        return replace(shown, draw=lambda: result.plot(**wish.scope))
