"""Tables of answers: one column for each attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError

__all__ = ["encoded"]


def encoded(table: Any, domains: Mapping[str, Domain]) -> dict[str, npt.NDArray[Any]]:
    """Encode the columns of a table; columns of other names are not read.

    Parameters
    ----------
    table
        A mapping from names to columns, or a pandas, polars or pyarrow table.
    domains
        The attributes.

    Returns
    -------
    dict
        For each attribute one code for each node.

    Raises
    ------
    InvalidTypeError
        If the table has no columns by name.
    InvalidValueError
        If a column is missing, or the columns are of different lengths.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in its domain; the message names the attribute.
    """
    codes = {}
    for name, domain in domains.items():
        column = _column(table, name)
        try:
            codes[name] = domain.encode(column)
        except (InvalidTypeError, InvalidValueError) as error:
            raise type(error)(f"table[{name!r}]: {error}") from error
    lengths = {name: column.size for name, column in codes.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(
            f"table must have columns of the same length, got {_arguments.shown(lengths)}"
        )
    return codes


def _column(table: Any, name: str) -> Any:
    if isinstance(table, (str, bytes)) or not hasattr(table, "__getitem__"):
        raise InvalidTypeError(
            "table must be a mapping from names to columns or a data frame, "
            f"got {_arguments.shown(table)}"
        )
    if isinstance(table, (list, tuple)) or (
        isinstance(table, np.ndarray) and table.dtype.names is None
    ):
        raise InvalidTypeError(
            "table must have a column for each name, as a mapping or a data frame has, got a "
            f"{type(table).__name__}"
        )
    try:
        return table[name]
    except Exception as error:
        # Every library has an exception of its own for a missing column.
        raise InvalidValueError(f"table must have the column {name!r}, and it has none") from error
