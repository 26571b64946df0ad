"""What ``turnout aggregate`` prints."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.table import Table

from turnout.cli.account.shared import up
from turnout.cli.aggregate.mechanisms import parameters, rows
from turnout.cli.running import output
from turnout.cli.tables import print_json, save_picture, table
from turnout.distributed import AggregationMechanism, CostLedger, Recommendation
from turnout.reporting.words import number

STUDY = "all parties in this process, to study the mechanism; not a deployment"

#: How many labels a note names.
_FEW = 5


def summary(mechanism: AggregationMechanism, dropped: int) -> list[tuple[str, str]]:
    """Describe the round and its guarantee."""
    found = [("run", STUDY), ("users", f"{mechanism.users:,}")]
    if dropped:
        found.append(("dropped", f"{dropped:,} without an answer"))
    error = f"{mechanism.expected_error():.3g} expected (root mean square of a frequency)"
    return [*found, *rows(mechanism), ("error", error)]


def json_object(mechanism: AggregationMechanism, costs: CostLedger) -> dict[str, Any]:
    """Give what programs learn of the round beside its estimates."""
    promise = mechanism.guarantee
    return {
        "run": STUDY,
        "guarantee": {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "adjacency": promise.adjacency,
            "accounting": repr(promise.mechanism),
            "assumptions": list(promise.assumptions),
        },
        "parameters": parameters(mechanism),
        "expected_error": mechanism.expected_error(),
        "costs": {
            role: {"parties": costs.parties[role], **dataclasses.asdict(costs.average(role))}
            for role in costs.totals
        },
    }


def costs_table(costs: CostLedger) -> Table:
    """Draw what one party of each role does."""
    columns = {
        "sent": "messages",
        "bytes": "bytes",
        "added": "additions",
        "drawn": "draws",
        "coins": "coins",
        "noise": "noise",
    }
    header = ["role", "parties", *columns]
    cells = []
    for role in costs.totals:
        mean = dataclasses.asdict(costs.average(role))
        shown = "first server" if role == "reporting server" else role
        amounts = (_amount(mean[name]) for name in columns.values())
        cells.append([shown, f"{costs.parties[role]:,}", *amounts])
    title = "What one party does: messages sent, field elements added and drawn"
    return table(header, cells, right=range(1, len(header)), title=title)


def _amount(value: float) -> str:
    """Write a mean with few digits, and large ones with a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def comparison_table(comparison: Recommendation) -> Table:
    """Draw the mechanisms, those of smallest error first."""
    header = ["mechanism", "rms error", "delta", "bytes", "holds for"]
    cells = [
        [
            record.title,
            f"{record.rmse:.3g}",
            up(record.delta, 3),
            "varies" if record.share_bytes is None else f"{record.share_bytes:,}",
            "the floor" if record.conditional else "any data",
        ]
        for record in comparison.records
    ]
    title = (
        f"{comparison.users:,} users, {comparison.items} items, epsilon "
        f"{number(comparison.epsilon)}, delta {number(comparison.delta)}"
    )
    return table(header, cells, right=(1, 2, 3), title=title)


def floor_note(floor: int, below: list[Any], size: int, *, compared: bool) -> str:
    """Say that a floor is not kept by the data at hand."""
    names = ", ".join(map(str, below[:_FEW])) + (", ..." if len(below) > _FEW else "")
    what = "what holds for data with the floor" if compared else "the guarantee"
    return (
        f"the floor of {floor:,} does not hold here: {len(below):,} of {size:,} labels "
        f"{'is' if len(below) == 1 else 'are'} held by fewer ({names}); {what} does not hold for "
        "this data"
    )


def show_comparison(
    comparison: Recommendation, *, floor_holds: bool | None, plot: Path | None, as_json: bool
) -> None:
    """Print the comparison alone."""
    save_picture(plot, comparison.plot)
    if as_json:
        print_json(
            {
                "users": comparison.users,
                "items": comparison.items,
                "epsilon": comparison.epsilon,
                "delta": comparison.delta,
                "floor_holds": floor_holds,
                "recommendation": comparison_records(comparison),
                "refused": [
                    {"title": title, "reason": reason} for title, reason in comparison.refused
                ],
            }
        )
        return
    console = output()
    console.print(comparison_table(comparison))
    for line in comparison.not_compared():
        console.print(line, markup=False, highlight=False, style="dim")
    console.print(
        "\nThe error is that of one frequency; bytes are those of a user's shares alone, without "
        "headers. Nothing was run: --run runs the first with aggregators that holds for any data.",
        markup=False,
    )
    if plot is not None:
        console.print(f"\nThe picture: {plot}", markup=False, soft_wrap=True)


def comparison_records(comparison: Recommendation) -> list[dict[str, Any]]:
    """Give the comparison for programs."""
    records = comparison.to_records()
    plans = (record.mechanism and record.mechanism.to_dict() for record in comparison.records)
    return [{**record, "plan": plan} for record, plan in zip(records, plans, strict=True)]
