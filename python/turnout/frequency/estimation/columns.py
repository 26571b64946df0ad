"""What is known of many answers, column by column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Columns"]

Floats = npt.NDArray[np.float64]


class Columns(NamedTuple):
    """What is known of some answers, one entry for each.

    Attributes
    ----------
    labels
        The answers.
    counts, frequencies, standard_errors
        How many nodes give them, their share of all nodes, and the standard error of that.
    low, high
        Its limits; nan where there are none.
    """

    labels: Sequence[Any]
    counts: Floats
    frequencies: Floats
    standard_errors: Floats
    low: Floats
    high: Floats

    def records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer; limits that are not known are None.

        Examples
        --------
        >>> one, nothing = np.ones(1), np.full(1, np.nan)
        >>> Columns(["yes"], one, one, one, nothing, nothing).records()[0]["low"] is None
        True
        """
        limits = [
            [None if math.isnan(value) else value for value in column.tolist()]
            for column in (self.low, self.high)
        ]
        numbers = (column.tolist() for column in self[1:4])
        return [
            {
                "label": label,
                "count": count,
                "frequency": frequency,
                "standard_error": error,
                "low": low,
                "high": high,
            }
            for label, count, frequency, error, low, high in zip(
                self.labels, *numbers, *limits, strict=True
            )
        ]
