"""Recommend the sampler of tables that suits what is known, with numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from turnout._tables import Tabular
from turnout.samplers.tables.sampler import TableSampler


@dataclass(frozen=True, eq=False, repr=False)
class SamplerRecommendation(Tabular):
    """Ways to draw a record of a table: the recommended one first, then the others by nearness.

    As a table, it has one row for each way; ``"reference"`` is a draw that knows nothing about a
    person.

    Attributes
    ----------
    sampler
        The sampler, which is not fitted and draws in the recommended way.
    method
        The recommended way, as in ``method_`` of the fitted sampler.
    combinations
        How many combinations of cells there are.
    distances
        For each way, by its name, the mean total variation distance between the law of a draw and a
        person's own records: in a column, and in a pair of columns.
    """

    sampler: TableSampler
    method: str
    combinations: int
    distances: dict[str, tuple[float, float]]

    _columns = ("method", "of_columns", "of_pairs", "recommended")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each way.

        Returns
        -------
        list of dict
            With ``method``, ``of_columns``, ``of_pairs`` and ``recommended``.
        """
        return [
            {
                "method": method,
                "of_columns": columns,
                "of_pairs": pairs,
                "recommended": method == self.method,
            }
            for method, (columns, pairs) in self.distances.items()
        ]

    def __repr__(self) -> str:
        columns, pairs = self.distances[self.method]
        return (
            f"<SamplerRecommendation: {self.method!r}, mean distance of columns {columns:.3f}, of "
            f"pairs {pairs:.3f}, over {self.combinations:,} combinations of cells>"
        )


def recommend(
    epsilon: float, columns: Any, *, reference: Any = None, records: int | None = None
) -> SamplerRecommendation:
    """Recommend how to draw a record of a table, and estimate how near draws will be.

    Everything here is public: the numbers are computed for twelve made-up people with that many
    records, and not from anybody's data. The columns of these records depend on each other. The
    recommended way is the nearest in columns and pairs. For one record it is always the minimax
    law, since no other law keeps the whole record as often.

    Parameters
    ----------
    epsilon, columns, reference, records
        As for :class:`TableSampler`. If you do not give ``records``, the made-up people have 100.

    Returns
    -------
    SamplerRecommendation
        The sampler, and the numbers of all ways.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.
    MissingExtraError
        If there is a reference and narwhals or pyarrow is not installed.

    Examples
    --------
    >>> columns = {"age": (17, 91), "sex": ["f", "m"]}
    >>> found = recommend(4.0, columns, records=1)
    >>> found.method, found.combinations
    ('minimax', 32)
    >>> recommend(1.0, columns).method
    'mollifier'
    >>> near = found.distances
    >>> near["minimax"][1] < near["mollifier"][1] < near["reference"][1]
    True
    """
    sampler = TableSampler(epsilon, columns, reference=reference, records=records)
    public = sampler._public()
    found = {method: public.distances(method) for method in (*public.methods, "reference")}
    # The recommended way first, then the nearest ones.
    ordered = dict(sorted(found.items(), key=lambda item: (item[0] != public.method, sum(item[1]))))
    return SamplerRecommendation(sampler, public.method, math.prod(public.shape), ordered)
