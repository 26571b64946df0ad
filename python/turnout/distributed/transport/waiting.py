"""Waiting for the other side, and no longer than was said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnout import _arguments
from turnout.errors import InvalidValueError

_T = TypeVar("_T")

#: For how many seconds the other side may take part in closing a connection.
CLOSING = 2.0

#: What came while this process was busy with something else is read within so many seconds.
_READING = 0.1


def seconds(argument: str, value: object) -> float:
    """Return a time above zero."""
    result = _arguments.number(argument, value)
    if not result > 0:
        raise InvalidValueError(f"{argument} must be a number of seconds above 0, got {result}")
    return result


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
    """Close a stream, by force if the other side does not take part in it."""
    writer.close()
    try:
        await wait_for(writer.wait_closed(), CLOSING)
    except (OSError, asyncio.TimeoutError):
        writer.transport.abort()


class Watch:
    """Says when a connection has not moved for too long.

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
        """Begin to watch, or count from now again."""
        self._deadline = self._loop.time() + self._within
        if self._timer is None:
            self._timer = self._loop.call_later(self._within, self._look)

    def stop(self) -> None:
        """Watch no more, until it moves again."""
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
