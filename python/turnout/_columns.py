"""Columns of values from any library, as integer codes.

Every path reduces a column to its distinct values and an index into them. It looks up only the
distinct values and maps the index, so the work in Python is proportional to the number of labels.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Hashable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array
from turnout.errors import (
    CodeOutsideDomainError,
    InvalidTypeError,
    TurnoutError,
    UnknownLabelError,
)

#: Integer types that the core takes as they are.
NATIVE = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.int64))

#: Others, and as which of these the core reads their bytes where no value has another sign there.
_READ_AS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int8): np.dtype(np.uint8),
    np.dtype(np.int16): np.dtype(np.uint16),
    np.dtype(np.int32): np.dtype(np.uint32),
    np.dtype(np.uint64): np.dtype(np.int64),
}


#: A value that is no answer is shown if so many have it: then it is nobody's alone.
FEWEST_SHOWN = 10


@contextlib.contextmanager
def unquoted(kind: type[TurnoutError], text: str) -> Iterator[None]:
    """Replace a library's error about values by one of ours: the original may quote a value.

    Errors of the system (a missing file, too little memory) and errors of turnout are passed on.
    """
    try:
        yield
    except (TurnoutError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise kind(text) from None


class _NotANumber:
    """The key that represents every NaN."""

    def __repr__(self) -> str:
        return "nan"


_NAN = _NotANumber()


class _Factors:
    """A chunk of a column: its distinct values, and the index of each entry among them."""

    def __init__(self, distinct: list[Any], index: Array) -> None:
        self.counts = np.bincount(index, minlength=len(distinct))
        used = np.flatnonzero(self.counts)
        if used.size < len(distinct):
            # A dictionary may hold values that no entry has.
            place = np.zeros(len(distinct), np.int64)
            place[used] = np.arange(used.size)
            distinct, index = [distinct[position] for position in used], place[index]
            self.counts = self.counts[used]
        self.distinct = distinct
        self.index = index


def label_codes(
    values: Any, codes: Mapping[Hashable, int], dtype: np.dtype[np.unsignedinteger[Any]]
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the codes of a column of labels.

    Raises
    ------
    UnknownLabelError
        If a value is not among the labels.
    InvalidTypeError
        If ``values`` is not a column.
    """
    pieces = []
    unknown: dict[Any, int] = {}
    length = first = 0
    for factors in factorize(values):
        table = np.array([_look_up(codes, value) for value in factors.distinct], dtype=np.int64)
        wrong = np.flatnonzero(table < 0)
        if wrong.size and not unknown:
            first = length + int(np.flatnonzero(table[factors.index] < 0)[0])
        for position in wrong:
            value = key(factors.distinct[position])
            unknown[value] = unknown.get(value, 0) + int(factors.counts[position])
        if not unknown:
            pieces.append(table.astype(dtype)[factors.index])
        length += len(factors.index)
    if unknown:
        raise UnknownLabelError(
            f"values has {sum(unknown.values())} value(s) that are not labels of the domain"
            f"{offenders(unknown, f', the first at values[{first}]')}; expected one of "
            f"{_arguments.listed(codes)}"
        )
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def offenders(counts: Mapping[Any, int], place: str) -> str:
    """Describe values that are not in the domain: show frequent ones, or only their position.

    Such a value may be an answer that somebody misspelt. So a value is shown only if at least
    :data:`FEWEST_SHOWN` entries have it, or if it is a missing value, and then without its
    position. A rarer value is never shown.

    Parameters
    ----------
    counts
        How many entries have each such value.
    place
        Their position, in words that can follow the message.

    Examples
    --------
    >>> offenders({"Yes": 200, "yess": 1}, " (row 7)"), offenders({"yess": 1}, " (row 7)")
    (", among them 'Yes'", ' (row 7)')
    """
    known = [
        value
        for value, count in counts.items()
        if count >= FEWEST_SHOWN or value is None or value is _NAN
    ]
    return f", among them {_arguments.listed(known)}" if known else place


