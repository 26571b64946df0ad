"""What a randomizer makes of answers: who takes part, reports, and the sums of reports."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnout._core import NoiseStreams
from turnout._types import Array, Floats
from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized

#: Where noise comes from: fresh from the operating system, a seed, or the streams of a job's key.
Noise = int | NoiseStreams | None


class Drawn(NamedTuple):
    """The reports of the nodes that take part.

    Attributes
    ----------
    reports
        One report for each of them, in the order of the nodes.
    probabilities
        With which probability each took part, if every node has its own.
    """

    reports: Array
    probabilities: Floats | None = None


class Counts(NamedTuple):
    """What a tally keeps of reports.

    Attributes
    ----------
    sums
        Exact numbers that add up, as the kind's tally takes them.
    received
        The number of reports.
    weights
        The same sums with inverse probabilities, if every node has its own.
    """

    sums: Any
    received: int
    weights: Any = None


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
