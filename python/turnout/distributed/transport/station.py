"""A host of roles behind one listening socket."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import secrets
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
from turnout.distributed.roles.base import Participant, State
from turnout.distributed.transport.courier import Address, Courier, Undelivered
from turnout.distributed.transport.deliveries import Deliveries
from turnout.distributed.transport.frames import ACCEPTED, refused, wait_for
from turnout.distributed.transport.hosted import forget, hosted, lost, stages, unfinished
from turnout.distributed.transport.listener import Admission, Admits, Line, Listener
from turnout.errors import MalformedMessageError, MissingPartyError, ProtocolError, TurnoutError

#: ``finish`` goes on without who does not come after this part of its time.
_PART = 4


class Station:
    """A host of roles of one round, which receives and sends their messages.

    Use it as an asynchronous context; the station listens within it. Every frame goes to its role
    and is acknowledged: accepted, or refused with the error of the role, whose state does not
    change. The messages of a role are sent on; messages between roles of this station are passed
    directly.

    Parameters
    ----------
    roles
        The roles of one aggregator or server, or of the devices of many users.
    addresses
        The address book of the other parties; see :class:`Courier`. You may fill it after the
        start.
    host, port
        The address to listen at. Port 0 lets the operating system choose; :attr:`address` returns
        the choice.
    server_tls, client_tls
        The contexts for incoming and for outgoing connections; None for connections without TLS.
    admits
        A function that returns True to accept a message, and False to refuse it. Its arguments are
        the party that the message names as its sender, and the certificate of the other side, as
        :meth:`ssl.SSLSocket.getpeercert` returns it (empty without one). An exception, or any other
        result, is logged and refuses the message. Without the function every sender is believed.
    connections, connections_per_host
        The largest number of open connections, in total and from one host (for IPv6, from one
        network of 64 bits). None for half of the files that the process may open, at most 1,000,
        and for a quarter of that. If all are in use, the host with the most loses one: see the
        notes.
    idle_within
        The number of seconds that a connection may be silent: in a handshake, between frames, for
        each 64 KiB of a frame, and until the other side reads the answer. A courier opens a new
        connection for its next message.
    connect_within, answer_within
        As in :class:`Courier`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are no roles, two of one party, or roles of different rounds; if another argument
        is of the wrong type or out of range.

    Notes
    -----
    The station reads no frame that is larger than the largest message that a role here accepts in
    the round. That size follows from the numbers of users and of items. It reads only 64 KiB of a
    larger frame, unless its kind may be so large and its sender is admitted.

    If all connections are in use, a new one replaces a connection of the most crowded host: the one
    that has gone longest without an accepted message. It prefers connections between two frames,
    since their couriers connect again for the next message. A connection in the middle of a frame
    or of a handshake is replaced only if its host still has as many as the new one's, or after five
    seconds. Otherwise the new connection is closed, and with TLS its courier tries again. So a
    client that opens many connections takes places from its own host. Behind a proxy, where all
    connections come from one host, make ``connections_per_host`` as large as ``connections``.

    Roles run in the event loop. The station sends a role's message until it has arrived, over as
    many connections as necessary, until the time of :meth:`finish` is over. If the recipient
    refuses a message that the round needs, or has a certificate that ``client_tls`` does not trust,
    the round ends at this station. A repeated message is accepted again, and counts once.

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
        self._roles = hosted(roles)
        _arguments.instance("host", host, str, "the name of a host")
        if server_tls is not None:
            _arguments.instance("server_tls", server_tls, ssl.SSLContext, "an ssl.SSLContext")
        self._place = (host, _arguments.integer("port", port, least=0, most=65535))
        self._admission = Admission(admits)
        largest = max(max(role._takes.values(), default=0) for role in self._roles.values())
        self._largest = min(MESSAGE_OVERHEAD + largest, 2**32 - 1)
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
        self._deliveries = Deliveries(self._courier, self._lose_role, self._wake)
        self._connect_within = connect_within
        #: What was accepted, by digests that say nothing without this key.
        self._key = secrets.token_bytes(16)
        self._accepted: set[bytes] = set()
        #: The users that each party to whom they report still waits for, as a number.
        self._awaited = {
            party: len(role.missing)
            for party, role in self._roles.items()
            if role._users_report and role.state is State.COLLECTING
        }
        self._unfinished = unfinished(self._roles)
        self._stopped = False
        self._given_up = False
        self._failure: Exception | None = None
        self._changed = asyncio.Event()

    # The socket.

    async def __aenter__(self) -> Station:
        """Start listening.

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
        await self._deliveries.close()
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
        """The hosted roles."""
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
        """Pass a frame to its role, and return the acknowledgement."""
        try:
            try:
                message = Message.from_bytes(data)
            except MemoryError as error:
                raise ProtocolError("there is not enough memory for the message") from error
            self._admission.check(message.sender, line.certificate)
            digest = hashlib.blake2b(data, digest_size=16, key=self._key).digest()
            # Its acknowledgement was lost, or somebody replays it: it counts once.
            if digest not in self._accepted:
                self._post(self._hand_over(message, data))
                self._accepted.add(digest)
        except TurnoutError as error:
            return refused(error)
        except Exception as error:
            # A defect of a role.
            self._fail(error)
            return refused(ProtocolError("the message could not be handled"))
        line.served()
        return ACCEPTED

    def _role(self, message: Message) -> Participant:
        """Find the role that a message is for."""
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
            self._lose_role(role, error)
            raise
        if message.sender.role is Role.USER and role.party in self._awaited:
            self._awaited[role.party] -= 1
        self._note(role)
        return given

    def _note(self, role: Participant) -> None:
        if role.state is State.DONE:
            self._unfinished.discard(role.party)
        self._deliveries.drop_useless(role)
        self._changed.set()

    def _post(self, messages: Iterable[Message]) -> None:
        """Deliver messages of roles: here at once, elsewhere in the background."""
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            sender = self._roles.get(message.sender)
            if sender is None:  # it was lost meanwhile
                continue
            if message.recipient not in self._roles:
                self._deliveries.send(sender, message)
                continue
            try:
                waiting.extend(self._hand_over(message, message.to_bytes()))
            except TurnoutError as error:
                if sender._needs(message):
                    self._lose_role(sender, error)

    def _lose_role(self, role: Participant, error: Exception) -> None:
        """End the round for one user of several; otherwise for all roles here."""
        if role.party.role is Role.USER and len(self._roles) > 1:
            self._drop(role.party)
        else:
            self._fail(error)

    def _drop(self, user: Party) -> None:
        role = self._roles.pop(user, None)
        if role is not None:
            forget([role])
            self._deliveries.drop_useless(role)
        self._unfinished.discard(user)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self._changed.set()

    async def send(self, messages: Iterable[Message]) -> list[Undelivered]:
        """Send the reports of the users that are hosted here.

        Parameters
        ----------
        messages
            The messages; taken from the iterable as they are sent.

        Returns
        -------
        list of Undelivered
            The messages that did not arrive or were refused. Their senders do not take part in the
            round: this station drops them.
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
            self._drop(each.message.sender)
        self._unfinished = unfinished(self._roles)
        self._wake()
        return undelivered

    # The course of a round.

    def stop_collecting(self) -> None:
        """End :meth:`collect` now, as if its time were over."""
        self._stopped = True
        self._changed.set()

    def give_up(self) -> None:
        """End :meth:`finish` now, as if its time were over."""
        self._given_up = True
        self._changed.set()

    async def collect(self, within: float) -> None:
        """Wait for the message of every user, then close the collection.

        This applies to every aggregator or reporting server here; their next messages are then
        sent.

        Parameters
        ----------
        within
            The number of seconds after which the collection closes in any case.

        Raises
        ------
        MissingPartyError
            If more users are missing than the mechanism allows, or another party is missing.
            Nothing of the round is kept.
        TurnoutError
            If the round is lost for another reason.
        """
        await self._until(
            lambda: self._stopped or all(count <= 0 for count in self._awaited.values()),
            _after(within),
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

    async def finish(self, within: float, step_within: float | None = None) -> None:
        """Wait until every role here is done, and all its messages have arrived.

        The station keeps trying to reach every party. Messages that the round no longer needs may
        stay undelivered.

        Parameters
        ----------
        within
            The number of seconds after which the station gives up the round.
        step_within
            The number of seconds after which a role, each time it waits, continues without missing
            parties if it can, by another election. None for a quarter of ``within``.

        Raises
        ------
        MissingPartyError
            If a party is missing; the error names it. Nothing of the round is kept.
        TurnoutError
            If the round is lost for another reason.
        """
        loop, deadline = asyncio.get_running_loop(), _after(within)
        step = within / _PART
        if step_within is not None:
            step = _arguments.seconds("step_within", step_within)
        while not (self._given_up or self._finished) and loop.time() < deadline:
            # Another election that begins meanwhile has all of the time.
            begun, ends = stages(self._roles), min(deadline, loop.time() + step)
            await self._until(functools.partial(self._moved_on, begun), ends)
            if ends < deadline and not self._moved_on(begun):
                self._go_on()
        self._raise_failure()
        if not self._finished:
            self._lose()
        last = min(deadline, loop.time() + self._connect_within)
        await self._until(lambda: not self._deliveries.waiting, last)

    def _moved_on(self, begun: list[object]) -> bool:
        return self._given_up or self._finished or stages(self._roles) != begun

    def _go_on(self) -> None:
        """Continue without the missing parties, for roles that can."""
        for role in [*self._roles.values()]:
            if role._closes_again and role.state is State.WAITING:
                try:
                    given = role.close()
                except TurnoutError as error:
                    self._fail(error)
                    return
                self._note(role)
                self._post(given)

    @property
    def _finished(self) -> bool:
        return not self._unfinished and not self._deliveries.needed

    async def _until(self, condition: Callable[[], bool], deadline: float) -> None:
        """Wait for a condition until a given time at most."""
        loop = asyncio.get_running_loop()
        while not condition():
            self._raise_failure()
            self._changed.clear()
            try:
                await wait_for(self._changed.wait(), max(deadline - loop.time(), 0.0))
            except asyncio.TimeoutError:
                break
        self._raise_failure()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            forget(self._roles.values())
            raise self._failure

    def _lose(self) -> NoReturn:
        """End the round, naming all parties that any role here waits for."""
        self._failure = lost(self._roles, self._unfinished, self._deliveries.needed)
        forget(self._roles.values())
        raise self._failure


def _after(within: float) -> float:
    return asyncio.get_running_loop().time() + _arguments.seconds("within", within)
