"""Frames, couriers and stations, all in this process, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout import errors
from turnout.distributed import (
    Kind,
    Message,
    NoisyAggregation,
    Party,
    Role,
    Round,
    SamplingAggregation,
    TwoStageSampling,
)
from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport import station as station_module
from turnout.distributed.transport.frames import (
    accepted,
    frame,
    read_acknowledgement,
    read_frame,
    refused,
)
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
)

#: No wait of a test is that long, on any machine.
PATIENCE = 60.0
SERVER = Party(Role.SERVER)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    async def check() -> Any:
        result = await asyncio.wait_for(main, 2 * PATIENCE)
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        return result

    return asyncio.run(check())


def aggregators(count: int) -> list[Party]:
    return [Party(Role.AGGREGATOR, index) for index in range(count)]


def silent(users: int = 6, **arguments: Any) -> Round:
    """A round whose sums are the counts: noise other than 0 has probability 10^-21."""
    given = {"parties": 2, "parameter": 0.02, **arguments}
    return NoisyAggregation(3, users, **given).start_round()


def shares(round_: Round, users: Iterator[int] | range, value: int = 1) -> Iterator[Message]:
    for index in users:
        yield from round_.user(index).report(value)


@contextlib.asynccontextmanager
async def stations(
    round_: Round, parties: list[Party], **arguments: Any
) -> AsyncIterator[tuple[dict[Party, Station], dict[Party, Any]]]:
    """One station for each of some parties, and their addresses."""
    addresses: dict[Party, Any] = {}
    async with contextlib.AsyncExitStack() as stack:
        found = {}
        for party in parties:
            station = Station([round_.role(party)], addresses, **arguments)
            found[party] = await stack.enter_async_context(station)
            addresses[party] = station.address
        yield found, addresses


async def complete(found: dict[Party, Station]) -> None:
    collectors = [each for party, each in found.items() if party != SERVER]
    await asyncio.gather(*(each.collect(PATIENCE) for each in collectors))
    await asyncio.gather(*(each.finish(PATIENCE) for each in found.values()))


def sums(found: dict[Party, Station]) -> list[int]:
    server: Any = found[SERVER].roles[0]
    return server.sums.tolist()


async def answer(address: tuple[str, int], *contents: bytes) -> list[Any]:
    """Send frames as they are; what the station says of each."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        found = []
        for content in contents:
            writer.write(frame(content))
            data = await read_frame(reader, 2**14)
            assert data is not None
            found.append(read_acknowledgement(data))
        return found
    finally:
        writer.close()
        await writer.wait_closed()


# Frames.


