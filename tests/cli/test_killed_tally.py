"""``turnout tally`` that is killed: its output is whole or absent, and again it is the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.collecting.report_files import write_reports
from turnout.collecting.tally import read_tally

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")

Run = Callable[..., Any]

PLAN = tn.Plan(tn.DirectEncoding(2.0, tn.Domain(["no", "yes"])), tn.Everyone())
MESSAGES = 400

#: Kills itself at the N-th call of a function, or half-way through it.
KILLED = """
import os, signal, sys, importlib
from turnout.cli import main
module, path, number = sys.argv[1], sys.argv[2].split("."), int(sys.argv[3])
holder = importlib.import_module(module)
for name in path[:-1]:
    holder = getattr(holder, name)
whole, calls = getattr(holder, path[-1]), 0
def killed(*arguments, **options):
    global calls
    calls += 1
    if calls == number:
        if path[-1] == "write_bytes":
            place, data = arguments
            whole(place, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **options)
setattr(holder, path[-1], killed)
sys.argv[1:] = sys.argv[4:]
main()
"""


def messages_of(folder: Path) -> list[Path]:
    """Two files of messages; what ends the first begins the second again."""
    sent = [PLAN.report("yes" if seed % 3 else "no", seed=seed) or b"" for seed in range(MESSAGES)]
    days = folder / "monday.jsonl", folder / "tuesday.jsonl"
    for path, some in zip(days, (sent[:250], sent[200:]), strict=True):
        path.write_bytes(b"".join(each + b"\n" for each in some))
    return list(days)


def reports_of(folder: Path) -> list[Path]:
    """Two files of reports."""
    paths = [folder / "monday.parquet", folder / "tuesday.arrow"]
    for seed, path in enumerate(paths):
        write_reports(PLAN.oracle.randomize(["yes", "no"] * 100, seed=seed), path)
    return paths


POINTS = {
    "output, half": ("pathlib", "Path.write_bytes", 1),
    "output, on its way": ("turnout._files", "_synchronise_file", 1),
    "output, whole": ("pathlib", "Path.replace", 1),
    "output, there": ("turnout._files", "synchronise_folder", 1),
}
OF_MESSAGES = {
    "first message": ("turnout.collecting.collector", "Collector.accept_many", 1),
    "second file": ("turnout.cli.messages", "open_regular", 2),
}
OF_REPORTS = {
    "first file": ("turnout.collecting.report_files", "ReportFile.batches", 1),
    "second file": ("turnout.collecting.report_files", "ReportFile.batches", 2),
}


@pytest.mark.parametrize(
    ("made", "point"),
    [
        *((messages_of, point) for point in (*POINTS, *OF_MESSAGES)),
        *((reports_of, point) for point in (*POINTS, *OF_REPORTS)),
    ],
)
@pytest.mark.parametrize("there", [False, True])
def test_output_is_whole_or_absent_and_the_same_again(
    made: Callable[[Path], list[Path]], point: str, there: bool, tmp_path: Path, turnout: Run
) -> None:
    sources = made(tmp_path)
    where = {**POINTS, **(OF_MESSAGES if made is messages_of else OF_REPORTS)}[point]
    plan, target, other = (tmp_path / name for name in ("plan.json", "a.tally", "b.tally"))
    PLAN.write(plan)
    options = ["--plan", plan] if made is messages_of else []
    assert turnout("tally", *sources, *options, "-o", other).exit_code == 0
    wanted, before = other.read_bytes(), b"what was there"
    if there:
        target.write_bytes(before)
    command = ["tally", *map(str, sources), *map(str, options), "-o", str(target)]
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, where), *command],
        env={**os.environ, "NO_COLOR": "1"}, timeout=600, check=False, capture_output=True,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    if point == "output, there":
        assert target.read_bytes() == wanted
    else:
        assert (target.read_bytes() if there else target.exists()) == (before if there else False)
    # What is left of it is hidden, and no input of a folder or a pattern.
    left = {path.name for path in tmp_path.iterdir()} - {"plan.json", "a.tally", "b.tally"}
    left -= {path.name for path in sources}
    assert all(name.startswith(".a.tally.") and name.endswith(".tmp") for name in left)
    assert turnout(*command).exit_code == 0
    assert target.read_bytes() == wanted


@pytest.mark.parametrize("by_file", [False, True])
def test_a_message_in_two_files_counts_once_in_the_first(
    by_file: bool, tmp_path: Path, turnout: Run
) -> None:
    monday, tuesday = messages_of(tmp_path)
    plan, target = tmp_path / "plan.json", tmp_path / "a.tally"
    PLAN.write(plan)
    more = ("--by-file", "day") if by_file else ()
    for first, second, numbers in ((monday, tuesday, (250, 150)), (tuesday, monday, (200, 200))):
        shown = turnout("tally", first, second, "--plan", plan, "-o", target, *more)
        assert "repeated 50," in " ".join(shown.stdout.split())
        data = target.read_bytes()
        tally = tn.GroupedTally.from_bytes(data) if by_file else read_tally(data)
        assert tally.received == MESSAGES
        if by_file:
            assert [tally[first.stem].received, tally[second.stem].received] == list(numbers)
    once = tmp_path / "once.jsonl"
    lines = dict.fromkeys((monday.read_bytes() + tuesday.read_bytes()).splitlines())
    once.write_bytes(b"\n".join(lines))
    assert turnout("tally", once, "--plan", plan, "-o", tmp_path / "b.tally").exit_code == 0
    alone = read_tally((tmp_path / "b.tally").read_bytes())
    together = tally.total if by_file else tally
    assert (together.support == alone.support).all()
