"""How the values of a column become numbers within bounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._columns import offenders, unquoted
from turnout._extras import require
from turnout._label_texts import missing_texts
from turnout._types import Array, Floats, Truths
from turnout.bounds import ROUNDED, Bounds, rounded
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.pipeline.encoding import Rows

#: Integers within whatever bounds there can be.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)


class Numbers:
    """How the values of a column become numbers within bounds.

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
                f"oracle must take one number of each person, as a column has, got one for "
                f"{domain.dimensions} numbers: hand those over as an array"
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
        """Give the numbers of a column, as :meth:`turnout.pipeline.encoding.Labels._encoded` codes.

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
    """Convert a column to float64; what is missing is nan.

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
    raise InvalidValueError(f"{name}: {found.size:,} values are no numbers{which}")


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
