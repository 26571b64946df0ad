"""Jobs that meet a full disk, a folder that they may not write to, or each other."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.pipeline import parts, scanning, sources
from turnout.pipeline.job import Job

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))

#: A job of parts of one block of 2^16 rows, beside what stands before and after it.
SCRIPT = """
    import os, sys
    from functools import partial
    import turnout as tn
    from turnout.pipeline import parts, running, scanning, sources
    scanning.open_source = partial(sources.open_source, block_rows=2**16)
    parts.PART_BLOCKS = 1
    {before}
    answers = tn.pipeline.scan(sys.argv[1], "answer")
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    tn.pipeline.randomize(answers, oracle, sys.argv[2], resume=True, workers=1)
"""


def run(before: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(SCRIPT).format(before=before)
    given = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture
def answers_file(tmp_path: Path) -> Path:
    path = tmp_path / "answers.parquet"
    said = np.array(["no", "yes"])[np.random.default_rng(1).integers(0, 2, 4 * 2**16)]
    pq.write_table(pa.table({"answer": said}), path, row_group_size=2**16)
    return path


def test_a_job_on_a_full_disk_goes_on_when_there_is_room(
    tmp_path: Path, answers_file: Path
) -> None:
    """A disk that fills up in the middle: the parts that are there stay, and no other is seen."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)]
    if (
        not sys.platform.startswith("linux")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("this user may mount no file system")
    try:
        ended = run("", answers_file, disk / "reports")
        assert "No space left on device" in ended.stderr
        parts = {path.name: path.read_bytes() for path in (disk / "reports").glob("part-*")}
        assert 0 < len(parts) < 4
        assert not list((disk / "reports").glob(".part-*"))
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        ended = run("", answers_file, disk / "reports")
        assert ended.returncode == 0, ended.stderr
        reports = tn.pipeline.open_reports(disk / "reports")
        assert reports.tally().nodes == 4 * 2**16
        assert all((disk / "reports" / name).read_bytes() == data for name, data in parts.items())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_that_go_on_at_once_make_one_set_of_reports(
    tmp_path: Path, answers_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "open_source", partial(sources.open_source, block_rows=2**16))
    monkeypatch.setattr(parts, "PART_BLOCKS", 1)
    folder = tmp_path / "reports"
    parts.open_job(tn.pipeline.scan(answers_file, "answer"), ORACLE, folder)
    ended = []

    def go_on() -> None:
        answers = tn.pipeline.scan(answers_file, "answer")
        ended.append(tn.pipeline.randomize(answers, ORACLE, folder, resume=True, workers=1))

    threads = [threading.Thread(target=go_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reports.tally().nodes for reports in ended] == [4 * 2**16] * 2
    job = Job.read(folder)
    assert job is not None
    assert job.complete
    assert len(list(folder.iterdir())) == 5


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user")
def test_a_folder_that_a_user_may_not_write_to_is_named(tmp_path: Path, answers_file: Path) -> None:
    # What is imported late must be there: another user may not read it.
    tn.pipeline.randomize(tn.pipeline.scan(answers_file, "answer"), ORACLE, tmp_path / "first")
    rows = tn.pipeline.scan(pq.read_table(answers_file), "answer")
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError) as refused:
            tn.pipeline.randomize(rows, ORACLE, tmp_path / "reports")
    finally:
        os.seteuid(0)
    assert str(refused.value.filename).startswith(str(tmp_path / "reports"))
    assert not (tmp_path / "reports").exists()
