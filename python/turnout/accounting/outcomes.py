"""Outcomes of data that can exist: what is seen of them loses at least so much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from turnout._types import Floats
from turnout.accounting.values import Divergence


class Outcomes(NamedTuple):
    """Outcomes by falling privacy loss, and the masses of both laws up to each of them."""

    loss: Floats
    first: Floats
    second: Floats

    def tail(self, epsilon: Floats, slack: float, least: float = 0.0) -> Divergence:
        """Bound the divergence from below, by what rounding may have added to the first law.

        A slack is relative to the mass of the event, ``least`` is taken from delta itself.
        """
        count = np.searchsorted(-self.loss, -epsilon, side="left")
        one, other = self.first[count], self.second[count]
        with np.errstate(over="ignore", invalid="ignore"):
            paid = np.where(other > 0.0, np.exp(epsilon) * other, 0.0)
        return Divergence(np.clip(one * (1.0 - slack) - paid - least, 0.0, 1.0), one, other)


def by_loss(one: Floats, two: Floats) -> Outcomes:
    """Sort outcomes by what they lose, from their masses under both laws.

    Examples
    --------
    >>> seen = by_loss(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    >>> seen.tail(np.zeros(1), 0.0).delta
    array([0.25])
    """
    seen = one > 0.0
    one, two = one[seen], two[seen]
    with np.errstate(divide="ignore"):
        loss = np.log(one) - np.log(two)
    order = np.argsort(-loss, kind="stable")
    first, second = (np.append(0.0, np.cumsum(masses[order])) for masses in (one, two))
    return Outcomes(loss[order], first, second)
