"""Hosts roles behind one listening socket."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from turnout import _arguments
from turnout.distributed.messages import (
    MESSAGE_OVERHEAD,
    Message,
    Party,
    Role,
    in_words,
    read_head,
)
from turnout.distributed.roles.base import Participant, State, listed
from turnout.distributed.transport.courier import Address, Courier, Undelivered
from turnout.distributed.transport.frames import ACCEPTED, refused, wait_for
from turnout.distributed.transport.listener import Admission, Admits, Line, Listener
from turnout.errors import (
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
    TurnoutError,
)

#: A message that is somewhat too long is refused for what it is; a longer one ends the connection.
_TOLERATED = 1024


class Station:
    """Hosts roles of one round: takes messages for them, and sends those that they give.

    Used as an asynchronous context: within it the station listens. Every frame goes to the role
    that it is for, and is acknowledged: accepted, or refused with the error of the role, which is
    then as it was. The messages that a role gives are sent on, those among roles of this station
    directly.

    Parameters
    ----------
    roles
        The roles: those of one aggregator or server, or of the devices of many users.
    addresses
        Where the other parties are; see :class:`Courier`. It may be filled after the start.
    host, port
        Where to listen. Port 0 lets the operating system choose; :attr:`address` tells.
    server_tls, client_tls
        The contexts for the connections that come in, and for those that go out; None for
        connections without TLS.
    admits
        A function of the party that a message names as its sender, and of the certificate of the
        other side as :meth:`ssl.SSLSocket.getpeercert` gives it (empty without one), which gives
        True or False; False refuses the message. So does an exception, or anything else, which is
        logged. Without the function every sender is believed.
    connections, connections_per_host
        How many connections may be open, in all and from one host (for IPv6, from one network of 64
        bits). None for half of the files that the process may open, at most 1,000, and for a
        quarter of that. If there are so many, the host with the most gives way, see the notes.
    idle_within
        For how many seconds a connection may be silent: for a handshake, between frames, for each
        64 KiB of a frame, and until what is said to the other side is read. A courier uses no
        connection again that was silent for 30 seconds; with less than that here, it may lose
        messages.
    connect_within, answer_within
        As for :class:`Courier`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are no roles, two of one party, or roles of different rounds; if another argument
        is of the wrong type or out of range.

    Notes
    -----
    No frame is read that is larger than the largest message of the round that a role here takes,
    and of one above 64 KiB no more than that unless its kind may be so large and its sender is
    admitted.

    Where as many connections are open as may be, a new one takes the place of that of the most
    crowded host from which no message was accepted for the longest time, of those between two
    frames if there are any: their couriers connect again for the next message. One in the middle
    of a frame or of a handshake gives way only if its host still has as many as the new one's, or
    after five seconds; otherwise the new one is closed, and with TLS tried again by its courier. So
    one who opens many connections takes places from its own host; behind a proxy, where all come
    from one, let ``connections_per_host`` be as large as ``connections``.

    Roles run in the event loop. A message that cannot be delivered ends the round at this station,
    because every message of a round is needed; :meth:`send` is the exception.

    Examples
    --------
    >>> import asyncio
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=40, parties=2, epsilon=1.0)
    >>> round_ = tn.distributed.Round.start(mechanism)
    >>> first, second, server = round_.aggregator(0), round_.aggregator(1), round_.server()
    >>> addresses = {}
    >>> async def main():
    ...     async with (
    ...         Station([first], addresses) as one,
    ...         Station([second], addresses) as two,
    ...         Station([server], addresses) as three,
    ...         Courier(addresses) as courier,
    ...     ):
    ...         for station in (one, two, three):
    ...             addresses[station.roles[0].party] = station.address
    ...         users = (round_.user(index) for index in range(40))
    ...         await courier.send_all(share for user in users for share in user.report(1))
    ...         await asyncio.gather(one.collect(within=10), two.collect(within=10))
    ...         await asyncio.gather(*(each.finish(within=10) for each in (one, two, three)))
    >>> asyncio.run(main())
    >>> server.estimate().received
    40
    """

    def __init__(
        self,
        roles: Iterable[Participant],
        addresses: Mapping[Party, Address],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        server_tls: ssl.SSLContext | None = None,
        client_tls: ssl.SSLContext | None = None,
        admits: Admits | None = None,
        connections: int | None = None,
        connections_per_host: int | None = None,
        idle_within: float = 60.0,
        connect_within: float = 10.0,
        answer_within: float = 60.0,
    ) -> None:
        self._roles = _hosted(roles)
        _arguments.instance("host", host, str, "the name of a host")
        if server_tls is not None:
            _arguments.instance("server_tls", server_tls, ssl.SSLContext, "an ssl.SSLContext")
        self._place = (host, _arguments.integer("port", port, least=0, most=65535))
        self._admission = Admission(admits)
        largest = max(max(role._takes.values(), default=0) for role in self._roles.values())
        self._largest = min(MESSAGE_OVERHEAD + largest + _TOLERATED, 2**32 - 1)
        self._listener = Listener(
            self._talk,
            tls=server_tls,
            connections=connections,
            connections_per_host=connections_per_host,
            idle_within=idle_within,
        )
        self._courier = Courier(
            addresses, tls=client_tls, connect_within=connect_within, answer_within=answer_within
        )
        self._deliveries: dict[asyncio.Task[None], Message] = {}
        #: The users that each party to whom they report still waits for, as a number.
        self._awaited = {
            party: len(role.missing)
            for party, role in self._roles.items()
            if role._users_report and role.state is State.COLLECTING
        }
        self._unfinished = self._not_done()
        self._stopped = False
        self._given_up = False
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    # The socket.

    async def __aenter__(self) -> Station:
        """Begin to listen.

        Raises
        ------
        OSError
            If the port cannot be used.
        """
        await self._listener.open(*self._place)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self._listener.close()
        while self._deliveries:
            for task in self._deliveries:
                task.cancel()
            await asyncio.gather(*self._deliveries, return_exceptions=True)
        await self._courier.close()

    @property
    def address(self) -> Address:
        """The host and the port at which the station listens.

        Raises
        ------
        ProtocolError
            If it does not listen.
        """
        address = self._listener.address
        if address is None:
            raise ProtocolError("the station does not listen: use it in `async with`")
        return address

    @property
    def roles(self) -> tuple[Participant, ...]:
        """The roles that are hosted."""
        return tuple(self._roles.values())

    async def _talk(self, line: Line) -> None:
        """Serve one connection."""

        def look(start: bytes) -> None:
            self._look(start, line.certificate)

        while True:
            try:
                data = await line.read(self._largest, look)
            except TurnoutError as error:
                # Where the next frame begins is unknown.
                await line.answer(refused(error))
                return
            if data is None:
                return
            # Nothing is awaited in between: a message that was accepted is acknowledged.
            answer = self._take(data, line)
            await line.answer(answer)
            # Many frames that have come at once do not keep others waiting.
            await asyncio.sleep(0)

    # Messages.

    def _look(self, start: bytes, certificate: dict[str, Any]) -> None:
        """Refuse a large message by its start."""
        head, length = read_head(start)
        role = self._role(head)
        if head.round_id != role.round_id:
            raise ProtocolError(f"a message of {head.sender} is of another round")
        most = role._takes.get(head.kind, 0)
        if length > most:
            raise MalformedMessageError(
                f"{role.party} takes at most {most} bytes of the kind "
                f"{in_words(head.kind)}, got {length} from {head.sender}"
            )
        self._admission.check(head.sender, certificate)

    def _take(self, data: bytes, line: Line) -> bytes:
        """Give a frame to its role, and make the acknowledgement."""
        try:
            try:
                message = Message.from_bytes(data)
            except MemoryError as error:
                raise ProtocolError("there is no memory for the message") from error
            self._admission.check(message.sender, line.certificate)
            self._post(self._hand_over(message, data))
        except TurnoutError as error:
            return refused(error)
        except Exception as error:
            # A defect of a role.
            self._fail(error)
            return refused(ProtocolError("the message could not be handled"))
        line.served()
        return ACCEPTED

    def _role(self, message: Message) -> Participant:
        """Find whom a message is for."""
        role = self._roles.get(message.recipient)
        if role is None and len(self._roles) == 1:
            (role,) = self._roles.values()  # it says what is wrong
        if role is None:
            raise ProtocolError(
                f"a message of {message.sender} is for {message.recipient}, which is not here"
            )
        return role

    def _hand_over(self, message: Message, data: bytes) -> list[Message]:
        role = self._role(message)
        try:
            given = role.receive(data)
        except MissingPartyError as error:
            self._fail(error)
            raise
        if message.sender.role is Role.USER and role.party in self._awaited:
            self._awaited[role.party] -= 1
        self._note(role)
        return given

    def _note(self, role: Participant) -> None:
        if role.state is State.DONE:
            self._unfinished.discard(role.party)
        self._changed.set()

    def _post(self, messages: Iterable[Message]) -> None:
        """Deliver what roles gave: here at once, elsewhere in the background."""
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            if message.recipient not in self._roles:
                task = asyncio.create_task(self._courier.send(message))
                self._deliveries[task] = message
                task.add_done_callback(self._delivered)
                continue
            try:
                waiting.extend(self._hand_over(message, message.to_bytes()))
            except TurnoutError as error:
                self._fail(error)
                return

    def _delivered(self, task: asyncio.Task[None]) -> None:
        self._deliveries.pop(task, None)
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            self._fail(error)
        self._changed.set()

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self._changed.set()

    async def send(self, messages: Iterable[Message]) -> list[Undelivered]:
        """Send the reports of users that are hosted here.

        Parameters
        ----------
        messages
            The messages; taken from the iterable as they are sent.

        Returns
        -------
        list of Undelivered
            Those that did not arrive or were refused. Their senders have no part in the round: this
            station drops them.
        """
        undelivered: list[Undelivered] = []

        def remote() -> Iterable[Message]:
            for message in messages:
                if message.recipient not in self._roles:
                    yield message
                    continue
                try:
                    self._post(self._hand_over(message, message.to_bytes()))
                except TurnoutError as error:
                    undelivered.append(Undelivered(message, error))

        undelivered.extend(await self._courier.send_all(remote()))
        for each in undelivered:
            role = self._roles.pop(each.message.sender, None)
            if role is not None:
                _forget(role)
        self._unfinished = self._not_done()
        self._changed.set()
        return undelivered

    def _not_done(self) -> set[Party]:
        return {party for party, role in self._roles.items() if role.state is not State.DONE}

    # The course of a round.

    def stop_collecting(self) -> None:
        """Let :meth:`collect` end now, as if its time were over."""
        self._stopped = True
        self._changed.set()

    def give_up(self) -> None:
        """Let :meth:`finish` end now, as if its time were over."""
        self._given_up = True
        self._changed.set()

    async def collect(self, within: float) -> None:
        """Wait until the message of every user came, then close the collection.

        Of every aggregator or reporting server here; what they give then is sent.

        Parameters
        ----------
        within
            After how many seconds the collection is closed in any case.

        Raises
        ------
        MissingPartyError
            If more users are missing than the mechanism allows, or another party is found missing.
            Nothing of the round is kept.
        TurnoutError
            If the round is lost for another reason.
        """
        await self._until(
            lambda: self._stopped or all(count <= 0 for count in self._awaited.values()), within
        )
        try:
            for party in list(self._awaited):
                role = self._roles[party]
                given = role.close()
                del self._awaited[party]
                self._note(role)
                self._post(given)
        except TurnoutError as error:
            self._fail(error)
        self._raise_failure()

    async def finish(self, within: float) -> None:
        """Wait until every role here is done, and all that they gave has arrived.

        Parameters
        ----------
        within
            After how many seconds the round is given up.

        Raises
        ------
        MissingPartyError
            If a party is missing; the error names it. Nothing of the round is kept.
        TurnoutError
            If the round is lost for another reason.
        """
        await self._until(lambda: self._given_up or self._finished, within)
        if not self._finished:
            self._lose()

    @property
    def _finished(self) -> bool:
        return not self._unfinished and not self._deliveries

    async def _until(self, condition: Callable[[], bool], within: float) -> None:
        """Wait for a condition, but not longer than some time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _arguments.seconds("within", within)
        while not condition():
            self._raise_failure()
            self._changed.clear()
            try:
                await wait_for(self._changed.wait(), deadline - loop.time())
            except asyncio.TimeoutError:
                break
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._forget_all()
            raise self._failure

    def _lose(self) -> NoReturn:
        """End the round, naming all that any role here waits for."""
        missing: dict[Party, None] = {}
        waiting = [role for role in self._roles.values() if role.party in self._unfinished]
        for role in waiting:
            missing.update(dict.fromkeys(role.missing))
        missing.update(dict.fromkeys(message.recipient for message in self._deliveries.values()))
        names = listed(tuple(role.party for role in waiting or self._roles.values()))
        self._failure = MissingPartyError(
            f"{names}: the round is lost without {listed(tuple(missing))}", missing
        )
        self._forget_all()
        raise self._failure

    def _forget_all(self) -> None:
        for role in self._roles.values():
            _forget(role)


def _forget(role: Participant) -> None:
    if role.state is not State.DONE:
        with contextlib.suppress(MissingPartyError):
            role.give_up()


def _hosted(roles: Iterable[Participant]) -> dict[Party, Participant]:
    found: dict[Party, Participant] = {}
    for role in _arguments.items("roles", roles, "roles of one round"):
        if not isinstance(role, Participant):
            raise _arguments.mistyped("roles must hold roles", role)
        if role.party in found:
            raise InvalidValueError(f"roles must be of different parties, got {role.party} twice")
        found[role.party] = role
    rounds = {role.round_id for role in found.values()}
    if len(rounds) != 1:
        raise InvalidValueError(
            f"roles must be at least one, and all of one round, got {len(found)} of {len(rounds)} "
            "rounds"
        )
    return found