def read_all(data: bytes, largest: int = 100) -> list[bytes]:
    async def main() -> list[bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        found = []
        while (content := await read_frame(reader, largest)) is not None:
            found.append(content)
        return found

    return run(main())


def test_frames_are_read_as_they_were_written() -> None:
    contents = [b"", b"a", bytes(range(100))]
    assert read_all(b"".join(map(frame, contents))) == contents
    assert frame(b"a" * 258)[:4] == b"\x02\x01\x00\x00"


@pytest.mark.parametrize("kept", [1, 3, 4, 5, 13])
def test_a_stream_that_ends_within_a_frame_is_malformed(kept: int) -> None:
    with pytest.raises(MalformedMessageError, match="a frame was cut"):
        read_all(frame(b"0123456789")[:kept])


def test_frames_above_the_limit_are_refused_before_they_are_read() -> None:
    assert read_all(frame(b"a" * 100)) == [b"a" * 100]
    with pytest.raises(MalformedMessageError, match="at most 100 bytes, got one of 101"):
        read_all(frame(b"a" * 101))
    with pytest.raises(MalformedMessageError, match="got one of 4294967295"):
        read_all(b"\xff\xff\xff\xff")


def test_acknowledgements_name_the_error() -> None:
    assert read_acknowledgement(accepted()) is None
    for name in errors.__all__:
        error = getattr(errors, name)("what is wrong, été\nin two lines")
        found = read_acknowledgement(refused(error))
        assert type(found) is type(error)
        assert str(found) == str(error)


def test_acknowledgements_of_others_are_read_with_care() -> None:
    unknown = read_acknowledgement(b"\x01SystemExit\nnot this one")
    assert type(unknown) is ProtocolError
    assert str(unknown) == "not this one"
    for content in (b"", b"\x00\x00", b"\x02", b"\x01ProtocolError", b"\x07ProtocolError\nno"):
        assert isinstance(read_acknowledgement(content), MalformedMessageError)
    assert len(refused(ProtocolError("é" * 10_000))) < 5_000
    assert isinstance(read_acknowledgement(refused(ProtocolError("é" * 10_000))), ProtocolError)


# Couriers.


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


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A socket with a port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound


def test_a_party_that_is_not_in_the_book_is_named() -> None:
    round_ = silent()
    message = next(shares(round_, range(1)))

    async def main() -> Any:
        async with Courier({}) as courier:
            with pytest.raises(InvalidValueError, match="aggregator 0 is not in the address book"):
                await courier.send(message)
            return await courier.send_all([message])

    (undelivered,) = run(main())
    assert undelivered.message is message
    assert isinstance(undelivered.error, InvalidValueError)


def test_a_refused_connection_is_tried_again_until_the_deadline_and_then_no_more(
    deaf: socket.socket, connecting: Connecting
) -> None:
    round_ = silent()
    there, elsewhere = shares(round_, range(1))
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

    run(main())


def test_a_station_may_come_later_than_the_first_message(
    deaf: socket.socket, connecting: Connecting
) -> None:
    round_ = silent()
    message = next(shares(round_, range(1)))
    port = deaf.getsockname()[1]
    book = {message.recipient: ("127.0.0.1", port)}

    async def main() -> None:
        async with Courier(book, connect_within=PATIENCE) as courier:
            sending = asyncio.create_task(courier.send(message))
            await connecting.wait_for(3)
            deaf.close()
            role = round_.aggregator(0)
            async with Station([role], {}, port=port):
                await sending
            assert len(role.missing) == 5

    run(main())


def test_all_messages_to_one_address_take_one_connection(connecting: Connecting) -> None:
    round_ = silent(700)

    async def main() -> None:
        async with stations(round_, aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                assert await courier.send_all(shares(round_, range(350))) == []
                # At the same time, and more than may wait.
                messages = list(shares(round_, range(350, 700)))
                await asyncio.gather(*map(courier.send, messages))
            assert connecting.attempts == 2
            assert all(each.roles[0].missing == () for each in found.values())

    run(main())


async def against(handler: Any, message: Message, count: int = 1, **arguments: Any) -> list[Any]:
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
        server.close()
        await asyncio.gather(*handlers)
        await server.wait_closed()


def test_a_station_that_does_not_answer_is_not_waited_for_forever() -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    message = next(shares(silent(), range(1)))
    (error,) = run(against(listen, message, answer_within=0.1))
    assert isinstance(error, MissingPartyError)
    assert "did not answer in time" in str(error)
    assert error.parties == (message.recipient,)


def test_a_connection_that_is_lost_is_opened_again_for_the_next_message(
    connecting: Connecting,
) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_frame(reader, 2**14)

    found = run(against(hang_up, next(shares(silent(), range(1))), 3))
    assert [type(error) for error in found] == [MissingPartyError] * 3
    assert "closed" in str(found[0])
    assert connecting.attempts == 3


@pytest.mark.parametrize(
    ("content", "error", "text"),
    [
        (frame(b"hello"), MalformedMessageError, "no acknowledgement"),
        (b"\xff\xff\xff\xff", MalformedMessageError, "at most"),
        (b"\x05\x00\x00\x00ab", MalformedMessageError, "cut"),
    ],
)
def test_what_is_no_acknowledgement_is_an_error(
    content: bytes, error: type[Exception], text: str
) -> None:
    async def mumble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await read_frame(reader, 2**14)
        writer.write(content)

    (found,) = run(against(mumble, next(shares(silent(), range(1)))))
    assert isinstance(found, error)
    assert text in str(found)


def test_couriers_refuse_what_they_cannot_use() -> None:
    with pytest.raises(InvalidTypeError, match="addresses must be a mapping"):
        Courier([])  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"tls must be an ssl\.SSLContext"):
        Courier({}, tls=True)  # type: ignore[arg-type]
    for name in ("connect_within", "answer_within"):
        for value in (0, -1.0, float("nan")):
            with pytest.raises(InvalidValueError, match=f"{name} must be a number of seconds"):
                Courier({}, **{name: value})


# Stations.


def test_a_round_over_sockets_gives_the_counts() -> None:
    round_ = silent(40, parties=3)

    async def main() -> list[int]:
        async with stations(round_, [*aggregators(3), SERVER]) as (found, addresses):
            async with Courier(addresses) as courier:
                for value, users in enumerate((range(7), range(7, 20), range(20, 40))):
                    assert not await courier.send_all(shares(round_, users, value))
            await complete(found)
            return sums(found)

    assert run(main()) == [7, 13, 20]


def test_users_may_be_the_parties() -> None:
    round_ = SamplingAggregation(3, 9, parties="users", rate=1 - 1e-12, floor=2).start_round()

    async def main() -> list[int]:
        addresses: dict[Party, Any] = {}
        server = round_.server()
        halves = [range(5), range(5, 9)]
        async with contextlib.AsyncExitStack() as stack:
            last = await stack.enter_async_context(Station([server], addresses))
            addresses[SERVER] = last.address
            devices = []
            for half in halves:
                roles = [make(index) for index in half for make in (round_.user, round_.aggregator)]
                device = await stack.enter_async_context(Station(roles, addresses))
                addresses.update((role.party, device.address) for role in roles)
                devices.append(device)

            async def act(device: Station) -> None:
                users = [role for role in device.roles if role.party.role is Role.USER]
                messages = (each for user in users for each in user.report(user.party.index % 3))
                assert await device.send(messages) == []
                await device.collect(PATIENCE)
                await device.finish(PATIENCE)

            await asyncio.gather(*map(act, devices), last.finish(PATIENCE))
        return server.sums.tolist()

    assert run(main()) == [3, 3, 3]


def two_stage(users: int, **arguments: Any) -> Round:
    """Two stages that are certain: everyone takes part and reports all items."""
    return TwoStageSampling(
        3, users, reported=3, rate=1 - 1e-12, floor=users // 4, elected=4, **arguments
    ).start_round()


@contextlib.asynccontextmanager
async def two_stage_stations(
    round_: Round, halves: list[range]
) -> AsyncIterator[tuple[Station, Station, list[Station], dict[Party, Any]]]:
    addresses: dict[Party, Any] = {}
    async with contextlib.AsyncExitStack() as stack:

        async def host(roles: list[Any]) -> Station:
            station = await stack.enter_async_context(Station(roles, addresses, connect_within=5))
            addresses.update((role.party, station.address) for role in roles)
            return station

        first, second = await host([round_.reporting_server()]), await host([round_.server()])
        devices = [await host([round_.user(index) for index in half]) for half in halves]
        yield first, second, devices, addresses


def test_two_stage_sampling_over_sockets_gives_the_counts() -> None:
    round_ = two_stage(24)

    async def main() -> list[int]:
        halves = [range(10), range(10, 24)]
        async with two_stage_stations(round_, halves) as (first, second, devices, _):

            async def act(device: Station) -> None:
                users: Any = device.roles
                messages = (each for user in users for each in user.report(user.party.index % 3))
                assert await device.send(messages) == []
                await device.finish(PATIENCE)

            async def elect() -> None:
                await first.collect(PATIENCE)
                await first.finish(PATIENCE)

            await asyncio.gather(elect(), second.finish(PATIENCE), *map(act, devices))
            server: Any = second.roles[0]
            return server.sums.tolist()

    assert run(main()) == [8, 8, 8]


def test_users_that_are_not_heard_are_dropped_and_the_round_goes_on() -> None:
    round_ = two_stage(12, max_missing_users=2)

    async def main() -> list[int]:
        halves = [range(10), range(10, 12)]
        async with two_stage_stations(round_, halves) as (first, second, devices, _):
            users: Any = devices[0].roles
            assert not await devices[0].send(e for user in users for e in user.report(1))
            first.stop_collecting()
            await first.collect(PATIENCE)
            late: Any = devices[1].roles
            undelivered = await devices[1].send(e for user in late for e in user.report(1))
            assert [type(each.error) for each in undelivered] == [ProtocolError] * 2
            assert "too late" in str(undelivered[0].error)
            assert devices[1].roles == ()
            await asyncio.gather(*(each.finish(PATIENCE) for each in (first, second, *devices)))
            server: Any = second.roles[0]
            return server.sums.tolist()

    assert run(main()) == [0, 10, 0]


def test_bad_frames_are_refused_and_the_round_is_as_it_was() -> None:
    round_, other = silent(4), silent(4)
    first = Party(Role.AGGREGATOR, 0)

    async def main() -> list[int]:
        async with stations(round_, [*aggregators(2), SERVER]) as (found, addresses):
            good, rest = shares(round_, range(1))
            data = good.to_bytes()
            altered = bytearray(data)
            altered[40] ^= 1
            stranger = Message(
                Kind.SHARE, round_.identifier, Party(Role.USER, 4), first, good.payload
            )
            impostor = Message(
                Kind.ROSTER, round_.identifier, Party(Role.AGGREGATOR, 2), first, b"\x0f"
            )
            elsewhere = Message(Kind.SHARE, round_.identifier, good.sender, SERVER, good.payload)
            foreign = next(shares(other, range(1)))
            empty = Message(Kind.SHARE, round_.identifier, good.sender, first, b"")
            refusals = {
                data[:-1]: (MalformedMessageError, "cut"),
                data[:20]: (MalformedMessageError, "got 20 bytes"),
                b"": (MalformedMessageError, "got 0 bytes"),
                data + b"\x00": (MalformedMessageError, "something follows"),
                bytes(altered): (MalformedMessageError, "altered"),
                foreign.to_bytes(): (ProtocolError, other.identifier.hex()),
                stranger.to_bytes(): (ProtocolError, "user 4"),
                impostor.to_bytes(): (ProtocolError, "aggregator 2"),
                elsewhere.to_bytes(): (ProtocolError, "for the server"),
                empty.to_bytes(): (MalformedMessageError, "a share must be"),
            }
            said = await answer(addresses[first], *refusals)
            for error, (kind, text) in zip(said, refusals.values(), strict=True):
                assert type(error) is kind
                assert text in str(error)
            assert len(found[first].roles[0].missing) == 4
            said = await answer(addresses[first], data, data)
            assert said[0] is None
            assert type(said[1]) is ProtocolError
            assert "already has the message of user 0" in str(said[1])
            async with Courier(addresses) as courier:
                await courier.send(rest)
                assert not await courier.send_all(shares(round_, range(1, 4)))
            await complete(found)
            return sums(found)

    assert run(main()) == [0, 4, 0]


def test_a_frame_above_the_limit_ends_the_connection_and_nothing_else() -> None:
    round_ = silent(4)

    async def main() -> list[int]:
        parties = [*aggregators(2), SERVER]
        async with stations(round_, parties, largest_frame=1000) as (found, addresses):
            address = addresses[Party(Role.AGGREGATOR, 0)]
            for start in (b"\xe9\x03\x00\x00", b"\xff\xff\xff\xffabc"):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(start)
                data = await read_frame(reader, 2**14)
                assert data is not None
                assert "at most 1000 bytes" in str(read_acknowledgement(data))
                assert await reader.read() == b""
                writer.close()
                await writer.wait_closed()
            # One that is cut: the sender hears of it if it still listens.
            reader, writer = await asyncio.open_connection(*address)
            writer.write(frame(b"0123456789")[:9])
            writer.write_eof()
            data = await read_frame(reader, 2**14)
            assert data is not None
            assert "a frame was cut" in str(read_acknowledgement(data))
            writer.close()
            await writer.wait_closed()
            async with Courier(addresses) as courier:
                assert not await courier.send_all(shares(round_, range(4)))
            await complete(found)
            return sums(found)

    assert run(main()) == [0, 4, 0]


def test_missing_users_are_named_at_the_deadline() -> None:
    round_ = silent(4)

    async def main() -> None:
        async with stations(round_, aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(shares(round_, range(3)))
            with pytest.raises(MissingPartyError, match="1 of 4 users") as caught:
                await found[Party(Role.AGGREGATOR, 0)].collect(0.05)
            assert caught.value.parties == (Party(Role.USER, 3),)
            # Nothing is kept, and nothing more is taken.
            (said,) = await answer(
                addresses[Party(Role.AGGREGATOR, 0)],
                next(shares(round_, range(3, 4))).to_bytes(),
            )
            assert "takes no more messages" in str(said)

    run(main())


def test_a_user_whose_share_came_to_one_only_is_in_no_sum() -> None:
    round_ = silent(8, max_missing_users=2)

    async def main() -> tuple[list[int], int]:
        async with stations(round_, [*aggregators(2), SERVER]) as (found, addresses):
            async with Courier(addresses) as courier:
                assert not await courier.send_all(shares(round_, range(6), 1))
                half = list(shares(round_, range(6, 7), 2))
                await courier.send(half[1])
            for party in aggregators(2):
                found[party].stop_collecting()
            await complete(found)
            server: Any = found[SERVER].roles[0]
            return sums(found), server.received

    assert run(main()) == ([0, 6, 0], 6)


def test_the_server_names_the_aggregator_that_is_missing() -> None:
    round_ = silent(4, parties=3)
    lost = Party(Role.AGGREGATOR, 1)

    async def main() -> None:
        async with stations(round_, [*aggregators(3), SERVER]) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(shares(round_, range(4)))
            # Its roster came, but its sum is lost.
            book = dict(addresses)
            found[lost]._courier._addresses = book  # type: ignore[assignment]
            del book[SERVER]
            await asyncio.gather(*(found[party].collect(PATIENCE) for party in aggregators(3)))
            for index in (0, 2):
                await found[Party(Role.AGGREGATOR, index)].finish(PATIENCE)
            with pytest.raises(InvalidValueError, match="the server is not in the address book"):
                await found[lost].finish(PATIENCE)
            with pytest.raises(MissingPartyError, match="without aggregator 1") as caught:
                await found[SERVER].finish(0.05)
            assert caught.value.parties == (lost,)
            server: Any = found[SERVER].roles[0]
            with pytest.raises(MissingPartyError):
                server.estimate()
            assert not server._sums

    run(main())


def test_an_aggregator_that_is_gone_is_named_by_the_others(deaf: socket.socket) -> None:
    round_ = silent(4, parties=3)
    gone = Party(Role.AGGREGATOR, 2)

    async def main() -> None:
        parties = [*aggregators(2), SERVER]
        async with stations(round_, parties, connect_within=0.2) as (found, addresses):
            addresses[gone] = deaf.getsockname()
            async with Courier(addresses, connect_within=0.2) as courier:
                undelivered = await courier.send_all(shares(round_, range(4)))
            assert {each.message.recipient for each in undelivered} == {gone}
            assert len(undelivered) == 4

            async def act(station: Station) -> None:
                await station.collect(PATIENCE)
                await station.finish(PATIENCE)

            ends = await asyncio.gather(
                *(act(found[party]) for party in aggregators(2)), return_exceptions=True
            )
            for end in ends:
                assert isinstance(end, MissingPartyError)
                assert end.parties == (gone,)
            found[SERVER].give_up()
            with pytest.raises(MissingPartyError, match="aggregator 2"):
                await found[SERVER].finish(PATIENCE)
            for party in aggregators(2):
                role: Any = found[party].roles[0]
                assert not role._shares

    run(main())


def test_a_roster_that_never_comes_is_named() -> None:
    round_ = silent(4)

    async def main() -> None:
        async with stations(round_, aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(shares(round_, range(4)))
            first = found[Party(Role.AGGREGATOR, 0)]
            await first.collect(PATIENCE)
            with pytest.raises(MissingPartyError, match="without aggregator 1") as caught:
                await first.finish(0.05)
            assert caught.value.parties == (Party(Role.AGGREGATOR, 1),)

    run(main())


def test_a_defect_of_a_role_comes_to_light(monkeypatch: pytest.MonkeyPatch) -> None:
    round_ = silent(4)

    async def main() -> None:
        async with stations(round_, aggregators(1)) as (found, addresses):
            (party,) = found
            monkeypatch.setattr(found[party].roles[0], "_accept", lambda message: 1 / 0)
            message = next(shares(round_, range(1)))
            (said,) = await answer(addresses[party], message.to_bytes())
            assert "could not be handled" in str(said)
            with pytest.raises(ZeroDivisionError):
                await found[party].collect(PATIENCE)

    run(main())


def test_stations_refuse_what_they_cannot_host() -> None:
    round_, other = silent(), silent()
    with pytest.raises(InvalidTypeError, match="roles must hold roles"):
        Station([round_], {})  # type: ignore[list-item]
    with pytest.raises(InvalidTypeError, match="roles must be roles of one round"):
        Station(round_.server(), {})  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="got 0 of 0 rounds"):
        Station([], {})
    with pytest.raises(InvalidValueError, match="got 2 of 2 rounds"):
        Station([round_.user(0), other.user(1)], {})
    with pytest.raises(InvalidValueError, match="user 0 twice"):
        Station([round_.user(0), round_.user(0)], {})
    for arguments in ({"port": 65536}, {"largest_frame": 0}, {"connect_within": 0}):
        with pytest.raises(InvalidValueError, match=next(iter(arguments))):
            Station([round_.server()], {}, **arguments)  # type: ignore[arg-type]
    for arguments in ({"host": 5}, {"server_tls": 1}, {"client_tls": 1}):
        with pytest.raises(InvalidTypeError):
            Station([round_.server()], {}, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="does not listen"):
        _ = Station([round_.server()], {}).address


def test_times_must_be_above_zero() -> None:
    async def main() -> None:
        async with Station([silent().aggregator(0)], {}) as station:
            for wait in (station.collect, station.finish):
                with pytest.raises(InvalidValueError, match="within must be a number of seconds"):
                    await wait(0)

    run(main())


def test_a_station_ends_while_a_connection_is_being_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closing, close_writer = asyncio.Event(), station_module.close_writer

    async def slowly(writer: asyncio.StreamWriter) -> None:
        closing.set()
        await asyncio.sleep(0.05)
        await close_writer(writer)

    monkeypatch.setattr(station_module, "close_writer", slowly)
    round_ = silent(4)

    async def main() -> None:
        async with stations(round_, aggregators(1)) as (_, addresses):
            (address,) = addresses.values()
            await answer(address, next(shares(round_, range(1))).to_bytes())
            await closing.wait()

    run(main())


# TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of one authority for some names, and one of another authority."""
    trustme = pytest.importorskip("trustme")
    folder = tmp_path_factory.mktemp("certificates")
    for authority, names in {"ours": ("station", "users"), "theirs": ("stranger",)}.items():
        made = trustme.CA()
        made.cert_pem.write_to_path(str(folder / f"{authority}.pem"))
        for name in names:
            issued = made.issue_cert("127.0.0.1", common_name=name)
            issued.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))
    return folder


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ours.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "station.pem")
    return context


