"""What the options of ``turnout sample`` say, before any file is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import typer

from turnout import Bounds
from turnout.cli import options
from turnout.cli.answers import by_column
from turnout.cli.numbers import read_bounds

Method = Literal["density", "boosting", "minimax", "randomized-response", "mollifier"]

#: Ways to sample numbers; the first is the default.
NUMBER_METHODS: Final = ("density", "boosting")
#: Ways to sample labels; which is the default depends on how many records a user has.
LABEL_METHODS: Final = ("minimax", "randomized-response", "mollifier")

_REF: Final = "--reference"


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
