"""Two that go on with one job at once, or take its files away."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.collecting.report_files import ReportFile
from turnout.pipeline import parts
from turnout.pipeline.job import Job

DOMAIN = tn.Domain(["no", "yes", "maybe"])
ORACLE = tn.DirectEncoding(1.0, DOMAIN)


@pytest.fixture(scope="module")
def answers_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("answers") / "answers.parquet"
    pq.write_table(pa.table({"answer": [*DOMAIN.labels] * 1000}), path)
    return path


def test_a_part_that_two_make_at_once_is_one_file(tmp_path, answers_file):
    answers = tn.pipeline.scan(answers_file, "answer")
    job, task, answers = parts.open_job(answers, ORACLE, tmp_path / "reports")
    assert task is not None
    blocks = list(answers._all_blocks(DOMAIN))
    encoded = [answers._encoder(DOMAIN)(block) for block in blocks]
    started = []

    def slow():
        started.append(1)
        if len(started) == 1:
            # Somebody else makes the same part while this one is in work.
            task.write(0, iter(encoded), job.noise)
        yield from encoded

    made = task.write(0, slow(), job.noise)
    assert task.find(0) == made
    with ReportFile(parts.part_path(tmp_path / "reports", 0)) as file:
        assert file.header.part.job == job.name
    assert len(list((tmp_path / "reports").glob("part-*"))) == 1
    assert not [path for path in (tmp_path / "reports").iterdir() if path.name.endswith(".tmp")]


def test_of_two_that_go_on_at_once_the_second_one_ends_well(tmp_path, answers_file):
    """The first one completes the job while the second one is still writing."""
    answers = tn.pipeline.scan(answers_file, "answer")
    folder = tmp_path / "reports"
    job, task, answers = parts.open_job(answers, ORACLE, folder)
    assert task is not None
    encoded = [answers._encoder(DOMAIN)(block) for block in answers._all_blocks(DOMAIN)]

    def slow():
        yield from encoded
        made = task.write(0, iter(encoded), job.noise)
        assert len(list(folder.glob(".part-*.tmp"))) == 1
        job._finished(1, made, {})

    made = task.write(0, slow(), job.noise)
    assert job._finished(1, made, {}) == Job.read(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["_turnout", "part-00000.parquet"]
    assert tn.pipeline.tally(folder).nodes == made.nodes


def test_a_part_whose_file_is_taken_away_and_that_is_not_there_is_an_error(tmp_path, answers_file):
    answers = tn.pipeline.scan(answers_file, "answer")
    job, task, answers = parts.open_job(answers, ORACLE, tmp_path / "reports")
    assert task is not None

    def removing():
        yield from [answers._encoder(DOMAIN)(block) for block in answers._all_blocks(DOMAIN)]
        for path in (tmp_path / "reports").glob(".part-*.tmp"):
            path.unlink()

    with pytest.raises(FileNotFoundError, match=r"part-00000.parquet'"):
        task.write(0, removing(), job.noise)
