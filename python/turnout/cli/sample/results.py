"""What ``turnout sample`` puts out: records, a summary, an object for programs, a comparison."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnout._extras import require
from turnout._tables import records_of
from turnout._types import Array, Floats
from turnout.cli.sample.integers import Integers
from turnout.cli.sample.mixed import TableRecords
from turnout.cli.sample.records import Records
from turnout.cli.sample.wanted import Method, Wanted
from turnout.cli.tables import Whole, printable, table
from turnout.reporting.words import file_size, number, percent, rounded_up
from turnout.samplers import (
    PopulationDraws,
    TableEstimate,
    TableSampler,
)

#: So many records are shown, and so many labels.
_SHOWN, _SHOWN_LABELS = 5, 20

#: What is compared: the rows of the users, and their records.
_BOTH = ("own", "records")

_NAMES: Final[dict[Method, str]] = {
    "density": "mollified density",
    "minimax": "minimax sampler",
    "randomized-response": "randomized response of one of the user's values",
    "mollifier": "projection onto the mollifier of the uniform distribution",
    "table": "sampler of tables",
}

#: How a record of a table is drawn.
_LAWS: Final = {
    "minimax": "minimax sampler of",
    "mollifier": "projection onto the mollifier of",
    "resampling": "choice among many proposals from",
}


@dataclass(frozen=True)
class Drawn:
    """One private record of each user, and where it comes from.

    Attributes
    ----------
    wanted, records
        What was asked for, and the rows of the users.
    draws
        The draws.
    ids
        Whether it is written whose record it is.
    integers
        What numbers are rounded to; None if they are not.
    """

    wanted: Wanted
    records: Records | TableRecords
    draws: PopulationDraws
    ids: bool
    integers: Integers | None

    @cached_property
    def values(self) -> Any:
        """The records in the order of the users: numbers of shape (n, d), labels, or a table."""
        drawn = self.draws.draws
        return drawn if self.integers is None else self.integers.nearest(drawn)

    @cached_property
    def table(self) -> Any:
        """The records as an Arrow table: ids first, or in sorted order without them."""
        names, columns = list(self.records.columns), self.records.columns_of(self.values)
        if self.integers is not None:
            columns = [_whole(column) for column in columns]
        if self.ids:
            name = self.wanted.user_column or "row"
            while name in names:
                name += "_"
            names, columns = [name, *names], [self.draws.users, *columns]
        pa = require("pyarrow", "cli")
        # Integers keep their width: Arrow takes those of a list for 64 bits with a sign.
        drawn = pa.table([_arrow(pa, column) for column in columns], names)
        if self.ids:
            return drawn
        # The order of the file would tell whose record it is.
        return drawn.sort_by([(name, "ascending") for name in names])

    def guarantee(self) -> str:
        """Say what a record protects, and what is not protected."""
        epsilon = self.draws.epsilon
        unit = "the user's row" if self.wanted.user_column is None else "all rows of the user"
        shown = "How many users there are is not hidden."
        if self.ids:
            shown = "The ids show who has rows."
        if self.wanted.missing == "drop":
            shown += " Users without a complete row have no record, which is not hidden either."
        taken: list[str] = []
        if self.records.labels is not None:
            taken = [n for n in self.records.columns if n not in self.wanted.labels]
        if taken:
            named = ("columns " if len(taken) > 1 else "column ") + ", ".join(map(repr, taken))
            shown += f" The labels of {named} are taken from the data as public."
        return (
            f"One record per user: whatever {unit} may hold, no record is more than "
            f"e^{epsilon!r} = {rounded_up(math.exp(epsilon), 4)} times as likely as if they held "
            f"anything else. {shown} Every further record of the same users costs {epsilon!r} "
            f"again.{self._spent_before()}"
        )

    def _spent_before(self) -> str:
        """Say what the reference has cost those who reported it."""
        sampler = self.draws.sampler
        return sampler._cost_of_reference() if isinstance(sampler, TableSampler) else ""

    def summary(self, target: Path | None) -> list[tuple[str, str]]:
        """Give the rows of the summary."""
        users = f"{len(self.draws):,}"
        if self.wanted.user_column is None:
            users += ": every row is a user of its own (--rows-are names a column that says whose)"
        else:
            rows = len(self.records.users)
            users += f" by {self.wanted.user_column!r}, with {rows:,} rows in all"
        result = [("users", users)]
        if self.records.left_out:
            without = self.records.left_out.total
            result.append(("left out", f"{without:,} rows with something missing"))
        result += [
            ("columns", self.records.described),
            ("sampler", self._sampler()),
            ("epsilon", f"{number(self.draws.epsilon)} for a user, all rows together"),
        ]
        if target is not None:
            files = sorted(target.glob("part-*")) if target.is_dir() else [target]
            size = file_size(sum(file.stat().st_size for file in files))
            result.append(("file", Whole(f"{printable(str(target))}, {size}")))
        return [*result, ("guarantee", self.guarantee())]

    def _sampler(self) -> str:
        if self.records.labels is not None:
            return _NAMES[self.wanted.method]
        base = "standard normal distribution"
        if self.wanted.ranges:
            base = "uniform distribution on the bounds"
        if self.wanted.reference is not None:
            what = "that people reported, in" if self.wanted.collected else "of the public rows of"
            base = f"distribution {what} {self.wanted.reference}"
        name = _NAMES[self.wanted.method]
        sampler = self.draws.sampler
        if isinstance(sampler, TableSampler):
            public = sampler._public()
            if self.wanted.reference is None:
                base = "uniform distribution"
            cells = f"{math.prod(public.shape):,} combinations of cells"
            return f"{_LAWS[public.method]} the {base}, over {cells}"
        return f"{name} around the {base}"

    def _reference(self) -> str | None:
        """Name the reference of numbers or of a table."""
        if isinstance(self.records, TableRecords):
            return "uniform" if self.wanted.reference is None else str(self.wanted.reference)
        sampler: Any = self.draws.sampler
        return repr(sampler.reference) if self.records.labels is None else None

    def preview(self) -> Table:
        """Draw the first records."""
        names = [printable(name) for name in self.table.column_names]
        rows = [tuple(map(_cell, row.values())) for row in self.table.slice(0, _SHOWN).to_pylist()]
        shown = table(names, rows, right=range(len(names)))
        left = len(self.draws) - _SHOWN
        if left > 0:
            shown.caption, shown.caption_justify = Text(f"and {left:,} more", style="dim"), "left"
        return shown

    def json_object(self, target: Path | None) -> dict[str, Any]:
        """Give what programs may want; the records too if no file has them."""
        sampler: Any = self.draws.sampler
        labels = self.records.labels
        result = {
            "users": len(self.draws),
            "user_column": self.wanted.user_column,
            "columns": list(self.records.columns),
            "method": self.wanted.method,
            "epsilon": sampler.epsilon,
            "reference": self._reference(),
            "labels": None if labels is None else [list(entries) for entries in labels],
            "guarantee": self.guarantee(),
            "output": None if target is None else str(target),
        }
        if target is None:
            rows = self.table.to_pylist()
            result["records"] = [{name: _in_json(row[name]) for name in row} for row in rows]
        return result


def _in_json(value: Any) -> Any:
    """Give a value in terms of JSON: days are text."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def _arrow(pa: Any, column: Any) -> Any:
    """Give a column to Arrow, if it is not one of it already."""
    if not isinstance(column, np.ndarray):
        return column
    return pa.array(column if column.dtype.kind in "iu" else column.tolist())


