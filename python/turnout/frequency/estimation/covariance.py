"""Covariances between the estimated frequencies of different answers.

Every pair of answers ``i``, ``j`` has covariance ``c0 + c1 (f_i + f_j) + c2 f_i f_j``, with the
same three numbers for all pairs (and, for Hadamard response, a part in proportion to the frequency
of one third answer). So the variance of a sum over answers takes as many operations as it has
terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from turnout._types import Floats
from turnout.errors import EstimatorError
from turnout.frequency.estimation.models import PairSupport
from turnout.frequency.estimation.projection import simplex

if TYPE_CHECKING:
    from turnout.frequency.estimation.estimate import FrequencyEstimate

#: Numbers of a block of transforms.
_BLOCK = 2**22


def pair_support(oracle: Any) -> PairSupport:
    """Return the pair probabilities of an oracle.

    They are not the same for all answers where reports of three answers hang together: see
    ``_pair_support`` of each oracle.

    Parameters
    ----------
    oracle
        The randomizer.

    Returns
    -------
    PairSupport
        The probabilities.

    Raises
    ------
    EstimatorError
        If they are not the same for all answers.

    Examples
    --------
    >>> import turnout as tn
    >>> pair_support(tn.DirectEncoding(1.0, 4))
    PairSupport(own=0.0, other=0.0, aligned=0.0)
    """
    found: PairSupport | None = oracle._pair_support
    if found is None:
        raise EstimatorError(
            f"the covariances of the estimates of {oracle.name!r} do not follow from "
            "a tally: the supports of different answers depend on each other; pass "
            "the reports"
        )
    return found


@dataclass(frozen=True)
class Covariance:
    """The covariance matrix of estimated frequencies, in structured form.

    Attributes
    ----------
    frequencies
        The frequencies at which the covariances are computed.
    variances
        Its diagonal.
    constant, linear, product
        The covariance of two answers: ``constant + linear (f_i + f_j) + product f_i f_j``.
    aligned
        What the answer that is aligned with two others (see
        :class:`~turnout.frequency.estimation.models.PairSupport`) adds to their
        covariance, for each unit of its frequency.
    """

    frequencies: Floats
    variances: Floats
    constant: float
    linear: float
    product: float
    aligned: float = 0.0

    def variance(self, coefficients: Floats) -> Floats:
        """Compute the variances of linear combinations, a row of coefficients for each.

        Parameters
        ----------
        coefficients
            float64 of shape (m, k).

        Returns
        -------
        numpy.ndarray
            float64 of shape (m,).
        """
        return np.maximum(self._form(coefficients), 0.0)

    def _form(self, coefficients: Floats) -> Floats:
        """Compute the quadratic form of rows of coefficients, which rounding may leave below 0."""
        f = self.frequencies
        total, weighted = coefficients.sum(axis=1), coefficients @ f
        own = self.variances - self.constant - (2 * self.linear + self.product * f) * f
        result: Floats = coefficients**2 @ own + self.constant * total**2
        result += (2 * self.linear * total + self.product * weighted) * weighted
        if self.aligned:
            result += self.aligned * _aligned(coefficients, f)
        return result

    def matrix(self) -> Floats:
        """Write out the matrix, shape (k, k)."""
        f = self.frequencies
        result: Floats = (
            self.constant + self.linear * (f[:, None] + f) + self.product * np.outer(f, f)
        )
        if self.aligned:
            codes = np.arange(1, f.size + 1)
            third = (codes[:, None] ^ codes) - 1
            held = np.append(f, 0.0)[np.where((third >= 0) & (third < f.size), third, f.size)]
            result += self.aligned * held
        np.fill_diagonal(result, self.variances)
        return result


def covariance_of(estimate: FrequencyEstimate) -> Covariance:
    """Return the covariances of an estimate, at the distribution nearest to it.

    The values are fixed; participation and perturbation are random. Let ``pi`` be the common rate.
    Let ``r1`` be the probability that a report supports the own answer and a given other one, and
    ``r2`` the probability that it supports two given other answers. The covariance of the counts of
    supporting reports is ``sum pi r - pi^2 E_i E_j`` over the nodes. Here ``r`` is ``r1`` for nodes
    that hold one of the two answers and ``r2`` for the others, and ``E`` are their support
    probabilities. The covariance of ``C - S q`` is ``sum pi (r - E_i E_j)``, because one of
    ``E_i - q``, ``E_j - q`` is zero. Given the number of reports, the nodes are a simple random
    sample, whose counts of two answers have covariance ``-S f_i f_j (n - S) / (n - 1)``.

    Parameters
    ----------
    estimate
        An estimate from a tally under a common rate.

    Returns
    -------
    Covariance
        The covariances of the frequencies before post-processing.

    Raises
    ------
    EstimatorError
        If the estimator is biased, nodes have personal probabilities, or the pair probabilities of
        the oracle are not known.

    Examples
    --------
    >>> import turnout as tn
    >>> estimate = tn.DirectEncoding(1.0, 3).simulate([50, 30, 20], seed=1).estimate()
    >>> covariance = covariance_of(estimate)
    >>> # Estimates of direct encoding add up to one: their sum has no variance.
    >>> bool(covariance.variance(np.ones((1, 3)))[0] < 1e-12)
    True
    """
    estimation, plan = estimate.estimation, estimate.plan
    oracle: Any = getattr(plan, "oracle", None)
    if oracle is None or not hasattr(plan, "participation"):
        raise EstimatorError(
            f"the covariances of {estimate.method!r} under {plan!r} are not known: they are for "
            "estimates of one tally of a frequency oracle"
        )
    rate = plan.participation.uniform_rate
    if estimation.bias is not None:
        raise EstimatorError(f"{estimate.method!r} is biased: {estimation.bias}")
    if rate is None or estimation.model is None:
        raise EstimatorError(
            "the covariances need one participation rate for all nodes: with personal "
            "probabilities a tally does not hold what they are made of"
        )
    f = simplex(estimation.frequencies)
    model, pair, scores = estimation.model, pair_support(oracle), oracle._score_moments
    p, q, nodes = scores.own, scores.other, estimate.nodes
    if estimate.method == "hajek":
        sampling = (nodes - estimate.received) / (nodes - 1) if nodes > 1 else 0.0
        return sampled_covariance(oracle, estimate.received, f, sampling=sampling)
    # Of the count of reports, or of its excess over S q.
    counts = estimate.method in ("c", "g", "T")
    other, own = (rate * q * q, rate * p * q) if counts else (q * q, p * q)
    reports = nodes * rate
    return Covariance(
        f,
        model.variance(f),
        reports * (pair.other - other) / model.b**2,
        reports * (pair.own - own - pair.other + other) / model.b**2,
        0.0,
        reports * (pair.aligned - pair.other) / model.b**2,
    )


def sampled_covariance(
    oracle: Any, received: int, frequencies: Floats, *, sampling: float = 1.0
) -> Covariance:
    """Return the covariances of the Hajek estimator from a number of reports.

    Parameters
    ----------
    oracle
        The randomizer.
    received
        The number of reports.
    frequencies
        The distribution at which the covariances are computed.
    sampling
        How much the choice of the nodes that report varies, against drawing them with replacement:
        ``(n - S) / (n - 1)`` for a simple random sample of S out of n.

    Returns
    -------
    Covariance
        Of the frequencies.
    """
    scores: Any = oracle._score_moments
    pair = pair_support(oracle)
    d = scores.own - scores.other
    f, scale = frequencies, 1.0 / (received * d * d)
    spread = f * scores.own_variance + (1 - f) * scores.other_variance
    constant = pair.other - scores.other**2
    return Covariance(
        f,
        scale * spread + sampling / received * f * (1 - f),
        scale * constant,
        scale * (pair.own - scores.own * scores.other - constant),
        -sampling / received,
        scale * (pair.aligned - pair.other),
    )


def _aligned(coefficients: Floats, f: Floats) -> Floats:
    """Sum ``a_i a_j f_(i xor j)`` over all pairs of codes, each plus one.

    A Walsh-Hadamard transform takes the sum over pairs to a product.
    """
    size = 1 << f.size.bit_length()
    held = _transformed(_placed(f[None], size))[0]
    rows = max(1, _BLOCK // size)
    result = np.empty(len(coefficients))
    for start in range(0, len(coefficients), rows):
        block = slice(start, start + rows)
        result[block] = _transformed(_placed(coefficients[block], size)) ** 2 @ held / size
    return result


def _placed(rows: Floats, size: int) -> Floats:
    placed = np.zeros((len(rows), size))
    placed[:, 1 : rows.shape[1] + 1] = rows
    return placed


def _transformed(rows: Floats) -> Floats:
    """Walsh-Hadamard transform of each row."""
    count, size = rows.shape
    half = 1
    while half < size:
        pairs = rows.reshape(count, -1, 2, half)
        rows = np.stack(
            [pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2
        ).reshape(count, size)
        half *= 2
    return rows
