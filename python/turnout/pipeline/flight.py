"""Work in threads: in order, with few results waiting."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from turnout import _arguments

T = TypeVar("T")
R = TypeVar("R")

#: Threads beyond which reading and writing are no faster.
_MOST_WORKERS: Final = 16


def in_flight(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Work on items in threads, and give the results in order.

    After an error, or when the caller stops, nothing new is begun and what is begun is awaited.

    Examples
    --------
    >>> list(in_flight(abs, [-1, 2, -3], workers=2))
    [1, 2, 3]
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="turnout") as pool:
        try:
            for item in items:
                if len(waiting) > workers:
                    yield waiting.popleft().result()
                waiting.append(pool.submit(work, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def checked_workers(workers: int | None) -> int:
    """Return the number of threads: by default that of the processors.

    Raises
    ------
    InvalidValueError
        If it is not from 1 to 1024.
    """
    if workers is None:
        available = getattr(os, "sched_getaffinity", None)
        count = len(available(0)) if available is not None else os.cpu_count() or 1
        return min(count, _MOST_WORKERS)
    return _arguments.integer("workers", workers, least=1, most=1024)
