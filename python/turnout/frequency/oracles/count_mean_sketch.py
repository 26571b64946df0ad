"""Count-mean sketches: public hash functions, and reports of rows of a sketch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._core import CountMeanSketch as _Rows
from turnout._core import HadamardCountMeanSketch as _Entries
from turnout._types import Array, Truths
from turnout.domain import Domain
from turnout.frequency.improbable import rows_of_bits
from turnout.frequency.oracles.hashing import FUNCTIONS, HashedOracle


class _Sketch(HashedOracle):
    """Base class of both sketches."""

    _kind: ClassVar[type[_Rows] | type[_Entries]]

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        hashes: int | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        self._core: Any = self._kind(
            self._epsilon,
            self._domain.size,
            _arguments.optional_integer("hashes", hashes, least=1, most=2**20),
            _arguments.optional_integer("width", width, least=2, most=2**16),
            FUNCTIONS,
        )
        self._shared = self.hashes

    @property
    def hashes(self) -> int:
        """The number of hash functions, ``m``."""
        return int(self._core.functions)

    @property
    def width(self) -> int:
        """The number of buckets of a function, ``w``."""
        return int(self._core.buckets)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"hashes": self.hashes, "width": self.width}


class CountMeanSketch(_Sketch):
    """Report one of a few public hash functions, and a row of randomized bits.

    The bit of the answer's bucket is one with probability ``p* = e^(eps/2) / (1 + e^(eps/2))`` and
    every other with ``q = 1 - p*``; other answers share the bucket with probability ``1 / w``, so
    that ``q* = q + (p* - q) / w`` on average over the functions. The probabilities are realised as
    whole numbers of 64-bit words from a cryptographic generator. The likelihood ratio of rows is at
    most ``e^eps``, exactly. The oracle is for very large domains: a tally costs ``hashes``
    evaluations for each answer, for any number of reports. The shared functions add the error of
    :meth:`pool_variance`.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        ``2^31 - 1``.
    hashes
        The number of hash functions ``m``, from 1 to 2^20; 1024 by default.
    width
        The number of bits ``w``, from 2 to 2^16; by default the least power of two from 256 to 4096
        with which collisions raise the variance of rare answers by at most 5 %. There are at most
        2^28 bits in all functions together.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or epsilon is so small (below 2^-30 or so) that reports
        would say nothing.

    Notes
    -----
    Apple's Differential Privacy Team, "Learning with privacy at scale" (2017). A report is a row of
    ``1 + ceil(w / 64)`` words of 64 bits: the number of the function, and the bits, the first in
    the lowest bit of the first word.

    Examples
    --------
    >>> oracle = CountMeanSketch(epsilon=2.0, domain=1_000_000)
    >>> oracle.hashes, oracle.width, oracle.report_bits, oracle.report_shape
    (1024, 256, 266, (5,))
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.7311, 0.2707)
    """

    name = "count_mean_sketch"
    #: The type of the words of a report.
    report_dtype = np.dtype(np.uint64)

    _kind = _Rows

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of a report under two answers; at most e^eps."""
        flips = self._core.flip_words
        return Fraction(2**64 - flips, flips) ** 2

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: a row of words, the number of the function first."""
        return (self._core.report_width,)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: the number of the function, and the row."""
        return (self.hashes - 1).bit_length() + self.width

    def improbable(self, reports: Array) -> Truths:
        """Return which reports have far too many or too few ones for an honest node."""
        return rows_of_bits(reports[:, 1:], self.width, self._core.flip_words / 2**64)


class HadamardCountMeanSketch(_Sketch):
    """Report one of a few public hash functions, and one randomized bit of a Hadamard transform.

    A report names a function, a row of the Hadamard matrix of order ``w``, and the entry of that
    row in the column of the answer's bucket, kept with probability
    ``p* = e^eps / (e^eps + 1)``. It supports the answers whose buckets have that entry: half of
    those in other buckets, so that ``q* = (1/2) (1 - 1/w) + p* / w`` on average over the functions.
    The probabilities are realised as whole numbers of 64-bit words from a cryptographic generator,
    and the likelihood ratio is at most ``e^eps``, exactly. The oracle is for very large domains and
    reports of a few bits: a tally costs ``hashes`` evaluations for each answer, for any number of
    reports. The shared functions add the error of :meth:`pool_variance`.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        ``2^31 - 1``.
    hashes
        The number of hash functions ``m``, from 1 to 2^20; 1024 by default.
    width
        The order ``w`` of the matrix, a power of two from 2 to 2^16; 256 by default, with which
        collisions raise the variance of rare answers by less than 1 %. There are at most 2^28
        columns in all functions together.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or epsilon is so small (below 2^-32 or so) that reports
        would say nothing.

    Notes
    -----
    Apple's Differential Privacy Team, "Learning with privacy at scale" (2017). A report is the
    number ``(function * w + row) * 2 + bit``, where the bit is 1 for the entry -1; the entry of row
    ``l`` and column ``b`` is -1 if ``l & b`` has an odd number of ones.

    Examples
    --------
    >>> oracle = HadamardCountMeanSketch(epsilon=2.0, domain=1_000_000)
    >>> oracle.hashes, oracle.width, oracle.report_bits
    (1024, 256, 19)
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.8808, 0.5015)
    """

    name = "hadamard_count_mean_sketch"
    #: The type of a report.
    report_dtype = np.dtype(np.uint32)

    _kind = _Entries

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: function, row and entry together."""
        return (2 * self.hashes * self.width - 1).bit_length()