def integer_codes(values: Any, size: int) -> Array:
    """Return a column of integers below ``size`` as codes.

    An array of integers is returned unchanged, or as a view of a type that the core accepts. Only
    its sign is checked here; the core checks the range. Other columns become int64.

    Raises
    ------
    InvalidTypeError
        If ``values`` is not a column of numbers.
    CodeOutsideDomainError
        If a value is not a whole number in the range.
    """
    plain = type(values) is np.ndarray and values.ndim == 1
    array = values if plain else _as_numpy(values)
    if array is not None and array.dtype.kind in "iuf":
        return _whole(array, size)
    _arguments.refuse_booleans("values", values)
    pieces: list[Array] = []
    wrong: list[tuple[int, Any]] = []
    found = length = 0
    for factors in factorize(values):
        taken = [whole_number(value, size) for value in factors.distinct]
        bad = np.array([code is None for code in taken], dtype=bool)
        if bad.any():
            found += int(factors.counts[bad].sum())
            first = int(np.flatnonzero(bad[factors.index])[0])
            wrong.append((length + first, factors.distinct[factors.index[first]]))
        codes = np.array([code or 0 for code in taken], dtype=np.int64)
        pieces.append(codes[factors.index])
        length += len(factors.index)
    if wrong:
        _refuse(*wrong[0], found, size)
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def whole_number(value: Any, size: int) -> int | None:
    """Convert a whole number in the range, integer or float, to an integer."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    if (isinstance(value, Decimal) and not value.is_finite()) or not 0 <= value < size:
        return None
    return int(value) if value == int(value) else None


def _refuse(position: int, value: Any, number: int, size: int) -> NoReturn:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    missing = isinstance(value, float) and math.isnan(value)
    got = f", got {_arguments.Private(value)!r}" if missing or not numeric else ""
    raise (CodeOutsideDomainError if numeric else InvalidTypeError)(
        f"values[{position}] is not a code of the domain: expected a whole number, an integer from "
        f"0 to {size - 1}{got} ({number} such value(s) in all)"
    )


def distinct(values: Any) -> list[Any]:
    """List the distinct values of a column in order of first appearance."""
    seen: dict[Any, Any] = {}
    for factors in factorize(values):
        for value in factors.distinct:
            seen.setdefault(key(value), value)
    return list(seen.values())


def _leaves(array: Array) -> bool:
    """Return whether a value is negative or exceeds 63 bits; the core refuses larger codes."""
    return bool(array.min() < 0 if array.dtype.kind == "i" else array.max() >= 2**63)


def _whole(array: Array, size: int) -> Array:
    """Return integers of a type that the core accepts."""
    if array.dtype in NATIVE:
        return np.require(array, requirements=["C", "A"])
    if array.dtype in _READ_AS and not (array.size and _leaves(array)):
        return np.require(array, requirements=["C", "A"]).view(_READ_AS[array.dtype])
    wrong = ~((array >= 0) & (array < (size if array.dtype.itemsize > 2 else min(size, 2**15))))
    if array.dtype.kind == "f":
        wrong |= array != np.floor(array)
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        _refuse(position, array[position].item(), int(wrong.sum()), size)
    return array.astype(np.int64)


def key(value: Any) -> Any:
    """Return a key under which NaN equals itself, so that it is counted once."""
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _look_up(codes: Mapping[Hashable, int], value: Any) -> int:
    try:
        return codes.get(value, -1)
    except TypeError:
        raise _unhashable("values", value) from None


def _unhashable(where: str, value: Any) -> InvalidTypeError:
    return _arguments.mistyped(
        f"{where} must be an answer that can be hashed", _arguments.Private(value)
    )


def _loaded(library: str, kind: str, value: Any) -> bool:
    """Return whether a value is of a class of a library that may not be installed."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, kind, ()))


def _as_numpy(values: Any) -> Array | None:
    """Find the numeric array behind a column without missing values, if there is one."""
    if _loaded("numpy.ma", "MaskedArray", values):
        return None
    if isinstance(values, np.ndarray):
        _check_dimensions(values)
        return values
    if _loaded("pandas", "Series", values) and isinstance(values.dtype, np.dtype):
        return np.asarray(values)
    if (
        _loaded("polars", "Series", values)
        and values.dtype.is_numeric()
        and not values.null_count()
    ):
        return np.asarray(values.to_numpy())
    return None


