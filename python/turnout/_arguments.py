"""Checks of arguments that several modules share."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Collection
from datetime import datetime, timezone
from typing import Any, TypeVar

import numpy as np

from turnout._types import Array, Floats, Integers, Truths, Unsigned
from turnout.errors import InvalidTypeError, InvalidValueError

T = TypeVar("T")

_MANY = 5
_LONG = 200


class Private:
    """A person's value, as messages show it: its type and shape, never its content.

    Examples
    --------
    >>> mistyped("values must be numbers", Private("yes"))
    InvalidTypeError('values must be numbers, got a value of type str')
    """

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        value = self._value
        # Nothing is no answer.
        if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124
            return repr(value)
        if isinstance(value, np.ndarray):
            return f"an array of {value.dtype} of shape {value.shape}"
        return f"a value of type {type(value).__name__}"


def shown(value: object) -> str:
    """Show any value in a message: at most 200 characters, and never an error of its own."""
    try:
        text = repr(value)
    except Exception:
        # An integer of thousands of digits, a structure nested thousands deep, a hostile object.
        return f"a {type(value).__name__} too long to show"
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def invalid(expected: str, value: object) -> InvalidValueError:
    """Build the error for an unexpected value; ``expected`` names the argument."""
    return InvalidValueError(f"{expected}, got {shown(value)}")


def mistyped(expected: str, value: object) -> InvalidTypeError:
    """Build the error for a value of the wrong type; ``expected`` names the argument."""
    return InvalidTypeError(f"{expected}, got {shown(value)}")


def number(argument: str, value: object) -> float:
    """Return a finite or infinite real number as a float; booleans and text are refused."""
    # float() would read text and bytes; a truth value is no number. NumPy before 2.4 only warns
    # when an array of one entry is made a number.
    if (
        isinstance(value, (bool, np.bool_))
        or (isinstance(value, np.ndarray) and value.ndim > 0)
        or not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__"))
    ):
        raise mistyped(f"{argument} must be a real number", value)
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError as error:
        raise invalid(
            f"{argument} must be a real number within floating-point range", value
        ) from error
    except (TypeError, ValueError) as error:
        raise mistyped(f"{argument} must be a real number", value) from error


def seconds(argument: str, value: object) -> float:
    """Return a finite time above zero."""
    result = number(argument, value)
    if not 0.0 < result < float("inf"):
        raise invalid(f"{argument} must be a finite number of seconds above 0", value)
    return result


def integer(argument: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return an integer within bounds."""
    if type(value) is int and least <= value and (most is None or value <= most):
        return value  # the words of an error are not put together for every call
    bounds = (
        f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"
    )
    if isinstance(value, (bool, np.bool_)):
        raise mistyped(f"{argument} must be {bounds}", value)
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise mistyped(f"{argument} must be {bounds}", value) from error
    if result < least or (most is not None and result > most):
        raise invalid(f"{argument} must be {bounds}", result)
    return result


def optional_integer(
    argument: str, value: object, *, least: int, most: int | None = None
) -> int | None:
    """Return an integer within bounds, or None for the default."""
    return None if value is None else integer(argument, value, least=least, most=most)


def moment(argument: str, value: object) -> datetime:
    """Return a moment in UTC; a time without a time zone is refused."""
    if not isinstance(value, datetime):
        raise mistyped(f"{argument} must be a datetime", value)
    if value.utcoffset() is None:
        raise invalid(f"{argument} must have a time zone", value)
    try:
        return value.astimezone(timezone.utc)
    except OverflowError as error:
        raise invalid(f"{argument} must be in the years 1 to 9999 of UTC", value) from error


def seed(value: object) -> int | None:
    """Return a seed, or None for fresh randomness from the operating system."""
    return None if value is None else integer("seed", value, least=0, most=2**64 - 1)


def probability(argument: str, value: object) -> float:
    """Return a probability in (0, 1]."""
    result = number(argument, value)
    if not 0.0 < result <= 1.0:
        raise invalid(f"{argument} must be a probability in (0, 1]", result)
    return result


