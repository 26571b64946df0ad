"""Execution of work items, in threads of this machine or by another executor."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from turnout import _arguments
from turnout.pipeline.sources.base import Block
from turnout.pipeline.threads import in_flight, processors

T = TypeVar("T")

#: Threads beyond which reading and writing are no faster.
_MOST_WORKERS: Final = 16


@dataclass(frozen=True, eq=False)
class Part:
    """Blocks that are processed together, one after another.

    Attributes
    ----------
    number
        Which part of all.
    blocks
        The blocks in their order; none if their results exist.
    in_hand
        Whether they hold their rows already, so that only the next ones should wait.
    """

    number: int
    blocks: Iterable[Block] | None
    in_hand: bool = False


class Executor:
    """The executor of work: threads of this process; subclasses use other workers.

    Work is a function of two arguments, what must not lie about and an item, and can be pickled.
    It gives one result, or two of which the second is merged with those of all items before.

    Parameters
    ----------
    workers
        How many threads; by default as many as there are processors.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.

    Raises
    ------
    InvalidValueError
        If ``workers`` is not from 1 to 1024.
    """

    #: How many workers there can be.
    most: int = 1024
    #: Blocks that are tallied together.
    stretch: int = 1

    def __init__(self, workers: int | None, progress: bool) -> None:
        self.progress = progress
        if workers is None:
            workers = min(processors(), _MOST_WORKERS)
        self._workers = _arguments.integer("workers", workers, least=1, most=self.most)

    def merging(self) -> AbstractContextManager[Any]:
        """Return an empty sum: ``add`` accepts a value, ``result`` returns the total or None."""
        return nullcontext(_Sum())

    def results(
        self,
        work: Callable[[Any, T], Any],
        items: Iterable[T],
        secrets: Any = None,
        into: Any = None,
    ) -> Generator[tuple[T, Any], None, None]:
        """Process items, a few at a time, and yield each with its result.

        ``into`` is a sum of :meth:`merging`, which takes the second results.
        """

        def done(item: T) -> tuple[T, Any]:
            return item, work(secrets, item)

        for item, result in in_flight(done, items, self._workers):
            if into is None:
                yield item, result
            else:
                first, second = result
                yield item, first
                # Only after the caller has looked at the first result.
                into.add(second)

    def spare(self, items: int) -> int:
        """Return the number of threads for each item: its share of the idle ones."""
        return max(self._workers // max(items, 1), 1)

    def wait_for(self, path: Path) -> None:
        """Wait until a written file is visible here."""


class _Sum:
    """The sum of the values merged so far."""

    def __init__(self) -> None:
        self._total: Any = None

    def add(self, value: Any) -> None:
        self._total = value if self._total is None else self._total.merge(value)

    def result(self) -> Any:
        return self._total