def client_context(folder: Path, name: str | None, authority: str = "ours") -> ssl.SSLContext:
    context = ssl.create_default_context(
        ssl.Purpose.SERVER_AUTH, cafile=folder / f"{authority}.pem"
    )
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem")
    return context


def common_name(certificate: dict[str, Any]) -> str:
    return str(dict(pair for group in certificate["subject"] for pair in group)["commonName"])


def test_a_round_over_tls_with_certificates_on_both_sides(certificates: Path) -> None:
    round_ = silent(20)

    def admits(sender: Party, certificate: dict[str, Any]) -> bool:
        return common_name(certificate) == ("users" if sender.role is Role.USER else "station")

    async def main() -> list[int]:
        tls = {
            "server_tls": server_context(certificates),
            "client_tls": client_context(certificates, "station"),
            "admits": admits,
        }
        async with stations(round_, [*aggregators(2), SERVER], **tls) as (found, addresses):
            users = client_context(certificates, "users")
            async with Courier(addresses, tls=users) as courier:
                assert not await courier.send_all(shares(round_, range(20)))
                # Users cannot speak for an aggregator.
                first = Party(Role.AGGREGATOR, 0)
                roster = round_.aggregator(1)._send(Kind.ROSTER, first, b"\xff\xff\x0f")
                with pytest.raises(ProtocolError, match="does not speak for aggregator 1"):
                    await courier.send(roster)
            station = client_context(certificates, "station")
            async with Courier(addresses, tls=station) as courier:
                with pytest.raises(ProtocolError, match="does not speak for user 3"):
                    await courier.send(next(shares(round_, range(3, 4))))
            await complete(found)
            return sums(found)

    assert run(main()) == [0, 20, 0]


