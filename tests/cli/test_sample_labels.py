"""Labels of records: codes, files of labels, those that are taken from the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("sklearn")
from tests.cli.test_sample_command import Run, only_line


def test_codes_with_leading_zeros_are_labels(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.csv"
    path.write_text("zip\n02139\n10115\n02139\n", encoding="utf-8")
    answer = json.loads(
        turnout("sample", path, "-c", "zip", "--method", "minimax", "-e", 42, "--json").stdout
    )
    assert answer["labels"] == [["02139", "10115"]]
    assert [record["zip"] for record in answer["records"]] == ["02139", "10115", "02139"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\n\n  \nb\nc\nb\n", "must be different: labels[3] = 'b' equals labels[1] = 'b'"),
        (b"\n\na\n", "--labels must be at least 2"),
        (b"", "--labels must be at least 2"),
        (b"\xef\xbb\xbfa\n\nb\xff\n", "labels.txt: not UTF-8 text"),
    ],
)
def test_files_of_labels_that_are_none_are_refused(
    visits: Path, tmp_path: Path, turnout: Run, content: bytes, message: str
) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_bytes(content)
    result = turnout(
        "sample", visits, "-c", "kind", "--method", "minimax", "-e", 1, "--labels-file", labels
    )
    assert result.exit_code == 1
    line = only_line(result.stderr)
    assert message in line


def test_a_file_of_labels(visits: Path, tmp_path: Path, turnout: Run) -> None:
    labels = tmp_path / "labels.txt"
    labels.write_bytes(b"\xef\xbb\xbfc, d\r\n\r\nb\r\na\r\nnever\r\n")
    options = ("-e", 42, "--rows-are", "who", "--labels-file", labels, "--json")
    options += ("--method", "mollifier")
    result = turnout("sample", visits, "-c", "kind", *options)
    answer = json.loads(result.stdout)
    assert answer["labels"] == [["c, d", "b", "a", "never"]]
    assert [row["kind"] for row in answer["records"]] == ["c, d", "b", "a"]
    assert "taken from the data" not in answer["guarantee"] + result.stderr


def test_labels_that_read_alike_are_the_same(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"x": [0.5, None, 1.5], "t": [True, False, None]}), path)
    for column, labels, message in [
        ("x", "0.5,1.5,1.50", "labels[2] = 1.5 equals labels[1] = 1.5"),
        ("t", "true,False,TRUE", "labels[2] = True equals labels[0] = True"),
    ]:
        result = turnout(
            "sample", path, "-c", column, "-e", 1, "--labels", labels, "--missing", "drop",
            "--method", "minimax",
        )  # fmt: skip
        assert result.exit_code == 1
        assert f"--labels must be different: {message}" in only_line(result.stderr)
    # All are text where the label for what is missing is: these differ.
    result = turnout(
        "sample", path, "-c", "x", "-e", 1, "--labels", "0.5,1.5,1.50,none", "--missing", "none",
        "--method", "minimax",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr


def test_labels_that_are_taken_from_the_data(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.parquet"
    # No label on a command line is an integer that large.
    large = 2**62 + 1
    columns = {"n": [large, 3, 20], "k": ["b", None, "a"], "o": ["x"] * 3}
    pq.write_table(pa.table(columns), path)

    def run(columns: str, *options: object) -> Any:
        result = turnout("sample", path, "-c", columns, "-e", 42, "--json", *options)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    answer = run("n", "--method", "minimax")
    assert answer["labels"] == [[3, 20, large]]
    assert [row["n"] for row in answer["records"]] == [large, 3, 20]
    assert "The labels of column 'n' are taken from the data as public." in answer["guarantee"]
    answer = run("k,n", "--missing", "?", "--method", "mollifier")
    assert answer["labels"] == [["a", "b", "?"], [3, 20, large]]
    assert [row["k"] for row in answer["records"]] == ["b", "?", "a"]
    assert "The labels of columns 'k', 'n' are taken from the data" in answer["guarantee"]
    assert run("k", "--missing", "a", "--method", "minimax")["labels"] == [["a", "b"]]
    answer = run("k,n", "--missing", "a", "--labels", f"n=1,3,20,{large}", "--method", "minimax")
    assert "The labels of column 'k' are taken from the data" in answer["guarantee"]
    result = turnout("sample", path, "-c", "o", "-e", 1, "--method", "minimax")
    assert "column 'o' holds the one answer 'x', and labels" in only_line(result.stderr)


def test_the_summary_names_the_file(
    visits: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(visits.parent)
    result = turnout(
        "sample", visits, "-c", "kind", "-e", 1, "--method", "minimax", "-o", "out.csv"
    )
    size = Path("out.csv").stat().st_size
    assert f"out.csv, {size} bytes" in result.stdout


def test_the_input_is_never_overwritten(visits: Path, turnout: Run) -> None:
    before = visits.read_bytes()
    result = turnout("sample", visits, "-c", "x", "-e", 1, "--method", "density", "-o", visits)
    assert result.exit_code == 1
    assert "is an input" in only_line(result.stderr)
    assert visits.read_bytes() == before


def test_labels_on_both_sides_of_2_to_the_63(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "in.parquet"
    large = 2**63 + 5
    table = pa.table({"who": [1, 2, 3], "k": pa.array([1, large, 2], pa.uint64())})
    pq.write_table(table, path)
    # At epsilon 42 another value has a chance of e^-42.
    options = ("-e", 42, "--rows-are", "who", "--method", "minimax", "--json")
    answer = json.loads(turnout("sample", path, "-c", "k", *options).stdout)
    assert [record["k"] for record in answer["records"]] == [1, large, 2]
