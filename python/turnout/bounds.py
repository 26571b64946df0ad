"""Bounds of numeric answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from turnout import _arguments
from turnout._documents import object_schema
from turnout._types import Array, Floats, Self, Truths
from turnout._values import settle
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: How far apart bounds can be.
_SMALLEST, _LARGEST = 1e-100, 1e100

#: The most numbers that a node can hold.
MOST_DIMENSIONS: Final = 65_536

#: Up to here float64 holds every integer; the next one is rounded to it.
_EXACT: Final = 2**53

#: What is said of an integer that it does not hold.
ROUNDED: Final = (
    "float64 does not hold it and would round it: subtract a public number from all values and "
    "from the bounds"
)


@dataclass(frozen=True)
class Bounds:
    """Public limits of numeric answers, for one or several numbers of each node.

    Bounds are part of the plan of a collection and must not be derived from private data.

    Parameters
    ----------
    low, high
        The least and the largest value: finite, ``low`` below ``high``.
    dimensions
        How many numbers a node holds, from 1 to 65,536.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> Bounds(0, 10).encode([2, 7.5])
    array([2. , 7.5])
    >>> Bounds.from_dict(Bounds(0, 10).to_dict()) == Bounds(0, 10)
    True
    """

    low: float
    high: float
    dimensions: int = 1

    #: What a description has beside the bounds, the least and the largest it can be.
    _beside: ClassVar[tuple[str, int, int]] = ("dimensions", 1, MOST_DIMENSIONS)

    def __post_init__(self) -> None:
        """Check the fields."""
        settle(
            self,
            low=_arguments.number("low", self.low) + 0.0,
            high=_arguments.number("high", self.high) + 0.0,
            dimensions=_arguments.integer(
                "dimensions", self.dimensions, least=1, most=MOST_DIMENSIONS
            ),
        )
        if not (_SMALLEST <= self.high - self.low <= _LARGEST):
            raise InvalidValueError(
                "bounds must be two finite numbers, the lower before the upper and 1e-100 to 1e100 "
                f"apart, got ({self.low}, {self.high})"
            )

    @classmethod
    def _from_pair(cls, pair: Any, dimensions: int = 1) -> Bounds:
        """Convert a pair of numbers to bounds; return bounds unchanged.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is not a pair of numbers that can be bounds.

        Examples
        --------
        >>> Bounds._from_pair((0, 1))
        Bounds(low=0.0, high=1.0, dimensions=1)
        """
        if isinstance(pair, Bounds):
            return cls(pair.low, pair.high, max(dimensions, pair.dimensions))
        limits = _arguments.vector("bounds", pair, "a pair of real numbers (low, high)")
        if limits.size != 2:
            raise _arguments.invalid("bounds must be a pair of real numbers (low, high)", pair)
        return cls(float(limits[0]), float(limits[1]), dimensions)

    @property
    def size(self) -> int:
        """The number of numbers that a node holds."""
        return self.dimensions

    @property
    def _half(self) -> float:
        """Half the distance between the bounds."""
        return self.high / 2 - self.low / 2

    @property
    def _middle(self) -> float:
        """The value halfway between the bounds."""
        return self.low / 2 + self.high / 2

    def encode(self, values: Any) -> Floats:
        """Convert values to numbers within the bounds.

        Parameters
        ----------
        values
            One number for each node; with several dimensions, one row for each node. Nothing is
            clipped.

        Returns
        -------
        numpy.ndarray
            float64, of shape ``(nodes,)``, or ``(nodes, dimensions)`` of several.

        Raises
        ------
        InvalidTypeError
            If they are not real numbers.
        InvalidValueError
            If the shape does not fit, or a value is outside the bounds or not a number.
        """
        array = self.to_codes(values)
        wrong = ~((array >= self.low) & (array <= self.high))
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            raise InvalidValueError(
                f"values[{', '.join(map(str, place))}] is not within the bounds ({self.low}, "
                f"{self.high}) ({int(wrong.sum())} such value(s) in all)"
            )
        return array

    def to_codes(self, values: Any) -> Floats:
        """Convert values to float64 of the right shape; the kernel checks the bounds."""
        one = self.dimensions == 1
        expected = (
            "one number for each node"
            if one
            else f"{self.dimensions} numbers for each node: shape (nodes, {self.dimensions})"
        )
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            place = tuple(int(index) for index in np.argwhere(np.ma.getmaskarray(values))[0])
            raise InvalidValueError(
                f"values{list(place)} must be a real number, got a masked value"
            )
        _arguments.refuse_booleans("values", values)
        array = _arguments.as_array("values", values, expected, private=True)
        if array.dtype.kind not in "iuf" and array.size:
            raise InvalidTypeError(
                f"values must be real numbers, {expected}, got dtype {array.dtype}"
            )
        if array.size == 0 and array.ndim == 1 and not one:
            array = array.reshape(0, self.dimensions)
        if array.ndim != (1 if one else 2) or not (one or array.shape[1] == self.dimensions):
            raise InvalidValueError(f"values must be {expected}, got shape {array.shape}")
        wrong = rounded(array if array.dtype.kind in "iu" else values, array)
        if wrong.any():
            place = tuple(int(index) for index in np.argwhere(wrong)[0])
            raise InvalidValueError(f"values[{', '.join(map(str, place))}]: {ROUNDED}")
        return np.ascontiguousarray(array, dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the bounds."""
        name = self._beside[0]
        return {"bounds": [self.low, self.high], name: getattr(self, name)}

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """Rebuild bounds from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it does not describe bounds.
        """
        wrong = f"not the description of bounds with {cls._beside[0]}"
        match description:
            case {"bounds": [low, high], **rest} if (
                {type(low), type(high)} <= {int, float}
                and list(rest) == [cls._beside[0]]
                and all(type(value) is int for value in rest.values())
            ):
                beside: dict[str, Any] = {str(name): value for name, value in rest.items()}
                try:
                    return cls(low, high, **beside)
                except (InvalidValueError, InvalidTypeError, OverflowError) as error:
                    raise CorruptDataError(f"{wrong}: {error}") from error
        raise CorruptDataError(f"{wrong}: {_arguments.shown(description)}")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of their description."""
        name, least, most = cls._beside
        pair = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
        size = {"type": "integer", "minimum": least, "maximum": most}
        return object_schema({"bounds": pair, name: size})


def rounded(values: Any, array: Array) -> Truths:
    """Return which integers float64 cannot hold exactly; below 2^53 it holds all.

    Parameters
    ----------
    values
        An array of integers, or a sequence of numbers, some of which may be integers.
    array
        The same values as an array of numbers, nan for entries to skip.

    Returns
    -------
    numpy.ndarray
        bool, of the shape of ``array``.

    Examples
    --------
    >>> found = np.array([2**53, 2**53 + 1, -(2**62), 2**63 - 1])
    >>> rounded(found, found).tolist()
    [False, True, False, True]
    >>> rounded([2**53 + 1, 0.5], np.array([2**53 + 1, 0.5])).tolist()
    [True, False]
    """
    # Comparisons with nan are false.
    beyond: Truths = (array >= _EXACT) | (array <= -_EXACT)
    if not beyond.any() or (isinstance(values, np.ndarray) and values.dtype.kind == "f"):
        return np.zeros(array.shape, np.bool_)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        floats = values.astype(np.float64)
        fits = floats < float(np.iinfo(values.dtype).max)
        lost: Truths = np.where(fits, floats, 0.0).astype(values.dtype) != values
        return lost
    whole = np.asarray(values, dtype=object)
    for index in zip(*np.nonzero(beyond), strict=True):
        value = whole[index]
        integer = not isinstance(value, (float, np.floating)) and value == int(value)
        beyond[index] = integer and int(value) != int(float(value))
    return beyond
