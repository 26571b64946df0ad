"""Readers of paths refuse at once what is no regular file: nobody waits for a pipe."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import turnout as tn
from turnout._files import check_regular, open_regular, read_bytes
from turnout.accounting import PrivacyLedger
from turnout.collecting.report_files import read_reports
from turnout.federated.checkpoint import read_checkpoint
from turnout.pipeline import PseudonymKey, open_reports, scan
from turnout.signing import SigningKey

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@contextlib.contextmanager
def pipe(path: Path) -> Iterator[Path]:
    """Make a pipe that nobody writes to. A reader that waits for it is let go with nothing."""
    os.mkfifo(path, 0o600)
    done = threading.Event()

    def let_go() -> None:
        while not done.wait(1):
            with contextlib.suppress(OSError):
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    thread = threading.Thread(target=let_go, daemon=True)
    thread.start()
    try:
        yield path
    finally:
        done.set()
        thread.join()


READERS: list[tuple[str, Callable[[Path], object]]] = [
    ("a", open_regular),
    ("a", read_bytes),
    ("a", check_regular),
    ("a.parquet", read_reports),
    ("a.parquet", lambda path: open_reports(path).tally()),
    ("a.parquet", lambda path: open_reports(path.parent).tally()),
    ("a.parquet", lambda path: scan(path, "answer")),
    ("a.parquet", lambda path: scan(path.parent, "answer")),
    ("a.csv", lambda path: scan(path.parent, "answer")),
    ("a.arrow", lambda path: scan(os.fspath(path.parent / "*.arrow"), "answer")),
    ("a.csv", lambda path: scan(path, "answer")),
    ("a.arrow", lambda path: scan(path, "answer")),
    ("plan.json", tn.Plan.read),
    ("ledger.json", PrivacyLedger.read),
    ("a.key", SigningKey.read),
    ("a.key", PseudonymKey.read),
    ("model.npz", read_checkpoint),
]


@pytest.mark.parametrize(("name", "read"), READERS)
def test_no_reader_waits_for_a_pipe(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    with pipe(tmp_path / name) as path, pytest.raises(OSError, match="not a regular file") as found:
        read(path)
    assert found.value.filename == os.fspath(path)


def test_a_client_does_not_wait_for_a_pipe_in_the_place_of_its_state(tmp_path: Path) -> None:
    memoized = tn.Memoized(tn.DirectEncoding(3.0, 4), first_epsilon=1.0)
    client = memoized.client(max_values=1)
    with pipe(tmp_path / "state") as path, pytest.raises(OSError, match="not a regular file"):
        client.message(tn.Plan(memoized, tn.Everyone()), 1, state=path)


@pytest.mark.parametrize("read", [open_regular, read_bytes, check_regular])
def test_folders_and_files_that_are_not_there_are_told_apart(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
    with pytest.raises(FileNotFoundError) as found:
        read(tmp_path / "nowhere")
    assert os.fspath(found.value.filename) == os.fspath(tmp_path / "nowhere")


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"42")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_bytes(tmp_path / "b") == b"42"
