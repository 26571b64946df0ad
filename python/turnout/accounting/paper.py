"""Deltas as the papers print them, only for reproductions.

None of these bounds the loss of what is published: each docstring says what is wrong and by how
much. The bounds are :class:`turnout.accounting.RandomParticipation` and
:class:`turnout.accounting.CountSampling`; nothing in turnout calibrates anything with this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.accounting.values import nonnegative, positive, shaped

__all__ = ["theorem_3_1_delta", "theorem_3_2_delta", "theorem_4_1_delta"]


def theorem_4_1_delta(
    epsilon: npt.ArrayLike,
    client_rate: float,
    sample_rate: float,
    local_size: int,
    noise_multiplier: float,
) -> Floats | float:
    """Compute equation (6) of the participation paper, which is not a bound.

    Its proof replaces vector means by their largest norms between two mixtures, but that divergence
    does not grow with the norms. With aligned gradients of full norm, the mixture without the
    element hides part of the mixture with it. With ``client_rate=1`` and other gradients of zero
    the round is plain Poisson sampling: at ``sample_rate=0.1, local_size=10, noise_multiplier=1``
    and epsilon 0.5 the equation gives 7.13e-6 and the true delta is 2.03e-3. In the paper's own two
    settings, epsilon 0.015, noise 1.065 and 0.646, claimed delta 1e-6, the equation itself gives
    1.34e-5 and 5.1e-20, and gradients at an angle have a delta of at least 1.57e-5 and 2.69e-6.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    client_rate
        The probability that a client takes part.
    sample_rate
        The probability that an element of a participating client is sampled.
    local_size
        The number of other elements that the client holds.
    noise_multiplier
        The standard deviation of the noise over the clipping norm.

    Returns
    -------
    float or numpy.ndarray
        The claim of the theorem, in the shape of ``epsilon``.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is not a number.

    References
    ----------
    Hasircioglu, Gunduz: Privacy Amplification via Random Participation in Federated Learning,
    Theorem 4.1 and Appendix A.1.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling, paper
    >>> claimed = paper.theorem_4_1_delta(0.5, 1.0, 0.1, 10, 1.0)
    >>> true = LocalSampling(0.1, 1.0).delta(0.5)
    >>> f"{claimed:.3g} is claimed, the truth is {true:.5g}"
    '7.13e-06 is claimed, the truth is 0.0020325'
    """
    from scipy import special  # noqa: PLC0415 (slow)

    levels = nonnegative("epsilon", epsilon)
    p, q, step, counts, logs = _round(client_rate, sample_rate, local_size, noise_multiplier)
    near, far = counts * step, (counts + 1) * step

    def claimed(level: float) -> float:
        # Beyond 700 e^epsilon overflows, and so does nothing else: no delta is left there.
        if level >= 700:
            return 0.0
        # The paper's pq, pq alpha' c2_bar and pq alpha' c1_bar; written without alpha', which
        # cancels, they stay finite for p = q = 1 and for tiny rates.
        gain = math.expm1(level)
        sampled, absent, away = p * q, p * (gain + q), gain * (1 - p)

        def excess(z: float) -> float:
            # Equation (7) as the difference of the logarithms of its sides, in units of the noise.
            left = math.log(sampled) + special.logsumexp(logs + far * z - far**2 / 2)
            right = math.log(absent) + special.logsumexp(logs + near * z - near**2 / 2)
            return float(left - (np.logaddexp(right, math.log(away)) if away > 0 else right))

        z = _root_of_increasing(excess)
        tails = sampled * special.ndtr(far - z) - absent * special.ndtr(near - z)
        delta = float(np.exp(logs) @ tails - away * special.ndtr(-z))
        return min(1.0, max(0.0, delta))

    return shaped(np.array([claimed(level) for level in levels.ravel().tolist()]), levels)


def _round(
    client_rate: float, sample_rate: float, local_size: int, noise_multiplier: float
) -> tuple[float, float, float, Floats, Floats]:
    """Check a round; return both rates, the norm over the noise, and the law of sampled elements.

    This law has the numbers of other sampled elements, with the logarithms of the probabilities.
    """
    from scipy import stats  # noqa: PLC0415 (slow)

    p = _arguments.probability("client_rate", client_rate)
    q = _arguments.probability("sample_rate", sample_rate)
    size = _arguments.integer("local_size", local_size, least=0, most=10**7)
    step = 1 / positive("noise_multiplier", noise_multiplier)
    counts = np.arange(size + 1.0)
    logs = stats.binom.logpmf(counts, size, q)
    return p, q, step, counts[logs > -1000], logs[logs > -1000]


def _root_of_increasing(function: Callable[[float], float]) -> float:
    from scipy import optimize  # noqa: PLC0415 (slow)

    low, high = -1.0, 1.0
    while function(low) > 0:
        low *= 2
    while function(high) < 0:
        high *= 2
    return float(optimize.brentq(function, low, high, xtol=1e-14, rtol=1e-15))


def theorem_3_1_delta(epsilon: npt.ArrayLike, items: int, floor: int) -> Floats | float:
    """Compute the delta that Theorem 3.1 of the fair paper claims, which is not a bound.

    It is the smallest delta that condition (2) allows if at least ``floor`` users hold each item
    and each user is kept with probability ``1 - exp(-epsilon)``. It is the probability of a single
    outcome. It falls exponentially in the number of items, although replacing one user's item
    changes only two counts. At epsilon 1: claimed 1.5e-11, true 6.0e-8 for 10 items with floor 100;
    claimed 5.6e-26, true 5.2e-4 for 30 items with floor 33; claimed 1e-58, true 2.7e-2 for 100
    items with floor 10. It is on the safe side only for very few items.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    items
        The number of items.
    floor
        The smallest number of users that hold an item.

    Returns
    -------
    float or numpy.ndarray
        The claim of the theorem, in the shape of ``epsilon``; 1 where it claims nothing.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is not a number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, Theorem 3.1.

    Examples
    --------
    >>> import math
    >>> from turnout.accounting import CountSampling, paper
    >>> claimed = paper.theorem_3_1_delta(1.0, items=30, floor=33)
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

    It is the smallest delta that its first condition allows if at least ``floor`` of the ``nodes``
    hold each item and each node is kept with probability ``1 - exp(-z - epsilon)``. It has the
    error of Theorem 3.1, the probability of a single outcome, and also keeps more nodes. At epsilon
    1 and z = 1, among 1000 nodes: claimed 3.4e-9, true 3.6e-2 for 30 items with floor 33; claimed
    3.2e-5, true 1.2e-3 for 10 items with floor 100.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    items
        The number of items.
    floor
        The smallest number of nodes that hold an item.
    nodes
        The number of nodes.
    z
        The positive parameter of the theorem.

    Returns
    -------
    float or numpy.ndarray
        The claim of the theorem, in the shape of ``epsilon``; 1 where it claims nothing.

    Raises
    ------
    InvalidValueError
        If an argument is out of range, if the items need more nodes than exist, or if ``z`` is
        above the largest value that the second condition allows.
    InvalidTypeError
        If an argument is not a number.

    References
    ----------
    Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency
    Estimation, Theorem 3.2.

    Examples
    --------
    >>> import math
    >>> from turnout.accounting import CountSampling, paper
    >>> claimed = paper.theorem_3_2_delta(1.0, items=30, floor=33, nodes=1000, z=1.0)
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


def _largest(levels: Floats, terms: tuple[tuple[float, Floats, float], ...]) -> Floats | float:
    """Return the largest factor / size^power, at most one, computed from logarithms."""
    with np.errstate(divide="ignore", under="ignore"):
        logs = [math.log(factor) - power * np.log(size) for factor, size, power in terms]
        return shaped(np.ravel(np.exp(np.minimum(0.0, np.maximum(*logs)))), levels)
