"""What criterion measured of secret sharing in the Rust core, beside the crate ``prio``.

``make bench`` runs ``benches/sharing.rs`` and ``benches/votes.rs`` before the comparison; criterion
leaves its estimates as JSON below ``target/criterion``. The bytes of one user stand there as the
throughput of a call.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from report import Figures, Row, duration

GROUP = "one user, 2 aggregators"
SUMS = "64 vectors of 1000 elements"
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
        "The proof shows that shares hold one vote or none; for prio's histogram, one vote.",
        *_sums(results),
    ]
    return Figures("core", TITLE, HEADINGS, rows, notes), {"prio": _version("prio")}


def votes(folder: Path) -> dict[tuple[str, str], float]:
    """Return the seconds of prio for one report, of its best sample, by group and what is done."""
    found = {}
    for path in folder.glob("votes */prio/*/new/benchmark.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        sample = json.loads(path.with_name("sample.json").read_text(encoding="utf-8"))
        best = min(time / runs for time, runs in zip(sample["times"], sample["iters"], strict=True))
        reports = told["throughput"]["Elements"]
        found[told["group_id"], told["value_str"]] = best * 1e-9 / reports
    return found


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


def _sums(results: dict[tuple[str, str, str], dict[str, Any]]) -> list[str]:
    rates = {
        int(modulus): result["throughput"]["Elements"] / result["seconds"] / 1e9
        for (group, name, modulus), result in results.items()
        if group == SUMS and name == "sum"
    }
    if not rates:
        return []
    told = ", ".join(f"{rate:.2g} G modulo {modulus:,}" for modulus, rate in sorted(rates.items()))
    return [
        "Speed of adding up shares, on one core, with shares that fit in the cache, in elements a "
        f"second: {told}."
    ]


def _version(crate: str) -> str:
    """Return the version of a crate that the lock file names."""
    lock = Path(__file__).parents[1] / "Cargo.lock"
    match = re.search(rf'name = "{crate}"\nversion = "([^"]+)"', lock.read_text(encoding="utf-8"))
    return match.group(1) if match else "of unknown version"
