"""The sum and the mean of numbers, each with a proof that it is within bounds."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout.bounds import Bounds
from turnout.distributed.aggregation import check_users, step_seed
from turnout.distributed.noised import noised_means
from turnout.distributed.proven import Batch, Outcome, Proven
from turnout.distributed.results import SumResult
from turnout.errors import ImplausibleSumsError, InvalidValueError
from turnout.mean.estimate import MeanEstimate

#: What floating point counts: the largest sum that all users together can have.
_LARGEST_SUM = 2**53

#: How often an honest round is refused at most.
_CHANCE = 1e-6


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifiedSum(Proven):
    """A mechanism of numbers with proofs, in which every aggregator adds its own noise.

    Every user shares one whole number with a proof. A report is a Prio3 report of the VDAF draft of
    the IETF. The aggregators verify together that the number is within the bounds, and learn
    nothing else. They refuse other reports, and add up the rest. So a cheating user changes the sum
    by at most the width of the bounds, as every user may. The noise of each aggregator alone is
    sufficient: one honest aggregator protects every user, whatever the others do.

    With ``participation`` below 1, every user tosses a coin that nobody else sees. A user that
    stays away sends the lower bound, and its report looks like all others. The expected number of
    participants is known, which suffices to estimate the mean of everybody.

    Parameters
    ----------
    domain
        The bounds of the whole numbers: :class:`turnout.Bounds`, or a pair.
    users
        The number n of users.
    epsilon, delta
        The target, for :attr:`accounting`. You may omit delta: it is then 0.
    participation
        The probability that a user takes part, in (0, 1].
    as_vector
        Whether reports use Prio3SumVec, as a vector of one number, which costs more. Use it if the
        other side adds noise to no other type.
    aggregators
        The number of aggregators, from 2 to 254. The Distributed Aggregation Protocol has two.
    noise
        ``"discrete_laplace"`` or ``"discrete_gaussian"``; if None, the one with the smaller
        variance.
    parameter
        The noise of one aggregator: the scale of the discrete Laplace noise, or the parameter
        sigma^2 of the discrete Gaussian. If None, the smallest that reaches ``epsilon`` and
        ``delta``.
    honest_aggregators
        1: the guarantee rests on the noise of one honest aggregator.
    max_colluding_users, max_missing_users
        Any numbers that leave at least one user. Users add no noise, so none of them protects
        another.
    adjacency
        The neighbouring data sets: ``"replace"`` (one user's number changes), or
        ``"add_or_remove"`` (one user has a number or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or no noise reaches the target.

    Notes
    -----
    The type is Prio3Sum, applied to the distance from the lower bound. Its largest number need not
    be one below a power of two: any bits that a user sends stand for a number within the bounds.

    The estimate of the mean divides the noisy sum by the number of accepted reports and by the
    probability of taking part. The variance from the coins depends on the squares of the numbers,
    which nobody learns. With ``participation`` below 1, standard errors and intervals therefore
    assume the worst case, numbers at the bounds, and are wider than other numbers would need. They
    are smallest if most numbers are near the lower bound.

    A user that cheats with a number within the bounds cannot be told from an honest one. A cheating
    aggregator can spoil the result, but not the privacy.

    The noise of one aggregator has a scale of at most 10^6, so at epsilon 1 bounds may be 10^6
    apart. Use larger units for larger numbers.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = VerifiedSum(tn.Bounds(18, 100), users=1000, epsilon=1.0)
    >>> mechanism.noise, mechanism.parameter
    ('discrete_laplace', 82.0)
    >>> estimate = mechanism.run([25] * 500 + [55] * 500, seed=1).estimate
    >>> estimate.interval(0.99).contains(40.0), estimate.sum_interval(0.99).contains(40_000)
    (True, True)
    """

    name: ClassVar[str] = "verified_sum"
    _report_is: ClassVar[str] = "one number within the bounds"
    _without: ClassVar[str] = "of the lower bound"
    _noise_on: ClassVar[str] = "the sum"
    _less_noise: ClassVar[str] = "a larger epsilon, or numbers in larger units"
    _holding: ClassVar[str] = "number"
    _conduct: ClassVar[str] = (
        "users may send what they like: a report that is not one number within the bounds is "
        "refused"
    )
    _changes: ClassVar[tuple[str, str]] = (
        "one user's number is changed",
        "one user that takes part gives a number or none",
    )
    _absent: ClassVar[int] = 0

    domain: Bounds = dataclasses.field(kw_only=False)
    as_vector: bool = False

    def __post_init__(self) -> None:
        """Check the arguments and find the noise."""
        _arguments.instance("as_vector", self.as_vector, bool, "a bool")
        super().__post_init__()
        most = _LARGEST_SUM // self._largest
        if self.users > most:
            raise InvalidValueError(
                f"users must be at most {most:,} with numbers that are {self._largest:,} apart, "
                f"so that sums can be counted, got {self.users:,}"
            )

    @classmethod
    def _domain_of(cls, domain: Any) -> Bounds:
        bounds = Bounds._from_pair(domain)
        if bounds.dimensions != 1:
            raise _arguments.invalid("domain must be the bounds of one number", domain)
        if not (bounds.low.is_integer() and bounds.high.is_integer()):
            raise _arguments.invalid("domain must be bounds that are whole numbers", domain)
        if max(abs(bounds.low), abs(bounds.high), bounds.high - bounds.low) > _LARGEST_SUM:
            raise _arguments.invalid("domain must be bounds from -2^53 to 2^53", domain)
        return bounds

    @classmethod
    def _read_domain(cls, description: Any) -> Bounds:
        return Bounds.from_dict(description)

    def _title(self) -> str:
        return f"numbers with proofs, {self._noise.replace('_', ' ')} noise from every aggregator"

    # The protocol.

    @functools.cached_property
    def _prio3(self) -> _core.Prio3:
        if self.as_vector:
            return _core.Prio3.sum_vec(self._largest, 1, aggregators=self.aggregators)
        return _core.Prio3.sum(self._largest, aggregators=self.aggregators)

    @property
    def _largest(self) -> int:
        return int(self.domain.high - self.domain.low)

    @property
    def _accounted(self) -> Mapping[str, Any]:
        return {"largest": self._largest}

    @property
    def _sums(self) -> int:
        return 1

    def _measured(self, values: Any) -> Integers:
        """Check the numbers of users, and return their distances from the lower bound."""
        found = self.domain.encode(values)
        broken = int((found != np.floor(found)).sum())
        if broken:
            # What a person gives is not shown.
            raise InvalidValueError(f"values must be whole numbers, and {broken:,} are not")
        return (found - self.domain.low).astype(np.int64)

    def _shared(self, context: bytes, values: Array, nonces: bytes) -> list[Any]:
        """Share each user's distance from the lower bound."""
        return self._prio3.shard_numbers(context, values.astype(np.uint64), nonces)

    def run(self, values: Any, seed: int | None = None) -> SumResult:
        """Run one round in this process, with every report and every proof.

        Parameters
        ----------
        values
            One whole number for each user.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        SumResult
            The estimate, the sum, and the costs.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number within the bounds for each user.
        """
        seed = _arguments.seed(seed)
        numbers = self._measured(values)
        check_users(self, numbers)
        found: SumResult = Batch.start(self).of(numbers, seed)
        return found

    def _result(self, found: Outcome) -> SumResult:
        sums = np.array(found.sums, np.int64)
        ledger = self._ledger(found.sent, found.accepted)
        return SumResult(self.estimate(sums, found.accepted), sums, ledger, found.refused)

    def simulate(
        self, values: Any, counts: npt.ArrayLike | None = None, seed: int | None = None
    ) -> SumResult:
        """Draw the result of a round of honest users from its law, without making reports.

        Parameters
        ----------
        values
            One whole number for each user; or distinct numbers, with ``counts``.
        counts
            The number of users with each of the values. Time and memory then grow with the number
            of values, not with the number of users.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        SumResult
            A result with the same law as that of :meth:`run`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If values are not whole numbers within the bounds, or do not cover all users.

        Examples
        --------
        >>> mechanism = VerifiedSum((0, 50), users=10**9, epsilon=1.0, participation=0.1)
        >>> result = mechanism.simulate([10, 20, 50], [5 * 10**8, 4 * 10**8, 10**8], seed=1)
        >>> round(result.estimate.mean, 2)
        18.0
        """
        seed = _arguments.seed(seed)
        numbers = self._measured(values)
        held = np.ones(numbers.size, np.uint64)
        if counts is not None:
            held = _arguments.counts("counts", counts, numbers.size, of="values")
        total = sum(map(int, held)) if counts is not None else held.size
        if total != self.users:
            raise InvalidValueError(
                f"values must be those of the {self.users} users, got those of {total}"
            )
        numbers, places = np.unique(numbers, return_inverse=True)
        together = np.zeros(numbers.size, np.uint64)
        np.add.at(together, places, held)
        drawn = step_seed(seed, "participation")
        taking = _core.binomial_counts(together, self.participation, drawn).astype(np.int64)
        sums = self._drawn(np.array([int(numbers @ taking)], np.int64), seed)
        return SumResult(self.estimate(sums), sums, self._ledger(self.users, self.users))

    # The estimate.

    def estimate(self, sums: npt.ArrayLike, received: int | None = None) -> MeanEstimate:
        """Estimate the mean and the sum of the numbers from the published sum.

        Parameters
        ----------
        sums
            The published sum of one round in a list: the noisy sum of the distances from the lower
            bound, a whole number.
        received
            The number of reports in the sum; those of all users by default.

        Returns
        -------
        MeanEstimate
            The mean over these users, with intervals that hold for any numbers.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number.
        ImplausibleSumsError
            If honest parties produce such a sum in at most one of a million rounds.

        Examples
        --------
        >>> mechanism = VerifiedSum((0, 10), users=500, epsilon=1.0)
        >>> mechanism.estimate([2125])
        MeanEstimate('verified_sum', 4.25 ± 0.04)
        """
        numbers = _arguments.frequencies("sums", sums, 1, of="sums")
        if (numbers != np.floor(numbers)).any():
            raise InvalidValueError("sums must be whole numbers, and some are not")
        count = self.users
        if received is not None:
            count = _arguments.integer("received", received, least=1, most=self.users)
        law, largest = self._law(), self._largest
        reach = law.tail_bound(0.5 * _CHANCE)
        if not -reach <= numbers[0] <= count * largest + reach:
            raise ImplausibleSumsError(
                f"sums[0] is {numbers[0]:.0f}; where all parties follow the protocol it is between "
                f"{-reach} and {count * largest + reach}, but for one round in a million at most. "
                "An aggregator did not follow it. Do not publish this sum. A new round costs "
                "privacy again"
            )
        found = noised_means(
            numbers.astype(np.int64),
            count,
            law,
            largest,
            low=self.domain.low,
            rate=self.participation,
        )
        return MeanEstimate(self, self.name, count, count, found)

    def _error(self) -> tuple[float, str]:
        """Return the root mean squared error of the mean, and the quantity that it is about.

        Whatever the numbers are, where everybody takes part; otherwise where all of them are the
        largest, which is the worst.

        Examples
        --------
        >>> error, of = VerifiedSum((0, 100), users=1000, epsilon=1.0)._error()
        >>> round(error, 4), of
        (0.2, 'the mean')
        """
        coins = (1.0 - self.participation) / self.participation * self._largest**2 / self.users
        noise = self._law().variance / (self.users * self.participation) ** 2
        return math.sqrt(noise + coins), "the mean"
