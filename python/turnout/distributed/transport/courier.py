"""A sender of messages over persistent connections."""

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

#: Between two attempts, which are the further apart the more there were.
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0


@dataclass(frozen=True)
class Undelivered:
    """A message that did not arrive, or was refused.

    Attributes
    ----------
    message
        The message.
    error
        The error with which the recipient refused it; :class:`turnout.errors.MissingPartyError` if
        the recipient was not reached or did not answer.
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
        self._answered = False
        self._late: asyncio.TimeoutError | None = None
        self._watch = Watch(answer_within, self._lose)
        self._task = asyncio.create_task(self._read(reader))

    @property
    def lost(self) -> bool:
        return self._task.done() or self._writer.is_closing()

    @property
    def silence(self) -> asyncio.TimeoutError | None:
        """The reason, if the time ended before any answer arrived."""
        return None if self._answered else self._late

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason: Exception = ConnectionResetError("the connection was closed")
        try:
            while (content := await read_frame(reader, LARGEST_ACKNOWLEDGEMENT)) is not None:
                if not self._waiting:
                    reason = ProtocolError("an acknowledgement came of no message")
                    break
                self._answered = True
                self._answer(read_acknowledgement(content))
                if self._waiting:
                    self._watch.moved()
                else:
                    self._watch.stop()
        except (OSError, TurnoutError) as error:
            # An acknowledgement that was cut is a connection that was lost.
            cut = isinstance(error.__cause__, asyncio.IncompleteReadError)
            reason = ConnectionResetError(str(error)) if cut else error
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
        """Give up, and notify everyone who waits to write or for an answer."""
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


#: What comes back of a message that was posted, or why it could not be.
_Answer = asyncio.Future[Exception | None] | TurnoutError


class Courier:
    """A sender of messages to the parties of an address book.

    It keeps one connection for each address. Parties hosted by the same station have the same
    address.

    Parameters
    ----------
    addresses
        The address book: a host and a port for each party. You may fill it later.
    tls
        The context of a TLS client, with a certificate if the stations ask for one; None for
        connections without TLS.
    connect_within
        The number of seconds to retry a refused connection. After that, the courier suspends the
        address for the same time; messages to it are then undelivered.
    answer_within
        The number of seconds to write a message and receive its acknowledgement. The time starts
        when the message is posted or, for one of several, at the last acknowledgement. After that,
        the connection is lost. An address that sent no acknowledgement at all is suspended, as
        above.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type, or a time is not above zero.

    Notes
    -----
    If a connection is lost, the messages on it that were not acknowledged are sent again over a new
    one, until ``answer_within`` is over for them. A station counts a message once, however often it
    arrives. So you may send an undelivered message again later, unchanged.

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
        #: Addresses that were not reached: why, and until when they are left alone.
        self._resting: dict[Address, tuple[OSError | asyncio.TimeoutError, float]] = {}
        self._closed = False

    async def __aenter__(self) -> Courier:
        """Return the courier; it opens connections when they are needed."""
        self._closed = False
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; messages without an acknowledgement count as undelivered."""
        self._closed = True
        connections = list(self._connections.values())
        self._connections.clear()
        await asyncio.gather(*(connection.close() for connection in connections))

    async def send(self, message: Message) -> None:
        """Send a message, and wait until the recipient accepts it.

        Parameters
        ----------
        message
            The message.

        Raises
        ------
        TurnoutError
            The error with which the recipient refused it.
        MissingPartyError
            If the recipient was not reached, or did not answer. The cause is in ``__cause__``.
        InvalidValueError
            If the recipient is not in the address book.
        """
        now = asyncio.get_running_loop().time()
        error = await self._result(message, await self._post(message), now + self._answer_within)
        if error is not None:
            raise error

    async def send_all(self, messages: Iterable[Message]) -> list[Undelivered]:
        """Send many messages without waiting for each, and continue if some do not arrive.

        Parameters
        ----------
        messages
            The messages; taken from the iterable as they are sent, so that a generator can make the
            shares of any number of users.

        Returns
        -------
        list of Undelivered
            The messages that did not arrive or were refused, with the reasons.
        """
        undelivered: list[Undelivered] = []
        sent: deque[tuple[Message, _Answer, float]] = deque()
        loop = asyncio.get_running_loop()

        async def settle() -> None:
            message, answer, deadline = sent.popleft()
            error = await self._result(message, answer, deadline)
            if error is not None:
                undelivered.append(Undelivered(message, error))

        for message in messages:
            deadline = loop.time() + self._answer_within
            sent.append((message, await self._post(message), deadline))
            if len(sent) >= _WINDOW:
                await settle()
        while sent:
            await settle()
        return undelivered

    async def _post(self, message: Message) -> _Answer:
        """Send a message; what comes back gives the answer, or is the reason why not."""
        recipient = message.recipient
        address = self._addresses.get(recipient)
        if address is None:
            return InvalidValueError(f"{recipient} is not in the address book")
        lock = self._locks.setdefault(address, asyncio.Lock())
        async with lock:
            if self._closed:
                return self._missing(recipient, ConnectionResetError("the courier was closed"))
            error, until = self._resting.get(address, (None, 0.0))
            if error is not None and asyncio.get_running_loop().time() < until:
                return self._missing(recipient, error)
            connection = self._connections.get(address)
            if connection is not None and connection.silence is not None:
                del self._connections[address]
                await connection.close()
                return self._rest(recipient, address, connection.silence)
            if connection is None or connection.lost:
                if connection is not None:
                    await connection.close()
                try:
                    connection = await self._connect(address)
                except (OSError, asyncio.TimeoutError) as reason:
                    return self._rest(recipient, address, reason)
                self._connections[address] = connection
            return await connection.post(message.to_bytes())

    def _rest(
        self, recipient: Party, address: Address, error: OSError | asyncio.TimeoutError
    ) -> MissingPartyError:
        """Suspend an address, so that messages to others do not wait for it."""
        until = asyncio.get_running_loop().time() + self._connect_within
        self._resting[address] = error, until
        return self._missing(recipient, error)

    async def _connect(self, address: Address) -> _Connection:
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + self._connect_within, FIRST_PAUSE
        while True:
            try:
                opening = asyncio.open_connection(*address, ssl=self._tls)
                streams = await wait_for(opening, max(deadline - loop.time(), FIRST_PAUSE))
                return _Connection(*streams, self._answer_within)
            except (ssl.SSLError, socket.gaierror, asyncio.TimeoutError):
                raise
            except OSError:
                # Perhaps the other side is not there yet.
                if loop.time() + pause >= deadline:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _result(
        self, message: Message, answer: _Answer, deadline: float
    ) -> TurnoutError | None:
        """Wait for the answer, and send the message again if the connection is lost."""
        loop, pause = asyncio.get_running_loop(), 0.0
        while not isinstance(answer, TurnoutError):
            error = await answer  # which comes, or the connection is lost
            if error is None or isinstance(error, TurnoutError):
                return error
            if self._closed or loop.time() + pause >= deadline:
                return self._missing(message.recipient, error)
            await asyncio.sleep(pause)
            pause = min(max(2 * pause, FIRST_PAUSE), LONGEST_PAUSE)
            answer = await self._post(message)
        return answer

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
    if never_better(error):
        return f"its certificate is not trusted: {getattr(error, 'verify_message', error)}"
    return str(error) or type(error).__name__


def never_better(error: BaseException | None) -> bool:
    """Return whether a party was not reached for a reason that no other attempt changes."""
    return isinstance(error, ssl.SSLCertVerificationError)
