"""The numbers that can be given, and the bins that they are put into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.bounds import Bounds
from turnout.errors import InvalidValueError

#: To estimate takes time in proportion to the third power of the number of bins.
MOST_BINS: Final = 1024


@dataclass(frozen=True)
class BinnedBounds(Bounds):
    """The numbers that can be given, within public limits, in bins of equal width.

    Parameters
    ----------
    low, high
        The least and the largest value: finite, the first the smaller.
    dimensions
        One: a node holds one number.
    bins
        How many bins, from 2 to 1,024. The last one has its upper edge too.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> BinnedBounds(0, 10, bins=4).edges
    array([ 0. ,  2.5,  5. ,  7.5, 10. ])
    """

    bins: int = 64

    _beside: ClassVar[tuple[str, int, int]] = ("bins", 2, MOST_BINS)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.dimensions != 1:
            raise InvalidValueError(f"dimensions must be 1, got {self.dimensions}")
        bins = _arguments.integer("bins", self.bins, least=2, most=MOST_BINS)
        object.__setattr__(self, "bins", bins)

    @property
    def size(self) -> int:
        """How many bins there are."""
        return self.bins

    @property
    def width(self) -> float:
        """The width of a bin."""
        return 2 * self.half / self.bins

    @property
    def edges(self) -> Floats:
        """The edges of the bins, one more than there are bins."""
        edges: Floats = np.linspace(self.low, self.high, self.bins + 1)
        return edges

    @property
    def middles(self) -> Floats:
        """The middle of each bin."""
        edges = self.edges
        middles: Floats = edges[:-1] / 2 + edges[1:] / 2
        return middles
