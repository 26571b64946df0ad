"""Couriers send to stations, and to what is none, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from turnout.distributed import Message, Party, Role
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport.frames import ACCEPTED, frame, read_frame
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
)


class Connecting:
    """Counts the attempts to connect, and tells of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.attempts = 0
        self._open = asyncio.open_connection
        self._wanted: list[tuple[int, asyncio.Event]] = []
        monkeypatch.setattr(asyncio, "open_connection", self._attempt)

    async def _attempt(self, *arguments: Any, **named: Any) -> Any:
        self.attempts += 1
        for count, event in self._wanted:
            if self.attempts >= count:
                event.set()
        return await self._open(*arguments, **named)

    async def wait_for(self, attempts: int) -> None:
        event = asyncio.Event()
        self._wanted.append((attempts, event))
        await event.wait()


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> Connecting:
    return Connecting(monkeypatch)


def test_a_party_that_is_not_in_the_book_is_named(sockets: ModuleType) -> None:
    round_ = sockets.silent()
    message = next(sockets.shares(round_, range(1)))

    async def main() -> Any:
        async with Courier({}) as courier:
            with pytest.raises(InvalidValueError, match="aggregator 0 is not in the address book"):
                await courier.send(message)
            return await courier.send_all([message])

    (undelivered,) = sockets.run(main())
    assert undelivered.message is message
    assert isinstance(undelivered.error, InvalidValueError)


def test_a_refused_connection_is_tried_again_and_then_left_alone_for_as_long(
    sockets: ModuleType, deaf: socket.socket, connecting: Connecting
) -> None:
    round_ = sockets.silent()
    there, elsewhere = sockets.shares(round_, range(1))
    book = {Party(Role.AGGREGATOR, 0): deaf.getsockname()}

    async def main() -> None:
        async with Courier(book, connect_within=0.3) as courier:
            with pytest.raises(MissingPartyError, match="connection was refused") as caught:
                await courier.send(there)
            assert caught.value.parties == (there.recipient,)
            assert str(there.recipient) in str(caught.value)
            assert isinstance(caught.value.__cause__, ConnectionRefusedError)
            tried = connecting.attempts
            assert tried > 2
            undelivered = await courier.send_all([there, elsewhere, there])
            assert [type(each.error) for each in undelivered] == [
                MissingPartyError, InvalidValueError, MissingPartyError,
            ]  # fmt: skip
            assert connecting.attempts == tried
            await asyncio.sleep(0.3)
            with pytest.raises(MissingPartyError, match="connection was refused"):
                await courier.send(there)
            assert connecting.attempts > tried

    sockets.run(main())


def test_a_station_may_come_later_than_the_first_message(
    sockets: ModuleType, deaf: socket.socket, connecting: Connecting
) -> None:
    round_ = sockets.silent()
    message = next(sockets.shares(round_, range(1)))
    port = deaf.getsockname()[1]
    book = {message.recipient: ("127.0.0.1", port)}

    async def main() -> None:
        async with Courier(book, connect_within=sockets.PATIENCE) as courier:
            sending = asyncio.create_task(courier.send(message))
            await connecting.wait_for(3)
            deaf.close()
            role = round_.aggregator(0)
            async with Station([role], {}, port=port):
                await sending
            assert len(role.missing) == 5

    sockets.run(main())


