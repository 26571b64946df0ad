"""The tables of a page."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from turnout.reporting.contents import Contents
from turnout.reporting.markup import Markup, join, paragraph, table, tag
from turnout.reporting.telling import Row, Told
from turnout.reporting.words import percent

#: So many rows of a table are on the page.
ROWS = 1000

#: Tables of more rows are folded away.
UNFOLDED = 200

#: Answers of a group stand side by side if they are so few.
SIDE_BY_SIDE = 6

#: How people call what tables name otherwise.
_WORDS = {
    "label": "answer",
    "count": "people",
    "frequency": "share",
    "std. error": "standard error",
    "25 %": "lower quartile",
    "75 %": "upper quartile",
}


def told_table(contents: Contents, told: Told) -> Markup:
    """Make a table of the first rows, and say how many there are."""
    if not told.rows:
        return paragraph("There are no groups.")
    labels = _labels(contents, told)
    if labels:
        caption = f"Shares of the answers with {percent(contents.view.level)} intervals"
        rows = list(_side_by_side(told, labels))
        head = (*told.groups, "reports", *labels)
        return _first(contents, caption, head, rows, names=len(told.groups))
    words = {**_WORDS, "count": "times held"} if len(contents.asked) > 1 else _WORDS
    columns = [words.get(name, name) for name in told.head]
    counted = told.rows[0].received is not None
    names = len(told.groups) + told.names
    whole = (
        *told.groups, *columns[: told.names], *(["reports"] if counted else []),
        *columns[told.names :],
    )  # fmt: skip
    rows = [_cells(row, told.names, len(columns)) for row in told.rows]
    every = sum(1 if row.reason else told.entries for row, _ in _groups(told))
    return _first(contents, told.caption, whole, rows, names=names, every=every)


def folded(content: Markup, told: Told) -> Markup:
    """Fold a long table away; a page that is printed leaves out what is folded."""
    unfolded = "open" if len(told.rows) <= UNFOLDED else None
    return tag("details", tag("summary", "The numbers"), content, open=unfolded)


def _first(
    contents: Contents,
    caption: str,
    head: Sequence[object],
    rows: Sequence[Sequence[object]],
    *,
    names: int,
    every: int = 0,
) -> Markup:
    """Make a table of the first rows, and say how many there would be."""
    shown = rows if contents.view.top is None else rows[:ROWS]
    made = table(caption, head, shown, names=names)
    if max(every, len(rows)) <= len(shown):
        return made
    more = (
        f"{len(shown):,} of {max(every, len(rows)):,} rows. All of them: turnout report --top all, "
        "turnout estimate TALLY --output FILE.csv, or estimate().to_pandas()."
    )
    return join([made, paragraph(more, class_="note")])


def _groups(told: Told) -> Iterator[tuple[Row, list[Row]]]:
    """Take the rows of each group, and the first of them."""
    for _, each in itertools.groupby(told.rows, lambda row: row.group):
        rows = list(each)
        yield rows[0], rows


def _cells(row: Row, names: int, columns: int) -> list[object]:
    """Write a row: who, how many reports, and numbers or why there are none."""
    received = [] if row.received is None else [f"{row.received:,}"]
    if row.reason is not None:
        nothing = ["–"] * (columns - names - 1)
        return [*row.group, *["–"] * names, *received, row.reason, *nothing]
    numbers = map(_minus, row.cells[names:])
    return [*row.group, *row.cells[:names], *received, *numbers]


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _labels(contents: Contents, told: Told) -> list[str]:
    """Give the answers that stand side by side: few, all of them, to one question in groups."""
    few = told.entries <= SIDE_BY_SIDE and told.rows[0].received is not None
    if not few or told.head[0] != "label" or (contents.view.top or SIDE_BY_SIDE) < told.entries:
        return []
    return list(map(str, contents.plan.domain.labels))


def _side_by_side(told: Told, labels: Sequence[str]) -> Iterator[list[object]]:
    """Write a row for each group."""
    for first, rows in _groups(told):
        cells: list[object] = [tag("span", first.reason, class_="small")]
        cells += ["–"] * (len(labels) - 1)
        if first.reason is None:
            found = {row.cells[0]: _share(row) for row in rows}
            cells = [found[label] for label in labels]
        yield [*first.group, f"{first.received:,}", *cells]


def _share(row: Row) -> Markup:
    """Write a share with its interval below."""
    _, share, _, limits = map(_minus, row.cells)
    return join([share, tag("span", limits, class_="small")])
