"""Deltas as the fair paper prints them for two stages and for noise.

Neither is a bound of what is published: each docstring says what is wrong and by how much. The
bounds are :class:`turnout.accounting.TwoStageCountSampling` and
:class:`turnout.accounting.GaussianMechanism`. What it prints for one stage stands in
:mod:`turnout.accounting.paper`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout._types import Floats
from turnout.accounting.counts import CountSampling
from turnout.accounting.values import nonnegative, positive, shaped


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
