"""What the tests of the command line share."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from turnout.cli.app import app

ADULT_HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)


@pytest.fixture
def turnout(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command in this process; the result has exit_code, stdout, stderr."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    # How far a command is says a slow machine only: `turnout_process` shows it.
    monkeypatch.setattr("turnout._progress._PATIENCE", 1e6)

    def run(*arguments: object) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def turnout_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own, as a person would."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "turnout", *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=900,
            check=False,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        )

    return run


@pytest.fixture(scope="session")
def adult_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """UCI Adult, both parts, as one CSV file with a header and without spaces around fields."""
    given = os.environ.get("TURNOUT_DATA")
    folder = Path(given) if given else Path(__file__).parents[2].parent / "shared" / "data"
    parts = [folder / "adult.data.gz", folder / "adult.test.gz"]
    if not all(part.is_file() for part in parts):
        pytest.skip(
            f"the Adult data is not in {folder}: set TURNOUT_DATA to the folder with "
            "adult.data.gz and adult.test.gz"
        )
    path = tmp_path_factory.mktemp("adult") / "adult.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        file.write(ADULT_HEADER + "\n")
        for part in parts:
            with gzip.open(part, "rt", encoding="utf-8") as lines:
                rows = ([field.strip() for field in line.split(",")] for line in lines)
                writer.writerows(row for row in rows if len(row) == ADULT_HEADER.count(",") + 1)
    return path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A small file of answers: 300 never, 200 once, 100 often."""
    path = tmp_path / "people.csv"
    answers = ["never"] * 300 + ["once"] * 200 + ["often"] * 100
    path.write_text("id,answer\n" + "".join(f"{i},{a}\n" for i, a in enumerate(answers)))
    return path


@pytest.fixture
def tally_file(people: Path, tmp_path: Path, turnout: Callable[..., Any]) -> Path:
    """A tally of the small file at epsilon 2."""
    reports, tally = tmp_path / "reports.parquet", tmp_path / "answers.tally"
    labels = ("--labels", "never,once,often")
    turnout("randomize", people, "-c", "answer", "-e", 2, *labels, "-o", reports)
    turnout("tally", reports, "-o", tally)
    return tally


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Rows of three users in turn: far apart, so that draws tell them."""
    generator = np.random.default_rng(1)
    path = tmp_path / "visits.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "x", "y", "kind", "size"])
        for row in range(45):
            user = row % 3
            x, y = generator.normal((0.1 + 0.4 * user, 0.9 - 0.4 * user), 0.01)
            # The first user's kinds are all "a", the second's "b", the third's "c, d".
            kind = ("a", "b", "c, d")[user]
            writer.writerow([("zoe", "bob", "ann")[user], x, y, kind, user])
    return path
