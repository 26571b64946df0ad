"""What is wanted of ``turnout sample``: its options, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from turnout import Bounds
from turnout.cli import options
from turnout.cli.columns import by_column
from turnout.cli.numbers import read_bounds
from turnout.cli.question import Labels

Assumption = Literal["one-value"]
Method = Literal["density", "boosting", "minimax", "randomized-response", "mollifier"]

#: Ways to sample numbers; the first is the default.
NUMBER_METHODS: Final = ("density", "boosting")
#: Ways to sample labels; which is the default depends on how many records a user has.
LABEL_METHODS: Final = ("minimax", "randomized-response", "mollifier")

_REF: Final = "--reference"

# The groups of options in the help.
_NUMBERS = "Columns of numbers"
_LABELS = "Columns of labels"


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
    bounds
        Public ranges of the columns, if they were stated.
    labels
        Public labels of columns, where they were stated.
    missing
        What missing values are: a label, or ``"drop"``; None refuses them.
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
    bounds: dict[str, Bounds] | None
    labels: dict[str, list[str]]
    missing: str | None
    missing_values: tuple[str, ...]
    known_records: int | None = None
    reference: Path | None = None
    one_value: bool = False
    trim: bool = False
    separator: str | None = None
    encoding: str | None = None

    def check(self) -> None:
        """Refuse what does not go together."""
        method, stated, bounds = self.method, bool(self.labels), self.bounds is not None
        every = self.user_column is None
        other = "--bounds" if bounds else f"--method {method}"
        reference, records = self.reference is not None, self.known_records is not None
        options.refuse_if(
            (
                self.user_column in self.columns,
                "--rows-are",
                f"{self.user_column!r} is sampled: it cannot say whose row it is",
            ),
            (reference and bounds, _REF, "says where numbers lie: leave out --bounds"),
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
            (records and method is not None, "--records", "needs no --method"),
            (
                self.rounds is not None and method != "boosting",
                "--rounds",
                "is for --method boosting",
            ),
            (
                stated and (bounds or method in NUMBER_METHODS),
                "--labels",
                f"are not for numbers: leave out {other}",
            ),
            (
                bounds and method in LABEL_METHODS,
                "--bounds",
                f"are for numbers, --method {method} samples labels",
            ),
        )


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


def bounds_of(text: str | None, names: Sequence[str]) -> dict[str, Bounds] | None:
    """Read ``a=17:90,b=0:99``: a range for every column, or none at all.

    Examples
    --------
    >>> bounds_of("age=17:90, hours = 0:99", ("age", "hours"))["hours"].high
    99.0
    """
    if text is None:
        return None
    parts = [re.sub(" *= *", "=", part.strip()) for part in text.split(",")]
    found = by_column("--bounds", parts, names, read_bounds)
    missing = [name for name in names if name not in found]
    if missing:
        raise typer.BadParameter(f"{missing[0]!r} has none: state all", param_hint="--bounds")
    return found


@dataclass(frozen=True, kw_only=True)
class Rows(Labels):
    """Which columns make a record, and what they hold.

    Attributes
    ----------
    columns
        Columns of a record, comma-separated: all of numbers, or all of labels.
    rows_are
        Column that says whose row it is; without it every row is a user of its own.
    bounds
        Public range of every column; no value may be outside.
    rounded
        Records of integers within --bounds; a value counts as the nearest one.
    labels
        The possible labels of a column; repeatable.
    missing
        Count missing values as this label or number, or drop rows that have one.
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
    missing: Annotated[str | None, typer.Option(metavar="LABEL|drop")] = None
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
        mollifier: by --records if not given.
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
        wanted = Wanted(
            names,
            rows.rows_are,
            self.method,
            self.rounds,
            bounds_of(rows.bounds, names),
            rows.of(names),
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
