"""How results look on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = [
    "bar",
    "digits_for",
    "file_size",
    "number",
    "percent",
    "print_estimates",
    "printable",
    "properties",
]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LONGEST_LABEL = 28
_SHORTEST_BAR, _LONGEST_BAR = 5, 24

#: Rows that are drawn as a table; more follow as plain lines, which takes a hundredth of the time.
_DRAWN = 1000


def number(value: float) -> str:
    """Write a number with all of its digits and no others.

    Examples
    --------
    >>> number(1.0), number(0.25)
    ('1', '0.25')
    """
    return repr(float(value)).removesuffix(".0")


def percent(share: float, digits: int | None = None) -> str:
    """Write a share as a percentage.

    Examples
    --------
    >>> percent(0.25), percent(0.12345, 2)
    ('25 %', '12.35 %')
    """
    value = 100 * share
    if digits is None:
        return f"{value:.6g} %"
    return f"{round(value, digits) + 0.0:.{digits}f} %"  # adding 0.0 makes -0.0 a plain zero


def file_size(size: int) -> str:
    """Write a number of bytes.

    Examples
    --------
    >>> file_size(999), file_size(12_345)
    ('999 bytes', '12.3 kB')
    """
    if size < 1000:
        return f"{size} bytes"
    amount, units = size / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.95 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def bar(share: float, largest: float, width: int) -> str:
    """Draw a share as a bar of at most ``width`` characters.

    Examples
    --------
    >>> bar(0.5, 1.0, 4), bar(-0.1, 1.0, 4)
    ('██', '')
    """
    eighths = round(8 * width * max(share, 0.0) / largest) if largest > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def properties(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    """Draw a table of names and values under a title."""
    heading = Text(title, style="bold")
    table = Table(title=heading, title_justify="left", title_style="", show_header=False)
    table.box, table.padding = None, (0, 2, 0, 0)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def print_estimates(
    console: Console, records: Sequence[dict[str, Any]], size: int, *, level: float
) -> None:
    """Print estimates, a row a label, with bars where the terminal has room for them.

    Parameters
    ----------
    console
        Where to.
    records
        What is shown.
    size
        How many labels there are; how many are left out is said.
    level
        The confidence level.
    """
    errors = sorted(
        record["standard_error"] for record in records if math.isfinite(record["standard_error"])
    )
    digits = digits_for(errors[len(errors) // 2] if errors else math.nan)
    header = ["label", "count", "frequency", "std. error", f"{percent(level)} interval"]
    rows = [
        [
            printable(str(record["label"])),
            f"{round(record['count']):,}",
            percent(record["frequency"], digits),
            percent(record["standard_error"], digits)
            if math.isfinite(record["standard_error"])
            else "unknown",
            "none"
            if record["low"] is None
            else f"{percent(record['low'], digits)} – {percent(record['high'], digits)}",
        ]
        for record in records
    ]
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    widths[0] = min(widths[0], _LONGEST_LABEL)
    # A column has a space on both sides and one before the next.
    room = console.width - sum(widths) - 3 * len(widths) - 2
    if room >= _SHORTEST_BAR:
        largest = max(record["frequency"] for record in records)
        for row, record in zip(rows, records, strict=True):
            row.append(bar(record["frequency"], largest, min(room, _LONGEST_BAR)))
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    table.add_column(header[0], overflow="fold", max_width=_LONGEST_LABEL, min_width=widths[0])
    for name, width in zip(header[1:], widths[1:], strict=True):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    if room >= _SHORTEST_BAR:
        table.add_column("", no_wrap=True, style="cyan")
    for row in rows[:_DRAWN]:
        table.add_row(*map(Text, row))
    console.print(table)
    for label, *cells in rows[_DRAWN:]:
        numbers = zip(cells, widths[1:], strict=False)
        aligned = [" " * (width - cell_len(cell)) + cell for cell, width in numbers]
        head = label + " " * (widths[0] - cell_len(label))
        console.file.write("   ".join([f" {head}", *aligned, *cells[len(widths) - 1 :]]) + "\n")
    if size > len(records):
        rest = size - len(records)
        words = "1 label" if rest == 1 else f"{rest:,} labels"
        console.print(f"\nand {words} with no larger share; --top all shows all", soft_wrap=True)


def printable(label: str) -> str:
    """Keep a label from a file from steering the terminal."""
    return label if label.isprintable() else repr(label)


def digits_for(standard_error: float) -> int:
    """Decimals of a percentage that show a standard error with two significant digits.

    Examples
    --------
    >>> digits_for(0.02), digits_for(0.0002)
    (1, 3)
    """
    if not (math.isfinite(standard_error) and standard_error > 0):
        return 2
    return min(max(1 - math.floor(math.log10(100 * standard_error)), 1), 6)
