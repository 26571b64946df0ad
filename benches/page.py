"""Write the page of benchmarks from what was measured.

The numbers come from the JSON that ``compare.py`` writes, and the text from ``benchmarks.rst``.
Marks in the text say where the numbers go: ``{{table direct}}`` is a table with its title,
``{{notes direct}}`` the notes below it, and ``{{plain direct}}`` the comparison with NumPy's first
program. ``{{machine}}`` and ``{{versions}}`` say where it was measured, and ``{{run}}`` whether the
run was short. ``{{missed}}`` lists the targets that were missed, and ``{{behind}}`` the rows in
which another program is ahead. No number is written by hand.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TEMPLATE = Path(__file__).with_name("benchmarks.rst")
ABSENT = "*Not measured in this run.*"
QUICK = (
    "This was a short run (``--quick``): what takes seconds a call was left out, and what is\n"
    "random was repeated less often.\n"
)
NONE = "* None."
#: NumPy's program as one writes it first.
PLAIN = {"np.where", "mask, np.where", "int64"}
#: What the environment says of the machine, and not of a package.
MACHINE = ("system", "CPUs", "Python")

Table = dict[str, Any]


def page(measured: dict[str, Any], template: str | None = None) -> str:
    """Return the page in reStructuredText.

    Parameters
    ----------
    measured
        What ``compare.py`` writes as JSON.
    template
        The page with marks for tables, by default ``benchmarks.rst``.

    Raises
    ------
    ValueError
        If a mark in the template is not known.
    """
    tables = {table["name"]: table for table in measured["tables"]}
    writers = {"table": rst_table, "notes": notes, "plain": against_plain}
    whole = {
        "machine": lambda: machine(measured["environment"]),
        "versions": lambda: _filled(versions(measured["environment"]) + "."),
        "run": lambda: QUICK if measured.get("quick") else "",
        "missed": lambda: missed(measured["tables"]),
        "behind": lambda: behind(measured["tables"]),
    }

    def fill(match: re.Match[str]) -> str:
        word, _, name = match.group(1).partition(" ")
        if match.group(1) in whole:
            return whole[match.group(1)]()
        if word not in writers:
            message = f"the template has an unknown mark: {match.group(0)}"
            raise ValueError(message)
        if name not in tables:
            return ABSENT if word == "table" else ""
        if word == "table" and not tables[name]["rows"]:
            return ABSENT
        text = writers[word](tables[name])
        return f"{_filled(tables[name]['title'] + ':')}\n\n{text}" if word == "table" else text

    text = TEMPLATE.read_text(encoding="utf-8") if template is None else template
    return re.sub(r"\{\{([^}]*)\}\}", fill, text)


def machine(environment: dict[str, str]) -> str:
    """Return the machine in a few words."""
    return f"{environment['CPUs']} cores, {environment['system']}, Python {environment['Python']}"


def versions(environment: dict[str, str]) -> str:
    """Return the packages with their versions; those not installed are said to be left out."""
    packages = {name: one for name, one in environment.items() if name not in MACHINE}
    found = [f"{name} {one}" for name, one in packages.items() if one != "not installed"]
    absent = [name for name, one in packages.items() if one == "not installed"]
    text = ", ".join(found)
    return f"{text}; not installed, and so not measured: {', '.join(absent)}" if absent else text


def rst_table(table: Table) -> str:
    """Return the rows of a table as a simple table of reStructuredText."""
    rows = [tuple(table["headings"]), *(tuple(row["cells"]) for row in table["rows"])]
    rows = [tuple(_escaped(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([rule, line(rows[0]), rule, *map(line, rows[1:]), rule])


def notes(table: Table) -> str:
    """Return what is said below a table, as a list."""
    return "\n".join(_item(_escaped(note)) for note in table["notes"])


def against_plain(table: Table) -> str:
    """Return the ratios to NumPy's first program, as a note."""
    plain = [text for text in map(_against_plain, table["rows"]) if text]
    if not plain:
        return ""
    return _item(f"Against NumPy written with ``where`` and ``bincount``: {'; '.join(plain)}.")


def missed(tables: Iterable[Table]) -> str:
    """Return the targets that were missed, and what was reached, as a list."""
    told = []
    for table in tables:
        if table["headings"][-1] != "met?":
            continue
        ratio = next(at for at, name in enumerate(table["headings"]) if name.startswith("ratio"))
        for row in table["rows"]:
            job, own, *_, target, verdict = cells = row["cells"]
            if verdict == "no":
                others = row.get("target", {}).get("ratios", {})
                reached = [own, cells[ratio], *(_reached(row, name) for name in others)]
                title = table["title"].split(":")[0]
                text = f"{job}: {', '.join(reached)}, target {target} ({title})."
                told.append(_item(_escaped(text)))
    return "\n".join(told) if told else NONE


def _reached(row: dict[str, Any], name: str) -> str:
    """Return the ratio to one more column of a target."""
    ratio = row["ratios"][name]
    return "-" if ratio is None else f"{ratio:.3g}x {name.rsplit(maxsplit=1)[-1]}"


def behind(tables: Iterable[Table]) -> str:
    """Return the rows in which turnout is slower than another column, as a list."""
    told = [
        _item(_escaped(f"{row['job']}: {ratio:.3g} times {column} ({table['title']})."))
        for table in tables
        for row in table["rows"]
        for column, ratio in row.get("ratios", {}).items()
        if ratio is not None and ratio < 1.0
    ]
    return "\n".join(told) if told else NONE


def _item(text: str) -> str:
    """Return one item of a list."""
    return _filled(text, "* ")


def _filled(text: str, first: str = "") -> str:
    """Return a text in lines that fit."""
    return textwrap.fill(
        text,
        118,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _against_plain(row: dict[str, Any]) -> str:
    """Return the ratio to NumPy's first program where it has two, or nothing."""
    own, plain = _best(row, "turnout"), _best(row, "NumPy", PLAIN)
    several = sum(one["column"] == "NumPy" for one in row.get("timings", ())) > 1
    return f"{row['job']}: {own / plain:.3g} times" if own and plain and several else ""


def _best(row: dict[str, Any], column: str, variants: Iterable[str] | None = None) -> float | None:
    """Return the highest rate of a column, of some variants if they are named."""
    rates = [
        one["nodes_per_second"]
        for one in row.get("timings", ())
        if one["column"] == column
        and one["nodes_per_second"] is not None
        and (variants is None or one["variant"] in variants)
    ]
    return max(rates, default=None)


def _escaped(text: str) -> str:
    """Return a text in which nothing is markup; a dash alone would begin a list."""
    if text == "-":
        return r"\-"
    return re.sub(r"([*`|\\])", r"\\\1", text)
