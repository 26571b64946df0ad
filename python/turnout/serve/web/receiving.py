"""The requests that bring messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from turnout.errors import StoreUnavailableError
from turnout.serve.counters import Counters
from turnout.serve.limits import RETRY, Limits
from turnout.serve.web.answers import Receive, Scope, Send, refusal
from turnout.serve.web.inviting import Inviting
from turnout.serve.writing import Taken, Writer

#: In what messages come: lines of JSON, by all the names that they have.
TYPES: Final = (
    "application/x-ndjson",
    "application/jsonl",
    "application/json",
    "application/octet-stream",
    "text/plain",
)

#: What may stand around a message in its line.
_SPACE: Final = b" \t\r"


class Receiving:
    """A handler that takes messages in, and answers when they are durable.

    It is an ASGI application of its own. To find a route and go through the layers of Starlette
    would cost as much as all the other work for a request of one message.

    Parameters
    ----------
    writer
        The writer that stores the messages.
    inviting
        The check that lets messages in.
    counters
        The counters of what became of the messages.
    limits
        Returns what requests may cost.
    """

    def __init__(
        self,
        writer: Writer,
        inviting: Inviting,
        counters: Counters,
        limits: Callable[[], Limits],
    ) -> None:
        self._writer, self._inviting, self._counters = writer, inviting, counters
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            taken = await self._take(Request(scope), receive)
            answer = Response(json.dumps(taken.described()), media_type="application/json")
        except HTTPException as error:
            answer = refusal(error)
        except ClientDisconnect:
            return
        await answer(scope, receive, send)

    async def _take(self, request: Request, receive: Receive) -> Taken:
        """Take messages in, one per line."""
        limits = self._limits()
        mark = self._inviting.mark(request)
        lines, size = await _lines(request, receive, limits)
        if mark is not None and len(lines) > 1:
            raise HTTPException(400, "send one message with an invitation or a ticket")
        if self._writer.waiting + size > limits.waiting_bytes:
            raise HTTPException(429, "too many messages wait to be stored", RETRY)
        try:
            taken = await self._writer.take(lines, size, mark)
        except StoreUnavailableError:
            raise HTTPException(
                503, "messages cannot be stored at the moment: send the same again", RETRY
            ) from None
        except Exception:
            # The writer has logged it.
            raise HTTPException(500, "the messages were not accepted") from None
        for outcome, number in (
            ("accepted", taken.accepted),
            ("duplicate", taken.duplicates),
            *taken.refused.items(),
        ):
            if number:
                self._counters.count("turnout_messages_total", number, outcome=outcome)
        return taken


async def _lines(request: Request, receive: Receive, limits: Limits) -> tuple[list[bytes], int]:
    """Read the body of a request, up to the largest allowed size."""
    headers = {name: value.decode("latin-1") for name, value in request.scope["headers"]}
    coding = headers.get(b"content-encoding", "identity")
    if coding.strip().lower() not in ("", "identity"):
        raise HTTPException(415, "send messages as they are, without a content-encoding")
    kind = headers.get(b"content-type", TYPES[0]).partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise HTTPException(415, f"send messages as {TYPES[0]}, one a line")
    most = limits.body_bytes
    declared = headers.get(b"content-length", "0")
    if not declared.isdecimal() or len(declared) > 18 or int(declared) > most:
        raise _too_large(limits)
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise _too_large(limits)
    if body.count(b"\n") > 2 * limits.lines:
        raise _too_large(limits)
    lines = [found for line in bytes(body).split(b"\n") if (found := line.strip(_SPACE))]
    if not lines:
        raise HTTPException(400, "the body must hold messages, one a line; it holds none")
    if len(lines) > limits.lines:
        raise _too_large(limits)
    return lines, len(body)


def _too_large(limits: Limits) -> HTTPException:
    reason = f"send at most {limits.body_bytes} bytes and {limits.lines} messages in one request"
    return HTTPException(413, reason)