@pytest.mark.parametrize(
    ("name", "authority", "cause"),
    [
        (None, "ours", OSError),
        ("stranger", "ours", OSError),
        ("users", "theirs", ssl.SSLCertVerificationError),
        ("plain", "", OSError),
    ],
)
def test_without_trust_nothing_is_delivered(
    certificates: Path, name: str | None, authority: str, cause: type[Exception]
) -> None:
    round_ = silent(4)

    async def main() -> None:
        tls = {"server_tls": server_context(certificates)}
        async with stations(round_, aggregators(1), **tls) as (found, addresses):
            context = client_context(certificates, name, authority) if authority else None
            message = next(shares(round_, range(1)))
            async with Courier(addresses, tls=context, connect_within=1) as courier:
                with pytest.raises(MissingPartyError, match="aggregator 0 cannot be") as caught:
                    await courier.send(message)
            assert isinstance(caught.value.__cause__, cause)
            (station,) = found.values()
            assert len(station.roles[0].missing) == 4

    run(main())


def test_the_costs_are_those_of_the_messages() -> None:
    round_ = silent(10)

    async def main() -> list[Any]:
        async with stations(round_, [*aggregators(2), SERVER]) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(shares(round_, range(10)))
            await complete(found)
            return [station.roles[0].costs for station in found.values()]

    costs = run(main())
    assert [each.messages for each in costs] == [2, 2, 0]
    assert np.isclose(costs[0].bytes, costs[1].bytes)
