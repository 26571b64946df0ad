"""Exact design-based variances as functions of the true counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.statistic import mean_inverse
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.law import Law, check_law
from turnout.frequency.estimation.models import ScoreMoments, excess_model, support_model
from turnout.participation import Participation, Personalized, stated_participation


def estimator_variance(
    oracle: Law,
    participation: Participation | float,
    *,
    method: str = "hajek",
    true_counts: Any = None,
    values: Any = None,
) -> Floats:
    """Compute the exact variance of the estimated counts for a given population.

    The values are fixed; participation and perturbation are random, and so is the choice of hash
    functions that all reports share.

    Parameters
    ----------
    oracle
        The randomizer.
    participation
        Who takes part; a number is the rate of all.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    true_counts
        How many nodes hold each answer: enough for a common rate.
    values
        The answers of all nodes: needed for personal probabilities.

    Returns
    -------
    numpy.ndarray
        One variance for each answer, float64, in squared nodes. For ``"hajek"`` given that there
        is a report: exact for a common rate, of the linearised ratio for personal probabilities.

    Raises
    ------
    InvalidValueError
        If both or none of ``true_counts`` and ``values`` are given, if there are no nodes, or if
        the estimator does not apply to personal probabilities.
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    With ``r`` the support probability of a node's report: Var g = sum pi r (1 - pi r) / (pi d)^2,
    Var c_hat = sum [pi (r (1 - 2q) + q^2) - pi^2 (r - q)^2] / (pi d)^2, Var T the former with sums
    of personal pi, Var HT = sum {[r (1 - 2q) + q^2] / (pi d^2) - 1[x = i]}.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, 10)
    >>> counts = [500] * 10
    >>> def variance(method):
    ...     rate = tn.Bernoulli(0.3)
    ...     return tn.estimator_variance(oracle, rate, method=method, true_counts=counts)[0]
    >>> bool(variance("c_hat") < variance("g"))
    True
    """
    check_law("oracle", oracle)
    participation = stated_participation(participation)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    if (true_counts is None) == (values is None):
        raise InvalidValueError("exactly one of true_counts and values must be given")
    scores = oracle.score_moments
    size = oracle.domain.size
    rate = participation.uniform_rate
    if rate is None:
        if values is None or not isinstance(participation, Personalized):
            raise _arguments.invalid(
                "values and the probabilities of all nodes are needed for personal participation",
                participation,
            )
        codes = oracle.domain.encode(values)
        probabilities = participation.probabilities
        if probabilities.size != codes.size:
            raise InvalidValueError(
                f"probabilities and values must have the same length, got {probabilities.size} and "
                f"{codes.size}"
            )
        _check_nodes(codes.size)
        held = np.bincount(codes.astype(np.int64), minlength=size).astype(np.float64)
        return _personal(codes, probabilities, oracle, method) + _pool(oracle, held)
    if values is not None:
        true_counts = np.bincount(oracle.domain.encode(values).astype(np.int64), minlength=size)
    counts = _arguments.counts("true_counts", true_counts, size)
    nodes = sum(counts.tolist())
    _check_nodes(nodes)
    frequencies = counts.astype(np.float64) / nodes
    pool = _pool(oracle, counts.astype(np.float64))
    if method == "hajek":
        return _hajek(nodes, rate, frequencies, scores) + pool
    if method in {"c_hat", "horvitz_thompson"}:
        model = excess_model(nodes, rate, scores)
    else:
        model = support_model(nodes, rate, scores)
    scale = 1 / scores.difference if method == "c" else nodes / model.b
    # What the functions of a pool shift, "c" shrinks like everything else.
    pool = pool * rate**2 if method == "c" else pool
    result: Floats = scale**2 * model.statistic_variance(frequencies) + pool
    return result


def _pool(oracle: Law, held: Floats) -> Floats:
    """Give the variance that comes from hash functions which all reports share."""
    result: Floats = oracle.shared_variance(held.sum() - held, (held * held).sum() - held * held)
    return result


def _check_nodes(nodes: int) -> None:
    if nodes == 0:
        raise InvalidValueError("there must be at least one node, got none")


def _hajek(nodes: int, rate: float, frequencies: Floats, scores: ScoreMoments) -> Floats:
    """Average the variance given S over the binomial number S of reports, given one."""
    d = scores.difference
    inverse = mean_inverse(nodes, rate)
    perturbation = frequencies * scores.own_variance + (1 - frequencies) * scores.other_variance
    sampling = (nodes * inverse - 1) / (nodes - 1) if nodes > 1 else 0.0
    variance = perturbation * inverse / d**2 + frequencies * (1 - frequencies) * sampling
    result: Floats = float(nodes) ** 2 * variance
    return result


def _personal(codes: npt.NDArray[np.integer[Any]], pi: Floats, oracle: Law, method: str) -> Floats:
    scores = oracle.score_moments
    p, q, d = scores.own, scores.other, scores.difference
    size = oracle.domain.size
    result: Floats
    nodes = codes.size
    position = codes.astype(np.int64)
    held = np.bincount(position, minlength=size).astype(np.float64)
    if method in {"c", "T"}:
        first = np.bincount(position, weights=pi, minlength=size)
        second = np.bincount(position, weights=pi * pi, minlength=size)
        mean = scores.other_second * pi.sum()
        mean = mean + (scores.own_second - scores.other_second) * first
        squares = q * q * (pi * pi).sum() + (p * p - q * q) * second
        scale = nodes / (d * pi.sum()) if method == "T" else 1.0 / d
        result = scale**2 * (mean - squares)
        return result
    if method in {"horvitz_thompson", "hajek"}:
        inverse = np.bincount(position, weights=1 / pi, minlength=size)
        total = (1 / pi).sum()
        second_moment = scores.other_variance * total
        second_moment = second_moment + (scores.own_excess - scores.other_variance) * inverse
        second_moment = second_moment / d**2
        f = held / nodes
        if method == "horvitz_thompson":
            result = second_moment - held
        else:
            result = second_moment - 2 * f * inverse + f * f * total - nodes * f * (1 - f)
        return result
    raise _arguments.invalid(
        "method must be one that takes personal probabilities (T, horvitz_thompson, hajek, c)",
        method,
    )
