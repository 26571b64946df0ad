"""Labels and their codes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _columns
from turnout._documents import digest, object_schema
from turnout._label_texts import INTEGER, label_from_json, label_to_json
from turnout._labels import all_text, indexed, plain_label, types_of
from turnout._types import Integers
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)

_LARGEST = 2**32 - 1

Codes = npt.NDArray[np.unsignedinteger[Any]] | Integers


class Domain:
    """The possible answers, in a fixed order.

    A domain is public: it is part of the plan of a collection and must not be derived from private
    data. Label number ``i`` has code ``i``.

    Parameters
    ----------
    labels
        At least two distinct hashable labels. NumPy scalars count as the Python values they hold;
        NaN is refused, because it equals nothing.

    Raises
    ------
    InvalidTypeError
        If ``labels`` is not an ordered iterable of hashable values: the order of a set may differ
        from process to process.
    InvalidValueError
        If there are fewer than two labels, duplicates (``1``, ``1.0`` and ``True`` are equal), NaN,
        or a tuple of tuples nested more than 8 deep.

    Examples
    --------
    >>> domain = Domain(["never", "once", "often"])
    >>> domain.encode(["often", "never", "often"])
    array([2, 0, 2], dtype=uint8)
    >>> domain.decode([1, 1])
    ['once', 'once']
    """

    __slots__ = ("_index", "_labels")

    def __init__(self, labels: Iterable[Hashable]) -> None:
        if isinstance(labels, (set, frozenset)):
            raise InvalidTypeError(
                f"labels must be ordered, got the set {_arguments.shown(labels)}"
            )
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise _arguments.mistyped("labels must be an iterable of labels", labels)
        try:
            kept = tuple(labels)
            if not all_text(kept):
                kept = tuple(plain_label(label) for label in kept)
        except Exception as error:
            # Anything can go wrong while a foreign object is iterated over.
            raise _arguments.mistyped("labels must be an iterable of labels", labels) from error
        index = indexed(kept)
        codes = all(type(label) is int for label in kept) and kept == tuple(range(len(kept)))
        self._labels: Sequence[Hashable] = range(len(kept)) if codes else kept
        self._index: Mapping[Hashable, int] | None = None if codes else index
        if not 2 <= len(kept) <= _LARGEST:
            raise _arguments.invalid(f"labels must be at least 2 and at most {_LARGEST}", len(kept))

    @classmethod
    def from_values(cls, values: Any) -> Domain:
        """Build a domain from the distinct values of a column.

        Use it only for public values: the labels become part of the plan.

        Parameters
        ----------
        values
            Anything that :meth:`encode` takes.

        Returns
        -------
        Domain
            The values in ascending order, or in order of first appearance if they cannot be
            sorted.

        Raises
        ------
        InvalidValueError
            If there are missing values or fewer than two distinct ones.

        Examples
        --------
        >>> Domain.from_values(["b", "a", "b"]).labels
        ('a', 'b')
        """
        distinct: list[Any] = [plain_label(value) for value in _columns.distinct(values)]
        if any(
            value is None or (isinstance(value, float) and math.isnan(value)) for value in distinct
        ):
            raise InvalidValueError(
                "values has missing values: drop them, or give them their own label"
            )
        with contextlib.suppress(TypeError):
            distinct = sorted(distinct)
        return cls(distinct)

    @classmethod
    def from_integers(cls, size: int) -> Domain:
        """Build the domain of the integers ``0 .. size - 1``, whose labels are their codes.

        Parameters
        ----------
        size
            The number of codes, from 2 to 2^32 - 1.

        Returns
        -------
        Domain
            A domain whose codes need no look-up: it accepts an integer array of any width
            unchanged.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``size`` is not an integer in the range.

        Examples
        --------
        >>> Domain.from_integers(100).size
        100
        """
        size = _arguments.integer("size", size, least=2, most=_LARGEST)
        domain = cls.__new__(cls)
        domain._labels = range(size)
        domain._index = None
        return domain

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self._labels)

    @property
    def _are_codes(self) -> bool:
        """Whether the labels are the integers from 0 on, which equal their codes."""
        return self._index is None

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The labels in the order of their codes."""
        return tuple(self._labels)

    @property
    def _sequence(self) -> Sequence[Hashable]:
        """The labels as they are stored: integers from 0 on take up no memory."""
        return self._labels

    @property
    def _code_dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The smallest unsigned integer type that holds every code."""
        return np.dtype(
            np.uint8 if self.size <= 2**8 else np.uint16 if self.size <= 2**16 else np.uint32
        )

    @property
    def _listed(self) -> tuple[Hashable, ...]:
        """The labels to look values up in; empty if the labels equal their codes."""
        return () if self._are_codes else self.labels

    @property
    def _words(self) -> str:
        """The words for the possible values in messages."""
        return f"the {self.size} labels of the domain"

    def parse(self, text: str) -> Any:
        """Parse text into a label.

        Digits become a number if the labels are the integers from 0 on; other text is kept.

        Examples
        --------
        >>> Domain.from_integers(5).parse("3"), Domain(["no", "yes"]).parse("yes")
        (3, 'yes')
        """
        return int(text) if self._are_codes and INTEGER.fullmatch(text) else text

    def __len__(self) -> int:
        """Return the number of labels."""
        return self.size

    def __eq__(self, other: object) -> bool:
        """Compare labels, their types and their order."""
        if not isinstance(other, Domain):
            return NotImplemented
        if self._are_codes or other._are_codes:
            return self._are_codes and other._are_codes and self.size == other.size
        return self._labels == other._labels and types_of(self._labels) == types_of(other._labels)

    def __hash__(self) -> int:
        """Hash the labels."""
        return hash((self.size, self._labels))

    def __repr__(self) -> str:
        """Show the first labels."""
        if self._are_codes:
            return f"Domain.from_integers({self.size})"
        return f"Domain([{_arguments.listed(self._labels)}])"

    def encode(self, values: Any) -> Codes:
        """Return the codes of labels.

        Parameters
        ----------
        values
            A list or tuple, a one-dimensional NumPy array, a pandas, polars or pyarrow column, or
            anything with the Arrow C interface. Dictionary-encoded columns are mapped through
            their dictionary and never decoded. For integer labels, whole floating-point numbers are
            accepted.

        Returns
        -------
        numpy.ndarray
            One code for each value, of the smallest unsigned type. For a domain of integers, an
            array of uint8, uint16, uint32 or int64 is returned unchanged, and one of int8, int16,
            int32 or uint64 as a view of one of these types.

        Raises
        ------
        UnknownLabelError
            If a value is not a label. The message says how many are not, and the position of the
            first one. It shows values that at least ten entries have instead of a position; rarer
            ones are not shown.
        CodeOutsideDomainError
            The same for a domain of integers; no value is shown.
        InvalidTypeError
            If ``values`` is not a one-dimensional column.

        Examples
        --------
        >>> Domain.from_integers(3).encode([0, 2, 1])
        array([0, 2, 1])
        """
        codes = self.to_codes(values)
        if self._are_codes:
            self._check_codes("values", codes)
        return codes

    def to_codes(self, values: Any) -> Codes:
        """Return the codes of labels; for a domain of integers the kernel checks the range."""
        if self._index is None:
            return _columns.integer_codes(values, len(self._labels))
        return _columns.label_codes(values, self._index, self._code_dtype)

    def find(self, value: Any) -> int | None:
        """Return the code of one label, or None if it is not in the domain.

        Examples
        --------
        >>> Domain(["no", "yes"]).find("yes"), Domain.from_integers(3).find(3)
        (1, None)
        """
        if self._index is None:
            return _columns.whole_number(value, self.size)
        return self._index.get(value)

    def _check_codes(self, argument: str, codes: npt.NDArray[np.integer[Any]]) -> None:
        """Refuse integers that are not codes of the domain.

        Raises
        ------
        CodeOutsideDomainError
            If there is one; the message gives its position in the argument.
        """
        if not codes.size or (codes.min() >= 0 and codes.max() < self.size):
            return
        outside = (codes < 0) | (codes >= self.size)
        position = int(np.flatnonzero(outside)[0])
        raise CodeOutsideDomainError(
            f"{argument}[{position}] is not a code of the domain: expected an integer from 0 to "
            f"{self.size - 1} ({int(outside.sum())} such value(s) in all)"
        )

    def decode(self, codes: Any) -> list[Hashable]:
        """Return the labels of codes.

        Parameters
        ----------
        codes
            A one-dimensional array of integers, or a sequence of them.

        Returns
        -------
        list
            The label of each code.

        Raises
        ------
        InvalidTypeError
            If the codes are not integers in one dimension.
        CodeOutsideDomainError
            If a code is not below the size of the domain.

        Examples
        --------
        >>> Domain(["no", "yes"]).decode([1, 0])
        ['yes', 'no']
        """
        array = _arguments.vector(
            "codes", codes, "an array of integers", "integers", "iu", private=True
        )
        self._check_codes("codes", array)
        labels = self._labels
        return [labels[code] for code in array.tolist()]

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the labels, their types and their order, in hexadecimal.

        It is the same in every process and on every machine.
        """
        return digest(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the domain.

        Returns
        -------
        dict
            ``{"integers": size}`` or ``{"labels": [...]}``.

        Raises
        ------
        InvalidTypeError
            If a label is not text, a number, a boolean, None, or a tuple of these.

        Examples
        --------
        >>> Domain(["a", ("b", 1)]).to_dict()
        {'labels': ['a', {'tuple': ['b', 1]}]}
        """
        if self._are_codes:
            return {"integers": self.size}
        if all_text(self._labels):
            return {"labels": list(self._labels)}
        return {"labels": [label_to_json(label) for label in self._labels]}

    @classmethod
    def from_dict(cls, description: Any) -> Domain:
        """Rebuild a domain from :meth:`to_dict`.

        Parameters
        ----------
        description
            The result of :meth:`to_dict`, possibly after a JSON round trip.

        Returns
        -------
        Domain
            An equal domain.

        Raises
        ------
        CorruptDataError
            If it does not describe a domain.

        Examples
        --------
        >>> Domain.from_dict({"integers": 4}) == Domain.from_integers(4)
        True
        """
        try:
            match description:
                case {"integers": int(size), **rest} if not rest:
                    return cls.from_integers(size)
                case {"labels": list(labels), **rest} if not rest:
                    if not all_text(labels):
                        labels = [label_from_json(label) for label in labels]
                    return cls(labels)
        except (InvalidTypeError, InvalidValueError) as error:
            raise CorruptDataError(f"not the description of a domain: {error}") from error
        raise CorruptDataError(f"not the description of a domain: {_arguments.shown(description)}")

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of a domain's description; labels are ``#/$defs/label``."""
        integers = {"type": "integer", "minimum": 2, "maximum": _LARGEST}
        labels = {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/label"}}
        return {"oneOf": [object_schema({"integers": integers}), object_schema({"labels": labels})]}


def domain_of(argument: str, value: Any, least: int = 2) -> Domain:
    """Convert a list of labels or a number of codes to a domain; return a domain unchanged.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is none of these, or there are too few or too many answers.

    Examples
    --------
    >>> domain_of("domain", ["no", "yes"]).size, domain_of("domain", 5).size
    (2, 5)
    """
    if isinstance(value, Domain):
        return value
    if isinstance(value, (list, tuple)):
        return Domain(value)
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _arguments.mistyped(
            f"{argument} must be a Domain, a list of labels, or a number of codes", value
        )
    return Domain.from_integers(_arguments.integer(argument, value, least=least, most=_LARGEST))


def code_of(argument: str, domain: Any, label: Hashable) -> int:
    """Return the code of a label that the caller names; errors may show it.

    Raises
    ------
    UnknownLabelError
        If it is not in the domain.

    Examples
    --------
    >>> code_of("low", Domain(["no", "yes"]), "yes")
    1
    """
    try:
        return int(domain.encode([label])[0])
    except (InvalidTypeError, InvalidValueError):
        raise UnknownLabelError(
            f"{argument} must be a label of the domain, got {_arguments.shown(label)}"
        ) from None


def one_domain(domain_size: Any, domain: Any) -> Domain:
    """Return the domain from the one of two arguments that is given.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As :func:`domain_of`; also if both or neither are given.

    Examples
    --------
    >>> one_domain(5, None) == one_domain(None, 5)
    True
    """
    if (domain is None) == (domain_size is None):
        given = "neither" if domain is None else "both"
        raise InvalidValueError(
            f"domain or domain_size must be given: a list of answers or their number, got {given}"
        )
    return domain_of(*(("domain", domain) if domain_size is None else ("domain_size", domain_size)))
