"""Rounds of stations, all in this process, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from turnout.distributed import (
    Message,
    Party,
    Role,
    Round,
    SamplingAggregation,
    TwoStageSampling,
)
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport import Courier, Station
from turnout.distributed.transport import listener as listener_module
from turnout.distributed.transport.frames import frame, read_acknowledgement, read_frame
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
)


def test_a_round_over_sockets_gives_the_counts(sockets: ModuleType) -> None:
    round_ = sockets.silent(40, parties=3)

    async def main() -> list[int]:
        async with sockets.stations(round_, [*sockets.aggregators(3), sockets.SERVER]) as (
            found,
            addresses,
        ):
            async with Courier(addresses) as courier:
                for value, users in enumerate((range(7), range(7, 20), range(20, 40))):
                    assert not await courier.send_all(sockets.shares(round_, users, value))
            await sockets.complete(found)
            return sockets.sums(found)

    assert sockets.run(main()) == [7, 13, 20]


def test_users_may_be_the_parties(sockets: ModuleType) -> None:
    round_ = Round.start(SamplingAggregation(3, 9, parties="users", rate=1 - 1e-12, floor=2))

    async def main() -> list[int]:
        addresses: dict[Party, Any] = {}
        server = round_.server()
        halves = [range(5), range(5, 9)]
        async with contextlib.AsyncExitStack() as stack:
            last = await stack.enter_async_context(Station([server], addresses))
            addresses[sockets.SERVER] = last.address
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
                await device.collect(sockets.PATIENCE)
                await device.finish(sockets.PATIENCE)

            await asyncio.gather(*map(act, devices), last.finish(sockets.PATIENCE))
        return server.sums.tolist()

    assert sockets.run(main()) == [3, 3, 3]


def two_stage(users: int, **arguments: Any) -> Round:
    """Two stages that are certain: everyone takes part and reports all items."""
    return Round.start(
        TwoStageSampling(
            3, users, reported=3, rate=1 - 1e-12, floor=users // 4, elected=4, **arguments
        )
    )


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


def test_two_stage_sampling_over_sockets_gives_the_counts(sockets: ModuleType) -> None:
    round_ = two_stage(24)

    async def main() -> list[int]:
        halves = [range(10), range(10, 24)]
        async with two_stage_stations(round_, halves) as (first, second, devices, _):

            async def act(device: Station) -> None:
                users: Any = device.roles
                messages = (each for user in users for each in user.report(user.party.index % 3))
                assert await device.send(messages) == []
                await device.finish(sockets.PATIENCE)

            async def elect() -> None:
                await first.collect(sockets.PATIENCE)
                await first.finish(sockets.PATIENCE)

            await asyncio.gather(elect(), second.finish(sockets.PATIENCE), *map(act, devices))
            server: Any = second.roles[0]
            return server.sums.tolist()

    assert sockets.run(main()) == [8, 8, 8]


def test_users_that_are_not_heard_are_dropped_and_the_round_goes_on(sockets: ModuleType) -> None:
    round_ = two_stage(12, max_missing_users=2)

    async def main() -> list[int]:
        halves = [range(10), range(10, 12)]
        async with two_stage_stations(round_, halves) as (first, second, devices, _):
            users: Any = devices[0].roles
            assert not await devices[0].send(e for user in users for e in user.report(1))
            first.stop_collecting()
            await first.collect(sockets.PATIENCE)
            late: Any = devices[1].roles
            undelivered = await devices[1].send(e for user in late for e in user.report(1))
            assert [type(each.error) for each in undelivered] == [ProtocolError] * 2
            assert "too late" in str(undelivered[0].error)
            assert devices[1].roles == ()
            await asyncio.gather(
                *(each.finish(sockets.PATIENCE) for each in (first, second, *devices))
            )
            server: Any = second.roles[0]
            return server.sums.tolist()

    assert sockets.run(main()) == [0, 10, 0]


def test_the_costs_are_those_of_the_messages(sockets: ModuleType) -> None:
    round_ = sockets.silent(10)

    async def main() -> list[Any]:
        async with sockets.stations(round_, [*sockets.aggregators(2), sockets.SERVER]) as (
            found,
            addresses,
        ):
            async with Courier(addresses) as courier:
                await courier.send_all(sockets.shares(round_, range(10)))
            await sockets.complete(found)
            return [station.roles[0].costs for station in found.values()]

    costs = sockets.run(main())
    assert [each.messages for each in costs] == [2, 2, 0]
    assert np.isclose(costs[0].bytes, costs[1].bytes)


def test_bad_frames_are_refused_and_the_round_is_as_it_was(sockets: ModuleType) -> None:
    round_, other = sockets.silent(4), sockets.silent(4)
    first = Party(Role.AGGREGATOR, 0)

    async def main() -> list[int]:
        async with sockets.stations(round_, [*sockets.aggregators(2), sockets.SERVER]) as (
            found,
            addresses,
        ):
            good, rest = sockets.shares(round_, range(1))
            data = good.to_bytes()
            altered = bytearray(data)
            altered[40] ^= 1
            stranger = Message(
                MessageKind.SHARE, round_.identifier, Party(Role.USER, 4), first, good.payload
            )
            impostor = Message(
                MessageKind.ROSTER, round_.identifier, Party(Role.AGGREGATOR, 2), first, b"\x0f"
            )
            elsewhere = Message(
                MessageKind.SHARE, round_.identifier, good.sender, sockets.SERVER, good.payload
            )
            foreign = next(sockets.shares(other, range(1)))
            empty = Message(MessageKind.SHARE, round_.identifier, good.sender, first, b"")
            refusals = {
                data[:-1]: (MalformedMessageError, "truncated"),
                data[:20]: (MalformedMessageError, "got 20 bytes"),
                b"": (MalformedMessageError, "got 0 bytes"),
                bytes(altered): (MalformedMessageError, "altered"),
                foreign.to_bytes(): (ProtocolError, other.identifier.hex()),
                stranger.to_bytes(): (ProtocolError, "user 4"),
                impostor.to_bytes(): (ProtocolError, "aggregator 2"),
                elsewhere.to_bytes(): (ProtocolError, "for the server"),
                empty.to_bytes(): (MalformedMessageError, "a share must be"),
            }
            said = await sockets.answer(addresses[first], *refusals)
            for error, (kind, text) in zip(said, refusals.values(), strict=True):
                assert type(error) is kind
                assert text in str(error)
            assert len(found[first].roles[0].missing) == 4
            # The same bytes again count once; other ones of the same user are refused.
            again = next(sockets.shares(round_, range(1))).to_bytes()
            said = await sockets.answer(addresses[first], data, data, again)
            assert said[:2] == [None, None]
            assert type(said[2]) is ProtocolError
            assert "already has the message of user 0" in str(said[2])
            assert len(found[first].roles[0].missing) == 3
            async with Courier(addresses) as courier:
                await courier.send(rest)
                assert not await courier.send_all(sockets.shares(round_, range(1, 4)))
            await sockets.complete(found)
            return sockets.sums(found)

    assert sockets.run(main()) == [0, 4, 0]


def test_a_frame_above_the_limit_ends_the_connection_and_nothing_else(sockets: ModuleType) -> None:
    round_ = sockets.silent(4)

    async def main() -> list[int]:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties) as (found, addresses):
            address = addresses[Party(Role.AGGREGATOR, 0)]
            # Of a share with a seed.
            most = 52 + 9 + 32
            for start in ((most + 1).to_bytes(4, "little"), b"\xff\xff\xff\xffabc"):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(start)
                data = await read_frame(reader, 2**14)
                assert data is not None
                assert f"at most {most} bytes" in str(read_acknowledgement(data))
                assert await reader.read() == b""
                writer.close()
                await writer.wait_closed()
            # One that is cut: the sender hears of it if it still listens.
            reader, writer = await asyncio.open_connection(*address)
            writer.write(frame(b"0123456789")[:9])
            writer.write_eof()
            data = await read_frame(reader, 2**14)
            assert data is not None
            assert "a frame was truncated" in str(read_acknowledgement(data))
            writer.close()
            await writer.wait_closed()
            async with Courier(addresses) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(4)))
            await sockets.complete(found)
            return sockets.sums(found)

    assert sockets.run(main()) == [0, 4, 0]


def test_a_message_without_memory_for_it_ends_no_round(
    sockets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = sockets.silent(4)
    first, from_bytes, left = Party(Role.AGGREGATOR, 0), Message.from_bytes, [MemoryError()]

    def read(data: bytes) -> Message:
        if left:
            raise left.pop()
        return from_bytes(data)

    async def main() -> list[int]:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties) as (found, addresses):
            monkeypatch.setattr(Message, "from_bytes", read)
            (said,) = await sockets.answer(addresses[first], b"a large message")
            assert type(said) is ProtocolError
            assert "not enough memory" in str(said)
            async with Courier(addresses) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(4)))
            await sockets.complete(found)
            return sockets.sums(found)

    assert sockets.run(main()) == [0, 4, 0]


def test_missing_users_are_named_at_the_deadline(sockets: ModuleType) -> None:
    round_ = sockets.silent(4)

    async def main() -> None:
        async with sockets.stations(round_, sockets.aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(sockets.shares(round_, range(3)))
            with pytest.raises(MissingPartyError, match="1 of 4 users") as caught:
                await found[Party(Role.AGGREGATOR, 0)].collect(0.05)
            assert caught.value.parties == (Party(Role.USER, 3),)
            # Nothing is kept, and nothing more is taken.
            (said,) = await sockets.answer(
                addresses[Party(Role.AGGREGATOR, 0)],
                next(sockets.shares(round_, range(3, 4))).to_bytes(),
            )
            assert "accepts no more messages:" in str(said)

    sockets.run(main())


def test_a_user_whose_share_came_to_one_only_is_in_no_sum(sockets: ModuleType) -> None:
    round_ = sockets.silent(8, max_missing_users=2)

    async def main() -> tuple[list[int], int]:
        async with sockets.stations(round_, [*sockets.aggregators(2), sockets.SERVER]) as (
            found,
            addresses,
        ):
            async with Courier(addresses) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(6), 1))
                half = list(sockets.shares(round_, range(6, 7), 2))
                await courier.send(half[1])
            for party in sockets.aggregators(2):
                found[party].stop_collecting()
            await sockets.complete(found)
            server: Any = found[sockets.SERVER].roles[0]
            return sockets.sums(found), server.received

    assert sockets.run(main()) == ([0, 6, 0], 6)


def test_the_server_names_the_aggregator_that_is_missing(sockets: ModuleType) -> None:
    round_ = sockets.silent(4, parties=3)
    lost = Party(Role.AGGREGATOR, 1)

    async def main() -> None:
        async with sockets.stations(round_, [*sockets.aggregators(3), sockets.SERVER]) as (
            found,
            addresses,
        ):
            async with Courier(addresses) as courier:
                await courier.send_all(sockets.shares(round_, range(4)))
            # Its roster came, but its sum is lost.
            book = dict(addresses)
            found[lost]._courier._addresses = book  # type: ignore[assignment]
            del book[sockets.SERVER]
            await asyncio.gather(
                *(found[party].collect(sockets.PATIENCE) for party in sockets.aggregators(3))
            )
            for index in (0, 2):
                await found[Party(Role.AGGREGATOR, index)].finish(sockets.PATIENCE)
            with pytest.raises(InvalidValueError, match="the server is not in the address book"):
                await found[lost].finish(sockets.PATIENCE)
            with pytest.raises(MissingPartyError, match="without aggregator 1") as caught:
                await found[sockets.SERVER].finish(0.05)
            assert caught.value.parties == (lost,)
            server: Any = found[sockets.SERVER].roles[0]
            with pytest.raises(MissingPartyError):
                server.estimate()
            assert not server._found

    sockets.run(main())


def test_an_aggregator_that_is_gone_is_named_by_the_others(
    sockets: ModuleType, deaf: socket.socket
) -> None:
    round_ = sockets.silent(4, parties=3)
    gone = Party(Role.AGGREGATOR, 2)

    async def main() -> None:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with sockets.stations(round_, parties, connect_within=0.2) as (found, addresses):
            addresses[gone] = deaf.getsockname()
            async with Courier(addresses, connect_within=0.2) as courier:
                undelivered = await courier.send_all(sockets.shares(round_, range(4)))
            assert {each.message.recipient for each in undelivered} == {gone}
            assert len(undelivered) == 4

            async def act(station: Station) -> None:
                await station.collect(sockets.PATIENCE)
                await station.finish(0.5)

            ends = await asyncio.gather(
                *(act(found[party]) for party in sockets.aggregators(2)), return_exceptions=True
            )
            for end in ends:
                assert isinstance(end, MissingPartyError)
                assert end.parties == (gone,)
            found[sockets.SERVER].give_up()
            with pytest.raises(MissingPartyError, match="aggregator 2"):
                await found[sockets.SERVER].finish(sockets.PATIENCE)
            for party in sockets.aggregators(2):
                role: Any = found[party].roles[0]
                assert not role._shares

    sockets.run(main())


def test_a_roster_that_never_comes_is_named(sockets: ModuleType) -> None:
    round_ = sockets.silent(4)

    async def main() -> None:
        async with sockets.stations(round_, sockets.aggregators(2)) as (found, addresses):
            async with Courier(addresses) as courier:
                await courier.send_all(sockets.shares(round_, range(4)))
            first = found[Party(Role.AGGREGATOR, 0)]
            await first.collect(sockets.PATIENCE)
            with pytest.raises(MissingPartyError, match="without aggregator 1") as caught:
                await first.finish(0.05)
            assert caught.value.parties == (Party(Role.AGGREGATOR, 1),)

    sockets.run(main())


def test_a_defect_of_a_role_comes_to_light(
    sockets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = sockets.silent(4)

    async def main() -> None:
        async with sockets.stations(round_, sockets.aggregators(1)) as (found, addresses):
            (party,) = found
            monkeypatch.setattr(found[party].roles[0], "_accept", lambda message: 1 / 0)
            message = next(sockets.shares(round_, range(1)))
            (said,) = await sockets.answer(addresses[party], message.to_bytes())
            assert "could not be handled" in str(said)
            with pytest.raises(ZeroDivisionError):
                await found[party].collect(sockets.PATIENCE)

    sockets.run(main())


def test_stations_refuse_what_they_cannot_host(sockets: ModuleType) -> None:
    round_, other = sockets.silent(), sockets.silent()
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
    for arguments in (
        {"port": 65536}, {"connect_within": 0}, {"connections": 0}, {"connections_per_host": 0},
        {"idle_within": 0},
    ):  # fmt: skip
        with pytest.raises(InvalidValueError, match=next(iter(arguments))):
            Station([round_.server()], {}, **arguments)  # type: ignore[arg-type]
    for arguments in ({"host": 5}, {"server_tls": 1}, {"client_tls": 1}, {"admits": 1}):
        with pytest.raises(InvalidTypeError):
            Station([round_.server()], {}, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="does not listen"):
        _ = Station([round_.server()], {}).address


def test_times_must_be_above_zero(sockets: ModuleType) -> None:
    async def main() -> None:
        async with Station([sockets.silent().aggregator(0)], {}) as station:
            for wait in (station.collect, station.finish):
                with pytest.raises(InvalidValueError, match="within must be a finite number"):
                    await wait(0)

    sockets.run(main())


def test_a_station_ends_while_a_connection_is_being_closed(
    sockets: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closing, close_writer = asyncio.Event(), listener_module.close_writer

    async def slowly(writer: asyncio.StreamWriter) -> None:
        closing.set()
        await asyncio.sleep(0.05)
        await close_writer(writer)

    monkeypatch.setattr(listener_module, "close_writer", slowly)
    round_ = sockets.silent(4)

    async def main() -> None:
        async with sockets.stations(round_, sockets.aggregators(1)) as (_, addresses):
            (address,) = addresses.values()
            await sockets.answer(address, next(sockets.shares(round_, range(1))).to_bytes())
            await closing.wait()

    sockets.run(main())
