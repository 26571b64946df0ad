"""Values of Arrow columns as values of groups, and values that a group cannot have."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout._arrays import to_numpy
from turnout._extras import require
from turnout._types import Integers, Truths

_DAY: Final = 86_400

#: Seconds from 1970 to the beginning of the year 1, and to that of the year 10000.
_FIRST: Final = -_DAY * (datetime.date(1970, 1, 1) - datetime.date.min).days
_END: Final = _DAY * ((datetime.date.max - datetime.date(1970, 1, 1)).days + 1)

_ENDLESS: Final = (float("inf"), float("-inf"))

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Unfit:
    """A placeholder for a value that a group cannot have; it does not hold the value.

    Attributes
    ----------
    what
        A description of such values.
    instead
        What to do about them.
    """

    what: str
    instead: str


_INFINITE: Final = Unfit("a number that is not finite", "make it a null, or leave these people out")
_OUTSIDE: Final = Unfit(
    "a date outside the years 1 to 9999", "make it a null, or give the column as text"
)
_TOO_FINE: Final = Unfit(
    "a moment that is not of whole microseconds", "round the column to microseconds or to days"
)
_NO_DAY: Final = Unfit("a date that is not a whole day", "give the column as a timestamp")


def needs_look(kind: Any) -> bool:
    """Return whether an Arrow type can hold values that a group cannot have."""
    types, kind = require("pyarrow", "cli").types, stored_type(kind)
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_floating(kind))


def stored_type(kind: Any) -> Any:
    """Return the Arrow type of the values of a dictionary or of an extension type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> stored_type(pa.dictionary(pa.int8(), pa.date32())), stored_type(pa.uuid())
    (DataType(date32[day]), FixedSizeBinaryType(fixed_size_binary[16]))
    """
    pa = require("pyarrow", "cli")
    while True:
        if isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        elif pa.types.is_dictionary(kind):
            kind = kind.value_type
        else:
            return kind


def group_values(values: Any) -> list[Any]:
    """List the values of a plain Arrow array as values of groups.

    The array must not be a dictionary. Moments with a time zone are converted to UTC. A value that
    a group cannot have becomes an :class:`Unfit`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> day, far = group_values(pa.array([1, 10**7], pa.int32()).cast(pa.date32()))
    >>> day, far.what
    (datetime.date(1970, 1, 2), 'a date outside the years 1 to 9999')
    """
    pa = require("pyarrow", "cli")
    kind = values.type
    if pa.types.is_floating(kind):
        return [_INFINITE if value in _ENDLESS else value for value in values.to_pylist()]
    if pa.types.is_date(kind):
        return _days(pa, values)
    if pa.types.is_timestamp(kind):
        return _moments(pa, values)
    listed: list[Any] = values.to_pylist()
    return listed


def _days(pa: Any, values: Any) -> list[Any]:
    numbers = _numbers(pa, values)
    # Of 64 bits they are milliseconds.
    day = 1 if pa.types.is_date32(values.type) else _DAY * 1000
    days, rest = np.divmod(numbers, day)
    outside = (days < _FIRST // _DAY) | (days >= _END // _DAY)
    kept = _as(pa, np.where(outside, 0, days).astype(np.int32), values, pa.date32())
    return _marked(kept, (rest != 0, _NO_DAY), (outside, _OUTSIDE))


def _moments(pa: Any, values: Any) -> list[Any]:
    numbers, second = _numbers(pa, values), _PER_SECOND[values.type.unit]
    limits = np.iinfo(np.int64)
    # In nanoseconds every number of 64 bits is of some year from 1677 to 2262.
    outside = numbers < max(_FIRST * second, limits.min)
    outside |= numbers > min(_END * second - 1, limits.max)
    numbers = np.where(outside, 0, numbers)
    rest = np.zeros_like(numbers)
    if second > 10**6:
        numbers, rest = np.divmod(numbers, second // 10**6)
    else:
        numbers = numbers * (10**6 // second)
    kind = pa.timestamp("us", None if values.type.tz is None else "UTC")
    kept = _as(pa, numbers, values, kind)
    return _marked(kept, (rest != 0, _TOO_FINE), (outside, _OUTSIDE))


def _numbers(pa: Any, values: Any) -> Integers:
    """Return the integers that represent dates and moments; zero for nulls."""
    narrow = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return to_numpy(narrow.cast(pa.int64()).fill_null(0))


def _as(pa: Any, numbers: Integers, values: Any, kind: Any) -> list[Any]:
    nulls = values.is_null().to_numpy(zero_copy_only=False)
    listed: list[Any] = pa.array(numbers, mask=nulls).cast(kind).to_pylist()
    return listed


def _marked(listed: list[Any], *unfit: tuple[Truths, Unfit]) -> list[Any]:
    for where, mark in unfit:
        for place in np.flatnonzero(where).tolist():
            listed[place] = mark
    return listed
