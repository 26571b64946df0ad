"""``turnout tally``: merging, mismatched plans, broken files."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.texts import without_paths

import turnout as tn
from turnout.collecting.report_files import write_reports
from turnout.errors import InvalidValueError
from turnout.pipeline import open_reports

Run = Callable[..., Any]
LABELS = ["never", "once", "often"]


def make(
    path: Path,
    epsilon: float = 1.0,
    labels: list[str] | None = None,
    participation: Any = None,
    values: int = 50,
) -> Path:
    domain = tn.Domain(LABELS if labels is None else labels)
    oracle = tn.DirectEncoding(epsilon=epsilon, domain=domain)
    who = tn.Everyone() if participation is None else participation
    write_reports(oracle.randomize([domain.labels[0]] * values, participation=who), path)
    return path


def test_files_of_both_formats_add_up_to_the_tally_of_all(tmp_path: Path, turnout: Run) -> None:
    one, two = make(tmp_path / "one.parquet", values=40), make(tmp_path / "two.arrow", values=60)
    target = tmp_path / "all.tally"
    result = turnout("tally", one, two, "-o", target)
    assert result.exit_code == 0
    tally = tn.Tally.from_bytes(target.read_bytes())
    assert tally.nodes == 100
    assert int(tally.support.sum()) == tally.received == 100
    assert "files" in result.stdout
    assert max(map(len, without_paths(result.stdout))) <= 80


def test_tallies_can_be_tallied_again(tmp_path: Path, turnout: Run) -> None:
    parts = [make(tmp_path / f"{index}.parquet", values=10 + index) for index in range(3)]
    north, south, both = (tmp_path / f"{name}.tally" for name in ("north", "south", "both"))
    direct = tmp_path / "direct.tally"
    turnout("tally", *parts[:2], "-o", north)
    turnout("tally", parts[2], "-o", south)
    assert turnout("tally", north, south, "-o", both).exit_code == 0
    turnout("tally", *parts, "-o", direct)
    assert both.read_bytes() == direct.read_bytes()


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"epsilon": 2.0}, "epsilon 2.0 instead of 1.0"),
        (
            {"participation": tn.Bernoulli(0.5)},
            "participation Bernoulli(0.5) instead of Everyone",
        ),
        (
            {"labels": ["never", "once"]},
            "domain Domain(['never', 'once']) instead of Domain(['never', 'once', 'often'])",
        ),
        (
            {"labels": ["often", "once", "never"]},
            "domain Domain(['often', 'once', 'never']) instead of",
        ),
        ({"labels": ["never", "once", "x"]}, "domain Domain(['never', 'once', 'x']) instead of"),
    ],
)
def test_mismatched_plans_are_refused_naming_files_and_difference(
    tmp_path: Path, turnout: Run, other: dict[str, Any], difference: str
) -> None:
    one, two = make(tmp_path / "one.parquet"), make(tmp_path / "two.parquet", **other)
    target = tmp_path / "all.tally"
    result = turnout("tally", one, two, "-o", target)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {one} and {two} were made under different plans: ")
    assert difference in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not target.exists()


def test_a_file_given_twice_is_refused(tmp_path: Path, turnout: Run) -> None:
    one = make(tmp_path / "one.parquet")
    again = tmp_path / "." / "one.parquet"
    result = turnout("tally", one, again, "-o", tmp_path / "all.tally")
    assert result.exit_code == 1
    assert "is duplicated" in result.stderr


def test_a_broken_file_is_named(tmp_path: Path, turnout: Run) -> None:
    one, two = make(tmp_path / "one.parquet"), make(tmp_path / "two.parquet")
    data = bytearray(two.read_bytes())
    data[len(data) // 2] ^= 1
    two.write_bytes(data)
    target = tmp_path / "all.tally"
    result = turnout("tally", one, two, "-o", target)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {two}: ")
    assert not target.exists()


def test_a_broken_tally_is_named(tmp_path: Path, turnout: Run) -> None:
    one = make(tmp_path / "one.parquet")
    tally, target = tmp_path / "one.tally", tmp_path / "all.tally"
    turnout("tally", one, "-o", tally)
    tally.write_bytes(tally.read_bytes()[:-1])
    for command in (("tally", tally, "-o", target), ("estimate", tally)):
        result = turnout(*command)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"error: {tally}: ")
        assert not target.exists()


def test_an_input_is_not_overwritten(tmp_path: Path, turnout: Run) -> None:
    one = make(tmp_path / "one.parquet")
    before = one.read_bytes()
    result = turnout("tally", one, "-o", one)
    assert result.exit_code == 1
    assert "is an input" in result.stderr
    assert one.read_bytes() == before


def test_output_to_a_folder_is_refused(tmp_path: Path, turnout: Run) -> None:
    one = make(tmp_path / "one.parquet")
    result = turnout("tally", one, "-o", tmp_path)
    assert result.exit_code == 1
    assert "Is a directory" in result.stderr
    assert sorted(tmp_path.iterdir()) == [one]


def test_no_files_is_wrong_usage(tmp_path: Path, turnout: Run) -> None:
    assert turnout("tally", "-o", tmp_path / "x").exit_code == 2
    assert turnout("tally", tmp_path / "x.parquet").exit_code == 2


def test_a_missing_file_is_named(tmp_path: Path, turnout: Run) -> None:
    missing = tmp_path / "nowhere.parquet"
    result = turnout("tally", missing, "-o", tmp_path / "x")
    assert result.exit_code == 1
    assert result.stderr == f"error: {missing}: no such file or folder\n"


def test_reports_with_probabilities_of_their_own_go_the_whole_path(
    tmp_path: Path, turnout: Run
) -> None:
    rates = np.linspace(0.2, 1.0, 4000)
    parts = []
    for index, half in enumerate((rates[:2500], rates[2500:])):
        parts.append(tmp_path / f"{index}.parquet")
        make(parts[-1], epsilon=4.0, participation=tn.Personalized(half), values=half.size)
    target = tmp_path / "all.tally"
    result = turnout("tally", *parts, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert "each person with a probability of their own" in result.stdout
    answer = json.loads(turnout("estimate", target, "--json").stdout)
    assert answer["nodes"] == 4000
    never = next(record for record in answer["estimates"] if record["label"] == "never")
    # 5.2 standard errors: two-sided alpha of 2e-7.
    assert abs(never["frequency"] - 1) < 5.2 * never["standard_error"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_copy_of_a_file_of_reports_in_its_folder_is_refused(
    tmp_path: Path, turnout: Run, suffix: str
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    one = make(folder / f"one.{suffix}")
    shutil.copy(one, folder / f"two.{suffix}")
    target = tmp_path / "all.tally"
    result = turnout("tally", folder, "-o", target)
    assert result.exit_code == 1
    copy = folder / f"two.{suffix}"
    assert result.stderr.startswith(
        f"error: {copy}: contains the reports of {one}, or is a copy of it"
    )
    assert not target.exists()
    with pytest.raises(InvalidValueError, match="or is a copy of it"):
        list(open_reports(folder).batches())


def test_two_files_that_hold_the_same_reports_by_chance_both_count(
    tmp_path: Path, turnout: Run
) -> None:
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    folder = tmp_path / "reports"
    folder.mkdir()
    for name in ("one.parquet", "two.parquet", "three.arrow", "four.arrow"):
        write_reports(oracle.randomize(["no"], seed=1), folder / name)
    assert turnout("tally", folder, "-o", tmp_path / "all.tally").exit_code == 0
    assert tn.Tally.from_bytes((tmp_path / "all.tally").read_bytes()).received == 4


@pytest.mark.parametrize("command", ["tally", "report"])
def test_a_copy_of_a_tally_is_refused(tmp_path: Path, turnout: Run, command: str) -> None:
    one, two = tmp_path / "one.tally", tmp_path / "two.tally"
    turnout("tally", make(tmp_path / "one.parquet"), "-o", one)
    shutil.copy(one, two)
    target = tmp_path / "all.html"
    result = turnout(command, one, two, "-o", target)
    assert result.exit_code == 1
    assert f"{two}: contains reports that {one} also contains" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize("command", ["tally", "report"])
def test_a_sum_beside_one_of_its_parts_is_refused(
    tmp_path: Path, turnout: Run, command: str
) -> None:
    one, two, both = (tmp_path / f"{name}.tally" for name in ("one", "two", "both"))
    for tally in (one, two):
        turnout("tally", make(tally.with_suffix(".parquet")), "-o", tally)
    assert turnout("tally", one, two, "-o", both).exit_code == 0
    target = tmp_path / "all.html"
    result = turnout(command, two, both, "-o", target)
    assert result.exit_code == 1
    assert f"{both}: contains reports that {two} also contains" in result.stderr
    assert not target.exists()


def test_days_with_equal_counts_are_added_up(tmp_path: Path, turnout: Run) -> None:
    # Of few people many days have the same counts: 2,000 people of two answers, ten days, every
    # second time. Here all do.
    oracle = tn.DirectEncoding(1.0, ["no", "yes"])
    days = [tmp_path / f"{day}.tally" for day in range(3)]
    for path in days:
        path.write_bytes(oracle.tally_from_counts([2, 2], nodes=4).to_bytes())
    target = tmp_path / "all.tally"
    result = turnout("tally", *days, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert tn.Tally.from_bytes(target.read_bytes()).support.tolist() == [6, 6]
    assert turnout("tally", *days, days[0], "-o", target).exit_code == 1


def test_reports_that_were_tallied_twice_are_refused(tmp_path: Path, turnout: Run) -> None:
    reports = make(tmp_path / "reports.parquet")
    one, two = tmp_path / "one.tally", tmp_path / "two.tally"
    for tally in (one, two):
        assert turnout("tally", reports, "-o", tally).exit_code == 0
    result = turnout("tally", one, two, "-o", tmp_path / "all.tally")
    assert result.exit_code == 1
    assert f"{two}: contains reports that {one} also contains" in result.stderr


def test_tallies_of_nobody_are_no_copies(tmp_path: Path, turnout: Run) -> None:
    tallies = [tmp_path / f"{name}.tally" for name in ("north", "south")]
    for path in tallies:
        turnout("tally", make(path.with_suffix(".parquet"), values=0), "-o", path)
    assert turnout("tally", *tallies, "-o", tmp_path / "all.tally").exit_code == 0


def test_a_small_file_that_asks_for_much_is_refused_unless_it_is_allowed(
    tmp_path: Path, turnout: Run
) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "a.tally"
    write_reports(tn.DirectEncoding(1.0, 2**16).randomize([5], seed=1), path)
    result = turnout("tally", path, "--max-memory", "0.001", "-o", target)
    assert result.exit_code == 1
    assert "counts of 65,536 answers" in result.stderr
    assert not target.exists()
    assert turnout("tally", path, "--max-memory", "0.01", "-o", target).exit_code == 0
    assert turnout("tally", path, "--max-memory", "0", "-o", target).exit_code == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "arguments",
    [
        ["tally", "PIPE", "-o", "OUT"],
        ["estimate", "PIPE"],
        ["report", "PIPE", "-o", "OUT"],
        ["randomize", "ANSWERS", "--column", "answer", "--plan", "PIPE", "-o", "OUT.parquet"],
        ["randomize", "PIPE", "--column", "answer", "--plan", "PLAN", "-o", "OUT.parquet"],
    ],
)
def test_no_command_waits_for_a_pipe(tmp_path: Path, turnout: Run, arguments: list[str]) -> None:
    pipe = tmp_path / "pipe.csv" if arguments[1] == "PIPE" else tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    turnout("tally", make(tmp_path / "a.parquet"), "-o", tmp_path / "a.tally")
    (tmp_path / "answers.csv").write_text("answer\nno\nyes\n")
    plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])), tn.Everyone())
    plan.write(tmp_path / "plan.json")
    names = {
        "PIPE": pipe,
        "TALLY": tmp_path / "a.tally",
        "ANSWERS": tmp_path / "answers.csv",
        "PLAN": tmp_path / "plan.json",
        "OUT": tmp_path / "out.html",
        "OUT.parquet": tmp_path / "out.parquet",
    }
    # Whoever waits for it after all gets nothing to read and fails.
    writer = threading.Timer(5, lambda: os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)))
    writer.daemon = True
    writer.start()
    result = turnout(*(names.get(argument, argument) for argument in arguments))
    writer.cancel()
    assert result.exit_code == 1
    assert result.stderr == f"error: {pipe}: not a regular file\n"


def test_a_tally_beside_its_own_reports_is_refused(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.DirectEncoding(2.0, 3)
    for name, seed in (("one", 1), ("two", 2)):
        write_reports(oracle.randomize([0, 1, 2, 2], seed=seed), tmp_path / f"{name}.parquet")
    one, two, made = (tmp_path / name for name in ("one.parquet", "two.parquet", "one.tally"))
    assert turnout("tally", one, "-o", made).exit_code == 0
    target = tmp_path / "both.tally"
    result = turnout("tally", made, one, "-o", target)
    assert result.exit_code == 1
    assert f"{made}: contains reports that {one} also contains" in result.stderr
    assert not target.exists()
    mixed = turnout("tally", made, two, "-o", target)
    assert mixed.exit_code == 0
    assert tn.Tally.from_bytes(target.read_bytes()).received == 8


def test_improbable_reports_of_files_are_said(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.OptimizedUnaryEncoding(1.0, 64)
    honest = oracle.randomize([3] * 50, seed=1)
    path, target = tmp_path / "a.parquet", tmp_path / "a.tally"
    write_reports(honest, path)
    assert "honest devices" not in turnout("tally", path, "-o", target).stdout
    codes = honest.codes.copy()
    codes[:7] = 2**64 - 1
    write_reports(tn.Reports(oracle, tn.Everyone(), codes, 50), path)
    assert "7 counted reports" in turnout("tally", path, "-o", target).stdout
    answer = json.loads(turnout("tally", path, "-o", target, "--json").stdout)
    assert answer["improbable"] == 7
