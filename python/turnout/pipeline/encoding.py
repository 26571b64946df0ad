"""From the columns of a block to codes, groups and pseudonyms.

Whatever has to be decided about a value is decided once a distinct value of a stretch of a column;
rows are mapped through an index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _columns
from turnout._extras import require
from turnout.cli.columns import label_text
from turnout.domain import Domain
from turnout.errors import (
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)

__all__ = ["EncodedBlock", "GroupIndex", "Labels", "codes_of", "factors", "groups_of", "rows_text"]

Array = npt.NDArray[Any]

_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
_UNKNOWN, _MISSING = -1, -2
_SHOWN: Final = 5
_SMALL: Final = 2**22


@dataclass(frozen=True, eq=False)
class GroupIndex:
    """Which group each row of a block is in.

    Attributes
    ----------
    keys
        The groups in order of first appearance: tuples with one plain Python value for each
        column; None where it is missing.
    index
        For each row that counts the position of its group in ``keys``.
    """

    keys: list[tuple[Any, ...]]
    index: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """The rows of a block that count, ready to be randomized. This is private data.

    Attributes
    ----------
    index
        The number of the block.
    codes
        The code of each row that counts, in order.
    probabilities
        The probability of each, or None.
    groups
        The group of each, or None.
    pseudonyms
        The pseudonym of each, 16 bytes a row, or None.
    rows
        How many rows the block has.
    dropped
        How many were left out because their answer is missing.
    refused
        How many were left out because another row of the same person counts.
    """

    index: int
    codes: Array = field(repr=False)
    probabilities: npt.NDArray[np.float64] | None = field(repr=False)
    groups: GroupIndex | None = field(repr=False)
    pseudonyms: npt.NDArray[np.uint8] | None = field(repr=False)
    rows: int
    dropped: int
    refused: int


class Labels:
    """How the values of a column become codes of a domain.

    Parameters
    ----------
    domain
        The labels.
    missing
        None, ``"drop"``, or the label that a missing value becomes.
    missing_values
        Texts that stand for a missing value.
    texts
        Whether the column is text because its file knows nothing else: values are then matched
        with the texts of the labels.
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
        name: str,
    ) -> None:
        self.domain, self.texts, self.name = domain, texts, name
        self.missing_values = missing_values
        self._by_text = _by_text(domain) if texts and not domain._integers else None
        # Among numbers "nan" is no number: a missing one.
        self._nan = texts and all(
            isinstance(label, (int, float)) and not isinstance(label, bool)
            for label in (() if domain._integers else domain.labels)
        )
        #: The code of missing values, _MISSING if they are dropped, None if they are refused.
        self.missing_code = self._code_of_missing(missing)

    def _code_of_missing(self, missing: Hashable) -> int | None:
        if missing is None:
            # A domain may have None as a label.
            code = self._find(None)
            return code if code >= 0 else None
        if isinstance(missing, str) and missing == "drop":
            return _MISSING
        code = self._find(missing)
        if code < 0:
            code = self._find_text(missing) if isinstance(missing, str) else code
        if code < 0:
            raise UnknownLabelError(
                f"missing must be a label of the domain or 'drop', got {_arguments.shown(missing)}"
            )
        return code

    def _find(self, value: Any) -> int:
        if self.domain._integers:
            code = _columns._whole_number(value, self.domain.size)
            return _UNKNOWN if code is None else code
        assert self.domain._index is not None
        return self.domain._index.get(value, _UNKNOWN)

    def _find_text(self, text: str) -> int:
        if self._by_text is not None:
            return self._by_text.get(text, _UNKNOWN)
        return self._find(int(text)) if _INTEGER.fullmatch(text) else _UNKNOWN

    def code(self, value: Any) -> int:
        """Give the code of one value: _MISSING or _UNKNOWN if it has none."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return _MISSING
        if self.missing_values and label_text(value) in self.missing_values:
            return _MISSING
        if not self.texts or not isinstance(value, str):
            return self._find(value)
        if self._nan and value.lower() in ("nan", "-nan"):
            return _MISSING
        return self._find_text(value)

    def missing_integers(self) -> list[int]:
        """Those of the texts that stand for missing values that are integers."""
        return [
            int(text)
            for text in self.missing_values
            if _INTEGER.fullmatch(text) and abs(int(text)) < 2**63
        ]


def _by_text(domain: Domain) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for code, label in enumerate(domain.labels):
        if label is None:
            continue
        text = label if isinstance(label, str) else label_text(label)  # type: ignore[arg-type]
        if text in found:
            raise InvalidValueError(
                f"domain: the labels {_arguments.shown(domain.labels[found[text]])} and "
                f"{_arguments.shown(label)} are written alike and cannot be told apart in a CSV "
                "file"
            )
        found[text] = code
    return found


def rows_text(rows: Array) -> str:
    """Name the first of some rows; the first row of data is row 1.

    Examples
    --------
    >>> rows_text(np.array([0, 4]))
    'rows 1, 5'
    """
    shown = ", ".join(f"{int(row) + 1:,}" for row in rows[:_SHOWN])
    return f"row{'s' if len(rows) > 1 else ''} {shown}{', ...' if len(rows) > _SHOWN else ''}"


def factors(column: Any) -> Iterator[tuple[list[Any], Array]]:
    """Reduce an Arrow column, chunk by chunk, to distinct values and the position of each row's.

    The last of the distinct values is None; nulls point at it. Some may be there twice, or not
    occur. Values of types that are no plain ones come as text (dates, decimals).
    """
    pa = require("pyarrow", "cli")
    for chunk in column.chunks:
        encoded = _encoded(pa, chunk)
        if encoded is None:
            yield [None], np.zeros(len(chunk), np.int32)
            continue
        values = _plain(pa, encoded.dictionary).to_pylist()
        indices = encoded.indices
        narrow = indices.type.bit_width < 32 or indices.type == pa.int32()
        if indices.null_count:
            indices = indices.cast(pa.int32() if narrow else pa.int64()).fill_null(len(values))
        yield [*values, None], indices.to_numpy(zero_copy_only=False)


def _encoded(pa: Any, chunk: Any) -> Any:
    """Make a dictionary array, or None of an array of nulls."""
    kind = chunk.type
    if isinstance(kind, pa.BaseExtensionType):
        chunk = chunk.storage
        kind = chunk.type
    if pa.types.is_null(kind):
        return None
    if pa.types.is_dictionary(kind):
        return None if pa.types.is_null(kind.value_type) else chunk
    if pa.types.is_boolean(kind) or _is_plain(pa.types, kind):
        return chunk.dictionary_encode()
    try:
        return chunk.dictionary_encode()
    except pa.ArrowException:
        return _plain(pa, chunk).dictionary_encode()


def _is_plain(types: Any, kind: Any) -> bool:
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
    )


def _plain(pa: Any, values: Any) -> Any:
    """Text of values that are not text, numbers or booleans."""
    if _is_plain(pa.types, values.type):
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowException as error:
        raise InvalidTypeError(
            f"a column of type {values.type} is not one of categories"
        ) from error


def codes_of(
    column: Any, labels: Labels, rows: Array | None, first_row: int
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Codes of a column.

    Parameters
    ----------
    column
        A ``pyarrow.ChunkedArray``.
    labels
        How values become codes.
    rows
        The row of each entry in the block; None if they are all there.
    first_row
        The number of the block's first row in the source.

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
    pa = require("pyarrow", "cli")

    def place(positions: Array) -> Array:
        return (positions if rows is None else rows[positions]) + first_row

    direct = labels.domain._integers and not labels.texts
    if direct and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        codes, missing = _numbers(column, labels, place)
    else:
        codes, missing = _through_dictionaries(column, labels, place)
    if missing is None or not missing.any():
        return codes, None
    if labels.missing_code is None:
        found = np.flatnonzero(missing)
        raise InvalidValueError(
            f"{labels.name}: {found.size:,} of {missing.size:,} answers are missing "
            f"({rows_text(place(found))}); missing says what they are: a label, or 'drop'"
        )
    if labels.missing_code == _MISSING:
        return codes, missing
    codes = np.array(codes)
    codes[missing] = labels.missing_code
    return codes, None


def _numbers(column: Any, labels: Labels, place: Any) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    """Numbers that are codes themselves: no look-up, and no copy of one chunk without nulls."""
    pa = require("pyarrow", "cli")
    floating = pa.types.is_floating(column.type)
    missing = np.zeros(len(column), bool)
    found = False
    if column.null_count:
        missing |= column.is_null().to_numpy()
        column = column.fill_null(0)
        found = True
    parts = [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]
    values = (
        parts[0]
        if len(parts) == 1
        else np.concatenate([np.empty(0, np.int64), *parts])
        if (not parts)
        else np.concatenate(parts)
    )
    if floating:
        missing |= np.isnan(values)
        found = True
    integers = labels.missing_integers()
    if integers:
        missing |= np.isin(values, integers)
        found = True
    size = labels.domain.size
    wrong = ~((values >= 0) & (values < size))
    if floating:
        wrong |= values != np.floor(values)
    wrong &= ~missing
    if wrong.any():
        positions = np.flatnonzero(wrong)
        shown = list(dict.fromkeys(values[positions[:1000]].tolist()))
        raise CodeOutsideDomainError(
            f"{labels.name}: {positions.size:,} values are not codes of the domain, whole numbers "
            f"from 0 to {size - 1}: {_arguments.listed(shown)} ({rows_text(place(positions))})"
        )
    found = found and bool(missing.any())
    if found:
        values = np.where(missing, values.dtype.type(0), values)
    if values.dtype not in _columns._NATIVE:
        values = values.astype(np.int64)
    return values, missing if found else None


def _through_dictionaries(
    column: Any, labels: Labels, place: Any
) -> tuple[Array, npt.NDArray[np.bool_] | None]:
    tables: list[tuple[Array, Array]] = []
    unknown: dict[Any, None] = {}
    wrong: list[Array] = []
    start, gaps = 0, False
    dtype = np.dtype(np.int64) if labels.domain._integers else labels.domain.code_dtype
    for distinct, index in factors(column):
        table = np.fromiter(map(labels.code, distinct), np.int64, len(distinct))
        if (table[:-1] < 0).any() or (index == len(distinct) - 1).any():
            used = np.bincount(index, minlength=len(distinct)) > 0
            bad = used & (table == _UNKNOWN)
            if bad.any():
                unknown.update((_key(distinct[i]), None) for i in np.flatnonzero(bad))
                wrong.append(np.flatnonzero(bad[index]) + start)
            gaps = gaps or bool((used & (table == _MISSING)).any())
        tables.append((table, index))
        start += len(index)
    if wrong:
        rows = np.concatenate(wrong)
        raise UnknownLabelError(
            f"{labels.name}: {rows.size:,} values are not among the {labels.domain.size} labels of "
            f"the domain: {_arguments.listed(unknown)} ({rows_text(place(rows))})"
        )
    codes = [np.maximum(table, 0).astype(dtype)[index] for table, index in tables]
    missing = [(table == _MISSING)[index] for table, index in tables] if gaps else []
    whole = codes[0] if len(codes) == 1 else np.concatenate([np.empty(0, dtype), *codes])
    return whole, np.concatenate(missing) if gaps else None


def _key(value: Any) -> Any:
    return _columns._key(value)


def groups_of(table: Any, columns: Sequence[str], max_groups: int, name: str) -> GroupIndex:
    """Index the groups of the rows of a table.

    Parameters
    ----------
    table, columns
        A ``pyarrow.Table`` and those of its columns that make up the groups.
    max_groups
        The largest number of groups that is accepted.
    name
        What messages call the source.

    Raises
    ------
    InvalidValueError
        If there are more groups.
    """
    code = np.zeros(table.num_rows, np.int64)
    keys: list[tuple[Any, ...]] = [()] if table.num_rows else []
    for column in columns:
        values, index = _values(table.column(column))
        code = code * len(values) + index
        code, present = _compact(code, len(keys) * len(values))
        if present.size > max_groups:
            raise InvalidValueError(
                f"{name}: group_by makes more than {max_groups:,} groups (column {column!r}); "
                "group by columns with few values, or raise max_groups"
            )
        pairs = zip(
            (present // len(values)).tolist(), (present % len(values)).tolist(), strict=True
        )
        keys = [(*keys[before], values[now]) for before, now in pairs]
    return GroupIndex(keys, code.astype(np.int32))


def _values(column: Any) -> tuple[list[Any], Array]:
    """List the values that occur in a column, in order of first appearance, and each row's."""
    pa = require("pyarrow", "cli")
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz))
    position: dict[Any, int] = {}
    parts = []
    for chunk in column.chunks:
        encoded = _encoded(pa, chunk)
        if encoded is None:
            values, index = [None], np.zeros(len(chunk), np.int64)
        else:
            values = [*_group_values(pa, encoded.dictionary), None]
            indices = encoded.indices.cast(pa.int64())
            index = indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
        index, present = _compact(index, len(values))
        kept = (_group_key(values[i]) for i in present.tolist())
        target = np.fromiter(
            (position.setdefault(value, len(position)) for value in kept), np.int64, present.size
        )
        parts.append(target[index] if present.size else index)
    keys = [value[1] for value in position]
    return keys or [None], np.concatenate([np.empty(0, np.int64), *parts])


def _group_key(value: Any) -> tuple[type, Any]:
    """Keep True and 1 apart; NaN is missing, and there is one zero."""
    if isinstance(value, float):
        value = None if math.isnan(value) else value + 0.0
    return type(value), value


def _group_values(pa: Any, dictionary: Any) -> list[Any]:
    kept = pa.types.is_date(dictionary.type) or pa.types.is_timestamp(dictionary.type)
    values = dictionary if kept else _plain(pa, dictionary)
    return values.to_pylist()  # type: ignore[no-any-return]


def _compact(code: Array, size: int) -> tuple[Array, Array]:
    """Renumber codes below ``size`` in order of first appearance; also give the old codes."""
    if not code.size:
        return code, np.empty(0, np.int64)
    if size <= max(_SMALL, 4 * code.size):
        first = np.full(size, code.size, np.int64)
        first[code[::-1]] = np.arange(code.size - 1, -1, -1)
        present = np.flatnonzero(first < code.size)
        present = present[np.argsort(first[present], kind="stable")]
        target = np.zeros(size, np.int64)
        target[present] = np.arange(present.size)
        return target[code], present
    unique, first, index = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    target = np.empty(order.size, np.int64)
    target[order] = np.arange(order.size)
    return target[index], unique[order]
