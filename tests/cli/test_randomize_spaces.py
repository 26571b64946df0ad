"""``turnout randomize`` on files with spaces after commas, and on columns without two answers."""

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
    options = ("-c", "answer", "-e", 1, "--missing", "drop", "-o", tmp_path / "out.parquet")
    result = turnout("randomize", source, *options, "--missing-value", "?")
    assert result.exit_code == 0
    assert "note: ' ?' is counted as a label: with spaces it is not the" in result.stderr
    assert "0 without an answer" in result.stdout
    result = turnout("randomize", source, *options, "--missing-value", " ?")
    assert "counted as a label" not in result.stderr
    assert "1 without an answer" in result.stdout


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
