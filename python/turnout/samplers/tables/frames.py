"""Read records from frames of any library, and make a frame of the same library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnout import _arguments
from turnout._columns import unquoted
from turnout._extras import require
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers.tables.columns import Column

_EXPECTED = "a frame of pandas, polars or pyarrow with the columns of the sampler"


def rows_of_frame(argument: str, frame: Any) -> Any:
    """Return a frame in the form of narwhals, whose rows can be taken by position.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a frame, or two of its columns have the same name.
    MissingExtraError
        If narwhals is not installed.
    """
    nw = require("narwhals", "cli")
    try:
        given = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InvalidValueError(
            f"{argument} must have columns of different names: rename those that are equal"
        ) from None
    if not isinstance(given, nw.DataFrame):
        raise _arguments.mistyped(f"{argument} must be {_EXPECTED}", _arguments.Private(frame))
    return given


def read_frame(
    argument: str, frame: Any, columns: Sequence[Column]
) -> tuple[dict[str, list[Any]], Any]:
    """Read the columns of a frame as lists.

    Returns
    -------
    tuple
        The values of each column, and narwhals' name for the library of the frame.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a frame, if a column is missing, or if there are no rows. No value is shown.
    """
    given = rows_of_frame(argument, frame)
    absent = [column.name for column in columns if column.name not in given.columns]
    if absent:
        raise InvalidValueError(
            f"{argument} must have the columns {_arguments.listed([c.name for c in columns])}, and "
            f"has no {_arguments.listed(absent)}"
        )
    if not len(given):
        raise InvalidValueError(f"{argument} must have at least one record, got none")
    table: dict[str, list[Any]] = {}
    for column in columns:
        problem = f"{argument} must have values of one type in column {column.name!r}"
        with unquoted(InvalidTypeError, problem):
            table[column.name] = given.select(column.name).to_arrow()[column.name].to_pylist()
    return table, given.implementation


def frame_of(library: Any, columns: Sequence[Column], values: Mapping[str, list[Any]]) -> Any:
    """Make a frame; the sampler decides the types of its columns, whatever the data."""
    nw = require("narwhals", "cli")
    return nw.from_arrow(table_of(columns, values), backend=library).to_native()


def table_of(columns: Sequence[Column], values: Mapping[str, list[Any]]) -> Any:
    """Make an Arrow table; the sampler decides the types of its columns, whatever the data."""
    pa = require("pyarrow", "cli")
    return pa.table(
        {column.name: pa.array(values[column.name], _arrow_type(pa, column)) for column in columns}
    )


def _arrow_type(pa: Any, column: Column) -> Any:
    if column.arrow_type == "timestamp[us]":
        return pa.timestamp("us")
    return getattr(pa, {"bool": "bool_"}.get(column.arrow_type, column.arrow_type))()
