"""Mechanisms in which users report sets of items, and elected users add up."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
import numpy.typing as npt

from turnout._types import Bytes
from turnout.distributed.aggregation import Aggregation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Electing(Aggregation):
    """A mechanism in which a first server elects users, who add up what is shared of an item.

    See the subclass for what the parameter means.
    """

    reported: int

    @abc.abstractmethod
    def committee_size(self, reporters: int) -> int:
        """How many users are elected for an item that so many report."""

    @abc.abstractmethod
    def draw_sets(
        self, codes: npt.NDArray[np.uint32], seed: int | None = None
    ) -> tuple[Bytes, npt.NDArray[np.uint32]]:
        """Draw the coins and sets of some users.

        Parameters
        ----------
        codes
            uint32, the code of each user's item.
        seed
            For tests and simulations only.

        Returns
        -------
        coins : numpy.ndarray
            uint8, 1 for a user that takes part.
        sets : numpy.ndarray
            uint32 of shape (users, reported): the items of each set, in order.
        """
