"""The pictures of a report, embedded in the page and as files."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from turnout._drawing import answered
from turnout._extras import require
from turnout._files import atomic_write
from turnout.reporting.collected import OfReports
from turnout.reporting.contents import Contents, Part
from turnout.reporting.documents import Document
from turnout.reporting.telling import View

#: The formats of a set of pictures: for print, for the web, for everything else.
FORMATS = ("pdf", "svg", "png")


def data_uri(contents: Contents, part: Part) -> str:
    """Draw a part, and return the data URI of its image."""
    return image(partial(_drawing, contents, part))


def image(draw: Callable[[], Any]) -> str:
    """Draw a part for a page, and return its data URI; equal numbers give equal images."""
    stream = io.BytesIO()
    with _closed(draw) as figure:
        figure.savefig(stream, format="svg", metadata=_metadata("svg"))
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _drawing(contents: Contents, part: Part) -> Any:
    """Draw a part."""
    if part.grouped:
        return part.kind.draw_groups(part.estimate, contents.view)
    return _of_all(part.kind.draw(part.estimate, contents.view), contents)


def _of_all(figure: Any, contents: Contents) -> Any:
    """Call what was counted at several times questions: nobody knows how many people they are."""
    collected = contents.collected
    if isinstance(collected, OfReports) and len(collected.asked) > 1:
        axes, tally = figure.axes[0], collected.tally
        people = answered(tally.received, tally.nodes)
        questions = people.replace("people answered", "questions were answered")
        axes._left_title.set_text(axes.get_title("left").replace(people, questions))
        axes.set_ylabel(axes.get_ylabel().replace("people", "questions"))
        names = [name.get_text() for name in axes.get_yticklabels()]
        if "all people" in names:
            axes.set_yticks(axes.get_yticks(), ["all questions"])
    return figure


def write_pictures(
    tally: Any,
    folder: str | os.PathLike[str],
    *,
    method: str | None = None,
    level: float = 0.95,
    simultaneous: str | None = None,
    over: str = "all",
    time: str | None = None,
    clip: bool = False,
    given: str | Sequence[str] = (),
    of: str | None = None,
    marginal: str | Sequence[str] = (),
    consistent: bool = False,
) -> list[Path]:
    """Write the pictures of a report as files, each as PDF, SVG and PNG.

    Parameters
    ----------
    tally
        What was collected, as in :func:`report`.
    folder
        The folder to write to; it is created if it does not exist. Files with the same names are
        replaced.
    method, level, simultaneous, over, time, clip, given, of, marginal, consistent
        As in :func:`report`.

    Returns
    -------
    list of pathlib.Path
        The files: ``estimate``; ``conditional`` and ``marginal`` if requested; and, for a grouped
        tally, ``groups`` and ``series``. Each has the endings ``.pdf``, ``.svg`` and ``.png``. For
        several columns of a survey, each name begins with the number of its column, ``1-estimate``.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    TurnoutError
        As for :func:`report`.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import turnout as tn
    >>> tally = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])).simulate([900, 100], seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in write_pictures(tally, folder)]
    ['estimate.pdf', 'estimate.svg', 'estimate.png']
    """
    view = View(
        method,
        level,
        simultaneous,
        over,
        clip=clip,
        consistent=consistent,
        given=given,
        of=of,
        marginal=marginal,
        time=time,
    )
    shown = Document.of(tally, view).contents
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for number, contents in enumerate(shown, 1):
        begin = f"{number}-" if len(shown) > 1 else ""
        for part in filter(attrgetter("drawn"), contents.parts):
            with drawn(contents, part) as figure:
                for kind in FORMATS:
                    path = place / f"{begin}{part.name}.{kind}"
                    with atomic_write(path) as temporary:
                        figure.savefig(temporary, format=kind, dpi=200, metadata=_metadata(kind))
                    written.append(path)
    return written


def _metadata(kind: str) -> dict[str, None]:
    """Omit the time, so that the same numbers give the same file."""
    return {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})


def drawn(contents: Contents, part: Part) -> contextlib.AbstractContextManager[Any]:
    """Draw a part, and discard the picture afterwards."""
    return _closed(partial(_drawing, contents, part))


@contextlib.contextmanager
def _closed(draw: Callable[[], Any]) -> Iterator[Any]:
    """Draw without a window, and discard the picture afterwards."""
    matplotlib = require("matplotlib", "plot")
    pyplot = require("matplotlib.pyplot", "plot")
    # Outlines need no font where the page is read.
    settings = {"svg.hashsalt": "turnout", "svg.fonttype": "path"}
    before = matplotlib.get_backend()
    # Matplotlib before 3.10 closes all figures where the backend changes: not those of others.
    alone = not pyplot.get_fignums()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; the table has it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        if alone:
            pyplot.switch_backend("Agg")
        try:
            figure = draw()
            try:
                yield figure
            finally:
                pyplot.close(figure)
        finally:
            if alone:
                pyplot.switch_backend(before)
