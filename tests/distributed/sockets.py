"""Rounds of stations in this process, and what goes over their sockets."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

from turnout.distributed import Message, NoisyAggregation, Party, Role, Round
from turnout.distributed.transport import Station
from turnout.distributed.transport.frames import frame, read_acknowledgement, read_frame

#: No wait of a test is that long.
PATIENCE = 60.0
SERVER = Party(Role.SERVER)


#: Real seconds without any event after which a loop takes the time to its next timer as over.
IDLE = 0.25


class IdleSelector(selectors.DefaultSelector):
    """Lets the time of a loop pass only while the loop has nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.threads: set[Any] = set()

    def select(self, timeout: float | None = None) -> list[Any]:
        # So that of two events one is later.
        self.now += 1e-6
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        found = super().select(min(timeout, IDLE))
        if not found and not self.threads:
            self.now += timeout
        return found


class IdleLoop(asyncio.SelectorEventLoop):
    """An event loop on which a busy machine, however slow, lets no deadline pass."""

    def __init__(self) -> None:
        self._passed = IdleSelector()
        super().__init__(self._passed)

    def time(self) -> float:
        return self._passed.now

    def run_in_executor(self, *arguments: Any) -> Any:
        working = super().run_in_executor(*arguments)
        self._passed.threads.add(working)
        working.add_done_callback(self._passed.threads.discard)
        return working


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run stations and what speaks to them, all in this process."""

    async def check() -> Any:
        result = await asyncio.wait_for(main, 2 * PATIENCE)
        assert len(asyncio.all_tasks()) == 1, "a task was left behind"
        return result

    with contextlib.closing(IdleLoop()) as loop:
        try:
            return loop.run_until_complete(check())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())


def aggregators(count: int) -> list[Party]:
    return [Party(Role.AGGREGATOR, index) for index in range(count)]


def silent(users: int = 6, **arguments: Any) -> Round:
    """A round whose sums are the counts: noise other than 0 has probability 10^-21."""
    given = {"parties": 2, "parameter": 0.02, **arguments}
    return Round.start(NoisyAggregation(3, users, **given))


def shares(round_: Round, users: Iterator[int] | range, value: int = 1) -> Iterator[Message]:
    for index in users:
        yield from round_.user(index).report(value)


def role_of(round_: Round, party: Party) -> Any:
    """Make the role of a user, an aggregator or the server."""
    if party.role is Role.SERVER:
        return round_.server()
    return {Role.USER: round_.user, Role.AGGREGATOR: round_.aggregator}[party.role](party.index)


@contextlib.asynccontextmanager
async def stations(
    round_: Round, parties: list[Party], **arguments: Any
) -> AsyncIterator[tuple[dict[Party, Station], dict[Party, Any]]]:
    """One station for each of some parties, and their addresses."""
    addresses: dict[Party, Any] = {}
    async with contextlib.AsyncExitStack() as stack:
        found = {}
        for party in parties:
            station = Station([role_of(round_, party)], addresses, **arguments)
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
