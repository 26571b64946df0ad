"""What is missing is the same for every command, and for Python."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import InvalidValueError

GAPS = ["NA", "", "NaN", "nan", "None", "null", "N/A", "n/a", "<NA>", "#N/A", "-nan", "1.#IND"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = ["vote,region", *["yes,N", "no,S"] * 40, *(f"{gap},N" for gap in GAPS)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "a.csv"


@pytest.mark.parametrize("labels", [(), ("--labels", "no,yes")])
@pytest.mark.parametrize(
    "command",
    [
        "survey -c vote",
        "randomize -c vote",
        "aggregate -c vote --mechanism discrete-laplace",
        "sample -m minimax -c vote",
    ],
)
def test_every_command_refuses_all_that_is_missing(
    path: Path, turnout: Any, command: str, labels: tuple[str, ...]
) -> None:
    name, *given = command.split()
    output = ("-o", path.parent / "out.parquet") if name in ("randomize", "sample") else ()
    options = (name, path, *given, "-e", 1, *labels, *output)
    result = turnout(*options)
    assert result.exit_code == 1, result.stdout
    found = " ".join(result.stderr.split())
    assert f"{len(GAPS)} " in found
    assert "missing" in found
    assert "--missing" in found
    assert "drop" in found
    assert turnout(*options, "--missing", "drop").exit_code == 0


def test_python_refuses_the_same(path: Path) -> None:
    oracle = tn.DirectEncoding(1.0, ["no", "yes"])
    refused: list[Any] = [
        lambda: oracle.collect(path, "vote"),
        lambda: tn.pipeline.randomize(tn.pipeline.scan(path, "vote"), oracle, path.parent / "out"),
        lambda: tn.pipeline.scan(path, "vote").domain(),
        lambda: tn.survey(path, "vote", epsilon=1.0),
    ]
    for call in refused:
        with pytest.raises(InvalidValueError, match=rf"{len(GAPS)} .*missing .*'drop'"):
            call()
    dropped = tn.pipeline.scan(path, "vote", missing="drop")
    assert oracle.collect(dropped).nodes == 80
    assert dropped.domain().labels == ("no", "yes")


def test_rows_without_a_group_are_refused_or_left_out(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("vote,region\n" + "yes,N\nno,S\n" * 40 + "yes,NA\nno,\n")
    options = ("survey", path, "-c", "vote", "-e", 1, "--by", "region")
    result = turnout(*options)
    assert result.exit_code == 1
    assert "2 rows have no group in 'region'" in " ".join(result.stderr.split())
    shown = turnout(*options, "--missing", "drop").stdout
    assert "80 people have an answer" in " ".join(shown.split())
    with pytest.raises(InvalidValueError, match="2 rows have no group in 'region'"):
        tn.survey(path, "vote", epsilon=1.0, by="region")


def test_a_label_is_no_group_unless_it_is_stated_of_its_column(
    tmp_path: Path, turnout: Any
) -> None:
    path = tmp_path / "a.csv"
    # No answer is missing, then some are: the label for them says nothing about groups.
    for gaps in ("", "NA,N\n" * 3):
        path.write_text("vote,region\n" + "yes,N\nno,S\n" * 40 + gaps + "yes,NA\nno,\n")
        options = ("survey", path, "-c", "vote", "-e", 1, "--by", "region", "--json")
        for labels in ((), ("--labels", "yes,no,none")):
            result = turnout(*options, "--missing", "none", *labels)
            assert result.exit_code == 1
            assert "2 rows have no group in 'region'" in " ".join(result.stderr.split())
            stated = ("--missing", "none", "--missing", "region=West")
            made = turnout(*options, *labels, *stated)
            assert made.exit_code == 0, made.stderr
            sizes = {
                each["group"]["region"]: each["nodes"]
                for each in json.loads(made.stdout)["estimates"]
            }
            assert sizes == {"N": 40 + gaps.count("\n"), "S": 40, "West": 2}
        with pytest.raises(InvalidValueError, match="2 rows have no group"):
            tn.survey(path, "vote", epsilon=1.0, by="region", missing="none")
        rules = {"vote": "none", "region": "N"}
        found = tn.survey(path, "vote", epsilon=1.0, by="region", missing=rules)
        assert found.tally["N"].nodes == 42 + gaps.count("\n")
    left = tn.survey(path, "vote", epsilon=1.0, by="region", missing={**rules, "region": "drop"})
    assert "Left out: 2 without a group." in str(left)


def test_the_group_of_who_has_none_is_a_value_of_its_column(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table(
        {
            "vote": ["yes", "no"] * 20,
            "year": pa.array([2025, 2026, None, 2026] * 10),
            "day": pa.array([datetime.date(2026, 11, 22), None] * 20),
        }
    )
    pq.write_table(table, path)
    options = ("randomize", path, "-c", "vote", "-e", 1, "-o", tmp_path / "reports.parquet")
    by = ("--group-by", "year", "--group-by", "day", "--missing", "day=2026-11-23")
    for wrong, said in (("none", "--missing"), ("2024.5", "int64")):
        result = turnout(*options, *by, "--missing", f"year={wrong}")
        assert result.exit_code == 1
        assert said in result.stderr
    result = turnout(*options, *by, "--missing", "year=drop")
    assert result.exit_code == 0, result.stderr
    tally = tn.pipeline.tally(tmp_path / "reports.parquet", group_by=["year", "day"])
    days = datetime.date(2026, 11, 22), datetime.date(2026, 11, 23)
    assert {key: one.nodes for key, one in tally.items()} == {
        (2025, days[0]): 10, (2026, days[1]): 20,
    }  # fmt: skip
    answers = tn.pipeline.scan(table, "vote", group_by="year", missing={"year": 2024})
    assert answers.describe()["missing"] == {"vote": None, "year": 2024}
    assert set(tn.pipeline.collect(answers, tn.DirectEncoding(1.0, ["no", "yes"]))) == {
        (2024,), (2025,), (2026,),
    }  # fmt: skip
