"""What the options of ``turnout sample`` say, before any file is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import typer

Method = Literal["density", "boosting", "minimax", "randomized-response", "mollifier"]
Bounds = dict[str, tuple[float, float]]

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
    labels_file
        A file with the labels of the only column.
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
    bounds: Bounds | None
    labels: dict[str, str]
    labels_file: Path | None
    missing: str | None
    missing_values: tuple[str, ...]
    known_records: int | None = None
    reference: Path | None = None
    one_value: bool = False

    @property
    def states_labels(self) -> bool:
        """Whether labels were stated for any column."""
        return bool(self.labels) or self.labels_file is not None

    def states_labels_of(self, column: str) -> bool:
        """Whether labels were stated for this column; a file is for the only one."""
        return column in self.labels or self.labels_file is not None


def parse(
    columns: str,
    user_column: str | None,
    *,
    method: Method | None,
    rounds: int | None = None,
    bounds: str | None,
    labels: Sequence[str] | None,
    labels_file: Path | None,
    missing: str | None,
    missing_values: Sequence[str] | None,
    known_records: int | None = None,
    reference: Path | None = None,
    one_value: bool = False,
) -> Wanted:
    """Read the options, and refuse those that do not go together.

    Examples
    --------
    >>> wanted = parse(
    ...     "age, hours", "id", method=None, bounds="age=17:90,hours=0:99", labels=None,
    ...     labels_file=None, missing=None, missing_values=None,
    ... )
    >>> wanted.columns, wanted.bounds
    (('age', 'hours'), {'age': (17.0, 90.0), 'hours': (0.0, 99.0)})
    """
    names = tuple(name.strip() for name in columns.split(","))
    if "" in names:
        raise typer.BadParameter("names an empty column", param_hint="--columns")
    if len(set(names)) < len(names):
        raise typer.BadParameter("names a column twice", param_hint="--columns")
    if user_column in names:
        raise typer.BadParameter(
            f"{user_column!r} is sampled: it cannot say whose row it is", param_hint="--rows-are"
        )
    wanted = Wanted(
        names,
        user_column,
        method,
        rounds,
        None if bounds is None else _bounds(bounds, names),
        _labels(labels or (), names),
        labels_file,
        missing,
        tuple(missing_values or ()),
        known_records,
        reference,
        one_value,
    )
    if reference is not None:
        if bounds is not None:
            raise typer.BadParameter("says where numbers lie: leave out --bounds", param_hint=_REF)
        if method in ("minimax", "randomized-response"):
            raise typer.BadParameter(f"is not for --method {method}", param_hint=_REF)
    if known_records is not None and (user_column is None or method is not None):
        other = "--rows-are" if user_column is None else "no --method"
        raise typer.BadParameter(f"needs {other}", param_hint="--records")
    if rounds is not None and method != "boosting":
        raise typer.BadParameter("is for --method boosting", param_hint="--rounds")
    if labels_file is not None and (labels or len(names) > 1):
        raise typer.BadParameter(
            "is for one column whose labels are not stated with --labels",
            param_hint="--labels-file",
        )
    if wanted.states_labels and (method in NUMBER_METHODS or bounds is not None):
        other = "--bounds" if bounds is not None else f"--method {method}"
        raise typer.BadParameter(f"are not for numbers: leave out {other}", param_hint="--labels")
    if method in LABEL_METHODS and bounds is not None:
        raise typer.BadParameter(
            f"are for numbers, --method {method} samples labels", param_hint="--bounds"
        )
    return wanted


def _bounds(text: str, names: Sequence[str]) -> Bounds:
    """Read ``a=17:90,b=0:99``: a range for every column."""
    found: Bounds = {}
    for part in text.split(","):
        name, equals, span = (piece.strip() for piece in part.rpartition("="))
        low, colon, high = span.partition(":")
        try:
            pair = float(low), float(high)
        except ValueError:
            pair = math.nan, math.nan
        if not (equals and colon) or not -math.inf < pair[0] < pair[1] < math.inf:
            raise typer.BadParameter(
                f"{part.strip()!r} is not COLUMN=LOW:HIGH with two finite numbers, the lower first",
                param_hint="--bounds",
            )
        if name not in names or name in found:
            kind = "twice" if name in found else "but not in --columns"
            raise typer.BadParameter(f"{name!r} is there {kind}", param_hint="--bounds")
        found[name] = pair
    missing = [name for name in names if name not in found]
    if missing:
        raise typer.BadParameter(f"{missing[0]!r} has none: state all", param_hint="--bounds")
    return found


def _labels(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Read ``COLUMN=A,B,C``, or ``A,B,C`` where there is one column."""
    found: dict[str, str] = {}
    for text in texts:
        name = next((name for name in names if text.startswith(f"{name}=")), None)
        if name is None and len(names) > 1:
            raise typer.BadParameter(
                f"{text!r} is not COLUMN=A,B,C with a column of --columns", param_hint="--labels"
            )
        listed = text if name is None else text.removeprefix(f"{name}=")
        if found.setdefault(name or names[0], listed) is not listed:
            raise typer.BadParameter(f"{name or names[0]!r} has them twice", param_hint="--labels")
    return found
