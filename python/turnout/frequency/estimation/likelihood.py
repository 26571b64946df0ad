"""Maximum likelihood: the distribution of answers that makes the reports likeliest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._tables import records_of
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.values import positive
from turnout.collecting.estimate import BaseEstimate
from turnout.collecting.intervals import critical_value, normal_interval
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.errors import EstimatorError
from turnout.frequency.estimation.intervals import Interval
from turnout.frequency.estimation.likelihoods import Likelihood, likelihood_of
from turnout.frequency.estimation.projection import simplex

#: Relative error of a mean log-likelihood.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class LikelihoodEstimate(BaseEstimate[Domain]):
    """The frequencies that make the reports likeliest; a distribution by construction.

    :func:`maximum_likelihood` returns it. Unlike the estimates of a tally, it is biased for rare
    answers, because it cannot be negative.

    Attributes
    ----------
    plan
        The plan of the reports.
    method
        ``"maximum_likelihood"``.
    nodes, received
        The numbers of nodes and of reports.
    frequencies
        float64, one for each answer: non-negative, adding up to one.
    log_likelihood
        The log-likelihood at the frequencies, without constant terms: for a report that supports
        answers of total frequency ``m``, ``ln(1 + (rho - 1) m)`` with ``rho`` the realised
        likelihood ratio.
    gap
        The largest amount by which the mean log-likelihood of a report is larger at any other
        distribution.
    iterations
        The number of evaluations of the likelihood.
    converged
        Whether the tolerance was reached.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.frequency.estimation.likelihood import maximum_likelihood
    >>> reports = tn.DirectEncoding(1.0, 3).randomize([0] * 700 + [1] * 300, seed=1)
    >>> estimate = maximum_likelihood(reports)
    >>> estimate.converged, float(estimate.frequencies.sum().round(12))
    (True, 1.0)
    """

    frequencies: Floats
    log_likelihood: float
    gap: float
    iterations: int
    converged: bool
    _likelihood: Likelihood = field(init=False)
    _rounds: int = field(init=False, default=1)

    _columns = ("label", "count", "frequency", "standard_error")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each answer, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``label``, ``count``, ``frequency`` and ``standard_error``, which is
            nan on the boundary.
        """
        numbers = (self.counts, self.frequencies, self.standard_errors)
        return records_of(self._columns, self.domain.labels, *numbers)

    @property
    def counts(self) -> Floats:
        """The estimated number of nodes that hold each answer."""
        return self.frequencies * self.nodes

    @property
    def _is_interior(self) -> bool:
        """Whether every answer has at least the share of one report.

        Otherwise the maximum is on the boundary, where estimates follow no normal law.
        """
        return bool(self.frequencies.min() * self.received >= 1.0)

    @cached_property
    def covariance(self) -> Floats:
        """The covariances of the frequencies, shape (k, k), float64; NaN on the boundary.

        They come from the observed information on the distributions, as ``J^-1 K J^-1``, where
        ``J`` is the curvature and ``K`` the sum of the squared scores (the same if all reports have
        equal weight). The effect of sampling all nodes without replacement is subtracted. The
        computation takes ``received k^2`` operations. For several rounds of permanent answers, the
        covariances are multiplied by the number of rounds, which bounds any shared noise.
        """
        size = self.domain.size
        if not self._is_interior:
            return np.full((size, size), np.nan)
        curvature, scores = self._likelihood.information(self.frequencies)
        # Directions along which frequencies still add up to one.
        basis = np.linalg.qr(np.eye(size) - 1.0 / size)[0][:, : size - 1]
        try:
            inverse = np.linalg.inv(basis.T @ curvature @ basis)
        except np.linalg.LinAlgError:
            return np.full((size, size), np.nan)
        spread = basis @ inverse @ (basis.T @ scores @ basis) @ inverse @ basis.T
        f = self.frequencies
        result: Floats = spread - (np.diag(f) - np.outer(f, f)) / self.nodes
        return self._rounds * result

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of the frequencies: NaN on the boundary."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def interval(self, level: float = 0.95) -> Interval:
        """Return separate normal confidence intervals of the frequencies.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        Interval
            Lower and upper limits, float64, one for each answer.

        Raises
        ------
        EstimatorError
            If the maximum is on the boundary, where the intervals would not cover.
        InvalidValueError
            If the level is not between 0 and 1.
        """
        level = _arguments.confidence("level", level)
        if not self._is_interior:
            raise EstimatorError(
                "the maximum is on the boundary, where no normal interval covers: use the interval "
                "of the tally's estimate"
            )
        z = critical_value(level, self.domain.size, None)
        low, high = normal_interval(self.frequencies, self.standard_errors, z)
        return Interval(low, high, level, "normal", None, self.domain._sequence)

    def __repr__(self) -> str:
        """Show the number of reports and the gap to the maximum."""
        return (
            f"LikelihoodEstimate({self.domain.size} answers, {self.received} reports of "
            f"{self.nodes} nodes, gap={self.gap:.2g}, converged={self.converged})"
        )