def _whole(column: Floats) -> Array:
    """Give integers as such; floats where 64 bits do not hold them."""
    return column.astype(np.int64) if (np.abs(column) < 2.0**62).all() else column


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else printable(str(value))


def quality(records: Records, values: Array) -> dict[str, Any]:
    """Compare the records with the rows that they were drawn from, each user counting once.

    Returns
    -------
    dict
        Of numbers for each column mean and standard deviation, in the rows and in the records; of
        labels their shares, and the total variation distance of these.
    """
    _, user, rows = np.unique(records.users, return_inverse=True, return_counts=True)
    weights = 1.0 / rows[user] / len(rows)
    if records.domain is None:
        pairs = zip(records.columns, records.values.T, values.T, strict=True)
        columns = [
            {"column": name, "own": _moments(own, weights), "records": _moments(drawn, None)}
            for name, own, drawn in pairs
        ]
        return {"columns": columns}
    size = records.domain.size
    own = np.bincount(records.values, weights, size)
    drawn = np.bincount(records.domain.encode(values).astype(np.int64), minlength=size)
    shares = drawn / drawn.sum()
    labels = records_of(("label", *_BOTH), records.domain.labels, own, shares)
    return {"total_variation": float(np.abs(own - shares).sum() / 2), "labels": labels}


def _moments(values: Floats, weights: Floats | None) -> dict[str, float]:
    mean = float(np.average(values, weights=weights))
    return {
        "mean": mean,
        "deviation": float(np.average((values - mean) ** 2, weights=weights) ** 0.5),
    }


def show_quality(console: Console, found: dict[str, Any]) -> None:
    """Print the comparison."""
    console.print(
        "What the records keep; each user counts once, and this protects nobody:", style="bold"
    )
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    last = ""
    if "columns" in found:
        heads = ("column", "mean", "in records", "deviation", "in records")
        rows = [
            (
                printable(row["column"]),
                *(f"{row[of][what]:.4g}" for what in ("mean", "deviation") for of in _BOTH),
            )
            for row in found["columns"]
        ]
    else:
        heads = ("label", "share", "in records")
        largest = sorted(found["labels"], key=lambda row: -row["own"])
        rows = [
            (printable(str(row["label"])), *(percent(row[of], 1) for of in _BOTH))
            for row in largest[:_SHOWN_LABELS]
        ]
        more = len(largest) - len(rows)
        distance = f"total variation distance {found['total_variation']:.3g}"
        last = f"{distance}; {more:,} more labels" if more else distance
    console.print(table(heads, rows, right=range(1, len(heads))))
    if last:
        console.print(last)


def show_shares(console: Console, estimate: TableEstimate) -> None:
    """Print the estimated shares of each column, and what they rest on."""
    rows = []
    for found in estimate.to_records():
        numbers = (found["frequency"], found["low"], found["high"], found["share"])
        shown = ("–" if number is None else percent(number, 1) for number in numbers)
        rows.append((printable(found["column"]), printable(found["value"]), *shown))
    head = ("column", "value", "of all people", "low", "high", "in records")
    console.print(table(head, rows, right=range(2, len(head))))
    for words in dict.fromkeys(column.why for column in estimate.columns.values()):
        console.print(words, soft_wrap=True)
