"""Who makes room for whom where a listener has more visitors than places."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from types import ModuleType
from typing import Any

import pytest
from tests.distributed.test_listener import FIRST, Visitor, finish, half_a_frame

from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport import listener as listener_module
from turnout.distributed.transport.frames import frame

# Who is too many.


@pytest.fixture
def another_host() -> str:
    """Another address of this machine, where it has one."""
    with socket.socket() as bound:
        try:
            bound.bind(("127.0.0.2", 0))
        except OSError:
            pytest.skip("127.0.0.2 is no address of this machine")
    return "127.0.0.2"


def test_the_most_crowded_host_makes_room_for_another_at_once(
    sockets: ModuleType, another_host: str
) -> None:
    round_ = sockets.silent(4)
    message = next(sockets.shares(round_, range(1)))

    async def main() -> None:
        given = {"connections": 3, "connections_per_host": 3}
        async with sockets.stations(round_, [FIRST], **given) as (found, addresses):
            crowd = [await Visitor.come(addresses[FIRST]) for _ in range(3)]
            # All are open: each is answered.
            for each in crowd:
                each.writer.write(frame(b""))
                assert "got 0 bytes" in str(await each.said())
            honest = await Visitor.come(addresses[FIRST], another_host)
            honest.writer.write(frame(message.to_bytes()))
            assert await honest.said() is None
            await crowd[0].is_shut_out()
            # Who comes from that host takes a place from it.
            more = await Visitor.come(addresses[FIRST])
            await crowd[1].is_shut_out()
            for each in (crowd[2], more, honest):
                each.writer.write(frame(b""))
                assert "got 0 bytes" in str(await each.said())
            assert len(found[FIRST].roles[0].missing) == 3
            for each in (*crowd, honest, more):
                await each.leave()

    sockets.run(main())


def test_one_host_takes_its_part_of_the_places_only(sockets: ModuleType, another_host: str) -> None:
    async def main() -> None:
        given = {"connections": 8}
        async with sockets.stations(sockets.silent(4), [FIRST], **given) as (_, addresses):
            crowd = [await Visitor.come(addresses[FIRST]) for _ in range(3)]
            await crowd[0].is_shut_out()
            honest = await Visitor.come(addresses[FIRST], another_host)
            for each in (*crowd[1:], honest):
                each.writer.write(frame(b""))
                assert "got 0 bytes" in str(await each.said())
            for each in (*crowd, honest):
                await each.leave()

    sockets.run(main())


def test_many_idle_connections_of_the_own_host_starve_nobody(sockets: ModuleType) -> None:
    round_ = sockets.silent(20)

    async def main() -> None:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, connections=16) as (found, addresses):
            crowd = [await Visitor.come(addresses[FIRST]) for _ in range(40)]
            await finish(round_, found, addresses, sockets)
            assert len(found[FIRST]._listener._lines) <= 4
            for each in crowd:
                await each.leave()

    sockets.run(main())


def test_many_couriers_of_one_host_take_turns(sockets: ModuleType) -> None:
    round_ = sockets.silent(30)

    async def main() -> None:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, connections=16) as (found, addresses):
            async with contextlib.AsyncExitStack() as stack:
                couriers = [await stack.enter_async_context(Courier(addresses)) for _ in range(30)]
                for user, courier in enumerate(couriers):
                    messages = sockets.shares(round_, range(user, user + 1))
                    assert await courier.send_all(messages) == []
            await sockets.complete(found)
            assert sockets.sums(found) == [0, 30, 0]

    sockets.run(main())


@pytest.mark.parametrize("grace", [5.0, 0.0])
def test_a_frame_that_has_begun_gives_way_to_its_own_host_after_a_while_only(
    sockets: ModuleType, monkeypatch: pytest.MonkeyPatch, grace: float
) -> None:
    monkeypatch.setattr(listener_module, "_GRACE", grace)

    async def main() -> None:
        async with sockets.stations(sockets.silent(4), [FIRST], connections=8) as (
            found,
            addresses,
        ):
            busy = [await Visitor.come(addresses[FIRST]) for _ in range(2)]
            for each in busy:
                await half_a_frame(each)
            await until_one_has_begun(found[FIRST], 2, begun=2)
            more = await Visitor.come(addresses[FIRST])
            out, other = (more, busy[0]) if grace else (busy[0], more)
            await out.is_shut_out()
            if other is more:
                other.writer.write(frame(b""))
            else:
                other.writer.write(bytes(60))
            assert "bytes that are not one" in str(await other.said())
            for each in (*busy, more):
                await each.leave()

    sockets.run(main())


async def until_one_has_begun(station: Station, count: int, begun: int) -> None:
    """Wait until there are so many connections, and so many in the middle of a frame."""
    lines = station._listener._lines
    while len(lines) < count or sum(not line.resting for line in lines) != begun:
        await asyncio.sleep(0.001)


def test_a_frame_that_has_begun_gives_way_to_a_host_with_fewer_at_once(
    sockets: ModuleType, another_host: str
) -> None:
    async def main() -> None:
        given = {"connections": 2, "connections_per_host": 2}
        async with sockets.stations(sockets.silent(4), [FIRST], **given) as (found, addresses):
            busy = [await Visitor.come(addresses[FIRST]) for _ in range(2)]
            for each in busy:
                await half_a_frame(each)
            await until_one_has_begun(found[FIRST], 2, begun=2)
            honest = await Visitor.come(addresses[FIRST], another_host)
            honest.writer.write(frame(b""))
            assert "got 0 bytes" in str(await honest.said())
            await busy[0].is_shut_out()
            for each in (*busy, honest):
                await each.leave()

    sockets.run(main())


def test_what_is_between_two_frames_gives_way_before_what_is_in_one(sockets: ModuleType) -> None:
    async def main() -> None:
        async with sockets.stations(sockets.silent(4), [FIRST], connections=8) as (
            found,
            addresses,
        ):
            busy, resting = [await Visitor.come(addresses[FIRST]) for _ in range(2)]
            await half_a_frame(busy)
            await until_one_has_begun(found[FIRST], 2, begun=1)
            more = await Visitor.come(addresses[FIRST])
            await resting.is_shut_out()
            busy.writer.write(bytes(60))
            assert "64 bytes that are not one" in str(await busy.said())
            for each in (busy, resting, more):
                await each.leave()

    sockets.run(main())


def test_who_sent_nothing_useful_for_long_makes_room_for_its_own_host(sockets: ModuleType) -> None:
    round_ = sockets.silent(4)
    messages = [each for each in sockets.shares(round_, range(4)) if each.recipient == FIRST]

    async def main() -> None:
        given = {"connections": 2, "connections_per_host": 2}
        async with sockets.stations(round_, [FIRST], **given) as (found, addresses):
            useful, idle = [await Visitor.come(addresses[FIRST]) for _ in range(2)]
            useful.writer.write(frame(messages[0].to_bytes()))
            assert await useful.said() is None
            # What is refused is not useful.
            idle.writer.write(frame(b""))
            assert await idle.said() is not None
            last = await Visitor.come(addresses[FIRST])
            await idle.is_shut_out()
            for each, message in ((useful, messages[1]), (last, messages[2])):
                each.writer.write(frame(message.to_bytes()))
                assert await each.said() is None
            assert found[FIRST].roles[0].missing == (messages[3].sender,)
            for each in (useful, idle, last):
                await each.leave()

    sockets.run(main())


def test_a_process_without_room_for_another_file_ends_a_connection_and_goes_on(
    sockets: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    round_ = sockets.silent(4)

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        accept, full = loop.sock_accept, asyncio.Event()

        async def sometimes(listening: socket.socket) -> Any:
            if full.is_set():
                full.clear()
                raise OSError(errno.EMFILE, "Too many open files")
            return await accept(listening)

        parties = [*sockets.aggregators(2), sockets.SERVER]
        monkeypatch.setattr(loop, "sock_accept", sometimes)
        async with sockets.stations(round_, parties) as (found, addresses):
            first = await Visitor.come(addresses[FIRST])
            first.writer.write(frame(b""))
            assert await first.said() is not None
            full.set()
            second = await Visitor.come(addresses[FIRST])
            await first.is_shut_out()
            await finish(round_, found, addresses, sockets)
            for each in (first, second):
                await each.leave()

    with caplog.at_level(logging.WARNING, "turnout.distributed"):
        sockets.run(main())
    assert "Too many open files" in caplog.text


def test_addresses_of_one_ipv6_network_are_one_host() -> None:
    def host(address: str) -> str:
        return listener_module._host(socket.AF_INET6, (address, 1, 0, 0))

    assert host("2001:db8::1") == host("2001:db8::ffff:1") == host("2001:db8::2%eth0")
    assert host("2001:db8::1") != host("2001:db8:0:1::1")
    assert listener_module._host(socket.AF_INET, ("127.0.0.1", 1)) == "127.0.0.1"


def test_a_station_ends_with_a_handshake_and_a_new_connection_open(sockets: ModuleType) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    async def main() -> None:
        async with sockets.stations(sockets.silent(4), [FIRST], server_tls=context) as (
            found,
            addresses,
        ):
            visitors = [await Visitor.come(addresses[FIRST]) for _ in range(3)]
            while not found[FIRST]._listener._lines:
                await asyncio.sleep(0)
        for visitor in visitors:
            await visitor.is_shut_out()
            await visitor.leave()

    sockets.run(main())
