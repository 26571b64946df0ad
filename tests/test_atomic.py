"""Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import turnout as tn
from turnout._files import atomic_write
from turnout._secrets import write_secret_file
from turnout.collecting.report_files import write_reports
from turnout.collecting.report_files.writing import ReportWriter
from turnout.pipeline.identity import RepeatFinder


def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic_write(target) as temporary:
        temporary.write_text("new")
        assert temporary.parent == target.parent
        assert not target.exists()
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_any_error_keeps_the_old_file_and_leaves_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def write_half() -> None:
        with atomic_write(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_block_that_removes_its_file_fails_and_keeps_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_write(target) as temporary:
        temporary.unlink()
    assert target.read_text() == "old"


def test_errors_name_the_target(tmp_path: Path) -> None:
    target = tmp_path / "no" / "file"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(target):
        pytest.fail("the block must not run")
    assert caught.value.filename == str(target)


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pytest.fail("the block must not run")


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/null")
def test_devices_are_refused_and_stay_devices() -> None:
    with pytest.raises(OSError, match="not a regular file"), atomic_write(os.devnull):
        pytest.fail("the block must not run")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are POSIX's")
def test_permissions_follow_the_umask_or_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    before = os.umask(0o027)
    try:
        with atomic_write(target):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o604)
    with atomic_write(target):
        pass
    assert stat.S_IMODE(target.stat().st_mode) == 0o604


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege there")
def test_a_symbolic_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_write(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_long_names_fit(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    with atomic_write(target) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="no such permissions")
def test_a_private_file_is_its_owners_from_its_first_moment_on(tmp_path: Path) -> None:
    target = tmp_path / "file"
    before = os.umask(0)
    try:
        with atomic_write(target, private=True) as temporary:
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
            temporary.write_text("secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file become longer than so many bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_many_reports(path: Path) -> None:
    write_reports(tn.SymmetricUnaryEncoding(1.0, 256).randomize(np.zeros(5000, int)), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a", lambda path: _write(path, b"0" * 10_000)),
        ("a.parquet", write_many_reports),
        ("a.arrow", write_many_reports),
        ("a.key", lambda path: write_secret_file(path, "0" * 10_000)),
    ],
)
def test_an_error_of_writing_names_the_file_and_leaves_nothing(
    tmp_path: Path, name: str, write: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    with room_for(2**12), pytest.raises(OSError, match="File too large") as found:
        write(path)
    assert found.value.filename == os.fspath(path)
    assert list(tmp_path.iterdir()) == []


def _write(path: Path, data: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)


def test_an_error_of_the_disk_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error") as found:
        _write(tmp_path / "a", b"0")
    assert found.value.filename == os.fspath(tmp_path / "a")


def test_an_error_of_something_else_keeps_its_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="gone") as found, atomic_write(tmp_path / "a"):
        raise OSError(errno.ECONNRESET, "gone")
    assert found.value.filename is None
    with pytest.raises(FileNotFoundError) as missing, atomic_write(tmp_path / "a"):
        (tmp_path / "b").read_bytes()
    assert missing.value.filename == os.fspath(tmp_path / "b")


def test_a_full_disk_names_the_file_of_persons(tmp_path: Path) -> None:
    finder = RepeatFinder(memory=1)
    with room_for(16), pytest.raises(OSError, match="File too large") as found:
        finder.add(np.zeros((10, 2), np.uint64), 0)
    assert Path(found.value.filename).parent.name.startswith("turnout-")


def test_a_key_file_is_not_there_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process that is killed while it writes leaves the file as it was: none.
    path, synchronise, seen = tmp_path / "a.key", os.fsync, []

    def look(descriptor: int) -> None:
        seen.append(path.exists())
        synchronise(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    write_secret_file(path, "0" * 100)
    assert (seen[0], path.read_text(), list(tmp_path.iterdir())) == (False, "0" * 100, [path])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 or sys.platform == "win32"


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_a_key_file_that_appears_meanwhile_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path, synchronise = tmp_path / "a.key", os.fsync

    def other(descriptor: int) -> None:
        path.write_text("first")
        synchronise(descriptor)

    def none(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fsync", other)
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", none)
    with pytest.raises(FileExistsError) as found:
        write_secret_file(path, "second")
    assert found.value.filename == os.fspath(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("first", [path])


def test_reports_that_are_not_to_replace_others_leave_them(tmp_path: Path) -> None:
    path, plan = tmp_path / "reports.parquet", tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    with ReportWriter(path, plan, replace=False) as writer:
        path.write_text("first")
        with pytest.raises(FileExistsError):
            writer.close(0)
    with pytest.raises(FileExistsError):
        ReportWriter(path, plan, replace=False)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("first", [path])


def test_what_is_called_before_a_file_appears_sees_it_whole_and_can_prevent_it(tmp_path):
    path, seen = tmp_path / "a", []

    def look():
        [temporary] = tmp_path.iterdir()
        seen.append((path.exists(), temporary.read_text()))

    def refuse():
        raise OSError("not now")

    with atomic_write(path, before=look) as temporary:
        temporary.write_text("whole")
    assert seen == [(False, "whole")]
    assert path.read_text() == "whole"
    with pytest.raises(OSError, match="not now"), atomic_write(path, before=refuse) as temporary:
        temporary.write_text("other")
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]
