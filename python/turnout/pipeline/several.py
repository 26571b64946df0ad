"""Several columns of the same rows, read together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout.bounds import Bounds
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.pipeline.answers import Answers

__all__ = ["Columns", "read_columns"]


@dataclass(frozen=True, eq=False)
class Columns:
    """The answers of people to several questions, in memory. This is private data.

    Attributes
    ----------
    codes
        For each question the codes, or numbers, of the rows that count.
    keys
        The groups: one empty tuple if there are none.
    groups
        For each row that counts the position of its group in ``keys``.
    dropped
        How many rows were left out because an answer or a group is missing.
    """

    codes: tuple[npt.NDArray[Any], ...]
    keys: tuple[tuple[Any, ...], ...]
    groups: npt.NDArray[np.int64]
    dropped: int


def read_columns(answers: Sequence[Answers], domains: Sequence[Domain | Bounds]) -> Columns:
    """Read the answers to several questions of the same people.

    Parameters
    ----------
    answers
        One :func:`turnout.pipeline.scan` for each question, all of the source of the first and
        with the same groups.
    domains
        What can be answered to each.

    Returns
    -------
    Columns
        A row is left out as a whole where any of its answers that are dropped is missing; a row
        without a group is left out if anything is dropped, and else refused unless every missing
        answer has a label.

    Raises
    ------
    InvalidValueError
        If a row is more than a person by its answers alone: if there are identifiers or
        probabilities; if answers or groups are missing and nothing says what that means.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in its domain.
    """
    first = answers[0]
    if any(each.id_column or each.probability_column for each in answers):
        raise InvalidValueError("several columns are read without identifiers and probabilities")
    ranks: dict[Any, int] = {"drop": 0, None: 1}
    rule = min(answers, key=lambda each: ranks.get(each.missing, 2))
    names = tuple(dict.fromkeys(name for each in answers for name in each.columns))
    pieces: list[list[npt.NDArray[Any]]] = [[] for _ in answers]
    places: list[npt.NDArray[np.int64]] = []
    keys: dict[tuple[Any, ...], int] = {} if first.group_by else {(): 0}
    dropped = 0
    for block in first.source.blocks(names, categories=frozenset(names)):
        table = block.read()
        keep = np.ones(block.rows, bool)
        found = []
        for each, domain in zip(answers, domains, strict=True):
            codes, gone = each.codes_of_rows(table, domain, block.start)
            found.append(codes)
            if gone is not None:
                keep &= ~gone
        index, grouped = rule.groups_of_rows(table, keep, block.start)
        keep &= index >= 0
        dropped += int((~keep).sum())
        for piece, codes in zip(pieces, found, strict=True):
            piece.append(codes[keep])
        numbers = np.zeros(len(grouped), np.int64)
        for place in np.unique(index[keep]).tolist():
            numbers[place] = keys.setdefault(grouped[place], len(keys))
        places.append(numbers[index[keep]])
    empty = np.empty(0, np.int64)
    return Columns(
        tuple(np.concatenate(piece) if piece else empty for piece in pieces),
        tuple(keys),
        np.concatenate(places) if places else empty,
        dropped,
    )
