"""A connection may be lost at any byte: the round goes on over another, and counts once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import pytest

from turnout.distributed import Message, Party, Role, Round, TwoStageSampling, User
from turnout.distributed.transport import Courier, Station
from turnout.errors import MissingPartyError


@contextlib.asynccontextmanager
async def cutting(
    address: tuple[str, int], there: int, back: int
) -> AsyncIterator[tuple[tuple[str, int], list[int]]]:
    """Pass on what comes for an address; cut each connection after so many bytes either way."""
    cut, tasks = [0], set()

    async def pipe(reader: Any, writer: Any, most: int) -> None:
        while most > 0 and (data := await reader.read(min(most, 2**14))):
            most -= len(data)
            writer.write(data)
            await writer.drain()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        other, onward = await asyncio.open_connection(*address)
        halves = [
            asyncio.ensure_future(pipe(reader, onward, there)),
            asyncio.ensure_future(pipe(other, writer, back)),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            cut[0] += 1
            writer.transport.abort()
            onward.transport.abort()
            await asyncio.gather(*halves, return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2], cut
    finally:
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("there", "back"), [(2000, 10**9), (10**9, 47), (1500, 60)])
def test_connections_that_are_cut_all_the_time_lose_no_message_and_count_none_twice(
    sockets: ModuleType, there: int, back: int
) -> None:
    round_ = sockets.silent(60)

    async def main() -> tuple[list[int], list[list[int]]]:
        parties = [*sockets.aggregators(2), sockets.SERVER]
        async with contextlib.AsyncExitStack() as stack:
            found, direct = await stack.enter_async_context(sockets.stations(round_, parties))
            cuts, book = [], {}
            for party, address in direct.items():
                book[party], cut = await stack.enter_async_context(cutting(address, there, back))
                cuts.append(cut)
            direct.update(book)
            courier = await stack.enter_async_context(Courier(book))
            for value, users in enumerate((range(7), range(7, 20), range(20, 60))):
                assert await courier.send_all(sockets.shares(round_, users, value)) == []
            await courier.close()
            await sockets.complete(found)
            return sockets.sums(found), cuts

    sums, cuts = sockets.run(main())
    assert sums == [7, 13, 40]
    assert min(cut for (cut,) in cuts[:2]) > 1


def test_a_party_that_comes_late_is_tried_again_until_the_round_is_over(
    sockets: ModuleType, deaf: socket.socket
) -> None:
    round_ = sockets.silent(4)
    port = deaf.getsockname()[1]

    async def main() -> list[int]:
        parties = sockets.aggregators(2)
        async with sockets.stations(round_, parties, connect_within=0.05) as (found, addresses):
            addresses[sockets.SERVER] = ("127.0.0.1", port)
            async with Courier(addresses) as courier:
                assert not await courier.send_all(sockets.shares(round_, range(4)))
            await asyncio.gather(*(each.collect(sockets.PATIENCE) for each in found.values()))
            ends = [asyncio.create_task(each.finish(sockets.PATIENCE)) for each in found.values()]
            # Longer than a connection is tried.
            await asyncio.sleep(0.3)
            assert not any(end.done() for end in ends)
            deaf.close()
            server = round_.server()
            async with Station([server], addresses, port=port) as last:
                await asyncio.gather(*ends, last.finish(sockets.PATIENCE))
            return server.sums.tolist()

    assert sockets.run(main()) == [0, 4, 0]


def test_a_party_that_never_comes_is_named_when_the_time_is_over(
    sockets: ModuleType, deaf: socket.socket
) -> None:
    round_ = sockets.silent(4, parties=3)
    gone = Party(Role.AGGREGATOR, 2)

    async def main() -> None:
        parties = sockets.aggregators(2)
        async with sockets.stations(round_, parties, connect_within=0.05) as (found, addresses):
            addresses[gone] = deaf.getsockname()[:2]
            async with Courier(addresses, connect_within=0.05) as courier:
                undelivered = await courier.send_all(sockets.shares(round_, range(4)))
            assert {each.message.recipient for each in undelivered} == {gone}
            await asyncio.gather(*(each.collect(sockets.PATIENCE) for each in found.values()))
            begun = asyncio.get_running_loop().time()
            ends = await asyncio.gather(
                *(each.finish(0.3) for each in found.values()), return_exceptions=True
            )
            assert asyncio.get_running_loop().time() - begun < sockets.PATIENCE
            for end in ends:
                assert isinstance(end, MissingPartyError)
                assert end.parties == (gone,)

    sockets.run(main())


@pytest.mark.parametrize("allowed", [4, 3])
def test_devices_that_leave_after_their_sets_are_left_out_or_named(
    sockets: ModuleType, allowed: int
) -> None:
    """Twelve devices at three stations, of which one closes once its sets are delivered."""
    round_ = Round.start(
        TwoStageSampling(
            2, 12, reported=2, rate=1 - 1e-12, floor=6, elected=4, max_missing_users=allowed
        )
    )
    addresses: dict[Party, Any] = {}

    def station(roles: list[Any]) -> Station:
        return Station(roles, addresses, connect_within=0.2, answer_within=0.5)

    def reports(device: Station) -> Iterator[Message]:
        for role in device.roles:
            assert isinstance(role, User)
            yield from role.report(role.party.index % 2)

    async def main() -> Any:
        first, server = station([round_.reporting_server()]), station([round_.server()])
        devices = [station([round_.user(i) for i in range(4 * n, 4 * n + 4)]) for n in range(3)]
        async with first, server, devices[0], devices[1]:
            async with devices[2]:
                for each in (first, server, *devices):
                    addresses.update((role.party, each.address) for role in each.roles)
                for device in devices:
                    assert await device.send(reports(device)) == []
            await first.collect(sockets.PATIENCE)
            rest = (server, devices[0], devices[1])
            waiting = [asyncio.create_task(each.finish(sockets.PATIENCE)) for each in rest]
            (end,) = await asyncio.gather(
                first.finish(sockets.PATIENCE, step_within=0.7), return_exceptions=True
            )
            if end is not None:
                for each in rest:
                    each.give_up()
            found = await asyncio.gather(*waiting, return_exceptions=True)
            return [end, *found], server.roles[0]

    ends, server = sockets.run(main())
    if allowed == 4:
        assert ends == [None] * 4
        assert (server.sums.tolist(), server.received) == ([4, 4], 8)
        return
    gone = tuple(Party(Role.USER, index) for index in range(8, 12))
    assert isinstance(ends[0], MissingPartyError)
    assert ends[0].parties == gone
    assert all(isinstance(end, MissingPartyError) for end in ends[1:])
    with pytest.raises(MissingPartyError):
        server.estimate()


def test_an_election_that_begins_within_a_step_has_all_of_its_time(
    sockets: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = Round.start(TwoStageSampling(2, 4, reported=2, rate=0.5, floor=2, elected=2))
    role: Any = round_.reporting_server()
    for index in range(4):
        for message in round_.user(index).report(0):
            role.receive(message.to_bytes())
    role.close()

    async def main() -> list[float]:
        loop, closed = asyncio.get_running_loop(), []
        station = Station([role], {})

        def close() -> list[Message]:
            closed.append(loop.time() - begun)
            if len(closed) == 2:
                station.give_up()
            return []

        def elect() -> None:
            role._number += 1
            station._wake()

        monkeypatch.setattr(role, "close", close)
        begun = loop.time()
        loop.call_later(8, elect)
        with pytest.raises(MissingPartyError):
            await station.finish(within=100, step_within=10)
        return closed

    assert sockets.run(main()) == pytest.approx([18, 28], abs=0.1)
