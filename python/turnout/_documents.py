"""Untrusted documents: JSON, its numbers, exact rationals as text, checksums.

A few bytes can describe a number that fills the memory (``1e999999999`` as a fraction). A number of
many digits takes time quadratic in their number to read. A value that is nested thousands deep
overflows the stack of a recursive reader. All readers of documents therefore use this module. It
accepts numbers of at most :data:`MOST_DIGITS` digits that floating point can hold, and values
nested at most :data:`MOST_DEPTH` deep. It refuses the words NaN and Infinity, which are not JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NoReturn

from turnout import _arguments
from turnout.errors import CorruptDataError, UnsupportedVersionError

#: The most digits of a whole number: of a fraction, of its numerator and of its denominator.
MOST_DIGITS = 1000

#: How deep a document may be nested: lists and objects within each other.
MOST_DEPTH = 64

#: What messages say of one that is nested deeper.
TOO_DEEP: Final = f"it is nested more than {MOST_DEPTH} deep"

_RATIONAL = re.compile(rf"(-?[0-9]{{1,{MOST_DIGITS}}})(?:/([0-9]{{1,{MOST_DIGITS}}}))?", re.ASCII)
_SHOWN = 20
_NESTING: Final = (dict, list, tuple, Mapping)
_FLAT: Final = frozenset((str, int, float, bool, type(None)))


def parsed(text: str | bytes | bytearray) -> Any:
    """Read JSON as :func:`json.loads` does, with bounded numbers and depth.

    A byte order mark at the beginning, which some editors write, is skipped.

    Raises
    ------
    ValueError
        If it is not JSON, holds a number of too many digits or out of range, or is nested deeper
        than :data:`MOST_DEPTH`.

    Examples
    --------
    >>> parsed('{"nodes":3,"rate":1e-2}')
    {'nodes': 3, 'rate': 0.01}
    >>> parsed("1e999")
    Traceback (most recent call last):
        ...
    ValueError: the number 1e999 is out of the range of floating point
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text))
    try:
        found = _DECODER.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if nested_deeper(found, MOST_DEPTH):
        raise ValueError(TOO_DEEP)
    return found


def nested_deeper(value: object, most: int) -> bool:
    """Return whether lists, tuples and mappings are nested deeper than a limit.

    Examples
    --------
    >>> nested_deeper([[]], 1), nested_deeper([[]], 2)
    (True, False)
    """
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(most):
        inner: list[Any] = []
        for each in level:
            children = each.values() if isinstance(each, Mapping) else each
            # A million labels have few types, and mostly none that nest.
            if not _FLAT.issuperset(map(type, children)):
                inner += (child for child in children if isinstance(child, _NESTING))
        if not inner:
            return False
        level = inner
    return bool(level)


def document(refusal: str, text: str | bytes | bytearray) -> Any:
    """Read untrusted JSON of any content.

    Raises
    ------
    CorruptDataError
        If it is not JSON; the message is that of :func:`parsed`.

    Examples
    --------
    >>> document("not a plan of turnout", "{")
    Traceback (most recent call last):
        ...
    turnout.errors.CorruptDataError: not a plan of turnout: Expecting property name enclosed in ...
    """
    try:
        return parsed(text)
    except ValueError as error:
        raise CorruptDataError(f"{refusal}: {error}") from error


def check_version(word: str, description: object, format: str | None, version: int) -> None:  # noqa: A002
    """Refuse a document of a version that this release does not read, by name.

    Parameters
    ----------
    word
        The name of such a document in messages.
    description
        The content. A document of another format or without a version is left to the caller.
    format, version
        The values of its members of these names.

    Raises
    ------
    UnsupportedVersionError
        If the document has another version.

    Examples
    --------
    >>> check_version("note", {"format": "notes", "version": 2}, "notes", 1)
    Traceback (most recent call last):
        ...
    turnout.errors.UnsupportedVersionError: the note has version 2; this release of turnout reads 1
    """
    if not isinstance(description, Mapping) or description.get("format") != format:
        return
    found = description.get("version", version)
    if type(found) is not int or found != version:
        raise UnsupportedVersionError(
            f"the {word} has version {_arguments.shown(found)}; this release of turnout reads "
            f"{version}"
        )


