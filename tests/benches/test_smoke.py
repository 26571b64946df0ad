"""A small run, and the page of it: so that a long one does not end in an error."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("rich", "pyarrow", "polars", "duckdb"):
    pytest.importorskip(name)

BENCHES = Path(__file__).parents[2] / "benches"


def test_a_small_run_measures_files_processes_and_limits(tmp_path):
    found, page = tmp_path / "bench.json", tmp_path / "page.rst"
    tables = [word for name in ("direct", "reading", "startup") for word in ("--table", name)]
    sizes = ["--nodes", "2e4", "--peer-nodes", "1e3", "--seconds", "0", "--no-memory", "--quick"]
    written = ["--json", str(found), "--page", str(page)]
    command = [sys.executable, str(BENCHES / "compare.py"), *tables, *sizes, *written]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"NO_COLOR": "1"})
    measured = {table["name"]: table for table in json.loads(found.read_text())["tables"]}
    assert measured.keys() == {"direct", "reading", "startup"}
    for row in [*measured["direct"]["rows"], *measured["reading"]["rows"]]:
        own = next(one for one in row["timings"] if one["column"] == "turnout")
        assert own["problem"] is None
    limits = [dict(zip(measured["direct"]["headings"], row["cells"], strict=True))["limit"]
              for row in measured["direct"]["rows"]]  # fmt: skip
    assert "-" not in limits
    both = [one for row in measured["reading"]["rows"] for one in row["timings"]]
    assert {one["column"] for one in both if one["problem"] is None} == {
        "turnout",
        "polars",
        "duckdb",
    }
    processes = {row["job"]: row for row in measured["startup"]["rows"]}
    assert all(row["peak_bytes"] > 0 for row in processes.values())
    assert "Memory of the job" in page.read_text()


@pytest.mark.slow
def test_a_small_run_measures_servers(tmp_path):
    pytest.importorskip("uvicorn")
    found, page = tmp_path / "bench.json", tmp_path / "page.rst"
    command = [sys.executable, str(BENCHES / "compare.py"), "--table", "serving", "--quick"]
    subprocess.run(
        [*command, "--json", str(found), "--page", str(page)], check=True, capture_output=True
    )
    (table,) = json.loads(found.read_text())["tables"]
    assert [row["job"] for row in table["rows"]] == [
        f"{load}, --keep {keep}"
        for load in ("batches of 100", "one a request")
        for keep in ("tally", "messages")
    ]
    assert all(row["to_rows"] > 0 and row["to_requests"] > 0 for row in table["rows"])
    assert "a row a message" in page.read_text()
