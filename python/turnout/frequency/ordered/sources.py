"""Answers with an order, of whatever says something of them."""

from __future__ import annotations

from turnout.collecting.reports import Reports
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.ordered.reports import OrderedReports
from turnout.frequency.ordered.statistics import OrderedEstimate, OrderedStatistics
from turnout.frequency.tally import Tally


def ordered(source: FrequencyEstimate | Tally | Reports) -> OrderedStatistics:
    """Take answers for ordered, in the order of the domain.

    Parameters
    ----------
    source
        Reports, of any oracle and participation: standard errors are made from what each report
        says of the answers asked for. Or a tally under a common participation rate, which is then
        estimated by ``"hajek"``, or an unbiased estimate of such a tally: standard errors are made
        from how likely a report supports two answers at once (:func:`pair_support`), which must be
        the same for all pairs.

    Returns
    -------
    OrderedStatistics
        Cumulative shares, ranges, quantiles and means, with standard errors that count the
        covariances between the answers.

    Raises
    ------
    EstimatorError
        If there are no reports, or the covariances are not known: the estimator is biased, nodes
        have personal probabilities, the estimate is not of one tally, or the oracle's pairs of
        answers are not alike (local hashing with more than two buckets, projective geometry,
        sketches): take the reports.
    InvalidTypeError
        If ``source`` is none of these.

    Examples
    --------
    >>> import turnout as tn
    >>> tally = tn.DirectEncoding(2.0, 4).simulate([4000, 3000, 2000, 1000], seed=1)
    >>> ordered(tally).cumulative.round(1)
    array([0.4, 0.7, 0.9, 1. ])
    """
    if isinstance(source, Reports):
        return OrderedReports(source)
    return OrderedEstimate(source.estimate() if isinstance(source, Tally) else source)
