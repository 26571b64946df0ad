"""Frames and acknowledgements, and time limits for both sides of a connection.

The layout is in :mod:`turnout.distributed.transport`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnout import errors
from turnout.errors import MalformedMessageError, ProtocolError, TurnoutError

_T = TypeVar("_T")

_LENGTH = struct.Struct("<I")
_REFUSED = b"\x01"

#: Says that a message was accepted.
ACCEPTED = b"\x00"

_LONGEST_TEXT = 4096

#: A frame is read in pieces of so many bytes.
PIECE = 2**16
LARGEST_ACKNOWLEDGEMENT = 2**14

#: For how many seconds the other side may take part in closing a connection.
CLOSING = 2.0

#: What came while this process was busy with something else is read within so many seconds.
_READING = 0.1

#: The errors that a refusal can stand for.
_ERRORS: dict[str, type[TurnoutError]] = {name: getattr(errors, name) for name in errors.__all__}


def frame(content: bytes) -> bytes:
    r"""Return the content with its length in front.

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
    """Read the content of the next frame; return None if the stream has ended.

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
            f"a frame was truncated: expected {size} bytes, got {len(error.partial)}"
        ) from error


def refused(error: TurnoutError) -> bytes:
    """Write the acknowledgement that refuses a message, with the reason."""
    text = f"{type(error).__name__}\n{error}".encode(errors="replace")
    return _REFUSED + text[:_LONGEST_TEXT]


def read_acknowledgement(content: bytes) -> TurnoutError | None:
    """Read an acknowledgement: the error that refuses the message, or None.

    Examples
    --------
    >>> read_acknowledgement(refused(ProtocolError("too late")))
    ProtocolError('too late')
    """
    if content == ACCEPTED:
        return None
    name, separator, text = content[1:].decode(errors="replace").partition("\n")
    if content[:1] != _REFUSED or not separator:
        return MalformedMessageError("the answer to a message was no acknowledgement")
    return _ERRORS.get(name, ProtocolError)(text)


async def wait_for(awaitable: Awaitable[_T], within: float) -> _T:
    """Wait for a result; ``asyncio.wait_for`` loses a cancellation if the result is just there.

    So it is before Python 3.12.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait((task,), timeout=within)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
            if task.cancelled():
                raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Close a stream, by force if the other side does not cooperate."""
    writer.close()
    try:
        await wait_for(writer.wait_closed(), CLOSING)
    except (OSError, asyncio.TimeoutError):
        writer.transport.abort()


class Watch:
    """A timer that detects when a connection has been idle for too long.

    Moving costs nothing: there is one timer, which looks again at the time of the last move.

    Parameters
    ----------
    within
        For how many seconds it may stand still.
    expired
        Called once, when it has.
    """

    def __init__(self, within: float, expired: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._within = within
        self._expired = expired
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def moved(self) -> None:
        """Start watching, or restart the time."""
        self._deadline = self._loop.time() + self._within
        if self._timer is None:
            self._timer = self._loop.call_later(self._within, self._look)

    def stop(self) -> None:
        """Stop watching until the connection moves again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        left = self._deadline - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            # After a long computation of this process the timer comes before what has arrived.
            self._timer = self._loop.call_later(min(self._within, _READING), self._end)

    def _end(self) -> None:
        if self._deadline > self._loop.time():
            self._look()
        else:
            self._timer = None
            self._expired()
