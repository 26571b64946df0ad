"""Workers that are killed: the same tally, and the same files byte by byte."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import InvalidValueError, WorkerLostError
from turnout.pipeline import scan
from turnout.pipeline.job import Job
from turnout.pipeline.sources import open_source

ROWS, BLOCK_ROWS = 3050, 50
ORACLE = tn.DirectEncoding(1.0, tn.Domain(["never", "once", "often"]))
HALF = tn.Bernoulli(0.5)
KINDS = ["reading", "publishing", "published"]


def table() -> Any:
    random = np.random.default_rng(5)
    labels = np.array(ORACLE.domain.labels)
    return pa.table(
        {
            "answer": labels[random.integers(0, 3, ROWS)],
            "day": random.integers(1, 4, ROWS),
        }
    )


@pytest.fixture(scope="module")
def trouble(ray: Any, load: Callable[[str], ModuleType]) -> ModuleType:
    module = load("trouble")
    ray.cloudpickle.register_pickle_by_value(module)
    return module


@pytest.fixture(autouse=True)
def _one_name_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all jobs have one name and one key, so that their files can be compared."""
    fixed = SimpleNamespace(token_hex=lambda _: "5" * 32, token_bytes=lambda _: bytes(range(32)))
    monkeypatch.setattr("turnout.pipeline.parts.secrets", fixed)
    monkeypatch.setattr("turnout.pipeline.randomizing.secrets", fixed)


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


@pytest.fixture(scope="module")
def untroubled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    folder = tmp_path_factory.mktemp("plain") / "reports"

    def make() -> Path:
        if not folder.exists():
            answers = scan(open_source(table(), block_rows=BLOCK_ROWS), "answer", group_by="day")
            tn.pipeline.randomize(answers, ORACLE, folder, participation=HALF)
        return folder

    return make


def source(trouble: ModuleType, folder: Path, kind: str, troubled: Any) -> Any:
    return trouble.TroubledSource(table(), folder, kind, troubled, BLOCK_ROWS)


def randomize(data: Any, folder: Path, **options: Any) -> Any:
    return tn.ray.randomize(data, "answer", ORACLE, HALF, output=folder, group_by="day", **options)


@pytest.mark.parametrize("kind", KINDS)
def test_killed_workers_change_nothing(
    ray: Any, trouble: ModuleType, untroubled: Any, tmp_path: Path, kind: str
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    reports = randomize(source(trouble, marks, kind, {3, 20, 60}), tmp_path / "reports")
    assert len(list(marks.iterdir())) == 3, "workers were killed"
    assert written(tmp_path / "reports") == written(untroubled())
    assert reports.tally(group_by="day") == tn.pipeline.tally(untroubled(), group_by="day")
    assert reports.totals == Job.read(untroubled()).totals  # type: ignore[union-attr]
    # Nothing of those who died is left behind.
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == [
        "_turnout",
        *written(untroubled()),
    ]


def test_killed_workers_change_no_tally(ray: Any, trouble: ModuleType, tmp_path: Path) -> None:
    plain = scan(open_source(table(), block_rows=BLOCK_ROWS), "answer")
    expected = tn.pipeline.collect(plain, ORACLE, participation=HALF)
    found = tn.ray.collect(
        source(trouble, tmp_path, "reading", {0, 17, 60}), "answer", ORACLE, HALF
    )
    assert len(list(tmp_path.iterdir())) == 3
    assert found == expected


def test_workers_killed_from_outside(
    ray: Any, trouble: ModuleType, untroubled: Any, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    killed: list[int] = []
    over = threading.Event()

    def hunt() -> None:
        while not over.is_set() and len(killed) < 3:
            for mark in marks.glob("process-*"):
                process = int(mark.name.split("-")[1])
                if process not in killed:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)
                        killed.append(process)
            time.sleep(0.02)
        (marks / "go-on").touch()

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        randomize(source(trouble, marks, "held", range(100)), tmp_path / "reports")
    finally:
        over.set()
        hunter.join()
    assert len(killed) >= 3
    assert written(tmp_path / "reports") == written(untroubled())


def test_worker_that_always_dies_leaves_a_job_to_go_on_with(
    ray: Any,
    trouble: ModuleType,
    untroubled: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turnout.ray.cluster.RETRIES", 0)
    folder = tmp_path / "reports"
    with pytest.raises(WorkerLostError, match="resume=True goes on"):
        randomize(source(trouble, tmp_path, "reading", {30}), folder)
    before = written(folder)
    assert before.items() < written(untroubled()).items()
    with pytest.raises(InvalidValueError, match="unfinished"):
        tn.ray.tally(folder)
    with pytest.raises(InvalidValueError, match="resume"):
        randomize(source(trouble, tmp_path, "reading", {30}), folder)
    assert (folder / "_turnout" / "job.json").stat().st_mode & 0o077 == 0
    randomize(source(trouble, tmp_path, "reading", {30}), folder, resume=True)
    assert written(folder) == written(untroubled())
    # The secret is gone, and there is nothing more to do.
    assert Job.read(folder).noise is None  # type: ignore[union-attr]
    again = randomize(source(trouble, tmp_path, "reading", {30}), folder, resume=True)
    assert len(again) == len(written(untroubled()))


def test_a_job_that_ends_before_its_first_part_is_withdrawn(
    ray: Any, trouble: ModuleType, tmp_path: Path
) -> None:
    marks, folder = tmp_path / "marks", tmp_path / "reports"
    marks.mkdir()
    with pytest.raises(OSError, match="the disk is broken"):
        randomize(source(trouble, marks, "failing", range(100)), folder)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "data set"])
