"""The report of a collection as one page, and its sections."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._files import atomic_write
from turnout._version import __version__
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import shown_part
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.reporting.contents import Contents, Part
from turnout.reporting.figures import data_uri
from turnout.reporting.markup import (
    Markup,
    definitions,
    join,
    paragraph,
    section,
    table,
    tag,
    void,
)
from turnout.reporting.telling import Row, Told, View, telling
from turnout.reporting.words import (
    METHODS,
    epsilon_together,
    file_size,
    guarantee,
    number,
    participation,
    percent,
    rounded_up,
)

#: So many rows of a table are on the page; tables of more than so many are folded away.
_ROWS, _UNFOLDED = 1000, 200

#: How people call what tables name otherwise.
_WORDS = {
    "label": "answer",
    "count": "people",
    "frequency": "share",
    "std. error": "standard error",
    "25 %": "lower quartile",
    "75 %": "upper quartile",
}


def header(contents: Contents, title: str) -> Markup:
    """Say what was collected."""
    tally, plan = contents.tally, contents.plan
    ratio = tally.received / tally.nodes if tally.nodes else 0.0
    epsilon = f"ε = {rounded_up(plan.oracle.epsilon, 4)}"
    name, value = telling(plan).asked(plan.domain)
    # What is shorter stands large.
    asked = sorted((name, value), key=len)
    if name == "domain":
        asked = [f"{plan.domain.size:,}", "possible answers"]
    elif name == "questions":
        questions = list(plan.domain.columns)
        asked = [f"{len(questions):,}", f"questions: {', '.join(questions)}"]
    cards = [
        (f"{tally.nodes:,}", "people (nodes)"),
        (f"{tally.received:,}", f"reports, {percent(ratio, 1)} of the people"),
        asked,
        (epsilon, "privacy of one report"),
    ]
    times = len(contents.asked)
    if times > 1:
        together = f"ε = {rounded_up(epsilon_together(plan, times), 4)}"
        cards = [
            (f"{max(contents.asked):,}", f"people at most at one of the {times:,} times"),
            (f"{tally.nodes:,}", "questions to people, at all times together"),
            (f"{tally.received:,}", f"reports, for {percent(ratio, 1)} of the questions"),
            asked,
            (together, f"privacy of who reports at all times; {epsilon} of one report"),
        ]
    series = contents.series
    lead = f"A collection with local differential privacy: {participation(plan)}."
    if contents.left_out:
        lead = f"{lead} Left out, and in no number below: {contents.left_out}."
    if series is not None and series.times:
        first, last = shown_part(series.times[0]), shown_part(series.times[-1])
        span = first if first == last else f"{first} to {last}"
        lead = f"{lead} {series.time.capitalize()}: {span}."
    items = (tag("li", tag("strong", value), tag("span", words)) for value, words in cards)
    return tag(
        "header",
        tag("h1", title),
        paragraph(lead, class_="lead"),
        tag("ul", *items, class_="figures"),
    )


def estimates(contents: Contents) -> Markup:
    """Show all estimates, or say why there is none of all people."""
    sections = [_section(contents, part) for part in contents.parts]
    if contents.reason is not None:
        missing = paragraph(f"There is no estimate: {contents.reason}.")
        sections.insert(0, section("Estimates", missing, name="estimate"))
    return join(sections)


def _section(contents: Contents, part: Part) -> Markup:
    """Show an estimate: a picture, a table, and what is said of both."""
    told = contents.told(part)
    numbers = _table(contents, told)
    if "series" in part.name:
        # A page that is printed leaves out what is folded.
        unfolded = "open" if len(told.rows) <= _UNFOLDED else None
        numbers = tag("details", tag("summary", "The numbers"), numbers, open=unfolded)
    picture = void("img", src=data_uri(contents, part), alt=part.alt) if part.drawn else ""
    return section(
        part.title,
        paragraph(told.lead) if told.lead else "",
        tag("figure", picture) if picture else "",
        numbers,
        _scope_note(contents) if part.grouped else paragraph(told.words, class_="note"),
        name=part.name,
    )


def _table(contents: Contents, told: Told) -> Markup:
    """Make a table of the first rows, and say how many there would be."""
    if not told.rows:
        return paragraph("There are no groups.")
    words = {**_WORDS, "count": "times held"} if len(contents.asked) > 1 else _WORDS
    columns = [words.get(name, name) for name in told.head]
    if told.rows[0].received is not None:
        columns.insert(told.names, "reports")
    rows = [_cells(row, told.names, len(told.head)) for row in told.rows]
    shown = rows if contents.view.top is None else rows[:_ROWS]
    head = (*told.groups, *columns)
    made = table(told.caption, head, shown, names=len(told.groups) + told.names)
    groups = [next(each) for _, each in itertools.groupby(told.rows, lambda row: row.group)]
    every = max(sum(1 if row.reason else told.entries for row in groups), len(rows))
    if every <= len(shown):
        return made
    more = (
        f"{len(shown):,} of {every:,} rows. All of them: turnout report --top all, "
        "turnout estimate TALLY --output FILE.csv, or estimate().to_pandas()."
    )
    return join([made, paragraph(more, class_="note")])


def _cells(row: Row, names: int, columns: int) -> list[object]:
    """Write a row: who, how many reports, and numbers or why there are none."""
    received = [] if row.received is None else [f"{row.received:,}"]
    if row.reason is not None:
        nothing = ["–"] * (columns - names - 1)
        return [*row.group, *["–"] * names, *received, row.reason, *nothing]
    numbers = (cell.replace("-", "−") for cell in row.cells[names:])
    return [*row.group, *row.cells[:names], *received, *numbers]


def _scope_note(contents: Contents) -> Markup:
    kind, view, scope = telling(contents.plan), contents.view, "each interval by itself"
    if view.simultaneous is not None:
        scope = f"{kind.together[view.over]} ({METHODS[view.simultaneous]})"
    return paragraph(
        f"{kind.of_a_group} {_people(contents)} of a group. {percent(view.level)} intervals, for "
        f"{scope}.",
        class_="note",
    )


def _people(contents: Contents) -> str:
    return "the people" if len(contents.asked) == 1 else "the questions to people"


def promise(contents: Contents) -> Markup:
    """Show the guarantee in plain words."""
    names = contents.grouped.names if contents.grouped is not None else ()
    words = guarantee(contents.plan, names, len(contents.asked))
    statements = (tag("li", sentence) for sentence in words)
    inside = tag("ul", *statements, class_="statements")
    return section("What protects the people", inside, name="guarantee")


def facts_section(contents: Contents) -> Markup:
    """Show who took part, and who was left out."""
    tally, asked, left_out = contents.tally, contents.asked, contents.left_out
    counted = "people who count" if len(asked) == 1 else "questions to people, at all times"
    rows: list[tuple[object, object]] = [
        (f"{counted} (nodes)", f"{tally.nodes:,}"),
        ("left out, and in no other number", str(left_out)),
    ]
    if len(asked) > 1:
        rows.append(("times", f"{len(asked):,}"))
        rows.append(("people at one time, at most", f"{max(asked):,}"))
    rows += [
        ("participation", participation(contents.plan)),
        ("reports received", f"{tally.received:,}"),
        (
            "people who did not report" if len(asked) == 1 else "questions without a report",
            f"{tally.nodes - tally.received:,}",
        ),
    ]
    if contents.grouped is not None:
        empty = sum(1 for group in contents.grouped.values() if not group.received)
        columns = ", ".join(contents.grouped.names)
        rows.append((f"groups by {columns}", f"{len(contents.grouped):,}"))
        if empty:
            rows.append(("groups without a report", f"{empty:,}"))
    return section("Who took part", definitions(rows), name="people")


def cost(contents: Contents) -> Markup:
    """Show what the reports cost."""
    oracle, tally = contents.plan.oracle, contents.tally
    bits = oracle.report_bits
    rows = [
        ("reports paid for", f"{tally.received:,}"),
        ("size of a report", f"{bits:,} bits"),
        ("size of all reports", file_size(tally.received * bits / 8)),
    ]
    return section("What it cost", definitions(rows), name="cost")


def making(contents: Contents) -> Markup:
    """Show how the numbers were made, for those who check them."""
    plan = contents.plan
    rows: list[tuple[object, object]] = [
        ("oracle", plan.oracle.name.replace("_", " ")),
        (
            "epsilon",
            f"{number(plan.oracle.epsilon)} asked, {number(plan.oracle.realized_epsilon)} realised",
        ),
        *telling(plan).making(plan),
        ("estimator", str(contents.view.method).replace("_", " ")),
    ]
    # Labels that no file can hold, such as dates, have no fingerprint.
    with contextlib.suppress(InvalidTypeError):
        rows.append(("plan (SHA-256)", tag("code", plan.fingerprint)))
    versions = f"turnout {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    rows.append(("versions", versions))
    return section("How it was made", definitions(rows), name="making")


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
    clip: bool = False,
    given: str | Sequence[str] = (),
    of: str | None = None,
    marginal: str | Sequence[str] = (),
    consistent: bool = False,
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
    clip
        Whether intervals of shares are cut to [0, 1].
    given, of
        Of questions that were asked together: also show how those who gave each answer to the
        questions ``given`` answered ``of``, which need not be said if one question is left.
    marginal
        Of several questions: also show the shares of these, whatever is answered to the others.
    consistent
        Whether the tables of :class:`turnout.PairTables` are made to agree.

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
    view = View(
        method, level, simultaneous, over, order, top, clip, consistent, given, of, marginal, time
    )
    contents = Contents.of(tally, view)
    text = page(contents, title or "Report of a collection")
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def page(contents: Contents, title: str) -> str:
    """Put the page together."""
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
        estimates(contents),
        promise(contents),
        facts_section(contents),
        cost(contents),
        making(contents),
    )
    foot = tag("footer", "Made by turnout: private statistics when only some people take part.")
    body = tag("body", header(contents, title), main, foot)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n{body}\n</html>\n'
