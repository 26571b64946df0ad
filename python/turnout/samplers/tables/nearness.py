"""Measure how near each way of drawing a table's record comes to a person's own records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from turnout._types import Floats, Integers

#: So many made-up people are tried, with so many records each where nothing is known.
_PEOPLE: Final = 12
MANY: Final = 100

#: Of a Dirichlet distribution: how unlike each other people are.
_SPREAD: Final = 0.5

#: The law of a draw: points of cells, and the weight of each.
Law = tuple[Integers, Floats]


def made_up_people(shape: Sequence[int], records: int) -> list[Integers]:
    """Make up people, always the same: each has two kinds of records, and habits per column."""
    generator = np.random.default_rng(0)
    people = []
    for _ in range(_PEOPLE):
        kinds = generator.integers(0, 2, records)
        columns = []
        for cells in shape:
            habits = generator.dirichlet(np.full(cells, _SPREAD), 2)
            uniform = generator.random((records, 1))
            found = (habits.cumsum(axis=1)[kinds] < uniform).sum(axis=1)
            columns.append(np.minimum(found, cells - 1))
        people.append(np.stack(columns, axis=1).astype(np.int64))
    return people


def distances(
    shape: Sequence[int], records: int, law: Callable[[Integers], Law]
) -> tuple[float, float]:
    """Return how far the law of a draw is from a person's own records, on average over people.

    Parameters
    ----------
    shape
        The number of cells of each column.
    records
        How many records each person has.
    law
        Returns the law of a draw for a person's records.

    Returns
    -------
    tuple
        The mean total variation distance of columns, and of pairs of columns (0 for one column).
    """
    columns: list[float] = []
    pairs: list[float] = []
    places = range(len(shape))
    for own in made_up_people(shape, records):
        points, weights = law(own)
        for chosen in (*((place,) for place in places), *itertools.combinations(places, 2)):
            sizes = tuple(shape[place] for place in chosen)
            found = [
                np.bincount(
                    np.ravel_multi_index(tuple(codes[:, place] for place in chosen), sizes), of
                )
                for codes, of in ((own, np.full(len(own), 1.0 / len(own))), (points, weights))
            ]
            size = max(map(len, found))
            apart = [np.pad(each, (0, size - len(each))) for each in found]
            apart_by = float(np.abs(apart[0] - apart[1]).sum() / 2.0)
            (columns if len(chosen) == 1 else pairs).append(apart_by)
    return float(np.mean(columns)), float(np.mean(pairs)) if pairs else 0.0
