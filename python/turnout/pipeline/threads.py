"""Threads that process one item after another."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def processors() -> int:
    """Return the number of processors that this process may use."""
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def in_flight(work: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Process items in threads, and yield the results in order, with few of them waiting.

    An item that is ``in_hand`` is worked on here and at once. After an error, or when the caller
    stops, nothing new is begun and what is begun is awaited.

    Examples
    --------
    >>> list(in_flight(abs, [-1, 2, -3], workers=2))
    [1, 2, 3]
    """
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="turnout") as pool:
        try:
            for item in items:
                at_once = getattr(item, "in_hand", False)
                while len(waiting) > (0 if at_once else workers):
                    yield waiting.popleft().result()
                if at_once:
                    yield work(item)
                else:
                    waiting.append(pool.submit(work, item))
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
