"""``turnout survey`` shows what ``turnout.survey`` gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import turnout as tn


def table(rows: int) -> pl.DataFrame:
    random = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "vote": random.choice(["maybe", "no", "yes"], rows, p=[0.1, 0.6, 0.3]),
            "region": random.choice(["N", "S"], rows),
            "age": random.uniform(20, 80, rows).round(1),
        }
    )


def test_the_command_shows_the_same(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    table(3000).write_parquet(path)
    options = ("-c", "vote", "-e", 2, "-p", 0.5, "--seed", 1)
    found = json.loads(turnout("survey", path, *options, "--json").stdout)
    result = tn.survey(path, "vote", epsilon=2.0, participation=0.5, seed=1)
    assert [each["frequency"] for each in found["estimates"]] == [
        record["frequency"]
        for record in sorted(result.to_records(), key=lambda record: -record["frequency"])
    ]
    result = turnout("survey", path, *options, "--by", "region")
    shown = result.stdout
    assert shown.count("taken to be public") == 1
    assert "public" not in result.stderr
    assert "3,000 people were asked 'vote'" in shown
    assert "region" in shown
    number = json.loads(
        turnout("survey", path, "-c", "age", "-e", 2, "--mean", "0:100", "--json").stdout
    )
    assert number["low"] < number["mean"] < number["high"]
    refused = turnout("survey", path, "-c", "age", "-e", 2, "--mean", "0to9")
    assert refused.exit_code == 2
    assert "is not LOW:HIGH" in refused.stderr


def test_a_missing_number_is_read_as_another(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age\n" + 200 * "30\nNA\n")
    options = ("survey", path, "-c", "age", "-e", 2, "--mean", "0:120")
    assert "200 of 400 answers are missing" in turnout(*options).stderr
    assert "400 people were asked" in turnout(*options, "--missing", 25).stdout
    shown = turnout(*options, "--missing", "drop").stdout
    assert "200 people were asked" in shown
    assert "without an answer were left out" in shown
    assert turnout(*options, "--missing", "abc").exit_code == 1
