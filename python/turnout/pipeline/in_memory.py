"""Answers to several questions of the same people, all in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout._types import Array, Integers
from turnout.bounds import Bounds
from turnout.collecting.left_out import NOTHING, LeftOut
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
    left_out
        How many rows do not count.
    unanswered
        For each group how many rows were left out for want of an answer.
    """

    codes: tuple[Array, ...]
    keys: tuple[tuple[Any, ...], ...]
    groups: Integers
    rows: Integers
    left_out: LeftOut
    unanswered: tuple[int, ...]


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
        If there are probabilities; as :meth:`Answers._encoded`.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in its domain.
    """
    if answers.probability_column is not None:
        raise InvalidValueError("several columns are read without probabilities")
    pieces: list[list[Array]] = [[] for _ in domains]
    places: list[Integers] = [np.empty(0, np.int64)]
    keys: dict[tuple[Any, ...], int] = {} if answers.group_by else {(): 0}
    rows: list[Integers] = [np.empty(0, np.int64)]
    left_out, unanswered = NOTHING, [0] * len(keys)
    encoder = answers._encoder(domains)
    for block in answers._all_blocks(domains):
        encoded = encoder(block)
        left_out += encoded.left_out
        for piece, codes in zip(pieces, encoded.codes, strict=True):
            piece.append(codes)
        rows.append(
            block.start + (np.arange(block.rows) if encoded.places is None else encoded.places)
        )
        if encoded.groups is None:
            places.append(np.zeros(encoded.nodes, np.int64))
            unanswered[0] += encoded.left_out.unanswered
        else:
            assert encoded.unanswered is not None
            numbers = [keys.setdefault(key, len(keys)) for key in encoded.groups.keys]
            places.append(np.array(numbers, np.int64)[encoded.groups.index])
            unanswered += [0] * (len(keys) - len(unanswered))
            for number, without in zip(numbers, encoded.unanswered.tolist(), strict=True):
                unanswered[number] += without
    empty = np.empty(0, np.int64)
    return Columns(
        tuple(np.concatenate(piece) if piece else empty for piece in pieces),
        tuple(keys),
        np.concatenate(places),
        np.concatenate(rows),
        left_out,
        tuple(unanswered),
    )
