"""Jobs whose answers are refused: when the folder is free again, and when it is not."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout import _files, errors
from turnout.pipeline import parts, running, scanning, sources
from turnout.pipeline.job import Job

DOMAIN = tn.Domain(["no", "yes"])
ORACLE = tn.DirectEncoding(1.0, DOMAIN)


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of one block of 2^16 rows."""
    monkeypatch.setattr(scanning, "open_source", partial(sources.open_source, block_rows=2**16))
    monkeypatch.setattr(parts, "PART_BLOCKS", 1)


def with_unknown(row: int, rows: int = 3 * 2**16) -> pa.Table:
    answers = ["yes"] * rows
    answers[row] = "perhaps"
    return pa.table({"id": range(rows), "answer": answers})


@pytest.mark.parametrize("kind", ["file", "table", "stream"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_refusal_before_the_first_part_leaves_the_folder_free(tmp_path, kind, resume):
    table, folder = with_unknown(5, 10), tmp_path / "reports"
    pq.write_table(table, tmp_path / "answers.parquet")
    made = {
        "file": lambda: tmp_path / "answers.parquet",
        "table": lambda: table,
        "stream": lambda: iter(table.to_batches()),
    }
    answers = tn.pipeline.scan(made[kind](), "answer")
    with pytest.raises(errors.UnknownLabelError, match="not among the 2 labels"):
        tn.pipeline.randomize(answers, ORACLE, folder, resume=resume)
    assert not folder.exists() or not list(folder.iterdir())
    right = tn.DirectEncoding(1.0, tn.Domain(["no", "yes", "perhaps"]))
    reports = tn.pipeline.randomize(tn.pipeline.scan(made[kind](), "answer"), right, folder)
    assert reports.tally().nodes == 10


def test_persons_that_are_refused_can_be_left_out_in_a_second_try(tmp_path):
    table = pa.table({"id": [1, 2, 1], "answer": ["no", "yes", "yes"]})
    path, folder = tmp_path / "answers.parquet", tmp_path / "reports"
    pq.write_table(table, path)
    with pytest.raises(errors.InvalidValueError, match="1 person"):
        tn.pipeline.randomize(tn.pipeline.scan(path, "answer", id_column="id"), ORACLE, folder)
    first = tn.pipeline.scan(path, "answer", id_column="id", duplicates="first")
    assert tn.pipeline.randomize(first, ORACLE, folder).totals.nodes == 2


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_refusal_after_a_part_keeps_the_job_and_its_secret(tmp_path, workers):
    pq.write_table(with_unknown(2**17 + 5), tmp_path / "answers.parquet", row_group_size=2**16)
    answers = tn.pipeline.scan(tmp_path / "answers.parquet", "answer")
    folder = tmp_path / "reports"
    with pytest.raises(errors.UnknownLabelError, match="not among the 2 labels"):
        tn.pipeline.randomize(answers, ORACLE, folder, workers=workers)
    assert (folder / "part-00000.parquet").exists()
    job = Job.read(folder)
    assert job is not None
    assert job.noise is not None
    with pytest.raises(errors.InvalidValueError, match=r"before anybody sees them; for other"):
        tn.pipeline.randomize(answers, ORACLE, folder)


def test_a_part_that_may_have_been_taken_away_keeps_the_job(tmp_path, monkeypatch):
    """Whoever moves parts on as they appear must not get others of the same people."""
    table = pa.table({"answer": ["no", "yes"] * 5})
    folder = tmp_path / "reports"
    write = parts.PartTask.write

    def written_and_moved(*given):
        write(*given)
        (folder / "part-00000.parquet").rename(tmp_path / "sent.parquet")
        raise errors.InvalidValueError("late")

    monkeypatch.setattr(parts.PartTask, "write", written_and_moved)
    with pytest.raises(errors.InvalidValueError, match="late"):
        tn.pipeline.randomize(tn.pipeline.scan(table, "answer"), ORACLE, folder)
    assert Job.read(folder) is not None


def failing(monkeypatch, error, when="randomize_block"):
    """Let the making of each block of reports end in an error."""

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(parts, when, fail)


@pytest.mark.parametrize("kind", ["file", "table"])
@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        OverflowError("date value out of range"),
        MemoryError(),
        KeyboardInterrupt(),
        SystemExit(1),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("resumed", [False, True])
def test_any_exception_before_the_first_part_withdraws_the_job(
    tmp_path, monkeypatch, kind, error, resumed
):
    table, folder = pa.table({"answer": ["no", "yes"] * 5}), tmp_path / "reports"
    pq.write_table(table, tmp_path / "answers.parquet")
    data = table if kind == "table" else tmp_path / "answers.parquet"
    answers = tn.pipeline.scan(data, "answer")
    if resumed:
        # As a run that was killed left it.
        parts.open_job(answers, ORACLE, folder)
        (folder / ".part-00000.parquet.0123.tmp").write_bytes(b"PAR1")
    with monkeypatch.context() as patched:
        failing(patched, error)
        with pytest.raises(type(error)):
            tn.pipeline.randomize(answers, ORACLE, folder, resume=resumed)
    assert list(folder.iterdir()) == []
    assert tn.pipeline.randomize(answers, ORACLE, folder).totals.nodes == 10


def test_a_full_disk_at_the_end_of_the_first_part_withdraws_the_job(tmp_path, monkeypatch):
    """A disk may say that it is full only when the bytes are forced to it."""
    answers = tn.pipeline.scan(pa.table({"answer": ["no", "yes"] * 5}), "answer")
    works = _files._synchronise_file

    def full(path):
        if "part-" in path.name:
            raise OSError(28, "No space left on device")
        works(path)

    monkeypatch.setattr(_files, "_synchronise_file", full)
    with pytest.raises(OSError, match=r"No space left on device: .*part-00000.parquet'"):
        tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")
    assert list((tmp_path / "reports").iterdir()) == []


def test_the_secret_of_a_withdrawn_job_is_written_over(tmp_path, monkeypatch):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    job, _, _ = parts.open_job(answers, ORACLE, folder)
    os.link(folder / "_turnout" / "job.json", tmp_path / "kept.json")
    failing(monkeypatch, OSError("late"))
    with pytest.raises(OSError, match="late"):
        tn.pipeline.randomize(answers, ORACLE, folder, resume=True)
    assert job.noise.key.hex() not in (tmp_path / "kept.json").read_text()


def test_a_job_that_had_a_part_is_never_withdrawn(tmp_path, monkeypatch):
    """Its first run may have written parts that are not there any more."""
    folder = tmp_path / "reports"
    answers = tn.pipeline.scan(pa.table({"answer": ["no", "yes"] * 5}), "answer")
    with monkeypatch.context() as patched:
        failing(patched, KeyboardInterrupt(), "synchronise_folder")
        with pytest.raises(KeyboardInterrupt):
            tn.pipeline.randomize(answers, ORACLE, folder)
    before = Job.read(folder)
    assert [path.name for path in folder.iterdir()] == ["_turnout"]
    with pytest.raises(errors.InvalidValueError, match="before anybody sees them; for other"):
        tn.pipeline.randomize(answers, ORACLE, folder)
    failing(monkeypatch, errors.InvalidValueError("refused"))
    with pytest.raises(errors.InvalidValueError, match="refused"):
        tn.pipeline.randomize(answers, ORACLE, folder, resume=True)
    assert Job.read(folder) == before is not None


def test_a_job_without_a_part_says_so(tmp_path):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    parts.open_job(answers, ORACLE, folder)
    with pytest.raises(errors.InvalidValueError, match="it has no reports yet"):
        tn.pipeline.randomize(answers, ORACLE, folder)


def test_no_part_appears_of_a_job_that_was_withdrawn(tmp_path):
    """Whoever writes a part of it still, be it on another machine, ends in an error."""
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    job, task, answers = parts.open_job(answers, ORACLE, folder)

    def blocks():
        for block in answers._all_blocks(ORACLE.domain):
            yield answers._encoder(ORACLE.domain)(block)
        assert job._withdraw()

    with pytest.raises(FileNotFoundError):
        task.write(0, blocks(), job.noise)
    assert list(folder.iterdir()) == []


def test_a_job_that_noted_a_part_as_it_was_withdrawn_stays(tmp_path, monkeypatch):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    job, task, _ = parts.open_job(answers, ORACLE, folder)
    rename = Path.rename

    def noted(self, target):
        if self.name == "_turnout":
            task._begun()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", noted)
    assert not job._withdraw()
    assert Job.read(folder) == job


def test_of_two_that_go_on_the_one_that_fails_leaves_the_job_to_the_other(tmp_path):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    job, _, _ = parts.open_job(answers, ORACLE, folder)
    with job._at_work():
        with pytest.raises(KeyboardInterrupt), job._at_work():
            raise KeyboardInterrupt
        assert Job.read(folder) == job
    with pytest.raises(KeyboardInterrupt), job._at_work():
        raise KeyboardInterrupt
    assert Job.read(folder) is None
    with pytest.raises(errors.InvalidValueError, match="another run withdrew it"), job._at_work():
        pass


def test_a_secret_that_cannot_be_erased_is_warned_of(tmp_path, monkeypatch, caplog):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"
    failing(monkeypatch, OSError("late"))

    def fails(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match="late"):
        tn.pipeline.randomize(answers, ORACLE, folder)
    assert "its secret could not be erased" in caplog.text


def test_a_part_that_is_gone_for_good_is_said_so(tmp_path):
    table = pa.table({"answer": ["no", "yes"] * 5})
    folder = tmp_path / "reports"
    reports = tn.pipeline.randomize(tn.pipeline.scan(table, "answer"), ORACLE, folder)
    reports.paths[0].unlink()
    with pytest.raises(errors.InvalidValueError, match="restore it, because it cannot be made"):
        tn.pipeline.tally(folder)


def test_a_state_that_cannot_be_written_leaves_the_folder_free(tmp_path, monkeypatch):
    answers, folder = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer"), tmp_path / "reports"

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("turnout.pipeline.job.atomic_write", full)
        with pytest.raises(OSError, match="No space"):
            tn.pipeline.randomize(answers, ORACLE, folder)
    assert list(folder.iterdir()) == []
    assert tn.pipeline.randomize(answers, ORACLE, folder).totals.nodes == 1


def test_a_folder_that_cannot_be_looked_into_is_not_passed_over(tmp_path, monkeypatch):
    answers = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer")
    for day in ("1", "2"):
        tn.pipeline.randomize(answers, ORACLE, tmp_path / f"day={day}")
    listed = os.scandir

    def scandir(path):
        if os.fspath(path).endswith("day=2"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError, match="day=2"):
        tn.pipeline.tally(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (5, "group_by must be a name or names of groups, got 5"),
        ([], "group_by must be a name or names of groups"),
        (["day", 5], "group_by must be a name or names of groups"),
        (["day", "day"], "group_by must name different groups"),
    ],
)
def test_groups_that_are_no_names_are_refused(tmp_path, names, message):
    answers = tn.pipeline.scan(pa.table({"answer": ["no"]}), "answer")
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "day=1")
    with pytest.raises((errors.InvalidTypeError, errors.InvalidValueError), match=message):
        reports.tally(group_by=names)


