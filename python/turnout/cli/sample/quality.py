"""How much of a table its records keep: for whoever holds the table, as it protects nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from turnout._types import Floats
from turnout.cli.sample.records import Records
from turnout.cli.tables import percent, printable, table
from turnout.samplers import PopulationDraws

#: So many labels are shown.
_SHOWN = 20


def quality(records: Records, draws: PopulationDraws) -> dict[str, Any]:
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
        columns = [
            {"column": name, "own": _moments(own, weights), "records": _moments(drawn, None)}
            for name, own, drawn in zip(records.columns, records.data.T, draws.draws.T, strict=True)
        ]
        return {"columns": columns}
    size = records.domain.size
    own = np.bincount(records.domain.encode(records.data).astype(np.int64), weights, size)
    drawn = np.bincount(records.domain.encode(draws.draws).astype(np.int64), minlength=size)
    shares = drawn / drawn.sum()
    labels = [
        {"label": label, "own": mine, "records": theirs}
        for label, mine, theirs in zip(
            records.domain.labels, own.tolist(), shares.tolist(), strict=True
        )
    ]
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
            for row in largest[:_SHOWN]
        ]
        more = len(largest) - len(rows)
        distance = f"total variation distance {found['total_variation']:.3g}"
        last = f"{distance}; {more:,} more labels" if more else distance
    console.print(table(heads, rows, right=range(1, len(heads))))
    if last:
        console.print(last)


_BOTH = ("own", "records")
