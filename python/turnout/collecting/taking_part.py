"""What is read of a participation."""

from __future__ import annotations

from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized


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
        raise _without_probabilities(participation)
    return rate


def rates_of(participation: Participation) -> float | Floats:
    """Return the rate that all nodes share, or the probability of each.

    Raises
    ------
    InvalidValueError
        If they are not there: a plan keeps only that each has its own.

    Examples
    --------
    >>> import turnout as tn
    >>> rates_of(tn.Bernoulli(0.25)), rates_of(tn.Personalized([0.5, 1.0]))
    (0.25, array([0.5, 1. ]))
    """
    rate = participation.uniform_rate
    if rate is not None:
        return rate
    if isinstance(participation, Personalized):
        return participation.probabilities
    raise _without_probabilities(participation)


def _without_probabilities(participation: Participation) -> InvalidValueError:
    return InvalidValueError(
        f"participation must hold its probabilities, got {participation!r} of a plan"
    )
