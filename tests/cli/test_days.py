"""Days of people who keep permanent answers, from files to results: intervals hold the truth."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.report_files import write_reports
from turnout.collecting.tally import read_tally
from turnout.frequency.longitudinal import Memoized

Run = Callable[..., Any]

KEPT = Memoized(tn.DirectEncoding(3.0, ["a", "b"]), first_epsilon=2.5)
PLAN = tn.Plan(KEPT, tn.Everyone())
DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
PEOPLE = 30


def rounds(path: Path) -> list[int]:
    """The sizes of the rounds of a tally, or of the total of one by groups."""
    data = path.read_bytes()
    grouped = data.startswith(b"\x89GROUP")
    tally = tn.GroupedTally.from_bytes(data).total if grouped else read_tally(data)
    return sorted(size for _, size in tally.origin.rounds.sizes)


def answers(nodes: int, seed: int) -> Any:
    secrets = np.random.default_rng(seed).integers(0, 256, (nodes, 32), np.uint8)
    return KEPT.permanent_answers(
        ["a"] * (nodes * 2 // 3) + ["b"] * (nodes - nodes * 2 // 3), secrets
    )


def write_days(folder: Path, kind: str, days: list[str] = DAYS, seed: int = 1) -> list[Path]:
    """A file for each day, of the same people."""
    written, kept = [], answers(PEOPLE, seed)
    clients = [KEPT.client() for _ in range(PEOPLE)] if kind == "jsonl" else []
    for number, day in enumerate(days):
        path = folder / f"{day}.{kind}"
        reports = KEPT.report(kept, seed=100 * seed + number)
        if kind == "jsonl":
            path.write_bytes(b"".join((each.message(PLAN, "a") or b"") + b"\n" for each in clients))
        elif kind == "tally":
            path.write_bytes(KEPT.tally(reports).to_bytes())
        else:
            write_reports(reports, path)
        written.append(path)
    return written


@pytest.mark.parametrize("kind", ["jsonl", "tally", "parquet"])
@pytest.mark.parametrize("grouped", [False, True])
def test_days_know_that_their_people_may_be_the_same(
    kind: str, grouped: bool, tmp_path: Path, turnout: Run
) -> None:
    files, plan = write_days(tmp_path, kind), tmp_path / "plan.json"
    PLAN.write(plan)
    options = ["--by-file", "day"] if grouped else []
    options += ["--plan", plan] if kind == "jsonl" else []
    for flags, expected in (([], [PEOPLE] * 3), (["--different-people"], [3 * PEOPLE])):
        target = tmp_path / f"all{len(flags)}.week"
        result = turnout("tally", *files, "-o", target, *options, *flags)
        assert result.exit_code == 0, result.stderr
        assert rounds(target) == expected


def test_folders_of_regions_and_days(tmp_path: Path, turnout: Run) -> None:
    for place, region in enumerate(("north", "south")):
        folder = tmp_path / f"region={region}"
        folder.mkdir()
        write_days(folder, "parquet", seed=place)
    every = tmp_path / "every.tally"
    assert turnout("tally", tmp_path, "--group-by", "region", "-o", every).exit_code == 0
    regions = tn.GroupedTally.from_bytes(every.read_bytes())
    assert [len(tally.origin.rounds.sizes) for tally in regions.values()] == [3, 3]
    # Nobody said that regions have different people: six rounds.
    assert rounds(every) == [PEOPLE] * 6
    parts = []
    for region in ("north", "south"):
        parts.append(tmp_path / f"{region}.tally")
        assert turnout("tally", tmp_path / f"region={region}", "-o", parts[-1]).exit_code == 0
    both = tmp_path / "both.tally"
    assert turnout("tally", *parts, "--different-people", "-o", both).exit_code == 0
    assert rounds(both) == [2 * PEOPLE] * 3


def limits_by_command(files: list[Path], folder: Path, turnout: Run, *flags: str) -> Any:
    target = folder / "sum.tally"
    turnout("tally", *files, "-o", target, *flags)
    shown = json.loads(turnout("estimate", target, "--json").stdout)["estimates"]
    return {row["label"]: (row["low"], row["high"]) for row in shown}


def limits_by_table(files: list[Path], folder: Path, turnout: Run, *flags: str) -> Any:
    target = folder / "shares.csv"
    turnout("report", *files, "-o", target, *flags)
    rows = [line.split(",") for line in target.read_text(encoding="utf-8").splitlines()[1:] if line]
    return {row[0].strip('"'): (float(row[-2]), float(row[-1])) for row in rows}


def limits_by_calls(files: list[Path], folder: Path, turnout: Run, *flags: str) -> Any:
    tally = tn.pipeline.tally(files, same_people=not flags)
    found = tally.estimate().interval()
    return dict(zip(["a", "b"], zip(found.low, found.high, strict=True), strict=True))


ROADS = {
    "tally and estimate": ("tally", limits_by_command),
    "report": ("tally", limits_by_table),
    "pipeline": ("parquet", limits_by_calls),
}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("people", ["one day", "the same", "others"])
def test_intervals_hold_from_file_to_result(
    road: str, people: str, tmp_path: Path, turnout: Run, statistical: ModuleType
) -> None:
    kind, limits = ROADS[road]
    held, trials, narrow = 0, 60, 0
    days = [str(day) for day in range(1 if people == "one day" else 16)]
    for seed in range(trials):
        if people == "others":
            files = [
                write_days(tmp_path, kind, [day], 1000 * seed + place)[0]
                for place, day in enumerate(days)
            ]
        else:
            files = write_days(tmp_path, kind, days, seed)
        flags = ["--different-people"] if people == "others" else []
        low, high = limits(files, tmp_path, turnout, *flags)["a"]
        held += low <= 2 / 3 <= high
        if people == "the same":
            low, high = limits(files, tmp_path, turnout, "--different-people")["a"]
            narrow += low <= 2 / 3 <= high
    statistical.check_share([held], trials, 0.93, 0.97)
    if people == "the same":
        # As they were before days knew of each other.
        with pytest.raises(AssertionError):
            statistical.check_share([narrow], trials, 0.93, 0.97)
