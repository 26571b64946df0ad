"""Subset selection: a report is a set of answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from turnout import _arguments, _core
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.domain import Domain
from turnout.frequency.estimation.models import PairSupport
from turnout.frequency.oracles.unary_encoding import BitRowOracle

#: In larger domains the number of sets has so many digits that its logarithm is taken instead.
MANY = 4096


class SubsetSelection(BitRowOracle):
    """Report a random set of ``d`` answers that is more likely to hold the own answer.

    The own answer is in the set with probability ``p* = d e^eps / (d e^eps + k - d)``; the rest is
    uniform among the other answers, so that any other fixed answer is in it with probability
    ``q* = (d - p*) / (k - 1)``. For ``d = 1`` it is direct encoding; in large domains its variance
    approaches that of :class:`OptimizedUnaryEncoding` from below. ``p*`` is realised as a whole
    number of 64-bit words, rounded so that the likelihood ratio is at most ``e^eps``, exactly. A
    set is reported as bits. A list would reveal the own answer by the order in which its members
    were drawn; a report does not contain this order.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        2^20.
    subset_size
        The number of answers in a report, from 1 to ``k - 1``. By default the number that gives
        rare answers the smallest variance, close to ``k / (e^eps + 1)``.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 1e-9 or so) that reports would say nothing,
        if the domain is too large, or if the size of the set is out of range.

    Notes
    -----
    Ye, Barg, "Optimal schemes for discrete distribution estimation under locally differential
    privacy" (2017); Wang, Huang, Nie, Xu, Xu, Wang, "Local private subset selection" (2016).

    The counts of a simulated tally have the joint law of the counts of reports, and add up to ``d``
    for each report. The simulation draws how many sets have how many members in each half of the
    answers, in each half of these, and so on. It takes some 15 ms for a thousand answers and 10^12
    nodes, and grows little faster than the number of answers.

    Examples
    --------
    >>> oracle = SubsetSelection(epsilon=1.0, domain=100)
    >>> oracle.subset_size, oracle.report_bits
    (27, 81)
    >>> tally = oracle.collect([7] * 1000, seed=1)
    >>> int(tally.support.sum())
    27000
    """

    name = "subset_selection"
    _supports_equally_many = True

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        subset_size: int | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        size = self._domain.size
        asked = _arguments.optional_integer("subset_size", subset_size, least=1, most=size - 1)
        self._core = _core.SubsetSelection(self._epsilon, size, asked)

    @property
    def _counts_of_a_report(self) -> int:
        """The size of the subset."""
        return self.subset_size

    @property
    def subset_size(self) -> int:
        """The number of answers in a report: ``d``."""
        return int(self._core.subset_size)

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two answers; at most e^eps.

        It is ``p (k - d) / ((1 - p) d)``: a set is so much likelier under its members than under
        the other answers.
        """
        own, size = self._core.own_words, self.subset_size
        return Fraction(own * (self._domain.size - size), (2**64 - own) * size)

    @property
    def _pair_support(self) -> PairSupport:
        """The joint support of two answers by a report.

        A set contains the own answer with probability ``p``, and ``d - 1`` or ``d`` of the others.
        """
        p, k, d = self.support_probabilities[0], self._domain.size, self.subset_size
        own = p * (d - 1) / (k - 1)
        other = (d - 1) * (d - 2 * p) / ((k - 1) * (k - 2)) if k > 2 else 0.0
        return PairSupport.alike(own, other)

    @property
    def _told_apart(self) -> ToldApart:
        """The counts that shuffled reports reveal: of sets with only one of two answers."""
        own, other = self.support_probabilities
        more, size = self.subset_size - 1, self._domain.size
        both = own * more / (size - 1)
        third = None
        if size > 2:
            third = other - more * (self.subset_size - 2.0 * own) / ((size - 1) * (size - 2))
        return ToldApart(own - both, other - both, third)

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of a report, for :class:`turnout.accounting.Shuffled`.

        Sets of one answer are the reports of direct encoding, which have q* in common with everyone
        else's: the ratio is exact. For larger sets it is that of every pure oracle.
        """
        if self.subset_size > 1:
            return super().variation_ratio
        size, ratio = self._domain.size, self.realized_ratio
        own = Fraction(self._core.own_words, 2**64)
        other = (1 - own) / (size - 1)
        return VariationRatio(ratio, own - other, ratio, blanket=size * other)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits, if sets are numbered: ``ceil(log2 C(k, d))``.

        In memory and in files a set takes one bit for each answer.
        """
        return _bits(self._domain.size, self.subset_size)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"subset_size": self.subset_size}


def _bits(size: int, members: int) -> int:
    """Compute ``ceil(log2 C(k, d))``, exactly.

    In large domains it uses logarithms, whose error is below 1e-7, unless they are not conclusive.
    """
    if size > MANY:
        factorials = (math.lgamma(count + 1) for count in (size, members, size - members))
        whole, *parts = factorials
        bits = (whole - sum(parts)) / math.log(2)
        if abs(bits - round(bits)) > 1e-6:
            return math.ceil(bits)
    return (math.comb(size, members) - 1).bit_length()
