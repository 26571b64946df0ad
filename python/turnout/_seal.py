"""A checksum over a whole file, kept inside that file.

Parquet and Arrow files have checksums over some of their parts at most. A changed byte in a
statistic, in padding or in a footer can pass unseen. A *seal* covers every byte: the text
``turnout-sha256:`` followed by 64 hexadecimal digits. These digits are the SHA-256 of the file with
the digits replaced by zeros. A format that repeats its metadata (Arrow IPC does, in its footer)
holds the same seal several times. All copies are replaced by zeros, and all must be equal.

A seal finds accidents: truncation, bad disks, broken transfers. It is not authentication: anyone
who can write the file can also seal it again.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path
from typing import BinaryIO

from turnout import _core
from turnout.errors import CorruptDataError, TurnoutError

SEAL_MARKER = _core.SEAL
_MARKER = SEAL_MARKER.encode("ascii")
_DIGITS = 64
_BLANK = b"0" * _DIGITS
#: Bytes that are read at once.
_STRETCH = 2**20


def new_placeholder() -> str:
    """Return a placeholder for the file's metadata, which :func:`seal_file` replaces.

    Its digits are random, so that nothing else in the file can be mistaken for it.

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
        The placeholder from :func:`new_placeholder`.

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
    ...     with file.open("rb") as sealed:
    ...         verify_seal(sealed)
    """
    with Path(path).open("r+b") as file:
        digest, positions = _digest(file, placeholder.encode("ascii"))
        if not positions:
            raise TurnoutError(f"{os.fspath(path)}: the file has no room for its checksum")
        for position in positions:
            file.seek(position)
            file.write(digest)


def verify_seal(file: BinaryIO) -> None:
    """Check a file's bytes against the seal inside it.

    The file is read in chunks and not mapped: reading a mapped file that somebody truncates
    meanwhile kills the process.

    Parameters
    ----------
    file
        The whole file, open for reading.

    Raises
    ------
    CorruptDataError
        If there is no seal, or if any byte of the file, the seal's own included, differs from
        what was sealed.

    Examples
    --------
    >>> import io
    >>> verify_seal(io.BytesIO(b"no seal here"))
    Traceback (most recent call last):
        ...
    turnout.errors.CorruptDataError: not a turnout file, or its end is missing
    """
    seal = _last_seal(file)
    if _digest(file, seal)[0] != seal[-_DIGITS:]:
        raise CorruptDataError("the checksum does not match: the file was altered or truncated")


def _last_seal(file: BinaryIO) -> bytes:
    """Find the last seal of a file, near its end."""
    end = file.seek(0, os.SEEK_END)
    # What follows a stretch, so far that a seal which begins in it is whole.
    after = b""
    while end:
        start = max(end - _STRETCH, 0)
        file.seek(start)
        data = file.read(end - start) + after
        last = data.rfind(_MARKER)
        if last >= 0:
            seal = data[last : last + len(_MARKER) + _DIGITS]
            if len(seal) == len(_MARKER) + _DIGITS:
                return seal
            break
        after, end = data[: len(_MARKER) + _DIGITS - 1], start
    raise CorruptDataError("not a turnout file, or its end is missing")


def _digest(file: BinaryIO, seal: bytes) -> tuple[bytes, list[int]]:
    """Return the hexadecimal SHA-256 with all copies of a seal zeroed, and their positions."""
    file.seek(0)
    digest, positions = hashlib.sha256(), []
    # The bytes that were read and not digested yet begin at this offset.
    rest, offset = b"", 0
    while chunk := file.read(_STRETCH):
        data, start = rest + chunk, 0
        while (found := data.find(seal, start)) >= 0:
            digits = found + len(_MARKER)
            digest.update(data[start:digits] + _BLANK)
            positions.append(offset + digits)
            start = digits + _DIGITS
        # A seal may have begun in the last bytes.
        end = max(start, len(data) - len(seal) + 1)
        digest.update(memoryview(data)[start:end])
        rest, offset = data[end:], offset + end
    digest.update(rest)
    return digest.hexdigest().encode("ascii"), positions
