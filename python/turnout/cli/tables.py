"""How results look on a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

__all__ = ["bar", "digits_for", "estimates_table", "file_size", "number", "percent", "properties"]

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LONGEST_LABEL = 28
_SHORTEST_BAR, _LONGEST_BAR = 5, 24


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


def estimates_table(records: Sequence[dict[str, Any]], *, level: float, width: int) -> Table:
    """Draw a table of estimates, a row a label, with bars where the terminal has room for them."""
    errors = sorted(record["standard_error"] for record in records)
    digits = digits_for(errors[len(errors) // 2])
    header = ["label", "count", "frequency", "std. error", f"{percent(level)} interval"]
    rows = [
        [
            _printable(str(record["label"])),
            f"{round(record['count']):,}",
            percent(record["frequency"], digits),
            percent(record["standard_error"], digits),
            "none"
            if record["low"] is None
            else f"{percent(record['low'], digits)} – {percent(record['high'], digits)}",
        ]
        for record in records
    ]
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    table.add_column(header[0], overflow="fold", max_width=_LONGEST_LABEL)
    for name in header[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    widths = [max(map(cell_len, column)) + 2 for column in zip(header, *rows, strict=True)]
    room = width - min(widths[0], _LONGEST_LABEL + 2) - sum(widths[1:]) - len(widths) - 2
    largest = max(record["frequency"] for record in records)
    if room >= _SHORTEST_BAR:
        table.add_column("", no_wrap=True, style="cyan")
    for row, record in zip(rows, records, strict=True):
        cells = [Text(cell) for cell in row]
        if room >= _SHORTEST_BAR:
            cells.append(Text(bar(record["frequency"], largest, min(room, _LONGEST_BAR))))
        table.add_row(*cells)
    return table


def _printable(label: str) -> str:
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
