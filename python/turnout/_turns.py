"""Files that several processes read, check and write: they take turns."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def turn(path: str | os.PathLike[str]) -> Iterator[None]:
    """Wait until nobody else uses a file; a process that dies gives its turn back.

    Threads wait for each other as processes do. The lock is on an empty file beside it,
    ``.lock``, which stays: the file itself is replaced whenever it is written. Where the system
    has no such locks (Windows) nobody waits.

    Parameters
    ----------
    path
        The file, which need not exist. Links are followed, so that all who name it take turns.

    Yields
    ------
    None
        While it is this one's turn.

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
