"""Write the page of benchmarks, and the figures of the README, from what was measured.

Both are made of the JSON that ``compare.py`` writes. The text of the page stands in
``benchmarks.rst``; in it ``{{table direct}}`` stands for a table with its title, ``{{goals
direct}}`` for the goals that it meets and misses, ``{{notes direct}}`` for what is said below it,
``{{machine}}`` and ``{{versions}}`` for where it was measured, ``{{run}}`` for whether that was a
short run, ``{{behind}}`` for the rows in which somebody else is ahead. In the README what is
measured stands between ``<!-- make bench: direct -->`` and ``<!-- end -->``. No number is written
by hand.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from report import duration, markdown, rate

TEMPLATE = Path(__file__).with_name("benchmarks.rst")
ABSENT = "*Not measured in this run.*"
QUICK = (
    "This was a short run (``--quick``): what takes seconds a call was left out, and what is\n"
    "random was repeated less often.\n"
)
NOWHERE = "* In no row."
#: NumPy's program as one writes it first.
PLAIN = {"np.where", "mask, np.where", "int64"}
#: The rows of direct encoding in the README, with the names they have there.
README_ROWS = {
    "randomize, uint8": "randomize, uint8",
    "randomize, int64": "randomize, int64",
    "tally": "tally",
    "collect at 0.1, uint8": "collect, 10 % take part, uint8",
    "collect at 0.1, int64": "collect, 10 % take part, int64",
    "simulate n=1e12, k=1000, at 0.1": "simulate 10^12 nodes, 1000 answers",
}
SCENARIOS = {
    "accuracy, everybody": "everybody",
    "accuracy, some": "some take part",
    "accuracy, by answer": "participation depends on the answer",
}
#: Columns of the last scenario in the README, with the names they have there.
README_LAST = {"bias at the top, points": "its bias at the top", "coverage": "its coverage"}
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
    writers = {"table": rst_table, "goals": goals, "notes": notes}
    whole = {
        "machine": lambda: machine(measured["environment"]),
        "versions": lambda: _filled(versions(measured["environment"]) + "."),
        "run": lambda: QUICK if measured.get("quick") else "",
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


def goals(table: Table) -> str:
    """Return which goals are met and which are missed, and by how much, as a list."""
    told: dict[bool, list[str]] = {True: [], False: []}
    for row in table["rows"]:
        verdict = row["cells"][-1]
        if verdict in {"yes", "no"}:
            told[verdict == "yes"].append(_goal(row))
    lines = [
        _item(f"{'Met' if met else 'Missed'}: {'; '.join(rows)}.")
        for met, rows in told.items()
        if rows
    ]
    plain = [text for text in map(_against_plain, table["rows"]) if text]
    if plain:
        text = f"Against NumPy written with ``where`` and ``bincount``: {'; '.join(plain)}."
        lines.append(_item(text))
    return "\n".join(lines)


def behind(tables: Iterable[Table]) -> str:
    """Return the rows in which turnout is slower than another column, as a list."""
    told = [
        _item(_escaped(f"{row['job']}: {ratio:.3g} times {column} ({table['title']})."))
        for table in tables
        for row in table["rows"]
        for column, ratio in row.get("ratios", {}).items()
        if ratio is not None and ratio < 1.0
    ]
    return "\n".join(told) if told else NOWHERE


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


def _goal(row: dict[str, Any]) -> str:
    """Return one goal with what was reached, in words."""
    target = row.get("target")
    if target is None:
        return f"{row['job']} (flat in n)"
    if target["ratio_to_numpy"] is not None:
        ratio = next(iter(row["ratios"].values()))
        goal = f"goal {target['ratio_to_numpy']:g}"
        return f"{row['job']}, {ratio:.3g} times the fastest plain NumPy ({goal})"
    own = next(one for one in row["timings"] if one["column"] == "turnout")
    goal = f"goal {target['seconds'] * 1e6:g} us"
    return f"{row['job']}, {own['best_seconds'] * 1e6:.3g} us ({goal})"


def _against_plain(row: dict[str, Any]) -> str:
    """Return the ratio to NumPy's first program where it has two, or nothing."""
    own, plain = _best(row, "turnout"), _best(row, "NumPy", PLAIN)
    several = sum(one["column"] == "NumPy" for one in row.get("timings", ())) > 1
    return f"{row['job']} {own / plain:.3g} times" if own and plain and several else ""


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


