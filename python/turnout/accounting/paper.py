"""The delta that the participation paper prints, for reproductions only.

It is no bound of what is published: the docstring says what is wrong and by how much. The bound is
:class:`turnout.accounting.RandomParticipation`; nothing in turnout calibrates anything with this
module.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.accounting.values import nonnegative, positive, shaped

__all__ = ["theorem_4_1_delta"]


def theorem_4_1_delta(
    epsilon: npt.ArrayLike,
    client_rate: float,
    sample_rate: float,
    local_size: int,
    noise_multiplier: float,
) -> Floats | float:
    """Compute equation (6) of the participation paper, which is not a bound.

    Its proof replaces vector means by their largest norms between two mixtures, and that divergence
    does not grow with the norms: aligned gradients of full norm let the mixture without the element
    hide part of the mixture with it. With ``client_rate=1`` and other gradients of zero the round
    is plain Poisson sampling: at ``sample_rate=0.1, local_size=10, noise_multiplier=1`` and epsilon
    0.5 the equation gives 7.13e-6 and the true delta is 2.03e-3. In the paper's own two settings,
    epsilon 0.015, noise 1.065 and 0.646, claimed delta 1e-6, the equation itself gives 1.34e-5 and
    5.1e-20, and gradients at an angle have a delta of at least 1.57e-5 and 2.69e-6.

    Parameters
    ----------
    epsilon
        At least zero: one number or an array.
    client_rate
        The probability that a client takes part.
    sample_rate
        The probability that an element of a participating client is sampled.
    local_size
        How many other elements the client holds.
    noise_multiplier
        The standard deviation of the noise over the clipping norm.

    Returns
    -------
    float or numpy.ndarray
        What the theorem claims, in the shape of ``epsilon``.

    Raises
    ------
    InvalidValueError
        If an argument is out of range.
    InvalidTypeError
        If an argument is no number.

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
    """Check a round; give both rates, the norm over the noise, and a law of sampled elements.

    That is how many of the others are sampled, with the logarithms of the probabilities.
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
