"""Statistics of ordered answers, from reports, tallies or estimates."""

from __future__ import annotations

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.errors import EstimatorError
from turnout.frequency.estimation.covariance import covariance_of
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.likelihoods import support_of
from turnout.frequency.estimation.projection import simplex, summing_to_one
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.ordered.statistics import OrderedStatistics
from turnout.frequency.tally import Tally


class _OrderedEstimate(OrderedStatistics):
    """The frequencies of one tally as those of ordered answers.

    Frequencies are shifted by one common number until they add up to one, as true frequencies do.
    This is unbiased, and minimises the variance of sums if all answers are estimated alike.

    Parameters
    ----------
    estimate
        An unbiased estimate from a tally under a common participation rate.
    """

    def __init__(self, estimate: FrequencyEstimate) -> None:
        self._estimate = _arguments.instance(
            "source", estimate, FrequencyEstimate, "Reports, a Tally or a FrequencyEstimate"
        )._unprojected
        self._covariance = covariance_of(self._estimate)
        self.frequencies = summing_to_one(self._estimate.frequencies)
        self.frequencies.flags.writeable = False

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._estimate.domain

    def _variances(self, coefficients: Floats) -> Floats:
        # The shift takes what is common to all coefficients out of the error.
        return self._covariance.variance(coefficients - coefficients.mean(axis=1, keepdims=True))

    def __repr__(self) -> str:
        """Show the source of the statistics."""
        return f"ordered({self._estimate!r})"


class _OrderedReports(OrderedStatistics):
    """The frequencies of ordered answers, estimated from reports of any oracle.

    Every report gives one number for a sum over answers: the sum over the answers that it supports.
    The estimate is the mean of these numbers, weighted inversely to the probability of each node
    (Hajek). Their spread gives its variance, whatever the oracle, without an assumption about how
    likely a report supports two answers. Frequencies are shifted until they add up to one, as in
    other estimates. Each sum takes a pass over the reports, and :attr:`cumulative_standard_errors`
    and quantiles one for every answer.

    Parameters
    ----------
    reports
        At least two reports.

    Raises
    ------
    EstimatorError
        If there are fewer.

    """

    def __init__(self, reports: Reports) -> None:
        self._reports = _arguments.instance("reports", reports, Reports, "a Reports object")
        if len(reports) < 2:
            raise EstimatorError(
                f"variances need at least two reports, and {len(reports)} were received"
            )
        oracle = reports.oracle
        probabilities = reports.probabilities
        self._weights: Floats = (
            np.ones(len(reports)) if probabilities is None else 1.0 / probabilities
        )
        self._weights = self._weights / self._weights.sum()
        self._scores: Floats | None = None
        if getattr(oracle, "_counted_by", "") == "scores":
            self._scores = reports.codes.astype(np.float64)
        else:
            self._support = support_of(oracle, reports.codes)
        self.frequencies = summing_to_one(oracle.tally(reports).estimate().frequencies)
        self.frequencies.flags.writeable = False
        self._held = simplex(self.frequencies)

    @property
    def domain(self) -> Domain:
        """The answers."""
        domain: Domain = self._reports.plan.domain
        return domain

    def _variances(self, coefficients: Floats) -> Floats:
        oracle: FrequencyOracle = self._reports.oracle
        rounds = self._reports.origin.rounds
        moments = oracle._score_moments
        weights, nodes = self._weights, self._reports.nodes
        # As many reports of equal weight as these are worth (Kish); one is taken by the mean.
        worth = 1.0 / float((weights**2).sum())
        unbiased = worth / max(worth - 1.0, 1e-9)
        result = np.empty(len(coefficients))
        for place, row in enumerate(coefficients):
            said = self._said(row - row.mean()) / (moments.own - moments.other)
            centred = weights * (said - float(weights @ said))
            mean = float(row @ self._held)
            spread = float((row - mean) ** 2 @ self._held)
            # No node reports twice: what all nodes hold does not vary.
            result[place] = unbiased * float(centred @ centred) - spread / nodes
        found: Floats = np.maximum(result, 0.0)
        if rounds.number < 2:
            return found
        # At most: each person is in all rounds, with the same answer.
        at_most: Floats = rounds.number * found
        shifted = coefficients - coefficients.mean(axis=1, keepdims=True)
        shared = oracle._permanent_variances(shifted, self._held)
        if shared is None:
            return at_most
        larger: Floats = np.minimum(at_most, found + (rounds.number - 1) * shared / nodes)
        return larger

    def _said(self, coefficients: Floats) -> Floats:
        """For each report, the sum of the coefficients of the answers that it supports."""
        if self._scores is not None:
            said: Floats = self._scores @ coefficients
            return said
        return _core.support_sums(coefficients, self._support)

    def __repr__(self) -> str:
        """Show the source of the statistics."""
        return f"ordered({self._reports!r})"


def ordered(source: FrequencyEstimate | Tally | Reports) -> OrderedStatistics:
    """Return statistics of ordered answers, in the order of the domain.

    Parameters
    ----------
    source
        Reports of any oracle and participation: standard errors come from the spread of the single
        reports. Or a tally under a common participation rate, which is then estimated by
        ``"hajek"``, or an unbiased estimate of such a tally. Then standard errors come from the
        probabilities that a report supports two answers (:func:`pair_support`), which must be the
        same for all pairs.

    Returns
    -------
    OrderedStatistics
        Cumulative shares, ranges, quantiles and means, with standard errors that include the
        covariances between the answers.

    Raises
    ------
    EstimatorError
        If there are no reports, or the covariances are not known: the estimator is biased, nodes
        have personal probabilities, the estimate is not of one tally, or the oracle's pairs of
        answers are not alike, as for sketches: pass the reports.
    InvalidTypeError
        If ``source`` is not one of these.

    Examples
    --------
    >>> import turnout as tn
    >>> tally = tn.DirectEncoding(2.0, 4).simulate([4000, 3000, 2000, 1000], seed=1)
    >>> ordered(tally).cumulative.round(1)
    array([0.4, 0.7, 0.9, 1. ])

    From the reports themselves, whatever the oracle:

    >>> reports = tn.OptimizedLocalHashing(2.0, 4).randomize([0, 1, 1, 2, 3] * 5000, seed=1)
    >>> ordered(reports).cumulative.round(1)
    array([0.2, 0.6, 0.8, 1. ])
    """
    if isinstance(source, Reports):
        return _OrderedReports(source)
    return _OrderedEstimate(source.estimate() if isinstance(source, Tally) else source)
