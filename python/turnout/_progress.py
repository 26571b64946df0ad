"""A progress bar on work that takes more than two seconds."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

__all__ = ["track"]

T = TypeVar("T")

#: Seconds before a bar appears.
_PATIENCE = 2.0


def track(work: Iterable[T], description: str, wanted: bool) -> Iterator[T]:
    """Iterate, with a progress bar on standard error once two seconds have passed.

    Parameters
    ----------
    work
        What is iterated over; its length is asked for.
    description
        What stands before the bar.
    wanted
        Whether a bar is shown at all. Without ``rich`` (extra ``cli``), or where standard error is
        no terminal, lines of text are.

    Yields
    ------
    object
        The items of ``work``.
    """
    if not wanted:
        yield from work
        return
    total = len(work) if isinstance(work, Sized) else None
    bar: Any = None
    start = time.monotonic()
    try:
        for done, item in enumerate(work):
            if bar is None and time.monotonic() - start > _PATIENCE:
                bar = _bar(description, total)
            if bar is not None:
                bar.show(done)
            yield item
        if bar is not None and total is not None:
            bar.show(total)
    finally:
        if bar is not None:
            bar.close()


def _bar(description: str, total: int | None) -> _Rich | _Lines:
    # In a file of logs a bar would leave nothing behind.
    drawn = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    return (_Rich if drawn else _Lines)(description, total)


class _Rich:
    def __init__(self, description: str, total: int | None) -> None:
        from rich.console import Console  # noqa: PLC0415 (optional)
        from rich.progress import (  # noqa: PLC0415 (optional)
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(description, total=total)
        self._progress.start()

    def show(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        self._progress.stop()


class _Lines:
    """A line of text for every tenth of the work."""

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._total = total
        self._tenth = -1

    def show(self, done: int) -> None:
        if self._total:
            tenth = 10 * done // self._total
            if tenth > self._tenth:
                self._tenth = tenth
                sys.stderr.write(f"{self._description}: {done} of {self._total}\n")
                sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.flush()
