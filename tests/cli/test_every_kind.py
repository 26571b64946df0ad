"""Every kind of question goes from a column to a page by commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.collecting.tally import read_tally

REFUSED = 1


def test_every_kind_has_commands(kinds: Any, turnout: Callable[..., Any], tmp_path: Path) -> None:
    found = {}
    for name, oracle in kinds.KINDS.items():
        folder = tmp_path / name
        folder.mkdir()
        table = kinds.table_of(oracle)
        pq.write_table(table, folder / "answers.parquet")
        tn.Plan(oracle, tn.Bernoulli(0.5)).write(folder / "plan.json")
        reports, tally = folder / "reports.parquet", folder / "all.tally"
        column = ["--column", table.column_names[0]] if table.num_columns == 1 else []
        done = turnout(
            "randomize", folder / "answers.parquet", *column,
            "--plan", folder / "plan.json", "--output", reports,
        )  # fmt: skip
        if done.exit_code == REFUSED:
            found[name, "commands"] = done.stderr.split("plan.json: ")[1].strip()
            continue
        made = [
            done,
            turnout("tally", reports, "--output", tally),
            turnout("estimate", tally, "--json"),
            turnout("report", tally, "--output", folder / "page.html"),
        ]
        assert [each.exit_code for each in made] == [0] * 4, (name, [each.stderr for each in made])
        counted = oracle.tally(read_reports(reports))
        assert read_tally(tally.read_bytes()) == counted
        assert json.loads(made[2].stdout)
        assert (folder / "page.html").stat().st_size > 1000
        found[name, "commands"] = "works"
    kinds.compare(found)
