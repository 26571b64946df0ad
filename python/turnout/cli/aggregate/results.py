"""What ``turnout aggregate`` prints."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from turnout._rounding import written_up
from turnout.cli.aggregate.mechanisms import rows
from turnout.cli.tables import print_json, table, tell, write_picture
from turnout.collecting.left_out import LeftOut
from turnout.distributed import CostLedger, Recommendation
from turnout.distributed.parameters import Parameters
from turnout.reporting import words
from turnout.reporting.words import number
from turnout.surveying.words import about_seed, in_one_process

STUDY = "all parties in this process, to study the mechanism; not a deployment"


def summary(mechanism: Parameters, left_out: LeftOut) -> list[tuple[str, str]]:
    """Describe the round and its guarantee."""
    found = [("run", STUDY), ("users", f"{mechanism.users:,}")]
    found += words.left_out(left_out)
    error, what = mechanism._error()
    said = f"{error:.3g} expected (root mean square of {what})"
    return [*found, *rows(mechanism), ("error", said)]


def page_notes(mechanism: Parameters, seed: int | None, floor_holds: bool | None) -> list[str]:
    """Say what a reader of the page should know of the round."""
    found = [*about_seed(seed), in_one_process(mechanism)]
    if floor_holds is False:
        found.append(
            "Some answers are held by fewer people than the floor promises. What protects the "
            "people rests on that promise, and does not hold for these answers."
        )
    return found


def json_object(mechanism: Parameters, costs: CostLedger) -> dict[str, Any]:
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
        "parameters": mechanism._facts(),
        "expected_error": mechanism._error()[0],
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


def show_comparison(
    comparison: Recommendation, *, floor_holds: bool | None, plot: Path | None, as_json: bool
) -> None:
    """Show the mechanisms, those of smallest error first."""
    write_picture(plot, comparison.plot)
    if as_json:
        plans = (one.mechanism and one.mechanism.to_dict() for one in comparison.records)
        pairs = zip(comparison.to_records(), plans, strict=True)
        print_json(
            {
                "users": comparison.users,
                "items": comparison.items,
                "epsilon": comparison.epsilon,
                "delta": comparison.delta,
                "floor_holds": floor_holds,
                "recommendation": [{**record, "plan": plan} for record, plan in pairs],
                "refused": [
                    {"title": title, "reason": reason} for title, reason in comparison.refused
                ],
            }
        )
        return
    cells = [
        [
            record.title,
            f"{record.rmse:.3g}",
            written_up(record.delta, 3),
            "varies" if record.share_bytes is None else f"{record.share_bytes:,}",
            "the floor" if record.conditional else "any data",
        ]
        for record in comparison.records
    ]
    setting = [
        ("users", f"{comparison.users:,}"),
        ("items", f"{comparison.items:,}"),
        ("epsilon", number(comparison.epsilon)),
        ("delta", number(comparison.delta)),
        ("run", "nothing: --mechanism names what is run"),
    ]
    tell(
        "Mechanisms of aggregation",
        setting,
        table(["mechanism", "rms error", "delta", "bytes", "holds for"], cells, right=(1, 2, 3)),
        *(Text(line, style="dim") for line in comparison._not_compared()),
        Text(
            f"The error is that of {comparison.of}; bytes are those of a user's shares alone, "
            "without headers."
        ),
        picture=plot,
    )
