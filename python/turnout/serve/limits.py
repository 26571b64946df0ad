"""Limits of a request, which follow from the plans; honest clients never meet them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from turnout.serve.collection import Published

#: The most messages of a request, and the most bytes of one if a message is short.
MOST_LINES: Final = 1000
_MOST_BYTES: Final = 2**22

#: The header that says after how many seconds to send the same again.
RETRY: Final = {"retry-after": "2"}


@dataclass(frozen=True)
class Limits:
    """The limits of requests and connections.

    Attributes
    ----------
    message_bytes
        The bytes of one message.
    lines
        The messages of one request.
    waiting_bytes
        The bytes of messages that wait to be stored, of all requests together.
    connections
        How many connections are open at once; of more, one that sends nothing is closed.
    head_bytes
        The bytes of a request before its body.
    request_seconds
        How long a client may take to send a request, and to begin one on a connection.
    idle_seconds
        How long a connection stays open between requests.
    reading_seconds
        How long a client may take none of an answer.

    Examples
    --------
    >>> limits = Limits(message_bytes=600)
    >>> limits.body_bytes
    600000
    """

    message_bytes: int
    lines: int = MOST_LINES
    waiting_bytes: int = 2**26
    connections: int = 4096
    head_bytes: int = 2**14
    request_seconds: float = 20.0
    idle_seconds: float = 15.0
    reading_seconds: float = 20.0

    @classmethod
    def of(cls, published: Sequence[Published], **more: Any) -> Limits:
        """State what follows from plans; ``more`` does not."""
        message_bytes = max(one.message_bytes for one in published)
        lines = max(1, min(MOST_LINES, _MOST_BYTES // message_bytes))
        return cls(message_bytes, lines, max(2**26, 8 * message_bytes), **more)

    @property
    def body_bytes(self) -> int:
        """The bytes of a request's body."""
        return self.lines * self.message_bytes
