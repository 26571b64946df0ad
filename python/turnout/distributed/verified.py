"""Publish counts of votes, each of which is proven to be one vote or none."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.noisy_sums import NoisySums
from turnout.distributed.aggregation import AggregationMechanism, Codes, step_seed
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.distributed.noise import NOISES, NoiseLaw
from turnout.distributed.noised import noised_estimation
from turnout.distributed.published import Limits
from turnout.distributed.results import CostLedger, Costs, RoundResult
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

#: The noises of which an aggregator's can be added.
_KINDS = ("discrete_laplace", "discrete_gaussian")

#: The sizes of the draft: of nonces and of the key that aggregators share.
_NONCE, _KEY = 16, 32

_MOST_AGGREGATORS = 254

#: How many reports are made and verified at a time: memory is that of so many.
_BLOCK = 1 << 14

#: A report: its nonce, the public share, and the share of each aggregator.
Report: TypeAlias = tuple[bytes, bytes, Sequence[bytes]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifiedAggregation(AggregationMechanism):
    """Every user shares one vote with a proof, and every aggregator adds noise of its own.

    A report is one of Prio3, by the VDAF draft of the IETF: aggregators verify together that it is
    one vote or none, learn nothing else, refuse it otherwise, and add up what is left. So a user
    that cheats moves a result by one vote, as everybody may. Each aggregator adds noise that is
    enough by itself: one honest aggregator protects every user, whatever the others do.

    With ``participation`` below 1 every user throws a coin that nobody else sees, and sends a
    report without a vote if it stays away: it looks like all others.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number.
    users
        The number n of users.
    epsilon, delta
        The target, for :attr:`accounting`. Delta may be left out: it is 0 then.
    participation
        The probability that a user takes part, in (0, 1].
    aggregators
        How many aggregators there are, from 2 to 254. The Distributed Aggregation Protocol has two.
    noise
        ``"discrete_laplace"`` or ``"discrete_gaussian"``; if None, the one of smaller variance.
    parameter
        The noise of one aggregator: the scale of the discrete Laplace noise, or the parameter
        sigma^2 of the discrete Gaussian. If None, the least that reaches ``epsilon`` and ``delta``.
    honest_aggregators
        1: the noise of one honest aggregator is all that protects.
    max_colluding_users, max_missing_users
        Any numbers that leave a user: users add no noise, so none of them protects another.
    adjacency
        What neighbouring data sets are: ``"replace"`` (one user's item changes: two counts change),
        or ``"add_or_remove"`` (one user holds an item or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or no noise reaches the target.

    Notes
    -----
    The type is Prio3MultihotCountVec with ``max_weight`` 1, which accepts the vectors of a single
    one and that of zeros and nothing else. The estimate of a frequency is the count with noise over
    the reports that were accepted and the probability of taking part. A user that cheats by sending
    no vote, or one for an item that it does not hold, cannot be told from an honest one. An
    aggregator that cheats can spoil the result, not the privacy.

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
    _found: ClassVar[str | None] = "parameter"
    _conduct: ClassVar[str] = (
        "users may send what they like: a report that is not one vote or none is refused"
    )

    participation: float = 1.0
    aggregators: int = 2
    noise: str | None = None
    parameter: float | None = None

    def __post_init__(self) -> None:
        """Check the arguments and find the noise."""
        if self.noise is not None:
            _arguments.choice("noise", self.noise, _KINDS)
        _arguments.choice("adjacency", self.adjacency, ("replace", "add_or_remove"))
        rate = _arguments.probability("participation", self.participation)
        most = _MOST_AGGREGATORS
        number = _arguments.integer("aggregators", self.aggregators, least=2, most=most)
        settle(self, participation=rate, aggregators=number)
        if self.epsilon is not None and self.delta is None:
            settle(self, delta=0.0)
        super().__post_init__()
        if self.honest_aggregators != 1:
            raise _arguments.invalid(
                "honest_aggregators must be 1 (the noise of each aggregator is enough)",
                self.honest_aggregators,
            )
        if self.noise is None:
            settle(self, noise=self._best_noise())
        kind = NOISES[self._noise]
        accounting = NoisySums(self._noise, 1.0, rate)
        parameter = self._calibrated("parameter", accounting, "parameter")
        if self.parameter is None and parameter < kind.least:
            # A target so lax that less noise would do than can be drawn.
            settle(self, parameter=kind.least)
            parameter = self._calibrated("parameter", accounting, "parameter")
        settle(self, parameter=parameter)
        try:
            # The sampler may refuse the noise: before anything is promised.
            self._contribution(0)
        except InvalidValueError as error:
            raise InvalidValueError(
                f"parameter must be one whose noise can be drawn, got {parameter}: {error}"
            ) from error

    def _best_noise(self) -> str:
        if self.parameter is not None or self.epsilon is None or not self.delta:
            return _KINDS[0]
        found = NoisySums._smallest(
            self.epsilon, self.delta, self.participation, adjacency=self.adjacency
        )
        return found.noise

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        del arguments
        return False

    # What is told of it.

    def _adders(self) -> str:
        return f"{self.aggregators:,} aggregators"

    def _title(self) -> str:
        return f"votes with proofs, {self._noise.replace('_', ' ')} noise from every aggregator"

    def _told(self) -> list[tuple[str, str]]:
        deviation = math.sqrt(self._law().variance)
        told = [*super()._told(), ("noise", f"standard deviation {deviation:.4g} on every count")]
        if self.participation < 1.0:
            told.append(("participation", f"each user with probability {self.participation:g}"))
        return told

    def _facts(self) -> dict[str, Any]:
        found = {"noise": self.noise, "parameter": self.parameter}
        return {**super()._facts(), **found, "noise_variance": self._law().variance}

    @property
    def _modulus(self) -> int:
        return self._prio3.modulus

    @property
    def _no_rounds(self) -> str | None:
        return (
            "its messages are those of the Distributed Aggregation Protocol: use run, or a task of "
            "that protocol"
        )

    # What protects.

    @property
    def _pure(self) -> bool:
        return NOISES[self._noise].pure

    @property
    def _noise(self) -> str:
        return self.noise or _KINDS[0]

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""
        return self._accounting

    @functools.cached_property
    def _accounting(self) -> NoisySums:
        assert self.parameter is not None
        return NoisySums(self._noise, self.parameter, self.participation)

    def _trust(self) -> list[str]:
        trust = [
            f"at least one of the {self.aggregators} aggregators follows the protocol, and keeps "
            "what it sees and its noise to itself"
        ]
        if self.participation < 1.0:
            trust.append(
                f"every user takes part with probability {self.participation:g}, by a coin that "
                "nobody else learns: whoever stays away sends a report without a vote"
            )
        return trust

    # The protocol.

    @functools.cached_property
    def _prio3(self) -> _core.Prio3:
        return _core.Prio3.multihot(self.domain.size, aggregators=self.aggregators)

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
    def _share_bytes(self) -> int:
        # To each aggregator the nonce, the public share and its own.
        shares = sum(map(self._prio3.input_share_length, range(self.aggregators)))
        return self.aggregators * (_NONCE + self._prio3.public_share_length) + shares

    def _law(self) -> NoiseLaw:
        """Give the law of all noise on one count: that of every aggregator."""
        assert self.parameter is not None
        return NOISES[self._noise](self.parameter, required=1, contributors=self.aggregators)

    def _user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw what one user shares: its item, or nothing if it stays away."""
        vector = np.zeros(self.domain.size, np.int64)
        vector[code] = self._attending(1, seed).size
        return vector

    def _contribution(self, items: int | None = None, seed: int | None = None) -> Integers:
        """Draw the noise of one aggregator."""
        return self._law().piece(self.domain.size if items is None else items, seed)

    def _attending(self, users: int, seed: int | None) -> Integers:
        """Throw the coins of users: which take part."""
        return _core.participants(users, self.participation, seed)

    def _vector_costs(self) -> Costs:
        return Costs(coins=int(self.participation < 1.0))

    def _contribution_costs(self, items: int) -> Costs:
        return Costs(noise=items)

    def _decode(self, sums: Array) -> Integers:
        """Give the numbers themselves: aggregate shares are put together as whole numbers."""
        return np.asarray(sums, np.int64)

    def _added_up(self, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
        batch = _Batch.start(self)
        votes = np.full(codes.size, -1, np.int64)
        chosen = self._attending(codes.size, step_seed(seed, "participation"))
        votes[chosen] = codes[chosen]
        starts = range(0, votes.size, _BLOCK)
        result = batch.result(
            (batch.reports(votes[start : start + _BLOCK]) for start in starts), seed
        )
        return result.sums, result.costs

    def simulate(self, true_counts: npt.ArrayLike, seed: int | None = None) -> RoundResult:
        """Draw the result of a round of honest users from its law, without making a report.

        It takes time and memory in proportion to the items, whatever the number of users.

        Parameters
        ----------
        true_counts
            How many users hold each item; users that are in none hold no item.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        RoundResult
            As :meth:`run` gives it, equal in law.

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
        for index in range(self.aggregators):
            sums += self._contribution(seed=step_seed(seed, "contribution", index))
        return RoundResult(self.estimate(sums), sums, self._ledger(self.users, self.users))

    def _ledger(self, sent: int, accepted: int) -> CostLedger:
        """Count what a round costs: every user sends one message to each aggregator."""
        prio3, m, size = self._prio3, self.aggregators, self.domain.size
        each = self._share_bytes + m * MESSAGE_OVERHEAD
        users = Costs(messages=sent * m, bytes=sent * each)
        users.coins = sent * self._vector_costs().coins
        # Every other aggregator sends its part of all proofs to the first, which answers.
        public = prio3.public_share_length // m
        proofs = (m - 1) * (self._verifier_share + public) * sent
        adding = Costs(
            messages=2 * (m - 1) + m,
            bytes=proofs + m * prio3.aggregate_share_length + (3 * m - 2) * MESSAGE_OVERHEAD,
            additions=m * size * (accepted + 1),
        )
        totals = {
            "user": users,
            "aggregator": adding + self._contribution_costs(m * size),
            "server": Costs(additions=(m - 1) * size),
        }
        return CostLedger(totals, {"user": self.users, "aggregator": m, "server": 1}, {})

    @functools.cached_property
    def _verifier_share(self) -> int:
        """How many bytes an aggregator sends to verify one report."""
        prio3, nonce = self._prio3, bytes(_NONCE)
        public, shares = prio3.shard(b"", [0] * self.domain.size, nonce)
        return len(prio3.verify_init(bytes(_KEY), b"", 0, nonce, public, shares[0])[1])

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


@dataclasses.dataclass(frozen=True)
class _Batch:
    """One round: what reports are bound to, and the key that aggregators share."""

    mechanism: VerifiedAggregation
    context: bytes
    verify_key: bytes = dataclasses.field(repr=False)

    @classmethod
    def start(cls, mechanism: VerifiedAggregation) -> _Batch:
        context = bytes.fromhex(mechanism.fingerprint) + secrets.token_bytes(_NONCE)
        return cls(mechanism, context, secrets.token_bytes(_KEY))

    def reports(self, votes: Integers) -> list[Report]:
        """Share a vote of each user: a code, or -1 for none."""
        nonces = secrets.token_bytes(_NONCE * votes.size)
        shared = self.mechanism._prio3.shard_votes(self.context, votes, nonces)
        places = range(0, len(nonces), _NONCE)
        return [
            (nonces[place : place + _NONCE], public, inputs)
            for place, (public, inputs) in zip(places, shared, strict=True)
        ]

    def result(self, blocks: Iterable[list[Report]], seed: int | None = None) -> RoundResult:
        """Verify reports, refuse what does not hold, add up the others and the noise."""
        mechanism, prio3 = self.mechanism, self.mechanism._prio3
        sums = [prio3.aggregate([]) for _ in range(mechanism.aggregators)]
        refused: collections.Counter[str] = collections.Counter()
        accepted = 0
        for block in _fresh(blocks, refused):
            shares, reasons = prio3.verify_together(self.verify_key, self.context, block)
            sums = [
                prio3.aggregate([share], total) for share, total in zip(shares, sums, strict=True)
            ]
            refused.update(reason for reason in reasons if reason is not None)
            accepted += reasons.count(None)
        sent = accepted + refused.total()
        if not accepted:
            raise InvalidValueError(
                f"reports must be valid, and all {sent:,} were refused: expected reports of this "
                "round, each one vote or none"
            )
        assert mechanism.parameter is not None
        for index, total in enumerate(sums):
            own = step_seed(seed, "contribution", index)
            sums[index] = prio3.add_noise(
                total, mechanism._noise, mechanism.parameter, accepted, own
            )
        counts = np.array(prio3.unshard(sums), dtype=np.int64)
        estimate = mechanism.estimate(counts, accepted)
        ledger = mechanism._ledger(sent, accepted)
        return RoundResult(estimate, counts, ledger, dict(refused))


def _fresh(
    blocks: Iterable[list[Report]], refused: collections.Counter[str]
) -> Iterator[list[Report]]:
    """Leave out reports whose nonce another one had, and count them."""
    seen: set[bytes] = set()
    for block in blocks:
        fresh = []
        for report in block:
            if report[0] in seen:
                refused["replayed"] += 1
            else:
                seen.add(report[0])
                fresh.append(report)
        yield fresh
