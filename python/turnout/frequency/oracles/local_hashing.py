"""Local hashing: a hash function that the node chooses, and a randomized bucket."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout.domain import Domain
from turnout.frequency.estimation.models import PairSupport
from turnout.frequency.oracles.hashing import FUNCTIONS, HashedOracle

#: The largest numbers of buckets, and of functions of a pool.
_MOST = 2**20


class _LocalHashing(HashedOracle):
    """Local hashing with any number of buckets.

    A linear function that maps two codes to the same of more than two buckets is likelier to map a
    code between them there too. Functions that all reports share map some codes to the same bucket
    in all reports. In both cases pair probabilities are not the same for all answers.
    """

    #: How many buckets are asked for: as many as are best, if None.
    _buckets: int | None = 2

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        hashes: int | None = None,
    ) -> None:
        super().__init__(epsilon, domain)
        asked = (self._epsilon, self._domain.size, self._buckets)
        self._shared = _arguments.optional_integer("hashes", hashes, least=1, most=_MOST)
        self._core: _core.LocalHashing | _core.PooledLocalHashing
        if self._shared is None:
            self._core = _core.LocalHashing(*asked)
        else:
            self._core = _core.PooledLocalHashing(*asked, self._shared, FUNCTIONS)

    @property
    def buckets(self) -> int:
        """The number of buckets, ``g``."""
        return self._core.buckets

    @property
    def hashes(self) -> int | None:
        """The number of functions that all reports share, or None if each has its own."""
        return self._shared

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of a report: uint64, or uint32 with a pool of functions."""
        return np.dtype(np.uint64 if self._shared is None else np.uint32)

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: function and bucket together."""
        if isinstance(self._core, _core.LocalHashing):
            return self._core.report_bits
        return (self._shared * self.buckets - 1).bit_length() if self._shared else 0

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {} if self._shared is None else {"hashes": self._shared}


class BinaryLocalHashing(_LocalHashing):
    """Report one randomized bit of the answer, and the hash function that gave it.

    The answer's bucket, 0 or 1, is kept with probability ``p* = e^eps / (e^eps + 1)``; half of the
    other answers share the bucket, so that ``q* = 1/2``. Both are realised as whole numbers of
    64-bit words from a cryptographic generator, and the likelihood ratio is at most ``e^eps``,
    exactly. The functions do not depend on anybody's answer.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. At most
        ``2^31 - 1``.
    hashes
        If given, all reports share this many public functions, at most 2^20, instead of having
        their own. Then a tally costs ``hashes * k`` evaluations for any number of reports, and adds
        the error of :meth:`pool_variance`.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range.

    Notes
    -----
    Bassily, Smith, "Local, private, efficient protocols for succinct histograms" (2015); Wang,
    Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation" (2017).
    A report is the number ``[a: 31 bits][b: 31 bits][bucket: 1 bit]``, and the bucket of a code
    ``x`` is ``floor(2 u / P)`` with ``u = (a x + b) mod P`` and ``P = 2^31 - 1``. With a pool it is
    ``2 * function + bucket``.

    Examples
    --------
    >>> oracle = BinaryLocalHashing(epsilon=1.0, domain=Domain(["never", "once", "often"]))
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.7311, 0.5)
    >>> oracle.report_bits
    63
    """

    name = "binary_local_hashing"

    @property
    def _pair_support(self) -> PairSupport | None:
        """The joint support of two answers by a report, if it has its own function."""
        return PairSupport.independent(self._score_moments) if self._shared is None else None


class OptimizedLocalHashing(_LocalHashing):
    """Report a randomized bucket of the answer, and the hash function that gave it.

    The answer's bucket, one of ``g``, is kept with probability
    ``p* = e^eps / (e^eps + g - 1)``; one in ``g`` of the other answers shares the bucket, so that
    ``q* = 1 / g``. Both are realised as whole numbers of 64-bit words from a cryptographic
    generator, and the likelihood ratio is at most ``e^eps``, exactly. The functions do not depend
    on anybody's answer. The variance does not grow with the domain. A tally checks every answer for
    every report.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats: finite, above 0, at most 42.
    domain
        The answers, or their number ``k``: then the codes ``0 .. k - 1`` are the answers. With more
        buckets, the functions of 64-bit reports distinguish fewer answers: 2^31 - 1 with up to 4
        buckets, about 2^30 with 8, 2^29 with 32, and so on.
    buckets
        The number of buckets ``g``, from 2 to 2^20; by default the number of least variance, close
        to ``e^eps + 1``, or the largest smaller power of two that the domain allows.
    hashes
        If given, all reports share this many public functions, at most 2^20, instead of having
        their own. Then a tally costs ``hashes * k`` evaluations for any number of reports, and adds
        the error of :meth:`pool_variance`. Then domains have up to ``2^31 - 1`` answers.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or the domain has more answers than the functions
        distinguish.

    Notes
    -----
    Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation"
    (2017); the pool is that of Cormode, Maddock, Maple, "Frequency estimation under local
    differential privacy" (2021). A report is the number
    ``[a: w bits][b: w bits][bucket: c bits]`` with ``c = ceil(log2 g)`` and
    ``w = min(31, (64 - c) // 2)``, and the bucket of a code ``x`` is ``floor(g u / P)`` with
    ``u = (a x + b) mod P`` and the largest prime ``P`` below ``2^w``. With a pool it is
    ``g * function + bucket``.

    Examples
    --------
    >>> oracle = OptimizedLocalHashing(epsilon=1.0, domain=1000)
    >>> oracle.buckets
    4
    >>> p, q = oracle.support_probabilities
    >>> round(p, 4), round(q, 4)
    (0.4754, 0.25)
    >>> OptimizedLocalHashing(1.0, 1000, hashes=1024).report_bits
    12
    """

    name = "optimized_local_hashing"

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        buckets: int | None = None,
        hashes: int | None = None,
    ) -> None:
        self._buckets = _arguments.optional_integer("buckets", buckets, least=2, most=_MOST)
        super().__init__(epsilon, domain, hashes=hashes)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"buckets": self.buckets, **super().parameters()}
