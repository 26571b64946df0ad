"""Deltas as the fair paper prints them.

None of these is a bound of what is published: each docstring says what is wrong and by how much.
The bounds are :class:`turnout.accounting.CountSampling`,
:class:`turnout.accounting.TwoStageCountSampling` and :class:`turnout.accounting.GaussianMechanism`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.accounting.counts import CountSampling
from turnout.accounting.values import nonnegative, positive, shaped


def theorem_3_1_delta(epsilon: npt.ArrayLike, items: int, floor: int) -> Floats | float:
    """Compute the delta that Theorem 3.1 of the fair paper claims, which is not a bound.

    The smallest delta that condition (2) allows when each item is held by at least ``floor`` users
    and each user is kept with probability ``1 - exp(-epsilon)``. It is the probability of one
    single outcome: it falls exponentially in the number of items, while replacing one user's item
    changes two counts however many items there are. At epsilon 1: claimed 1.5e-11, true 6.0e-8 for
    10 items with floor 100; claimed 5.6e-26, true 5.2e-4 for 30 items with floor 33; claimed 1e-58,
    true 2.7e-2 for 100 items with floor 10. Only for very few items is it on the safe side.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    items
        How many items there are.
    floor
        The smallest number of users that hold an item.

    Returns
    -------
    float or numpy.ndarray
        What the theorem claims, in the shape of ``epsilon``; 1 where it claims nothing.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is no number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, Theorem 3.1.

    Examples
    --------
    >>> import math
    >>> from turnout.accounting import CountSampling
    >>> from turnout_reproduce.fair import claims
    >>> claimed = claims.theorem_3_1_delta(1.0, items=30, floor=33)
    >>> true = CountSampling(rate=1 - math.exp(-1), floor=33).delta(1.0)
    >>> f"{claimed:.2g} is claimed, the truth is {true:.2g}"
    '5.6e-26 is claimed, the truth is 0.00052'
    """
    levels = nonnegative("epsilon", epsilon)
    number = _arguments.integer("items", items, least=1)
    users = _arguments.integer("floor", floor, least=0)
    size = 2 * math.pi * users * np.exp(-levels) * -np.expm1(-levels)
    return _largest(levels, ((2 * math.pi, size, (number + 1) / 2), (1.0, size, number / 2)))


def theorem_3_2_delta(
    epsilon: npt.ArrayLike, items: int, floor: int, nodes: int, z: float
) -> Floats | float:
    """Compute the delta that Theorem 3.2 of the fair paper claims, which is not a bound.

    The smallest delta that its first condition allows when each item is held by at least ``floor``
    of the ``nodes`` and each node is kept with probability ``1 - exp(-z - epsilon)``. It has the
    error of Theorem 3.1, the probability of a single outcome, and keeps more nodes besides. At
    epsilon 1 and z = 1, among 1000 nodes: claimed 3.4e-9, true 3.6e-2 for 30 items with floor 33;
    claimed 3.2e-5, true 1.2e-3 for 10 items with floor 100.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    items
        How many items there are.
    floor
        The smallest number of nodes that hold an item.
    nodes
        How many nodes there are.
    z
        The positive parameter of the theorem.

    Returns
    -------
    float or numpy.ndarray
        What the theorem claims, in the shape of ``epsilon``; 1 where it claims nothing.

    Raises
    ------
    InvalidValueError
        If an argument is out of range, if the items need more nodes than there are, or if ``z`` is
        above the largest that the second condition allows.
    InvalidTypeError
        If an argument is no number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, Theorem 3.2.

    Examples
    --------
    >>> import math
    >>> from turnout.accounting import CountSampling
    >>> from turnout_reproduce.fair import claims
    >>> claimed = claims.theorem_3_2_delta(1.0, items=30, floor=33, nodes=1000, z=1.0)
    >>> true = CountSampling(rate=1 - math.exp(-2), floor=33).delta(1.0)
    >>> f"{claimed:.2g} is claimed, the truth is {true:.2g}"
    '3.4e-09 is claimed, the truth is 0.036'
    """
    levels = nonnegative("epsilon", epsilon)
    number = _arguments.integer("items", items, least=1)
    users = _arguments.integer("floor", floor, least=0)
    total = _arguments.integer("nodes", nodes, least=1)
    extra = positive("z", z)
    if number * users > total:
        raise _arguments.invalid(f"nodes must be at least items * floor = {number * users}", total)
    half = -np.expm1(-levels / 2)
    largest = np.log1p((total - users * (number - 1)) * half)
    if (extra > largest).any():
        raise _arguments.invalid(
            f"z must be at most {float(largest.min()):g} for the second condition of the theorem", z
        )
    size = 2 * math.pi * users * half**2 * np.exp(-extra - levels)
    joint = size * (1 + np.exp(-levels / 2)) ** 2
    return _largest(
        levels, ((2 * math.pi, joint, (number + 1) / 2), (4 * math.pi, size, number / 2))
    )


def theorem_3_4_delta(epsilon: npt.ArrayLike, rate: float, floor: int) -> Floats | float:
    """Compute the delta that Theorem 3.4 of the fair paper gives two-stage sampling.

    That of one stage, whatever the sets: exact sampling of one stage here, not the bound of Theorem
    3.1. It holds against a server that learns nothing but how many sets hold each item and the
    counts, which are a random function of the counts of one stage. But the first server sees every
    set, and the counts are published. Who knows the sets knows who can have been counted, and the
    others hide nobody: with one of four items in a set, a rate of 1/2, floor 100 and epsilon 1, the
    theorem gives 2.2e-11 and the delta of sets and counts is 2.8e-5. For adaptive sets, delta does
    not even fall to zero with the floor.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    rate
        The probability that a user is kept.
    floor
        The smallest number of other users that hold an item.

    Returns
    -------
    float or numpy.ndarray
        What the theorem gives for replacing one user's item, in the shape of ``epsilon``.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is no number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, Theorem 3.4.

    Examples
    --------
    >>> from turnout.accounting import TwoStageCountSampling
    >>> from turnout_reproduce.fair import claims
    >>> claimed = claims.theorem_3_4_delta(1.0, rate=0.5, floor=100)
    >>> true = TwoStageCountSampling(0.5, domain_size=4, reported=1, floor=100).delta(1.0)
    >>> f"{claimed:.2g} without the sets, {true:.2g} with them"
    '2.2e-11 without the sets, 2.8e-05 with them'
    """
    return CountSampling(rate, floor).delta(epsilon)


def _largest(levels: Floats, terms: tuple[tuple[float, Floats, float], ...]) -> Floats | float:
    """Return the largest of factor / size^power, at most one; through logarithms, for any power."""
    with np.errstate(divide="ignore", under="ignore"):
        logs = [math.log(factor) - power * np.log(size) for factor, size, power in terms]
        return shaped(np.ravel(np.exp(np.minimum(0.0, np.maximum(*logs)))), levels)


def distributed_gaussian_delta(epsilon: npt.ArrayLike, noise_multiplier: float) -> Floats | float:
    """Compute the delta that the fair paper claims for DPDG, which is not a bound.

    DPDG's noise for sensitivity G is meant to have variance ``(noise_multiplier * G)**2``, with
    ``noise_multiplier = sqrt(2 log(1.25 / delta)) / epsilon``: solved for delta,
    ``1.25 exp(-(noise_multiplier * epsilon)**2 / 2)``. But each of the n nodes adds variance
    ``(noise_multiplier * G / n)**2``, and the sum has only a share 1/n of what is needed. At
    epsilon 1 with 1000 nodes the claimed delta is 1e-5 and the true one 0.998. With all of the
    noise the classic formula holds for epsilon at most 1 only.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    noise_multiplier
        The standard deviation of the noise that is meant, over the sensitivity.

    Returns
    -------
    float or numpy.ndarray
        What the paper claims, in the shape of ``epsilon``; 1 where it claims nothing.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is no number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, section 3.1.2.

    Examples
    --------
    >>> import math
    >>> from turnout.accounting import GaussianMechanism
    >>> from turnout_reproduce.fair import claims
    >>> meant = math.sqrt(2 * math.log(1.25 / 1e-5))
    >>> claimed = claims.distributed_gaussian_delta(1.0, meant)
    >>> true = GaussianMechanism(meant / math.sqrt(1000)).delta(1.0)
    >>> f"{claimed:.3g} is claimed, the truth is {true:.3f}"
    '1e-05 is claimed, the truth is 0.998'
    """
    levels = nonnegative("epsilon", epsilon)
    deviation = positive("noise_multiplier", noise_multiplier)
    with np.errstate(over="ignore", under="ignore"):
        claimed = 1.25 * np.exp(-((deviation * levels) ** 2) / 2)
    return shaped(np.ravel(np.minimum(1.0, claimed)), levels)