def readme(measured: dict[str, Any], text: str) -> str:
    """Return the README with its measured parts written again.

    Parameters
    ----------
    measured
        What ``compare.py`` writes as JSON.
    text
        The README as it is.

    Raises
    ------
    ValueError
        If a mark in the README is not known, or was not measured in full in this run.
    """
    tables = {table["name"]: table for table in measured["tables"]}

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in README_PARTS:
            message = f"the README has an unknown mark: {match.group(0).splitlines()[0]}"
            raise ValueError(message)
        needed = SCENARIOS if name == "accuracy" else [name]
        if measured.get("quick") or not tables.keys() >= {*needed}:
            message = f"the README needs a full run of {', '.join(needed)}"
            raise ValueError(message)
        return f"<!-- make bench: {name} -->\n{README_PARTS[name](measured, tables)}<!-- end -->"

    return re.sub(r"<!-- make bench: (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.DOTALL)


def _direct_part(measured: dict[str, Any], tables: dict[str, Table]) -> str:
    """Return where it was measured, direct encoding, and its goals."""
    where = measured["environment"]
    told = _filled(f"One run on {machine(where)}; {versions(where)}.")
    return f"{told}\n\n{_direct(tables['direct'])}\n{goals(tables['direct'])}\n"


def _oracles_part(_: dict[str, Any], tables: dict[str, Table]) -> str:
    """Return the goals of the other oracles."""
    return f"{goals(tables['oracles'])}\n"


def _accuracy_part(_: dict[str, Any], tables: dict[str, Table]) -> str:
    """Return the errors of every program, with its best oracle, in every scenario."""
    return _accuracy({name: tables[name] for name in SCENARIOS})


README_PARTS: dict[str, Callable[[dict[str, Any], dict[str, Table]], str]] = {
    "direct": _direct_part,
    "oracles": _oracles_part,
    "accuracy": _accuracy_part,
}


def _direct(table: Table) -> str:
    """Return direct encoding with NumPy's first program in a column of its own."""
    headings = (
        "job",
        "turnout",
        "NumPy `where`/`bincount`",
        "NumPy, fastest plain",
        "NumPy, tuned by hand",
        "pure-ldp",
        "multi-freq-ldpy",
    )
    rows = []
    for row in table["rows"]:
        if row["job"] in README_ROWS:
            columns = ("turnout", "NumPy", "NumPy", "NumPy, tuned", *headings[5:])
            found = [
                _best(row, name, PLAIN if at == 1 else None) for at, name in enumerate(columns)
            ]
            rows.append((README_ROWS[row["job"]], *(_told(row, one) for one in found)))
    return markdown(headings, rows)


def _told(row: dict[str, Any], found: float | None) -> str:
    """Return a rate, or the time of a call where the job is one call."""
    if found is None:
        return "-"
    if not row["timed"]:
        return rate(found)
    nodes = next(one["nodes"] for one in row["timings"])
    return duration(nodes / found)


def _accuracy(scenarios: dict[str, Table]) -> str:
    """Return the errors of what is in every scenario, of the best oracle of each program."""
    found: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
    for name, table in scenarios.items():
        for row in table["rows"]:
            who = (row["program"], row["oracle"], row["estimator"])
            found.setdefault(who, {})[name] = row
    whole = {who: rows for who, rows in found.items() if len(rows) == len(scenarios)}
    first, last = next(iter(scenarios)), list(scenarios)[-1]
    best: dict[str, tuple[float, str]] = {}
    for (program, oracle, _), rows in whole.items():
        best[program] = min(best.get(program, (math.inf, "")), (rows[first]["rmse"], oracle))
    places = [scenarios[last]["headings"].index(name) for name in README_LAST]
    headings = ("program", "oracle", "estimator", *(SCENARIOS[name] for name in scenarios))
    lines = [
        (
            *who,
            *(
                f"{100 * row['rmse']:.3f} ± {100 * row['rmse_standard_error']:.3f}"
                for row in rows.values()
            ),
            *(rows[last]["cells"][place] for place in places),
        )
        for who, rows in whole.items()
        if best[who[0]][1] == who[1]
    ]
    return markdown((*headings, *README_LAST.values()), lines)


def _escaped(text: str) -> str:
    """Return a text in which nothing is markup; a dash alone would begin a list."""
    if text == "-":
        return r"\-"
    return re.sub(r"([*`|\\])", r"\\\1", text)
