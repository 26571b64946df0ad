"""What several rounds know together, and what no number of rounds removes."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.longitudinal.memoized import Memoized


def rounds_covariance(memoized: Memoized, true_counts: Any) -> Floats:
    """Compute the covariance of the estimated counts of two rounds of the same nodes.

    The permanent answers are in both. Whoever takes part in a round is drawn afresh.

    Parameters
    ----------
    memoized
        The oracle.
    true_counts
        How many nodes hold each answer.

    Returns
    -------
    numpy.ndarray
        One covariance for each answer, float64, in squared nodes: of the estimators ``"g"``,
        ``"c_hat"`` and ``"horvitz_thompson"`` for any common rate. It is the variance of an
        estimate from the permanent answers themselves (:func:`permanent_variance`).

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is not what it should be.

    Notes
    -----
    Given the permanent answers the rounds are independent, and the estimate of each has the mean
    ``sum over nodes of (1[the permanent answer supports i] - q1) / (p1 - q1)``: for a node the mean
    of ``1[report supports i] - q`` is ``(1[permanent] - q1) (p2 - q2)``, and
    ``p - q = (p1 - q1) (p2 - q2)``.
    """
    return permanent_variance(memoized, true_counts)


def permanent_variance(memoized: Memoized, true_counts: Any) -> Floats:
    """Compute the variance that is left after any number of rounds.

    Parameters
    ----------
    memoized
        The oracle.
    true_counts
        How many nodes hold each answer.

    Returns
    -------
    numpy.ndarray
        ``[F p1 (1 - p1) + (n - F) q1 (1 - q1)] / (p1 - q1)^2`` for each answer.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is not what it should be.
    """
    held, nodes = _held(memoized, true_counts)
    p, q = memoized.stage_probabilities[0]
    result: Floats = (held * p * (1 - p) + (nodes - held) * q * (1 - q)) / (p - q) ** 2
    return result


def rounds_variance(
    memoized: Memoized, rounds: int, true_counts: Any, *, rate: float = 1.0
) -> Floats:
    """Compute the variance of the mean over several rounds of the estimated counts.

    Parameters
    ----------
    memoized
        The oracle.
    rounds
        How many rounds the same nodes report in, without a change of answer.
    true_counts
        How many nodes hold each answer.
    rate
        The rate of taking part in a round, drawn afresh in each.

    Returns
    -------
    numpy.ndarray
        One variance for each answer, float64, in squared nodes, for ``"c_hat"`` and
        ``"horvitz_thompson"``: ``V/T + (1 - 1/T) P`` with the variance V of one round and the
        variance P of :func:`permanent_variance`, below which no number of rounds leads.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is not what it should be.

    Examples
    --------
    >>> import turnout as tn
    >>> memoized = Memoized(tn.DirectEncoding(3.0, 4), first_epsilon=1.0)
    >>> counts = [4000, 3000, 2000, 1000]
    >>> one, many = (rounds_variance(memoized, rounds, counts)[0] for rounds in (1, 10_000))
    >>> floor = permanent_variance(memoized, counts)[0]
    >>> bool(floor < many < 1.01 * floor < one)
    True
    """
    number = _arguments.integer("rounds", rounds, least=1)
    share = _arguments.probability("rate", rate)
    held, nodes = _held(memoized, true_counts)
    p, q = memoized.support_probabilities
    d = p - q
    # As of "c_hat" of one round: Var = sum [pi (r (1 - 2q) + q^2) - pi^2 (r - q)^2] / (pi d)^2.
    own, other = share * (p * (1 - 2 * q) + q * q) - (share * d) ** 2, share * q * (1 - q)
    single = (held * own + (nodes - held) * other) / (share * d) ** 2
    result: Floats = single / number + (1 - 1 / number) * permanent_variance(memoized, true_counts)
    return result


def _held(memoized: Memoized, true_counts: Any) -> tuple[Floats, float]:
    _arguments.instance("memoized", memoized, Memoized, "a Memoized oracle")
    counts = _arguments.counts("true_counts", true_counts, memoized.domain.size)
    if not counts.any():
        raise InvalidValueError("true_counts must hold a node, got none")
    return counts.astype(np.float64), float(counts.sum())
