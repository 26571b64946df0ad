"""Conversion of the values of a column to codes of a domain, or to numbers within bounds.

Whatever has to be decided about a value is decided once a distinct value of a stretch of a column;
rows are mapped through an index.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from turnout import _arguments, _columns
from turnout._columns import offenders, unquoted
from turnout._extras import require
from turnout._label_texts import INTEGER, label_text, missing_texts
from turnout._types import Array, Floats, Truths
from turnout.bounds import ROUNDED, Bounds, rounded
from turnout.domain import Domain
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)
from turnout.pipeline.columns import factors
from turnout.pipeline.rows import Rows, is_missing, trimmed

#: Integers within whatever bounds there can be.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)


#: What stands for no code.
UNKNOWN: Final = -1
MISSING: Final = -2


class Labels:
    """The conversion of the values of a column to codes of a domain.

    Parameters
    ----------
    domain
        The labels.
    missing
        None, ``"drop"``, or the label that a missing value becomes.
    missing_values
        Texts that stand for a missing value, beside the usual ones that are no label.
    texts
        Whether values are matched with the texts of the labels: the column is text because its file
        knows nothing else, or its labels are texts of numbers.
    trim
        Whether white space around a text is taken off before it is matched.
    name
        What messages call the column.

    Raises
    ------
    UnknownLabelError
        If ``missing`` is no label of the domain.
    InvalidValueError
        If two labels are written alike and values are matched by their texts.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        missing: Hashable,
        missing_values: frozenset[str],
        texts: bool,
        trim: bool,
        name: str,
    ) -> None:
        self.domain, self.texts, self.trim, self.name = domain, texts, trim, name
        listed = domain._listed
        self.missing_values = missing_texts(listed, missing_values)
        self._by_text = _by_text(listed) if texts and listed else None
        # Among numbers "nan" is no number: a missing one.
        self._nan = texts and all(
            isinstance(label, (int, float)) and not isinstance(label, bool)
            for label in listed or [domain.parse("0")]
        )
        #: The code of missing values, "drop" if they are dropped, None if they are refused.
        self.missing = self._code_of_missing(missing)

    def _code_of_missing(self, missing: Hashable) -> int | Literal["drop"] | None:
        if missing is None:
            # A domain may have None as a label.
            code = self._find(None)
            return code if code >= 0 else None
        if isinstance(missing, str) and missing == "drop":
            return "drop"
        code = self._find(missing)
        if code < 0:
            code = self._find_text(missing) if isinstance(missing, str) else code
        if code < 0:
            raise UnknownLabelError(
                f"{self.name}: missing must be a label of the domain or 'drop', got "
                f"{_arguments.shown(missing)}"
            )
        return code

    def _find(self, value: Any) -> int:
        code = self.domain.find(value)
        return UNKNOWN if code is None else code

    def _find_text(self, text: str) -> int:
        if self._by_text is not None:
            return self._by_text.get(text, UNKNOWN)
        return self._find(self.domain.parse(text))

    def code(self, value: Any) -> int:
        """Return the code of one value: MISSING or UNKNOWN if it has none."""
        value = trimmed(value) if self.trim else value
        if is_missing(value, self.missing_values):
            return MISSING
        if not self.texts:
            return self._find(value)
        if not isinstance(value, str):
            whole = isinstance(value, float) and value.is_integer()
            return self._find_text(label_text(int(value) if whole else value))
        if self._nan and value.lower() in ("nan", "-nan"):
            return MISSING
        return self._find_text(value)

    def _encoded(self, column: Any, rows: Rows) -> tuple[Array, Truths | None]:
        """Return the codes of a column.

        Parameters
        ----------
        column
            A ``pyarrow.ChunkedArray``.
        rows
            The rows that it is of.

        Returns
        -------
        codes : numpy.ndarray
            A code for each entry; any code where it is dropped.
        dropped : numpy.ndarray or None
            Which entries are dropped; None if none is.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If a value is no label.
        InvalidValueError
            If a value is missing and nothing says what that means.
        """
        types = require("pyarrow", "cli").types
        direct = self.domain._are_codes and not self.texts
        if direct and (types.is_integer(column.type) or types.is_floating(column.type)):
            codes, missing = self._numbers(column, rows)
        else:
            codes, missing = self._through_dictionaries(column, rows)
        return rows.answered(
            column, self.name, codes, missing, self.missing, labels="one of the labels"
        )

    def _numbers(self, column: Any, rows: Rows) -> tuple[Array, Truths | None]:
        """Return numbers that are codes themselves; one chunk without nulls is not copied."""
        pa = require("pyarrow", "cli")
        gaps: list[Truths] = []
        if column.null_count:
            gaps.append(column.is_null().to_numpy())
            column = column.fill_null(0)
        parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
        values = np.concatenate(parts or [np.empty(0, np.int64)]) if len(parts) != 1 else parts[0]
        floating = bool(pa.types.is_floating(column.type))
        if floating:
            gaps.append(np.isnan(values))
        integers = [
            int(text)
            for text in self.missing_values
            if INTEGER.fullmatch(text) and abs(int(text)) < 2**63
        ]
        if integers:
            gaps.append(np.isin(values, integers))
        missing = np.logical_or.reduce(gaps) if gaps else None
        if missing is not None and missing.any():
            values = np.where(missing, values.dtype.type(0), values)
        else:
            missing = None
        size = self.domain.size
        whole = not floating or bool((values == np.floor(values)).all())
        if values.size and not (values.min() >= 0 and values.max() < size and whole):
            wrong = ~((values >= 0) & (values < size))
            if floating:
                wrong |= values != np.floor(values)
            positions = np.flatnonzero(wrong)
            different, counts = np.unique(values[positions], return_counts=True)
            known = dict(zip(different.tolist(), counts.tolist(), strict=True))
            raise CodeOutsideDomainError(
                f"{self.name}: {positions.size:,} values are not codes of the domain, whole "
                f"numbers from 0 to {size - 1}"
                f"{_columns.offenders(known, f' ({rows.text(positions)})')}"
            )
        if values.dtype not in _columns.NATIVE:
            values = values.astype(np.int64)
        return values, missing

    def _through_dictionaries(self, column: Any, rows: Rows) -> tuple[Array, Truths | None]:
        """Look up distinct values, and map the index of each row."""
        tables: list[tuple[Array, Array]] = []
        unknown: Counter[Any] = Counter()
        wrong: list[Array] = []
        start, gaps = 0, False
        previous: list[Any] = []
        table = np.empty(0, np.int64)
        dtype = np.dtype(np.int64) if self.domain._are_codes else self.domain._code_dtype
        for distinct, index in factors(column, self.name):
            if distinct is not previous:
                table = np.fromiter(map(self.code, distinct), np.int64, len(distinct))
                previous = distinct
            if (table[:-1] < 0).any() or (index == len(distinct) - 1).any():
                counts = np.bincount(index, minlength=len(distinct))
                used = counts > 0
                bad = used & (table == UNKNOWN)
                if bad.any():
                    for place in np.flatnonzero(bad):
                        unknown[_columns.key(distinct[place])] += int(counts[place])
                    wrong.append(np.flatnonzero(bad[index]) + start)
                gaps = gaps or bool((used & (table == MISSING)).any())
            tables.append((table, index))
            start += len(index)
        if wrong:
            found = np.concatenate(wrong)
            raise UnknownLabelError(
                f"{self.name}: {found.size:,} values are not among {self.domain._words}"
                f"{_columns.offenders(unknown, f' ({rows.text(found)})')}{self._hint(unknown)}"
            )
        codes = [(np.maximum(table, 0).astype(dtype), index) for table, index in tables]
        missing = [(table == MISSING, index) for table, index in tables]
        return _looked_up(codes, dtype), _looked_up(missing, np.dtype(bool)) if gaps else None

    def _hint(self, unknown: Iterable[Any]) -> str:
        """State how values become labels that are hardly different from one."""
        texts = [value for value in unknown if isinstance(value, str)]
        if any(self._find_text(text.strip()) >= 0 for text in texts if text != text.strip()):
            return "; trim (--trim) takes white space off, and some are labels then"
        parts = [[part.strip() for part in text.split(",")] for text in texts if "," in text]
        if any(all(self._find_text(part) >= 0 for part in each) for each in parts):
            return (
                "; a label with a comma in it is one for --labels-file, which takes a label a line"
            )
        listed = [each for each in self.domain._listed or () if isinstance(each, str)]
        if {text.casefold() for text in texts} & {label.casefold() for label in listed}:
            return "; some differ from a label only by case"
        return ""


