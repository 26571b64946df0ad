"""Who takes part, as a call is given it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Bernoulli, Everyone, Participation, Personalized

__all__ = ["common_rate", "probabilities_of", "stated_participation", "taking_part_in"]


def taking_part_in(participation: Participation | float | None) -> Participation:
    """Take everyone for a participation that is not given, and a number for a rate of all.

    Raises
    ------
    InvalidTypeError
        If it is no participation, and no number.
    InvalidValueError
        If the number is no rate above 0 and at most 1.

    Examples
    --------
    >>> taking_part_in(None)
    Everyone()
    """
    return Everyone() if participation is None else stated_participation(participation)


def stated_participation(participation: Participation | float) -> Participation:
    """Take a number for a rate of all; a participation must be given.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        As for :func:`taking_part_in`, and if it is not given.

    Examples
    --------
    >>> stated_participation(0.25), stated_participation(1)
    (Bernoulli(0.25), Everyone())
    """
    if isinstance(participation, Participation):
        return participation
    if isinstance(participation, (int, float, np.integer, np.floating)) and not isinstance(
        participation, bool
    ):
        return Everyone() if participation == 1 else Bernoulli(participation)
    raise InvalidTypeError(
        "participation must be a rate, Everyone(), Bernoulli(...) or Personalized(...), got "
        f"{_arguments.shown(participation)}"
    )


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
