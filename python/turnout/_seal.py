"""A checksum over a whole file, kept inside that file.

Parquet and Arrow files have checksums over some of their parts at most, so that a changed byte in
a statistic, in padding or in a footer can pass unseen. A *seal* covers every byte: the text
``turnout-sha256:`` followed by 64 hexadecimal digits, which are the SHA-256 of the file with
those digits replaced by zeros. A format that repeats its metadata (Arrow IPC does, in its footer)
holds the same seal several times; all of them are blanked and all must be equal.

A seal finds accidents: truncation, bad disks, broken transfers. It is not authentication. Whoever
can write the file can also seal it again.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from turnout.errors import CorruptDataError, TurnoutError

__all__ = ["SEAL_MARKER", "new_placeholder", "seal_file", "verify_seal"]

SEAL_MARKER = "turnout-sha256:"
_MARKER = SEAL_MARKER.encode("ascii")
_DIGITS = 64
_BLANK = b"0" * _DIGITS


def new_placeholder() -> str:
    """Return a seal to write into the file's metadata until :func:`seal_file` sets the true one.

    Its digits are random, so that nothing else in the file can be taken for it.

    Examples
    --------
    >>> len(new_placeholder()) == len(SEAL_MARKER) + 64
    True
    """
    return SEAL_MARKER + secrets.token_hex(_DIGITS // 2)


def seal_file(path: str | os.PathLike[str], placeholder: str) -> None:
    """Replace every copy of a placeholder in a file by the file's true seal, in place.

    Parameters
    ----------
    path
        A complete file that holds ``placeholder`` at least once, uncompressed.
    placeholder
        What :func:`new_placeholder` returned.

    Raises
    ------
    TurnoutError
        If the file does not hold the placeholder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "sealed")
    ...     placeholder = new_placeholder()
    ...     _ = file.write_text("before " + placeholder + " after")
    ...     seal_file(file, placeholder)
    ...     verify_seal(file.read_bytes())
    """
    with Path(path).open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        positions = _positions(data, placeholder.encode("ascii"))
        if not positions:
            raise TurnoutError(f"{os.fspath(path)}: the file holds no place for its checksum")
        digest = _digest(data, positions)
        for position in positions:
            data[position : position + _DIGITS] = digest
        data.flush()


def verify_seal(data: bytes | mmap.mmap) -> None:
    """Check a file's bytes against the seal that they hold.

    Parameters
    ----------
    data
        The whole file, read or mapped.

    Raises
    ------
    CorruptDataError
        If there is no seal, or if any byte of the file, the seal's own included, differs from
        what was sealed.

    Examples
    --------
    >>> verify_seal(b"no seal here")
    Traceback (most recent call last):
        ...
    turnout.errors.CorruptDataError: not a file of turnout's, or its end is missing
    """
    last = data.rfind(_MARKER)
    found = data[last + len(_MARKER) : last + len(_MARKER) + _DIGITS]
    if last < 0 or len(found) < _DIGITS:
        raise CorruptDataError("not a file of turnout's, or its end is missing")
    if _digest(data, _positions(data, _MARKER + found)) != found:
        raise CorruptDataError("the checksum does not match: the file was altered or cut")


def _positions(data: bytes | mmap.mmap, seal: bytes) -> list[int]:
    """Offsets of the digits of every copy of a seal."""
    positions: list[int] = []
    start = data.find(seal)
    while start >= 0:
        positions.append(start + len(_MARKER))
        start = data.find(seal, start + len(seal))
    return positions


def _digest(data: bytes | mmap.mmap, positions: Sequence[int]) -> bytes:
    """SHA-256 in hexadecimal of the bytes with the digits at ``positions`` blanked."""
    digest = hashlib.sha256()
    with memoryview(data) as view:
        start = 0
        for position in positions:
            digest.update(view[start:position])
            digest.update(_BLANK)
            start = position + _DIGITS
        digest.update(view[start:])
    return digest.hexdigest().encode("ascii")
