"""The records of users: columns of a file, as numbers or as labels of a finite domain."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from turnout import Domain
from turnout._files import read_bytes
from turnout._label_texts import Value, label_text, parse_label
from turnout._progress import doing
from turnout._types import Array, Floats, Integers
from turnout.cli.running import note
from turnout.cli.sample.columns import Column, read_columns, settle_domain
from turnout.cli.sample.options import LABEL_METHODS, NUMBER_METHODS, Wanted
from turnout.errors import InvalidValueError
from turnout.pipeline.columns import rows_text

#: The largest product of label sets: all probabilities of a user are held in memory.
_LARGEST_DOMAIN = 2**24

_FEWEST_LABELS = 2

_PADDED = re.compile(r"[+-]?0[0-9]")


@dataclass(frozen=True)
class Records:
    """The records of all users.

    Attributes
    ----------
    columns
        The names of their columns.
    data
        Numbers of shape (n, d), or n labels of ``domain``.
    users
        Whose they are: n ids, or row numbers from 1 where every row is a user of its own.
    labels
        For labels the possible ones of each column.
    domain
        For labels the domain: those of the only column, or the combinations of all, each a text.
    dropped
        How many rows were left out because something is missing in them.
    """

    columns: tuple[str, ...]
    data: Array
    users: Array
    labels: tuple[tuple[Value, ...], ...] | None
    domain: Domain | None
    dropped: int

    def columns_of(self, draws: Array) -> list[Array]:
        """Give draws as columns: of float64 numbers, or of labels."""
        if self.labels is None or self.domain is None:
            return list(draws.T)
        rest = np.asarray(self.domain.encode(draws)).astype(np.int64)
        result: list[Array] = []
        for labels in reversed(self.labels):
            rest, codes = np.divmod(rest, len(labels))
            result.append(_array_of(labels)[codes])
        return result[::-1]


def read_records(source: Path, wanted: Wanted) -> Records:
    """Read the columns and decide whether they are numbers or labels.

    Raises
    ------
    InvalidValueError
        If a column cannot be read or is not what the options say, values are missing and nothing
        says what they are, or numbers are outside their bounds.
    UnknownLabelError
        If a value is not among the labels that are stated.
    """
    with doing(f"reading {source.name}"):
        owners = () if wanted.user_column is None else (wanted.user_column,)
        read = read_columns(
            source,
            (*wanted.columns, *owners),
            missing_values=wanted.missing_values,
            labels={name: _stated(wanted, name) for name in wanted.columns},
        )
    columns, owner = read[: len(wanted.columns)], read[-1] if owners else None
    numbers = _are_numbers(columns, wanted)
    if numbers and wanted.missing not in (None, "drop"):
        raise typer.BadParameter(
            "can only be drop: the columns are numbers", param_hint="--missing"
        )
    rows = columns[0].indices.size
    kept = np.ones(rows, dtype=bool)
    for column in [*columns, *([] if owner is None else [owner])]:
        settled = wanted.missing == "drop" or (wanted.missing is not None and column is not owner)
        if not settled:
            _refuse_missing(column, numbers=numbers or column is owner)
    if wanted.missing == "drop":
        for column in [*columns, *([] if owner is None else [owner])]:
            kept &= column.indices >= 0
        columns = [replace(column, indices=column.indices[kept]) for column in columns]
    if not kept.any():
        raise InvalidValueError(f"{source}: there is no row to draw a record for")
    users: Array = np.flatnonzero(kept) + 1
    if owner is not None:
        users = np.array(owner.values)[owner.indices[kept]]
    dropped = rows - int(kept.sum())
    if numbers:
        data = np.column_stack([_numbers(column) for column in columns])
        _refuse_outside(wanted, data, np.flatnonzero(kept))
        return Records(wanted.columns, data, users, None, None, dropped)
    settled_columns = [_settle(column, wanted) for column in columns]
    labels = tuple(tuple(domain.labels) for _, domain in settled_columns)
    domain = _product(settled_columns)
    codes = np.zeros(int(kept.sum()), np.int64)
    for column, part in settled_columns:
        codes = codes * part.size + _codes(column, part)
    data = _array_of(domain.labels)[codes]
    return Records(wanted.columns, data, users, labels, domain, dropped)  # type: ignore[arg-type]


def _stated(wanted: Wanted, name: str) -> Sequence[str]:
    if not wanted.states_labels_of(name):
        return ()
    stated = wanted.labels.get(name)
    if stated is not None:
        return [text.strip() for text in stated.split(",")]
    return _lines(wanted.labels_file, f"--labels-file {wanted.labels_file}, column {name!r}")


def _are_numbers(columns: Sequence[Column], wanted: Wanted) -> bool:
    """Whether the columns are sampled as numbers; labels otherwise."""
    if wanted.method in LABEL_METHODS or wanted.states_labels:
        return False
    texts = [column for column in columns if not _is_number(column)]
    if not texts:
        return True
    first = texts[0]
    value = next((v for v in first.values if not _reads_as_number(v)), "")
    because = wanted.bounds is not None or wanted.method in NUMBER_METHODS
    if because or len(texts) < len(columns):
        said = "--bounds are" if wanted.bounds is not None else f"--method {wanted.method} is"
        other = next((c.name for c in columns if c not in texts), "")
        reason = (
            f"{said} for numbers"
            if because
            else f"column {other!r} holds numbers; numbers and labels are not sampled together: "
            f"name a method for labels ({', '.join(LABEL_METHODS)}) if all values are labels"
        )
        raise InvalidValueError(f"column {first.name!r} holds text such as {value!r}, but {reason}")
    return False


def _is_number(column: Column) -> bool:
    return column.kind != "boolean" and all(map(_reads_as_number, column.values))


def _reads_as_number(value: Value) -> bool:
    """Whether a value is a number; texts with leading zeros are codes, not numbers."""
    if isinstance(value, str):
        return parse_label(value, "number") is not None and not _PADDED.match(value)
    return not isinstance(value, bool)


def _numbers(column: Column) -> Floats:
    return np.array([float(value) for value in column.values])[column.indices]


def _refuse_missing(column: Column, *, numbers: bool) -> None:
    rows = column.missing_rows()
    if rows.size:
        remedy = (
            "drop those rows with --missing drop"
            if numbers
            else ("say with --missing what they are: a label, or drop")
        )
        raise InvalidValueError(
            f"column {column.name!r}: {rows.size:,} of {column.indices.size:,} values are missing "
            f"({rows_text(rows)}); {remedy}"
        )


def _refuse_outside(wanted: Wanted, data: Floats, rows: npt.NDArray[np.intp]) -> None:
    for name, values in zip(wanted.columns, data.T, strict=True):
        low, high = (wanted.bounds or {}).get(name, (-math.inf, math.inf))
        outside = np.flatnonzero((values < low) | (values > high))
        if outside.size:
            raise InvalidValueError(
                f"column {name!r}: {outside.size:,} values are outside its bounds {low:g} to "
                f"{high:g} ({rows_text(rows[outside])}); state bounds that hold whatever the data"
            )


def _settle(column: Column, wanted: Wanted) -> tuple[Column, Domain]:
    """Settle the labels of a column: those that are stated, or those in the data."""
    if not wanted.states_labels_of(column.name):
        return _take_labels(column, wanted)
    stated = wanted.labels.get(column.name)
    if stated is not None:
        where, unit = f"--labels of column {column.name!r}", "label"
        entries = list(enumerate((text.strip() for text in stated.split(",")), start=1))
    else:
        where, unit = f"--labels-file {wanted.labels_file}, column {column.name!r}", "line"
        lines = _lines(wanted.labels_file, where)
        entries = [(line, text) for line, text in enumerate(lines, start=1) if text.strip()]
    if len(entries) < _FEWEST_LABELS:
        got = ", ".join(repr(text) for _, text in entries) or "none"
        raise InvalidValueError(f"{where}: must have at least 2 labels, got {got}")
    texts = [text for _, text in entries]
    seen: dict[Value, tuple[int, str]] = {}
    values = _values_of(texts, column, wanted.missing)
    for value, (place, text) in zip(values, entries, strict=True):
        first, same = seen.setdefault(value, (place, text))
        if first != place:
            raise InvalidValueError(
                f"{where}: {unit} {place}, {text!r}, is the same label as {unit} {first}, {same!r}"
            )
    return settle_domain(column, texts, wanted.missing)


def _values_of(texts: list[str], column: Column, missing: str | None) -> Sequence[Value]:
    """Read labels as :func:`settle_domain` does: as text if one is not of the column's kind."""
    fills = missing not in (None, "drop") and column.missing_rows().size
    if fills and parse_label(str(missing), column.kind) is None:
        return texts
    values = [value for text in texts if (value := parse_label(text, column.kind)) is not None]
    return values if len(values) == len(texts) else texts


