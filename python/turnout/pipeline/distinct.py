"""The different answers of a column."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Protocol

import numpy as np

from turnout._label_texts import missing_texts, parse_label
from turnout._progress import track
from turnout.errors import InvalidValueError
from turnout.pipeline.dictionaries import factors, rows_text
from turnout.pipeline.flight import sized
from turnout.pipeline.labels import WAY_OUT, is_missing
from turnout.pipeline.sources import Source

__all__ = ["distinct_answers"]

_MOST: Final = 2**20
_SHOWN: Final = 5


class Column(Protocol):
    """What is looked at of answers."""

    @property
    def source(self) -> Source: ...
    @property
    def column(self) -> str: ...
    @property
    def missing(self) -> Hashable: ...
    @property
    def missing_values(self) -> frozenset[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def block_rows(self) -> int: ...


def distinct_answers(answers: Column, *, progress: bool = False) -> tuple[list[Any], bool]:
    """List the different answers, and say whether some are missing.

    Parameters
    ----------
    answers
        The answers, which can be read again.
    progress
        Whether a pass of more than two seconds shows a bar on standard error.

    Raises
    ------
    InvalidValueError
        If the source can be read only once, if there are too many, or if some are missing and
        nothing says what that means.
    """
    if not answers.source.repeatable:
        raise InvalidValueError(
            f"{answers.source.name} can be read only once, so its answers cannot be looked at "
            "first: state the domain"
        )
    column, known = answers.column, missing_texts(more=answers.missing_values)
    seen: dict[tuple[bool, Any], Any] = {}
    gaps, total = 0, 0
    rows: list[int] = []
    number = None if answers.rows is None else -(-answers.rows // answers.block_rows)
    blocks = sized(answers.source.blocks([column], categories=frozenset([column])), number)
    for block in track(blocks, "looking for labels", progress):
        for values, index in factors(block.read().column(column), answers.name):
            first = np.full(len(values), len(index))
            first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
            used = first < len(index)
            absent = np.array([is_missing(value, known) for value in values], bool)
            places = np.flatnonzero(used & ~absent)
            for place in places[np.argsort(first[places])].tolist():
                value = values[place]
                seen.setdefault((isinstance(value, bool), value), value)
            if (used & absent).any():
                found = np.flatnonzero(absent[index])
                gaps += found.size
                rows += (found[: _SHOWN + 1] + total).tolist() if len(rows) <= _SHOWN else []
            total += len(index)
            if len(seen) > _MOST:
                raise InvalidValueError(
                    f"{answers.name} has more than {_MOST:,} different values: is it the column of "
                    "answers?"
                )
    different = list(seen.values())
    if answers.source.texts:
        different, more = _numbers_from_text(different)
        gaps += more
    elif all(isinstance(value, float) and value.is_integer() for value in different):
        different = list(dict.fromkeys(int(value) for value in different))
    if gaps and answers.missing is None:
        where = f" ({rows_text(np.array(rows))})" if rows else ""
        raise InvalidValueError(
            f"{answers.name}: {gaps:,} answers are missing{where}; {WAY_OUT.format('a label')}"
        )
    return different, gaps > 0


def _numbers_from_text(values: list[str]) -> tuple[list[Any], int]:
    """Make integers of texts that all are; NaN among numbers is missing."""
    numbers = [value for value in values if value.lower() not in ("nan", "-nan")]
    if not numbers or any(parse_label(value, "number") is None for value in numbers):
        return list(values), 0
    whole = all(parse_label(value, "integer") is not None for value in numbers)
    return [int(v) for v in numbers] if whole else list(numbers), len(values) - len(numbers)
