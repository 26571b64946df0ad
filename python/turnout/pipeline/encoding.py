"""From the columns of a block to codes, groups and pseudonyms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from turnout._types import Array, Bytes, Floats, Integers, Truths
from turnout.collecting.left_out import LeftOut
from turnout.pipeline.columns import GroupIndex


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """The rows of a block that count, ready to be randomized. This is private data.

    Attributes
    ----------
    index
        The number of the block.
    codes
        The code of each row that counts, in order; of several columns by name a list of such.
    probabilities
        The probability of each, or None.
    groups
        The group of each, or None.
    pseudonyms
        The pseudonym of each, 16 bytes a row, or None.
    places
        The place of each in the block; None if all count.
    rows
        How many rows the block has.
    left_out
        How many of them do not count.
    unanswered
        For each group how many were left out for want of an answer; None without groups.
    """

    index: int
    codes: Any = field(repr=False)
    probabilities: Floats | None = field(repr=False)
    groups: GroupIndex | None = field(repr=False)
    pseudonyms: Bytes | None = field(repr=False)
    places: Array | None = field(repr=False)
    rows: int
    left_out: LeftOut
    unanswered: Integers | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """How many rows count."""
        return self.rows - self.left_out.total


def without_group(groups: GroupIndex, looked_at: Sequence[bool]) -> Truths | None:
    """Say which rows have no value in some of the columns of groups; None if all have."""
    gaps = np.array([None in compress(key, looked_at) for key in groups.keys], bool)
    return gaps[groups.index] if gaps.any() else None
