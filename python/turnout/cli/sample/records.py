"""The records of users: the columns of a file, as numbers or as labels."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from turnout import Bounds, Domain
from turnout._label_texts import Value, label_text, missing_texts, parse_label, typed_values
from turnout._progress import doing
from turnout._types import Array
from turnout.cli.answers import settled
from turnout.cli.running import note
from turnout.cli.sample.wanted import DENSITY, Wanted
from turnout.collecting.left_out import LeftOut
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers, scan
from turnout.pipeline.columns import factors, rows_text
from turnout.pipeline.in_memory import Columns, read_columns
from turnout.pipeline.rows import is_missing
from turnout.pipeline.sources import open_source

#: The largest product of label sets: all probabilities of a user are held in memory.
_LARGEST_DOMAIN = 2**24

#: As many users as rows can have.
MOST_USERS = 2**31

#: Numbers without bounds are within these.
WIDEST = Bounds(-5e99, 5e99)

_PADDED = re.compile(r"[+-]?0[0-9]")


@dataclass(frozen=True)
class Records:
    """The records of all users.

    Attributes
    ----------
    answers
        The file, and what is missing in it.
    parts
        What each column holds.
    values
        Numbers of shape (n, d), or n codes of ``domain``.
    users
        Whose they are: n ids, or row numbers from 1 where every row is a user of its own.
    domain
        For labels the domain: those of the only column, or the combinations of all, each a text.
    left_out
        How many rows were left out because something is missing in them.
    """

    answers: Answers
    parts: Mapping[str, Any]
    values: Array
    users: Array
    domain: Domain | None
    left_out: LeftOut

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.parts)

    @property
    def labels(self) -> list[Sequence[Any]] | None:
        """For labels the possible ones of each column."""
        return None if self.domain is None else [part.labels for part in self.parts.values()]

    @property
    def data(self) -> Array:
        """What samplers are fitted on: the numbers, or the labels."""
        return self.values if self.domain is None else _array_of(self.domain.labels)[self.values]

    @property
    def described(self) -> str:
        """What the columns hold."""
        names = ", ".join(self.columns)
        if self.labels is None:
            return f"{names}: numbers"
        sizes = [len(labels) for labels in self.labels]
        if len(sizes) == 1:
            return f"{names}: {sizes[0]:,} labels"
        combined = " x ".join(map(str, sizes))
        return f"{names}: {combined} labels, {math.prod(sizes):,} combinations"

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

    def public(self, path: Path) -> Array:
        """Read the same columns of another file: numbers of shape (n, d), or n codes.

        Raises
        ------
        TurnoutError
            If they hold something else.
        """
        source = open_source(path)
        answers = replace(self.answers, source=source, missing="drop", group_by=())
        source.check(answers.columns)
        return _joined(read_columns(answers, self.parts).codes, self.parts)


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
    missing = {name: _rule(wanted, name) for name in wanted.columns}
    if wanted.user_column is not None:
        # No label stands for a user: who is missing is left out, or refused once all are read.
        missing[wanted.user_column] = "drop"
    answers = scan(
        source,
        wanted.columns,
        missing=missing,
        missing_values=wanted.missing_values,
        separator=wanted.separator,
        encoding=wanted.encoding,
        trim=wanted.trim,
        group_by=() if wanted.user_column is None else wanted.user_column,
        max_groups=MOST_USERS,
    )
    given: Mapping[str, Any] = wanted.labels
    with doing(f"reading {source.name}"):
        numbers = _are_numbers(answers, wanted)
        if numbers:
            given = wanted.bounds or dict.fromkeys(wanted.columns, WIDEST)
        answers, parts, _ = settled(answers, given)
        read = read_columns(answers, parts)
    if read.left_out and wanted.missing != "drop":
        _refuse_without_user(source, wanted, read)
    if not read.rows.size:
        raise InvalidValueError(f"{source}: there is no row to draw a record for")
    if not numbers:
        _tell_of_labels(parts, wanted)
    domain = None if numbers else _product(parts)
    values = _joined(read.codes, parts)
    return Records(answers, parts, values, _users(answers, read), domain, read.left_out)


def _rule(wanted: Wanted, column: str) -> str | None:
    """Say what is missing in a column; a label only where it is one of those that are stated."""
    stated = wanted.labels.get(column)
    if wanted.missing == "drop" or stated is None or wanted.missing in stated:
        return wanted.missing
    return None


def _refuse_without_user(source: Path, wanted: Wanted, read: Columns) -> None:
    """Refuse rows that do not say whose they are."""
    rows = read.rows.size + read.left_out.total
    without = np.setdiff1d(np.arange(rows), read.rows)
    raise InvalidValueError(
        f"{source.name}: column {wanted.user_column!r}: {without.size:,} of {rows:,} users are "
        f"missing ({rows_text(without)}); --missing drop leaves these rows out"
    )


def _users(answers: Answers, read: Columns) -> Array:
    """Say whose each row is: by the column of users, or a user of its own."""
    if not answers.group_by:
        return read.rows + 1
    names = [name for (name,) in read.keys]
    return ids_of(names, texts=answers.source.texts)[read.groups]


def ids_of(names: Sequence[Any], *, texts: bool) -> Array:
    """Give different users as an array of one type; ``texts`` says that the file knows no other."""
    plain = [name if isinstance(name, Value) else label_text(name) for name in names]
    return _array_of(typed_values(plain, texts=texts))


def _joined(columns: Sequence[Array], parts: Mapping[str, Any]) -> Array:
    """Join columns of numbers, or make one code of those of all columns."""
    sizes = [part.size for part in parts.values() if isinstance(part, Domain)]
    if not sizes:
        return np.column_stack(columns)
    codes = np.zeros(len(columns[0]), np.int64)
    for column, size in zip(columns, sizes, strict=True):
        codes = codes * size + column.astype(np.int64)
    return codes


def _are_numbers(answers: Answers, wanted: Wanted) -> bool:
    """Whether the columns are sampled as numbers; labels otherwise."""
    if wanted.method != DENSITY:
        return False
    texts = [name for name in answers.asked if _holds_text(answers, name)]
    if texts:
        held = "; ".join(f"column {name!r} holds text" for name in texts)
        raise InvalidValueError(f"{held}, but --method {DENSITY} is for numbers")
    return True


def _holds_text(answers: Answers, column: str) -> bool:
    """Whether a column has a value that is no number."""
    known = missing_texts(more=answers.missing_values)
    for block in answers.source.blocks([column], categories=frozenset([column])):
        for values, index in factors(block.read().column(column), answers._name_of(column)):
            for value in (values[place] for place in np.unique(index).tolist()):
                if not is_missing(value, known) and not _reads_as_number(value):
                    return True
    return False


def _reads_as_number(value: Value) -> bool:
    """Whether a value is a number; texts with leading zeros are codes, not numbers."""
    if isinstance(value, str):
        return parse_label(value, "number") is not None and not _PADDED.match(value)
    return not isinstance(value, bool)


def _tell_of_labels(parts: Mapping[str, Domain], wanted: Wanted) -> None:
    """Say of which columns the labels are taken from the data."""
    for name, domain in parts.items():
        if any(isinstance(label, float) and math.isinf(label) for label in domain.labels):
            raise InvalidValueError(f"column {name!r} holds an infinite number")
        if name not in wanted.labels:
            alone = len(parts) == 1
            remedy = "--labels or --labels-file" if alone else f"--labels {name}=A,B,C"
            note(
                f"the {domain.size} labels of column {name!r} are taken from the data and treated "
                f"as public; state them with {remedy}"
            )


def _product(parts: Mapping[str, Domain]) -> Domain:
    """Make the domain of all combinations of labels."""
    domains = list(parts.values())
    if len(domains) == 1:
        return domains[0]
    size = math.prod(domain.size for domain in domains)
    if size > _LARGEST_DOMAIN:
        raise InvalidValueError(
            f"the columns have {size:,} combinations of labels; at most {_LARGEST_DOMAIN:,} can be "
            "sampled: name fewer columns"
        )
    texts = [""]
    for place, domain in enumerate(domains):
        comma = ", " if place else ""
        texts = [f"{text}{comma}{_escaped(label)}" for text in texts for label in domain.labels]
    return Domain(texts)


def _array_of(labels: Sequence[Any]) -> Array:
    """Give labels as an array; NumPy makes floats of integers on both sides of 2^63."""
    whole = all(type(label) is int and label >= 0 for label in labels)
    return np.array(labels, dtype=np.uint64 if whole else None)


def _escaped(label: Any) -> str:
    """Write a label so that the commas between labels are the only ones: combinations differ."""
    return label_text(label).replace("\\", "\\\\").replace(",", "\\,")
