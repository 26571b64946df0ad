"""Stations among connections that are idle, slow, or too many."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from turnout.distributed import Message, Party, Role, Round
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport import frames as frames_module
from turnout.distributed.transport import station as station_module
from turnout.distributed.transport.frames import Watch, frame, read_acknowledgement, read_frame
from turnout.errors import MalformedMessageError, ProtocolError, TurnoutError

FIRST = Party(Role.AGGREGATOR, 0)


class Visitor:
    """A connection whose other side does what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def come(cls, address: tuple[str, int], host: str = "127.0.0.1") -> Visitor:
        connecting = socket.socket()
        connecting.setblocking(False)
        connecting.bind((host, 0))
        # Little is received ahead of the reading.
        connecting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.get_running_loop().sock_connect(connecting, address)
        return cls(*await asyncio.open_connection(sock=connecting))

    async def said(self) -> TurnoutError | None:
        data = await read_frame(self.reader, 2**14)
        assert data is not None
        return read_acknowledgement(data)

    async def is_shut_out(self) -> None:
        """Wait until the station has closed the connection."""
        with contextlib.suppress(ConnectionError):
            assert await self.reader.read() == b""

    async def leave(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def finish(round_: Round, found: dict[Party, Station], addresses: Any, kit: Any) -> None:
    """Let all users report, and check the counts."""
    users = round_.mechanism.users
    async with Courier(addresses) as courier:
        assert await courier.send_all(kit.shares(round_, range(users))) == []
    await kit.complete(found)
    assert kit.sums(found) == [0, users, 0]


# What a frame may be.


def test_no_frame_is_larger_than_the_messages_of_the_round(sockets: ModuleType) -> None:
    for users in (4, 1000):
        round_ = sockets.silent(users)
        limits = {
            party: Station([sockets.role_of(round_, party)], {})._largest
            for party in (FIRST, Party(Role.AGGREGATOR, 1), sockets.SERVER)
        }
        roster, total = (
            (users + 7) // 8 + 8 * users,
            4 + 16 + round_.mechanism.field._packed_size(3),
        )
        assert limits[FIRST] == 52 + max(9 + 32, roster)
        assert limits[sockets.SERVER] == 52 + total


@pytest.mark.parametrize(
    ("kind", "length", "error", "text"),
    [
        (MessageKind.SHARE, 100_000, MalformedMessageError, "at most 41 bytes of the kind share"),
        (MessageKind.SUM, 100_000, MalformedMessageError, "at most 0 bytes of the kind sum"),
        (MessageKind.ROSTER, 162_500, ProtocolError, "does not speak for aggregator 1"),
    ],
)
def test_of_a_large_message_that_cannot_be_only_the_start_is_read(
    sockets: ModuleType,
    kind: MessageKind,
    length: int,
    error: type[Exception],
    text: str,
) -> None:
    round_ = sockets.silent(20_000)
    sender = Party(Role.AGGREGATOR, 1)
    message = Message(kind, round_.identifier, sender, FIRST, bytes(length))

    async def main() -> None:
        given = {"admits": lambda party, certificate: kind is not MessageKind.ROSTER}
        async with sockets.stations(round_, [FIRST], **given) as (_, addresses):
            visitor = await Visitor.come(addresses[FIRST])
            visitor.writer.write(frame(message.to_bytes())[: 4 + 2**16])
            said = await visitor.said()
            assert type(said) is error
            assert text in str(said)
            await visitor.is_shut_out()
            await visitor.leave()

    sockets.run(main())


def test_a_large_message_of_another_round_or_none_is_refused_by_its_start(
    sockets: ModuleType,
) -> None:
    round_, other = sockets.silent(20_000), sockets.silent(20_000)
    roster = Message(
        MessageKind.ROSTER, other.identifier, Party(Role.AGGREGATOR, 1), FIRST, bytes(162_500)
    ).to_bytes()
    later = roster[:4] + b"\x02" + roster[5:]

    async def main() -> None:
        async with sockets.stations(round_, [FIRST]) as (_, addresses):
            for data, text in (
                (roster, "another round"),
                (later, "has version 2"),
                (bytes(len(roster)), "start of"),
            ):
                visitor = await Visitor.come(addresses[FIRST])
                visitor.writer.write(frame(data)[: 4 + 2**16])
                assert text in str(await visitor.said())
                await visitor.leave()

    sockets.run(main())


def test_a_large_message_arrives(sockets: ModuleType) -> None:
    round_ = sockets.silent(20_000)
    roster = Message(
        MessageKind.ROSTER, round_.identifier, Party(Role.AGGREGATOR, 1), FIRST, b"\xff" * 162_500
    )

    async def main() -> None:
        async with sockets.stations(round_, [FIRST]) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send(roster)
            role: Any = found[FIRST].roles[0]
            assert role._rosters == {1: roster.payload}

    sockets.run(main())


# Who does not move.


async def nothing(visitor: Visitor) -> None:
    pass


async def half_a_frame(visitor: Visitor) -> None:
    visitor.writer.write(b"\x40\x00\x00\x00half")


async def never_reading(visitor: Visitor) -> None:
    """Send frames until the station stops to read, because nobody reads its answers."""
    visitor.writer.transport.pause_reading()  # type: ignore[attr-defined]
    with contextlib.suppress(ConnectionError):
        while not visitor.writer.is_closing():
            visitor.writer.write(frame(b"x") * 100)
            await visitor.writer.drain()


@pytest.mark.parametrize("behave", [nothing, half_a_frame, never_reading])
def test_who_does_not_move_is_shut_out_and_the_round_goes_on(
    sockets: ModuleType, behave: Callable[[Visitor], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = sockets.silent(4)
    # Fewer of them fill the buffers.
    monkeypatch.setattr(station_module, "refused", lambda error: bytes(2**14))

    async def main() -> None:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, idle_within=0.2) as (found, addresses):
            count = 1 if behave is never_reading else 3
            visitors = [await Visitor.come(addresses[FIRST]) for _ in range(count)]
            await asyncio.gather(*map(behave, visitors))
            if behave is not never_reading:
                await asyncio.gather(*(visitor.is_shut_out() for visitor in visitors))
            for visitor in visitors:
                await visitor.leave()
            await finish(round_, found, addresses, sockets)

    sockets.run(main())


def test_a_handshake_that_does_not_move_is_given_up(sockets: ModuleType) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    async def main() -> None:
        given = {"idle_within": 0.1, "server_tls": context}
        async with sockets.stations(sockets.silent(4), [FIRST], **given) as (_, addresses):
            visitor = await Visitor.come(addresses[FIRST])
            await visitor.is_shut_out()
            await visitor.leave()

    sockets.run(main())


class Clock:
    """An event loop of which the time is turned by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None], Any]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        timer = (self.now + delay, callback, self)
        self.timers.append(timer)
        return type("Timer", (), {"cancel": lambda handle: self.timers.remove(timer)})()

    def turn(self, seconds: float) -> None:
        """Let some time pass at once; then run what is due."""
        self.now += seconds
        due = [timer for timer in self.timers if timer[0] <= self.now]
        for timer in due:
            self.timers.remove(timer)
            timer[1]()


def test_a_watch_ends_what_stands_still_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = Clock(), []
    monkeypatch.setattr(frames_module.asyncio, "get_running_loop", lambda: clock)
    watch = Watch(10.0, lambda: ended.append(clock.now))
    clock.turn(1000.0)
    for _ in range(20):
        watch.moved()
        clock.turn(9.0)
    assert ended == []
    assert len(clock.timers) == 1
    # This process was busy for long, and what has come meanwhile is read now.
    clock.turn(1000.0)
    watch.moved()
    clock.turn(1.0)
    assert ended == []
    watch.stop()
    clock.turn(1000.0)
    watch.moved()
    clock.turn(10.0)
    assert ended == []
    clock.turn(1.0)
    assert ended == [clock.now]
    clock.turn(1000.0)
    assert len(ended) == 1
    assert clock.timers == []
