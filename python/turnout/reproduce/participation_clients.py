"""Deltas of clients that can exist: no bound of a round can be below them."""

from __future__ import annotations

import numpy as np

from turnout._search import first_at_most
from turnout._types import Floats
from turnout.accounting import RandomParticipation, participation_delta
from turnout.accounting.paper import theorem_4_1_delta

_CELLS = 400
_WIDTH = 1e-9


def real_delta(mechanism: RandomParticipation, epsilon: float) -> float:
    """Compute the delta that a round has for one of two clients, whichever has the larger.

    All gradients are of full norm. Those of the first client are all equal; the divergence of that
    is what the paper's Theorem 4.1 gives. Those of the second client, but for the protected
    element, are equal and at a right angle to it. What is seen along them tells how likely it is
    that the client takes part, r, and what is seen along the element is then only local sampling at
    the rate q r. The seen values are put into cells, which can only lower delta.

    Parameters
    ----------
    mechanism
        The round.
    epsilon
        At least zero.

    Returns
    -------
    float
        At most the true delta of the round, up to rounding.

    Examples
    --------
    >>> printed = RandomParticipation(0.1, 0.001, local_size=1000, noise_multiplier=0.646)
    >>> f"{real_delta(printed, 0.015):.3g}"
    '2.04e-06'
    """
    p, q, noise = mechanism.client_rate, mechanism.sample_rate, mechanism.noise_multiplier
    aligned = theorem_4_1_delta(epsilon, p, q, mechanism.local_size, noise)
    seen, rates = _posterior(mechanism)
    across = max(
        float(seen @ participation_delta(epsilon, noise, 1.0, q * rates, 0, adjacency=adjacency))
        for adjacency in ("remove", "add")
    )
    return max(float(aligned), across)


def real_epsilon(mechanism: RandomParticipation, delta: float) -> float:
    """Find the epsilon at which the delta of :func:`real_delta` falls to a level.

    Parameters
    ----------
    mechanism
        The round.
    delta
        Above zero.

    Returns
    -------
    float
        Zero if it is below the level everywhere.

    Examples
    --------
    >>> mechanism = RandomParticipation(0.1, 0.1, local_size=10, noise_multiplier=1.0)
    >>> real_epsilon(mechanism, 1e-6) < mechanism.epsilon(1e-6)
    True
    """

    def spent(epsilon: float) -> float:
        return real_delta(mechanism, epsilon)

    if spent(0.0) <= delta:
        return 0.0
    # The bound is above it.
    most = mechanism.epsilon(delta) * (1.0 + _WIDTH)
    return first_at_most(spent, delta, 0.0, most, _WIDTH)


def _posterior(mechanism: RandomParticipation) -> tuple[Floats, Floats]:
    """Give the probabilities of the cells, and that the client takes part in each of them."""
    from scipy import special, stats  # noqa: PLC0415 (slow)

    counts = np.arange(mechanism.local_size + 1.0)
    masses = stats.binom.pmf(counts, mechanism.local_size, mechanism.sample_rate)
    kept = masses > 1e-18
    means, masses = counts[kept] / mechanism.noise_multiplier, masses[kept]
    inner = np.linspace(-8.0, means.max() + 8.0, _CELLS - 1)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    away = (1.0 - mechanism.client_rate) * np.diff(special.ndtr(edges))
    there = mechanism.client_rate * (masses @ np.diff(special.ndtr(edges - means[:, None])))
    seen = away + there
    reached = seen > 0.0
    return seen[reached], np.minimum(1.0, there[reached] / seen[reached])
