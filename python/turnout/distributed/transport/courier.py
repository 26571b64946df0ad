"""Sends messages over connections that are kept."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from turnout import _arguments
from turnout.distributed.messages import Message, Party
from turnout.distributed.transport.frames import (
    LARGEST_ACKNOWLEDGEMENT,
    Watch,
    close_writer,
    frame,
    read_acknowledgement,
    read_frame,
    wait_for,
)
from turnout.errors import InvalidValueError, MissingPartyError, ProtocolError, TurnoutError

#: A host and a port.
Address = tuple[str, int]

#: How many messages of ``send_all`` may wait for an acknowledgement.
_WINDOW = 256
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0

#: A connection that was silent for so many seconds is not used again: a station may be closing it.
KEPT = 30.0


@dataclass(frozen=True)
class Undelivered:
    """A message that did not arrive, or was refused.

    Attributes
    ----------
    message
        The message.
    error
        What the recipient refused it with; :class:`turnout.errors.MissingPartyError` if it was not
        reached or did not answer.
    """

    message: Message
    error: TurnoutError


class _Connection:
    """One connection: frames go out, acknowledgements come back in the same order."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer_within: float
    ) -> None:
        self._writer = writer
        self._waiting: deque[asyncio.Future[Exception | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._used = self._loop.time()
        self._answered = False
        self._late: asyncio.TimeoutError | None = None
        self._watch = Watch(answer_within, self._lose)
        self._task = asyncio.create_task(self._read(reader))

    @property
    def lost(self) -> bool:
        return self._task.done() or self._writer.is_closing()

    @property
    def stale(self) -> bool:
        """Whether the other side may be closing it, because nothing was sent for long."""
        return not self._waiting and self._loop.time() - self._used > KEPT

    @property
    def silence(self) -> asyncio.TimeoutError | None:
        """The reason, if the time was over before anything was answered at all."""
        return None if self._answered else self._late

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason: Exception = ConnectionResetError("the connection was closed")
        try:
            while (content := await read_frame(reader, LARGEST_ACKNOWLEDGEMENT)) is not None:
                if not self._waiting:
                    reason = ProtocolError("an acknowledgement came of no message")
                    break
                self._answered = True
                self._used = self._loop.time()
                self._answer(read_acknowledgement(content))
                if self._waiting:
                    self._watch.moved()
                else:
                    self._watch.stop()
        except (OSError, TurnoutError) as error:
            reason = error
        finally:
            self._watch.stop()
            self._writer.close()
            while self._waiting:
                self._answer(self._late or reason)

    def _answer(self, result: Exception | None) -> None:
        waiting = self._waiting.popleft()
        if not waiting.done():
            waiting.set_result(result)

    def _lose(self) -> None:
        """Give up: whoever waits to write, or for an answer, is told at once."""
        self._late = asyncio.TimeoutError()
        self._writer.transport.abort()

    async def post(self, data: bytes) -> asyncio.Future[Exception | None]:
        """Send a frame; the future gets what the other side says of it, or why it cannot."""
        answer: asyncio.Future[Exception | None] = self._loop.create_future()
        if not self._waiting:
            self._watch.moved()
        self._waiting.append(answer)
        self._writer.write(frame(data))
        # Whoever lost the connection learns it from the future.
        with contextlib.suppress(OSError):
            await self._writer.drain()
        return answer

    async def close(self) -> None:
        self._task.cancel()
        # Not awaited itself: a cancellation of this call must not be taken for that of the task.
        await asyncio.wait((self._task,))
        await close_writer(self._writer)


class Courier:
    """Sends messages to the parties of an address book, over one connection for each address.

    Many parties may have the same address: that of the station that hosts them.

    Parameters
    ----------
    addresses
        Where the parties are: a host and a port for each. It may be filled later.
    tls
        The context of a TLS client, with a certificate if the stations ask for one; None for
        connections without TLS.
    connect_within
        For how many seconds a connection is tried again that is refused. An address that was not
        reached then is not tried again.
    answer_within
        For how many seconds a message may take to be written and acknowledged, from when it was
        posted or, of several, from the last acknowledgement. Then the connection is lost, with all
        messages on it; an address from which no acknowledgement came at all is not tried again.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type, or a time is not above zero.

    Notes
    -----
    A message is sent once: if the connection is lost before the acknowledgement, nobody knows
    whether it arrived, and it counts as undelivered. The next message opens a new connection.

    Examples
    --------
    >>> import asyncio
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> round_ = tn.distributed.Round.start(mechanism)
    >>> async def main():
    ...     async with Courier({}, connect_within=0.1) as courier:
    ...         return await courier.send_all(round_.user(0).report(1))
    >>> [str(each.error) for each in asyncio.run(main())][:1]
    ['aggregator 0 is not in the address book']
    """

    def __init__(
        self,
        addresses: Mapping[Party, Address],
        *,
        tls: ssl.SSLContext | None = None,
        connect_within: float = 10.0,
        answer_within: float = 60.0,
    ) -> None:
        _arguments.instance("addresses", addresses, Mapping, "a mapping of Party to (host, port)")
        if tls is not None:
            _arguments.instance("tls", tls, ssl.SSLContext, "an ssl.SSLContext or None")
        self._addresses = addresses
        self._tls = tls
        self._connect_within = _arguments.seconds("connect_within", connect_within)
        self._answer_within = _arguments.seconds("answer_within", answer_within)
        self._connections: dict[Address, _Connection] = {}
        self._locks: dict[Address, asyncio.Lock] = {}
        self._unreachable: dict[Address, OSError | asyncio.TimeoutError] = {}

    async def __aenter__(self) -> Courier:
        """Give the courier; connections are made when they are needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; messages without an acknowledgement count as undelivered."""
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def send(self, message: Message) -> None:
        """Send a message, and wait until it is accepted.

        Parameters
        ----------
        message
            The message.

        Raises
        ------
        TurnoutError
            What the recipient refused it with.
        MissingPartyError
            If the recipient was not reached, or did not answer; the cause is in ``__cause__``.
        InvalidValueError
            If it is not in the address book.
        """
        error = await self._result(message, await self._post(message))
        if error is not None:
            raise error

    async def send_all(self, messages: Iterable[Message]) -> list[Undelivered]:
        """Send many messages without waiting for each, and go on where some do not arrive.

        Parameters
        ----------
        messages
            The messages; taken from the iterable as they are sent, so that a generator can make the
            shares of any number of users.

        Returns
        -------
        list of Undelivered
            Those that did not arrive or were refused, with the reasons.
        """
        undelivered: list[Undelivered] = []
        sent: deque[tuple[Message, asyncio.Future[Exception | None] | TurnoutError]] = deque()

        async def settle() -> None:
            message, answer = sent.popleft()
            error = await self._result(message, answer)
            if error is not None:
                undelivered.append(Undelivered(message, error))

        for message in messages:
            sent.append((message, await self._post(message)))
            if len(sent) >= _WINDOW:
                await settle()
        while sent:
            await settle()
        return undelivered

    async def _post(self, message: Message) -> asyncio.Future[Exception | None] | TurnoutError:
        """Send a message; what comes back gives the answer, or is the reason why not."""
        recipient = message.recipient
        address = self._addresses.get(recipient)
        if address is None:
            return InvalidValueError(f"{recipient} is not in the address book")
        lock = self._locks.setdefault(address, asyncio.Lock())
        async with lock:
            if address in self._unreachable:
                return self._missing(recipient, self._unreachable[address])
            connection = self._connections.get(address)
            if connection is not None and connection.silence is not None:
                self._unreachable[address] = connection.silence
                return self._missing(recipient, connection.silence)
            if connection is None or connection.lost or connection.stale:
                if connection is not None:
                    await connection.close()
                try:
                    connection = await self._connect(address)
                except (OSError, asyncio.TimeoutError) as error:
                    self._unreachable[address] = error
                    return self._missing(recipient, error)
                self._connections[address] = connection
            return await connection.post(message.to_bytes())

    async def _connect(self, address: Address) -> _Connection:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._connect_within, _FIRST_PAUSE
        while True:
            try:
                opening = asyncio.open_connection(*address, ssl=self._tls)
                streams = await wait_for(opening, max(deadline - loop.time(), _FIRST_PAUSE))
                return _Connection(*streams, self._answer_within)
            except (ssl.SSLError, socket.gaierror, asyncio.TimeoutError):
                raise
            except OSError:
                # Perhaps the other side is not there yet.
                if loop.time() + pause >= deadline:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _result(
        self, message: Message, answer: asyncio.Future[Exception | None] | TurnoutError
    ) -> TurnoutError | None:
        if isinstance(answer, TurnoutError):
            return answer
        error = await answer  # which comes, or the connection is lost
        if error is None or isinstance(error, TurnoutError):
            return error
        return self._missing(message.recipient, error)

    def _missing(self, recipient: Party, error: Exception) -> MissingPartyError:
        host, port = self._addresses[recipient]
        missing = MissingPartyError(
            f"{recipient} cannot be reached at {host}:{port}: {_reason(error)}", [recipient]
        )
        missing.__cause__ = error
        return missing


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return "it did not answer in time"
    return str(error) or type(error).__name__
