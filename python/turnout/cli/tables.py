"""How results look on a terminal, and how they are written: tables, JSON and pictures."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from turnout._extras import require
from turnout._files import atomic_write
from turnout._label_texts import label_words
from turnout._progress import doing
from turnout._types import Floats, Integers
from turnout.cli.running import output
from turnout.frequency.estimation.answer import Columns
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.reporting.records import json_text
from turnout.reporting.words import digits_for, percent

#: What names of files of tables, and of pictures, end in.
TABLE_SUFFIXES: Final = (".csv", ".parquet", ".arrow")
PICTURE_SUFFIXES: Final = (".png", ".svg", ".pdf")

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LONGEST_LABEL = 28
_SHORTEST_BAR, _LONGEST_BAR = 5, 24

#: Values beside names are wrapped to no less than this.
_NARROWEST = 20

#: Rows that are drawn as a table; more follow as plain lines, which takes a hundredth of the time.
_DRAWN = 1000

#: So many labels are written at once.
_CHUNK = 1 << 16


class Whole(str):
    """A value of :func:`print_properties` that is not wrapped: it has the path of a file."""

    __slots__ = ()


def print_properties(console: Console, title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values below a title: words are wrapped, none is broken.

    The path of a file stays in one piece, so that it can be copied: a title is not wrapped, nor
    is a value that is :class:`Whole`.
    """
    console.print(Text(title, style="bold"), soft_wrap=True)
    listed = list(rows)
    indent = max((cell_len(name) for name, _ in listed), default=0) + 2
    width = max(console.width - indent, _NARROWEST)
    for name, value in listed:
        lines = [str(value)]
        if not isinstance(value, Whole):
            lines = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines or [""]):
            head = Text(_padded("" if number else name, indent), style="cyan")
            console.print(head + Text(line), soft_wrap=True)


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Container[int], title: str = ""
) -> Table:
    """Draw a table with a header, numbers to the right."""
    result = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    if title:
        result.title, result.title_justify, result.title_style = title, "left", "bold"
    for position, name in enumerate(header):
        if position in right:
            result.add_column(Text(name), justify="right", no_wrap=True)
        else:
            result.add_column(Text(name), overflow="fold")
    for row in rows:
        result.add_row(*map(Text, row))
    return result


def tell(
    title: str,
    rows: Iterable[tuple[str, str]],
    *below: Table | Text | str | Callable[[Console], None],
    console: Console | None = None,
    **files: Path | str | None,
) -> None:
    """Print properties under a title, what stands below them, and which files were written.

    Parameters
    ----------
    title, rows
        As for :func:`print_properties`.
    below
        Tables, lines, and what prints itself, each after an empty line.
    console
        Where to, if not on standard output.
    files
        What was written, by what it is called; None was not.
    """
    console = console or output()
    print_properties(console, title, rows)
    for part in below:
        console.print()
        if callable(part):
            part(console)
        else:
            console.print(part, markup=False, soft_wrap=isinstance(part, str))
    for name, path in files.items():
        if path is not None:
            console.print(f"\nThe {name}: {path}", markup=False, soft_wrap=True)


