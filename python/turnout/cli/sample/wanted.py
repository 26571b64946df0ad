"""What is wanted of ``turnout sample``: its options, and what they say together."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout import Bounds
from turnout.cli import options
from turnout.cli.columns import by_column
from turnout.cli.numbers import read_bounds
from turnout.cli.question import Labels

Assumption = Literal["one-value"]
Method = Literal["density", "boosting", "minimax", "randomized-response", "mollifier", "table"]

#: Ways to sample numbers; the first is the default.
NUMBER_METHODS: Final = ("density", "boosting")
#: Ways to sample labels; which is the default depends on how many records a user has.
LABEL_METHODS: Final = ("minimax", "randomized-response", "mollifier")

#: The way to sample tables with columns of several types.
TABLE: Final = "table"
#: What is missing is a value of its own.
KEPT: Final = "keep"

_REF: Final = "--reference"

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

# The groups of options in the help.
_NUMBERS = "Columns of numbers"
_LABELS = "Columns of labels"

#: Two numbers or two days: integers where both are written so.
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
        The method, if one was named.
    rounds
        How many rounds boosting has at most, if that was stated.
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
    """

    columns: tuple[str, ...]
    user_column: str | None
    method: Method | None
    rounds: int | None
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

    @property
    def bounds(self) -> dict[str, Bounds] | None:
        """The ranges of numbers, if they were stated."""
        found = {name: Bounds(float(low), float(high)) for name, (low, high) in self.ranges.items()}
        return found or None

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
            (records and every, "--records", "needs --rows-are"),
            (records and method not in (None, TABLE), "--records", "needs no --method"),
            (
                self.rounds is not None and method != "boosting",
                "--rounds",
                "is for --method boosting",
            ),
            (
                stated and method in NUMBER_METHODS,
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
                f"is drop or {KEPT} where numbers and labels are together",
            ),
            (self.one_value, "--assume", "is for columns of labels alone"),
            *(
                (len(labels) < 2, "--labels", f"{name!r} needs at least two")
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
    """Read LOW:HIGH, of days or of numbers."""
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
        Public range of columns of numbers, or of days; no value may be outside.
    rounded
        Records of integers within --bounds; a value counts as the nearest one.
    labels
        The possible labels of a column; repeatable.
    missing
        Count missing values as this label or number, or drop rows that have one; of numbers and
        labels together drop, or keep them as values of their own.
    """

    columns: Annotated[str, typer.Option("--columns", "-c", metavar="A,B")]
    rows_are: Annotated[str | None, typer.Option(metavar="COLUMN")] = None
    bounds: Annotated[
        str | None, typer.Option(metavar="A=LOW:HIGH,...", rich_help_panel=_NUMBERS)
    ] = None
    rounded: Annotated[bool, typer.Option("--round", rich_help_panel=_NUMBERS)] = False
    labels: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]A,B,C", rich_help_panel=_LABELS)
    ] = None
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
        For numbers density (if not given) or boosting, for labels minimax, randomized-response or
        mollifier: by --records if not given; table where --bounds and --labels are given, and for
        all columns.
    known_records
        About how many rows a user has, if that is public; many if not given.
    rounds
        Rounds of --method boosting, 10 if not given; time grows with them.
    reference
        Draw around the distribution of these rows, which must be public.
    assume
        That every user holds one value: then shares are estimated, with intervals.
    """

    method: Annotated[Method | None, typer.Option("--method", "-m", metavar="NAME")] = None
    known_records: Annotated[
        int | None, typer.Option("--records", metavar="N", min=1, rich_help_panel=_LABELS)
    ] = None
    rounds: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=10_000, rich_help_panel=_NUMBERS)
    ] = None
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None
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
        days = any(isinstance(low, datetime.date) for low, _ in ranges.values())
        mixed = days or bool(ranges and labels)
        wanted = Wanted(
            names,
            rows.rows_are,
            TABLE if mixed and self.method is None else self.method,
            self.rounds,
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
        )
        wanted.check()
        return wanted