def test_all_messages_to_one_address_take_one_connection(
    sockets: ModuleType, connecting: Connecting
) -> None:
    round_ = sockets.silent(700)

    async def main() -> None:
        async with sockets.stations(round_, sockets.aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                assert await courier.send_all(sockets.shares(round_, range(350))) == []
                # At the same time, and more than may wait.
                messages = list(sockets.shares(round_, range(350, 700)))
                await asyncio.gather(*map(courier.send, messages))
            assert connecting.attempts == 2
            assert all(each.roles[0].missing == () for each in found.values())

    sockets.run(main())


async def against(
    handler: Any,
    message: Message,
    count: int = 1,
    after: Callable[[], object] = lambda: None,
    **arguments: Any,
) -> list[Any]:
    """Send a message some times to a server of another make; the errors."""
    handlers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    book = {message.recipient: server.sockets[0].getsockname()}
    try:
        async with Courier(book, **arguments) as courier:
            return [each.error for _ in range(count) for each in await courier.send_all([message])]
    finally:
        after()
        server.close()
        await asyncio.gather(*handlers)
        await server.wait_closed()


def test_a_station_that_does_not_answer_is_not_waited_for_forever(sockets: ModuleType) -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    message = next(sockets.shares(sockets.silent(), range(1)))
    (error,) = sockets.run(against(listen, message, answer_within=0.1))
    assert isinstance(error, MissingPartyError)
    assert "did not answer in time" in str(error)
    assert error.parties == (message.recipient,)


def test_a_peer_that_never_reads_is_given_up_at_the_deadline_and_not_tried_again(
    sockets: ModuleType,
    connecting: Connecting,
) -> None:
    over = asyncio.Event()

    async def never_read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()

    # More than the buffers of the operating system take.
    first = Party(Role.AGGREGATOR, 0)
    message = Message(MessageKind.SHARE, bytes(16), Party(Role.USER, 0), first, bytes(24_000_000))

    async def main() -> Any:
        asyncio.get_running_loop().call_later(sockets.PATIENCE, over.set)
        try:
            return await against(never_read, message, 3, after=over.set, answer_within=0.1)
        finally:
            over.set()

    found = sockets.run(main())
    assert [type(error) for error in found] == [MissingPartyError] * 3
    assert all("did not answer in time" in str(error) for error in found)
    assert connecting.attempts == 1


def test_one_message_that_is_not_answered_loses_the_connection_and_all_on_it(
    sockets: ModuleType,
    connecting: Connecting,
) -> None:
    (message, _), gone = sockets.shares(sockets.silent(), range(1)), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        gone.set()

    async def main() -> None:
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        book = {message.recipient: server.sockets[0].getsockname()}
        async with server, Courier(book, answer_within=0.1) as courier:
            undelivered = await courier.send_all([message] * 3)
            assert len(undelivered) == 3
            assert all("in time" in str(each.error) for each in undelivered)
            # The courier is open, the connection is not.
            await gone.wait()
        assert connecting.attempts == 1

    sockets.run(main())


def test_a_connection_that_answered_before_is_opened_again_after_a_timeout(
    sockets: ModuleType,
    connecting: Connecting,
) -> None:
    seen = 0

    async def miss_the_second(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        while await read_frame(reader, 2**14):
            seen += 1
            if seen != 2:
                writer.write(frame(ACCEPTED))

    (message, _) = sockets.shares(sockets.silent(), range(1))
    # The other messages are answered at once, so the time is the length of the test.
    (error,) = sockets.run(against(miss_the_second, message, 4, answer_within=0.5))
    assert "did not answer in time" in str(error)
    assert (seen, connecting.attempts) == (4, 2)


def test_a_connection_that_a_station_closed_in_silence_is_opened_again(
    sockets: ModuleType, connecting: Connecting
) -> None:
    round_ = sockets.silent()

    async def main() -> None:
        given = {"idle_within": 0.1}
        async with sockets.stations(round_, sockets.aggregators(1), **given) as (found, addresses):
            async with Courier(addresses) as courier:
                for user in range(3):
                    await courier.send(next(sockets.shares(round_, range(user, user + 1))))
                    await asyncio.sleep(0.3)
            (station,) = found.values()
            assert len(station.roles[0].missing) == 3

    sockets.run(main())
    assert connecting.attempts == 3


def test_what_was_on_a_connection_that_is_lost_is_sent_again_until_its_time_is_over(
    sockets: ModuleType,
    connecting: Connecting,
) -> None:
    message, left = next(sockets.shares(sockets.silent(), range(1))), 3

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        while await read_frame(reader, 2**14):
            if left:
                left -= 1
                return
            writer.write(frame(ACCEPTED))

    assert sockets.run(against(hang_up, message, 3)) == []
    assert (left, connecting.attempts) == (0, 4)
    left = 10**9
    (error,) = sockets.run(against(hang_up, message, answer_within=0.3))
    assert type(error) is MissingPartyError
    assert "closed" in str(error)
    assert 5 < connecting.attempts < 30


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (frame(b"hello"), MalformedMessageError, "no acknowledgement"),
        (b"\xff\xff\xff\xff", MalformedMessageError, "at most"),
        (b"\x05\x00\x00\x00ab", MissingPartyError, "truncated"),
    ],
)
def test_what_is_no_acknowledgement_is_an_error(
    sockets: ModuleType, content: bytes, error: type[Exception], text: str
) -> None:
    async def mumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_frame(reader, 2**14)
        writer.write(content)

    message = next(sockets.shares(sockets.silent(), range(1)))
    (found,) = sockets.run(against(mumble, message, answer_within=0.2))
    assert isinstance(found, error)
    assert text in str(found)


def test_couriers_refuse_what_they_cannot_use() -> None:
    with pytest.raises(InvalidTypeError, match="addresses must be a mapping"):
        Courier([])  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"tls must be an ssl\.SSLContext"):
        Courier({}, tls=True)  # type: ignore[arg-type]
    for name in ("connect_within", "answer_within"):
        for value in (0, -1.0, float("nan")):
            with pytest.raises(InvalidValueError, match=f"{name} must be a finite number"):
                Courier({}, **{name: value})


def test_a_cancellation_is_not_lost(sockets: ModuleType) -> None:
    round_ = sockets.silent(users=400)
    sent = 0

    def messages() -> Iterator[Message]:
        nonlocal sent
        for index in range(400):
            for message in round_.user(index).report(0):
                sent += 1
                if sent == 300:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                yield message

    async def main() -> None:
        book: dict[Party, tuple[str, int]] = {}
        async with contextlib.AsyncExitStack() as stack:
            roles = [
                round_.aggregator(index) for index in range(round_.mechanism._number_of_parties)
            ]
            for role in roles:
                station = await stack.enter_async_context(Station([role], book))
                book[role.party] = station.address
            courier = await stack.enter_async_context(Courier(book))
            await courier.send_all(messages())

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert sent < 500
