"""Check what samplers take: points, names of columns, seeds and parameters."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._types import Floats
from turnout.errors import InvalidTypeError, InvalidValueError

#: Squares of larger numbers, and sums of them, may overflow.
LARGEST_NUMBER = 1e100


def training_points(X: Any) -> Floats:
    """Return a person's records as writable points, none too large to square."""
    records = points("X", X)
    wrong = np.abs(records) > LARGEST_NUMBER
    _arguments.refuse_entries("X", records, wrong, "between -1e100 and 1e100", private=True)
    return records.copy()


def random_state_of(value: Any) -> int | None:
    """Check the parameter ``random_state`` and return it."""
    if value is None:
        return None
    return _arguments.integer("random_state", value, least=0, most=2**64 - 1)


def points(argument: str, value: Any, *, least: int = 1, columns: int | None = None) -> Floats:
    """Return points as a C-contiguous float64 array of shape (n, d) with finite entries.

    Parameters
    ----------
    argument, value
        The name of the argument, and the value to convert.
    least
        The least number of points.
    columns
        How many columns there must be; None for one or more.
    """
    if hasattr(value, "toarray"):
        raise InvalidTypeError(
            f"{argument} must be a dense array of real numbers, got a sparse matrix or array of "
            f"type {type(value).__name__}"
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidValueError(f"{argument} must have no masked entries")
    expected = "an array of real numbers of shape (n, d)"
    array = _arguments.as_array(argument, value, expected, private=True)
    if array.dtype.kind == "c":
        raise InvalidValueError(
            f"Complex data not supported: {argument} must hold real numbers, got {array.dtype}"
        )
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            # The second sentence is what scikit-learn's checks look for; NumPy's shows the entry.
            raise InvalidTypeError(
                f"{argument} must hold real numbers, but one entry is not a number. An "
                "argument must be a string or a number"
            ) from None
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(f"{argument} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != 2:
        raise InvalidValueError(
            f"{argument} must be a 2-D array, one record a row, got shape {array.shape}. Reshape "
            "your data: x[:, None] if each record is one number, x[None, :] if it is one record"
        )
    if array.shape[0] < least:
        raise InvalidValueError(
            f"Found array with {array.shape[0]} sample(s) (shape={array.shape}) while a minimum of "
            f"{least} is required: {argument} must have at least {least} record(s)"
        )
    if array.shape[1] < 1:
        raise InvalidValueError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is "
            f"required: {argument} must have at least one column"
        )
    if columns is not None and array.shape[1] != columns:
        raise InvalidValueError(f"{argument} must have {columns} column(s), got {array.shape[1]}")
    result = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~np.isfinite(result)
    _arguments.refuse_entries(argument, result, wrong, "finite, not NaN or infinity", private=True)
    return result


def column_names(value: Any) -> npt.NDArray[np.object_] | None:
    """Return the column names of a data frame if all of them are text."""
    names = list(getattr(value, "columns", ()))
    if not names or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def copy_of(value: Any) -> Any:
    """Copy a parameter; the copy of an estimator is not fitted."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return require("sklearn.base", "samplers").clone(value)
    return copy.deepcopy(value)
