"""Secrets: bytes that no message shows, and files that only their owner can read."""

from __future__ import annotations

import os
import stat

from turnout._files import atomic_write, open_regular
from turnout.errors import InvalidValueError


class HiddenBytes(bytes):
    """A secret whose ``repr`` hides it: in tracebacks, logs and errors of libraries.

    For example, Ray lists the members of an argument that it cannot send.

    Examples
    --------
    >>> HiddenBytes(b"a secret")
    <8 hidden bytes>
    >>> HiddenBytes(b"a secret") == b"a secret"
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Show how many there are."""
        return f"<{len(self)} hidden bytes>"

    __str__ = __repr__


def write_secret_file(path: str | os.PathLike[str], text: str) -> None:
    """Write a new file of mode 0600, whole or not at all.

    Parameters
    ----------
    path
        The file. An existing file is never overwritten, since its secret would be lost.
    text
        The content, in ASCII.

    Raises
    ------
    FileExistsError
        If ``path`` exists.
    OSError
        If the file cannot be written.
    """
    with atomic_write(path, replace=False, private=True) as temporary:
        temporary.write_bytes(text.encode("ascii"))


def read_secret_file(path: str | os.PathLike[str]) -> bytes:
    """Read a file that :func:`write_secret_file` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    bytes
        The content.

    Raises
    ------
    InvalidValueError
        If anyone but its owner can read or change the file.
    OSError
        If it cannot be read.
    """
    with open_regular(path) as file:
        # Of the file that is open: at the path there may soon be another one.
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise InvalidValueError(
                f"{os.fspath(path)}: other users can read this key: run chmod 600 on it, "
                "and make a new key if somebody may have read it"
            )
        return file.read()
