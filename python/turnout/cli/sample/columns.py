"""Columns of a file, and what kind of values they hold.

Everything that has to be decided about a value (is it missing, is it a number) is decided once a
distinct value, not once a row: columns are dictionary encoded as they are read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import Domain
from turnout._arguments import listed
from turnout._label_texts import (
    Kind,
    Value,
    kind_of,
    label_text,
    missing_texts,
    parse_label,
    typed_values,
)
from turnout.errors import InvalidValueError, UnknownLabelError
from turnout.pipeline.columns import factors, rows_text
from turnout.pipeline.encoding import is_missing
from turnout.pipeline.sources import open_source


@dataclass(frozen=True)
class Column:
    """One column of a file.

    Attributes
    ----------
    name
        The column's name.
    values
        Its distinct values, missing ones left out; all of one Python type.
    indices
        For each row the position of its value in ``values``; -1 where it is missing.
    kind
        What the values are: ``"integer"``, ``"number"``, ``"boolean"`` or ``"text"``.
    """

    name: str
    values: tuple[Value, ...]
    indices: npt.NDArray[np.int32]
    kind: Kind

    def missing_rows(self) -> npt.NDArray[np.intp]:
        """Positions of the rows without a value, counted from 0.

        Examples
        --------
        >>> Column("c", ("a",), np.array([0, -1, 0], np.int32), "text").missing_rows().tolist()
        [1]
        """
        return np.flatnonzero(self.indices < 0)

    def as_text(self) -> Column:
        """Write every value as text.

        Examples
        --------
        >>> Column("c", (3, 1), np.array([0, 1], np.int32), "integer").as_text().values
        ('3', '1')
        """
        return Column(self.name, tuple(map(label_text, self.values)), self.indices, "text")


def read_columns(
    path: str | os.PathLike[str],
    names: Sequence[str],
    *,
    missing_values: Sequence[str] = (),
    labels: Mapping[str, Sequence[str]] | None = None,
) -> list[Column]:
    r"""Read columns of a file, as :func:`turnout.pipeline.open_source` does.

    Missing are nulls, NaN, empty texts, texts that pandas takes for missing (``NA``, ``n/a``,
    ``<NA>``) where they are no label that is stated, and those in ``missing_values``. In a
    CSV file a column in which every value is written as a plain integer (``7``, not ``07`` and
    not ``7.0``) is a column of integers, any other is text, kept as it is written. In Parquet and
    Arrow files the column's type says it; floating-point columns that hold whole numbers only are
    columns of integers, and dates and decimals are read as text.

    Parameters
    ----------
    path, names
        The file, and its columns that are read.
    missing_values
        Further texts that stand for a missing value, such as ``"?"``.
    labels
        The labels that are stated of columns.

    Returns
    -------
    list of Column
        The distinct values of each and a position for each row.

    Raises
    ------
    InvalidValueError
        If the file has no such column, or has it twice, or holds an infinite number.
    InvalidTypeError
        If a column holds lists, structures or bytes.
    CorruptDataError, OSError
        If the file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "people.csv")
    ...     _ = file.write_text("name,answer\nann,often\nbob,\ncem,never\n")
    ...     [column] = read_columns(file, ["answer"])
    >>> column.values, column.indices.tolist(), column.kind
    (('often', 'never'), [0, -1, 1], 'text')
    """
    source = open_source(path)
    tables = [block.read() for block in source.blocks(names, categories=frozenset(names))]
    found = []
    for name in names:
        position: dict[Any, int] = {}
        rows = [np.empty(0, np.int64)]
        for table in tables:
            for distinct, index in factors(table.column(name), f"column {name!r}"):
                used = np.bincount(index, minlength=len(distinct)) > 0
                target = np.zeros(len(distinct), np.int64)
                for place in np.flatnonzero(used):
                    target[place] = position.setdefault(distinct[place], len(position))
                rows.append(target[index])
        missing = missing_texts((labels or {}).get(name, ()), missing_values)
        values = [None if is_missing(value, missing) else value for value in position]
        if any(isinstance(value, float) and math.isinf(value) for value in values):
            raise InvalidValueError(f"column {name!r} holds an infinite number")
        values = typed_values(values, texts=source.texts)
        found.append(_compact(name, values, np.concatenate(rows)))
    return found


def _compact(column: str, values: list[Value | None], rows: Any) -> Column:
    """Drop missing and repeated distinct values and point the rows at what is left."""
    position: dict[Value, int] = {}
    target = [-1 if v is None else position.setdefault(v, len(position)) for v in values]
    kind = kind_of(position) if position else "text"
    return Column(column, tuple(position), np.array(target, np.int32)[rows], kind)


def settle_domain(
    answers: Column, labels: Sequence[str], missing: str | None
) -> tuple[Column, Domain]:
    """Domain of the labels, and the answers in its terms."""
    wanted = missing if missing != "drop" and answers.missing_rows().size else None
    texts = [*labels, *(() if wanted is None else (wanted,))]
    if any(parse_label(text, answers.kind) is None for text in texts):
        # Labels have one type: integers beside "unknown" all become text.
        answers = answers.as_text()
    if wanted is not None:
        answers = _fill_missing(answers, _parsed(wanted, answers))
    domain = Domain([_parsed(text, answers) for text in labels])
    _refuse_unknown(answers, domain)
    return answers, domain


def _parsed(text: str, answers: Column) -> Value:
    value = parse_label(text, answers.kind)
    assert value is not None  # as_text was called when a label did not parse
    return value


def _fill_missing(answers: Column, label: Value) -> Column:
    values = answers.values if label in answers.values else (*answers.values, label)
    code = np.int32(values.index(label))
    indices = np.where(answers.indices < 0, code, answers.indices)
    return replace(answers, values=values, indices=indices)


def _refuse_unknown(answers: Column, domain: Domain) -> None:
    known = frozenset(domain.labels)
    unknown = [code for code, value in enumerate(answers.values) if value not in known]
    if not unknown:
        return
    rows = np.flatnonzero(np.isin(answers.indices, unknown))
    raise UnknownLabelError(
        f"column {answers.name!r}: {rows.size:,} answers are not among the {domain.size} labels: "
        f"{listed([answers.values[code] for code in unknown])} ({rows_text(rows)})"
    )
