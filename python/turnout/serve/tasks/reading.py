"""Read the parts of documents of tasks: members of objects, bytes as text, addresses."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from turnout import _arguments
from turnout.errors import CorruptDataError

T = TypeVar("T")


def text_of(data: bytes) -> str:
    """Write bytes in the form of addresses and files: base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def bytes_of(text: object, size: int | None = None) -> bytes:
    """Read what :func:`text_of` wrote.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if not isinstance(text, str) or re.fullmatch("[A-Za-z0-9_-]*", text) is None:
        raise ValueError("is not base64url without padding")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("is not base64url without padding") from error
    if (size is not None and len(data) != size) or text_of(data) != text:
        raise ValueError(f"is not the base64url of {size or 'some'} bytes")
    return data


class Members:
    """The members of an object of JSON, each of which is taken once."""

    def __init__(self, description: Any, word: str) -> None:
        if not isinstance(description, Mapping):
            raise CorruptDataError(f"{word} must be an object")
        self._left, self._word = dict(description), word

    def take(self, name: str, read: Callable[[Any], T]) -> T:
        """Take a member, and read it."""
        if name not in self._left:
            raise CorruptDataError(f"{self._word}: {name} is missing")
        try:
            return read(self._left.pop(name))
        except CorruptDataError:
            raise
        except ValueError as error:
            raise CorruptDataError(f"{self._word}: {name} {error}") from None

    def end(self) -> None:
        """Refuse members that are left."""
        if self._left:
            raise CorruptDataError(f"{self._word}: unknown {_arguments.shown(sorted(self._left))}")


def address(value: Any) -> str:
    """Read the address of an aggregator.

    Raises
    ------
    ValueError
        If it is not an address.
    """
    if isinstance(value, str) and value.isascii() and value.isprintable() and len(value) < 2**12:
        parts = urlsplit(value)
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        if parts.scheme in ("http", "https") and parts.hostname and plain and " " not in value:
            return value.rstrip("/") + "/"
    raise ValueError("must be an address: https://, a host, and perhaps a path")


def whole(least: int, most: int) -> Callable[[Any], int]:
    """Make a function that reads a whole number within bounds."""

    def read(value: Any) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return read


def positive(value: Any) -> float:
    """Read a number above 0."""
    if type(value) not in (int, float) or not (value > 0 and math.isfinite(value)):
        raise ValueError("must be a number above 0")
    return float(value)


def one_of(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    """Make a function that reads one of a few words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    return read


def matching(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    """Make a function that reads a text of a given form; no message shows the text."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise ValueError("is not what turnout task new writes there")
        return value

    return read


def interval_of(value: Any) -> tuple[int, int] | None:
    """Read a first time and a duration, or nothing."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("must be null, or a list of a first time and a duration")
    number = whole(0, 2**62)
    return number(value[0]), number(value[1])
