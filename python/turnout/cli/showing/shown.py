"""What commands ask of every kind, and what is the same for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnout import GroupedTally, Plan
from turnout.cli.options import print_json, save_picture, write_table
from turnout.cli.tables import number, percent, printable, tell
from turnout.collecting.keys import shown_part, time_column, to_json
from turnout.errors import EstimatorError
from turnout.frequency.estimation.estimate import SHRUNK

#: The words of ``--method``, and what the estimators are called in Python, after the papers.
METHODS: Final = {
    "hajek": "hajek",
    "horvitz_thompson": "horvitz_thompson",
    "received": "c_hat",
    "expected": "g",
    "total": "T",
    "everyone": "c",
    "ems": "ems",
    "ml": "ml",
}


def _method(text: str) -> str:
    plain = text.replace("-", "_")
    if plain in METHODS:
        return METHODS[plain]
    if text in METHODS.values():
        return text
    raise typer.BadParameter(f"{text!r} is none of {', '.join(METHODS)}")


def method_word(name: str) -> str:
    """Give the word of ``--method`` for an estimator.

    Examples
    --------
    >>> method_word("c_hat"), method_word("hajek")
    ('received', 'hajek')
    """
    return next((word for word, own in METHODS.items() if own == name), name)


def in_words(error: Exception, method: str) -> str:
    """Say in terms of options what an estimator refuses."""
    return str(error).replace(repr(method), f"--method {method_word(method)}")


Method = Annotated[
    Any,
    typer.Option(
        "--method",
        metavar="NAME",
        parser=_method,
        help=f"Estimator: {', '.join(METHODS)}. hajek suits every participation; everyone is "
        "biased unless everyone reports. Of a distribution ems (default) or ml.",
    ),
]
Clip = Annotated[
    bool,
    typer.Option("--clip", help="Cut intervals of shares to 0 and 1, where no share is outside."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Of questions asked together: shares among those who gave each answer to it; "
        "repeatable.",
    ),
]
Of = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --given: the question of the shares.")
]
Marginal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Of several questions: the shares of this one, whatever is answered to the others; "
        "repeatable.",
    ),
]
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent", help="Make tables of two questions agree on what they have in common."
    ),
]
#: What is said of intervals that are cut.
CUT: Final = ", cut to 0 and 1"

Simultaneous = Literal["bonferroni", "sidak"]
Projection = Literal["none", "simplex", "norm_sub", "clip_normalize"]
Order = Literal["frequency", "label", "domain"]
Over = Literal["labels", "groups", "all"]


@dataclass(frozen=True)
class Wish:
    """What the options of ``turnout estimate`` say.

    Attributes
    ----------
    method, level, simultaneous, over
        The estimator, and how intervals are made.
    postprocessing, order, top
        How frequencies are projected or shrunk, in which order labels stand, and how many of them.
    given
        The options that were given, as they are written.
    clip
        Whether intervals of shares are cut to [0, 1].
    consistent
        Whether tables of two questions are made to agree.
    """

    method: str
    level: float
    simultaneous: Simultaneous | None
    over: Over
    postprocessing: str
    order: Order
    top: int | None
    given: frozenset[str]
    clip: bool = False
    consistent: bool = False

    @property
    def scope(self) -> dict[str, Any]:
        """How the intervals of groups are made, as estimates take it."""
        return {"level": self.level, "simultaneous": self.simultaneous, "over": self.over}


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

    @classmethod
    def of(
        cls,
        result: Any,
        wish: Wish,
        grouped: GroupedTally[Any] | None = None,
        *,
        interval: Mapping[str, Any],
        rows: list[tuple[str, str]],
        below: Sequence[Table | Callable[[Console], None]],
        values: Callable[[], dict[str, Any]],
        **counted: Any,
    ) -> Shown:
        """Show what was estimated from a tally, or from each group of a grouped one.

        Parameters
        ----------
        result, wish, grouped
            The estimate, what was wished for, and the grouped tally if it is of one.
        interval
            How the intervals were made.
        rows, below
            What is printed.
        values
            Makes the last members of the object of ``--json``.
        counted
            Further first members of it.
        """
        scope = wish.scope
        if grouped is None:
            del scope["over"]
        names = {} if grouped is None else {"groups": list(grouped.names)}
        return cls(
            lambda: {
                **counts_of(result if grouped is None else grouped, result.method, **counted),
                "interval": interval,
                "plan": result.plan.to_dict(),
                **names,
                **values(),
            },
            lambda: result.to_arrow(**scope),
            rows,
            below,
            lambda: result.plot(**scope) if grouped is None else draw_groups(result, wish),
        )

    @property
    def record(self) -> dict[str, Any]:
        """The object of ``--json``."""
        return self.make_record()

    def deliver(self, title: str, *, plot: Path | None, target: Path | None, as_json: bool) -> None:
        """Write the files that are wanted, and print the object or tables under a title."""
        # Not everything has a picture: where there is none, nothing is written.
        save_picture(plot, self.draw)
        if target is not None:
            write_table(target, self.make_table())
        if as_json:
            print_json(self.record)
        else:
            tell(title, self.rows, *self.below, table=target, picture=plot)


def processed(estimate: Any, wish: Wish) -> Any:
    """Project or shrink an estimate, if that is wished for."""
    if wish.postprocessing == "none":
        return estimate
    if wish.postprocessing == SHRUNK:
        return estimate.shrink()
    return estimate.project(wish.postprocessing)


def cut(estimate: Any, wish: Wish) -> Any:
    """Cut the intervals of shares to [0, 1] where that is asked for."""
    return estimate.clip_intervals() if wish.clip else estimate


def cut_words(wish: Wish) -> str:
    """Say that intervals are cut, if they are."""
    return CUT if wish.clip else ""


class Showing(Protocol):
    """How a kind of question is shown."""

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say which answers can be given: a name and a value."""

    def check(self, wish: Wish) -> None:
        """Refuse the options that say nothing about this kind.

        Raises
        ------
        InvalidValueError
            If there is one, with the reason.
        """
        return

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate from a tally."""

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate each group of a grouped tally."""


