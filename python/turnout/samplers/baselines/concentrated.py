"""Zero-concentrated differential privacy: what it says about epsilon and delta."""

from __future__ import annotations

import functools
import math

#: The relative error of each of the terms of a sum, with room to spare.
_ROUNDING = 2.0**-48


def log_delta(rho: float, epsilon: float) -> float:
    """Bound the logarithm of delta of a rho-zCDP mechanism, rounding included.

    For every order ``alpha > 1``, with ``t = alpha - 1``, delta is at most ``exp(t (alpha rho -
    epsilon)) / t * (1 - 1 / alpha)^alpha``: corollary 13 of Canonne, Kamath, Steinke, "The Discrete
    Gaussian for Differential Privacy" (2020). Any order gives a bound, so the search for the best
    need not be exact; the errors of the terms are added.

    Parameters
    ----------
    rho
        The parameter, above 0.
    epsilon
        The epsilon, above 0.

    Returns
    -------
    float
        An upper bound of the natural logarithm of delta, at most 0.

    Examples
    --------
    >>> log_delta(0.01, 1.0) < -20.0
    True
    """
    # The derivative by alpha is increasing: (2 alpha - 1) rho - epsilon + log(1 - 1 / alpha).
    low, high = -120.0, math.log1p(epsilon / rho + 1.0 / math.sqrt(rho)) + 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        t = math.exp(middle)
        if (2.0 * t + 1.0) * rho - epsilon - math.log1p(1.0 / t) > 0.0:
            high = middle
        else:
            low = middle
    t = math.exp(high)
    terms = (t * (1.0 + t) * rho, -t * epsilon, t * math.log(t), -(1.0 + t) * math.log1p(t))
    return min(0.0, math.fsum(terms) + _ROUNDING * math.fsum(abs(term) for term in terms))


@functools.lru_cache(maxsize=64)
def largest_rho(epsilon: float, delta: float) -> float:
    """Find a parameter of zCDP that gives (epsilon, delta), and hardly any larger one does.

    Parameters
    ----------
    epsilon
        The epsilon, above 0.
    delta
        The delta, above 0 and below 1.

    Returns
    -------
    float
        The parameter: every smaller one gives (epsilon, delta) too.

    Examples
    --------
    >>> round(largest_rho(1.0, 1e-6), 4)
    0.0244
    """
    # A bound of the logarithm itself is compared, and exp and log are not exact.
    goal = math.log(delta) * (1.0 + _ROUNDING) - _ROUNDING
    low, high = -200.0, math.log(epsilon) + 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if log_delta(math.exp(middle), epsilon) <= goal:
            low = middle
        else:
            high = middle
    return math.exp(low)
