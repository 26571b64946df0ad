"""Direct encoding, also called k-ary randomized response."""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NoReturn

import numpy as np

from turnout import _arrays, _core
from turnout._types import Array, Integers
from turnout.accounting.variation import ToldApart, VariationRatio
from turnout.collecting.randomizer import Counts
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.models import PairSupport
from turnout.frequency.oracle import FrequencyOracle

#: A joint table of groups and codes is counted in one go up to so many cells, or so many times
#: the number of reports.
_CELLS: Final = 2**16
_CELLS_PER_REPORT: Final = 4


class DirectEncoding(FrequencyOracle):
    """Report the own answer with probability p*, and each other answer with probability q*.

    ``p* = e^eps / (e^eps + k - 1)`` and ``q* = 1 / (e^eps + k - 1)`` for ``k`` answers. Both are
    realised as whole numbers of 64-bit words from a cryptographic generator, rounded so that the
    likelihood ratio is at most ``e^eps``, exactly. It is best for small domains: other oracles have
    a smaller variance if ``k > 3 e^eps + 2``.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If epsilon is out of range, or so small (below 2^-32 or so) that reports would say nothing.

    Notes
    -----
    Kairouz, Bonawitz, Ramage, "Discrete distribution estimation under local privacy" (2016); Wang,
    Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (2017).

    Examples
    --------
    >>> oracle = DirectEncoding(epsilon=1.0, domain=["never", "once", "often"])
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.5761, 0.2119)
    >>> oracle.report_bits
    2
    """

    name = "direct_encoding"
    _supports_equally_many = True
    _counted_by = "code"

    _compiled = staticmethod(_core.DirectEncoding)

    @property
    def variation_ratio(self) -> VariationRatio:
        """The variation ratio of a report: each answer has q* in common with all others.

        It is exact for the realised probabilities.
        """
        own, other = self._core.words
        # Words that stand for no answer are drawn again.
        accepted = own + (self._domain.size - 1) * other
        return VariationRatio(
            Fraction(own, other),
            Fraction(own - other, accepted),
            Fraction(own, other),
            blanket=Fraction(self._domain.size * other, accepted),
        )

    @property
    def _pair_support(self) -> PairSupport:
        """The joint support of two answers: a report supports only one answer."""
        return PairSupport.alike(0.0, 0.0)

    @property
    def _told_apart(self) -> ToldApart:
        """The counts that shuffled reports reveal: the numbers of reports of two answers."""
        own, other = self.support_probabilities
        return ToldApart(own, other, other if self._domain.size > 2 else None)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: ceil(log2 k)."""
        return (self._domain.size - 1).bit_length()

    def _count_by_group(self, reports: Array, groups: Integers, number: int) -> list[Counts] | None:
        """Count the joint table of groups and codes at once, if it is small."""
        size = self._domain.size
        cells = size * number
        if cells > max(_CELLS, _CELLS_PER_REPORT * len(reports)):
            return None
        joint = np.bincount(groups * size + reports, minlength=cells).astype(np.uint64)
        table = joint.reshape(number, size)
        return [Counts(row, int(row.sum())) for row in table]

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that do not name an answer of the domain.

        Raises
        ------
        CodeOutsideDomainError
            If there is one; the error gives its position.
        """
        self._domain._check_codes("codes", reports)

    def _refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that does not fit into :attr:`report_dtype`."""
        self._domain._check_codes("codes", reports)
        super()._refuse_range(reports)

    def _check_support(self, support: Array, received: int) -> None:
        """Refuse support counts that do not add up to the number of reports.

        Raises
        ------
        InvalidValueError
            If they do not add up.
        """
        total = _arrays.total(support)
        if total != received:
            raise InvalidValueError(
                f"support must add up to the {received} reports received, got {total}"
            )
