"""Estimates of every kind, of all people and of groups: tables, notes, JSON and pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnout import FrequencyEstimate
from turnout.cli import options
from turnout.cli.running import note
from turnout.cli.tables import (
    print_estimates,
    print_json,
    printable,
    table,
    tell,
    write_picture,
    write_table,
)
from turnout.collecting.keys import shown_key, time_column
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.attributes import AttributeEstimate
from turnout.frequency.estimation.answer import ordered
from turnout.frequency.estimation.estimate import ACROSS, SHRUNK
from turnout.reporting.frequencies import MANY
from turnout.reporting.records import record
from turnout.reporting.telling import Telling, Told, View, groups_of, telling
from turnout.reporting.words import left_out, number, participation, percent

#: So many rows of groups are shown, and so many groups are named.
_MOST_ROWS: Final = 1000
_FEW: Final = 5

Rows = list[tuple[str, str]]

#: What is said of intervals that are cut.
CUT: Final = ", cut to 0 and 1"


@dataclass(frozen=True, kw_only=True)
class Wish(View):
    """What the options of ``turnout estimate`` say.

    Attributes
    ----------
    postprocessing
        How frequencies are projected or shrunk.
    """

    postprocessing: str = "none"

    def made(self, estimate: Any) -> Any:
        """Process an estimate as is wished for, and cut its intervals.

        Raises
        ------
        InvalidValueError
            If that cannot be done to it.
        """
        if self.consistent or self.postprocessing != "none":
            if not hasattr(estimate, "project"):
                raise InvalidValueError(
                    "--project, --shrink and --consistent do not apply to groups of several "
                    "questions"
                )
            estimate = estimate.consistent() if self.consistent else estimate
        return self.cut(self._processed(estimate))

    def _processed(self, estimate: Any) -> Any:
        if self.postprocessing == "none":
            return estimate
        if self.postprocessing == ACROSS:
            return estimate.shrink(across=True)
        if self.postprocessing == SHRUNK:
            return estimate.shrink()
        return estimate.project(self.postprocessing)


@dataclass(frozen=True)
class Shown:
    """An estimate as it is shown.

    Attributes
    ----------
    make_record
        Makes the object of ``--json``.
    make_table
        Makes the Arrow table of files.
    rows
        Names and values above the table.
    below
        Tables, or what prints them.
    draw
        Makes the picture.
    """

    make_record: Callable[[], dict[str, Any]]
    make_table: Callable[[], Any]
    rows: list[tuple[str, str]]
    below: Sequence[Table | Callable[[Console], None]]
    draw: Callable[[], Any]

    def deliver(self, title: str, *, plot: Path | None, target: Path | None, as_json: bool) -> None:
        """Write the files that are wanted, and print the object or tables under a title."""
        # Not everything has a picture: where there is none, nothing is written.
        write_picture(plot, self.draw)
        if target is not None:
            write_table(target, self.make_table())
        if as_json:
            print_json(self.make_record())
        else:
            tell(title, self.rows, *self.below, table=target, picture=plot)


def rows_of(counted: Any, method: str) -> list[tuple[str, str]]:
    """Say what was counted and how it is estimated, of a tally, an estimate or a grouped tally."""
    return [
        ("nodes", f"{counted.nodes:,}"),
        *left_out(counted.left_out),
        ("reports", f"{counted.received:,}"),
        ("participation", participation(counted.plan)),
        ("oracle", counted.plan.oracle.name.replace("_", " ")),
        ("epsilon", number(counted.plan.oracle.epsilon)),
        ("method", options.method_word(method).replace("_", " ")),
    ]


def show(tally: Any, wish: Wish) -> Shown:
    """Estimate from a tally, or from each group of a grouped one."""
    estimate = wish.made(tally.estimate(wish.method))
    head = rows_of(tally, str(wish.method))
    return show_estimate(estimate, wish, telling(tally.plan), head, counted=tally)


def show_estimate(
    estimate: Any, wish: Wish, kind: Telling, head: Rows, *, counted: Any = None
) -> Shown:
    """Show an estimate of all people, or of groups.

    Parameters
    ----------
    estimate, wish, kind
        What is shown, and how.
    head
        What is said of it before its intervals.
    counted
        What has its plan and the numbers of nodes and reports, where it has none.
    """
    counted = estimate if counted is None else counted
    groups, domain = groups_of(estimate), kind.domain_of(estimate)
    method = str(getattr(estimate, "method", wish.method))
    known = [key for key in estimate if key not in estimate.reasons] if groups else []
    _say_cautions(estimate, known)
    if groups:
        number = ("groups", f"{len(counted):,} by {', '.join(counted.names)}")
        head = [number, *head]
    rows = [*head, kind.asked(domain)]
    made = None
    try:
        for one in [estimate[key] for key in known[:1]] if groups else [estimate]:
            made = kind.interval_method(one, wish)
        rows.append(("interval", _intervals(kind, domain, wish, made, grouped=bool(groups))))
    except EstimatorError as error:
        note(str(error).replace(repr(method), f"--method {options.method_word(method)}"))
    if isinstance(estimate, FrequencyEstimate) and made is not None:
        _note_many(domain.size, wish)
    rows += projection_rows(getattr(estimate, "postprocessing", "none"))
    return Shown(
        partial(
            record, estimate, wish, kind, counted, method=options.method_word(method), made=made
        ),
        lambda: estimate.to_arrow(**wish.scope_of(estimate)),
        rows if groups else [*rows, *kind.facts(estimate, wish.level)],
        [partial(_print, estimate=estimate, wish=wish, kind=kind)],
        lambda: _draw_groups(estimate, wish) if groups else kind.draw(estimate, wish),
    )


def _intervals(kind: Telling, domain: Any, wish: Wish, method: str | None, *, grouped: bool) -> str:
    """Say how intervals are made, and what they hold for."""
    scope = "for each by itself"
    if not grouped:
        scope = kind.interval_words(str(method), domain, wish.simultaneous)
    elif wish.simultaneous is not None:
        scope = f"for {kind.together[wish.over]}"
    how = f" ({wish.simultaneous})" if wish.simultaneous else ""
    return f"{percent(wish.level)}, {scope}{how}{CUT if wish.clip else ''}"


def _note_many(size: int, wish: Wish) -> None:
    """Say what intervals of many answers do together."""
    if wish.simultaneous is None and size >= MANY:
        note(
            f"each interval holds by itself: about {round((1 - wish.level) * size):,} "
            f"of {size:,} intervals miss the truth, and the largest shares tend to be "
            "too large; pass --simultaneous sidak to cover all at once"
        )


def _say_cautions(estimate: Any, keys: Sequence[Any]) -> None:
    """Say where shrinking may mislead, once for all groups of which it is true."""
    groups: dict[str, list[str]] = {}
    for name, one in [(shown_key(key), estimate[key]) for key in keys] or [("", estimate)]:
        shrinkage = getattr(one, "shrinkage", None)
        for sentence in shrinkage.cautions if shrinkage else ():
            groups.setdefault(sentence, []).append(name)
    for sentence, names in list(groups.items())[:_FEW]:
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        note(f"{', '.join(names[:_FEW])}{more}: {sentence}" if keys else sentence)
    if len(groups) > _FEW:
        note(
            f"{len(groups) - _FEW:,} more cautions of this kind; group by fewer "
            "columns with --by to have fewer"
        )


def projection_rows(postprocessing: str) -> Rows:
    """Say what was done to the frequencies."""
    said = []
    if postprocessing.startswith("consistent"):
        said.append(("consistent", "consistent tables (intervals are from before this step)"))
        postprocessing = postprocessing.partition("_")[2] or "none"
    if postprocessing == SHRUNK:
        said.append(("shrunk", "empirical Bayes (intervals are from before this step)"))
    elif postprocessing == ACROSS:
        said.append(
            ("shrunk", "empirical Bayes across groups (intervals are from before this step)")
        )
    elif postprocessing != "none":
        said.append(("projected", f"{postprocessing} (intervals are from before this step)"))
    return said


def _print(console: Console, estimate: Any, wish: Wish, kind: Telling) -> None:
    """Print a table: shares of all people with bars, a table for each question."""
    if isinstance(estimate, FrequencyEstimate):
        print_estimates(console, estimate, ordered(estimate, wish.order, wish.top), **wish.scope)
    elif isinstance(estimate, AttributeEstimate):
        each = estimate._each_level(**wish.scope)
        for name, one in estimate.items():
            console.print(Text(f"\n{printable(name)}", style="bold"))
            print_estimates(console, one, ordered(one, wish.order, wish.top), each, None)
    else:
        print_told(console, kind.told(estimate, wish), wish)


def print_told(console: Console, told: Told, wish: Wish) -> None:
    """Print a table, and say what is left out of it."""
    if not told.groups:
        right = range(told.names, len(told.head))
        rows = [list(map(printable, row.cells)) for row in told.rows]
        console.print(table(told.head, rows, right=right))
        return
    groups = [list(rows) for _, rows in itertools.groupby(told.rows, lambda row: row.group)]
    shown = groups
    if wish.top is not None:
        most = max(1, _MOST_ROWS // max(map(len, groups), default=1))
        shown = groups[:most]
    console.print(_group_table(told, shown))
    if len(shown) < len(groups):
        rest = f"and {len(groups) - len(shown):,} more of {len(groups):,} groups"
        console.print(f"\n{rest}; --output FILE.csv writes all", soft_wrap=True)
    size = max(map(len, groups), default=told.entries)
    if size < told.entries and wish.top is not None:
        left = f"{told.entries - size:,} of {told.entries:,} labels are left out in each group"
        console.print(f"\n{left}; --top all shows them", soft_wrap=True)


def _group_table(told: Told, groups: Sequence[Sequence[Any]]) -> Table:
    """Draw the estimates of all groups as one table; a group is named in its first row."""
    drawn = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    # Many columns: what can be spared between them goes to the labels.
    drawn.collapse_padding, drawn.pad_edge = True, False
    for name in told.groups:
        drawn.add_column(printable(name), overflow="fold", style="cyan")
    counted = any(row.received is not None for rows in groups for row in rows[:1])
    if counted:
        drawn.add_column("reports", justify="right", no_wrap=True)
    for place, name in enumerate(told.head):
        if place < told.names:
            drawn.add_column(printable(name), overflow="fold")
        else:
            drawn.add_column(name, justify="right", no_wrap=True)
    for rows in groups:
        head = list(map(printable, rows[0].group))
        head += [f"{rows[0].received:,}"] if counted else []
        for row in rows:
            if row.reason is not None:
                reason = f"({row.reason.removeprefix('the group has ')})"
                drawn.add_row(*map(Text, [*head, reason]), style="dim")
            else:
                drawn.add_row(*map(Text, [*head, *map(printable, row.cells)]))
            head = [""] * len(head)
        if len(rows) > 1:
            drawn.add_section()
    return drawn


def _draw_groups(estimate: Any, wish: Wish) -> Any:
    """Draw a series if a column is the time, else groups below each other."""
    time = time_column(estimate.names, estimate)
    drawn: Any = estimate if time is None else estimate.series(time)
    return drawn.plot(**wish.scope_of(estimate)).figure