def _check_dimensions(values: Array) -> None:
    if values.ndim != 1:
        raise InvalidTypeError(
            f"values must be one-dimensional, got an array of shape {values.shape}"
        )


def factorize(values: Any) -> Iterator[_Factors]:
    """Reduce a column to distinct values and indices, chunk by chunk."""
    with unquoted(
        InvalidTypeError,
        "values must be a list, a one-dimensional array or a column, got "
        f"{type(values).__name__}, which could not be read",
    ):
        yield from _factorized(values)


def _factorized(values: Any) -> Iterator[_Factors]:
    if isinstance(values, np.ndarray):
        _check_dimensions(values)
        masked = _loaded("numpy.ma", "MaskedArray", values)
        return iter([_from_sequence(values.tolist()) if masked else _from_numpy(values)])
    if _loaded("pandas", "Series", values) or _loaded("pandas", "Index", values):
        return iter([_from_pandas(values)])
    if _loaded("pandas", "Categorical", values):
        return iter([_from_index(list(values.categories), np.asarray(values.codes), -1)])
    if _loaded("polars", "Series", values) and str(values.dtype) == "Object":
        return iter([_from_sequence(values.to_list())])
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return _from_arrow(values)
    if isinstance(values, (str, bytes, Mapping, set, frozenset)) or not hasattr(values, "__len__"):
        raise InvalidTypeError(
            "values must be a list, a one-dimensional array or a column, "
            f"got {type(values).__name__}"
        )
    if not hasattr(values, "__getitem__"):
        raise InvalidTypeError(f"values must be an ordered column, got {type(values).__name__}")
    return iter([_from_sequence(values)])


def _from_numpy(values: Array) -> _Factors:
    if values.dtype.kind in "iufbSUmM":
        unique, index = np.unique(values, return_inverse=True, equal_nan=True)
        return _Factors(unique.tolist(), index)
    return _from_sequence(values.tolist())


def _from_sequence(values: Any) -> _Factors:
    entries = list(values)
    try:
        position = {value: index for index, value in enumerate(dict.fromkeys(entries))}
    except TypeError:
        first = next(index for index, value in enumerate(entries) if not _hashable(value))
        raise _unhashable(f"values[{first}]", entries[first]) from None
    index = np.fromiter(map(position.__getitem__, entries), np.int64, len(entries))
    plain = [value.item() if isinstance(value, np.generic) else value for value in position]
    return _Factors(plain, index)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _from_pandas(values: Any) -> _Factors:
    if hasattr(values, "cat"):
        return _from_index(list(values.cat.categories), np.asarray(values.cat.codes), -1)
    try:
        index, unique = values.factorize()
    except TypeError:
        return _from_sequence(values.tolist())
    return _from_index(unique.tolist(), np.asarray(index), -1)


def _from_index(distinct: list[Any], index: Array, missing: int) -> _Factors:
    """Represent missing entries by a distinct value: None."""
    gaps = index == missing
    if not gaps.any():
        return _Factors(distinct, index)
    return _Factors([*distinct, None], np.where(gaps, len(distinct), index))


def _from_arrow(values: Any) -> Iterator[_Factors]:
    try:
        import pyarrow as pa  # noqa: PLC0415
    except ImportError:
        if _loaded("polars", "Series", values):
            yield _from_sequence(values.to_list())
            return
        raise InvalidTypeError(
            "an Arrow column needs pyarrow: pip install 'turnout[cli]'"
        ) from None
    column = values
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        stream = hasattr(values, "__arrow_c_stream__")
        with unquoted(
            InvalidTypeError, f"values must be one Arrow column, got {type(values).__name__}"
        ):
            column = pa.chunked_array(values) if stream else pa.array(values)
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        try:
            encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        except pa.ArrowException:
            # Not with the names of the parts: of dictionaries they may be answers.
            kind = str(chunk.type).partition("<")[0]
            raise InvalidTypeError(
                f"values must be one column of single values, got an Arrow column of {kind}"
            ) from None
        if not pa.types.is_dictionary(encoded.type):
            yield _Factors([None], np.zeros(len(chunk), np.int64))
            continue
        index = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        yield _from_index(encoded.dictionary.to_pylist(), index, -1)