def _by_text(labels: Sequence[Any]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for code, label in enumerate(labels):
        if label is None:
            continue
        text = label if isinstance(label, str) else label_text(label)
        if text in found:
            raise InvalidValueError(
                f"domain: the labels {_arguments.shown(labels[found[text]])} and "
                f"{_arguments.shown(label)} look the same in a CSV file"
            )
        found[text] = code
    return found


_AT_ONCE: Final = 2**16


def _looked_up(tables: list[tuple[Array, Array]], dtype: np.dtype[Any]) -> Array:
    """Look the entries of an index up, a few at once: NumPy widens them to 64 bits."""
    found = np.empty(sum(len(index) for _, index in tables), dtype)
    place = 0
    for table, index in tables:
        for start in range(0, len(index), _AT_ONCE):
            few = index[start : start + _AT_ONCE]
            found[place : place + len(few)] = table.take(few)
            place += len(few)
    return found


class Numbers:
    """The conversion of the values of a column to numbers within bounds.

    Parameters
    ----------
    domain
        The numbers that can be given: one of each person.
    missing
        None, ``"drop"``, or the number that a missing value becomes.
    missing_values
        Texts that stand for a missing value, beside the usual ones.
    name
        What messages call the column.

    Raises
    ------
    InvalidTypeError
        If ``missing`` is no number.
    InvalidValueError
        If it is outside the bounds, or each person has several numbers.
    """

    def __init__(
        self, domain: Bounds, *, missing: Hashable, missing_values: frozenset[str], name: str
    ) -> None:
        if domain.dimensions > 1:
            raise InvalidValueError(
                "oracle must take one number of each person, as a column has, got one "
                f"for {domain.dimensions} numbers: pass them as an array"
            )
        self.domain, self.name = domain, name
        self.missing_values = missing_texts(more=missing_values)
        self.missing: float | str | None = None
        if missing == "drop":
            self.missing = "drop"
        elif missing is not None:
            number = _arguments.number(f"{name}: missing", missing)
            if not domain.low <= number <= domain.high:
                raise InvalidValueError(
                    f"{name}: missing must be 'drop' or a number within the bounds "
                    f"({domain.low}, {domain.high}), got {_arguments.shown(missing)}"
                )
            self.missing = number

    def _encoded(self, column: Any, rows: Rows) -> tuple[Array, Truths | None]:
        """Return the numbers of a column, as :meth:`turnout.pipeline.values.Labels._encoded` codes.

        Raises
        ------
        InvalidTypeError
            If the column holds no numbers.
        InvalidValueError
            If a value is no number or outside the bounds, or missing and nothing says what that
            means.
        """
        values = read_numbers(column, rows, self.missing_values, self.name)
        missing = np.isnan(values)
        low, high = self.domain.low, self.domain.high
        wrong = ~(((values >= low) & (values <= high)) | missing)
        if missing.any():
            values = np.where(missing, low, values)
        answered = rows.answered(
            column, self.name, values, missing, self.missing, labels="a number within the bounds"
        )
        if wrong.any():
            found = np.flatnonzero(wrong)
            raise InvalidValueError(
                f"{self.name}: {found.size:,} values are not within the bounds ({low}, {high}) "
                f"({rows.text(found)})"
            )
        return answered


def read_numbers(column: Any, rows: Rows, missing_values: frozenset[str], name: str) -> Floats:
    """Convert a column to float64; missing values become nan.

    Parameters
    ----------
    column, rows
        A ``pyarrow.ChunkedArray``, and the rows that it is of.
    missing_values
        Texts that stand for a missing value.
    name
        What messages call the column.

    Raises
    ------
    InvalidTypeError
        If the column has another type than one of numbers or text.
    InvalidValueError
        If a text is no number, or if an integer would be rounded.
    """
    pa = require("pyarrow", "cli")
    compute, types = require("pyarrow.compute", "cli"), pa.types
    kind = column.type
    if types.is_dictionary(kind):
        # Arrow takes no views.
        view = types.is_string_view(kind.value_type)
        kind = pa.large_string() if view else kind.value_type
        chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
        column = pa.chunked_array(chunks, kind)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        values = np.array(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
        values[np.isin(values, _numeric(missing_values))] = np.nan
        if not types.is_floating(kind):
            _refuse_rounded(column, values, rows, name)
        return values
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        if types.is_null(kind):
            return np.full(len(column), np.nan)
        raise InvalidTypeError(f"{name} has type {column.type}, expected numbers")
    listed = pa.array(sorted(missing_values), pa.large_string())
    with unquoted(CorruptDataError, f"{name} holds text that is not UTF-8"):
        texts = compute.utf8_trim_whitespace(column.cast(pa.large_string()))
        texts = compute.if_else(compute.is_in(texts, listed), None, texts)
    try:
        values = np.array(texts.cast(pa.float64()).to_numpy(), np.float64)
    except pa.ArrowInvalid:
        wrong = [text is not None and not _is_number(text) for text in texts.to_pylist()]
    else:
        _refuse_rounded(texts, values, rows, name)
        return values
    found = np.flatnonzero(wrong)
    counts = Counter(texts.take(pa.array(found)).to_pylist())
    which = offenders(counts, f" ({rows.text(found)})")
    raise InvalidValueError(f"{name}: {found.size:,} values are not numbers{which}")


def _refuse_rounded(column: Any, values: Array, rows: Rows, name: str) -> None:
    """Refuse integers that would be rounded."""
    beyond = np.flatnonzero(np.abs(values) >= 2**53)
    if not beyond.size:
        return
    entries = column.take(require("pyarrow", "cli").array(beyond)).to_pylist()
    given = [
        (int(entry) if _INTEGER.fullmatch(entry) else float(entry))
        if isinstance(entry, str)
        else entry
        for entry in entries
    ]
    found = np.flatnonzero(rounded(given, values[beyond]))
    if found.size:
        raise InvalidValueError(f"{name}: a value ({rows.text(beyond[found[:1]])}): {ROUNDED}")


def _numeric(texts: frozenset[str]) -> list[float]:
    return [float(text) for text in texts if _is_number(text)]


def _is_number(text: str) -> bool:
    """Whether Arrow reads the text as a number: Python also takes underscores, other digits."""
    if "_" in text or not text.isascii():
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
