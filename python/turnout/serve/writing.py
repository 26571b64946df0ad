"""One writer: the messages of many requests in one transaction, and answers when it is durable.

While a transaction goes to the disk, requests that come in wait; the next one takes all of them.
The busier a server is, the more messages share the price of a transaction.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from turnout._types import Array
from turnout.errors import StoreUnavailableError, TurnoutError
from turnout.serve.collection import ACCEPTED, REFUSED, REPEATED, Collection, Read
from turnout.serve.counted import group_text, tally_of
from turnout.serve.storage.interface import Store, StoredTally, Writing

_LOGGER = logging.getLogger(__name__)

#: The most messages of one transaction.
_MOST: Final = 2**15

#: Bytes of tallies that are held in memory.
_HELD: Final = 2**26

#: Seconds after which plans are looked at again if no message comes.
_PAUSE: Final = 1.0

_KINDS: Final = {number: kind for kind, number in REFUSED.items()}
_OUTCOMES: Final = len(_KINDS) + REPEATED + 1


class Taken(NamedTuple):
    """What became of the messages of a request: durable, where it says that they are accepted."""

    accepted: int
    duplicates: int
    refused: dict[str, int]

    def described(self) -> dict[str, Any]:
        """Describe it in terms of JSON."""
        return {
            "accepted": self.accepted,
            "duplicates": self.duplicates,
            "refused": self.refused,
        }


class Waiting(NamedTuple):
    """The messages of a request, its invitation, and who waits for what becomes of them."""

    lines: Sequence[bytes]
    mark: bytes | None
    done: Callable[[Taken | BaseException], None]


class Writer:
    """Takes in messages, one transaction after another, in a thread of its own.

    Parameters
    ----------
    collection
        What reads them.
    store
        Where they go.
    """

    def __init__(self, collection: Collection, store: Store) -> None:
        self._collection, self._store = collection, store
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="turnout-writer", daemon=True)
        self._refused: Counter[str] = Counter()
        self._tallies: dict[tuple[int, str], Any] = {}
        self._generation: Hashable = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: The bytes of messages that wait.
        self.waiting = 0
        #: What is wrong with the store, or with a plan file that was added; None if nothing is.
        self.trouble: str | None = None
        self.plan_trouble: str | None = None
        #: Transactions so far.
        self.transactions = 0

    def start(self) -> None:
        """Begin to write; called in the event loop that asks."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    async def take(self, lines: Sequence[bytes], size: int, mark: bytes | None = None) -> Taken:
        """Take in messages of so many bytes, and wait until they are durable.

        No end of a line is in them.

        A message that comes with the mark of an invitation is refused if that was used before.

        Raises
        ------
        StoreUnavailableError
            If they could not be stored: they do not count, and may be sent again.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Taken] = loop.create_future()

        def done(result: Taken | BaseException) -> None:
            if future.done():
                return
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

        self.waiting += size
        try:
            self._queue.put(Waiting(lines, mark, done))
            return await future
        finally:
            self.waiting -= size

    def _run(self) -> None:
        """Write until told to end."""
        end = False
        while not end:
            work, end = self._next()
            self._refresh()
            if work:
                self._answer(work, self._outcomes(work))
        try:
            if self._refused:
                with self._store.writing() as writing:
                    writing.add_refused(self._refused)
        except StoreUnavailableError as error:
            _LOGGER.error("how many messages were refused last is not stored: %s", error)

    def _next(self) -> tuple[list[Waiting], bool]:
        """Wait for requests, and take all that wait."""
        work: list[Waiting] = []
        lines = 0
        try:
            found = self._queue.get(timeout=_PAUSE)
            while found is not None:
                work.append(found)
                lines += len(found.lines)
                if lines >= _MOST:
                    break
                found = self._queue.get_nowait()
            else:
                return work, True
        except queue.Empty:
            pass
        return work, False

    def _refresh(self) -> None:
        """Look at the plans again."""
        try:
            if self._collection.refresh():
                _LOGGER.info("the plans changed: %d now", len(self._collection.published))
                self.plan_trouble = None
        except (TurnoutError, OSError) as error:
            if str(error) != self.plan_trouble:
                _LOGGER.error("plans are as they were: %s", error)
            self.plan_trouble = str(error)

    def _answer(self, work: Sequence[Waiting], results: Sequence[Taken | BaseException]) -> None:
        """Tell those who wait, in their thread."""

        def tell() -> None:
            for each, result in zip(work, results, strict=True):
                each.done(result)

        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            # The loop was closed, and nobody waits any more.
            _LOGGER.debug("nobody waits for %d requests", len(work))

    def _outcomes(self, work: Sequence[Waiting]) -> list[Taken | BaseException]:
        """Write the messages of requests; where one is beyond reading, the others all the same."""
        try:
            taken: list[Taken | BaseException] = list(self._write(work))
        except StoreUnavailableError as error:
            self._generation = None
            if self.trouble is None:
                _LOGGER.error("the store cannot be used: %s", error)
            self.trouble = str(error)
            return [error] * len(work)
        except Exception as error:
            self._generation = None
            if len(work) > 1:
                return [outcome for each in work for outcome in self._outcomes([each])]
            _LOGGER.exception("a request could not be taken")
            return [error]
        if self.trouble is not None:
            _LOGGER.info("the store can be used again")
        self.trouble = None
        return taken

    def _write(self, requests: Sequence[Waiting]) -> list[Taken]:
        lines = [line for each in requests for line in each.lines]
        marks = dict(_marks(requests))
        read = self._collection.read(lines)
        if len(read):
            with self._store.writing() as writing:
                read.leave_out_repeated(writing)
                if marks:
                    read.leave_out_uninvited(writing, marks)
                tallies = self._count(writing, read)
                if self._store.keep == "messages":
                    accepted = np.flatnonzero(read.outcomes == ACCEPTED).tolist()
                    kept = b"\n".join([lines[place] for place in accepted])
                    if kept:
                        writing.put_messages(kept)
                refused = self._refused + _refused(read)
                if refused:
                    writing.add_refused(refused)
            self._refused.clear()
            self._hold(tallies)
            self.transactions += 1
        else:
            # Nothing is stored for them alone: they are counted with the next good message.
            self._refused += _refused(read)
        return _taken(read.outcomes, [len(each.lines) for each in requests])

    def _count(self, writing: Writing, read: Read) -> dict[tuple[int, str], Any]:
        """Add what is new to the tallies of its groups."""
        if writing.generation != self._generation:
            self._tallies.clear()
            self._generation = writing.generation
        changed: dict[tuple[int, str], Any] = {}
        for family, batch, _ in read.batches:
            if not len(batch):
                continue
            for place, key, counted in family.counted(batch):
                plan, number, group = family.plans[place], family.numbers[place], group_text(key)
                earlier = self._tallies.get((number, group))
                if earlier is None:
                    earlier = tally_of(plan, writing.tally(number, group))
                changed[number, group] = earlier.merge(counted)
        rows: dict[int, list[StoredTally]] = {}
        for (number, group), tally in changed.items():
            row = StoredTally(group, tally.received, tally._sums_to_bytes())
            rows.setdefault(number, []).append(row)
        for number, tallies in rows.items():
            writing.put_tallies(number, tallies)
        return changed

    def _hold(self, tallies: dict[tuple[int, str], Any]) -> None:
        """Keep tallies in memory until their groups come again."""
        self._tallies.update(tallies)
        most = max((tally._bytes_of_sums(tally.plan) for tally in tallies.values()), default=0)
        if most * len(self._tallies) > _HELD:
            self._tallies.clear()


def _marks(requests: Sequence[Waiting]) -> Iterator[tuple[int, bytes]]:
    """Give the places of messages that came with an invitation, and the marks."""
    start = 0
    for each in requests:
        if each.mark is not None:
            yield from dict.fromkeys(range(start, start + len(each.lines)), each.mark).items()
        start += len(each.lines)


def _refused(read: Read) -> Counter[str]:
    numbers = np.bincount(read.outcomes, minlength=_OUTCOMES).tolist()
    return Counter({kind: numbers[number] for number, kind in _KINDS.items() if numbers[number]})


def _taken(outcomes: Array, sizes: Sequence[int]) -> list[Taken]:
    """Count what became of the messages of requests that have so many.

    Examples
    --------
    >>> _taken(np.array([ACCEPTED, ACCEPTED, REPEATED, REFUSED["malformed"]]), [1, 3])[1]
    Taken(accepted=1, duplicates=1, refused={'malformed': 1})
    """
    requests = np.repeat(np.arange(len(sizes)), sizes)
    numbers = np.bincount(requests * _OUTCOMES + outcomes, minlength=len(sizes) * _OUTCOMES)
    return [
        Taken(
            row[ACCEPTED], row[REPEATED], {kind: row[at] for at, kind in _KINDS.items() if row[at]}
        )
        for row in numbers.reshape(-1, _OUTCOMES).tolist()
    ]
