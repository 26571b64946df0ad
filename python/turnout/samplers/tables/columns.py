"""Define what a column of a table may hold, and the public cells for its values."""

from __future__ import annotations

import abc
import datetime
import itertools
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._label_texts import label_text
from turnout._seeds import derived
from turnout._types import Floats, Integers
from turnout.domain import Domain
from turnout.errors import InvalidValueError

#: The number of cells of a column of numbers, where nothing is said.
BINS: Final = 16

#: More cells of one column are refused: own records would hardly fill them.
MOST_CELLS: Final = 2**12

#: Whole numbers of Arrow's int64, with room for differences.
LARGEST_WHOLE: Final = 2**62

_EPOCH: Final = datetime.datetime(1970, 1, 1)

#: The cells of so many different values are looked up once.
_REMEMBERED: Final = 2**14

_SECOND: Final = datetime.timedelta(seconds=1)

_EXPECTED: Final = (
    "a pair (low, high) of numbers or dates, a list of labels, bool, or a dictionary with bounds "
    "or labels"
)


@dataclass(frozen=True, eq=False)
class Column(abc.ABC):
    """A column: its name, and how values become codes of cells.

    Attributes
    ----------
    name
        The name of the column.
    missing
        Whether a value may be missing. The last cell is then for missing values.
    """

    name: str
    missing: bool

    @property
    @abc.abstractmethod
    def values(self) -> int:
        """The number of cells of values that are not missing."""

    @property
    def cells(self) -> int:
        """The number of cells."""
        return self.values + self.missing

    @property
    def names(self) -> list[str]:
        """A description of each cell in words; all of them differ."""
        named = [self._named(code) for code in range(self.values)]
        gone = "missing"
        while gone in named:
            gone = f"({gone})"
        return [*named, gone] if self.missing else named

    @abc.abstractmethod
    def _named(self, code: int) -> str:
        """Describe what a cell of values holds."""

    @property
    @abc.abstractmethod
    def sizes(self) -> Floats:
        """The size of each cell of values: a number of values, or a length."""

    @property
    @abc.abstractmethod
    def ordered(self) -> bool:
        """Whether neighbouring cells are alike."""

    @property
    @abc.abstractmethod
    def arrow_type(self) -> str:
        """The name of the Arrow type of a draw. It does not depend on anybody's data."""

    @property
    def shares(self) -> Floats:
        """The uniform distribution over the values; a missing value has the share of one cell."""
        shares: Floats = self.sizes / self.sizes.sum()
        if not self.missing:
            return shares
        rest = 1.0 / self.cells
        return np.append(shares * (1.0 - rest), rest)

    @property
    def log_sizes(self) -> Floats:
        """The logarithm of each cell's size; a missing value is a single value."""
        logs = np.log(self.sizes)
        return np.append(logs, 0.0) if self.missing else logs

    def encode(self, argument: str, values: Sequence[Any]) -> Integers:
        """Return the code of each value's cell.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a value cannot be in the column; the value is not shown.
        """
        codes = np.empty(len(values), np.int64)
        known: dict[tuple[type, Any], int] = {}
        for row, value in enumerate(values):
            # 1, 1.0 and True are equal, and not the same.
            key = (type(value), value)
            try:
                code = known.get(key)
            except TypeError:
                # A list is no value of any column.
                code = self._code_of(argument, row, value)
            if code is None:
                code = self._code_of(argument, row, value)
                if len(known) < _REMEMBERED:
                    known[key] = code
            codes[row] = code
        return codes

    def _code_of(self, argument: str, row: int, value: Any) -> int:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            if not self.missing:
                raise InvalidValueError(
                    f"{argument} has a missing value in column {self.name!r}, row {row}: say "
                    "in columns that it may be missing, with 'missing': True"
                )
            return self.values
        code = self._coded(value)
        if code is None:
            text = isinstance(value, str) and self.arrow_type != "string"
            raise InvalidValueError(
                f"{argument} must have {self.expected} in column {self.name!r}; the value of "
                f"row {row} is {'text: convert the column first' if text else 'not'}"
            )
        return code

    def fits(self, value: Any) -> bool:
        """Return whether a value that is not missing can be in the column."""
        return self._coded(value) is not None

    def _coded(self, value: Any) -> int | None:
        try:
            return self._code(value)
        except (TypeError, ValueError, OverflowError):
            return None

    def decode(self, codes: Integers, seed: int | None) -> list[Any]:
        """Draw a value evenly from each cell; None for a missing value."""
        present = np.where(codes < self.values, codes, 0)
        drawn = self._drawn(present, seed)
        return [
            value if code < self.values else None
            for value, code in zip(drawn, codes.tolist(), strict=True)
        ]

    @property
    @abc.abstractmethod
    def expected(self) -> str:
        """What a value must be, in words."""

    @abc.abstractmethod
    def _code(self, value: Any) -> int | None:
        """Return the code of a value that is not missing; None if it cannot be in the column."""

    @abc.abstractmethod
    def _drawn(self, codes: Integers, seed: int | None) -> list[Any]:
        """Draw values of cells."""