def test_paths_that_are_none_are_refused():
    with pytest.raises(errors.InvalidTypeError, match="paths must be a path or paths, got 5"):
        tn.pipeline.open_reports(5)


def test_another_plan_is_refused_before_the_reports_are_read(tmp_path, monkeypatch):
    answers = tn.pipeline.scan(pa.table({"answer": ["no", "yes"]}), "answer")
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")
    monkeypatch.setattr(tn.pipeline.ReportSet, "tally", lambda _: pytest.fail("was read"))
    with pytest.raises(errors.PlanMismatchError, match=r"epsilon 1\.0 instead of 2\.0"):
        tn.DirectEncoding(2.0, DOMAIN).tally(reports)


@pytest.mark.parametrize("name", ["report", "probability", "pseudonym"])
@pytest.mark.parametrize("output", ["reports", "reports.parquet"])
def test_no_group_is_called_as_a_column_of_report_files(tmp_path, name, output):
    answers = tn.pipeline.scan(pa.table({"vote": ["a", "b"], name: [1, 2]}), "vote", group_by=name)
    write = running.randomize_to_file if "." in output else tn.pipeline.randomize
    with pytest.raises(errors.InvalidValueError, match=f"group_by must not name '{name}'"):
        write(answers, tn.DirectEncoding(1.0, ["a", "b"]), tmp_path / output)
    assert not list(tmp_path.iterdir())
    assert tn.pipeline.collect(answers, tn.DirectEncoding(1.0, ["a", "b"])).nodes == 2
