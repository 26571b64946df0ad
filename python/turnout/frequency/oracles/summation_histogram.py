"""Summation with histogram encoding: a noisy histogram of one node."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Truths
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.frequency.estimation.models import PairSupport, ScoreMoments
from turnout.frequency.improbable import rows_of_noise
from turnout.frequency.oracle import FrequencyOracle


class SummationHistogramEncoding(FrequencyOracle):
    """Report the own histogram with Laplace noise; the server sums the noisy histograms.

    The histogram of a node is one for its own answer and zero for every other. Exact discrete
    Laplace noise ``P[x] ~ e^(-|x| rate)`` is added to each entry. The ``rate`` is a multiple of
    2^-64, at most ``eps / 2``, and less than that by at most a part in 2^52. Two histograms of a
    node differ by two in sum, so the likelihood ratio is at most ``e^(2 rate)``. A server cannot
    tell noise from lies: a report of any size that fits into 32 bits is valid. So use it only if
    nodes are trusted to run the program. Integer noise has a smaller variance than the continuous
    noise of the publication, ``1 / (2 sinh^2(rate / 2)) < 8 / eps^2``, and avoids floating-point
    numbers, which could reveal the answer. :class:`OptimizedUnaryEncoding` has half of the variance
    at small epsilon, in smaller reports.

    A report holds scores, not a set of answers: ``support_probabilities`` are the means of the
    score of the own answer and of another, 1 and 0, and the support of a tally is a sum of scores,
    which may be negative.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, at least 2e-6 or so, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        2^20.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or the domain is too large.

    Notes
    -----
    Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation"
    (2017), section 4.2; Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy
    mechanisms" (2009).

    Scores are clamped to 32 bits, which happens with a probability below ``e^-2000`` and costs no
    privacy. The time to draw noise depends on the noise: anyone who sees the report and measures
    the time to a few nanoseconds learns about its noise.

    Examples
    --------
    >>> oracle = SummationHistogramEncoding(epsilon=2.0, domain=["never", "once", "often"])
    >>> reports = oracle.randomize(["never", "once"], seed=1)
    >>> reports.codes.shape, reports.codes.dtype
    ((2, 3), dtype('int32'))
    >>> tally = oracle.tally(reports)
    >>> tally.received
    2
    """

    name = "summation_histogram_encoding"
    _each_answer = "a number"
    _counted_by = "scores"
    _support_dtype = np.dtype(np.int64)
    #: The type of the integers that a report is made of.
    report_dtype = np.dtype(np.int32)

    _compiled = staticmethod(_core.SummationHistogram)

    @property
    def rate(self) -> Fraction:
        """The exact rate of the noise; the realised epsilon is twice the rate."""
        return Fraction(self._core.rate, 2**64)

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two answers; at most e^eps.

        It is ``e^(2 rate)``, which is not rational, rounded up by at most 1e-40 of it.
        """
        context = Context(prec=120)
        twice = context.divide(Decimal(2 * self._core.rate), Decimal(2**64))
        value = Context(prec=80).exp(twice)
        up = Context(prec=50, rounding=ROUND_CEILING)
        return Fraction(up.multiply(value, Decimal(1) + Decimal(10) ** -45))

    @property
    def _score_moments(self) -> ScoreMoments:
        """The moments of the scores: means 1 and 0, and the variance of the noise for both."""
        variance = 0.5 / math.sinh(0.5 * float(self.rate)) ** 2
        return ScoreMoments(1.0, 0.0, 1.0 + variance, variance)

    @property
    def _pair_support(self) -> PairSupport:
        """The joint moments of two answers: the noise of entries is independent."""
        return PairSupport.independent(self._score_moments)

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of a report: that of the worst oracle with its likelihood ratio."""
        return VariationRatio._of_any(self.realized_ratio)

    @property
    def _told_apart(self) -> ToldApart | None:
        """None: reports hold scores, and support no answers."""
        return None

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: 32 k."""
        return 32 * self._domain.size

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``(k,)``."""
        return (self._domain.size,)

    def improbable(self, reports: Array) -> Truths:
        """Return which reports have far too much or too little noise for an honest node."""
        return rows_of_noise(reports, float(self.rate))

    def _check_support(self, support: Array, received: int) -> None:
        """Refuse sums of scores without reports.

        Raises
        ------
        InvalidValueError
            If a sum is not zero although no report was received.
        """
        if received == 0:
            expected = "0 where no report was received"
            _arguments.refuse_entries("support", support, support != 0, expected)