def object_schema(properties: Mapping[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON Schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def rational(text: str) -> Fraction:
    """Parse a fraction as ``str`` writes it: a whole number, or two with a slash in between.

    Raises
    ------
    ValueError
        If the text is not a fraction, or has more than :data:`MOST_DIGITS` digits.
    ZeroDivisionError
        If the denominator is zero.

    Examples
    --------
    >>> rational("-3"), rational("1/3")
    (Fraction(-3, 1), Fraction(1, 3))
    >>> rational("1e999999999")
    Traceback (most recent call last):
        ...
    ValueError: 1e999999999 is not a fraction of at most 1000 digits
    """
    match = _RATIONAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{_brief(text)} is not a fraction of at most {MOST_DIGITS} digits")
    return Fraction(int(match[1]), int(match[2] or 1))


@dataclass(frozen=True)
class SealedDocument:
    """Canonical JSON with a format, a version and a checksum.

    One object, keys sorted, no spaces, ASCII only. Its member ``sha256`` is the SHA-256 in
    hexadecimal of the same text without that member. The checksum finds accidents; anyone who can
    write the text can also recompute it.

    Parameters
    ----------
    word
        The name of such a document in messages.
    format, version
        The values of its members of these names.

    Examples
    --------
    >>> notes = SealedDocument("notebook", "turnout-notes", 1)
    >>> notes.read(notes.text({"format": "turnout-notes", "version": 1, "notes": []}))["notes"]
    []
    """

    word: str
    format: str
    version: int

    def text(self, description: dict[str, Any]) -> str:
        """Write a document with its format and version."""
        return canonical({**description, "sha256": digest(description)})

    def read(self, text: object) -> dict[str, Any]:
        """Read a document; its content is not checked.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read its version.
        CorruptDataError
            If it is not such a document, or was altered or truncated.
        InvalidTypeError
            If ``text`` is not text.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise _arguments.mistyped(f"text must be the JSON text of a {self.word}", text)
        try:
            characters = text if isinstance(text, str) else text.decode("ascii")
            description = parsed(characters)
            # A later version may have another checksum.
            self.check_version(description)
            checksum = description.pop("sha256", None) if isinstance(description, dict) else None
            # The same content can be written in many ways; one of them is what was written.
            genuine = (
                checksum is not None
                and checksum == digest(description)
                and characters == self.text(description)
            )
        except UnsupportedVersionError:
            raise
        except ValueError as error:
            raise CorruptDataError(f"not a {self.word} of turnout: {error}") from error
        if checksum is None:
            raise CorruptDataError(f"not a {self.word} of turnout: it has no checksum")
        if not genuine:
            raise CorruptDataError(
                f"the checksum does not match: the {self.word} was altered or truncated"
            )
        found: dict[str, Any] = description
        return found

    def check_version(self, description: object) -> None:
        """Refuse a document of a version that this release does not read, by name.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read its version.
        """
        check_version(self.word, description, self.format, self.version)


def canonical(description: dict[str, Any] | list[Any]) -> str:
    """Write JSON in canonical form: keys sorted, no spaces, ASCII only."""
    return json.dumps(description, sort_keys=True, separators=(",", ":"))


def digest(description: dict[str, Any]) -> str:
    """Return the SHA-256 of canonical JSON in hexadecimal."""
    return hashlib.sha256(canonical(description).encode("ascii")).hexdigest()


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {_brief(text)} has more than {MOST_DIGITS} digits")
    return int(text)


def _float(text: str) -> float:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {_brief(text)} has more than {MOST_DIGITS} digits")
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {_brief(text)} is out of the range of floating point")
    return value


def _refuse_constant(word: str) -> NoReturn:
    # NaN, Infinity, -Infinity: words that Python takes for numbers, and JSON does not have.
    raise ValueError(f"the word {word} is not a JSON number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Whoever writes many names must not make us compare each with all others.
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"an object has {_arguments.shown(twice)} twice")
    return found


def _brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_DECODER: Final = json.JSONDecoder(
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_refuse_constant,
    object_pairs_hook=_members,
)
