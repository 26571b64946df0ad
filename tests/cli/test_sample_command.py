"""``turnout sample``: numbers and labels, whose rows, files, refusals, the law of the records."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tests.texts import without_paths

pytest.importorskip("sklearn")

Run = Callable[..., Any]

# Chance that one of these tests fails although all is right. Randomness is fresh in every run.
ALPHA = 1e-6


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def only_line(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, text
    return lines[0]


DENSITY = ("--method", "density")
MINIMAX = ("--method", "minimax")
BOX = ("--bounds", "x=0:1,y=0:1", *DENSITY)


def test_one_record_for_each_user(visits: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "records.csv"
    result = turnout(
        "sample", visits, "-c", "x,y", "-e", 1, "--rows-are", "who", *BOX, "-o", target
    )
    assert result.exit_code == 0, result.stderr
    said = ("3 by 'who', with 45 rows", "mollified density", "e^1.0 = 2.719", "The ids show who")
    for text in said:
        assert text in " ".join(result.stdout.split())
    assert result.stderr == ""
    assert max(map(len, without_paths(result.stdout))) <= 80
    found = rows_of(target)
    assert [row["who"] for row in found] == ["ann", "bob", "zoe"]
    assert all(0 <= float(row[name]) <= 1 for row in found for name in "xy")
    assert list(found[0]) == ["who", "x", "y"]


def test_records_are_those_of_their_user(visits: Path, turnout: Run) -> None:
    # At an epsilon this large the law of a draw is close to the user's own.
    result = turnout("sample", visits, "-c", "y,x", "-e", 14, "--rows-are", "who", *BOX, "--json")
    answer = json.loads(result.stdout)
    assert (answer["method"], answer["users"]) == ("density", 3)
    assert answer["reference"] == "Uniform([0.0, 0.0], [1.0, 1.0])"
    assert [row["who"] for row in answer["records"]] == ["ann", "bob", "zoe"]
    for user, row in enumerate(reversed(answer["records"])):
        assert row["x"] == pytest.approx(0.1 + 0.4 * user, abs=0.15)
        assert row["y"] == pytest.approx(0.9 - 0.4 * user, abs=0.15)


def test_labels_are_those_of_their_user(visits: Path, tmp_path: Path, turnout: Run) -> None:
    for method in ("minimax", "randomized-response", "mollifier"):
        target = tmp_path / f"{method}.parquet"
        result = turnout(
            "sample", visits, "-c", "kind,size", "-e", 42, "--rows-are", "who", "-o", target,
            "--method", method, "--labels", "size=2,1,0",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        assert "3 x 3 labels, 9 combinations" in result.stdout
        # Those of size are stated.
        assert result.stderr.count("note: the 3 labels of column 'kind' are taken") == 1
        assert result.stderr.count("note:") == 1
        assert "--labels kind=A,B,C" in result.stderr
        said = "The labels of column 'kind' are taken from the data as public."
        assert said in " ".join(result.stdout.split())
        # The mollifier at epsilon 42 gives other labels a chance of e^-21 each.
        assert pq.read_table(target).to_pylist() == [
            {"who": "ann", "kind": "c, d", "size": 2},
            {"who": "bob", "kind": "b", "size": 1},
            {"who": "zoe", "kind": "a", "size": 0},
        ]


def test_combinations_of_labels_are_never_mixed_up(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.csv"
    # Joined by commas both would read alike.
    path.write_text('id,p,q\n1,"a, b",c\n2,a,"b, c"\n3,"a\\",b\n', encoding="utf-8")
    result = turnout("sample", path, "-c", "p,q", "-e", 42, "--rows-are", "id", "--json", *MINIMAX)
    assert json.loads(result.stdout)["records"] == [
        {"id": 1, "p": "a, b", "q": "c"},
        {"id": 2, "p": "a", "q": "b, c"},
        {"id": 3, "p": "a\\", "q": "b"},
    ]


@pytest.mark.parametrize("method", ["minimax", "randomized-response"])
def test_the_law_of_labels_on_gowalla(turnout: Run, tmp_path: Path, method: str) -> None:
    given = os.environ.get("TURNOUT_DATA")
    folder = Path(given) if given else Path(__file__).parents[2].parent / "shared" / "data"
    source = folder / "gowalla_user_cell.csv"
    if not source.is_file():
        pytest.skip(f"gowalla_user_cell.csv is not in {folder}: set TURNOUT_DATA to its folder")
    target = tmp_path / "cells.csv"
    result = turnout(
        "sample", source, "-c", "cell", "-e", 1, "--rows-are", "user_id", "-o", target,
        "--labels", ",".join(map(str, range(12))), "--method", method,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    true = np.array([[int(row["user_id"]), int(row["cell"])] for row in rows_of(source)])
    drawn = np.array([[int(row["user_id"]), int(row["cell"])] for row in rows_of(target)])
    assert (true[:, 0] == drawn[:, 0]).all()
    # Every user has one cell: both samplers are 12-ary randomized response.
    own = int((true[:, 1] == drawn[:, 1]).sum())
    chance = np.e / (np.e + 11)
    assert stats.binomtest(own, len(true), chance).pvalue > ALPHA / 2
    # The other eleven cells are equally likely, whatever the own one.
    others = np.bincount((drawn - true)[:, 1] % 12, minlength=12)[1:]
    assert stats.chisquare(others).pvalue > ALPHA / 2


def test_numbers_of_adult_by_country(adult_csv: Path, tmp_path: Path, turnout: Run) -> None:
    everyone = rows_of(adult_csv)
    sizes = Counter(row["native-country"] for row in everyone)
    rows = [row for row in everyone if sizes[row["native-country"]] < 60]
    rows += [row for row in everyone if row["native-country"] == "?"][:7]
    source, target = tmp_path / "abroad.csv", tmp_path / "records.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    result = turnout(
        "sample", source, "-c", "age,hours-per-week", "-e", 2, "--rows-are", "native-country",
        "--bounds", "age=17:90,hours-per-week=1:99", "--round", "-o", target, "--missing", "drop",
        "--missing-value", "?", "--plot", tmp_path / "picture.png", "--seed", 5, *DENSITY,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    countries = {row["native-country"] for row in rows} - {"?"}
    assert "7 rows with something missing" in result.stdout
    assert "The picture:" in result.stdout
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    found = rows_of(target)
    assert len(found) == len(countries)
    assert {row["native-country"] for row in found} == countries
    assert all(17 <= int(row["age"]) <= 90 for row in found)
    assert all(1 <= int(row["hours-per-week"]) <= 99 for row in found)


def test_labels_of_adult_by_occupation(adult_csv: Path, turnout: Run) -> None:
    result = turnout(
        "sample",
        adult_csv,
        "-c",
        "sex,race",
        "-e",
        1,
        "--rows-are",
        "occupation",
        "--json",
        "--method",
        "mollifier",
    )
    answer = json.loads(result.stdout)
    assert answer["users"] == len({row["occupation"] for row in rows_of(adult_csv)})
    # How many rows somebody has is private: it does not go along with the records.
    assert not {"rows", "dropped"} & set(answer)
    for record in answer["records"]:
        assert record["sex"] in {"Male", "Female"}
        assert record["race"] in {row["race"] for row in rows_of(adult_csv)}


def test_without_an_output_records_are_csv_on_standard_output(visits: Path, turnout: Run) -> None:
    result = turnout("sample", visits, "-c", "x", "-e", 1, "--rows-are", "who", *DENSITY)
    assert result.exit_code == 0
    assert "note: without --bounds records are drawn around the standard normal" in result.stderr
    assert "they will be numbers of about -3 to 3, whatever the columns hold" in result.stderr
    assert "--bounds gives public ranges" in result.stderr
    assert "guarantee" in result.stderr
    table = arrow_csv.read_csv(io.BytesIO(result.stdout.encode()))
    assert table.column_names == ["who", "x"]
    assert table.num_rows == 3


def test_every_row_may_be_a_user_of_its_own(visits: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "out.csv"
    text = visits.read_text(encoding="utf-8").splitlines()
    text[2] = "bob,,,,"
    visits.write_text("\n".join(text) + "\n", encoding="utf-8")
    result = turnout(
        "sample", visits, "-c", "kind", "-e", 42, "-o", target, "--missing", "drop", *MINIMAX
    )
    assert "44: every row is a user of its own" in result.stdout
    found = rows_of(target)
    assert [int(row["row"]) for row in found] == [1, *range(3, 46)]
    assert [row["kind"] for row in found[:3]] == ["a", "c, d", "a"]
    options = ("-c", "kind", "-e", 42, "-o", target, "--missing", "none", *MINIMAX)
    result = turnout("sample", visits, *options)
    assert result.exit_code == 1
    assert f"error: {target} already exists; randomizing the same people again" in result.stderr
    assert len(rows_of(target)) == 44
    assert turnout("sample", visits, *options, "--overwrite").exit_code == 0
    assert rows_of(target)[1] == {"row": "2", "kind": "none"}


def test_without_ids_records_are_sorted(visits: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "out.csv"
    result = turnout(
        "sample", visits, "-c", "kind,size", "-e", 42, "--rows-are", "who", "-o", target,
        "--no-ids", "--method", "minimax",
    )  # fmt: skip
    assert "How many users there are is not hidden" in " ".join(result.stdout.split())
    assert rows_of(target) == [
        {"kind": "a", "size": "0"}, {"kind": "b", "size": "1"}, {"kind": "c, d", "size": "2"},
    ]  # fmt: skip
    target = tmp_path / "numbers.csv"
    turnout(
        "sample",
        visits,
        "-c",
        "y",
        "-e",
        9,
        "--rows-are",
        "who",
        "-o",
        target,
        "--no-ids",
        *DENSITY,
    )
    values = [float(row["y"]) for row in rows_of(target)]
    assert values == sorted(values)


def test_runs_differ_and_a_seed_repeats_them(visits: Path, turnout: Run) -> None:
    def drawn(*options: object) -> str:
        result = turnout(
            "sample", visits, "-c", "x,y", "-e", 1, "--rows-are", "who", *BOX, *options
        )
        assert result.exit_code == 0, result.stderr
        return str(result.stdout)

    assert drawn() != drawn()
    assert drawn("--seed", 7) == drawn("--seed", 7) == drawn("--seed", 7, "--jobs", 2)
    assert drawn("--seed", 7) != drawn("--seed", 8)
    result = turnout("sample", visits, "-c", "kind", "-e", 1, "--seed", 1, *MINIMAX)
    assert "use for tests only" in result.stderr


@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("columns", ["x", "x,y", "kind", "kind,size"])
def test_pictures(visits: Path, tmp_path: Path, turnout: Run, columns: str, suffix: str) -> None:
    picture = tmp_path / f"picture{suffix}"
    options = MINIMAX if "kind" in columns else DENSITY
    result = turnout(
        "sample", visits, "-c", columns, "-e", 1, "--plot", picture, "-o", tmp_path / "a.csv",
        *options,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert picture.stat().st_size > 5000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-c", "kind", *DENSITY), "--method density is for numbers"),
        (
            ("-c", "x", "--bounds", "x=0.3:1", *DENSITY),
            "values are not within the bounds (0.3, 1.0) (rows ",
        ),
        (("-c", "none", *DENSITY), "no column 'none'"),
        (("-c", "x", "--rows-are", "none", *DENSITY), "no column 'none'"),
        (("-c", "kind", "--labels", "a,b", *MINIMAX), "not among the 2 labels"),
        (("-c", "kind", "--labels", "a", *MINIMAX), "--labels must be at least 2"),
        (
            ("-c", "kind,size", "--labels", "size=0,1,2", "--labels", "kind=b", *MINIMAX),
            "--labels must be at least 2",
        ),
    ],
)
def test_refusals(
    visits: Path, tmp_path: Path, turnout: Run, options: tuple[object, ...], message: str
) -> None:
    target = tmp_path / "out.csv"
    result = turnout("sample", visits, "-e", 1, "-o", target, *options)
    assert result.exit_code == 1
    line = only_line(result.stderr)
    assert line.startswith("error: ")
    assert message in line
    assert not target.exists()


@pytest.mark.parametrize(
    "options",
    [
        ("-c", "x,"),
        ("-c", "x,x"),
        ("-c", "x", "--rows-are", "x"),
        ("-c", "x", "-e", 0),
        ("-c", "x", "-e", 43),
        ("-c", "x", "-e", "nan"),
        ("-c", "x", "--bounds", "x=1"),
        ("-c", "x", "--bounds", "x=1:0"),
        ("-c", "x", "--bounds", "x=0:inf"),
        ("-c", "x", "--bounds", "y=0:1"),
        ("-c", "x", "--bounds", "x=0:1,x=0:2"),
        ("-c", "x,y", "--bounds", "x=0:1"),
        ("-c", "x", "--bounds", "x=-0.5:1.5", "--method", "minimax"),
        ("-c", "x", "--method", "best"),
        ("-c", "kind,size", "--missing", "kind=none"),
        ("-c", "x", "--bounds", "x=0:1", "--labels", "a,b"),
        ("-c", "kind", "--labels", "a,b", "--method", "density"),
        ("-c", "kind,size", "--labels", "a,b"),
        ("-c", "kind,size", "--labels", "size=1,2", "--labels", "size=1,2"),
        ("-c", "kind,size", "--labels-file", "labels.txt"),
        ("-c", "kind", "--round"),
        ("-c", "x,y,size", "--plot", "a.png"),
        ("-c", "x", "--plot", "a.gif"),
        ("-c", "x", "-o", "out.xlsx"),
        ("-c", "x", "--jobs", 0),
        ("-c", "x", "--seed", -1),
    ],
)
def test_wrong_usage(
    visits: Path, turnout: Run, options: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(visits.parent)
    result = turnout("sample", visits, *(() if "-e" in options else ("-e", 1)), *options)
    assert result.exit_code == 2, result.stdout
    assert sorted(path.name for path in visits.parent.iterdir()) == ["visits.csv"]


def test_bounds_of_negative_numbers_and_rounding_within_them(tmp_path: Path, turnout: Run) -> None:
    path, target = tmp_path / "in.csv", tmp_path / "out.parquet"
    path.write_text("t\n" + "-1.5\n0.4\n" * 200, encoding="utf-8")
    result = turnout(
        "sample", path, "-c", "t", "-e", 1, "--bounds", "t=-1.6:0.6", "--round", "-o", target,
        *DENSITY,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    values = pq.read_table(target).column("t").to_pylist()
    assert set(values) == {-1, 0}
    assert all(isinstance(value, int) for value in values)
    result = turnout("sample", path, "-c", "t", "-e", 1, "--bounds", "t=-1.6:0.6", "--labels", "1")
    assert result.exit_code == 2
    result = turnout(
        "sample", path, "-c", "t", "-e", 1, "--bounds", "t=-1.6:0.6", "--json", *DENSITY
    )
    assert min(row["t"] for row in json.loads(result.stdout)["records"]) < -1


def test_missing_values_are_refused_with_count_and_rows(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.csv"
    path.write_text("who,x,k\na,1,p\na,,q\n,2,\nb,3,p\n", encoding="utf-8")
    for column, owner, message in [
        (
            "x",
            (),
            "column 'x': 1 of 4 answers are missing (row 2): empty 1 time. Pass --missing as",
        ),
        (
            "k",
            (),
            "column 'k': 1 of 4 answers are missing (row 3): empty 1 time. Pass --missing as",
        ),
        (
            "k",
            ("--rows-are", "who", "--missing", "p"),
            "column 'who': 1 of 4 users are missing (row 3); --missing drop leaves these rows out",
        ),
    ]:
        method = DENSITY if column == "x" else MINIMAX
        result = turnout("sample", path, "-c", column, "-e", 1, *owner, *method)
        assert result.exit_code == 1
        assert message in only_line(result.stderr)
    bounds = ("-c", "x", "-e", 1, "--bounds", "x=0:9", *DENSITY)
    hint = "a number within the bounds, or 'drop' to leave these rows out"
    assert hint in only_line(turnout("sample", path, *bounds).stderr)
    for wrong in ("none", "10"):
        refused = turnout("sample", path, *bounds, "--missing", wrong)
        assert refused.exit_code == 1
        assert "a number within the bounds" in only_line(refused.stderr)
    answer = json.loads(turnout("sample", path, *bounds, "--missing", 4, "--json").stdout)
    assert len(answer["records"]) == 4
    options = ("--rows-are", "who", "--missing", "drop", *DENSITY)
    answer = json.loads(turnout("sample", path, "-c", "x", "-e", 1, *options, "--json").stdout)
    assert [record["who"] for record in answer["records"]] == ["a", "b"]
    assert "Users without a complete row have no record" in answer["guarantee"]
    result = turnout("sample", path, "-c", "x", "-e", 1, "--missing-value", "1", *options)
    assert result.exit_code == 0
    path.write_text("x\n", encoding="utf-8")
    assert "no row" in only_line(turnout("sample", path, "-c", "x", "-e", 1, *DENSITY).stderr)
    path.write_text("who,x\n,1\n,2\n", encoding="utf-8")
    result = turnout("sample", path, "-c", "x", "-e", 1, "--rows-are", "who", *DENSITY)
    assert "column 'who': 2 of 2 users are missing (rows 1, 2)" in only_line(result.stderr)


def test_the_sampler_of_labels_is_that_for_as_many_records_as_are_known(
    tmp_path: Path, turnout: Run
) -> None:
    lines = [f"{user},{'abc'[(user + visit) % 3]}" for user in range(6) for visit in range(3)]
    source = tmp_path / "a.csv"
    source.write_text("\n".join(["who,place", *lines]) + "\n")
    options = (
        "sample", source, "-c", "place", "-e", 1, "--seed", 1, "-o", tmp_path / "o.csv",
        "--labels", "a,b,c",
    )  # fmt: skip
    users = ("--overwrite", "--rows-are", "who")
    for more, name in (
        (("--overwrite",), "minimax sampler"),
        (users, "projection onto the mollifier"),
        ((*users, "--records", 1), "minimax sampler"),
        ((*users, "--records", 40), "projection onto the mollifier"),
    ):
        assert name in " ".join(turnout(*options, *more).stdout.split())
    assert turnout(*options, "--overwrite", "--records", 3).exit_code == 2
    assert turnout(*options, *users, "--records", 3, "--method", "minimax").exit_code == 2
