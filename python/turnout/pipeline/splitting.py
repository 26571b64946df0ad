"""Random splitting of people's rows into files: each person is in one round."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turnout._extras import require
from turnout._types import Integers
from turnout.errors import InvalidValueError
from turnout.pipeline.answers import Answers
from turnout.pipeline.rows import kept, rows_of


def split(
    answers: Answers,
    assign: Callable[[int], Integers],
    folder: str | os.PathLike[str],
    groups: int,
) -> list[tuple[Path, int]]:
    """Write each row into the file of one group, drawn at random independently of its answer.

    Parameters
    ----------
    answers
        The rows; the files have their columns and no others, without that of identifiers: the
        rows of a person were told apart by it, and nobody needs it afterwards.
    assign
        Draws the groups of so many rows.
    folder
        Where the files appear, all of them or none; it must not exist.
    groups
        How many groups there are.

    Returns
    -------
    list of (pathlib.Path, int)
        For each group its file, and how many rows it has.

    Raises
    ------
    InvalidValueError
        If the folder exists, there are no rows, or a row cannot be read.
    OSError
        If a file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> people = tn.pipeline.scan(pa.table({"word": ["a", "b", "c", "d"]}), "word")
    >>> search = tn.HeavyHitters(4.0, bits=8).rounds()
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = split(people, search.assign, pathlib.Path(place, "groups"), 4)
    >>> len(files), sum(rows for _, rows in files)
    (4, 4)
    """
    pa, parquet = require("pyarrow", "cli"), require("pyarrow.parquet", "cli")
    target = Path(folder)
    if target.exists():
        raise InvalidValueError(
            f"{target} already exists; people who are split again may be asked twice "
            "and spend epsilon twice"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    counts = [0] * groups
    try:
        with contextlib.ExitStack() as files:
            writers: list[Any] = []
            name, looked_for = answers.source.name, answers._looks_for_persons
            names = [name for name in answers.columns if name != answers.id_column]
            for block in answers._all_blocks():
                table = rows_of(block, name, looked_for=looked_for).table.select(names)
                if not writers:
                    schema = _plain_schema(pa, table.schema)
                    writers = [
                        files.enter_context(parquet.ParquetWriter(made / _name(number), schema))
                        for number in range(groups)
                    ]
                # Dictionaries differ from block to block.
                table = table.cast(schema)
                group = assign(table.num_rows)
                for number, writer in enumerate(writers):
                    part = kept(table, group == number)
                    counts[number] += part.num_rows
                    writer.write_table(part)
        if not any(counts):
            raise InvalidValueError(f"{answers.name} has no rows to split")
        made.rename(target)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return [(target / _name(number), count) for number, count in enumerate(counts)]


def _name(number: int) -> str:
    return f"round-{number}.parquet"


def _plain_schema(pa: Any, schema: Any) -> Any:
    """Write dictionaries out."""
    dictionary = pa.types.is_dictionary
    kinds = [kind.value_type if dictionary(kind) else kind for kind in schema.types]
    return pa.schema(zip(schema.names, kinds, strict=True))
