"""What is wanted of ``turnout sample``: its options, and what they say together."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout import Bounds
from turnout.cli import options
from turnout.cli.columns import by_column
from turnout.cli.numbers import read_bounds
from turnout.cli.question import Labels
from turnout.samplers.tables.columns import LARGEST_WHOLE, MOST_CELLS

Assumption = Literal["one-value"]
Method = Literal["density", "minimax", "randomized-response", "mollifier", "table"]

#: The way to sample numbers alone.
DENSITY: Final = "density"
#: Ways to sample labels alone.
LABEL_METHODS: Final = ("minimax", "randomized-response", "mollifier")

#: The way to sample tables with columns of any type.
TABLE: Final = "table"
#: What is missing is a value of its own.
KEPT: Final = "keep"

_REF: Final = "--reference"

#: How files of references end that people reported: others hold public rows.
COLLECTED: Final = ".json"

_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_TIME: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?"
_TIMES: Final = re.compile(f"({_TIME}):({_TIME})", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

# The groups of options in the help.
_NUMBERS = "Columns of numbers"
_LABELS = "Columns of labels"

#: Two numbers, days or times: integers where both are written so.
Range = tuple[Any, Any]


@dataclass(frozen=True)
class Wanted:
    """What is to be sampled, and how.

    Attributes
    ----------
    columns
        The columns, in order.
    user_column
        The column that says whose row it is; None if every row is a user of its own.
    method
        How records are drawn.
    ranges
        Public ranges of columns, where they were stated.
    labels
        Public labels of columns, where they were stated.
    missing
        What missing values are: a label, ``"drop"``, or for tables ``"keep"``; None refuses them.
    missing_values
        Further texts that stand for a missing value.
    known_records
        About how many records a user has, if that is publicly known.
    reference
        A file of public rows that records are drawn around.
    one_value
        Whether every user is taken to hold one value.
    trim
        Whether white space around texts is taken off.
    separator, encoding
        How the text of a CSV file is written, if that was stated.
    ordered
        The columns whose labels stand in their order.
    bins
        How many cells columns with bounds are cut into, where that was stated.
    """

    columns: tuple[str, ...]
    user_column: str | None
    method: Method
    ranges: dict[str, Range]
    labels: dict[str, list[str]]
    missing: str | None
    missing_values: tuple[str, ...]
    known_records: int | None = None
    reference: Path | None = None
    one_value: bool = False
    trim: bool = False
    separator: str | None = None
    encoding: str | None = None
    ordered: tuple[str, ...] = ()
    bins: Mapping[str, int] = field(default_factory=dict)

    @property
    def bounds(self) -> dict[str, Bounds] | None:
        """The ranges of numbers, if they were stated."""
        found = {name: Bounds(float(low), float(high)) for name, (low, high) in self.ranges.items()}
        return found or None

    @property
    def collected(self) -> bool:
        """Whether people reported the reference."""
        return self.reference is not None and self.reference.suffix.lower() == COLLECTED

    def check(self) -> None:
        """Refuse what does not go together."""
        method, stated, bounds = self.method, bool(self.labels), bool(self.ranges)
        if bounds or method == TABLE:
            self._check_stated()
        if method == TABLE:
            self._check_table()
        every = self.user_column is None
        days = any(isinstance(low, datetime.date) for low, _ in self.ranges.values())
        reference, records = self.reference is not None, self.known_records is not None
        options.refuse_if(
            (
                self.collected and method != TABLE,
                _REF,
                f"was collected for tables: pass --method {TABLE}",
            ),
            (
                self.user_column in self.columns,
                "--rows-are",
                f"{self.user_column!r} is sampled: it cannot say whose row it is",
            ),
            (days and method != TABLE, "--method", f"{method} is not for days: {TABLE} is"),
            (
                reference and bounds and method != TABLE,
                _REF,
                "says where numbers lie: leave out --bounds",
            ),
            (
                reference and method in ("minimax", "randomized-response"),
                _REF,
                f"is not for --method {method}",
            ),
            (
                (self.missing or "").startswith(
                    tuple(f"{name}=" for name in (*self.columns, self.user_column))
                ),
                "--missing",
                "is for all columns: a label, or drop",
            ),
            *(
                (bool(given) and method != TABLE, option, f"is for --method {TABLE}")
                for option, given in (("--ordered", self.ordered), ("--bins", self.bins))
            ),
            (records and every, "--records", "needs --rows-are"),
            (records and method != TABLE, "--records", f"is for --method {TABLE}"),
            (
                stated and method == DENSITY,
                "--labels",
                f"are not for numbers: leave out --method {method}",
            ),
            (
                bounds and method in LABEL_METHODS,
                "--bounds",
                f"are for numbers, --method {method} samples labels",
            ),
        )

    def _check_stated(self) -> None:
        """Refuse columns of which it is not said what they hold, all at once."""
        problems = []
        for name in self.columns:
            if name in self.ranges and name in self.labels:
                problems.append(f"{name!r} has bounds and labels: leave one of them out")
            elif name not in self.ranges and name not in self.labels:
                problems.append(f"{name!r} needs {remedies(name)}")
        if problems:
            raise typer.BadParameter("; ".join(problems), param_hint="--columns")

    def _check_table(self) -> None:
        """Refuse what is not for tables."""
        options.refuse_if(
            (
                self.missing not in (None, "drop", KEPT),
                "--missing",
                f"is drop or {KEPT} for --method {TABLE}",
            ),
            *(
                (
                    any(isinstance(end, int) and abs(end) > LARGEST_WHOLE for end in ends),
                    "--bounds",
                    f"{name!r} must have whole numbers from -2^62 to 2^62; bounds with a point ask "
                    f"for real numbers, as in {name}=0.0:1e20",
                )
                for name, ends in self.ranges.items()
            ),
            *(
                (name not in self.labels, "--ordered", f"{name!r} needs --labels {name}=A,B,C")
                for name in self.ordered
            ),
            *(
                (name not in self.ranges, "--bins", f"{name!r} needs --bounds {name}=LOW:HIGH")
                for name in self.bins
            ),
            *(
                (len(labels) < 2, "--labels", f"{name!r} needs at least two")
                for name, labels in self.labels.items()
            ),
            *(
                (
                    len(labels) > MOST_CELLS,
                    "--labels",
                    f"{name!r} has {len(labels):,}, and --method {TABLE} takes at most "
                    f"{MOST_CELLS:,}: pass --method minimax or mollifier",
                )
                for name, labels in self.labels.items()
            ),
        )


def remedies(name: str, *, text: bool | None = None) -> str:
    """Say what states a column that holds text, or none, or perhaps.

    Examples
    --------
    >>> remedies("sex", text=True)
    '--labels sex=A,B,C (of days --bounds sex=FIRST:LAST)'
    """
    if text:
        return f"--labels {name}=A,B,C (of days --bounds {name}=FIRST:LAST)"
    of = " (numbers or days)" if text is None else ""
    return f"--bounds {name}=LOW:HIGH{of} or --labels {name}=A,B,C"


def column_names(text: str) -> tuple[str, ...]:
    """Read ``A,B``.

    Examples
    --------
    >>> column_names("age, hours")
    ('age', 'hours')
    """
    names = tuple(name.strip() for name in text.split(","))
    options.refuse_if(
        ("" in names, "--columns", "names an empty column"),
        (len(set(names)) < len(names), "--columns", "names a column twice"),
    )
    return names


def ranges_of(text: str | None, names: Sequence[str]) -> dict[str, Range]:
    """Read ``a=17:90,b=0:99``.

    Examples
    --------
    >>> ranges_of("age=17:90, hours = 0:99.5", ("age", "hours"))
    {'age': (17, 90), 'hours': (0.0, 99.5)}
    """
    if text is None:
        return {}
    parts = [re.sub(" *= *", "=", part.strip()) for part in text.split(",")]
    return by_column("--bounds", parts, names, _read_range)


def _read_range(text: str) -> Range:
    """Read LOW:HIGH, of times, of days or of numbers.

    Examples
    --------
    >>> _read_range("2024-01-01T08:00:2024-12-31T18:30:15")[1]
    datetime.datetime(2024, 12, 31, 18, 30, 15)
    """
    if times := _TIMES.fullmatch(text):
        try:
            begin, end = map(datetime.datetime.fromisoformat, times.groups())
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} has a time that is on no clock") from error
        if begin >= end:
            raise typer.BadParameter(f"{text!r} must have a first time before the last")
        return begin, end
    parts = text.split(":")
    if len(parts) == 2 and all(_DAY.fullmatch(part) for part in parts):
        try:
            first, last = map(datetime.date.fromisoformat, parts)
        except ValueError as error:
            raise typer.BadParameter(f"{text!r} has a day that is in no calendar") from error
        if first >= last:
            raise typer.BadParameter(f"{text!r} must have a first day before the last")
        return first, last
    bounds = read_bounds(text)
    if all(_WHOLE.fullmatch(part.strip()) for part in parts):
        return int(parts[0]), int(parts[1])
    return bounds.low, bounds.high


def _ordered(text: str | None, names: Sequence[str]) -> tuple[str, ...]:
    """Read ``A,B``, which must be columns."""
    found = () if text is None else tuple(name.strip() for name in text.split(","))
    for name in found:
        options.refuse_if((name not in names, "--ordered", f"{name!r} is none of --columns"))
    return found


def _bins(text: str | None, names: Sequence[str]) -> dict[str, int]:
    """Read ``a=20,b=5``."""
    if text is None:
        return {}
    parts = [re.sub(" *= *", "=", part.strip()) for part in text.split(",")]
    return by_column("--bins", parts, names, _read_bins)


def _read_bins(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 2 <= int(text) <= MOST_CELLS):
        raise typer.BadParameter(f"{text!r} must be a number of cells from 2 to {MOST_CELLS:,}")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class Rows(Labels):
    """Which columns make a record, and what they hold.

    Attributes
    ----------
    columns
        Columns of a record, comma-separated: numbers, labels and days may be together.
    rows_are
        Column that says whose row it is; without it every row is a user of its own.
    bounds
        Public range of columns of numbers, days or times, ends included; no value may be outside.
        age=17:91 asks for whole numbers, age=17.0:91 for real ones,
        2024-01-01:2024-12-31 for days, 2024-01-01T00:00:2024-12-31T23:59:59 for times.
    bins
        Into how many cells columns with bounds are cut, 16 if not given.
    labels
        The possible labels of a column; repeatable.
    ordered
        Columns whose labels stand in their order: neighbours are like each other.
    missing
        Drop rows in which a value is missing, or keep missing values as values of their own. With
        another --method than table: drop them, or count them as this label or number.
    """

    columns: Annotated[str, typer.Option("--columns", "-c", metavar="A,B")]
    rows_are: Annotated[str | None, typer.Option(metavar="COLUMN")] = None
    bounds: Annotated[
        str | None, typer.Option(metavar="A=LOW:HIGH,...", rich_help_panel=_NUMBERS)
    ] = None
    bins: Annotated[str | None, typer.Option(metavar="A=N,...", rich_help_panel=_NUMBERS)] = None
    labels: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]A,B,C", rich_help_panel=_LABELS)
    ] = None
    ordered: Annotated[str | None, typer.Option(metavar="A,B", rich_help_panel=_LABELS)] = None
    missing: Annotated[str | None, typer.Option(metavar="LABEL|drop|keep")] = None
    missing_value: options.MissingValues = None
    trim: options.Trim = False
    separator: options.Separator = None
    encoding: options.Encoding = None


@dataclass(frozen=True, kw_only=True)
class Way:
    """How records are drawn.

    Attributes
    ----------
    method
        table for columns of any type, each with --bounds or --labels; density for numbers alone;
        minimax, randomized-response or mollifier for labels alone.
    known_records
        About how many rows a user has, if that is public; many if not given.
    reference
        Draw around the distribution of these rows, which must be public; or around what turnout
        sample-reference collected, a file ending in .json.
    rounded
        Records of integers within --bounds; a value counts as the nearest one.
    assume
        That every user holds one value, in all rows: then shares are estimated, with intervals.
    """

    method: Annotated[Method, typer.Option("--method", "-m", metavar="NAME")] = TABLE
    known_records: Annotated[
        int | None, typer.Option("--records", metavar="N", min=1, rich_help_panel=_LABELS)
    ] = None
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    rounded: Annotated[bool, typer.Option("--round", rich_help_panel=_NUMBERS)] = False
    assume: Annotated[Assumption | None, typer.Option(rich_help_panel=_LABELS)] = None

    def of(self, rows: Rows) -> Wanted:
        """Say what is wanted of rows.

        Raises
        ------
        typer.BadParameter
            If something does not go together.
        """
        names = column_names(rows.columns)
        ranges, labels = ranges_of(rows.bounds, names), rows.of(names)
        wanted = Wanted(
            names,
            rows.rows_are,
            self.method,
            ranges,
            labels,
            rows.missing,
            tuple(rows.missing_value or ()),
            self.known_records,
            self.reference,
            one_value=self.assume is not None,
            trim=rows.trim,
            separator=rows.separator,
            encoding=rows.encoding,
            ordered=_ordered(rows.ordered, names),
            bins=_bins(rows.bins, names),
        )
        wanted.check()
        return wanted