def test_days_that_are_no_group_are_refused_before_the_job_begins(
    ray: Any, tmp_path: Path, kind: str
) -> None:
    days = pa.array([0] * (ROWS - 1) + [10**7], pa.int32()).cast(pa.date32())
    rows = table().set_column(1, "day", days)
    pq.write_table(rows, tmp_path / "answers.parquet")
    data = ray.data.from_arrow(rows) if kind == "data set" else tmp_path / "answers.parquet"
    with pytest.raises(InvalidValueError, match=r"1 row has a date outside .* \(row 3,050\)"):
        randomize(data, tmp_path / "reports")
    assert not (tmp_path / "reports").exists()
    with pytest.raises(InvalidValueError, match=r"1 row has a date outside .* \(row 3,050\)"):
        tn.ray.collect(data, "answer", ORACLE, HALF, group_by="day")


def test_job_changes_between_one_machine_and_a_cluster(
    ray: Any, trouble: ModuleType, untroubled: Any, tmp_path: Path
) -> None:
    path = tmp_path / "answers.parquet"
    pq.write_table(table(), path)
    for first, second in [("plain", "ray"), ("ray", "plain")]:
        folder = tmp_path / f"begun-{first}"

        def run(where: str, data: Any, folder: Path = folder, **options: Any) -> None:
            if where == "ray":
                randomize(data, folder, **options)
            else:
                tn.pipeline.randomize(
                    scan(data, "answer", group_by="day"),
                    ORACLE,
                    folder,
                    participation=HALF,
                    **options,
                )

        marks = tmp_path / first
        marks.mkdir()
        data = source(trouble, marks, "failing", {30})
        with pytest.raises(OSError, match="the disk is broken"):
            run(first, data, workers=1)
        assert 0 < len(written(folder)) < 8
        run(second, data, resume=True)
        assert written(folder) == written(untroubled())


def test_data_set_goes_on_only_if_it_is_the_same(
    ray: Any, untroubled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reports"
    rows = table()
    options = {"block_rows": BLOCK_ROWS}

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Job, "_finished", interrupted)
        with pytest.raises(KeyboardInterrupt):
            randomize(ray.data.from_arrow(rows), folder, **options)
    expected = written(untroubled())
    assert written(folder) == expected
    for name in list(expected)[2:4]:
        (folder / name).unlink()
    first = "never" if rows["answer"][0].as_py() != "never" else "often"
    other = rows.set_column(0, "answer", pa.array([first, *rows["answer"].to_pylist()[1:]]))
    with pytest.raises(InvalidValueError, match="has changed since the job began"):
        randomize(ray.data.from_arrow(other), folder, resume=True, **options)
    assert len(written(folder)) == len(expected) - 2
    # However it is cut.
    pieces = [rows.slice(0, 7), rows.slice(7, 2000), rows.slice(2007)]
    randomize(ray.data.from_arrow(pieces), folder, resume=True, **options)
    assert written(folder) == expected


def test_secret_is_in_no_log_and_no_name(ray: Any, trouble: ModuleType, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    with pytest.raises(OSError, match="the disk is broken") as caught:
        randomize(source(trouble, marks, "failing", {30}), tmp_path / "reports")
    key = bytes(range(32))
    shown = [repr(key)[2:-1].encode(), key, key.hex().encode(), str(list(key))[1:-1].encode()]
    said = "".join(map(str, [caught.value, caught.value.__cause__, caught.value.__context__]))
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = [path for path in session.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(logs) > 10
    for secret in shown:
        assert secret not in said.encode()
        for path in logs:
            assert secret not in path.read_bytes(), path


DRIVER = """
import importlib.util, logging, pathlib, sys
import pyarrow.parquet as pq
import ray
import turnout as tn
spec = importlib.util.spec_from_file_location("trouble", sys.argv[1])
trouble = importlib.util.module_from_spec(spec)
sys.modules["trouble"] = trouble
spec.loader.exec_module(trouble)
ray.cloudpickle.register_pickle_by_value(trouble)
folder = pathlib.Path(sys.argv[2])
data = trouble.TroubledSource(pq.read_table(folder / "table.parquet"), folder / "marks", "held",
                              range(8, 1000), 50)
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
oracle = tn.DirectEncoding(1.0, tn.Domain(["never", "once", "often"]))
try:
    tn.ray.randomize(data, "answer", oracle, output=folder / "reports", address=sys.argv[3],
                     group_by="day")
except KeyboardInterrupt:
    print("interrupted", ray.is_initialized())
"""


def test_interrupt_leaves_whole_parts_and_a_job_to_go_on_with(
    ray: Any, trouble: ModuleType, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    pq.write_table(table(), tmp_path / "table.parquet")
    address = ray.get_runtime_context().gcs_address
    package = str(Path(tn.__file__).parents[1])
    driver = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", DRIVER, trouble.__file__, str(tmp_path), address],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    folder = tmp_path / "reports"
    try:
        # The first part is written, and the others are not before they may go on.
        while not written(folder):
            assert driver.poll() is None
            time.sleep(0.02)
        driver.send_signal(signal.SIGINT)
        assert driver.stdout is not None
        assert any("tasks to end" in line for line in driver.stdout)
        (marks / "go-on").touch()
        said, _ = driver.communicate(timeout=600)
    finally:
        (marks / "go-on").touch()
        driver.kill()
    assert "interrupted False" in said
    kept = written(folder)
    assert 0 < len(kept) < 8
    # Nobody works on it any more, and nothing is half there.
    time.sleep(0.5)
    assert sorted(path.name for path in folder.iterdir()) == ["_turnout", *kept]
    data = trouble.TroubledSource(table(), marks, "none", (), BLOCK_ROWS)
    whole = tn.ray.randomize(data, "answer", ORACLE, output=folder, group_by="day", resume=True)
    assert written(folder).items() > kept.items()
    assert whole.tally().received == ROWS
