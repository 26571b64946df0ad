"""Estimators of the true counts from a tally.

The notation is that of Biswas, Cormode, Maple, "Impact of sampling on locally differentially
private data collection", for every pure protocol. There are ``n`` nodes, each taking part with
probability ``pi_j``. ``S`` reports were received, and ``C`` of them support an answer. ``p`` and
``q`` are the support probabilities, or the means of the scores if reports hold scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._types import Floats, Integers
from turnout.collecting.intervals import StatisticModel, mean_inverse
from turnout.collecting.sums import WeightedSums
from turnout.collecting.tally import CountedTally, nothing_received
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.draws import personal_probabilities
from turnout.frequency.estimation.models import (
    ScoreMoments,
    excess_model,
    personal_support_model,
    ratio_model,
    support_model,
)
from turnout.participation import Participation


@dataclass(frozen=True)
class Estimation:
    """Estimated frequencies with the variances of the estimates.

    ``model`` and ``statistic`` exist if there is a score interval, ``degrees`` of freedom if the
    variances come from residuals, and ``interval_variances`` if intervals need larger ones.
    ``limits`` exists if the law is known exactly: it returns, for a level, limits of the
    frequencies, each of which covers with at least that level.
    """

    frequencies: Floats
    variances: Floats
    model: StatisticModel | None = None
    statistic: Floats | None = None
    bias: str | None = None
    degrees: float | None = None
    interval_variances: Floats | None = None
    limits: Callable[[float], tuple[Floats, Floats]] | None = None


def with_pool(estimation: Estimation, oracle: Any, nodes: int) -> Estimation:
    """Add the error of hash functions that all reports share, if there are any.

    It depends on the squares of the true frequencies, whose sum is estimated without bias and kept
    from ``1/k`` to 1.
    """
    size = oracle.domain.size
    frequencies, variances = estimation.frequencies, estimation.variances
    if not oracle._shared_variance(float(nodes), float(nodes) ** 2):
        return estimation
    squares = float((frequencies**2).sum() - variances.sum())
    squares = 1.0 if math.isnan(squares) else min(max(squares, 1.0 / size), 1.0)
    # Over all answers instead of all others: a little more.
    extra = oracle._shared_variance(float(nodes), squares * float(nodes) ** 2) / float(nodes) ** 2
    model = estimation.model
    if model is not None:
        # The support is no longer a number of successes in independent trials.
        model = replace(model, v0=model.v0 + extra * model.b**2, trials=None)
    wide = estimation.interval_variances
    return replace(
        estimation,
        variances=variances + extra,
        model=model,
        interval_variances=None if wide is None else wide + extra,
    )


def _support(tally: CountedTally) -> Floats:
    result: Floats = tally.sums.astype(np.float64)
    return result


def _common_rate(tally: CountedTally, name: str) -> float:
    rate = tally.participation.uniform_rate
    if rate is None:
        raise EstimatorError(
            f"{name!r} needs one participation rate for all nodes, and these have personal "
            'probabilities: use "hajek" or "horvitz_thompson", or "T" if participation does not '
            "depend on the values"
        )
    return rate


def _from_model(model: StatisticModel, statistic: Floats) -> Estimation:
    frequencies = model.frequency(statistic)
    variances = model.variance(np.clip(frequencies, 0.0, 1.0))
    return Estimation(frequencies, variances, model, statistic)


def _unsampled(tally: CountedTally) -> Estimation:
    """``c = (C - n q) / (p - q)``: unbiased only when everyone takes part (Theorem 2.1)."""
    scores = tally.oracle._score_moments
    q, d = scores.other, scores.difference
    n, support = tally.nodes, _support(tally)
    sampled = _support_model(tally)
    if tally.participation.uniform_rate == 1.0:
        return _from_model(sampled, support)
    frequencies = (support - n * q) / (n * d)
    plug_in = np.clip(sampled.frequency(support), 0.0, 1.0)
    variances = sampled.statistic_variance(plug_in) / (n * d) ** 2
    reason = (
        '"c" takes every node for a participant: its mean is that of the true count shrunk by '
        'the participation rate, less n q (1 - rate) / (p - q); use "hajek"'
    )
    return Estimation(frequencies, variances, bias=reason)


def _rescaled(tally: CountedTally) -> Estimation:
    """``g = (C - n pi q) / (pi (p - q))``: unbiased for a common rate (Theorem 3.1)."""
    _common_rate(tally, "g")
    return _from_model(_support_model(tally), _support(tally))


def _received(tally: CountedTally) -> Estimation:
    """``c_hat = (C - S q) / (pi (p - q))``: unbiased (Theorem 3.4), never worse than g."""
    rate = _common_rate(tally, "c_hat")
    scores = tally.oracle._score_moments
    model = excess_model(tally.nodes, rate, scores)
    return _from_model(model, _support(tally) - tally.received * scores.other)


def _total(tally: CountedTally) -> Estimation:
    """``T = n (C - q sum pi) / ((p - q) sum pi)``, Theorem 5.1.

    Unbiased only if the probabilities do not depend on the values; otherwise it estimates the
    frequencies weighted by the probabilities.
    """
    return _from_model(_support_model(tally), _support(tally))


def _horvitz_thompson(tally: CountedTally) -> Estimation:
    """``HT = sum over reports of (1[supports] - q) / (pi_j (p - q))``: always unbiased."""
    scores = tally.oracle._score_moments
    q, d = scores.other, scores.difference
    rate = tally.participation.uniform_rate
    if rate is not None:
        return _received(tally)
    if tally.received == 0:
        raise EstimatorError(
            '"horvitz_thompson" estimates its variance from the reports, and none were '
            'received: use "T" if participation does not depend on the values'
        )
    sums: WeightedSums = tally.weights
    n = tally.nodes
    counts = (sums.inverse - q * sums.total_inverse) / d
    # Unbiased: sum of z^2 / pi^2 over the reports estimates sum of E[z^2] / pi over all nodes.
    unbiased = _second_moments(sums, scores) - counts
    # But far too small for an answer that hardly any report supports: see _cautious.
    cautious = _cautious(counts / n, sums)
    excess = scores.other_variance + (scores.own_excess - scores.other_variance) * cautious
    least = excess / d**2 * sums.total_inverse_squared - n * cautious
    variances = np.maximum(unbiased, 0.0) / n**2
    wide = np.maximum(variances, least / n**2)
    return Estimation(counts / n, variances, interval_variances=wide)


def _second_moments(sums: WeightedSums, scores: ScoreMoments) -> Floats:
    """Estimate the sum of ``E[z^2] / pi`` over all nodes, ``z`` the score less q, over d."""
    q = scores.other
    # The mean square of a score is the constant plus the slope times its mean, whoever reports.
    slope = (scores.own_second - scores.other_second) / scores.difference
    constant = scores.other_second - slope * q
    second: Floats = (slope - 2 * q) * sums.inverse_squared
    second = second + (constant + q * q) * sums.total_inverse_squared
    return second / scores.difference**2


def _cautious(frequencies: Floats, sums: WeightedSums) -> Floats:
    """Frequencies drawn towards 1/2 by four reports, after Agresti and Coull (1998).

    For variances: the residuals of an answer that hardly any report supports are next to nothing,
    though another draw might have brought some. Reports count as many as their weights are worth
    (Kish).
    """
    worth = sums.total_inverse**2 / sums.total_inverse_squared
    drawn: Floats = (np.clip(frequencies, 0.0, 1.0) * worth + 2.0) / (worth + 4.0)
    return drawn


def _hajek(tally: CountedTally) -> Estimation:
    """``HJ = n HT / sum over reports of 1 / pi_j``: needs no rate when it is common.

    The standard error is that given the number of reports; with personal probabilities it is that
    of the linearised ratio.
    """
    if tally.received == 0:
        raise nothing_received()
    scores = tally.oracle._score_moments
    q, d = scores.other, scores.difference
    n = tally.nodes
    if tally.participation.uniform_rate is not None:
        return _from_model(ratio_model(n, tally.received, scores), _support(tally))
    sums: WeightedSums = tally.weights
    total, total_of_squares = sums.total_inverse, sums.total_inverse_squared
    frequencies = (sums.inverse - q * total) / (d * total)
    cross = (sums.inverse_squared - q * total_of_squares) / d
    residuals = (
        _second_moments(sums, scores) - 2 * frequencies * cross + frequencies**2 * total_of_squares
    )
    # As many reports of equal weight as these are worth (Kish); one is taken by the estimate.
    degrees = total**2 / total_of_squares - 1.0
    if degrees < 1e-9:
        return Estimation(frequencies, np.full_like(frequencies, np.inf))
    cautious = _cautious(frequencies, sums)
    noise = cautious * scores.own_variance + (1 - cautious) * scores.other_variance
    noise = noise / d**2
    least = total_of_squares * (noise + cautious * (1 - cautious))
    spread = np.maximum(residuals * (degrees + 1.0) / degrees, least) / total**2
    inside = np.clip(frequencies, 0.0, 1.0)
    variances = np.maximum(spread - inside * (1 - inside) / n, 0.0)
    return Estimation(frequencies, variances, degrees=degrees)


def _support_model(tally: CountedTally) -> StatisticModel:
    scores = tally.oracle._score_moments
    rate = tally.participation.uniform_rate
    if rate is not None:
        return support_model(tally.nodes, rate, scores)
    design: Any = tally.design
    mean, squares = design.mean_received, design.sum_of_squares
    return personal_support_model(tally.nodes, mean, squares, scores)


#: Computes frequencies from a tally, or says why this cannot be done.
Estimator = Callable[[CountedTally], Estimation]

#: All estimators by name.
ESTIMATORS: Final[dict[str, Estimator]] = {
    "hajek": _hajek,
    "horvitz_thompson": _horvitz_thompson,
    "c_hat": _received,
    "g": _rescaled,
    "T": _total,
    "c": _unsampled,
}


def count_variances(
    oracle: Any,
    participation: Participation,
    method: str = "hajek",
    true_counts: Any = None,
    values: Any = None,
) -> Floats:
    """Compute the exact variances of the estimated counts.

    With ``r`` the support probability of a node's report: Var g = sum pi r (1 - pi r) / (pi d)^2,
    Var c_hat = sum [pi (r (1 - 2q) + q^2) - pi^2 (r - q)^2] / (pi d)^2, Var T the former with sums
    of personal pi, Var HT = sum {[r (1 - 2q) + q^2] / (pi d^2) - 1[x = i]}.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As :func:`turnout.estimator_variance`.
    """
    _arguments.choice("method", method, tuple(ESTIMATORS))
    if (true_counts is None) == (values is None):
        raise InvalidValueError("exactly one of true_counts and values must be given")
    scores, size, rate = oracle._score_moments, oracle.domain.size, participation.uniform_rate
    if values is not None:
        codes = oracle.domain.encode(values).astype(np.int64)
        true_counts = np.bincount(codes, minlength=size)
    elif rate is None:
        raise _arguments.invalid(
            "values and the probabilities of all nodes are needed for personal participation",
            participation,
        )
    counts = _arguments.counts("true_counts", true_counts, size)
    nodes = sum(counts.tolist())
    if nodes == 0:
        raise InvalidValueError("expected at least one node")
    held = counts.astype(np.float64)
    # What comes from hash functions which all reports share.
    pool: Floats = oracle._shared_variance(held.sum() - held, (held * held).sum() - held * held)
    if rate is None:
        probabilities = personal_probabilities(participation, nodes)
        return _personal_variance(codes, probabilities, held, scores, method) + pool
    frequencies = held / nodes
    if method == "hajek":
        # The variance given S, averaged over the binomial number S of reports, given one.
        inverse = mean_inverse(nodes, rate)
        noise = frequencies * scores.own_variance + (1 - frequencies) * scores.other_variance
        sampling = (nodes * inverse - 1) / (nodes - 1) if nodes > 1 else 0.0
        variance = noise * inverse / scores.difference**2
        variance = variance + frequencies * (1 - frequencies) * sampling
        weighted: Floats = float(nodes) ** 2 * variance + pool
        return weighted
    if method in {"c_hat", "horvitz_thompson"}:
        model = excess_model(nodes, rate, scores)
    else:
        model = support_model(nodes, rate, scores)
    scale = 1 / scores.difference if method == "c" else nodes / model.b
    # What the functions of a pool shift, "c" shrinks like everything else.
    pool = pool * rate**2 if method == "c" else pool
    result: Floats = scale**2 * model.statistic_variance(frequencies) + pool
    return result


def _personal_variance(
    codes: Integers, pi: Floats, held: Floats, scores: ScoreMoments, method: str
) -> Floats:
    p, q, d = scores.own, scores.other, scores.difference
    size, nodes = held.size, codes.size
    result: Floats
    if method in {"c", "T"}:
        first = np.bincount(codes, weights=pi, minlength=size)
        second = np.bincount(codes, weights=pi * pi, minlength=size)
        mean = scores.other_second * pi.sum()
        mean = mean + (scores.own_second - scores.other_second) * first
        squares = q * q * (pi * pi).sum() + (p * p - q * q) * second
        scale = nodes / (d * pi.sum()) if method == "T" else 1.0 / d
        result = scale**2 * (mean - squares)
        return result
    if method in {"horvitz_thompson", "hajek"}:
        inverse = np.bincount(codes, weights=1 / pi, minlength=size)
        total = (1 / pi).sum()
        second_moment = scores.other_variance * total
        second_moment = second_moment + (scores.own_excess - scores.other_variance) * inverse
        result = second_moment / d**2
        f = held / nodes
        if method == "hajek":
            result += f * f * total - 2 * f * inverse - nodes * f * (1 - f)
        else:
            result -= held
        return result
    raise _arguments.invalid(
        "method must be one that takes personal probabilities (T, horvitz_thompson, hajek, c)",
        method,
    )
