"""Options that many commands have, and files of tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from turnout._atomic import atomic_write
from turnout._extras import require
from turnout._progress import doing
from turnout.cli.running import check_level, ending_in

#: What names of files of tables end in.
TABLE_SUFFIXES: Final = (".csv", ".parquet")


def csv_of(table: Any) -> bytes:
    """Write an Arrow table as CSV."""
    sink = require("pyarrow", "cli").BufferOutputStream()
    arrow_csv = require("pyarrow.csv", "cli")
    arrow_csv.write_csv(table, sink, arrow_csv.WriteOptions(quoting_style="needed"))
    return bytes(sink.getvalue().to_pybytes())


def write_table(path: Path, table: Any) -> None:
    """Write an Arrow table as CSV or Parquet, by the file's name, whole or not at all."""
    with atomic_write(path) as temporary:
        if path.suffix.lower() == ".parquet":
            require("pyarrow.parquet", "cli").write_table(table, temporary)
        else:
            temporary.write_bytes(csv_of(table))


_PICTURES = {".png": "png", ".svg": "svg", ".pdf": "pdf"}

PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        callback=ending_in(*_PICTURES),
        help="Save a picture: .png, .svg or .pdf.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Level = Annotated[
    float,
    typer.Option("--interval", callback=check_level, help="Confidence level of the intervals."),
]
PublicKey = Annotated[
    str | None,
    typer.Option("--public-key", metavar="HEX", help="Refuse a plan not signed by this key."),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="For tests only: whoever knows it can undo the noise."),
]
Sign = Annotated[
    Path | None,
    typer.Option("--sign", metavar="KEY", help="Sign the plan with this key; see turnout key."),
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        callback=ending_in(*TABLE_SUFFIXES),
        help="Save the table, all of it: .csv or .parquet.",
    ),
]


def print_json(value: dict[str, Any]) -> None:
    """Print an object; what is infinite is null."""
    typer.echo(json.dumps(_finite(value), allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def save_picture(path: Path | None, draw: Callable[[], Any]) -> None:
    """Draw a picture and write it to a file, if there is to be one."""
    if path is None:
        return
    require("matplotlib", "cli").use("Agg")
    with doing("drawing"):
        figure: Any = draw().figure
        try:
            with atomic_write(path) as temporary:
                figure.savefig(temporary, format=_PICTURES[path.suffix.lower()], dpi=150)
        finally:
            require("matplotlib.pyplot", "cli").close(figure)
