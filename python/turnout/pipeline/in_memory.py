"""Answers to several questions of the same people, all in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout._types import Array, Integers
from turnout.bounds import Bounds
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.pipeline.answers import Answers


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
    rows
        The number of each row that counts in the source, from 0.
    dropped
        How many rows were left out because an answer or a group is missing.
    """

    codes: tuple[Array, ...]
    keys: tuple[tuple[Any, ...], ...]
    groups: Integers
    rows: Integers
    dropped: int


def read_columns(answers: Answers, domains: Mapping[str, Domain | Bounds]) -> Columns:
    """Read the answers to several questions of the same people.

    Parameters
    ----------
    answers
        What :func:`turnout.pipeline.scan` made.
    domains
        What can be answered in each column.

    Raises
    ------
    InvalidValueError
        If there are probabilities; as :meth:`Answers.encoded`.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in its domain.
    """
    if answers.probability_column is not None:
        raise InvalidValueError("several columns are read without probabilities")
    pieces: list[list[Array]] = [[] for _ in domains]
    places: list[Integers] = [np.empty(0, np.int64)]
    keys: dict[tuple[Any, ...], int] = {} if answers.group_by else {(): 0}
    rows: list[Integers] = [np.empty(0, np.int64)]
    dropped = 0
    for block in answers.blocks(domains):
        encoded = answers.encoded(block, domains)
        dropped += encoded.dropped
        for piece, codes in zip(pieces, encoded.codes, strict=True):
            piece.append(codes)
        rows.append(
            block.start + (np.arange(block.rows) if encoded.places is None else encoded.places)
        )
        if encoded.groups is None:
            places.append(np.zeros(encoded.nodes, np.int64))
        else:
            numbers = [keys.setdefault(key, len(keys)) for key in encoded.groups.keys]
            places.append(np.array(numbers, np.int64)[encoded.groups.index])
    empty = np.empty(0, np.int64)
    return Columns(
        tuple(np.concatenate(piece) if piece else empty for piece in pieces),
        tuple(keys),
        np.concatenate(places),
        np.concatenate(rows),
        dropped,
    )
