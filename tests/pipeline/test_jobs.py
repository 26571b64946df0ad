"""Jobs: equal results by every path, resume, and nobody randomized twice."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout import _files, errors, metrics
from turnout.collecting.report_files import ReportFile, read_reports
from turnout.pipeline import parts, scanning, sources
from turnout.pipeline.job import Job
from turnout.pipeline.randomizing import JobNoise

DOMAIN = tn.Domain(["no", "yes", "maybe"])
ORACLE = tn.DirectEncoding(1.0, DOMAIN)
ORACLES = [
    ORACLE,
    tn.OptimizedUnaryEncoding(1.0, DOMAIN),
    tn.OptimizedLocalHashing(1.0, DOMAIN),
    tn.SummationHistogramEncoding(1.0, DOMAIN),
    tn.SubsetSelection(1.0, DOMAIN),
]


def table(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(rows) + 10,
            "answer": np.array(DOMAIN.labels)[random.integers(0, 3, rows)],
            "country": np.array(["DE", "FR", "IT"])[random.integers(0, 3, rows)],
            "rate": random.uniform(0.1, 1, rows),
        }
    )


@pytest.fixture
def small_parts(monkeypatch):
    """Blocks of 2^16 rows and parts of two blocks: few rows make many parts."""
    monkeypatch.setattr(scanning, "open_source", partial(sources.open_source, block_rows=2**16))
    monkeypatch.setattr(parts, "PART_BLOCKS", 2)


@pytest.fixture(scope="module")
def answers_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("answers") / "answers.parquet"
    pq.write_table(table(5 * 2**16 + 1234), path, row_group_size=50_000)
    return path


def states(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
@pytest.mark.parametrize("who", [None, tn.Bernoulli(0.3)], ids=["all", "rate"])
def test_one_seed_gives_one_tally_by_every_path(tmp_path, answers_file, oracle, who):
    frame = pq.read_table(answers_file)
    wanted = oracle.collect(frame["answer"], participation=who, seed=5)
    for data in (frame, answers_file, iter(frame.to_batches(70_000))):
        answers = tn.pipeline.scan(data, "answer")
        assert oracle.collect(answers, participation=who, seed=5) == wanted
    answers = tn.pipeline.scan(answers_file, "answer")
    assert oracle.tally(oracle.randomize(answers, participation=who, seed=5)) == wanted
    grouped = tn.pipeline.scan(answers_file, "answer", group_by=["country"])
    by_country = tn.pipeline.collect(grouped, oracle, participation=who, seed=5)
    assert by_country.total == wanted
    reports = tn.pipeline.randomize(
        grouped, oracle, tmp_path / "reports", participation=who, seed=5
    )
    assert reports.tally() == wanted
    assert oracle.tally(reports) == wanted
    assert reports.tally(group_by="country") == by_country


def test_personal_probabilities_from_a_column(tmp_path, answers_file):
    frame = pq.read_table(answers_file)
    who = tn.Personalized(np.asarray(frame["rate"]))
    wanted = ORACLE.collect(frame["answer"], participation=who, seed=6)
    answers = tn.pipeline.scan(
        answers_file, "answer", probability_column="rate", group_by="country"
    )
    by_country = tn.pipeline.collect(answers, ORACLE, seed=6)
    assert by_country.total == wanted
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports", seed=6)
    assert reports.tally() == wanted
    assert reports.tally(group_by="country") == by_country
    # Each group by itself: the same nodes and sums of probabilities as its rows have.
    german = frame.filter(pa.compute.equal(frame["country"], "DE"))
    rates = tn.Personalized(np.asarray(german["rate"]))
    alone = ORACLE.collect(german["answer"], participation=rates)
    assert by_country["DE"].nodes == alone.nodes
    assert by_country["DE"].design == alone.design


def test_groups_hold_the_answers_of_their_own_nodes(answers_file):
    # Almost no noise: the tally of a group is its true counts.
    oracle = tn.DirectEncoding(40.0, DOMAIN)
    frame = pq.read_table(answers_file)
    answers = tn.pipeline.scan(answers_file, "answer", group_by="country")
    grouped = tn.pipeline.collect(answers, oracle, participation=tn.Bernoulli(0.999_999))
    for country in ("DE", "FR", "IT"):
        mask = np.asarray(frame["country"]) == country
        true = np.bincount(DOMAIN.encode(frame["answer"])[mask], minlength=3)
        assert grouped[country].nodes == mask.sum()
        assert np.abs(grouped[country].support.astype(int) - true).max() <= 5


@pytest.mark.usefixtures("small_parts")
def test_a_job_that_failed_goes_on_without_drawing_anew(tmp_path, answers_file, monkeypatch):
    folder = tmp_path / "reports"
    answers = tn.pipeline.scan(answers_file, "answer", group_by="country")
    write = parts.PartTask.write

    def fail_at_one(self, number, *given):
        if number == 1:
            raise OSError(28, "No space left on device")
        return write(self, number, *given)

    monkeypatch.setattr(parts.PartTask, "write", fail_at_one)
    with pytest.raises(OSError, match="No space left"):
        tn.pipeline.randomize(answers, ORACLE, folder, workers=1)
    monkeypatch.setattr(parts.PartTask, "write", write)
    before = states(folder)
    assert "part-00000.parquet" in before
    assert "part-00001.parquet" not in before
    state = folder / "_turnout" / "job.json"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    secret = json.loads(state.read_text())["noise"]["key"]
    with pytest.raises(errors.InvalidValueError, match="holds a job, which is unfinished"):
        tn.pipeline.randomize(answers, ORACLE, folder)
    with pytest.raises(errors.InvalidValueError, match="is unfinished: pass resume"):
        tn.pipeline.open_reports(folder)
    some = tn.pipeline.open_reports(folder, partial=True)
    assert len(some) == len(before)
    assert some.tally().nodes + some.tally().left_out.absent == answers.rows
    assert some.tally(group_by="country").of_no_group == some.tally().left_out

    # What would have been drawn without the failure: the same key elsewhere.
    key = bytes.fromhex(secret)
    monkeypatch.setattr(JobNoise, "made", classmethod(lambda cls, seed: cls(key, None)))
    whole = tn.pipeline.randomize(answers, ORACLE, tmp_path / "whole", workers=2)
    monkeypatch.undo()
    monkeypatch.setattr(parts, "PART_BLOCKS", 2)

    reports = tn.pipeline.randomize(answers, ORACLE, folder, resume=True)
    after = states(folder)
    assert all(after[name] == content for name, content in before.items())
    assert reports.tally(group_by="country") == whole.tally(group_by="country")
    assert secret not in state.read_text()
    assert json.loads(state.read_text())["noise"] is None
    again = tn.pipeline.randomize(answers, ORACLE, folder, resume=True)
    assert states(folder) == after
    assert again.totals == reports.totals
    with pytest.raises(errors.InvalidValueError, match="holds a job, which is complete"):
        tn.pipeline.randomize(answers, ORACLE, folder)


def test_a_key_from_the_system_is_a_new_one_each_time(tmp_path, answers_file):
    answers = tn.pipeline.scan(answers_file, "answer")
    one = tn.pipeline.randomize(answers, ORACLE, tmp_path / "one")
    other = tn.pipeline.randomize(answers, ORACLE, tmp_path / "other")
    first, second = (read_reports(each.paths[0]).codes for each in (one, other))
    # Two independent reports of one answer agree with probability p^2 + 2 q^2.
    p, q = ORACLE.support_probabilities
    agree = p * p + 2 * q * q
    deviations = ((first == second).mean() - agree) / np.sqrt(agree * (1 - agree) / first.size)
    assert abs(deviations) < 4.9  # alpha = 1e-6


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("change", ["plan", "column", "data", "groups"])
def test_a_job_goes_on_as_it_began(tmp_path, answers_file, monkeypatch, change):
    source, folder = tmp_path / "in.parquet", tmp_path / "reports"
    source.write_bytes(answers_file.read_bytes())
    monkeypatch.setattr(Job, "_finished", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tn.pipeline.randomize(tn.pipeline.scan(source, "answer"), ORACLE, folder)
    monkeypatch.undo()
    before = states(folder)
    oracle, options = ORACLE, {}
    if change == "plan":
        oracle = tn.DirectEncoding(2.0, DOMAIN)
    elif change == "groups":
        options["group_by"] = "country"
    elif change == "data":
        pq.write_table(table(5 * 2**16 + 1234, seed=1), source)
    column = "country" if change == "column" else "answer"
    answers = tn.pipeline.scan(source, column, **options)
    with pytest.raises(errors.InvalidValueError, match=r"a job must continue as it began"):
        tn.pipeline.randomize(answers, oracle, folder, resume=True)
    assert states(folder) == before


KILLED = """
    import sys, time
    import turnout as tn
    from turnout import _files
    from turnout.pipeline import parts, sources
    publish, published = _files._publish, []

    def publish_some(*paths):
        # Then the test, which may be slow, kills this process.
        published.append(paths)
        if len(published) > 15:
            time.sleep(3600)
        return publish(*paths)

    _files._publish = publish_some
    parts.PART_BLOCKS = 1
    source = sources.open_source(sys.argv[1], block_rows=2**16)
    answers = tn.pipeline.scan(source, "answer", group_by="country")
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes", "maybe"]))
    tn.pipeline.randomize(answers, oracle, sys.argv[2], resume=True, workers=2)
