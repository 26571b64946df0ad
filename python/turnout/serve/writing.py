"""One writer: messages of many requests in one durable transaction, then answers.

While a transaction goes to the disk, requests that come in wait; the next one takes all of them.
The busier a server is, the more messages share the price of a transaction. Messages are read in a
thread of its own, so that those of the next transaction are read while one is written.
"""

from __future__ import annotations

import asyncio
import contextlib
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
    """The outcome of a request's messages; accepted ones are durable."""

    accepted: int
    duplicates: int
    refused: dict[str, int]

    def described(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        return {
            "accepted": self.accepted,
            "duplicates": self.duplicates,
            "refused": self.refused,
        }


class Waiting(NamedTuple):
    """The messages of a request, its invitation, and the future that receives the outcome."""

    lines: Sequence[bytes]
    mark: bytes | None
    done: Callable[[Taken | BaseException], None]


class _Prepared(NamedTuple):
    """Requests with read messages; None for requests that could not be read."""

    work: Sequence[Waiting]
    read: Read | None


class Writer:
    """A writer that stores messages, one transaction after another, in its own threads.

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
        # One is read ahead: more would only wait.
        self._ready: queue.Queue[_Prepared | None] = queue.Queue(1)
        self._threads = [
            threading.Thread(target=self._read, name="turnout-reader", daemon=True),
            threading.Thread(target=self._run, name="turnout-writer", daemon=True),
        ]
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
        """Start writing; call it in the event loop that makes requests."""
        self._loop = asyncio.get_running_loop()
        for each in self._threads:
            each.start()

    async def stop(self) -> None:
        """Write the waiting messages, and end."""
        self._queue.put(None)
        for each in self._threads:
            await asyncio.get_running_loop().run_in_executor(None, each.join)

    async def take(self, lines: Sequence[bytes], size: int, mark: bytes | None = None) -> Taken:
        """Store messages of this many bytes, and wait until they are durable.

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

    def _read(self) -> None:
        """Read incoming messages until told to end."""
        end = False
        while not end:
            work, end = self._next()
            self._refresh()
            if work:
                read = None
                # The writer takes these one by one, and says which it was.
                with contextlib.suppress(Exception):
                    read = self._collection.read(_lines(work))
                self._ready.put(_Prepared(work, read))
        self._ready.put(None)

    def _run(self) -> None:
        """Write what was read until nothing more comes."""
        while (found := self._ready.get()) is not None:
            self._answer(found.work, self._outcomes(found.work, found.read))
        try:
            if self._refused:
                with self._store.writing() as writing:
                    writing.add_refused(self._refused)
        except StoreUnavailableError as error:
            _LOGGER.error("how many messages were refused last is not stored: %s", error)

    def _next(self) -> tuple[list[Waiting], bool]:
        """Wait for requests, and return all that wait."""
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
        """Look for added plans."""
        try:
            if self._collection.refresh():
                _LOGGER.info("the plans changed: %d now", len(self._collection.published))
                self.plan_trouble = None
        except (TurnoutError, OSError) as error:
            if str(error) != self.plan_trouble:
                _LOGGER.error("the plans stay as they are, because of %s", error)
            self.plan_trouble = str(error)

    def _answer(self, work: Sequence[Waiting], results: Sequence[Taken | BaseException]) -> None:
        """Notify waiting requests in their thread."""

        def tell() -> None:
            for each, result in zip(work, results, strict=True):
                each.done(result)

        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            # The loop was closed, and nobody waits any more.
            _LOGGER.debug("nobody waits for %d requests", len(work))

    def _outcomes(
        self, work: Sequence[Waiting], read: Read | None = None
    ) -> list[Taken | BaseException]:
        """Write the messages of requests; if one cannot be read, write the others all the same."""
        try:
            read = self._collection.read(_lines(work)) if read is None else read
            taken: list[Taken | BaseException] = list(self._write(work, read))
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

    def _write(self, requests: Sequence[Waiting], read: Read) -> list[Taken]:
        marks = dict(_marks(requests))
        if len(read):
            with self._store.writing() as writing:
                read.leave_out_repeated(writing)
                if marks:
                    read.leave_out_uninvited(writing, marks)
                tallies = self._count(writing, read)
                if self._store.keep == "messages":
                    lines = _lines(requests)
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
        """Add new reports to the tallies of their groups."""
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
        """Keep tallies in memory for the next reports of their groups."""
        self._tallies.update(tallies)
        most = max((tally._bytes_of_sums(tally.plan) for tally in tallies.values()), default=0)
        if most * len(self._tallies) > _HELD:
            self._tallies.clear()


def _lines(requests: Sequence[Waiting]) -> list[bytes]:
    """List the messages of requests."""
    return [line for each in requests for line in each.lines]


def _marks(requests: Sequence[Waiting]) -> Iterator[tuple[int, bytes]]:
    """Return the places of messages that came with an invitation, and the marks."""
    start = 0
    for each in requests:
        if each.mark is not None:
            yield from dict.fromkeys(range(start, start + len(each.lines)), each.mark).items()
        start += len(each.lines)


def _refused(read: Read) -> Counter[str]:
    numbers = np.bincount(read.outcomes, minlength=_OUTCOMES).tolist()
    return Counter({kind: numbers[number] for number, kind in _KINDS.items() if numbers[number]})


def _taken(outcomes: Array, sizes: Sequence[int]) -> list[Taken]:
    """Count the outcomes of messages for each request; ``sizes`` are their numbers of messages.

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