def maximum_likelihood(
    reports: Reports, *, tolerance: float = 1e-3, max_iterations: int = 10_000
) -> LikelihoodEstimate:
    """Find the distribution of answers that makes the reports likeliest.

    The likelihood is that of whole reports. It uses which answers a report supports together, which
    support counts do not show. It is concave, so the maximum is unique. The gap to it is bounded by
    ``max_x g_x - 1``, where ``g_x`` is the mean over the reports of the likelihood under answer
    ``x`` divided by that under the frequencies. Each step is a projected gradient step of spectral
    length, with a line search that never lowers the likelihood. Answers that nobody seems to hold
    become exactly zero.

    Parameters
    ----------
    reports
        The reports of the nodes that took part. With personal probabilities each report counts with
        the inverse of its probability: the result maximises a *pseudo*-likelihood, an estimate of
        that of all nodes.
    tolerance
        Stop when the log-likelihood of all reports is provably this close to the maximum. A
        thousandth is a small part of a standard error.
    max_iterations
        The largest number of evaluations of the likelihood, each in proportion to reports times
        answers / 8.

    Returns
    -------
    LikelihoodEstimate
        The frequencies, with a certificate of how close to the maximum they are.

    Raises
    ------
    EstimatorError
        If there are no reports, or they come from an oracle whose likelihood is not known, such as
        :class:`~turnout.frequency.attributes.SampledAttribute` with padding.
    InvalidValueError, InvalidTypeError
        If an argument is out of range or of the wrong type.

    Notes
    -----
    Agrawal, Aggarwal, "On the design and quantification of privacy preserving data mining
    algorithms" (2001); ElSalamouny, Palamidessi, "Generalized iterative Bayesian update and
    applications to mechanisms for privacy protection" (2020); Birgin, Martinez, Raydan,
    "Nonmonotone spectral projected gradient methods on convex sets" (2000), with the monotone line
    search.

    Examples
    --------
    Direct encoding: inside the simplex the maximum is the estimate of the tally.

    >>> import numpy as np
    >>> import turnout as tn
    >>> from turnout.frequency.estimation.likelihood import maximum_likelihood
    >>> oracle = tn.DirectEncoding(2.0, 3)
    >>> reports = oracle.randomize([0] * 500 + [1] * 300 + [2] * 200, seed=1)
    >>> likeliest = maximum_likelihood(reports, tolerance=1e-6).frequencies
    >>> bool(np.allclose(likeliest, oracle.tally(reports).estimate().frequencies, atol=1e-6))
    True
    """
    _arguments.instance("reports", reports, Reports, "a Reports object")
    tolerance = positive("tolerance", tolerance)
    max_iterations = _arguments.integer("max_iterations", max_iterations, least=1)
    if len(reports) == 0:
        raise EstimatorError("no reports were received, so every distribution is equally likely")
    likelihood = likelihood_of(reports)
    size, received = reports.oracle.domain.size, len(reports)
    for point in _spectral(likelihood, np.full(size, 1.0 / size)):
        if received * point.gap <= tolerance or point.iterations >= max_iterations:
            break
    frequencies = point.frequencies
    frequencies.flags.writeable = False
    estimate = LikelihoodEstimate(
        reports.plan,
        "maximum_likelihood",
        reports.nodes,
        received,
        frequencies,
        point.value * likelihood.total,
        point.gap,
        point.iterations,
        received * point.gap <= tolerance,
        left_out=reports.left_out,
    )
    settle(estimate, _likelihood=likelihood, _rounds=max(1, reports.origin.rounds.number))
    return estimate


@dataclass(frozen=True)
class _Point:
    """Frequencies, with the mean log-likelihood and its gradient there."""

    frequencies: Floats
    value: float
    gradient: Floats
    iterations: int

    @property
    def gap(self) -> float:
        # By concavity log L* - log L <= sum_x (f*_x - f_x) g_x, and sum_x f_x g_x = 1.
        return max(float(self.gradient.max()) - 1.0, 0.0)


def _evaluated(likelihood: Likelihood, frequencies: Floats, iterations: int) -> _Point:
    gradient, value = likelihood.step(frequencies)
    return _Point(frequencies, value, gradient, iterations)


def _updated(likelihood: Likelihood, point: _Point, iterations: int) -> _Point:
    """Make a Bayesian update, which never lowers the likelihood."""
    updated = point.frequencies * point.gradient
    return _evaluated(likelihood, updated / updated.sum(), iterations + 1)


def _spectral(likelihood: Likelihood, frequencies: Floats) -> Iterator[_Point]:
    """Iterate projected gradient steps whose length fits the curvature along the last one."""
    point = _evaluated(likelihood, frequencies, 1)
    yield point
    following = _updated(likelihood, point, point.iterations)
    while True:
        change = following.frequencies - point.frequencies
        bend = float(change @ (point.gradient - following.gradient))
        length = float(change @ change) / bend if bend > 0 else 1.0
        point = following
        yield point
        length = min(max(length, 1e-12), 1e12)
        target = simplex(point.frequencies + length * (point.gradient - 1.0))
        following = _climb(likelihood, point, target - point.frequencies)


def _climb(likelihood: Likelihood, point: _Point, direction: Floats) -> _Point:
    """Move along a direction as far as the likelihood rises: Armijo's rule.

    Close to the maximum values differ by their rounding alone, which is let pass.
    """
    slope = float(point.gradient @ direction)
    slack = _ROUNDING * max(1.0, abs(point.value))
    share, iterations = 1.0, point.iterations
    while share > 1e-9 and slope > 0:
        iterations += 1
        tried = _evaluated(likelihood, point.frequencies + share * direction, iterations)
        gain = tried.value - point.value
        if gain >= 1e-4 * share * slope - slack:
            return replace(tried, frequencies=np.maximum(tried.frequencies, 0.0))
        # The top of the parabola through what is known.
        top = 0.5 * share * slope / max(slope - gain / share, 1e-300)
        share = min(max(top, 0.1 * share), 0.5 * share)
    return _updated(likelihood, point, iterations)
