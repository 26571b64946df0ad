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
    tables = ["--table", "serving", "--table", "rounds"]
    command = [sys.executable, str(BENCHES / "compare.py"), *tables, "--quick"]
    subprocess.run(
        [*command, "--json", str(found), "--page", str(page)], check=True, capture_output=True
    )
    table, rounds = json.loads(found.read_text())["tables"]
    assert [row["job"] for row in table["rows"]] == [
        f"{load}, --keep {keep}"
        for load in ("batches of 100", "one a request")
        for keep in ("tally", "messages")
    ]
    assert all(row["to_rows"] > 0 and row["to_requests"] > 0 for row in table["rows"])
    assert "a row a message" in page.read_text()
    ((job, ratio),) = [(row["job"], row["ratio"]) for row in rounds["rows"]]
    assert job == "1,000 users, 30 items"
    assert ratio > 0


@pytest.mark.slow
def test_a_small_run_measures_training(tmp_path):
    pytest.importorskip("jax")
    found, page = tmp_path / "bench.json", tmp_path / "page.rst"
    command = [sys.executable, str(BENCHES / "compare.py"), "--table", "networks", "--quick"]
    subprocess.run(
        [*command, "--json", str(found), "--page", str(page)], check=True, capture_output=True
    )
    (table,) = json.loads(found.read_text())["tables"]
    rounds = [row for row in table["rows"] if row["job"].startswith("a round")]
    assert len(rounds) == 4
    # Trainings are measured where Opacus is installed.
    assert all(row["problem"] is None and row["ratio"] > 0 for row in table["rows"])


@pytest.mark.slow
def test_a_small_run_compares_votes_with_what_criterion_left(tmp_path):
    for group, what, reports in (
        ("votes shared", "one", 1),
        ("votes shared", "many", 10),
        ("votes verified", "many", 10),
    ):
        folder = tmp_path / "criterion" / group / "prio" / what / "new"
        folder.mkdir(parents=True)
        told = {"group_id": group, "function_id": "prio", "value_str": what}
        told["throughput"] = {"Elements": reports}
        (folder / "benchmark.json").write_text(json.dumps(told))
        (folder / "estimates.json").write_text(json.dumps({"mean": {"point_estimate": 3e9}}))
        # The best of two samples takes a second for each report.
        sample = {"iters": [1.0, 2.0], "times": [3e9 * reports, 2e9 * reports]}
        (folder / "sample.json").write_text(json.dumps(sample))
    found, page = tmp_path / "bench.json", tmp_path / "page.rst"
    command = [sys.executable, str(BENCHES / "compare.py"), "--table", "votes", "--quick"]
    more = ["--core", str(tmp_path / "criterion"), "--seconds", "0"]
    subprocess.run(
        [*command, *more, "--json", str(found), "--page", str(page)],
        check=True,
        capture_output=True,
    )
    (table,) = json.loads(found.read_text())["tables"]
    assert [row["problem"] for row in table["rows"]] == [None] * 5
    compared = [row for row in table["rows"] if row["prio_seconds"] is not None]
    assert [row["prio_seconds"] for row in compared] == [1.0] * 3
    assert [row["cells"][-1] for row in compared] == ["yes"] * 3
    assert "10,000,000 people costs: each of them sends 1,256 bytes" in " ".join(
        page.read_text().split()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sharing", "samplers", "accounting", "federated"])
def test_a_small_run_calls_turnout_in_every_row(name, tmp_path):
    found = tmp_path / "bench.json"
    command = [sys.executable, str(BENCHES / "compare.py"), "--table", name, "--seconds", "0"]
    subprocess.run([*command, "--quick", "--json", str(found)], check=True, capture_output=True)
    (table,) = json.loads(found.read_text())["tables"]
    # --quick leaves out the rows of programs that take seconds.
    timings = [one for row in table["rows"] for one in row["timings"]]
    own = [one["problem"] for one in timings if one["column"] == "turnout"]
    assert own == [None] * len(own) != []