@dataclass(frozen=True, eq=False)
class LabelColumn(Column):
    """A column of labels, with one cell for each label."""

    labels: tuple[Any, ...]
    ordered: bool = False

    @property
    def values(self) -> int:
        """The number of cells of values that are not missing."""
        return len(self.labels)

    def _named(self, code: int) -> str:
        return label_text(self.labels[code])

    @property
    def sizes(self) -> Floats:
        """The size of each cell of values."""
        return np.ones(len(self.labels))

    @property
    def arrow_type(self) -> str:
        """The name of the Arrow type of a draw."""
        return {bool: "bool", int: "int64"}.get(type(self.labels[0]), "string")

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return "one of the labels"

    @cached_property
    def _codes(self) -> dict[Any, int]:
        return {label: code for code, label in enumerate(self.labels)}

    def _code(self, value: Any) -> int | None:
        kind = type(self.labels[0])
        # pandas makes floating-point numbers of whole numbers where some are missing.
        if not isinstance(value, (kind, float)) or isinstance(value, bool) is not (kind is bool):
            return None
        return self._codes.get(value)

    def _drawn(self, codes: Integers, seed: int | None) -> list[Any]:
        return [self.labels[code] for code in codes.tolist()]


@dataclass(frozen=True, eq=False)
class WholeColumn(Column):
    """A column of whole numbers, days or seconds, whose cells hold neighbouring values."""

    low: int
    high: int
    bins: int
    unit: str = "int64"

    ordered = True

    @property
    def values(self) -> int:
        """The number of cells of values that are not missing."""
        return self.bins

    @cached_property
    def _starts(self) -> list[int]:
        size = self.high - self.low + 1
        return [self.low + size * place // self.bins for place in range(self.bins + 1)]

    def _named(self, code: int) -> str:
        first, after = self._starts[code : code + 2]
        low, high = self._value(first), self._value(after - 1)
        return f"{low}" if low == high else f"{low} to {high}"

    @property
    def sizes(self) -> Floats:
        """The size of each cell of values."""
        starts = self._starts
        return np.array([after - first for first, after in itertools.pairwise(starts)], float)

    @property
    def arrow_type(self) -> str:
        """The name of the Arrow type of a draw."""
        return self.unit

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        low, high = (self._value(number) for number in (self.low, self.high))
        kind = {"int64": "a whole number", "date32": "a date"}.get(
            self.unit, "a time without a time zone"
        )
        return f"{kind} from {low} to {high}"

    def _code(self, value: Any) -> int | None:
        number = whole_of(value, self.unit)
        if number is None or not self.low <= number <= self.high:
            return None
        return bisect_right(self._starts, number) - 1

    def _value(self, number: int) -> Any:
        if self.unit == "date32":
            return datetime.date.fromordinal(number)
        return _EPOCH + number * _SECOND if self.unit == "timestamp[us]" else number

    def _drawn(self, codes: Integers, seed: int | None) -> list[Any]:
        starts, steps = self._starts, np.empty(len(codes), np.int64)
        # Every cell that occurs, in turn: their sizes may differ by one.
        for code in np.unique(codes).tolist():
            own = codes == code
            size = starts[code + 1] - starts[code]
            steps[own] = _core.uniform_integers(size, int(own.sum()), derived(seed, code))
        places = zip(codes.tolist(), steps.tolist(), strict=True)
        return [self._value(starts[code] + step) for code, step in places]


@dataclass(frozen=True, eq=False)
class NumberColumn(Column):
    """A column of real numbers, whose cells have the same length."""

    low: float
    high: float
    bins: int

    ordered = True

    @property
    def values(self) -> int:
        """The number of cells of values that are not missing."""
        return self.bins

    def _named(self, code: int) -> str:
        # As many digits as tell the ends of all cells apart.
        ends = np.linspace(self.low, self.high, self.bins + 1).tolist()
        digits = next(n for n in range(4, 18) if len({f"{end:.{n}g}" for end in ends}) == len(ends))
        return f"{ends[code]:.{digits}g} to {ends[code + 1]:.{digits}g}"

    @property
    def sizes(self) -> Floats:
        """The size of each cell of values."""
        return np.full(self.bins, (self.high - self.low) / self.bins)

    @property
    def arrow_type(self) -> str:
        """The name of the Arrow type of a draw."""
        return "float64"

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return f"a number from {self.low} to {self.high}"

    def _code(self, value: Any) -> int | None:
        if isinstance(value, bool):
            return None
        number = float(value)
        if isinstance(value, str) or not self.low <= number <= self.high:
            return None
        place = int((number - self.low) / (self.high - self.low) * self.bins)
        return min(place, self.bins - 1)

    def _drawn(self, codes: Integers, seed: int | None) -> list[Any]:
        inside = (codes + _core.uniforms(len(codes), seed)) / self.bins
        drawn = np.clip(self.low + inside * (self.high - self.low), self.low, self.high)
        result: list[Any] = drawn.tolist()
        return result


def whole_of(value: Any, unit: str) -> int | None:
    """Return a value as a whole number of its unit, or None if it is of another type."""
    if unit == "int64":
        whole = not isinstance(value, (str, bool)) and int(value) == value
        return int(value) if whole else None
    if isinstance(value, datetime.datetime):
        # pandas has days as times at midnight.
        if unit == "timestamp[us]":
            return (value - _EPOCH) // _SECOND if value.tzinfo is None else None
        return value.toordinal() if value.time() == datetime.time() else None
    dated = unit == "date32" and isinstance(value, datetime.date)
    return value.toordinal() if dated else None


def columns_of(columns: Any) -> tuple[Column, ...]:
    """Read the parameter ``columns``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it does not describe columns; the message names the column.
    """
    if not isinstance(columns, Mapping):
        raise _arguments.mistyped(
            "columns must be a dictionary from the name of each column to what it holds", columns
        )
    if not columns:
        raise InvalidValueError("columns must have at least one column, got none")
    for name in columns:
        _arguments.instance("a name in columns", name, str, "a text")
    return tuple(_column(name, given) for name, given in columns.items())


def _column(name: str, given: Any) -> Column:
    argument = f"columns[{name!r}]"
    options: dict[str, Any] = {}
    if isinstance(given, Mapping):
        options = dict(given)
        known = ("bounds", "labels", "bins", "ordered", "missing")
        for option in options:
            _arguments.choice(f"an entry of {argument}", option, known)
        if ("bounds" in options) == ("labels" in options):
            raise _arguments.invalid(f"{argument} must have bounds or labels, and not both", given)
        unused = "bins" if "labels" in options else "ordered"
        if unused in options:
            raise InvalidValueError(
                f"{argument} must not have {unused}: bins are for bounds, and ordered for labels"
            )
        given = options.get("bounds", options.get("labels"))
        bounded = "bounds" in options
    else:
        bounded = isinstance(given, tuple)
    flags = {
        option: _arguments.instance(
            f"{argument}[{option!r}]", options.get(option, False), bool, "True or False"
        )
        for option in ("missing", "ordered")
    }
    if bounded:
        return _bounded(name, argument, given, options.get("bins"), flags["missing"])
    return _labelled(name, argument, given, **flags)


def _labelled(name: str, argument: str, given: Any, *, missing: bool, ordered: bool) -> LabelColumn:
    if given is bool:
        return LabelColumn(name, missing, (False, True), ordered)
    if not isinstance(given, (list, tuple, Domain)):
        raise _arguments.mistyped(f"{argument} must be {_EXPECTED}", given)
    labels = given.labels if isinstance(given, Domain) else given
    kinds = {type(label) for label in labels}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        raise _arguments.mistyped(
            f"the labels of {argument} must all be texts, or all whole numbers, or all booleans",
            given,
        )
    if len(set(labels)) != len(labels):
        raise _arguments.invalid(f"the labels of {argument} must be different", given)
    if not 2 <= len(labels) + missing <= MOST_CELLS:
        raise InvalidValueError(
            f"{argument} must have from 2 to {MOST_CELLS:,} labels, got {len(labels):,}"
        )
    if kinds == {int} and max(map(abs, labels)) > LARGEST_WHOLE:
        raise _arguments.invalid(f"the labels of {argument} must be within 2^62", given)
    return LabelColumn(name, missing, tuple(labels), ordered)


def _bounded(name: str, argument: str, given: Any, bins: Any, missing: bool) -> Column:
    expected = (
        f"the bounds of {argument} must be two numbers, dates or times (low, high), low < high"
    )
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise _arguments.mistyped(expected, given)
    unit = _unit(given)
    if unit is None:
        raise _arguments.mistyped(f"{expected}, of one type, and times without a time zone", given)
    wanted = None
    if bins is not None:
        wanted = _arguments.integer(f"{argument}['bins']", bins, least=2, most=MOST_CELLS)
    if unit == "float64":
        low, high = (float(bound) for bound in given)
        if not (low < high and math.isfinite(high - low)):
            raise _arguments.invalid(f"{expected}, and finite", given)
        return NumberColumn(name, missing, low, high, wanted or BINS)
    first, last = (whole_of(bound, unit) for bound in given)
    if first is None or last is None or not first < last:
        raise _arguments.invalid(expected, given)
    if max(-first, last) > LARGEST_WHOLE:
        raise _arguments.invalid(
            f"the bounds of {argument} must be from -2^62 to 2^62; floats as bounds ask for real "
            "numbers",
            given,
        )
    cells = min(wanted or BINS, last - first + 1)
    return WholeColumn(name, missing, first, last, cells, unit)


def _unit(given: Sequence[Any]) -> str | None:
    """Find what a column's values are from their bounds: whole only if both bounds are integers."""
    if any(isinstance(bound, (bool, np.bool_)) for bound in given):
        return None
    if all(isinstance(bound, datetime.datetime) for bound in given):
        return "timestamp[us]" if all(bound.tzinfo is None for bound in given) else None
    if any(isinstance(bound, datetime.datetime) for bound in given):
        return None
    if all(isinstance(bound, datetime.date) for bound in given):
        return "date32"
    if all(isinstance(bound, (int, np.integer)) for bound in given):
        return "int64"
    numbers = (int, float, np.integer, np.floating)
    return "float64" if all(isinstance(bound, numbers) for bound in given) else None


def table_codes(
    columns: Sequence[Column], argument: str, table: Mapping[str, Sequence[Any]]
) -> Integers:
    """Return the codes of the records of a table: int64 of shape (n, d)."""
    return np.stack([column.encode(argument, table[column.name]) for column in columns], axis=1)
