"""Commands on answers that are collected level by level."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import turnout as tn

Run = Callable[..., Any]


def test_a_plan_of_levels_goes_from_a_column_to_quartiles_and_a_page(
    tmp_path: Path, turnout: Run
) -> None:
    ages = np.random.default_rng(3).binomial(99, 0.4, 6000)
    column = tmp_path / "ages.csv"
    column.write_text("age\n" + "\n".join(map(str, ages)) + "\n")
    plan, made = tmp_path / "plan.json", tmp_path / "reports.parquet"
    tn.Plan(tn.HierarchicalCollection(4.0, 100), tn.Bernoulli(0.9)).write(plan)
    done = turnout("randomize", column, "--column", "age", "--plan", plan, "-o", made, "--seed", 1)
    assert done.exit_code == 0, done.stderr
    assert turnout("tally", made, "-o", tmp_path / "ages.tally").exit_code == 0
    shown = turnout("estimate", tmp_path / "ages.tally")
    assert shown.exit_code == 0, shown.stderr
    assert "50 % up to" in shown.stdout
    answer = json.loads(turnout("estimate", tmp_path / "ages.tally", "--json").stdout)
    median = answer["quantiles"][1]
    assert median["low"] <= np.median(ages) <= median["high"]
    assert len(answer["estimates"]) > 0
    page = tmp_path / "page.html"
    assert turnout("report", tmp_path / "ages.tally", "-o", page).exit_code == 0
    assert "level 4: 100 runs of answers" in page.read_text(encoding="utf-8")
