"""Turn measurements into the rows of tables: for a terminal, as Markdown, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

import memory
from jobs import LAYOUT, Job, Layout
from machine import Machine
from measurement import Timing

#: The columns that hold words.
TEXTS = frozenset(
    {
        *("job", "target", "met?", "program", "oracle", "estimator", "mechanism", "trusted"),
        *("population", "best of the peers", "against turnout, shrunk"),
        *("table", "sampler"),
        *("verdict", "against turnout", "what it is given", "call", "finding", "what is counted"),
    }
)


@dataclass(frozen=True)
class Row:
    """One row of the table, as text, and what it was made from."""

    cells: tuple[str, ...]
    note: str
    raw: dict[str, Any]


@dataclass(frozen=True)
class Figures:
    """A table whose rows are programs: what it is called, its columns, rows, and notes."""

    name: str
    title: str
    headings: tuple[str, ...]
    rows: list[Row]
    notes: list[str]


def throughput_row(
    layout: Layout,
    job: Job,
    timings: list[Timing],
    missing: Mapping[str, str],
    machine: Machine | None = None,
) -> Row:
    """Return the row of a job: in every column the best contender, then ratios and target.

    Parameters
    ----------
    layout
        The columns of the table.
    job
        The job that was measured.
    timings
        What was measured, one entry for each contender of the job.
    missing
        Columns whose package could not be loaded, with the reason: its first words, up to a
        colon, are shown.
    machine
        What the machine can do at most, if that was measured.
    """
    best: dict[str, Timing] = {}
    for timing in timings:
        if timing.problem is None:
            known = best.get(timing.column)
            best[timing.column] = timing if known is None or timing.rate > known.rate else known
    problems = {timing.column: timing.problem for timing in timings if timing.problem}

    def cell(column: str) -> str:
        if column in best:
            timing = best[column]
            return duration(timing.best) if job.timed else rate(timing.rate)
        if column in job.nobody:
            return "none"
        if column in missing:
            return missing[column].split(":")[0]
        return problems[column].split(":")[0] if column in problems else "-"

    ratios = {column: _ratio(best.get("turnout"), best.get(column)) for column in layout.ratios}
    cells = (
        job.name,
        *(cell(column) for column in layout.columns),
        *("-" if ratio is None else f"{_digits(ratio)}x" for ratio in ratios.values()),
        *(_limit(job, best.get("turnout"), machine) if layout.limited else ()),
        str(job.target),
        _verdict(job, best.get("turnout"), ratios),
    )
    return Row(cells, _note(job, timings), _raw(job, timings, ratios))


def _limit(job: Job, own: Timing | None, machine: Machine | None) -> tuple[str, ...]:
    """Return the limit of a job, and the share of it that is reached."""
    if machine is None or job.cost is None:
        return "-", "-"
    least = machine.seconds(job.cost)
    shown = duration(least) if job.timed else rate(1.0 / least)
    if own is None:
        return shown, "-"
    reached = least / own.best if job.timed else least * own.rate
    return shown, f"{100 * reached:.0f} %"


def memory_row(nodes: int, growths: dict[str, int], verdict: str, problems: dict[str, str]) -> Row:
    """Return the row of a peak-memory measurement: growth beyond the input by column."""
    name = f"collect, peak memory, n={magnitude(nodes)}, uint8"
    cells = (
        name,
        *(size(growths[column]) if column in growths else "-" for column in LAYOUT.columns),
        *("-" for _ in LAYOUT.ratios),
        *("-", "-"),
        "flat in n",
        verdict,
    )
    note = "; ".join(f"{column}: failed: {problem}" for column, problem in problems.items())
    raw = {"job": name, "nodes": nodes, "growth_bytes": growths, "problems": problems}
    return Row(cells, note and f"{name}: {note}", raw)


def memory_verdict(growths: list[int | None]) -> str:
    """Return whether turnout's growths are flat, or a dash if one was not measured."""
    measured = [growth for growth in growths if growth is not None]
    if not measured or len(measured) < len(growths):
        return "-"
    return "yes" if memory.is_flat(measured) else "no"


def table(figures: Figures) -> Table:
    """Return the rows as a rich table."""
    result = Table(title=figures.title, title_justify="left")
    for index, heading in enumerate(figures.headings):
        is_text = index == 0 or heading in TEXTS
        result.add_column(heading, justify="left" if is_text else "right", no_wrap=index == 0)
    colours = {"yes": "[green]yes[/]", "no": "[red]no[/]"}
    for row in figures.rows:
        result.add_row(*row.cells[:-1], colours.get(row.cells[-1], row.cells[-1]))
    return result


def rate(per_second: float) -> str:
    """Return a rate with three significant digits, such as ``"412 M/s"``."""
    for unit, value in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if per_second >= value:
            return f"{_digits(per_second / value)} {unit}/s"
    return f"{_digits(per_second)} /s"


def duration(seconds: float) -> str:
    """Return a duration with three significant digits, such as ``"0.312 ms"``."""
    if seconds < 1e-5:
        return f"{_digits(seconds * 1e6)} us"
    return f"{_digits(seconds)} s" if seconds >= 1.0 else f"{_digits(seconds * 1e3)} ms"


def size(count: int) -> str:
    """Return a number of bytes in mebibytes, such as ``"0.4 MiB"``."""
    return f"{count / (1 << 20):.1f} MiB"


def magnitude(count: int) -> str:
    """Return a power of ten as ``"1e7"`` and any other count with thousands separators."""
    text = f"{count:.0e}".replace("e+0", "e").replace("e+", "e")
    return text if float(text) == count else f"{count:,}"


def _digits(value: float) -> str:
    if value >= 100.0:
        return f"{value:.0f}"
    if value >= 10.0:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1.0 else f"{value:.3f}"


def _ratio(own: Timing | None, other: Timing | None) -> float | None:
    return None if own is None or other is None else own.rate / other.rate


def _verdict(job: Job, own: Timing | None, ratios: Mapping[str, float | None]) -> str:
    met = None if own is None else job.target.is_met(own.best, ratios)
    return "-" if met is None else "yes" if met else "no"


def _note(job: Job, timings: list[Timing]) -> str:
    """Return every NumPy program's figure, and every problem in full."""
    parts = []
    for timing in timings:
        if timing.problem is not None:
            parts.append(f"{timing.column} ({timing.variant}): {timing.problem}")
        elif timing.column.startswith("NumPy"):
            figure = duration(timing.best) if job.timed else rate(timing.rate)
            parts.append(f"{timing.column} ({timing.variant}) {figure}")
    return f"{job.name}: " + "; ".join(parts) if parts else ""


def _raw(job: Job, timings: list[Timing], ratios: Mapping[str, float | None]) -> dict[str, Any]:
    return {
        "job": job.name,
        "timed": job.timed,
        "target": {
            "ratio_to_numpy": job.target.ratio,
            "ratios": dict(job.target.others),
            "seconds": job.target.seconds,
        },
        "ratios": dict(ratios),
        "timings": [
            {
                "column": timing.column,
                "variant": timing.variant,
                "nodes": timing.nodes,
                "problem": timing.problem,
                "best_seconds": timing.best if timing.seconds else None,
                "nodes_per_second": timing.rate if timing.seconds else None,
                "seconds": list(timing.seconds),
            }
            for timing in timings
        ],
    }
