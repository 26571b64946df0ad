"""Keys of groups: the values of the columns that group reports."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from turnout import _arguments
from turnout._documents import canonical
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

Part: TypeAlias = (
    bool | int | float | str | datetime.date | datetime.time | datetime.datetime | None
)
Key: TypeAlias = tuple[Part, ...]

#: Bits of the longest integer in a key: Python refuses to read some thousand digits.
_LONGEST = 2_000

#: What dates and times are in JSON, by the class; a datetime is also a date.
_TIMES: dict[type, str] = {
    datetime.date: "date",
    datetime.time: "time",
    datetime.datetime: "datetime",
}


#: How days and months are written.
_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?", re.ASCII)

#: Columns that are called so hold times, whatever stands in them.
_TIME_NAMES = frozenset({"date", "day", "hour", "month", "quarter", "time", "wave", "week", "year"})


def checked_names(names: Any) -> tuple[str, ...]:
    """Check the names of the columns: at least one, all distinct texts."""
    kept = _arguments.names("names", names, "columns of the groups")
    if not kept:
        raise _arguments.invalid("names must be at least one name", kept)
    for name in kept:
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise _arguments.invalid("names must be Unicode text", name) from error
    return kept


def plain_part(argument: str, value: Any) -> Part:
    """Return the plain Python value of an entry of a column.

    NumPy scalars become Python values. Dates and times of other libraries become those of
    :mod:`datetime`. Moments with a time zone are converted to UTC, so that equal ones look alike.
    """
    if isinstance(value, np.datetime64):
        value = _plain_moment(argument, value)
    elif isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if value.bit_length() > _LONGEST:
            raise InvalidValueError(f"{argument} must be an integer of up to 600 digits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValueError(f"{argument} must be finite, got {value}")
        return float(value) + 0.0
    made = _plain_time(argument, value)
    if made is None:
        raise _arguments.mistyped(
            f"{argument} must be None, text, a number, a boolean, a date or a time", value
        )
    return made


def _plain_moment(argument: str, value: np.datetime64) -> Any:
    """Convert a date or moment of NumPy, which itself would make nanoseconds an integer."""
    if np.isnat(value):
        raise InvalidValueError(f"{argument} is not a moment in time; use None for a missing one")
    days = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
    made = value.astype("datetime64[D]" if days else "datetime64[us]").item()
    if not isinstance(made, datetime.date):
        raise InvalidValueError(f"{argument} must be of the years 1 to 9999, got {value}")
    return made


def _plain_time(
    argument: str, value: Any
) -> datetime.date | datetime.time | datetime.datetime | None:
    if isinstance(value, datetime.datetime):
        if value != value:  # noqa: PLR0124, a moment that is none equals nothing
            raise InvalidValueError(
                f"{argument} is not a moment in time; use None for a missing one"
            )
        if value.tzinfo is not None:
            try:
                value = value.astimezone(datetime.timezone.utc)
            except OverflowError as error:
                raise InvalidValueError(
                    f"{argument} must be of the years 1 to 9999 in UTC, got {value}"
                ) from error
        fields = (value.year, value.month, value.day, value.hour, value.minute, value.second)
        return datetime.datetime(*fields, value.microsecond, value.tzinfo)
    if isinstance(value, datetime.date):
        return datetime.date(value.year, value.month, value.day)
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise InvalidValueError(f"{argument} must be a time of day without a time zone")
        return datetime.time(value.hour, value.minute, value.second, value.microsecond)
    return None


def plain_key(argument: str, key: Any, size: int) -> Key:
    """Convert a key of ``size`` columns to plain values; for one column also a bare value."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != size:
        raise _arguments.invalid(
            f"{argument} must have one value for each of the {size} columns of the groups", key
        )
    return tuple(plain_part(argument, part) for part in parts)


def check_columns(names: Sequence[str], keys: Iterable[Key]) -> None:
    """Refuse a column with values of several types.

    Such values may be equal or have no order. 1, 1.0 and True are one key for Python. A date and a
    moment, or moments with and without a time zone, cannot be compared.
    """
    found: dict[str, tuple[str, Part]] = {}
    for key in keys:
        for name, part in zip(names, key, strict=True):
            if part is None:
                continue
            kind, first = found.setdefault(name, (_kind(part), part))
            if kind != _kind(part):
                raise InvalidTypeError(
                    f"the values of the column {name!r} must be of one type (or None), got "
                    f"{_arguments.shown(first)} and {_arguments.shown(part)}"
                )


def _kind(part: Part) -> str:
    zoned = isinstance(part, datetime.datetime) and part.tzinfo is not None
    return type(part).__name__ + (" with a time zone" if zoned else "")


def in_order(keys: Iterable[Key]) -> list[Key]:
    """Sort keys by their columns, None first."""

    def rank(key: Key) -> tuple[Any, ...]:
        return tuple((part is not None, part) for part in key)

    return sorted(keys, key=rank)


