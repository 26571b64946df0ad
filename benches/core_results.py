"""What criterion measured of secret sharing in the Rust core, beside the crate ``prio``.

``make bench`` runs ``benches/sharing.rs`` before the comparison; criterion leaves its estimates as
JSON below ``target/criterion``. The bytes of one user stand there as the throughput of a call.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from report import Figures, Row, duration

GROUP = "one user, 2 aggregators"
SUMS = "64 vectors of 1000 elements"
VERIFIED = "4096 reports of 30 items verified by 2 aggregators"
OWN, PROVEN, HISTOGRAM, MULTIHOT = (
    "turnout, no proof",
    "turnout, with proof",
    "Prio3Histogram, with proof",
    "Prio3MultihotCountVec, with proof",
)
TITLE = "One user's shares for two aggregators in the Rust core, modulo 1009: time and bytes"
HEADINGS = ("items", OWN, PROVEN, HISTOGRAM, MULTIHOT)


def load(folder: Path) -> tuple[Figures | None, dict[str, str]]:
    """Return the table, or None if nothing was measured, and the version of ``prio``.

    Parameters
    ----------
    folder
        Criterion's folder, usually ``target/criterion``.
    """
    results = _results(folder)
    sizes = sorted({int(size) for group, _, size in results if group == GROUP})
    if not sizes:
        return None, {}
    rows = []
    for size in sizes:
        found = {name: results.get((GROUP, name, str(size))) for name in HEADINGS[1:]}
        cells = (f"{size:,}", *(_cell(one) for one in found.values()))
        rows.append(Row(cells, "", {"items": size, "results": found}))
    notes = [
        "The proof is that shares are those of one vote or none, of prio's histogram of one vote.",
        *_verification(results),
        *_sums(results),
    ]
    return Figures("core", TITLE, HEADINGS, rows, notes), {"prio": _version("prio")}


def _results(folder: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Return seconds and bytes of every bench, by group, function and parameter."""
    found = {}
    for path in folder.glob("*/*/*/new/benchmark.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        estimates = json.loads(path.with_name("estimates.json").read_text(encoding="utf-8"))
        name = (told["group_id"], told["function_id"], told["value_str"])
        found[name] = {
            "seconds": estimates["mean"]["point_estimate"] * 1e-9,
            "throughput": told["throughput"] or {},
        }
    return found


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    size = result["throughput"].get("Bytes")
    seconds = result["seconds"]
    time = f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else duration(seconds)
    return time if size is None else f"{time}, {size:,} B"


def _verification(results: dict[tuple[str, str, str], dict[str, Any]]) -> list[str]:
    """Say how many reports two aggregators verify in a second, by turnout and by prio alone."""
    rates = {
        name: result["throughput"]["Elements"] / result["seconds"]
        for (group, name, _), result in results.items()
        if group == VERIFIED
    }
    if len(rates) != 2:
        return []
    own, other = rates["turnout"], rates["prio"]
    return [
        f"Two aggregators in one process verify {own:,.0f} reports of 30 items a second from their "
        f"bytes, {own / other:.2f} times as many as prio's own functions on as many threads."
    ]


def _sums(results: dict[tuple[str, str, str], dict[str, Any]]) -> list[str]:
    rates = {
        int(modulus): result["throughput"]["Elements"] / result["seconds"] / 1e9
        for (group, name, modulus), result in results.items()
        if group == SUMS and name == "sum"
    }
    if not rates:
        return []
    told = ", ".join(f"{rate:.2g} G modulo {modulus:,}" for modulus, rate in sorted(rates.items()))
    return [f"Shares in cache are added up on one core at so many elements a second: {told}."]


def _version(crate: str) -> str:
    """Return the version of a crate that the lock file names."""
    lock = Path(__file__).parents[1] / "Cargo.lock"
    match = re.search(rf'name = "{crate}"\nversion = "([^"]+)"', lock.read_text(encoding="utf-8"))
    return match.group(1) if match else "of unknown version"
