"""Random draws that do not depend on answers: who takes part, and in which group.

All draws use the core's cryptographic streams; with a seed they are reproducible.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnout import _core
from turnout._types import Floats, Integers
from turnout.collecting.randomizer import Noise
from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized

_TOTAL_BITS = 62


def weighted_choices(weights: Sequence[int], length: int, seed: Noise) -> Integers:
    """Draw positions, each with probability exactly ``weight / sum``.

    Parameters
    ----------
    weights
        Non-negative integers with a sum from 1 to 2^63 - 1.
    length
        The number of draws.
    seed
        As for every draw.

    Examples
    --------
    >>> weighted_choices([0, 3], 2, None)
    array([1, 1])
    """
    return _core.choose_weighted(np.array(weights, dtype=np.uint64), length, seed)


def participants(participation: Participation, nodes: int, seed: int | None) -> Integers:
    """Draw the nodes that take part, and return their positions in ascending order.

    A common rate of at least 2^-10 is exact, a smaller one is exact to 2^-62. Personal
    probabilities are exact to 2^-53.

    Raises
    ------
    InvalidValueError
        If the numbers of personal probabilities and nodes differ, or the participation is from a
        plan, which does not hold them.

    Examples
    --------
    >>> import turnout as tn
    >>> participants(tn.Personalized([1.0, 2.0**-30, 1.0]), 3, 1)
    array([0, 2])
    """
    rate = participation.uniform_rate
    if rate == 1.0:
        return np.arange(nodes)
    if rate is not None:
        numerator, denominator = rate.as_integer_ratio()
        if denominator.bit_length() - 1 > _TOTAL_BITS:
            numerator = max((numerator << _TOTAL_BITS) // denominator, 1)
            denominator = 1 << _TOTAL_BITS
        return np.flatnonzero(
            weighted_choices([denominator - numerator, numerator], nodes, seed)
        ).astype(np.int64)
    probabilities = personal_probabilities(participation, nodes)
    return np.flatnonzero(_core.uniforms(nodes, seed) < probabilities).astype(np.int64)


def personal_probabilities(participation: Participation, nodes: int) -> Floats:
    """Return the probability of each node.

    Raises
    ------
    InvalidValueError
        If there is not one probability for each node.
    """
    if not isinstance(participation, Personalized):
        raise InvalidValueError(
            f"participation must contain the probabilities, got {participation!r}, as a plan has it"
        )
    if participation.probabilities.size != nodes:
        raise InvalidValueError(
            f"participation must have one probability for each of the {nodes} values, "
            f"got {participation.probabilities.size}"
        )
    return participation.probabilities