def time_column(names: Sequence[str], keys: Iterable[Key]) -> str | None:
    """Return the only column of times, if there is exactly one.

    Times are dates, moments, and their texts. If there are none, the name of a column tells whether
    its numbers or texts are times.

    Examples
    --------
    >>> time_column(["country", "year"], [("DE", 2024), ("DE", 2025)])
    'year'
    """
    columns = dict(zip(names, map(list, zip(*keys, strict=True)), strict=False))
    dated = [
        name
        for name, parts in columns.items()
        if any(isinstance(part, datetime.date) for part in parts) or as_dates(parts) is not None
    ]
    if not dated:
        dated = [name for name in columns if name.casefold() in _TIME_NAMES]
    return dated[0] if len(dated) == 1 else None


def times_in(names: Sequence[str], key: Key) -> str:
    """Write the times of a key as text, empty if it has none.

    Examples
    --------
    >>> times_in(["country", "year"], ("DE", 2024)), times_in(["country"], ("DE",))
    ('{"year":2024}', '')
    """
    times = {
        name: part
        for name, part in zip(names, key, strict=True)
        if name.casefold() in _TIME_NAMES
        or isinstance(part, datetime.date)
        or (isinstance(part, str) and _DATE.fullmatch(part))
    }
    described = dict(zip(times, key_to_json(tuple(times.values())), strict=True))
    return canonical(described) if times else ""


def as_dates(parts: Iterable[Part]) -> list[datetime.date] | None:
    """Parse texts of dates, such as 2026-01-31 or 2026-01; return None for other texts.

    Examples
    --------
    >>> as_dates(["2026-01", "2026-02"])
    [datetime.date(2026, 1, 1), datetime.date(2026, 2, 1)]
    >>> as_dates(["2026-01", "soon"]) is None
    True
    """
    found = []
    for part in parts:
        if part is None:
            continue
        if not isinstance(part, str) or not _DATE.fullmatch(part):
            return None
        try:
            found.append(datetime.date.fromisoformat(part if len(part) > 7 else f"{part}-01"))
        except ValueError:
            return None
    return found or None


def key_to_json(key: Key) -> list[Any]:
    """Convert a key to JSON values."""
    return [to_json(part) for part in key]


def to_json(part: Part) -> Any:
    """Convert a value to JSON values: a date becomes ``{"date": "2026-01-31"}``."""
    kind = _TIMES.get(type(part))
    return part if kind is None else {kind: part.isoformat()}  # type: ignore[union-attr]


def key_from_json(described: Any, size: int) -> Key:
    """Rebuild a key of ``size`` columns from :func:`key_to_json`.

    Raises
    ------
    CorruptDataError
        If it does not describe a key.
    """
    if not isinstance(described, list) or len(described) != size:
        raise CorruptDataError(
            f"the key of a group must have {size} values, got {_arguments.shown(described)}"
        )
    try:
        return tuple(map(_from_json, described))
    except CorruptDataError:
        raise
    except ValueError as error:
        raise CorruptDataError(f"not a value of a group: {error}") from error


def _from_json(described: Any) -> Part:
    if isinstance(described, dict) and len(described) == 1:
        for kind, word in _TIMES.items():
            if word in described:
                made = _parsed(kind, described[word])
                if to_json(made) == described:
                    return made
    elif described is None or isinstance(described, (bool, str, int, float)):
        return plain_part("key", described)
    raise CorruptDataError(f"not a value of a group: {_arguments.shown(described)}")


def _parsed(kind: Any, text: Any) -> Part:
    if not isinstance(text, str):
        raise CorruptDataError(f"not a date or time: {_arguments.shown(text)}")
    return plain_part("key", kind.fromisoformat(text))


def shown_part(part: Part) -> str:
    """Write a value of a key for people.

    Examples
    --------
    >>> shown_part(None), shown_part(3), shown_part(datetime.date(2026, 1, 31))
    ('none', '3', '2026-01-31')
    """
    if part is None:
        return "none"
    if isinstance(part, bool):
        return "yes" if part else "no"
    if isinstance(part, (datetime.date, datetime.time)):
        return part.isoformat(" ") if isinstance(part, datetime.datetime) else part.isoformat()
    return f"{part:g}" if isinstance(part, float) else str(part)


def shown_key(key: Key) -> str:
    """Write a key for people.

    Examples
    --------
    >>> shown_key(("DE", 3))
    'DE, 3'
    """
    return ", ".join(shown_part(part) for part in key)


def typed(key: Key) -> tuple[Any, ...]:
    """Add types to a key: 1, 1.0 and True are equal but not the same key."""
    return tuple((type(part), part) for part in key)


def kept_by(name: str, kept: Any) -> Callable[[Any], bool]:
    """Return a function that selects parts of keys: by a function, a value or several values."""
    if callable(kept):
        return lambda part: bool(kept(part))
    several = isinstance(kept, (list, tuple, set, frozenset, range, np.ndarray))
    values = {plain_part(name, value) for value in (kept if several else [kept])}
    return lambda part: part in values
