"""What is read of a participation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized

__all__ = ["common_rate", "probabilities_of"]


def common_rate(participation: Participation) -> float:
    """Return the rate that all nodes share.

    Raises
    ------
    InvalidValueError
        If each has its own.

    Examples
    --------
    >>> import turnout as tn
    >>> common_rate(tn.Bernoulli(0.25))
    0.25
    """
    rate = participation.uniform_rate
    if rate is None:
        raise InvalidValueError(
            f"participation must hold its probabilities, got {participation!r} of a plan"
        )
    return rate


def probabilities_of(participation: Participation) -> npt.NDArray[np.float64]:
    """Return the probability of each node.

    Raises
    ------
    InvalidValueError
        If they are not there: a plan keeps only that each has its own.

    Examples
    --------
    >>> import turnout as tn
    >>> probabilities_of(tn.Personalized([0.5, 1.0]))
    array([0.5, 1. ])
    """
    if not isinstance(participation, Personalized):
        raise InvalidValueError(
            f"participation must hold its probabilities, got {participation!r} of a plan"
        )
    return participation.probabilities
