"""``turnout randomize``: missing values, labels, output files, exit codes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.texts import without_paths

from turnout.collecting.report_files import read_reports

Run = Callable[..., Any]


def write(tmp_path: Path, *answers: str) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("id,answer\n" + "".join(f"{i},{a}\n" for i, a in enumerate(answers)))
    return path


def only_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def test_the_summary_says_what_was_done(people: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "out.parquet"
    result = turnout("randomize", people, "-c", "answer", "-e", 1, "-p", 0.5, "-o", target)
    assert result.exit_code == 0
    for text in ("600", "50 % of the people", "3 labels", "1 asked", "2.719 times", "guarantee"):
        assert text in result.stdout
    assert "note: the 3 labels of the domain were taken from the data" in result.stderr
    assert max(map(len, without_paths(result.stdout))) <= 80
    reports = read_reports(target)
    assert reports.nodes == 600
    assert reports.oracle.epsilon == 1
    assert reports.oracle.domain.labels == ("never", "often", "once")
    assert reports.participation.uniform_rate == 0.5


def test_reports_differ_from_run_to_run_and_a_seed_repeats_them(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    def codes(*options: object) -> bytes:
        target = tmp_path / "out.parquet"
        turnout("randomize", people, "-c", "answer", "-e", 1, "-o", target, "--overwrite", *options)
        return bytes(read_reports(target).codes.tobytes())

    assert codes() != codes()
    assert codes("--seed", 7) == codes("--seed", 7)
    assert codes("--seed", 7) != codes("--seed", 8)


def test_a_seed_is_warned_about(people: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "out.parquet"
    result = turnout("randomize", people, "-c", "answer", "-e", 1, "-o", target, "--seed", 1)
    assert "use for tests only" in result.stderr


@pytest.mark.parametrize("option", ["--labels", "--labels-file"])
def test_labels_given_are_the_domain_in_their_order(
    people: Path, tmp_path: Path, turnout: Run, option: str
) -> None:
    target = tmp_path / "out.arrow"
    labels = ["often", "once", "never", "always, really" if option == "--labels-file" else "always"]
    value = ",".join(labels)
    if option == "--labels-file":
        file = tmp_path / "labels.txt"
        file.write_text("\n".join(labels) + "\n\n", encoding="utf-8")
        value = str(file)
    result = turnout("randomize", people, "-c", "answer", "-e", 1, option, value, "-o", target)
    assert result.exit_code == 0
    assert "note" not in result.stderr
    assert read_reports(target).oracle.domain.labels == tuple(labels)


def test_missing_values_are_refused_with_count_and_rows(tmp_path: Path, turnout: Run) -> None:
    source, target = write(tmp_path, "a", "", "b", "", "?"), tmp_path / "out.parquet"
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", target)
    assert result.exit_code == 1
    line = only_line(result.stderr)
    assert "column 'answer': 2 of 5 answers are missing (rows 2, 4): empty 2 times." in line
    assert "--missing" in line
    assert not target.exists()
    result = turnout(
        "randomize", source, "-c", "answer", "-e", 1, "-o", target, "--missing-value", "?"
    )
    assert "3 of 5 answers are missing (rows 2, 4, 5)" in result.stderr
    assert "empty 2 times, '?' 1 time" in result.stderr
    source = write(tmp_path, "yes", *[""] * 6, "no")
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", target)
    assert "6 of 8 answers are missing (rows 2, 3, 4, 5, 6, ...)" in result.stderr


def test_missing_values_can_be_dropped(tmp_path: Path, turnout: Run) -> None:
    source, target = write(tmp_path, "a", "", "b", "?"), tmp_path / "out.parquet"
    result = turnout(
        "randomize", source, "-c", "answer", "-e", 1, "-o", target,
        "--missing", "drop", "--missing-value", "?",
    )  # fmt: skip
    assert result.exit_code == 0
    assert "2 without an answer" in result.stdout
    assert read_reports(target).nodes == 2
    assert read_reports(target).oracle.domain.labels == ("a", "b")


@pytest.mark.parametrize(
    ("answers", "labels", "missing", "expected"),
    [
        (("b", "", "a"), None, "unknown", ("a", "b", "unknown")),
        (("b", "", "a"), None, "a", ("a", "b")),
        (("b", "", "a"), "b,a,none", "none", ("b", "a", "none")),
        (("2", "", "10"), None, "0", (2, 10, 0)),
        (("2", "", "10"), None, "unknown", ("2", "10", "unknown")),
        (("2", "", "10"), "1,2,10,unknown", "unknown", ("1", "2", "10", "unknown")),
        (("2", "7", "10"), None, "unknown", (2, 7, 10)),
    ],
)
def test_missing_values_can_become_a_label(
    tmp_path: Path,
    turnout: Run,
    *,
    answers: tuple[str, ...],
    labels: str | None,
    missing: str,
    expected: tuple[object, ...],
) -> None:
    source, target = write(tmp_path, *answers), tmp_path / "out.parquet"
    options = () if labels is None else ("--labels", labels)
    result = turnout(
        "randomize", source, "-c", "answer", "-e", 9, "-o", target, "--missing", missing, *options
    )
    assert result.exit_code == 0, result.stderr
    reports = read_reports(target)
    assert reports.nodes == 3
    assert reports.oracle.domain.labels == expected


def test_a_missing_label_outside_the_domain_is_refused(tmp_path: Path, turnout: Run) -> None:
    source, target = write(tmp_path, "a", ""), tmp_path / "out.parquet"
    result = turnout(
        "randomize", source, "-c", "answer", "-e", 1, "-o", target,
        "--labels", "a,b", "--missing", "c",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "--missing must be a label of the domain or 'drop', got 'c'" in only_line(result.stderr)


def test_unknown_labels_are_named_with_their_rows(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "out.parquet"
    result = turnout(
        "randomize", people, "-c", "answer", "-e", 1, "-o", target, "--labels", "never,often"
    )
    assert result.exit_code == 1
    assert only_line(result.stderr) == (
        f"error: {people}: column 'answer': 200 values are not among the 2 labels of the domain, "
        "among them 'once'"
    )
    assert not target.exists()


def test_booleans_and_numbers_of_typed_files_are_labels(tmp_path: Path, turnout: Run) -> None:
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"flag": [True, False, True], "stars": [0.5, 1.0, 4.5]}), source)
    assert turnout("randomize", source, "-c", "flag", "-e", 1, "-o", target).exit_code == 0
    assert read_reports(target).oracle.domain.labels == (False, True)
    result = turnout(
        "randomize", source, "-c", "stars", "-e", 1, "-o", target, "--overwrite",
        "--labels", "0.5,1,4.5,5",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert read_reports(target).oracle.domain.labels == (0.5, 1.0, 4.5, 5.0)


def test_a_single_label_is_refused(tmp_path: Path, turnout: Run) -> None:
    source = write(tmp_path, "a", "a")
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", tmp_path / "o.parquet")
    assert result.exit_code == 1
    assert "error:" in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("-e", "0"),
        ("-e", "-1"),
        ("-e", "nan"),
        ("-e", "inf"),
        ("-e", "one"),
        ("-e", "1", "-p", "0"),
        ("-e", "1", "-p", "1.5"),
        ("-e", "1", "-p", "nan"),
        ("-e", "1", "--labels", "a,b", "--labels-file", "x"),
        ("-e", "1", "--seed", "-1"),
        ("-e", "1", "--no-such-option"),
        ("-e", "1", "-o", "out.csv"),
        (),
    ],
)
def test_wrong_usage_exits_with_2(
    people: Path, tmp_path: Path, turnout: Run, options: tuple[str, ...]
) -> None:
    target = tmp_path / "out.parquet"
    result = turnout("randomize", people, "-c", "answer", "-o", target, *options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert not target.exists()


@pytest.mark.parametrize(
    ("source", "column", "message"),
    [
        ("nowhere.csv", "answer", "nowhere.csv: no such file"),
        (None, "reply", "no column 'reply'"),
    ],
)
def test_refusals_are_one_line_and_exit_with_1(
    people: Path, tmp_path: Path, turnout: Run, *, source: str | None, column: str, message: str
) -> None:
    path = people if source is None else tmp_path / source
    result = turnout("randomize", path, "-c", column, "-e", 1, "-o", tmp_path / "o.parquet")
    assert result.exit_code == 1
    assert message in only_line(result.stderr)
    assert result.stdout == ""


def test_the_input_is_not_overwritten(tmp_path: Path, turnout: Run) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"answer": ["a", "b"]}), source)
    before = source.read_bytes()
    result = turnout("randomize", source, "-c", "answer", "-e", 1, "-o", source)
    assert result.exit_code == 1
    assert "is an input" in only_line(result.stderr)
    assert source.read_bytes() == before


@pytest.mark.parametrize("source", ["", "*.parquet"])
def test_a_file_of_a_folder_or_pattern_is_not_overwritten(
    tmp_path: Path, turnout: Run, source: str
) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"answer": ["a", "b"]}), tmp_path / f"{name}.parquet")
    before = (tmp_path / "b.parquet").read_bytes()
    options = ["-c", "answer", "-e", 1, "--labels", "a,b", "-o", tmp_path / "b.parquet"]
    result = turnout("randomize", tmp_path / source, *options)
    assert result.exit_code == 1
    assert "b.parquet: is an input" in only_line(result.stderr)
    assert (tmp_path / "b.parquet").read_bytes() == before


def test_a_missing_folder_is_named_and_nothing_is_left(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "no" / "out.parquet"
    result = turnout(
        "randomize", people, "-c", "answer", "-e", 1, "-o", target, "--labels", "never,once,often"
    )
    assert result.exit_code == 1
    assert only_line(result.stderr) == f"error: {target}: No such file or directory"
    assert sorted(tmp_path.iterdir()) == [people]


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no write permission there")
def test_a_folder_without_write_permission_is_left_as_it_was(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    result = turnout("randomize", people, "-c", "answer", "-e", 1, "-o", folder / "out.parquet")
    assert result.exit_code == 1
    assert list(folder.iterdir()) == []


def test_a_failed_run_keeps_the_old_file(
    people: Path, tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.parquet"
    target.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("turnout.collecting.report_files.writing.seal_file", fail)
    result = turnout("randomize", people, "-c", "answer", "-e", 1, "-o", target, "--overwrite")
    assert result.exit_code == 1
    assert f"error: {target}: No space left on device" in result.stderr
    assert target.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == sorted([people, target])


def test_a_report_file_that_is_there_is_not_replaced_unasked(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "out.parquet"
    options = ("randomize", people, "-c", "answer", "-e", 1)
    assert turnout(*options, "-o", target).exit_code == 0
    before = target.read_bytes()
    result = turnout(*options, "-o", target)
    assert result.exit_code == 1
    assert f"error: {target} already exists; randomizing the same people again" in result.stderr
    assert target.read_bytes() == before
    assert turnout(*options, "-o", target, "--overwrite").exit_code == 0
    assert target.read_bytes() != before
    # A job takes up what it left; there is nothing to replace in its folder.
    result = turnout(*options, "-o", tmp_path / "reports", "--overwrite")
    assert result.exit_code == 2
    assert "needs a file as --output" in result.stderr
