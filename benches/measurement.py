"""Time several ways of doing one job, side by side.

The contenders of a job take turns, so that a busy machine is busy for all of them, and each is
judged by its best time. What a call returns is checked once, in the warm-up, and dropped inside
the timed region afterwards: giving memory back is part of the price.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MIN_ROUNDS = 3
MAX_ROUNDS = 200


@dataclass(frozen=True)
class Contender:
    """One way of doing a job.

    Parameters
    ----------
    column
        The column of the table that the figure belongs to.
    variant
        How the job is done, in a few words.
    nodes
        The number of nodes that one call handles.
    call
        The call to time.
    accept
        Whether the result of a call is what the job asks for.
    once
        Whether it is so slow that the first call is the only one, and is timed.
    again
        How many calls are timed together, one right after the other; the time of one is kept.
    """

    column: str
    variant: str
    nodes: int
    call: Callable[[], object]
    accept: Callable[[Any], bool]
    once: bool = False
    again: int = 1


@dataclass(frozen=True)
class Timing:
    """The times of one contender's calls in seconds, or the problem that kept it from running."""

    column: str
    variant: str
    nodes: int
    seconds: tuple[float, ...] = ()
    problem: str | None = None

    @property
    def best(self) -> float:
        """The shortest time of a call, in seconds."""
        return min(self.seconds)

    @property
    def rate(self) -> float:
        """Nodes per second, by the best call."""
        return self.nodes / self.best


def measure(
    contenders: Sequence[Contender],
    seconds: float,
    on_progress: Callable[[float], object],
) -> list[Timing]:
    """Time every contender, best of several calls after a warm-up.

    Parameters
    ----------
    contenders
        The ways of doing the job. One that fails, or whose result is not accepted, is reported
        with its problem; the others go on.
    seconds
        The time to spend on each contender, on average. At least three calls of each are timed,
        unless it is to be called once.
    on_progress
        Called with the share of the work that is done.
    """
    samples: list[list[float]] = []
    problems = []
    for contender in contenders:
        start = time.perf_counter()
        problem = _warm_up(contender)
        elapsed = time.perf_counter() - start
        problems.append(problem)
        samples.append([elapsed] if contender.once and problem is None else [])
    fit = [
        index
        for index, contender in enumerate(contenders)
        if problems[index] is None and not contender.once
    ]
    budget = seconds * len(fit)
    start = time.perf_counter()
    rounds = 0
    while fit and rounds < MAX_ROUNDS:
        elapsed = time.perf_counter() - start
        if rounds >= MIN_ROUNDS and elapsed >= budget:
            break
        on_progress(min(1.0, elapsed / budget) if budget > 0 else 0.0)
        for index in fit:
            samples[index].append(_time(contenders[index].call, contenders[index].again))
        rounds += 1
    on_progress(1.0)
    return [
        Timing(contender.column, contender.variant, contender.nodes, tuple(times), problem)
        for contender, times, problem in zip(contenders, samples, problems, strict=True)
    ]


def _warm_up(contender: Contender) -> str | None:
    """Call once and check the result; return the problem, if there is one."""
    try:
        result = contender.call()
        if not contender.accept(result):
            return "wrong result"
    except Exception as error:  # a package that fails must not end the comparison
        return f"failed: {type(error).__name__}: {error}"
    return None


def _time(call: Callable[[], object], again: int) -> float:
    """Return the seconds of a call, with the garbage collector off as ``timeit`` has it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(again):
            call()
        return (time.perf_counter() - start) / again
    finally:
        if enabled:
            gc.enable()