def _lines(path: Path | None, where: str) -> list[str]:
    data = b"" if path is None else read_bytes(path)
    try:
        return data.decode("utf-8").removeprefix("\ufeff").splitlines()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidValueError(f"{where}: line {line} is not UTF-8 text: {error}") from error


def _take_labels(column: Column, wanted: Wanted) -> tuple[Column, Domain]:
    """Take the labels of a column from the data, and say so."""
    remedy = "--labels or --labels-file"
    if len(wanted.columns) > 1:
        remedy = f"--labels {column.name}=A,B,C"
    found = sorted(column.values)
    texts = [label_text(value) for value in found]
    missing = wanted.missing
    fills = missing not in (None, "drop") and bool(column.missing_rows().size)
    if fills and missing not in texts and parse_label(str(missing), column.kind) not in found:
        texts.append(str(missing))
    if len(texts) < _FEWEST_LABELS:
        raise InvalidValueError(
            f"column {column.name!r}: all values are {texts[0]!r}; state at least 2 possible "
            f"labels with {remedy}"
        )
    note(
        f"the {len(texts)} labels of column {column.name!r} are taken from the data and treated as "
        f"public; state them with {remedy}"
    )
    # Values that are complete keep their type even where no label on a command line has it.
    return settle_domain(column, texts, missing) if fills else (column, Domain(found))


