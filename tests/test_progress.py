"""What is said of work that takes long, and linear algebra on one thread."""

from __future__ import annotations

import re
import sys
import threading
import time

import pytest

from turnout import _progress as progress
from turnout._one_thread import one_thread


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds become hundredths."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.02)
    monkeypatch.setattr(progress, "_BETWEEN", 0.05)
    monkeypatch.setattr(progress, "_written", [-1e9])


def wait_for_line(capfd: pytest.CaptureFixture[str], pattern: str) -> None:
    """Wait until such a line is written."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if any(re.fullmatch(pattern, line) for line in capfd.readouterr().err.splitlines()):
            return
        time.sleep(0.01)
    raise TimeoutError(pattern)


def test_a_line_comes_every_ten_seconds_and_says_what_is_done(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with progress.beating("turnout plan"):
        wait_for_line(capfd, r"turnout plan: \d+ s")
        with progress.doing("simulating"):
            wait_for_line(capfd, r"simulating: \d+ s")
    capfd.readouterr()
    time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_quick_work_says_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 60.0)
    with progress.beating("turnout plan"), progress.doing("planning"):
        assert list(progress.track(range(3), "drawing", True)) == [0, 1, 2]
    assert capfd.readouterr().err == ""


def test_a_count_is_written_once_in_ten_seconds(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(progress, "_BETWEEN", 600.0)
    for _ in progress.track(range(100), "drawing", True):
        pass
    assert capfd.readouterr().err == "drawing: 0 of 100\n"
    assert progress._doing == []


def test_lines_do_not_break_a_bar(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_drawn", [object()])
    with progress.beating("turnout plan"):
        time.sleep(0.1)
    assert capfd.readouterr().err == ""


def test_linear_algebra_has_one_thread_until_the_last_is_done() -> None:
    info = pytest.importorskip("threadpoolctl").threadpool_info
    pytest.importorskip("sklearn.mixture")
    before = info()

    def most() -> int:
        return max((pool["num_threads"] for pool in info()), default=1)

    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with one_thread():
            entered.set()
            leave.wait(600)

    with one_thread():
        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(600)
        assert most() == 1
    assert most() == 1
    leave.set()
    thread.join()
    assert info() == before


def test_nothing_is_held_without_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_thread():
        pass
