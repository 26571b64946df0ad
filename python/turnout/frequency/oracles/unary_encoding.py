"""Unary encodings: one randomized bit for each answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from turnout import _core
from turnout._types import Array, Truths
from turnout.accounting.variation import ToldApart
from turnout.frequency.estimation.models import PairSupport
from turnout.frequency.improbable import rows_of_bits
from turnout.frequency.oracle import FrequencyOracle


class BitRowOracle(FrequencyOracle):
    """Base class of oracles whose report is one bit for each answer.

    A report is a row of ``ceil(k / 64)`` unsigned 64-bit integers: answer ``i`` in bit ``i % 64``
    of integer ``i // 64``, unused bits zero.
    """

    _each_answer = "a bit"
    _counted_by = "bits"
    #: The type of the integers that a report is made of: 64 bits in each.
    report_dtype = np.dtype(np.uint64)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``(ceil(k / 64),)``."""
        return (-(-self._domain.size // 64),)


class _UnaryEncoding(BitRowOracle):
    """Base class of unary encodings: the own bit is one with probability p*, others with q*."""

    @property
    def _pair_support(self) -> PairSupport:
        """The joint support of two answers: bits are independent."""
        return PairSupport.independent(self._score_moments)

    @property
    def _told_apart(self) -> ToldApart:
        """The counts that shuffled reports reveal: of reports with only one of two bits."""
        own, other = self.support_probabilities
        third = other * (1.0 - other) if self._domain.size > 2 else None
        return ToldApart(own * (1.0 - other), other * (1.0 - own), third)

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two answers; at most e^eps.

        It is ``p (1 - q) / ((1 - p) q)``: a report is so much likelier under an answer whose bit is
        one than under one whose bit is zero.
        """
        own, other = self._core.words
        return Fraction(own * (2**64 - other), (2**64 - own) * other)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: k."""
        return self._domain.size

    def improbable(self, reports: Array) -> Truths:
        """Return which reports have far too many or too few ones for an honest node."""
        return rows_of_bits(reports, self._domain.size, self.support_probabilities[1])


class SymmetricUnaryEncoding(_UnaryEncoding):
    """Report one bit for each answer, and flip ones and zeros with the same probability.

    The bit of the own answer is one with probability ``p* = e^(eps/2) / (e^(eps/2) + 1)``, the bit
    of any other answer with ``q* = 1 - p*``, all independent. This is the one-time form of basic
    RAPPOR. Both are realised as whole numbers of 64-bit words, rounded so that the likelihood ratio
    is at most ``e^eps``, exactly. :class:`OptimizedUnaryEncoding` has the smaller variance for rare
    answers.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        2^20.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 1e-9 or so) that reports would say nothing,
        or if the domain is too large.

    Notes
    -----
    Erlingsson, Pihur, Korolova, "RAPPOR: randomized aggregatable privacy-preserving ordinal
    response" (2014); Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency
    estimation" (2017).

    Examples
    --------
    >>> oracle = SymmetricUnaryEncoding(epsilon=2.0, domain=["never", "once", "often"])
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.7311, 0.2689)
    >>> reports = oracle.randomize(["never", "once"], seed=1)
    >>> reports.codes.shape, oracle.report_bits  # 64 bits to an integer
    ((2, 1), 3)
    """

    name = "symmetric_unary_encoding"

    _compiled = staticmethod(_core.UnaryEncoding.symmetric)


class OptimizedUnaryEncoding(_UnaryEncoding):
    """Report one bit for each answer: one with probability 1/2 for the own, rarer for others.

    The bit of the own answer is one with probability ``p* = 1/2``, that of any other with
    ``q* = 1 / (e^eps + 1)``, all independent. Of all pairs of probabilities that epsilon allows,
    this has the smallest variance for rare answers, ``4 e^eps / (e^eps - 1)^2`` for each report,
    whatever the number of answers. Both are realised as whole numbers of 64-bit words, rounded so
    that the likelihood ratio is at most ``e^eps``, exactly.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        2^20.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 1e-9 or so) that reports would say nothing,
        or if the domain is too large.

    Notes
    -----
    Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation"
    (2017).

    Examples
    --------
    >>> oracle = OptimizedUnaryEncoding(epsilon=1.0, domain=100)
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.5, 0.2689)
    >>> oracle.collect([7] * 1000, seed=1).received
    1000
    """

    name = "optimized_unary_encoding"

    _compiled = staticmethod(_core.UnaryEncoding.optimized)


class ThresholdHistogramEncoding(_UnaryEncoding):
    """Report which entries of the own noisy histogram are above a threshold.

    The histogram of a node is one for its own answer and zero for every other; Laplace noise of
    scale ``2 / eps`` is added to each entry, and a bit says whether the sum is above a threshold
    ``t``. The program does not draw the noise but the bits, whose law is that of a unary encoding:
    ``p* = 1 - e^(eps (t - 1) / 2) / 2`` and ``q* = e^(-eps t / 2) / 2``, as whole numbers of 64-bit
    words.

    The noisy histogram would be epsilon-private. Its bits reveal less: their
    :attr:`realized_epsilon` is smaller than the requested epsilon. So at the same epsilon
    :class:`OptimizedUnaryEncoding`, which uses the whole epsilon, is better.

    Parameters
    ----------
    epsilon
        The privacy parameter of the noisy histogram, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        2^20.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 1e-9 or so) that reports would say nothing,
        or if the domain is too large.

    Notes
    -----
    Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation"
    (2017), section 4.2.

    Examples
    --------
    >>> oracle = ThresholdHistogramEncoding(epsilon=2.0, domain=100)
    >>> oracle.epsilon, round(oracle.realized_epsilon, 3), round(oracle.threshold, 3)
    (2.0, 1.636, 0.71)
    """

    name = "threshold_histogram_encoding"

    _compiled = staticmethod(_core.UnaryEncoding.threshold_histogram)

    @property
    def threshold(self) -> float:
        """The threshold, in (1/2, 1), that gives rare answers the smallest variance."""
        return _core.UnaryEncoding.histogram_threshold(self._epsilon)
