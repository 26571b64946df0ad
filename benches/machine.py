"""What the machine can do at most: bytes moved and words drawn in a second, of the same run.

A job that must move so many bytes and draw so many words cannot take less than the longer of the
two takes alone. That limit stands beside its rate in the tables.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType

import numpy as np

#: Bytes of each of the two arrays that are copied: far more than a cache holds.
COPIED = 1 << 27
#: Words that are drawn at once.
DRAWN = 1 << 24
#: What is measured is the best of so many calls.
CALLS = 7


@dataclass(frozen=True)
class Cost:
    """What a job has to do for each node, or for a call if it is timed.

    Parameters
    ----------
    bytes
        Read and written.
    words
        64-bit words of the generator.
    calls
        Keys from the operating system, for each call.
    alone
        Whether one thread does it.
    """

    bytes: float = 0.0
    words: float = 0.0
    calls: int = 0
    alone: bool = False


@dataclass(frozen=True)
class Machine:
    """Rates of this machine, per second: of all cores, and of one."""

    bandwidth: float
    words: float
    cores: int
    #: Seconds for a key from the operating system.
    key: float

    def seconds(self, cost: Cost) -> float:
        """Return the time that a cost takes at least."""
        share = self.cores if cost.alone else 1
        words, moved = cost.words * share / self.words, cost.bytes * share / self.bandwidth
        return max(words, moved) + cost.calls * self.key

    def note(self) -> str:
        """Return the rates in words."""
        return (
            f"limit: this run measured that {self.cores} cores copy {self.bandwidth / 1e9:.3g} GB "
            f"of memory a second, and draw {self.words / 1e9:.3g} G random words a second. The "
            "limit follows from the slower of the two. A call that takes a key from the operating "
            f"system also waits {self.key * 1e6:.2g} us for it."
        )


def measure(turnout: ModuleType | None) -> Machine | None:
    """Measure the machine; nothing without turnout, whose generator is one of the limits."""
    if turnout is None:
        return None
    core = importlib.import_module(f"{turnout.__name__}._core")
    cores = os.cpu_count() or 1
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    pieces = list(zip(np.array_split(source, cores), np.array_split(target, cores), strict=True))
    with ThreadPoolExecutor(cores) as pool:
        copied = _best(lambda: list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), pieces)))
    drawn = _best(lambda: core.draw_words(DRAWN))
    key = _best(lambda: [os.urandom(32) for _ in range(100)])
    return Machine(2.0 * COPIED / copied, DRAWN / drawn, cores, key / 100)


def _best(call: Callable[[], object]) -> float:
    """Return the shortest time of some calls, in seconds."""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
