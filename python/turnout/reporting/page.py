"""The report of a collection as one page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from turnout import _arguments
from turnout._atomic import atomic_write
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError
from turnout.reporting import sections
from turnout.reporting.contents import Contents
from turnout.reporting.facts import CollectionFacts
from turnout.reporting.figures import pictures
from turnout.reporting.markup import Markup, join, tag, void


def report(
    tally: BaseTally | GroupedTally[Any],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    method: str | None = None,
    level: float = 0.95,
    simultaneous: str | None = None,
    over: str = "all",
    time: str | None = None,
    top: int | None = 20,
    order: str = "frequency",
    facts: CollectionFacts | Mapping[str, Any] | None = None,
    clip: bool = False,
) -> None:
    """Write the report of a collection as a self-contained HTML page.

    The page has its style and pictures inside, loads nothing and runs no program; it prints on A4,
    and the print dialog of a browser makes a PDF of it. Equal arguments give the same bytes. The
    file appears whole or not at all.

    Parameters
    ----------
    tally
        What was collected: a tally of shares or means, or a grouped one.
    path
        Where to write: a file that ends in ``.html``. Its folder must exist.
    title
        The heading: the question that was asked.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    level, simultaneous, over
        Of the intervals, as in :meth:`turnout.frequency.groups.GroupedEstimate.interval`.
    time
        The column of a grouped tally that is the time; by default the only one with dates.
    top
        How many answers are in tables, those with the largest shares; None for all of them.
    order
        In which order: ``"frequency"``, ``"label"`` or ``"domain"``.
    facts
        How many rows were read and left out: :class:`CollectionFacts`, or the summary of a job.
    clip
        Whether intervals of shares are cut to [0, 1].

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or none of the allowed values.
    EstimatorError
        If the method does not apply to the participation.
    MissingExtraError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> tally = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])).simulate([900, 100], seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "smoking.html")
    ...     report(tally, file, title="Do you smoke?")
    ...     "<h1>Do you smoke?</h1>" in file.read_text(encoding="utf-8")
    True
    """
    name = os.fspath(path)
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InvalidValueError(
            f"path must end in .html, got {name!r}; a browser prints the page to PDF, and "
            "save_pictures writes the pictures as PDF"
        )
    if title is not None and not isinstance(title, str):
        raise _arguments.mistyped("title must be text", title)
    if facts is not None and not isinstance(facts, CollectionFacts):
        facts = CollectionFacts.from_dict(facts)
    contents = Contents.of(
        tally,
        method=method,
        level=level,
        simultaneous=simultaneous,
        over=over,
        time=time,
        top=top,
        order=order,
        clip=clip,
    )
    text = page(contents, title or "Report of a collection", facts)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def page(contents: Contents, title: str, facts: CollectionFacts | None) -> str:
    """Put the page together."""
    drawn = pictures(contents)
    # What a browser may load: nothing but what is inside.
    style = files("turnout.reporting").joinpath("style.css").read_text("utf-8")
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    head = join(
        [
            void("meta", charset="utf-8"),
            void("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            void("meta", http_equiv="Content-Security-Policy", content=policy),
            tag("title", title),
            tag("style", Markup(style)),
        ],
        "\n",
    )
    main = tag(
        "main",
        sections.results(contents, drawn),
        sections.groups(contents, drawn),
        sections.promise(contents),
        sections.facts_section(contents, facts),
        sections.cost(contents),
        sections.making(contents),
    )
    foot = tag("footer", "Made by turnout: private statistics when only some people take part.")
    body = tag("body", sections.header(contents, title), main, foot)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n{body}\n</html>\n'
