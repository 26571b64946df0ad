"""``turnout randomize``: notes and refusals about columns that are not what they seem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_missing_value_with_spaces_around_it_is_noted(tmp_path: Path, turnout: Run) -> None:
    source = write(tmp_path, "id,answer", "1, ?", "2, yes", "3, no")
    options = ("-c", "answer", "-e", 1, "--missing", "drop", "--overwrite")
    options = (*options, "-o", tmp_path / "out.parquet")
    result = turnout("randomize", source, *options, "--missing-value", "?")
    assert result.exit_code == 0
    assert "note: ' ?' is counted as a label: with spaces it is not '?'" in result.stderr
    assert "left out none" in " ".join(result.stdout.split())
    result = turnout("randomize", source, *options, "--missing-value", " ?")
    assert "counted as a label" not in result.stderr
    assert "1 without an answer" in result.stdout
    # The label of what is missing may be a text that stands for it elsewhere.
    options = ("-c", "answer", "-e", 1, "--missing", "NA", "--missing-value", " ?")
    result = turnout("randomize", source, *options, "-o", tmp_path / "other.parquet")
    assert result.exit_code == 0, result.stderr
    assert "counted as a label" not in result.stderr


def test_a_column_that_is_there_with_spaces_is_named(tmp_path: Path, turnout: Run) -> None:
    source = write(tmp_path, "id, Answer", "1,yes", "2,no")
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert "no column 'answer', but one ' Answer'; its columns are 'id', ' Answer'" in result.stderr


@pytest.mark.parametrize(
    ("lines", "found"), [((), "no answer"), (("1,yes", "2,yes"), "the one answer 'yes'")]
)
def test_a_column_without_two_answers_gives_no_labels(
    tmp_path: Path, turnout: Run, lines: tuple[str, ...], found: str
) -> None:
    source = write(tmp_path, "id,answer", *lines)
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert f"column 'answer' holds {found}, and labels are at least 2" in result.stderr


@pytest.mark.parametrize("output", ["out.parquet", "out"])
def test_groups_of_one_person_each_are_noted(tmp_path: Path, turnout: Run, output: str) -> None:
    lines = [f"{number},{number % 5},{'yes' if number % 3 else 'no'}" for number in range(200)]
    source = write(tmp_path, "id,region,answer", *lines)
    options = ("-c", "answer", "-e", 1, "-o", tmp_path / output)
    result = turnout("randomize", source, *options, "--group-by", "id")
    assert result.exit_code == 0
    assert "--group-by makes 200 groups of 200 people in" in result.stderr
    options = ("-c", "answer", "-e", 1, "-o", tmp_path / f"second-{output}")
    result = turnout("randomize", source, *options, "--group-by", "region")
    assert "--group-by makes" not in result.stderr
