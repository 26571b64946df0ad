"""Jobs of tables in memory and of streams, and of files that change."""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.test_jobs import ORACLE, states, table

import turnout as tn
from turnout import errors
from turnout.collecting.report_files import write_reports
from turnout.pipeline import parts, randomizing
from turnout.pipeline.job import Job
from turnout.pipeline.randomizing import JobNoise


def test_a_table_in_memory_that_changed_is_refused_and_the_same_one_goes_on(tmp_path, monkeypatch):
    folder, frame = tmp_path / "reports", table(1000)
    monkeypatch.setattr(Job, "_finished", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tn.pipeline.randomize(tn.pipeline.scan(frame, "answer"), ORACLE, folder)
    monkeypatch.undo()
    other = tn.pipeline.scan(table(1000, seed=2), "answer")
    with pytest.raises(errors.InvalidValueError, match="has changed since the job began"):
        tn.pipeline.randomize(other, ORACLE, folder, resume=True)
    reports = tn.pipeline.randomize(
        tn.pipeline.scan(table(1000), "answer"), ORACLE, folder, resume=True
    )
    assert reports.totals.nodes == 1000
    assert "content" not in {
        name
        for name, value in json.loads((folder / "_turnout" / "job.json").read_text()).items()
        if value
    }


def test_a_stream_cannot_be_resumed(tmp_path, monkeypatch):
    folder = tmp_path / "reports"
    monkeypatch.setattr(Job, "_finished", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tn.pipeline.randomize(
            tn.pipeline.scan(iter(table(1000).to_batches()), "answer"), ORACLE, folder
        )
    monkeypatch.undo()
    stream = tn.pipeline.scan(iter(table(1000).to_batches()), "answer")
    with pytest.raises(errors.InvalidValueError, match="can be read only once"):
        tn.pipeline.randomize(stream, ORACLE, folder, resume=True)


def test_repeated_pseudonyms(tmp_path):
    key = tn.pipeline.PseudonymKey.generate()
    frame = table(1000)
    twice = pa.concat_tables([frame, frame.slice(0, 30)])

    def reports(data: pa.Table, name: str, who=None):
        answers = tn.pipeline.scan(
            data, "answer", id_column="id", duplicates=None, pseudonym_key=key, group_by="country"
        )
        return tn.pipeline.randomize(answers, ORACLE, tmp_path / name, participation=who, seed=1)

    once = reports(frame, "once")
    assert once.tally(duplicates="refuse").nodes == 1000
    text = once.paths[0].read_bytes()
    assert "pseudonym" in pq.read_schema(once.paths[0]).names
    assert "id" not in pq.read_schema(once.paths[0]).names
    assert text
    both = reports(twice, "twice")
    with pytest.raises(errors.InvalidValueError, match=r"30 pseudonym\(s\) have more than one"):
        both.tally(duplicates="refuse")
    assert both.tally().nodes == 1030
    first, further = both.tally(duplicates="first"), tn.LeftOut(duplicates=30)
    assert first == replace(once.tally(), left_out=further)
    each = both.tally(duplicates="first", group_by="country")
    assert each.left_out == further
    assert each.total == first
    some = reports(twice, "some", tn.Bernoulli(0.9))
    with pytest.raises(errors.InvalidValueError, match="everyone takes part"):
        some.tally(duplicates="first")
    plain = tn.pipeline.randomize(tn.pipeline.scan(frame, "answer"), ORACLE, tmp_path / "plain")
    with pytest.raises(errors.InvalidValueError, match="has no pseudonyms"):
        plain.tally(duplicates="refuse")


def test_folders_of_partitions_are_groups(tmp_path):
    wanted = {}
    for day in ("2026-11-20", "2026-11-21"):
        folder = tmp_path / f"day={day}"
        answers = tn.pipeline.scan(table(1000), "answer", group_by="country")
        reports = tn.pipeline.randomize(answers, ORACLE, folder)
        for (country,), part in reports.tally(group_by="country").items():
            wanted[country, day] = part
    grouped = tn.pipeline.tally(tmp_path, group_by=["country", "day"])
    assert len(grouped) == 6
    for (country, day), part in wanted.items():
        assert grouped[country, datetime.date.fromisoformat(day)] == part
    with pytest.raises(errors.InvalidValueError, match="has no group 'week'"):
        tn.pipeline.tally(tmp_path, group_by="week")
    assert len(tn.pipeline.tally(str(tmp_path / "day=*"), group_by="day")) == 2


def test_no_rows_at_all(tmp_path):
    empty = table(10).slice(0, 0)
    answers = tn.pipeline.scan(empty, "answer", group_by="country")
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")
    assert reports.tally().nodes == 0
    assert len(tn.pipeline.collect(answers, ORACLE)) == 0
    assert ORACLE.collect(tn.pipeline.scan(empty, "answer")).nodes == 0


def test_noise_of_a_job_is_hidden_in_what_can_be_printed():
    noise = JobNoise.made(None)
    for text in (repr(noise), str(noise), repr(randomizing.Secrets.of(noise, None))):
        assert noise.key.hex() not in text
        assert repr(noise.key)[2:-1] not in text


def test_a_job_says_nothing_of_the_answers_when_files_are_others(tmp_path):
    source, folder = tmp_path / "in.parquet", tmp_path / "reports"
    pq.write_table(table(1000), source)
    parts.open_job(tn.pipeline.scan(source, "answer"), ORACLE, folder)
    before = tn.pipeline.scan(source, "answer").source.fingerprint
    pq.write_table(table(1000, seed=1), source)
    answers = tn.pipeline.scan(source, "answer")
    with pytest.raises(
        errors.InvalidValueError, match="a job must continue as it began"
    ) as refused:
        tn.pipeline.randomize(answers, ORACLE, folder, resume=True)
    for digest in (before, answers.source.fingerprint):
        assert not any(
            digest[place:][:16] in str(refused.value) for place in range(len(digest) - 16)
        )


def changed_with_size_and_time_kept(path):
    """Change an answer far from the end of a file, as a copy with its times does."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    place = data.index(b"yes")
    data[place : place + 3] = b"no\n"
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_change_that_keeps_size_and_time_is_seen_before_the_first_part(tmp_path):
    source, folder = tmp_path / "in.csv", tmp_path / "reports"
    source.write_text("answer\n" + "yes\n" * 50_000)
    answers = tn.pipeline.scan(source, "answer")
    parts.open_job(answers, ORACLE, folder)
    before, content = states(folder), source.read_bytes()
    status = source.stat()
    changed_with_size_and_time_kept(source)
    other = tn.pipeline.scan(source, "answer")
    assert other.source.fingerprint == answers.source.fingerprint
    with pytest.raises(errors.InvalidValueError, match="has changed since the job began"):
        tn.pipeline.randomize(other, ORACLE, folder, resume=True)
    assert states(folder) == before
    # What is in it again goes on.
    source.write_bytes(content)
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    answers = tn.pipeline.scan(source, "answer")
    assert tn.pipeline.randomize(answers, ORACLE, folder, resume=True).totals.nodes == 50_000
    state = json.loads((folder / "_turnout" / "job.json").read_text())
    assert state["content"] is None


def test_a_change_that_keeps_size_and_time_is_seen_while_a_job_runs(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("answer\n" + "yes\n" * 10)
    answers = tn.pipeline.scan(source, "answer")
    changed_with_size_and_time_kept(source)
    with pytest.raises(errors.CorruptDataError, match="was changed while it was being read"):
        tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_reports_are_no_answers(tmp_path, suffix):
    write_reports(ORACLE.randomize(["no", "yes"]), tmp_path / f"reports.{suffix}")
    with pytest.raises(errors.InvalidValueError, match="which are already randomized"):
        tn.pipeline.scan(tmp_path, "report")