def describe_participation(plan: Plan) -> str:
    """Say who takes part under a plan.

    Examples
    --------
    >>> import turnout as tn
    >>> describe_participation(tn.Plan(tn.DirectEncoding(1.0, 2), tn.Bernoulli(0.25)))
    '25 % of the nodes, at random'
    """
    rate = plan.participation.uniform_rate
    if rate is None:
        return "each node with its own probability"
    if plan.oracle.silent:
        return "by the answer, which epsilon counts"
    return "everyone" if rate == 1 else f"{percent(rate)} of the nodes, at random"


def rows_of(counted: Any, method: str) -> list[tuple[str, str]]:
    """Say what was counted and how it is estimated, of a tally, an estimate or a grouped tally."""
    return [
        ("nodes", f"{counted.nodes:,}"),
        ("reports", f"{counted.received:,}"),
        ("participation", describe_participation(counted.plan)),
        ("oracle", counted.plan.oracle.name.replace("_", " ")),
        ("epsilon", number(counted.plan.oracle.epsilon)),
        ("method", method_word(method).replace("_", " ")),
    ]


def counts_of(counted: Any, method: str, **more: Any) -> dict[str, Any]:
    """Give the first members of the object of ``--json``."""
    return {
        "nodes": counted.nodes,
        "received": counted.received,
        "method": method_word(method),
        **more,
    }


def plain(value: Any) -> Any:
    """Write a number in terms of JSON: null if it is not known."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_group(group: Mapping[str, Any]) -> dict[str, Any]:
    """Write the columns of a group in terms of JSON: moments as text."""
    described = {name: to_json(part) for name, part in group.items()}
    return {
        name: next(iter(part.values())) if isinstance(part, dict) else part
        for name, part in described.items()
    }


def json_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Write a record in terms of JSON: its group, and null for numbers that are not known."""
    return {
        key: json_group(value) if key == "group" else plain(value) for key, value in record.items()
    }


def interval_of_groups(wish: Wish) -> dict[str, Any]:
    """Say how the intervals of groups are made."""
    over = wish.over if wish.simultaneous else None
    return {"level": wish.level, "simultaneous": wish.simultaneous, "over": over}


def group_interval(estimate: Any, wish: Wish) -> tuple[dict[str, Any], str | None]:
    """Say how the intervals of groups were made, or why there are none."""
    described = interval_of_groups(wish)
    try:
        estimate.interval(**wish.scope)
    except EstimatorError as error:
        return described, in_words(error, wish.method)
    return described, None


def group_rows(grouped: GroupedTally[Any], wish: Wish, together: str) -> list[tuple[str, str]]:
    """Say what was counted in groups and how it is estimated, and what intervals hold for."""
    scope = "each by itself"
    if wish.simultaneous is not None:
        scope = f"all {together} at once ({wish.simultaneous})"
    return [
        ("groups", f"{len(grouped):,} by {', '.join(grouped.names)}"),
        *rows_of(grouped, wish.method),
        ("interval", f"{percent(wish.level)}, for {scope}{cut_words(wish)}"),
    ]


def group_table(
    names: Sequence[str],
    records: Sequence[dict[str, Any]],
    columns: Sequence[str],
    cells: Callable[[dict[str, Any]], Sequence[str]],
    *,
    words: int,
    apart: bool = True,
) -> Table:
    """Draw the estimates of all groups as one table; a group is named in its first row.

    Parameters
    ----------
    names
        The columns of the groups.
    records
        What is shown, the records of a group one after the other.
    columns
        The names of the other columns.
    cells
        What stands in them for a record.
    words
        How many of them hold words; the others hold numbers.
    apart
        Whether groups stand apart.
    """
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    # Many columns: what can be spared between them goes to the labels.
    table.collapse_padding, table.pad_edge = True, False
    for name in names:
        table.add_column(printable(name), overflow="fold", style="cyan")
    counted = all("received" in record for record in records)
    if counted:
        table.add_column("reports", justify="right", no_wrap=True)
    for place, name in enumerate(columns):
        if place < words:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    before: dict[str, Any] | None = None
    for record in records:
        group = record["group"]
        new = before is None or list(group.values()) != list(before.values())
        if apart and new and before is not None:
            table.add_section()
        before = group
        head = [printable(shown_part(part)) for part in group.values()]
        head += [f"{record['received']:,}"] if counted else []
        if record.get("reason") is not None:
            if new:
                reason = f"({record['reason'].removeprefix('the group has ')})"
                nothing = [reason, *[""] * (len(columns) - 1)]
                table.add_row(*map(Text, [*head, *nothing]), style="dim")
            continue
        table.add_row(*map(Text, [*(head if new else [""] * len(head)), *cells(record)]))
    return table


def draw_groups(estimate: Any, wish: Wish) -> Any:
    """Draw a series if a column is the time, else groups below each other."""
    time = time_column(estimate.names, estimate)
    drawn: Any = estimate if time is None else estimate.series(time)
    return drawn.plot(**wish.scope).figure