def _codes(column: Column, domain: Domain) -> Integers:
    place = {label: code for code, label in enumerate(domain.labels)}
    return np.array([place[value] for value in column.values], np.int64)[column.indices]


def _product(settled: Sequence[tuple[Column, Domain]]) -> Domain:
    """Make the domain of all combinations of labels."""
    if len(settled) == 1:
        return settled[0][1]
    size = math.prod(domain.size for _, domain in settled)
    if size > _LARGEST_DOMAIN:
        raise InvalidValueError(
            f"the columns have {size:,} combinations of labels; at most {_LARGEST_DOMAIN:,} can be "
            "sampled: name fewer columns"
        )
    texts = [""]
    for place, (_, domain) in enumerate(settled):
        parts = [_escaped(label) for label in domain.labels]
        comma = ", " if place else ""
        texts = [f"{text}{comma}{part}" for text in texts for part in parts]
    return Domain(texts)


def _array_of(labels: Sequence[Any]) -> Array:
    """Give labels as an array; NumPy makes floats of integers on both sides of 2^63."""
    whole = all(type(label) is int and label >= 0 for label in labels)
    return np.array(labels, dtype=np.uint64 if whole else None)


def _escaped(label: Any) -> str:
    """Write a label so that the commas between labels are the only ones: combinations differ."""
    return label_text(label).replace("\\", "\\\\").replace(",", "\\,")
