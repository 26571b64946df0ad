"""Files that are read: regular ones, and nothing that could keep a reader waiting."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for reading, unless it is a folder, a pipe or a device.

    To open a pipe waits for whoever writes to it, and what Arrow opens cannot even be interrupted;
    a device may have no end. Both are refused at once.

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
    OSError: [Errno 22] Not a regular file: '/dev/null'
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
    """Refuse what is no regular file, before it goes to a reader that opens by name.

    Raises
    ------
    OSError
        If there is none, or it is something else. The error names it.
    """
    status = Path(path).stat()
    refuse_special(status, path)
    return status


def refuse_special(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Refuse what a status shows to be a folder, a pipe, a device or a socket.

    Raises
    ------
    OSError
        If it is one.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", os.fspath(path))
