"""The page of a collection's report, and its sections."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnout import _arguments
from turnout._files import atomic_write
from turnout.errors import InvalidValueError
from turnout.reporting.collected import Rows
from turnout.reporting.contents import Contents, Part
from turnout.reporting.documents import Document
from turnout.reporting.drawn_records import page_of_records
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
from turnout.reporting.sheet import sheet
from turnout.reporting.spending import Ledger
from turnout.reporting.telling import PEOPLE, Row, Told, View
from turnout.reporting.words import METHODS, percent
from turnout.samplers import TableQuality

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


def estimates(contents: Contents, number: int = 0) -> Markup:
    """Show all estimates, or state why there is none for all people.

    Those of one of several columns have its heading and ``number``.
    """
    sections = [_section(contents, part, number) for part in contents.parts]
    if contents.reason is not None:
        missing = paragraph(f"There is no estimate: {contents.reason}.")
        title = _titled(contents, "Estimates")
        sections.insert(0, section(title, missing, name=_name("estimate", number)))
    return join(sections)


def _name(name: str, number: int) -> str:
    return f"{name}-{number}" if number else name


def _titled(contents: Contents, title: str) -> str:
    return f"{contents.heading}: {title}" if contents.heading else title


def _section(contents: Contents, part: Part, number: int) -> Markup:
    """Show an estimate: a picture, a table, and their description."""
    told = contents.told(part)
    numbers = _table(contents, told)
    if "series" in part.name:
        # A page that is printed leaves out what is folded.
        unfolded = "open" if len(told.rows) <= _UNFOLDED else None
        numbers = tag("details", tag("summary", "The numbers"), numbers, open=unfolded)
    picture = void("img", src=data_uri(contents, part), alt=part.alt) if part.drawn else ""
    return section(
        _titled(contents, part.title),
        paragraph(told.lead) if told.lead else "",
        tag("figure", picture) if picture else "",
        numbers,
        _scope_note(contents, part) if part.grouped else paragraph(told.words, class_="note"),
        name=_name(part.name, number),
    )


def _table(contents: Contents, told: Told) -> Markup:
    """Return a table of the first rows, and state the total number of rows."""
    if not told.rows:
        return paragraph("There are no groups.")
    once = contents.collected.people == PEOPLE
    words = _WORDS if once else {**_WORDS, "count": "times held"}
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
    """Return a row: its name, the number of reports, and numbers or the reason for none."""
    received = [] if row.received is None else [f"{row.received:,}"]
    if row.reason is not None:
        nothing = ["–"] * (columns - names - 1)
        return [*row.group, *["–"] * names, *received, row.reason, *nothing]
    numbers = (cell.replace("-", "−") for cell in row.cells[names:])
    return [*row.group, *row.cells[:names], *received, *numbers]


def _scope_note(contents: Contents, part: Part) -> Markup:
    kind, view, scope = part.kind, contents.view, "each interval by itself"
    if view.simultaneous is not None:
        scope = f"{kind.together[view.over]} ({METHODS[view.simultaneous]})"
    once = contents.collected.people == PEOPLE
    people = "the people" if once else "the questions to people"
    return paragraph(
        f"{kind.of_a_group} {people} of a group. {percent(view.level)} intervals, for {scope}.",
        class_="note",
    )


def publication(document: Document, question: str | None) -> Markup:
    """Return the sentence to publish: the finding, its intervals and its basis."""
    said = []
    for contents in document.contents:
        found = contents.finding()
        if found:
            head = f"{contents.heading}. " if contents.heading else ""
            said.append(paragraph(f"{head}{found} {contents.collected.basis()}"))
    if not said:
        return Markup("")
    if len(document.contents) > 1:
        said.append(paragraph(document.collected.basis()))
    if question is not None:
        said.insert(0, paragraph(f"“{question}”"))
    quoted = tag("blockquote", *said)
    return section("To publish", quoted, name="publish")


def promise(document: Document) -> Markup:
    """Show the guarantee in plain words."""
    statements = (tag("li", sentence) for sentence in document.collected.statements())
    inside = tag("ul", *statements, class_="statements")
    return section("What protects the people", inside, name="guarantee")


def spending(ledger: Ledger) -> Markup:
    """Show the privacy that a person spends by reporting every time."""
    return section(
        "What a person spends by reporting every time",
        definitions(ledger.rows()),
        tag("ul", *(tag("li", sentence) for sentence in ledger.statements()), class_="statements"),
        name="ledger",
    )


def notes_section(document: Document) -> Markup:
    """Show the additional notes for the reader."""
    if not document.notes:
        return Markup("")
    inside = tag("ul", *(tag("li", note) for note in document.notes), class_="statements")
    return section("What else to know", inside, name="notes")


def _definitions(title: str, rows: Rows, name: str) -> Markup:
    """Show names and values; a plan is shown as a digest."""
    shown = [
        (what, tag("code", value) if "SHA-256" in str(what) else value) for what, value in rows
    ]
    return section(title, definitions(shown), name=name)


def report(
    tally: Any,
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
    notes: Sequence[str] = (),
) -> None:
    """Write the report of a collection as a self-contained HTML page.

    The page contains its style and pictures, loads nothing and runs no program. It prints on A4,
    and the print dialog of a browser can save it as PDF. Equal arguments give the same bytes. The
    file appears whole or not at all.

    Parameters
    ----------
    tally
        What was collected: a tally of shares or means, also a grouped one; the result of
        :func:`turnout.survey` for one or several columns; or the result of a round, as
        :class:`turnout.distributed.RoundResult`, :class:`turnout.distributed.SumResult` or their
        estimate, which a server and a collector also return. Or a
        :class:`turnout.samplers.TableQuality`, which compares drawn records with a real table; then
        only ``title`` and ``notes`` of the other arguments apply.
    path
        The file to write, which ends in ``.html``. Its folder must exist.
    title
        The heading: the question that was asked. The sentence for a publication contains it too.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`; for a survey, the one of its result.
    level, simultaneous, over
        Options of the intervals, as in :meth:`turnout.frequency.groups.GroupedEstimate.interval`.
    time
        The time column of a grouped tally; by default the only one with dates.
    top
        The number of answers in tables, those with the largest shares; None for all answers.
    order
        The order of answers: ``"frequency"``, ``"label"`` or ``"domain"``.
    clip
        Whether intervals of shares are cut to [0, 1].
    given, of
        For questions that were asked together: also show the answers to ``of`` among people with
        each answer to the questions ``given``. You may omit ``of`` if only one question is left.
    marginal
        For several questions: also show the shares for these questions, whatever the other answers
        are.
    consistent
        Whether to make the tables of :class:`turnout.PairTables` consistent.
    notes
        Additional notes for the reader, one sentence each.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or not one of the allowed values.
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
            "write_pictures writes the pictures as PDF"
        )
    if title is not None and not isinstance(title, str):
        raise _arguments.mistyped("title must be text", title)
    view = View(
        method, level, simultaneous, over, order, top, clip, consistent, given, of, marginal, time
    )
    said = _sentences(notes)
    if isinstance(tally, TableQuality):
        if view != View(None, top=20):
            raise InvalidValueError(
                "tally is a TableQuality, whose page takes no arguments except title and notes"
            )
        text = page_of_records(tally, title, said)
    else:
        document = Document.of(tally, view)
        text = page(replace(document, notes=(*document.notes, *said)), title)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _sentences(notes: Sequence[str]) -> list[str]:
    sentences = _arguments.items("notes", notes, "a sentence each")
    for each in sentences:
        if not isinstance(each, str):
            raise _arguments.mistyped("notes must hold text", each)
    return list(sentences)


def page(document: Document, title: str | None) -> str:
    """Assemble the page."""
    collected, several = document.collected, len(document.contents) > 1
    return sheet(
        title or document.title,
        collected.lead(),
        collected.cards(),
        *(
            estimates(contents, place if several else 0)
            for place, contents in enumerate(document.contents, 1)
        ),
        publication(document, title),
        promise(document),
        Markup("") if document.ledger is None else spending(document.ledger),
        notes_section(document),
        _definitions("Who took part", collected.took_part(), "people"),
        _definitions("What it cost", collected.cost(), "cost"),
        _definitions("How it was made", collected.making(), "making"),
    )
