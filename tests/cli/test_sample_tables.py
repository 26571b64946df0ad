"""``turnout sample`` of columns of several types: what they hold, refusals, files, the law."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from scipy import stats

Run = Callable[..., Any]

# Chance that one of these tests fails although all is right.
ALPHA = 1e-6

#: Three people who are far from each other.
ROWS = {
    "who": ["zoe", "bob", "ann"] * 20,
    "age": [20, 50, 80] * 20,
    "sex": ["f", "m", "f"] * 20,
    "hours": [10.5, 40.5, 70.5] * 20,
    "day": [datetime.date(2024, month, 15) for month in (1, 6, 12)] * 20,
    "member": [True, False, True] * 20,
}

STATED = (
    "-c", "age,sex,hours,day,member", "--labels", "sex=f,m", "--labels", "member=true,false",
    "--bounds", "age=17:91,hours=1.0:100,day=2024-01-01:2024-12-31", "--rows-are", "who",
)  # fmt: skip


def written(folder: Path, suffix: str, **changed: list[Any]) -> Path:
    table = pa.table({**ROWS, **changed})
    path = folder / f"people{suffix}"
    if suffix == ".csv":
        arrow_csv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


def read(path: Path) -> Any:
    if path.suffix == ".csv":
        return arrow_csv.read_csv(path)
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with ipc.open_file(path) as reader:
        return reader.read_all()


def refused(result: Any, code: int = 1) -> str:
    assert result.exit_code == code, result.stdout
    return " ".join(result.stderr.replace("│", " ").split())


def test_numbers_and_labels_make_one_record(tmp_path: Path, turnout: Run) -> None:
    source, target = written(tmp_path, ".csv"), tmp_path / "records.csv"
    result = turnout(
        "sample", source, "--columns", "age,sex,hours", "--bounds", "age=17:91,hours=1:100.5",
        "--labels", "sex=f,m", "--epsilon", 2, "--rows-are", "who", "-o", target,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    shown = " ".join(result.stdout.split())
    for text in (
        "3 by 'who', with 60 rows",
        "age: a whole number from 17 to 91; sex: one of 2 labels; hours: a number from 1.0 to",
        "projection onto the mollifier of the uniform distribution, over 512 combinations",
    ):
        assert text in shown
    with target.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["who"] for row in rows] == ["ann", "bob", "zoe"]
    assert list(rows[0]) == ["who", "age", "sex", "hours"]
    for row in rows:
        assert 17 <= int(row["age"]) <= 91
        assert 1 <= float(row["hours"]) <= 100.5
        assert row["sex"] in {"f", "m"}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_of_every_format_give_the_same_records(
    tmp_path: Path, turnout: Run, suffix: str
) -> None:
    """At an epsilon of 40 records are those of their person, in the cells of the columns."""
    source, target = written(tmp_path, suffix), tmp_path / f"records{suffix}"
    options = (*STATED, "-e", 40, "--seed", 1, "-o", target)
    result = turnout("sample", source, *options)
    assert result.exit_code == 0, result.stderr
    assert "16,384 combinations" in " ".join(result.stdout.split())
    found = read(target)
    assert found.column_names == ["who", "age", "sex", "hours", "day", "member"]
    rows = found.to_pylist()
    assert [row["who"] for row in rows] == ["ann", "bob", "zoe"]
    for row, age, sex, hours, month in zip(
        rows, (80, 50, 20), "fmf", (70.5, 40.5, 10.5), (12, 6, 1), strict=True
    ):
        assert abs(row["age"] - age) < 75 / 8
        assert row["sex"] == sex
        assert abs(row["hours"] - hours) < 100 / 8
        assert abs(row["day"] - datetime.date(2024, month, 15)).days < 366 / 8
        assert str(row["member"]).lower() == str(sex == "f").lower()
    again = turnout("sample", source, *options)
    assert "already exists" in refused(again)
    assert read(target).equals(found)


def test_days_are_text_in_json(tmp_path: Path, turnout: Run) -> None:
    result = turnout("sample", written(tmp_path, ".parquet"), *STATED, "-e", 2, "--json")
    answer = json.loads(result.stdout)
    assert (answer["method"], answer["reference"]) == ("table", "uniform")
    for row in answer["records"]:
        assert datetime.date.fromisoformat(row["day"]).year == 2024
        assert isinstance(row["member"], bool)


def test_what_is_not_stated_is_named_column_by_column(tmp_path: Path, turnout: Run) -> None:
    source, target = written(tmp_path, ".csv"), tmp_path / "out.csv"
    common = ("sample", source, "-c", "age,sex,hours,day", "-e", 1, "-o", target)
    said = refused(turnout(*common), 2)
    for name in ("age", "sex", "hours", "day"):
        needed = f"--bounds {name}=LOW:HIGH (numbers or days) or --labels {name}=A,B,C"
        assert f"'{name}' needs {needed}" in said
    said = refused(turnout(*common, "--labels", "sex=f,m"), 2)
    assert "'sex' needs" not in said
    assert "'hours' needs --bounds hours=LOW:HIGH" in said
    for options in (("--bounds", "age=17:91"), ("--method", "table", "--bounds", "age=17:91")):
        said = refused(turnout(*common, *options), 2)
        for name in ("sex", "hours", "day"):
            assert f"'{name}' needs --bounds {name}=LOW:HIGH" in said
        assert "'age' needs" not in said
    both = ("--bounds", "age=17:91,sex=0:1", "--labels", "sex=f,m")
    said = refused(turnout(*common, *both), 2)
    assert "'sex' has bounds and labels: leave one of them out; 'hours' needs" in said
    assert not target.exists()


def test_values_that_cannot_be_are_counted_column_by_column_and_not_shown(
    tmp_path: Path, turnout: Run
) -> None:
    sexes = ["f", "m", "SECRET"] * 20
    days = ["2024-01-01", "2024-02-30", "2024-12-31 00:00:00"] * 20
    source = written(tmp_path, ".csv", sex=sexes, day=days, age=[20.5, 92, 50] * 20)
    result = turnout("sample", source, *STATED, "-e", 1)
    said = refused(result)
    for text in (
        "column 'age': 40 of 60 values are not a whole number from 17 to 91 (rows 1, 2, 4, 5, 7,",
        "bounds with a point ask for real numbers, as in --bounds age=0.0:99.0; column 'sex'",
        "column 'sex': 20 of 60 values are not one of the labels (rows 3, 6, 9, 12, 15, ...)",
        "column 'day': 20 of 60 values are not a date from 2024-01-01 to 2024-12-31 (rows 2, 5,",
    ):
        assert text in said
    for value in ("SECRET", "92", "02-30"):
        assert value not in said
    assert "column 'hours'" not in said
    assert result.stdout == ""


def test_missing_values_are_refused_left_out_or_kept(tmp_path: Path, turnout: Run) -> None:
    hours = [None, 40.5, 70.5] * 19 + [10.5, 40.5, 70.5]
    who = ["zoe", "bob", "ann"] * 19 + ["zoe", None, "ann"]
    source = written(tmp_path, ".parquet", hours=hours, sex=["f", None, "f"] * 20)
    result = turnout("sample", source, *STATED, "-e", 1)
    said = refused(result)
    for text in (
        "column 'hours': 19 of 60 values are missing (rows 1, 4, 7, 10, 13, ...)",
        "column 'sex': 20 of 60 values are missing (rows 2, 5, 8, 11, 14, ...)",
        "--missing drop leaves rows out, keep makes missing values a value",
    ):
        assert text in said
    kept = turnout("sample", source, *STATED, "-e", 40, "--missing", "keep", "--json", "--seed", 1)
    rows = {row["who"]: row for row in json.loads(kept.stdout)["records"]}
    assert rows["bob"]["sex"] is None
    assert rows["ann"]["sex"] == "f"
    left = turnout("sample", source, *STATED, "-e", 40, "--missing", "drop", "--json")
    answer = json.loads(left.stdout)
    assert [row["who"] for row in answer["records"]] == ["ann", "zoe"]
    assert "Users without a complete row have no record" in answer["guarantee"]
    source = written(tmp_path, ".parquet", who=who)
    said = refused(turnout("sample", source, *STATED, "-e", 1, "--missing", "keep"))
    assert "column 'who': 1 of 60 users are missing (row 59)" in said
    path = tmp_path / "out.csv"
    result = turnout("sample", source, *STATED, "-e", 1, "--missing", "drop", "-o", path)
    assert "1 rows with something missing" in result.stdout
    for wrong in ("none", "f"):
        said = refused(turnout("sample", source, *STATED, "-e", 1, "--missing", wrong), 2)
        assert "is drop or keep" in said


@pytest.mark.parametrize("nobody", [0, 1, 59])
@pytest.mark.parametrize("names", [["zoe", "bob", "ann"], [30, 20, 10]])
def test_rows_of_nobody_leave_the_others_theirs(
    tmp_path: Path, turnout: Run, nobody: int, names: list[Any]
) -> None:
    who: list[Any] = names * 20
    who[nobody] = None
    source = written(tmp_path, ".parquet", who=who)
    # Of one record and 32 combinations of cells any other one has a chance of about e^-40.
    result = turnout(
        "sample", source, "-c", "age,sex", "--bounds", "age=17:91", "--labels", "sex=f,m",
        "--rows-are", "who", "--records", 1, "-e", 40, "--missing", "drop", "--json",
    )  # fmt: skip
    rows = {row["who"]: row["age"] for row in json.loads(result.stdout)["records"]}
    assert list(rows) == sorted(names)
    for name, age in zip(names, (20, 50, 80), strict=True):
        assert abs(rows[name] - age) < 75 / 8


def test_without_ids_records_are_sorted(tmp_path: Path, turnout: Run) -> None:
    source = written(tmp_path, ".parquet", sex=["f", None, "f"] * 20)
    result = turnout("sample", source, *STATED, "-e", 40, "--missing", "keep", "--no-ids", "--json")
    rows = json.loads(result.stdout)["records"]
    assert "who" not in rows[0]
    ages = [row["age"] for row in rows]
    assert ages == sorted(ages)


def test_rows_that_are_users_are_randomized_responses(tmp_path: Path, turnout: Run) -> None:
    """One row and few cells: the own one with e^eps / (e^eps + 5), all others alike."""
    number = 4000
    path = tmp_path / "in.csv"
    rows = [(place % 3, "fm"[place % 2]) for place in range(number)]
    path.write_text("n,sex\n" + "".join(f"{n},{sex}\n" for n, sex in rows))
    result = turnout(
        "sample", path, "-c", "n,sex", "--bounds", "n=0:2", "--labels", "sex=f,m", "-e", 1,
        "--seed", 3, "--json",
    )  # fmt: skip
    drawn = json.loads(result.stdout)["records"]
    assert [row["row"] for row in drawn] == list(range(1, number + 1))
    apart = np.array(
        [
            (row["n"] - n) % 3 * 2 + (row["sex"] != sex)
            for row, (n, sex) in zip(drawn, rows, strict=True)
        ]
    )
    counts = np.bincount(apart, minlength=6)
    chance = np.e / (np.e + 5)
    assert stats.binomtest(int(counts[0]), number, chance).pvalue > ALPHA
    assert stats.chisquare(counts[1:]).pvalue > ALPHA


def test_more_labels_than_a_table_takes_need_another_method(tmp_path: Path, turnout: Run) -> None:
    source, labels = tmp_path / "in.csv", tmp_path / "labels.txt"
    source.write_text("place\n1\n4999\n")
    labels.write_text("".join(f"{place}\n" for place in range(5000)))
    options = ("sample", source, "-c", "place", "--labels-file", labels, "-e", 1)
    said = refused(turnout(*options), 2)
    assert "'place' has 5,000, and --method table takes at most 4,096" in said
    assert turnout(*options, "--method", "minimax").exit_code == 0


def test_values_in_another_form_are_refused_with_a_remedy(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.csv"
    path.write_text('pay,day,sex\n"12,000",2024-01-05,f\n7,05/01/2024,m\n', encoding="utf-8-sig")
    options = ("--bounds", "pay=0:20000,day=2024-01-01:2024-12-31", "--labels", "sex=f,m")
    said = refused(turnout("sample", path, "-c", "pay,day,sex", *options, "-e", 1))
    assert "column 'pay': 1 of 2 values are not a whole number" in said
    assert "(row 1); remove the marks between thousands: 12000, not 12,000" in said
    assert "(row 2); write days as 2024-12-31" in said
    assert "05/01" not in said
    path.write_text("pay,day,sex\nmuch,2024-01-05,f\n7,2025-01-05,m\n", encoding="utf-8")
    said = refused(turnout("sample", path, "-c", "pay,day,sex", *options, "-e", 1))
    assert "remove the marks" not in said
    assert "write days" not in said


def test_records_are_drawn_around_public_rows_of_any_format(tmp_path: Path, turnout: Run) -> None:
    public = tmp_path / "public.csv"
    public.write_text("sex,age,more\n" + "f,60,x\n" * 500 + "m,30,x\n" * 500 + ",40,\n")
    source = written(tmp_path, ".parquet", who=list(range(60)))
    options = (
        "-c", "age,sex", "--bounds", "age=17:91", "--labels", "sex=f,m", "-e", 0.01,
        "--rows-are", "who", "--reference",
    )  # fmt: skip
    answer = json.loads(turnout("sample", source, *options, public, "--json", "--seed", 1).stdout)
    near = [abs(row["age"] - (60 if row["sex"] == "f" else 30)) < 6 for row in answer["records"]]
    assert sum(near) > 45
    assert answer["reference"] == str(public)
    public.write_text("sex,age\nf,6000\n")
    said = refused(turnout("sample", source, *options, public))
    assert "--reference: public.csv: column 'age': 1 of 1 values are not a whole number" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--round",), "--round: is for --method density: bounds without a point"),
        (("--plot", "a.png"), "--plot: is not for --method table: turnout sample-report draws"),
        (("--quality",), "--quality: is not for --method table: turnout sample-report compares"),
        (("--method", "density"), "density is not for days"),
        (("--labels", "age=1"), "'age' has bounds and labels"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, turnout: Run, options: tuple[object, ...], message: str
) -> None:
    said = refused(turnout("sample", written(tmp_path, ".csv"), *STATED, "-e", 1, *options), 2)
    assert message in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bounds", "day=2024-02-30:2024-03-01"), "in no calendar"),
        (("--bounds", "day=2024-03-01:2024-03-01"), "a first day before the last"),
        (("--bounds", "day=1:0"), "--bounds: 'day'"),
        (("--bounds", "day=0:9", "--labels", "sex=f"), "'sex' needs at least two"),
    ],
)
def test_wrong_bounds(
    tmp_path: Path, turnout: Run, options: tuple[object, ...], message: str
) -> None:
    source = written(tmp_path, ".csv")
    assert message in refused(turnout("sample", source, "-c", "day,sex", "-e", 1, *options), 2)


def test_progress_is_said_where_errors_go_to_a_file(
    tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout._progress._PATIENCE", 0.0)
    monkeypatch.setattr("turnout._progress._BETWEEN", 0.0)
    result = turnout("sample", written(tmp_path, ".csv"), *STATED, "-e", 1, "--json")
    assert "drawing: 0 of 3\n" in result.stderr
    assert "drawing: 3 of 3\n" in result.stderr


def test_shares_are_estimated_where_everybody_holds_one_value(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "people.csv"
    rows = {"who": range(120), "age": [20, 50, 80] * 40, "sex": ["f", "m", "f"] * 40}
    arrow_csv.write_csv(pa.table({name: list(column) for name, column in rows.items()}), path)
    stated = (
        "-c", "age,sex", "--bounds", "age=17:91", "--labels", "sex=f,m", "--rows-are", "who",
        "-e", "4", "--assume", "one-value", "--seed", "1",
    )  # fmt: skip
    found = json.loads(turnout("sample", path, *stated, "--json").stdout)["estimates"]
    share = {row["value"]: row for row in found if row["column"] == "sex"}["f"]
    assert share["low"] <= 2 / 3 <= share["high"]
    result = turnout("sample", path, *stated, "-o", tmp_path / "records.csv")
    assert "of all people" in result.stdout
    assert "This assumes that every person holds one value" in result.stdout
    assert "more than one" not in result.stderr
    rows = {"who": [1, 1, 2, 2], "age": [20, 20, 30, 31], "sex": ["f", "f", "m", "m"]}
    arrow_csv.write_csv(pa.table(rows), path)
    assert "1 users hold more than one" in turnout("sample", path, *stated).stderr


def test_a_folder_is_a_job_that_goes_on(tmp_path: Path, turnout: Run) -> None:
    source, folder = written(tmp_path, ".csv"), tmp_path / "records"
    result = turnout("sample", source, *STATED, "-e", 2, "-o", folder)
    assert result.exit_code == 0, result.stderr
    table = pq.read_table(folder / "part-00000.parquet")
    assert table.column_names == ["user", "age", "sex", "hours", "day", "member"]
    assert table.column("user").to_pylist() == ["ann", "bob", "zoe"]
    assert "holds a job, which is complete" in refused(
        turnout("sample", source, *STATED, "-e", 2, "-o", folder)
    )
    again = turnout("sample", source, *STATED, "-e", 2, "-o", folder, "--resume")
    assert "already complete" in again.stderr
    assert pq.read_table(folder / "part-00000.parquet").equals(table)
    assert "was begun with records of age" in refused(
        turnout("sample", source, *STATED, "-e", 1, "-o", folder, "--resume")
    )
    for more, message in (
        (("-o", tmp_path / "other", "--no-ids"), "--no-ids"),
        (("-o", tmp_path / "other", "--overwrite"), "--overwrite: needs a file"),
        (("-o", tmp_path / "other.csv", "--resume"), "--resume: needs a folder"),
    ):
        assert message in refused(turnout("sample", source, *STATED, "-e", 2, *more), 2)
    numbers = ("-c", "age", "--rows-are", "who", "-e", 2, "--method", "density")
    said = refused(turnout("sample", source, *numbers, "-o", tmp_path / "other"), 2)
    assert "is for --method table" in said


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_times_bins_and_ordered_labels_are_stated(
    tmp_path: Path, turnout: Run, suffix: str
) -> None:
    times = [datetime.datetime(2024, 3, 1, hour, 15, 30) for hour in (8, 12, 20)] * 20
    source = written(tmp_path, suffix, seen=times, size=["S", "M", "L"] * 20)
    options = (
        "-c", "seen,size,age", "--bounds", "seen=2024-03-01T00:00:2024-03-01T23:59:59,age=17:91",
        "--labels", "size=S,M,L", "--ordered", "size", "--bins", "seen=24, age=75",
        "--rows-are", "who", "-e", 30, "--seed", "1",
    )  # fmt: skip
    target = tmp_path / "records.parquet"
    result = turnout("sample", source, *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    rows = {row["who"]: row for row in pq.read_table(target).to_pylist()}
    # A cell is an hour, or a year; neighbours are near.
    assert rows["zoe"]["seen"].hour == 8
    assert rows["ann"]["seen"].hour == 20
    near = [abs(rows[who]["age"] - age) for who, age in (("zoe", 20), ("bob", 50), ("ann", 80))]
    assert max(near) < 4
    for more, message in (
        (("--ordered", "age"), "--ordered: 'age' needs --labels age=A,B,C"),
        (("--ordered", "height"), "--ordered: 'height' is none of --columns"),
        (("--bins", "size=3"), "--bins: 'size' needs --bounds size=LOW:HIGH"),
        (("--bins", "age=1"), "--bins: 'age': '1' must be a number of cells from 2"),
        (("--bounds", "seen=2024-03-01T25:00:2024-03-02T00:00,age=17:91"), "on no clock"),
        (("--bounds", "seen=2024-03-02T00:00:2024-03-01T00:00,age=17:91"), "before the last"),
    ):
        assert message in refused(turnout("sample", source, *options, *more), 2)
    alone = ("-c", "age", "-m", "density", "--bounds", "age=17:91", "-e", 1, "--bins", "age=5")
    assert "--bins: is for --method table" in refused(turnout("sample", source, *alone), 2)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_large_whole_numbers_may_be_real_or_whole(
    tmp_path: Path, turnout: Run, suffix: str
) -> None:
    source = written(tmp_path, suffix, big=[2**60 + 2**54 + 1, 2**61 - 1, 2**62 - 3] * 20)
    options = ("sample", source, "-c", "big", "--rows-are", "who", "-e", 40, "--records", 1)
    for bounds, kind in ((f"{2**60}:{2**62}", int), (f"{2**60}.0:{2**62}", float)):
        result = turnout(*options, "--bounds", f"big={bounds}", "--json")
        drawn = json.loads(result.stdout)["records"]
        assert [type(row["big"]) for row in drawn] == [kind] * 3
        # Of one column and 16 cells any other one has a chance of about e^-37.
        assert drawn[0]["big"] > 2**61 + 2**60 > drawn[2]["big"]
    said = refused(turnout(*options, "--bounds", f"big={2**60}:{2**62 + 1}"), 2)
    assert "'big' must have whole numbers from -2^62 to 2^62; bounds with a point ask" in said
