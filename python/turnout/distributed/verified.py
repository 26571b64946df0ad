"""Counts of votes, each with a proof that it is one vote or none."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout.distributed.aggregation import AggregationMechanism, Codes, step_seed
from turnout.distributed.noised import noised_estimation
from turnout.distributed.parameters import Parameters
from turnout.distributed.proven import Batch, Outcome, Proven
from turnout.distributed.published import Limits
from turnout.distributed.results import CostLedger, RoundResult
from turnout.distributed.verified_sum import VerifiedSum
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifiedAggregation(Proven, AggregationMechanism):
    """A mechanism of votes with proofs, in which every aggregator adds its own noise.

    Every user shares one vote with a proof. A report is a Prio3 report of the VDAF draft of the
    IETF. The aggregators verify together that it is one vote or none, and learn nothing else. They
    refuse other reports, and add up the rest. So a cheating user changes a result by at most one
    vote, as every user may. The noise of each aggregator alone is sufficient: one honest aggregator
    protects every user, whatever the others do.

    With ``participation`` below 1, every user tosses a coin that nobody else sees. A user that
    stays away sends a report without a vote, which looks like all others.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number.
    users
        The number n of users.
    epsilon, delta
        The target, for :attr:`accounting`. You may omit delta: it is then 0.
    participation
        The probability that a user takes part, in (0, 1].
    none_counted
        Whether reports without a vote are counted too, with noise like the items. Reports then use
        Prio3Histogram, with a bucket for no vote. Use it if the other side supports no other type.
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
        The neighbouring data sets: ``"replace"`` (one user's item changes, which changes two
        counts), or ``"add_or_remove"`` (one user holds an item or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or no noise reaches the target.

    Notes
    -----
    The type is Prio3MultihotCountVec with ``max_weight`` 1, which accepts the vectors of a single
    one and that of zeros and nothing else. The estimate of a frequency is the noisy count, divided
    by the number of accepted reports and by the probability of taking part. A user that sends no
    vote, or votes for an item that it does not hold, cannot be told from an honest one. A cheating
    aggregator can spoil the result, but not the privacy.

    With ``none_counted`` the type is Prio3Histogram, with a last bucket for no vote. Its count is
    published with noise, so a ``participation`` below 1 saves less noise than without it: a user
    that takes part changes that count too. :class:`turnout.accounting.NoisySums` states how much.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = VerifiedAggregation(3, users=1000, epsilon=1.0)
    >>> mechanism.noise, mechanism.parameter
    ('discrete_laplace', 2.0)
    >>> estimate = mechanism.run([0] * 500 + [1] * 300 + [2] * 200, seed=1).estimate
    >>> estimate.interval(0.99).contains([0.5, 0.3, 0.2])
    array([ True,  True,  True])
    """

    name: ClassVar[str] = "verified"
    _report_is: ClassVar[str] = "one vote or none"
    _without: ClassVar[str] = "without a vote"
    _noise_on: ClassVar[str] = "every count"
    _conduct: ClassVar[str] = (
        "users may send what they like: a report that is not one vote or none is refused"
    )
    _absent: ClassVar[int] = -1
    _of_numbers: ClassVar[type[Parameters] | None] = VerifiedSum

    none_counted: bool = False

    def __post_init__(self) -> None:
        """Check the arguments and find the noise."""
        _arguments.instance("none_counted", self.none_counted, bool, "a bool")
        super().__post_init__()

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        del arguments
        return False

    def _title(self) -> str:
        return f"votes with proofs, {self._noise.replace('_', ' ')} noise from every aggregator"

    @property
    def _no_rounds(self) -> str | None:
        return (
            "its messages are those of the Distributed Aggregation Protocol: use run, or a task of "
            "that protocol"
        )

    # The protocol.

    @functools.cached_property
    def _prio3(self) -> _core.Prio3:
        if self.none_counted:
            return _core.Prio3.histogram(self._sums, aggregators=self.aggregators)
        return _core.Prio3.multihot(self._sums, aggregators=self.aggregators)

    @property
    def _sums(self) -> int:
        items: int = self.domain.size
        return items + self.none_counted

    @property
    def _contributors(self) -> int:
        return self.aggregators

    @property
    def _largest_sum(self) -> int:
        # Asked for by ``field`` alone.
        raise InvalidValueError(
            f"{self.name!r} has no PrimeField: its field is that of Prio3, of "
            f"{self._modulus.bit_length()} bits"
        )

    @property
    def _accounted(self) -> Mapping[str, Any]:
        return {"none_counted": self.none_counted}

    def _measured(self, values: Any) -> Integers:
        return np.asarray(self.domain.encode(values), np.int64)

    def _shared(self, context: bytes, values: Array, nonces: bytes) -> list[Any]:
        """Share a vote of each user: a code, or -1 for none."""
        return self._prio3.shard_votes(context, values, nonces)

    def _user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw the vector that one user shares: its item, or nothing if it stays away."""
        vector = np.zeros(self.domain.size, np.int64)
        vector[code] = self._attending(1, seed).size
        return vector

    def _decode(self, sums: Array) -> Integers:
        """Return the numbers themselves: aggregate shares are combined as whole numbers."""
        return np.asarray(sums, np.int64)

    def _added_up(self, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
        result = Batch.start(self).of(codes, seed)
        return result.sums, result.costs

    def _result(self, found: Outcome) -> RoundResult:
        counts = np.array(found.sums[: self.domain.size], np.int64)
        ledger = self._ledger(found.sent, found.accepted)
        return RoundResult(self.estimate(counts, found.accepted), counts, ledger, found.refused)

    def simulate(self, true_counts: npt.ArrayLike, seed: int | None = None) -> RoundResult:
        """Draw the result of a round of honest users from its law, without making reports.

        Time and memory grow with the number of items, not with the number of users.

        Parameters
        ----------
        true_counts
            The number of users that hold each item. Users that are not counted hold no item.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        RoundResult
            A result with the same law as that of :meth:`run`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one count for each item, or they add up to more than the users.

        Examples
        --------
        >>> mechanism = VerifiedAggregation(3, users=10**9, epsilon=1.0, participation=0.1)
        >>> result = mechanism.simulate([5 * 10**8, 3 * 10**8, 2 * 10**8], seed=1)
        >>> result.estimate.frequencies.round(3)
        array([0.5, 0.3, 0.2])
        """
        seed = _arguments.seed(seed)
        counts = _arguments.counts("true_counts", true_counts, self.domain.size)
        total = sum(map(int, counts))
        if total > self.users:
            raise InvalidValueError(
                f"true_counts must add up to at most the {self.users} users, got {total}"
            )
        drawn = step_seed(seed, "participation")
        sums = _core.binomial_counts(counts, self.participation, drawn).astype(np.int64)
        sums = self._drawn(sums, seed)
        return RoundResult(self.estimate(sums), sums, self._ledger(self.users, self.users))

    # The estimate.

    def _reach(self, held: Limits, items: int, received: int, chance: float) -> Limits:
        law = self._law()
        # Of several items the noise is that of so many times as many aggregators; a user may vote
        # for nothing.
        noise = dataclasses.replace(law, contributors=items * law.contributors).tail_bound(chance)
        return -noise, held[1] + noise

    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        return noised_estimation(sums, received, self._law(), self.participation)
