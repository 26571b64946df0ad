"""Tables as files: CSV and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from turnout._atomic import atomic_write
from turnout._extras import require

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
