"""Limit connections: how long a client may take for its request, and how many there are.

Uvicorn bounds neither the head of a request nor the time that a client takes for it, a silent
connection stays open forever, and many bodies that never end fill the memory. Here each of them has
a bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from turnout.serve.limits import Limits

#: The bytes of a body that may still come after the answer. A connection that was closed before
#: they came would be reset, and the client would often not see the answer.
_UNWANTED: Final = 2**24


def connections_within(limits: Callable[[], Limits]) -> type[asyncio.Protocol]:
    """Make the class of connections of a server.

    Parameters
    ----------
    limits
        Returns what connections may cost.
    """
    # Those that have sent no whole request yet, and those between two, the oldest first.
    waiting: dict[Any, None] = {}
    # Those whose body has begun and not ended, and the bytes of these bodies that came.
    holding: set[Any] = set()
    held = 0

    class Connection(HttpToolsProtocol):
        """A connection of a client."""

        _timer: asyncio.TimerHandle | None = None
        _reading_timer: asyncio.TimerHandle | None = None
        _head = 0
        _in_head = True
        _unwanted = 0
        _held = 0
        _ended = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Begin, and close the connection that waits longest if there are too many."""
            super().connection_made(transport)
            if len(self.connections) > limits().connections:
                for oldest in waiting:
                    oldest._refuse(503, "too many connections")
                    break
                else:
                    self._refuse(503, "too many connections")
                    return
            waiting[self] = None
            self._start()

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the connection, and stop its timers."""
            waiting.pop(self, None)
            self._let_go()
            self._stop()
            if self._reading_timer is not None:
                self._reading_timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            """Take what the client sent, but refuse a head that is too large."""
            self._head += len(data)
            super().data_received(data)
            if self._in_head and self._head > limits().head_bytes:
                self._refuse(431, "the head of the request is too large")

        def eof_received(self) -> bool:  # type: ignore[override]
            """Answer what was asked, although the client sends no more; then close."""
            self._ended = True
            cycle = self.cycle
            return cycle is not None and not cycle.more_body and not cycle.response_complete

        def on_message_begin(self) -> None:
            """Begin a request."""
            if self._timer is None:
                self._start()
            self._unwanted = 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """Continue with the body, unless the head is too large."""
            self._in_head, self._head = False, 0
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > limits().head_bytes:
                self._refuse(431, "the head of the request is too large")
                return
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            """Take a part of the body, if it is wanted."""
            if self.transport.is_closing():
                return
            if self.cycle.response_complete:
                self._unwanted += len(body)
                if self._unwanted > _UNWANTED:
                    self.transport.close()
                return
            self._hold(len(body))
            if not self.transport.is_closing():
                super().on_body(body)

        def on_message_complete(self) -> None:
            """End a request; the server answers next."""
            self._stop()
            self._let_go()
            self._in_head, self._head = True, 0
            if self.transport.is_closing():
                return
            if not self.cycle.response_complete:
                waiting.pop(self, None)
            super().on_message_complete()

        def on_response_complete(self) -> None:
            """Wait for the next request."""
            super().on_response_complete()
            self._let_go()
            if self._ended and self.cycle.response_complete:
                self.transport.close()
            if not self.transport.is_closing() and self.cycle.response_complete:
                waiting[self] = None

        def pause_writing(self) -> None:
            """Give some time to a client that does not take its answer."""
            super().pause_writing()
            self._reading_timer = self.loop.call_later(
                limits().reading_seconds, self.transport.abort
            )

        def resume_writing(self) -> None:
            """Continue with a client that takes its answer again."""
            super().resume_writing()
            if self._reading_timer is not None:
                self._reading_timer.cancel()

        def _hold(self, size: int) -> None:
            """Count bytes of a body; of too many, refuse the body that has most of them."""
            nonlocal held
            holding.add(self)
            self._held, held = self._held + size, held + size
            while held > limits().waiting_bytes:
                max(holding, key=lambda each: each._held)._refuse(503, "too many bytes wait")

        def _let_go(self) -> None:
            nonlocal held
            holding.discard(self)
            self._held, held = 0, held - self._held

        def _start(self) -> None:
            self._timer = self.loop.call_later(limits().request_seconds, self._too_slow)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._refuse(408, "the request took too long")

        def _refuse(self, status: int, reason: str) -> None:
            """Answer at once if nothing was answered yet, and close the connection."""
            self._let_go()
            if self.transport.is_closing():
                return
            waiting.pop(self, None)
            cycle = self.cycle
            answered = cycle is not None and cycle.response_started
            # Of a request that was answered before its end no second answer is given.
            if not answered or (cycle.response_complete and not cycle.more_body):
                body = reason.encode() + b"\n"
                self.transport.write(
                    b"HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\n"
                    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
                    % (status, reason.encode(), len(body), body)
                )
            if cycle is not None and not cycle.response_complete:
                # Whoever works on the request learns that nobody waits for it any more.
                cycle.disconnected = True
                cycle.message_event.set()
            self.transport.close()

    return Connection
