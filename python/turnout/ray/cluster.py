"""Work in tasks of a Ray cluster."""

from __future__ import annotations

import contextlib
import functools
import operator
import secrets as randomness
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import turnout
from turnout._extras import require
from turnout.errors import InvalidValueError
from turnout.pipeline.flight import Executor, Part
from turnout.ray.datasets import ReferencedBlock
from turnout.ray.tasks import RETRIES, MergeTree, flight_of, prepare_worker, results

T = TypeVar("T")

#: Seconds after which a file that a worker wrote must be seen by the driver.
_PATIENCE: Final = 60.0


class Cluster(Executor):
    """Tasks of a cluster, as many at a time as are in flight.

    Parameters
    ----------
    ray
        The module, connected.
    workers
        How many tasks are in flight; by default two for each CPU.
    progress
        Whether long work shows a bar.

    Raises
    ------
    InvalidValueError
        If ``workers`` is not from 1 to 100,000.
    """

    here = False
    #: Some four million rows.
    stretch = 4

    def __init__(self, ray: Any, workers: int | None, progress: bool) -> None:
        self._ray = ray
        super().__init__(workers, progress)

    def _checked(self, workers: int | None) -> int:
        return flight_of(self._ray, workers)

    def _remote(self, function: Any, returns: int = 1) -> Any:
        options = {"num_cpus": 1, "max_retries": RETRIES, "num_returns": returns}
        return self._ray.remote(**options)(function)

    def merging(self) -> MergeTree[Any]:
        """Give a tree without leaves."""
        return MergeTree(self._ray, self._remote(merged))

    def results(
        self,
        work: Callable[[Any, T], Any],
        items: Iterable[T],
        secrets: Any = None,
        into: Any = None,
    ) -> Generator[tuple[T, Any], None, None]:
        """Work on each item in a task; what is merged stays on the cluster."""
        # A domain may be large: it is sent once to each worker.
        shared = (turnout.__version__, randomness.token_hex(8), [self._ray.put(work)])
        task = self._remote(_run, 1 if into is None else 2)

        def submit(item: T) -> Any:
            sent, tables = _sent(item)
            if into is None:
                return task.remote(shared, secrets, sent, *tables)
            first, second = task.remote(shared, secrets, sent, *tables)
            into.add(second)
            return first

        with contextlib.closing(results(self._ray, submit, items, self._workers)) as each:
            yield from each

    def spare(self, items: int) -> int:
        """One: a task has a CPU."""
        return 1

    def wait_for(self, path: Path) -> None:
        """Refuse a folder in which the driver does not see what a worker wrote."""
        deadline = time.monotonic() + _PATIENCE
        while not path.exists():
            if time.monotonic() > deadline:
                raise InvalidValueError(
                    "output must be a folder that all machines of the cluster share: "
                    f"{str(path)!r} was written by a worker and is not there"
                )
            time.sleep(0.1)


def _sent(item: Any) -> tuple[Any, list[Any]]:
    """Give an item as it is sent, and the tables near which its task should run."""
    if not isinstance(item, Part) or item.blocks is None:
        return item, []
    blocks = list(item.blocks)
    tables = [
        reference
        for block in blocks
        if isinstance(block, ReferencedBlock)
        for reference in block.references
    ]
    return replace(item, blocks=blocks), tables


# What follows runs in workers. -----------------------------------------------------------------

#: The work that this worker did last, by a name of its own.
_KNOWN: dict[str, Any] = {}


def _run(shared: tuple[str, str, list[Any]], secrets: Any, item: Any, *_tables: Any) -> Any:
    """Work on an item; its tables are arguments so that they are where the task runs."""
    version, name, box = shared
    prepare_worker(version)
    if name not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[name] = require("ray", "ray").get(box[0])
    return _KNOWN[name](secrets, item)


def merged(*tallies: Any) -> Any:
    """Merge tallies of one plan."""
    return functools.reduce(operator.add, tallies)
