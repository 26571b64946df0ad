"""Frames and acknowledgements: the layout is in :mod:`turnout.distributed.transport`."""

from __future__ import annotations

import asyncio
import struct

from turnout import errors
from turnout.errors import MalformedMessageError, ProtocolError, TurnoutError

__all__ = [
    "LARGEST_ACKNOWLEDGEMENT",
    "LARGEST_FRAME",
    "accepted",
    "frame",
    "read_acknowledgement",
    "read_frame",
    "refused",
]

_LENGTH = struct.Struct("<I")
_ACCEPTED, _REFUSED = b"\x00", b"\x01"
_LONGEST_TEXT = 4096

#: The bytes of the largest frame that is taken by default: a share of 16 million items fits.
LARGEST_FRAME = 2**26
LARGEST_ACKNOWLEDGEMENT = 2**14

#: The errors that a refusal can stand for.
_ERRORS: dict[str, type[TurnoutError]] = {name: getattr(errors, name) for name in errors.__all__}


def frame(content: bytes) -> bytes:
    r"""Put the length before the content.

    Examples
    --------
    >>> frame(b"abc")
    b'\x03\x00\x00\x00abc'
    """
    return _LENGTH.pack(len(content)) + content


async def read_frame(reader: asyncio.StreamReader, largest: int) -> bytes | None:
    """Read the content of the next frame; None where the stream ends after the last one.

    Parameters
    ----------
    reader
        The stream.
    largest
        The size of the largest frame that is taken; nothing of a larger one is read.

    Raises
    ------
    MalformedMessageError
        If the stream ends within a frame, or a frame is too large. The stream is of no use then.
    OSError
        If the connection is lost.
    """
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > largest:
            raise MalformedMessageError(
                f"a frame must have at most {largest} bytes, got one of {length}"
            )
        return await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        if not error.partial and error.expected == _LENGTH.size:
            return None
        raise MalformedMessageError(
            f"a frame was cut: expected {error.expected} bytes, got {len(error.partial)}"
        ) from error


def accepted() -> bytes:
    """Say that a message was accepted."""
    return _ACCEPTED


def refused(error: TurnoutError) -> bytes:
    """Say why a message was refused."""
    text = f"{type(error).__name__}\n{error}".encode(errors="replace")
    return _REFUSED + text[:_LONGEST_TEXT]


def read_acknowledgement(content: bytes) -> TurnoutError | None:
    """Read what the other side says of a message: the error that it refused it with, or None.

    Examples
    --------
    >>> read_acknowledgement(refused(ProtocolError("too late")))
    ProtocolError('too late')
    """
    if content == _ACCEPTED:
        return None
    name, separator, text = content[1:].decode(errors="replace").partition("\n")
    if content[:1] != _REFUSED or not separator:
        return MalformedMessageError("the answer to a message was no acknowledgement")
    return _ERRORS.get(name, ProtocolError)(text)
