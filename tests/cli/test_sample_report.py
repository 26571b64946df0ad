"""``turnout sample-report``: what is printed and written, with an attacker and without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]

pytest.importorskip("sklearn")

STATED = (
    "-c", "age,sex", "--bounds", "age=17:91", "--labels", "sex=f,m", "--rows-are", "who",
)  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, turnout: Run) -> tuple[Path, Path]:
    real, drawn = tmp_path / "real.csv", tmp_path / "drawn.csv"
    rows = {
        "who": [f"p{number % 12}" for number in range(120)],
        "age": [20 + 5 * (number % 12) for number in range(120)],
        "sex": ["f" if number % 2 else "m" for number in range(120)],
    }
    arrow_csv.write_csv(pa.table(rows), real)
    assert turnout("sample", real, *STATED, "-e", "3", "-o", drawn, "--seed", "1").exit_code == 0
    return real, drawn


def test_the_attacker_is_tried_where_all_is_known(
    files: tuple[Path, Path], tmp_path: Path, turnout: Run
) -> None:
    page = tmp_path / "page.html"
    result = turnout("sample-report", *files, *STATED, "-e", "3", "-o", page, "--title", "Ages")
    assert result.exit_code == 0, result.stderr
    said = " ".join(result.stdout.split())
    assert "no attacker exceeds 95.3 %" in said
    assert "age, sex" in said
    assert "page.html" in said
    assert "<h1>Ages</h1>" in page.read_text("utf-8")
    found = json.loads(turnout("sample-report", *files, *STATED, "-e", "3", "--json").stdout)
    assert found["attack"]["people"] == 12
    assert 0.5 < found["attack"]["right"] <= 1.0
    assert {row["columns"] for row in found["distances"]} == {"age", "sex", "age, sex"}


def test_records_in_any_order_meet_their_person(files: tuple[Path, Path], turnout: Run) -> None:
    real, drawn = files
    table = arrow_csv.read_csv(drawn)
    arrow_csv.write_csv(table.take(list(range(len(table)))[::-1]), drawn.with_name("turned.csv"))
    each = [
        json.loads(turnout("sample-report", real, path, *STATED, "-e", "3", "--json").stdout)
        for path in (drawn, drawn.with_name("turned.csv"))
    ]
    assert each[0]["attack"] == each[1]["attack"]


@pytest.mark.parametrize("written", ["true,false", "True,False"])
def test_records_of_parquet_rows_may_be_csv(tmp_path: Path, turnout: Run, written: str) -> None:
    real, drawn, public = (tmp_path / name for name in ("real.parquet", "drawn.csv", "public.csv"))
    rows = {"who": [1, 2, 3] * 20, "n": [5, 7, None] * 20, "member": [True, False, None] * 20}
    pq.write_table(pa.table(rows), real)
    public.write_text("n,member\n5,True\n7,False\n")
    stated = (
        "-c", "n,member", "--labels", "n=5,7", "--labels", f"member={written}", "--rows-are", "who",
        "--missing", "keep", "-e", 2, "--reference", public,
    )  # fmt: skip
    result = turnout("sample", real, *stated, "-o", drawn)
    assert result.exit_code == 0, result.stderr
    result = turnout("sample-report", real, drawn, *stated, "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["attack"]["people"] == 3
    cells = [row["value"] for row in found["shares"]["member"]]
    assert cells == [*written.lower().split(","), "missing"]


def test_the_folder_of_a_job_says_whose_records_they_are(
    files: tuple[Path, Path], tmp_path: Path, turnout: Run
) -> None:
    real, _ = files
    folder = tmp_path / "records"
    assert turnout("sample", real, *STATED, "-e", 3, "-o", folder, "--seed", 1).exit_code == 0
    found = json.loads(turnout("sample-report", real, folder, *STATED, "-e", 3, "--json").stdout)
    assert found["attack"]["people"] == 12


def test_without_ids_or_epsilon_nobody_attacks(files: tuple[Path, Path], turnout: Run) -> None:
    real, drawn = files
    assert "not tried" in turnout("sample-report", real, drawn, *STATED).stdout
    plain = drawn.with_name("plain.csv")
    arrow_csv.write_csv(arrow_csv.read_csv(drawn).drop_columns(["who"]), plain)
    assert "not tried" in turnout("sample-report", real, plain, *STATED, "-e", "3").stdout


def test_what_does_not_fit_is_refused(files: tuple[Path, Path], turnout: Run) -> None:
    real, drawn = files
    twice = drawn.with_name("twice.csv")
    table = arrow_csv.read_csv(drawn)
    arrow_csv.write_csv(pa.concat_tables([table, table]), twice)
    result = turnout("sample-report", real, twice, *STATED, "-e", "3")
    assert result.exit_code == 1
    assert "one record for each person" in " ".join(result.stderr.split())
    fewer = drawn.with_name("fewer.csv")
    arrow_csv.write_csv(table.slice(1), fewer)
    result = turnout("sample-report", real, fewer, *STATED, "-e", "3")
    assert result.exit_code == 1
    assert "users must be those of the draws" in " ".join(result.stderr.split())
    for more in (("--records", "3"), ("--reference", real)):
        result = turnout("sample-report", real, drawn, *STATED, *more)
        assert result.exit_code == 2
        assert "needs --epsilon" in result.stderr
    before = real.read_bytes()
    assert turnout("sample-report", real, drawn, *STATED, "-o", real).exit_code == 2
    assert real.read_bytes() == before