"""


@pytest.mark.everyday
def test_sigkill_leaves_whole_files_and_what_is_there_stays(tmp_path):
    source, folder = tmp_path / "in.parquet", tmp_path / "reports"
    pq.write_table(table(40 * 2**16), source)
    program = textwrap.dedent(KILLED)
    kills = 0
    kept: dict[str, bytes] = {}
    for _ in range(60):
        process = subprocess.Popen([sys.executable, "-c", program, str(source), str(folder)])
        deadline = time.monotonic() + 600
        while process.poll() is None and time.monotonic() < deadline:
            there = len(list(folder.glob("part-*.parquet"))) if folder.exists() else 0
            if there >= len(kept) + 8 or (there > 3 and not kept):
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
                break
            time.sleep(0.002)
        now = states(folder)
        assert all(now[name] == content for name, content in kept.items())
        for name in now:
            with ReportFile(folder / name) as file:  # whole: every byte is checked
                assert sum(map(len, file.batches())) == file.header.reports
        kept = now
        if process.returncode == 0:
            break
    assert kills >= 2
    assert process.returncode == 0
    reports = tn.pipeline.open_reports(folder)
    assert reports.totals.nodes == reports.tally().nodes == 40 * 2**16
    # Not even temporary files are read as reports.
    assert all(path.name.startswith("part-") for path in reports.paths)


def test_the_state_of_a_job_is_checked(tmp_path, answers_file):
    folder = tmp_path / "reports"
    tn.pipeline.randomize(tn.pipeline.scan(answers_file, "answer"), ORACLE, folder)
    state = folder / "_turnout" / "job.json"
    good = json.loads(state.read_text())
    for change in (
        {"version": 3},
        {"format": "other"},
        {"noise": {"key": "11" * 32}},
        {"parts": None},
        {"parts": -1},
        {"totals": {"nodes": 1}},
        {"totals": {**good["totals"], "left_out": {"unanswered": -1}}},
        {"extra": 1},
        {"plan": {}},
    ):
        state.write_text(json.dumps({**good, **change}))
        with pytest.raises(errors.CorruptDataError, match="job"):
            tn.pipeline.open_reports(folder)
    unfinished = {**good, "parts": None, "totals": None}
    for noise in ({"key": "00" * 32}, {"key": "11"}, {"seed": -1}, {"seed": 2**64}, {"seed": "1"}):
        state.write_text(json.dumps({**unfinished, "noise": noise}))
        with pytest.raises(errors.CorruptDataError, match=r"job\.json: the secret .* is damaged"):
            tn.pipeline.open_reports(folder)
    for text in ("", "[]", "{", "[" * 100_000, json.dumps({**unfinished, "noise": {"key": "xyz"}})):
        state.write_text(text)
        with pytest.raises(errors.CorruptDataError, match="job"):
            tn.pipeline.open_reports(folder)


@pytest.mark.usefixtures("small_parts")
def test_rows_in_hand_are_written_before_more_are_read(tmp_path, monkeypatch):
    # A short row group before one of many blocks: parts begin with a block that is read later.
    path, size = tmp_path / "answers.parquet", 2**16
    with pq.ParquetWriter(path, pa.schema([("answer", pa.string())])) as writer:
        for _ in range(3):
            for rows in (size, 5 * size):
                some = pa.table({"answer": ["no"] * rows})
                writer.write_table(some, row_group_size=rows)
    events = []
    read, write = sources.columnar._Cursor.read, parts.PartTask.write

    def noted(cursor, piece):
        if piece.group_rows > size:
            events.append("read")
        return read(cursor, piece)

    monkeypatch.setattr(sources.columnar._Cursor, "read", noted)

    def written(*args):
        header = write(*args)
        events.append("written")
        return header

    monkeypatch.setattr(parts.PartTask, "write", written)
    reports = tn.pipeline.randomize(tn.pipeline.scan(path, "answer"), ORACLE, tmp_path / "reports")
    assert reports.tally().nodes == 18 * size
    # Six blocks are three parts, and a part ends where the next one's first block is there.
    assert events == ["read", "read", "written", "read", "read", "written", "read", "written"] * 3


@pytest.mark.usefixtures("small_parts")
def test_parts_that_are_missing_altered_or_twice_are_refused(tmp_path, answers_file):
    folder = tmp_path / "reports"
    reports = tn.pipeline.randomize(tn.pipeline.scan(answers_file, "answer"), ORACLE, folder)
    assert len(reports) == 3
    first = reports.paths[0]
    content = first.read_bytes()
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(content)
    with pytest.raises(errors.InvalidValueError, match="would count twice"):
        tn.pipeline.tally([folder, copy])
    with pytest.raises(errors.InvalidValueError, match="is duplicated"):
        tn.pipeline.tally([folder, first])
    first.unlink()
    with pytest.raises(errors.InvalidValueError, match=r"lacks part-00000"):
        tn.pipeline.tally(folder)
    some = tn.pipeline.tally(folder, partial=True)
    assert some.nodes < reports.totals.nodes
    assert some.left_out == tn.LeftOut(absent=reports.totals.nodes - some.nodes)
    first.write_bytes(content[:-1])
    with pytest.raises(errors.CorruptDataError, match="part-00000"):
        tn.pipeline.tally(folder)
    first.write_bytes(content)
    (folder / "part-00003.parquet").write_bytes(content)
    with pytest.raises(errors.InvalidValueError, match="has part-00003"):
        tn.pipeline.tally(folder)


def test_a_folder_that_is_not_empty_is_refused(tmp_path, answers_file):
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "old.parquet").write_bytes(b"")
    with pytest.raises(errors.InvalidValueError, match="is not empty"):
        tn.pipeline.randomize(
            tn.pipeline.scan(answers_file, "answer"), ORACLE, tmp_path / "reports"
        )
    with pytest.raises(errors.InvalidValueError, match="is a file"):
        tn.pipeline.randomize(tn.pipeline.scan(answers_file, "answer"), ORACLE, answers_file)


def test_metrics_count_rows_and_reports(tmp_path, answers_file):
    seen: list[tuple[str, dict[str, float]]] = []
    stop = metrics.subscribe(lambda event, values: seen.append((event, values)))
    broken = metrics.subscribe(lambda event, values: 1 / 0)
    try:
        reports = tn.pipeline.randomize(
            tn.pipeline.scan(answers_file, "answer"), ORACLE, tmp_path / "reports"
        )
        reports.tally()
    finally:
        stop()
        broken()
    rows = pq.read_metadata(answers_file).num_rows
    assert sum(values["rows"] for event, values in seen if event == "rows_read") == rows
    assert sum(values["rows"] for event, values in seen if event == "part_written") == rows
    assert sum(values["reports"] for event, values in seen if event == "file_tallied") == rows
    with pytest.raises(errors.InvalidTypeError, match="hook must be a function"):
        metrics.subscribe(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"participation": "half"}, "participation must be a rate, Everyone"),
        ({"participation": tn.Personalized([0.5])}, "probability_column"),
        ({"seed": -1}, "seed must be"),
        ({"workers": 0}, "workers must be"),
    ],
)
def test_bad_arguments_are_named_and_leave_no_folder(tmp_path, answers_file, options, message):
    answers = tn.pipeline.scan(answers_file, "answer")
    with pytest.raises(tn.TurnoutError, match=message):
        tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports", **options)
    assert not (tmp_path / "reports").exists()


def test_oracles_that_need_a_state_are_refused(answers_file):
    answers = tn.pipeline.scan(answers_file, "answer")
    with pytest.raises(errors.InvalidTypeError, match="oracle must be an oracle"):
        tn.pipeline.collect(answers, 3)
    memoized = tn.Memoized(2.0, DOMAIN, first_epsilon=1.0)
    with pytest.raises(errors.InvalidTypeError, match="randomize a table block by block"):
        tn.pipeline.collect(answers, memoized)


def test_a_kill_while_the_secret_is_erased_leaves_a_complete_job(
    tmp_path, answers_file, monkeypatch
):
    def kill(_file: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turnout.pipeline.job._overwrite", kill)
    with pytest.raises(KeyboardInterrupt):
        tn.pipeline.randomize(
            tn.pipeline.scan(answers_file, "answer"), ORACLE, tmp_path / "reports"
        )
    monkeypatch.undo()
    reports = tn.pipeline.open_reports(tmp_path / "reports")
    assert reports.tally().nodes == reports.totals.nodes == 5 * 2**16 + 1234
    state = json.loads((tmp_path / "reports" / "_turnout" / "job.json").read_text())
    assert state["noise"] is None


def test_a_job_whose_end_cannot_be_written_keeps_its_secret(tmp_path, answers_file, monkeypatch):
    answers = tn.pipeline.scan(answers_file, "answer")
    monkeypatch.setattr("turnout._files._synchronise_file", _failing_after(2))
    with pytest.raises(OSError, match="No space left"):
        tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports")
    monkeypatch.undo()
    reports = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports", resume=True)
    assert reports.tally().nodes == reports.totals.nodes


def _failing_after(times):
    """Let files be written so many times, and then find the disk full."""
    works = _files._synchronise_file
    calls = []

    def synchronise(path):
        calls.append(path)
        if len(calls) > times:
            raise OSError(28, "No space left on device")
        works(path)

    return synchronise
