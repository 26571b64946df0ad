"""Several stretches of a file are worked on at once, and give what they give one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout.collecting.report_files import ReportFile, containers
from turnout.collecting.report_files.header import Groups
from turnout.collecting.report_files.parquet_headers import column_chunks
from turnout.collecting.report_files.writing import ReportWriter
from turnout.errors import MemoryLimitError
from turnout.pipeline import open_reports, parts, report_counting, scan
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.randomizing import JobNoise

ORACLE = tn.DirectEncoding(1.0, 5)
ROWS = 300


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Thirty row groups, of which three make up a stretch; each person has two reports."""
    monkeypatch.setattr(containers, "_BATCH", 30)
    path = tmp_path / "reports.parquet"
    codes = ORACLE.randomize(np.arange(ROWS) % 5, seed=1).codes
    names = (np.arange(ROWS) % 150).astype(np.uint8).repeat(16).reshape(ROWS, 16)
    groups = np.array(["a", "b", "b"])[np.arange(ROWS) % 3]
    writer = ReportWriter(
        path,
        tn.Plan(ORACLE, tn.Everyone()),
        group_types={"group": pa.string()},
        pseudonyms=True,
    )
    with writer:
        for start in range(0, ROWS, 10):
            rows = slice(start, start + 10)
            writer.add(codes[rows], groups=[pa.array(groups[rows])], pseudonyms=names[rows])
        writer.close(ROWS, groups=Groups(("group",), (("a",), ("b",)), (100, 200), None))
    return path


@pytest.mark.parametrize("duplicates", [None, "first"])
@pytest.mark.parametrize("group_by", [None, "group"])
def test_threads_count_what_one_counts(
    path: Path, group_by: str | None, duplicates: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = open_reports(path)
    with ReportFile(path) as file:
        assert [each.start for each in file._stretches()] == list(range(0, ROWS, 30))
        third = [each.reports for each in file.batches(stretch=file._stretches()[2])]
        codes = np.concatenate([each.reports for each in file.batches()])
        np.testing.assert_array_equal(np.concatenate(third), codes[60:90])
    seen = set()
    count = report_counting._of_batch

    def counting(*arguments: Any) -> Any:
        seen.add(threading.current_thread())
        return count(*arguments)

    monkeypatch.setattr(report_counting, count.__name__, counting)
    kept = codes if duplicates is None else codes[:150]
    expected = np.bincount(kept, minlength=5)
    for workers in (1, 4):
        tally = reports.tally(group_by=group_by, duplicates=duplicates, workers=workers)
        whole = tally if group_by is None else tally.total
        np.testing.assert_array_equal(whole.support, expected)
        if group_by is not None:
            np.testing.assert_array_equal(tally["a"].support, np.bincount(kept[::3], minlength=5))
    assert len(seen) > 2


def test_a_file_is_counted_in_as_many_threads_as_there_is_memory_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = report_counting._COPIES * ORACLE.tally_type._bytes_of_sums(tn.Plan(ORACLE, tn.Everyone()))
    alone = Groups((), ((),), (ROWS,))
    with ReportFile(path) as file:
        stretches = file._stretches()
        # The page of the pseudonyms of ten reports is the largest.
        assert [each.largest for each in stretches] == [160] * 10
        wide = [*stretches, stretches[0]._replace(largest=3 * one)]
        for most, threads in ((one, 1), (4 * one, 2), (7 * one, 3)):
            monkeypatch.setattr(ReportFile, "_most_memory", most)
            assert report_counting._memory_for(file, stretches, alone) == threads
            assert report_counting._memory_for(file, wide, alone) == max(most // (3 * one), 1)
        monkeypatch.setattr(ReportFile, "_most_memory", 159)
        with pytest.raises(MemoryLimitError, match=r"reports\.parquet: .*160"):
            file._stretches()


def test_the_reports_of_a_block_are_one_page(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    codes = np.arange(200_000, dtype=np.uint8) % 5
    with ReportWriter(path, tn.Plan(ORACLE, tn.Everyone())) as writer:
        writer.add(codes)
        writer.close(len(codes))
    with path.open("rb") as file:
        [[chunk]] = column_chunks(file)
        _dictionary, page = containers.page_bytes(file, chunk)
    assert page == pytest.approx(200_000 * 3 / 8, rel=0.01)


def test_a_block_is_written_while_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = scan(pa.table({"answer": np.arange(6) % 5}), "answer")
    [block] = answers._all_blocks(ORACLE.domain)
    encoded = answers._encoder(ORACLE.domain)(block)
    second = threading.Event()

    def blocks() -> Iterator[EncodedBlock]:
        yield encoded
        second.set()
        yield replace(encoded, index=1)

    add = ReportWriter.add

    def adding(writer: ReportWriter, *arguments: Any, **columns: Any) -> None:
        assert second.wait(timeout=600)
        add(writer, *arguments, **columns)

    monkeypatch.setattr(ReportWriter, "add", adding)
    plan = tn.Plan(ORACLE, tn.Everyone())
    task = parts.PartTask(tmp_path, "a job", plan, answers._encoder(ORACLE.domain))
    header = task.write_file(tmp_path / "reports.parquet", blocks(), JobNoise.made(1))
    assert (header.reports, header.nodes) == (12, 12)


def test_a_file_is_given_up_when_nobody_writes_to_it(tmp_path: Path) -> None:
    begun, go, order = threading.Event(), threading.Event(), []
    writer = ReportWriter(tmp_path / "reports.parquet", tn.Plan(ORACLE, tn.Everyone()))
    arrow = writer._writer

    class Slow:
        def write_batch(self, batch: Any) -> None:
            begun.set()
            assert go.wait(timeout=600)
            arrow.write_batch(batch)
            order.append("written")

        def close(self) -> None:
            order.append("closed")
            arrow.close()

    writer._writer = Slow()
    thread = threading.Thread(target=writer.add, args=(np.zeros(5, np.uint8),))
    thread.start()
    assert begun.wait(timeout=600)
    threading.Timer(0.05, go.set).start()
    writer.__exit__(None, None, None)
    thread.join()
    assert order == ["written", "closed"]
    assert not list(tmp_path.iterdir())
