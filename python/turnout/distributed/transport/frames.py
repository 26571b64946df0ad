"""Frames and acknowledgements: the layout is in :mod:`turnout.distributed.transport`."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from turnout import errors
from turnout.errors import MalformedMessageError, ProtocolError, TurnoutError

_LENGTH = struct.Struct("<I")
_ACCEPTED, _REFUSED = b"\x00", b"\x01"
_LONGEST_TEXT = 4096

#: A frame is read in pieces of so many bytes.
PIECE = 2**16
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


async def read_frame(
    reader: asyncio.StreamReader,
    largest: int,
    *,
    look: Callable[[bytes], None] = lambda start: None,
    moved: Callable[[], None] = lambda: None,
) -> bytes | None:
    """Read the content of the next frame; None where the stream ends after the last one.

    Parameters
    ----------
    reader
        The stream.
    largest
        The size of the largest frame that is taken; nothing of a larger one is read.
    look
        Called with the first piece of a frame that has more than one; what it raises ends the
        reading.
    moved
        Called when a frame begins, and whenever a piece was read.

    Raises
    ------
    MalformedMessageError
        If the stream ends within a frame, or a frame is too large. The stream is of no use then.
    OSError
        If the connection is lost.
    """
    start = await _exactly(reader, _LENGTH.size, or_nothing=True)
    if not start:
        return None
    (length,) = _LENGTH.unpack(start)
    if length > largest:
        raise MalformedMessageError(
            f"a frame must have at most {largest} bytes, got one of {length}"
        )
    moved()
    if length <= PIECE:
        content = await _exactly(reader, length)
        moved()
        return content
    whole = bytearray()
    while len(whole) < length:
        whole += await _exactly(reader, min(PIECE, length - len(whole)))
        moved()
        if len(whole) == PIECE:
            look(bytes(whole))
    return bytes(whole)


async def _exactly(reader: asyncio.StreamReader, size: int, or_nothing: bool = False) -> bytes:
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        if or_nothing and not error.partial:
            return b""
        raise MalformedMessageError(
            f"a frame was cut: expected {size} bytes, got {len(error.partial)}"
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
