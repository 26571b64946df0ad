"""Progress of work that takes more than two seconds: a bar, or a line every ten seconds."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds before a bar or the first line appears, and between lines.
_PATIENCE, _BETWEEN = 2.0, 10.0

#: What is done, the innermost last.
_doing: list[str] = []

#: Bars that are drawn, which lines would break.
_drawn: list[object] = []

#: When the last line was written.
_written = [-_BETWEEN]


def _write(text: str) -> None:
    """Write a line if there is no bar and the last line is ten seconds old."""
    now = time.monotonic()
    if _drawn or now - _written[0] < _BETWEEN:
        return
    _written[0] = now
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@contextlib.contextmanager
def beating(name: str) -> Iterator[None]:
    """Write a line about the current work every ten seconds, once two seconds have passed.

    Parameters
    ----------
    name
        The name of the work, where no part of it has a name of its own.
    """
    over = threading.Event()
    start = time.monotonic()

    def beat() -> None:
        wait = _PATIENCE
        while not over.wait(wait):
            _write(f"{_doing[-1] if _doing else name}: {time.monotonic() - start:.0f} s")
            wait = min(_BETWEEN, max(0.05, _written[0] + _BETWEEN - time.monotonic()))

    thread = threading.Thread(target=beat, name="turnout-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


@contextlib.contextmanager
def endless() -> Iterator[None]:
    """Write no progress lines during endless work, such as a server."""
    here = object()
    _drawn.append(here)
    try:
        yield
    finally:
        _drawn.remove(here)


@contextlib.contextmanager
def doing(description: str) -> Iterator[None]:
    """Show the current work: beside a spinner on a terminal, otherwise in the lines."""
    _doing.append(description)
    try:
        if not (sys.stderr.isatty() and importlib.util.find_spec("rich") is not None):
            yield
            return
        from rich.console import Console  # noqa: PLC0415 (optional)

        wheel = Console(stderr=True).status(description)
        _drawn.append(wheel)
        try:
            with wheel:
                yield
        finally:
            _drawn.remove(wheel)
    finally:
        _doing.pop()


def track(
    work: Iterable[T], description: str, wanted: bool, total: int | None = None
) -> Iterator[T]:
    """Iterate, with a progress bar on standard error once two seconds have passed.

    Parameters
    ----------
    work
        The items to iterate over; their number is ``len(work)`` unless ``total`` is given.
    description
        The text before the bar.
    wanted
        Whether to show a bar at all. Without ``rich`` (extra ``cli``), or where standard error is
        not a terminal, a line of text is written every ten seconds instead.
    total
        The number of items, where ``work`` has no length.

    Yields
    ------
    object
        The items of ``work``.
    """
    if not wanted:
        yield from work
        return
    if total is None and isinstance(work, Sized):
        total = len(work)
    bar: Any = None
    start = time.monotonic()
    try:
        for done, item in enumerate(work):
            if bar is None and time.monotonic() - start > _PATIENCE:
                bar = bar_of(description, total)
            if bar is not None:
                bar.show(done)
            yield item
        if bar is not None and total is not None:
            bar.show(total)
    finally:
        if bar is not None:
            bar.close()


def bar_of(description: str, total: int | None) -> _Rich | _Lines:
    """Create a bar or lines of text; ``show`` moves it, ``close`` ends it."""
    # In a file of logs a bar would leave nothing behind.
    drawn = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    return (_Rich if drawn else _Lines)(description, total)


class _Rich:
    def __init__(self, description: str, total: int | None) -> None:
        from rich.console import Console  # noqa: PLC0415 (optional)
        from rich.progress import MofNCompleteColumn, Progress  # noqa: PLC0415 (optional)

        self._progress = Progress(
            *Progress.get_default_columns(),
            MofNCompleteColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(description, total=total)
        self._progress.start()
        _drawn.append(self)

    def show(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        self._progress.stop()
        _drawn.remove(self)


class _Lines:
    """Lines of text, one every ten seconds."""

    def __init__(self, description: str, total: int | None) -> None:
        self._description = description
        self._of = "" if total is None else f" of {total}"
        _doing.append(description)

    def show(self, done: int) -> None:
        _doing[-1] = f"{self._description}: {done}{self._of}"
        _write(_doing[-1])

    def close(self) -> None:
        _doing.pop()