def print_estimates(
    console: Console,
    estimate: FrequencyEstimate,
    codes: Integers,
    level: float,
    simultaneous: str | None,
) -> None:
    """Print estimates, a row a label, with bars where the terminal has room for them.

    Parameters
    ----------
    console
        Where to.
    estimate
        What is shown.
    codes
        The codes of the labels, in order; how many are left out is said.
    level, simultaneous
        How intervals are made.
    """
    errors = estimate.standard_errors[codes]
    errors = np.sort(errors[np.isfinite(errors)])
    digits = digits_for(float(errors[len(errors) // 2]) if errors.size else math.nan)
    largest = float(estimate.frequencies[codes].max())
    header = ["label", "count", "frequency", "std. error", f"{percent(level)} interval"]
    every = estimate._columns_of(codes, level, simultaneous)
    first = every.part(0, _DRAWN)
    rows = _cells(first, digits)
    widest = [] if len(codes) <= _DRAWN else [_widest(every, digits)]
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, *widest, strict=True)]
    widths[0] = min(widths[0], _LONGEST_LABEL)
    # A column has a space on both sides and one before the next.
    room = console.width - sum(widths) - 3 * len(widths) - 2
    longest = min(room, _LONGEST_BAR) if room >= _SHORTEST_BAR else 0
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    table.add_column(header[0], overflow="fold", max_width=_LONGEST_LABEL, min_width=widths[0])
    for name, width in zip(header[1:], widths[1:], strict=True):
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    if longest:
        table.add_column("", no_wrap=True, style="cyan")
    for row, drawn in zip(rows, bars_of(first.frequencies, largest, longest), strict=True):
        table.add_row(*map(Text, [*row, *([drawn] if longest else [])]))
    console.print(table)
    for start in range(_DRAWN, len(codes), _CHUNK):
        some = every.part(start, start + _CHUNK)
        bars = bars_of(some.frequencies, largest, longest)
        console.file.write(
            "".join(
                f" {_padded(label, widths[0])}   {count:>{widths[1]}}   "
                f"{share:>{widths[2]}}   {error:>{widths[3]}}   {limits:>{widths[4]}}   {drawn}\n"
                for (label, count, share, error, limits), drawn in zip(
                    _cells(some, digits), bars, strict=True
                )
            )
        )
    size = estimate.domain.size
    if size > len(codes):
        rest = size - len(codes)
        words = "1 label" if rest == 1 else f"{rest:,} labels"
        console.print(
            f"\nand {words} with smaller or equal shares; --top all shows all", soft_wrap=True
        )


def _widest(columns: Columns, digits: int) -> tuple[str, ...]:
    """Give a text as wide as the widest of each column: numbers are widest at their ends."""
    label = "-" * min(_LONGEST_LABEL, max(len(label_words(label)) for label in columns.labels))
    widths = []
    for column in columns[1:]:
        known = column[np.isfinite(column)]
        ends = [known.min(), known.max()] if known.size else [0.0]
        if column is columns.counts:
            widths.append(max(len(f"{round(end):,}") for end in ends))
        else:
            widths.append(max(map(len, percents(np.array(ends), digits))))
    count, share, error, low, high = widths
    return label, "-" * count, "-" * share, "-" * error, "-" * (low + 3 + high)


def _padded(text: str, width: int) -> str:
    # What counts the columns of all other scripts takes its time.
    return text.ljust(width) if text.isascii() else text + " " * (width - cell_len(text))


def _cells(columns: Columns, digits: int) -> list[tuple[str, str, str, str, str]]:
    """Write what is known of some labels, a row each."""
    counts = [f"{count:,}" for count in np.rint(columns.counts).astype(np.int64).tolist()]
    shares, errors, low, high = (percents(column, digits) for column in columns[2:])
    limits = [
        f"{least} – {most}" if known else "none"
        for least, most, known in zip(low, high, np.isfinite(columns.low).tolist(), strict=True)
    ]
    if not np.isfinite(columns.standard_errors).all():
        known = np.isfinite(columns.standard_errors).tolist()
        errors = [text if sure else "unknown" for text, sure in zip(errors, known, strict=True)]
    labels = [printable(label_words(label)) for label in columns.labels]
    return list(zip(labels, counts, shares, errors, limits, strict=True))


def percents(shares: Floats, digits: int) -> list[str]:
    """Write shares as percentages: what :func:`turnout.reporting.words.percent` does of many.

    Examples
    --------
    >>> percents(np.array([0.25, -0.00001]), 1)
    ['25.0 %', '0.0 %']
    """
    # Adding 0.0 makes -0.0 a plain zero.
    return list(map(f"%.{digits}f %%".__mod__, (np.round(100 * shares, digits) + 0.0).tolist()))


def bars_of(shares: Floats, largest: float, width: int) -> list[str]:
    """Draw shares as bars of at most ``width`` characters.

    Examples
    --------
    >>> bars_of(np.array([0.5, -0.1]), 1.0, 4)
    ['██', '']
    """
    if not width or largest <= 0:
        return [""] * len(shares)
    eighths = np.rint(8 * width * np.maximum(shares, 0.0) / largest).astype(np.int64)
    drawn = {size: "█" * (size // 8) + _EIGHTHS[size % 8].strip() for size in set(eighths.tolist())}
    return [drawn[size] for size in eighths.tolist()]


def printable(label: str) -> str:
    """Keep a label from a file from steering the terminal."""
    return label if label.isprintable() else repr(label)


def csv_of(table: Any) -> bytes:
    """Write an Arrow table as CSV."""
    sink = require("pyarrow", "cli").BufferOutputStream()
    arrow_csv = require("pyarrow.csv", "cli")
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(quoting_style="needed"))
    return bytes(sink.getvalue().to_pybytes())


def write_table(path: Path, table: Any) -> None:
    """Write an Arrow table as CSV, Parquet or Arrow IPC, by its name, whole or not at all."""
    suffix = path.suffix.lower()
    with atomic_write(path) as temporary:
        if suffix == ".parquet":
            require("pyarrow.parquet", "cli").write_table(table, temporary)
        elif suffix == ".arrow":
            with require("pyarrow.ipc", "cli").new_file(temporary, table.schema) as writer:
                writer.write_table(table)
        else:
            temporary.write_bytes(csv_of(table))


def print_json(value: dict[str, Any]) -> None:
    """Print an object; what is infinite is null."""
    typer.echo(json_text(value))


def write_picture(path: Path | None, draw: Callable[[], Any]) -> None:
    """Draw a picture and write it to a file, if there is to be one."""
    if path is None:
        return
    require("matplotlib", "cli").use("Agg")
    with doing("drawing"):
        figure: Any = draw().figure
        try:
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=150)
        finally:
            require("matplotlib.pyplot", "cli").close(figure)
