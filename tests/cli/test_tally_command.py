"""``turnout tally``: merging, mismatched plans, broken files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.report_files import write_reports

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
    assert max(map(len, result.stdout.splitlines())) <= 80


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
            "participation Bernoulli(0.5) instead of Everyone()",
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
    assert "given twice" in result.stderr


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
    assert result.stderr == f"error: {missing}: No such file or directory\n"


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
    assert "each node with its own probability" in result.stdout
    answer = json.loads(turnout("estimate", target, "--json").stdout)
    assert answer["nodes"] == 4000
    never = next(record for record in answer["estimates"] if record["label"] == "never")
    # 5.2 standard errors: two-sided alpha of 2e-7.
    assert abs(never["frequency"] - 1) < 5.2 * never["standard_error"]
