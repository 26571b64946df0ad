"""Files: only regular ones are read, new ones appear whole or not at all, processes take turns."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

#: Errors of writing whose messages do not name the file: a full disk, a quota, a limit on the size
#: of files, a read-only file system.
_NO_ROOM: Final = frozenset(
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS") if hasattr(errno, name)
)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, unless it is a folder, a pipe or a device.

    Opening a pipe waits for its writer, which cannot be interrupted when Arrow opens it. A device
    may have no end. Both are refused at once.

    Raises
    ------
    OSError
        If the file cannot be opened, or is not a regular one. The error names it.

    Examples
    --------
    >>> import os
    >>> open_regular(os.devnull)
    Traceback (most recent call last):
        ...
    OSError: [Errno 22] not a regular file: '/dev/null'
    """
    # Not to wait: the opening itself of a pipe without a writer would.
    flags = os.O_RDONLY
    for name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    descriptor = os.open(path, flags)
    try:
        refuse_special(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file.

    Raises
    ------
    OSError
        As :func:`open_regular`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answer.txt")
    ...     _ = path.write_text("42")
    ...     read_bytes(path)
    b'42'
    """
    with open_regular(path) as file:
        return file.read()


def check_regular(path: str | os.PathLike[str]) -> os.stat_result:
    """Refuse a path that is not a regular file, before a reader opens it by name.

    Raises
    ------
    OSError
        If it does not exist, or is not a regular file. The error names it.
    """
    status = Path(path).stat()
    refuse_special(status, path)
    return status


def refuse_special(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Refuse a folder, a pipe, a device or a socket, by its status.

    Raises
    ------
    OSError
        If the status shows one of these.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike[str],
    *,
    replace: bool = True,
    private: bool = False,
    before: Callable[[], object] | None = None,
) -> Iterator[Path]:
    """Write a file beside its final place and move it there once it is complete.

    The block gets the path of an empty temporary file in the folder of ``path``. When the block
    ends normally, the file's bytes are forced to disk and it replaces ``path`` in one step. When
    the block ends in any exception, ``KeyboardInterrupt`` included, the temporary file is removed
    and ``path`` is unchanged. A reader therefore sees the old file or the new one, never half of
    one. The new file gets the permissions of the file that it replaces. A symbolic link is
    followed, not replaced.

    Parameters
    ----------
    path
        The final path of the file. Its folder must exist.
    replace
        Whether to replace a file that exists at ``path`` when the block ends. Otherwise anything at
        ``path``, even a dangling link, is an error, and of several writers the first one's file is
        kept.
    private
        Whether only its owner can read a new file, from the moment it is created.
    before
        Called when the file is complete and on disk, right before it appears. If it raises, the
        file does not appear.

    Yields
    ------
    pathlib.Path
        The temporary file to write to. It exists and is empty.

    Raises
    ------
    FileExistsError
        If ``path`` exists and must not be replaced.
    OSError
        If the folder does not exist or cannot be written to, or if ``path`` is something other
        than a regular file (a folder, a device), or if the disk is full. The error names ``path``,
        not the temporary file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "answer.txt")
    ...     with atomic_write(target) as temporary:
    ...         _ = temporary.write_text("42")
    ...         before = target.exists()
    ...     (before, target.read_text())
    (False, '42')
    """
    target = Path(os.path.realpath(path))
    if not replace:
        # Not where a link leads: the link is what is there.
        target = Path(path).absolute()
        if os.path.lexists(target):
            raise _exists(path)
    mode = _mode_of_existing(target, path)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(
            temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    os.close(descriptor)
    try:
        with naming(path, temporary):
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            _synchronise_file(temporary)
            if before is not None:
                before()
            if replace:
                temporary.replace(target)
            elif not _publish(temporary, target):
                raise _exists(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    synchronise_folder(target.parent)


@contextlib.contextmanager
def naming(
    path: str | os.PathLike[str], temporary: str | os.PathLike[str] | None = None
) -> Iterator[None]:
    """Add the file's name to an error of writing it, such as "No space left on device".

    Parameters
    ----------
    path
        The file that is written.
    temporary
        The file that is written until it is complete. Errors that name it name ``path`` instead.

    Raises
    ------
    OSError
        The error that the block raised, with the name of the file.

    Examples
    --------
    >>> with naming("answer.txt"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    OSError: [Errno 28] No space left on device: 'answer.txt'
    """
    try:
        yield
    except OSError as error:
        nameless = error.filename is None and error.errno in _NO_ROOM
        hidden = temporary is not None and error.filename in (temporary, os.fspath(temporary))
        if not (nameless or hidden) or error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error


def _publish(temporary: Path, target: Path) -> bool:
    """Publish a file unless ``path`` exists; return whether it was published."""
    appeared = True
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        appeared = False
    except OSError:
        # A file system without links: between the two steps another writer may come first.
        appeared = not os.path.lexists(target)
        if appeared:
            temporary.replace(target)
            return True
    temporary.unlink()
    return appeared


def _exists(path: str | os.PathLike[str]) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))


def _mode_of_existing(target: Path, path: str | os.PathLike[str]) -> int | None:
    """Return the permissions of the file to replace, or None; refuse a special file."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    # os.replace would put a regular file in the place of a device or a pipe.
    refuse_special(status, path)
    return stat.S_IMODE(status.st_mode)


def _synchronise_file(path: Path) -> None:
    with path.open("r+b") as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            # An error of the disk that the system met after the bytes were handed to it.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def synchronise_folder(folder: Path) -> None:
    """Make a rename in a folder durable where the system can; the bytes are already on disk."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def turn(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until nobody else uses a file; a process that dies releases its turn.

    Threads wait for each other as processes do. The lock is on an empty file beside it, ``.lock``,
    which remains: the file itself is replaced whenever it is written. Where the system has no such
    locks (Windows), nobody waits.

    Parameters
    ----------
    path
        The file, which need not exist. Links are followed, so that everyone who uses the file takes
        turns.

    Yields
    ------
    None
        Nothing; the block runs while the caller has its turn.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written to; the error names ``path``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "number")
    ...     with turn(path):
    ...         _ = path.write_text(str(int(path.read_text()) + 1) if path.exists() else "0")
    ...     path.read_text()
    '0'
    """
    try:
        import fcntl  # noqa: PLC0415 (not on every system)
    except ImportError:  # pragma: no cover
        yield
        return
    target = Path(os.path.realpath(path))
    try:
        descriptor = os.open(target.with_name(target.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def presence(folder: str | os.PathLike[str]) -> Iterator[Callable[[], bool]]:
    """Mark a folder as in use; the mark of a process that dies disappears.

    Parameters
    ----------
    folder
        A folder that exists. Several processes may use it at once.

    Yields
    ------
    callable
        Ends the use, and returns whether nobody else uses the folder now. If so, a newcomer waits
        until the block ends. Where the file system or the operating system (Windows) has no such
        locks, it returns that nobody else does.

    Raises
    ------
    OSError
        If the folder cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, presence(folder) as last:
    ...     with presence(folder) as other:
    ...         print(last(), other())
    False True
    """
    try:
        import fcntl  # noqa: PLC0415 (not on every system)
    except ImportError:  # pragma: no cover
        yield lambda: True
        return

    def locked(how: int) -> bool:
        try:
            fcntl.flock(descriptor, how)
        except BlockingIOError:
            return False
        except OSError:
            # No locks here, as on some file systems of a network.
            return True
        return True

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        locked(fcntl.LOCK_SH)
        # Who is refused this lock has lost the other one.
        yield lambda: locked(fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)
