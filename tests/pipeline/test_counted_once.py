"""What would count people twice is refused: reports in two files, folders of one name."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import turnout as tn
from turnout import errors
from turnout.collecting.report_files import read_reports, write_reports

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))


def refused(one: Path, other: Path) -> None:
    for paths in ([one, other], [other, one]):
        with pytest.raises(errors.InvalidValueError, match="they would count twice") as found:
            tn.pipeline.tally(paths, workers=1)
        assert str(one) in str(found.value)
        assert str(other) in str(found.value)
    with pytest.raises(errors.InvalidValueError, match="they would count twice"):
        list(tn.pipeline.open_reports([one, other]).batches())


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "again",
    [lambda made: made, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))],
    ids=["same", "copied", "pickled"],
)
def test_reports_that_are_written_twice_count_once(tmp_path: Path, ending: str, again) -> None:
    made = ORACLE.randomize(["no", "yes", "yes"])
    one, other = tmp_path / "one.parquet", tmp_path / f"other.{ending}"
    write_reports(made, one)
    write_reports(again(made), other)
    refused(one, other)
    assert tn.pipeline.tally(one).nodes == tn.pipeline.tally(other).nodes == 3


def test_reports_that_were_read_and_written_count_once(tmp_path: Path) -> None:
    one, other = tmp_path / "one.parquet", tmp_path / "other.arrow"
    write_reports(ORACLE.randomize(["no", "yes"]), one)
    write_reports(read_reports(one), other)
    refused(one, other)


def test_a_part_of_a_job_that_was_read_and_written_counts_once(tmp_path: Path) -> None:
    answers = tn.pipeline.scan(pa.table({"answer": ["no", "yes"]}), "answer")
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")
    write_reports(read_reports(reports.paths[0]), tmp_path / "other.parquet")
    refused(reports.paths[0], tmp_path / "other.parquet")


def test_equal_reports_of_other_people_count_both(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_reports(ORACLE.randomize(["no"] * 3, seed=1), tmp_path / f"{name}.parquet")
    assert tn.pipeline.tally(tmp_path).nodes == 6


def test_reports_are_put_together_once() -> None:
    made = ORACLE.randomize(["no"])
    with pytest.raises(errors.InvalidValueError, match="they would count twice"):
        tn.Reports.concatenate([made, copy.copy(made)])
    assert tn.Reports.concatenate([made, ORACLE.randomize(["no"])]).nodes == 2


def test_folders_whose_names_are_one_number_are_refused(tmp_path: Path) -> None:
    for name in ("x=01", "x=1"):
        (tmp_path / name).mkdir()
        write_reports(ORACLE.randomize(["no"]), tmp_path / name / "reports.parquet")
    with pytest.raises(errors.InvalidValueError, match="folders 'x=01' and 'x=1' would be one"):
        tn.pipeline.tally(tmp_path, group_by="x")
    (tmp_path / "x=1").rename(tmp_path / "x=02")
    assert set(tn.pipeline.tally(tmp_path, group_by="x")) == {(1,), (2,)}