def confidence(argument: str, value: object) -> float:
    """Return a confidence level in (0, 1)."""
    result = number(argument, value)
    if not 0.0 < result < 1.0:
        raise invalid(f"{argument} must be a level between 0 and 1", result)
    return result


def choice(argument: str, value: T, allowed: Collection[T]) -> T:
    """Return one of a few allowed values."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        listed = ", ".join(repr(option) for option in allowed)
        raise invalid(f"{argument} must be one of {listed}", value)
    return value


def instance(
    argument: str,
    value: T,
    kind: type[object] | tuple[type[object], ...],
    expected: str,
    *,
    private: bool = False,
) -> T:
    """Return a value of one of the given classes; a secret value is never shown."""
    if not isinstance(value, kind):
        raise mistyped(f"{argument} must be {expected}", Private(value) if private else value)
    return value


def refuse_booleans(argument: str, value: Any) -> None:
    """Refuse truth values among numbers, which NumPy would take for 0 and 1.

    The message does not say which: it may be a person's answer.

    Raises
    ------
    InvalidTypeError
        If a list or tuple, or one inside it, holds a truth value.
    """
    if not isinstance(value, (list, tuple)):
        return
    kinds = set(map(type, value))
    if kinds & {bool, np.bool_} and kinds - {bool, np.bool_}:
        position = next(n for n, entry in enumerate(value) if isinstance(entry, (bool, np.bool_)))
        raise mistyped(f"{argument}[{position}] must be a number", Private(value[position]))
    if kinds & {list, tuple}:
        for position, entry in enumerate(value):
            refuse_booleans(f"{argument}[{position}]", entry)


def as_array(argument: str, value: Any, expected: str, *, private: bool = False) -> Array:
    """Convert a value to a NumPy array of any shape and type.

    Parameters
    ----------
    argument, value
        The name of the argument, and the value to convert.
    expected
        What was expected, for the message.
    private
        Whether the value belongs to a person: then the message does not show it.

    Raises
    ------
    InvalidTypeError
        If NumPy cannot convert it; the message contains ``expected``.

    Examples
    --------
    >>> as_array("points", [[1, 2]], "an array").shape
    (1, 2)
    """
    try:
        return np.asarray(value)
    except Exception as error:
        # Anything can go wrong in the conversion of foreign objects.
        cause = error
    # Here, where nothing is being handled: NumPy's text shows entries.
    refusal = mistyped(f"{argument} must be {expected}", Private(value) if private else value)
    raise refusal from (None if private else cause)


def vector(
    argument: str,
    value: Any,
    expected: str,
    holds: str = "real numbers",
    kinds: str = "iuf",
    *,
    private: bool = False,
) -> Array:
    """Convert a value to a one-dimensional array of numbers.

    Parameters
    ----------
    argument, value
        The name of the argument, and the value to convert.
    expected, holds
        What was expected of the whole and of its entries, for the message.
    kinds
        The NumPy kinds of numbers that are accepted.
    private
        Whether the numbers belong to people: then no message shows one.
    """
    refuse_booleans(argument, value)
    array = as_array(argument, value, expected, private=private)
    if array.ndim != 1:
        given_as = "a value" if private else shown(value)
        raise InvalidTypeError(
            f"{argument} must be one-dimensional: {expected}, got {given_as} of shape {array.shape}"
        )
    if array.dtype.kind == "f" and not hasattr(value, "dtype"):
        # Integers around 2^63 in a list would become floats and lose their last digits.
        given = list(value)
        if all(isinstance(entry, int) for entry in given):
            array = np.array(given, dtype=object)
    if array.dtype.kind == "O":
        entries = array.tolist()
        for position, entry in enumerate(entries):
            got = Private(entry) if private else entry
            if isinstance(entry, bool) or not isinstance(entry, (int, float, np.number)):
                raise InvalidTypeError(
                    f"{argument}[{position}] must be a number, got {shown(got)}: {argument} "
                    f"must hold {holds}"
                )
            if isinstance(entry, int) and not -(2**63) <= entry < 2**64:
                raise invalid(f"{argument}[{position}] must be a number of at most 64 bits", got)
        whole = all(isinstance(entry, int) and entry >= 0 for entry in entries)
        array = np.array(entries, dtype=np.uint64 if whole else None)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in kinds:
        raise InvalidTypeError(
            f"{argument} must hold {holds}, got dtype {array.dtype}: expected {expected}"
        )
    return array.astype(np.float64) if array.dtype.kind == "f" else array


#: What there is one number for, unless it is something else.
_CODES = "codes of the domain"


def _for_each_code(
    argument: str, value: Any, size: int, one: str, entries: str, *holds: str, of: str = _CODES
) -> Array:
    """Return a vector of one number for each code, or for each of something else."""
    expected = f"{one} for each of the {size} {of}"
    array = vector(argument, value, f"{expected}: a sequence of {size} {entries}", *holds)
    if array.size != size:
        raise InvalidValueError(f"{argument} must have {expected}, got shape {array.shape}")
    return array


def counts(argument: str, value: Any, size: int, of: str = _CODES) -> Unsigned:
    """Return one non-negative whole number for each code, as uint64; their sum fits too."""
    array = _for_each_code(argument, value, size, "one count", "counts", "whole numbers", of=of)
    if array.dtype.kind == "u":
        return array.astype(np.uint64)
    wrong = array < 0
    if array.dtype.kind == "f":
        wrong |= ~(array < 2.0**64) | (array != np.floor(array))
    refuse_entries(argument, array, wrong, "a non-negative whole number below 2^64")
    return array.astype(np.uint64)


def scores(argument: str, value: Any, size: int) -> Integers:
    """Return one whole number for each code, which may be negative, as int64."""
    whole = "whole numbers"
    array = _for_each_code(argument, value, size, "one sum of scores", whole, whole, "iu")
    if array.dtype.kind == "u":
        wrong = array > np.uint64(2**63 - 1)
        refuse_entries(argument, array, wrong, "a whole number from -2^63 to 2^63 - 1")
    return array.astype(np.int64)


def frequencies(argument: str, value: Any, size: int, of: str = _CODES) -> Floats:
    """Return one finite number for each code, as float64."""
    array = _for_each_code(argument, value, size, "one number", "numbers", of=of)
    array = array.astype(np.float64)
    refuse_entries(argument, array, ~np.isfinite(array), "finite")
    return array


def refuse_entries(
    argument: str,
    array: Array,
    wrong: Truths,
    expected: str,
    error: type[InvalidValueError] = InvalidValueError,
    *,
    private: bool = False,
) -> None:
    """Refuse an array with wrong entries, and name the first one; a person's entry is not shown."""
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        got = "" if private else f", got {array[place]}"
        raise error(f"{argument}[{', '.join(map(str, place))}] must be {expected}{got}")


def items(argument: str, value: Any, expected: str, *, private: bool = False) -> list[Any]:
    """Return the entries of an iterable other than text; a person's entry is never shown."""
    if not isinstance(value, (str, bytes)):
        with contextlib.suppress(Exception):
            # Anything can go wrong while a foreign object is iterated over.
            return list(value)
    raise mistyped(f"{argument} must be {expected}", Private(value) if private else value)


def names(argument: str, given: Any, what: str) -> tuple[str, ...]:
    """Return one or several names as a tuple of distinct texts."""
    expected = f"a name or names of {what}"
    found = items(argument, [given] if isinstance(given, str) else given, expected)
    for name in found:
        instance(argument, name, str, expected)
    if len(set(found)) < len(found):
        raise InvalidValueError(f"{argument} must name different {what}, got {found}")
    return tuple(map(str, found))


def listed(values: Collection[object]) -> str:
    """Name the first few of some values."""
    first = [shown(value) for _, value in zip(range(_MANY), values, strict=False)]
    return ", ".join(first) + (", ..." if len(values) > _MANY else "")
