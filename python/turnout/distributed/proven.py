"""Rounds of reports with proofs: noise, costs, and reasons for refusal."""

from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.noisy_sums import NoisySums
from turnout.distributed.aggregation import step_seed
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.distributed.noise import NOISES, NoiseLaw
from turnout.distributed.parameters import Parameters
from turnout.distributed.results import CostLedger, Costs
from turnout.errors import InvalidValueError

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
class Proven(Parameters):
    """A mechanism in which every user sends one report with a proof (base class).

    Every aggregator adds noise. Users may stay away by a coin that nobody sees: their reports look
    like all others.
    """

    _found: ClassVar[str | None] = "parameter"
    _among_machines: ClassVar[str] = "turnout task new makes a task of the same mechanism"

    #: What a report is, and what one of a user that stays away has not.
    _report_is: ClassVar[str]
    _without: ClassVar[str]

    #: What noise is on, and what makes it less.
    _noise_on: ClassVar[str]
    _less_noise: ClassVar[str] = "a larger epsilon"

    #: What a user measures that stays away.
    _absent: ClassVar[int]

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
        accounting = NoisySums(self._noise, 1.0, rate, **self._accounted)
        given = self.parameter is not None
        parameter = self._calibrated("parameter", accounting, "parameter")
        if not given and parameter < kind.least:
            # A target so lax that less noise would do than can be drawn.
            settle(self, parameter=kind.least)
            parameter = self._calibrated("parameter", accounting, "parameter")
        settle(self, parameter=parameter)
        try:
            # The sampler may refuse the noise: before anything is promised.
            self._contribution(0)
        except InvalidValueError as error:
            said = f"parameter must allow drawing the noise, got {parameter}: {error}"
            if not given:
                said = (
                    f"epsilon must allow drawing the noise, got {self.epsilon} ({error}): pass "
                    f"{self._less_noise}"
                )
            raise InvalidValueError(said) from error

    def _best_noise(self) -> str:
        if self.parameter is not None or self.epsilon is None or not self.delta:
            return _KINDS[0]
        asked = {**self._accounted, "adjacency": self.adjacency}
        found = NoisySums._smallest(self.epsilon, self.delta, self.participation, **asked)
        return found.noise

    # What differs.

    @property
    @abc.abstractmethod
    def _prio3(self) -> _core.Prio3:
        """The Prio3 instance that shares and verifies."""

    @property
    @abc.abstractmethod
    def _accounted(self) -> Mapping[str, Any]:
        """Name the contribution of a user in the words of :class:`turnout.accounting.NoisySums`."""

    @property
    @abc.abstractmethod
    def _sums(self) -> int:
        """The number of sums."""

    @abc.abstractmethod
    def _measured(self, values: Any) -> Integers:
        """Check the values of users, and return each as the measurement of a participant."""

    @abc.abstractmethod
    def _result(self, found: Outcome) -> Any:
        """Estimate from the published sums of the aggregators."""

    @abc.abstractmethod
    def _shared(self, context: bytes, values: Array, nonces: bytes) -> list[Any]:
        """Share the measurements of some users."""

    # What is told of it.

    def _adders(self) -> str:
        return f"{self.aggregators:,} aggregators"

    def _told(self) -> list[tuple[str, str]]:
        deviation = math.sqrt(self._law().variance)
        noise = ("noise", f"standard deviation {deviation:.4g} on {self._noise_on}")
        told = [*super()._told(), noise]
        if self.participation < 1.0:
            told.append(("participation", f"each user with probability {self.participation:g}"))
        return told

    def _facts(self) -> dict[str, Any]:
        found = {"noise": self.noise, "parameter": self.parameter}
        return {**super()._facts(), **found, "noise_variance": self._law().variance}

    @property
    def _modulus(self) -> int:
        return self._prio3.modulus

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
        return NoisySums(self._noise, self.parameter, self.participation, **self._accounted)

    def _trust(self) -> list[str]:
        trust = [
            f"at least one of the {self.aggregators} aggregators follows the protocol, and keeps "
            "what it sees and its noise to itself",
            "every user sends one report: another report of the same user, in this result or in "
            "another, costs the guarantee again",
        ]
        if self.participation < 1.0:
            trust.append(
                f"every user takes part with probability {self.participation:g}, by a coin that "
                f"nobody else learns; users who stay away send a report {self._without}"
            )
        return trust

    # The protocol.

    @property
    def _share_bytes(self) -> int:
        # To each aggregator the nonce, the public share and its own.
        shares = sum(map(self._prio3.input_share_length, range(self.aggregators)))
        return self.aggregators * (_NONCE + self._prio3.public_share_length) + shares

    def _law(self) -> NoiseLaw:
        """Return the law of all noise on one sum: the noise of all aggregators."""
        assert self.parameter is not None
        return NOISES[self._noise](self.parameter, required=1, contributors=self.aggregators)

    def _contribution(self, items: int | None = None, seed: int | None = None) -> Integers:
        """Draw the noise of one aggregator."""
        return self._law().piece(self.domain.size if items is None else items, seed)

    def _given(self, values: Array, seed: int | None = None) -> Integers:
        """Toss the coins of users who hold values, and return what each of them measures."""
        given = np.full(len(values), self._absent, np.int64)
        chosen = self._attending(len(values), step_seed(seed, "participation"))
        given[chosen] = values[chosen]
        return given

    def _attending(self, users: int, seed: int | None) -> Integers:
        """Toss the coins of users, and return who takes part."""
        return _core.participants(users, self.participation, seed)

    def _drawn(self, sums: Integers, seed: int | None) -> Integers:
        """Add the noise of every aggregator to sums."""
        for index in range(self.aggregators):
            sums = sums + self._contribution(seed=step_seed(seed, "contribution", index))
        return sums

    def _vector_costs(self) -> Costs:
        return Costs(coins=int(self.participation < 1.0))

    def _contribution_costs(self, items: int) -> Costs:
        return Costs(noise=items)

    def _ledger(self, sent: int, accepted: int) -> CostLedger:
        """Count the costs of a round in which every user sends one message to each aggregator."""
        prio3, m, size = self._prio3, self.aggregators, self._sums
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
        """The number of bytes that an aggregator sends to verify one report."""
        prio3, nonce = self._prio3, bytes(_NONCE)
        [(public, shares)] = self._shared(b"", np.array([self._absent]), nonce)
        return len(prio3.verify_init(bytes(_KEY), b"", 0, nonce, public, shares[0])[1])


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The published results of a round, and the reports that they come from."""

    sums: tuple[int, ...]
    sent: int
    accepted: int
    refused: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Batch:
    """One round: its name, which binds the reports, and the key that aggregators share."""

    mechanism: Proven
    context: bytes
    verify_key: bytes = dataclasses.field(repr=False)

    @classmethod
    def start(cls, mechanism: Proven) -> Batch:
        """Start a round with a name and a key of its own."""
        context = bytes.fromhex(mechanism.fingerprint) + secrets.token_bytes(_NONCE)
        return cls(mechanism, context, secrets.token_bytes(_KEY))

    def reports(self, values: Array) -> list[Report]:
        """Share the measurement of each user."""
        nonces = secrets.token_bytes(_NONCE * len(values))
        shared = self.mechanism._shared(self.context, values, nonces)
        places = range(0, len(nonces), _NONCE)
        return [
            (nonces[place : place + _NONCE], public, inputs)
            for place, (public, inputs) in zip(places, shared, strict=True)
        ]

    def of(self, values: Array, seed: int | None = None) -> Any:
        """Toss the coins of users who hold values, and publish the sums of their reports."""
        given = self.mechanism._given(values, seed)
        starts = range(0, len(values), _BLOCK)
        blocks = (self.reports(given[start : start + _BLOCK]) for start in starts)
        return self.result(blocks, seed)

    def result(self, blocks: Iterable[list[Report]], seed: int | None = None) -> Any:
        """Verify reports, refuse invalid ones, add up the others and the noise."""
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
                f"round, each {mechanism._report_is}"
            )
        assert mechanism.parameter is not None
        for index, total in enumerate(sums):
            own = step_seed(seed, "contribution", index)
            sums[index] = prio3.add_noise(
                total, mechanism._noise, mechanism.parameter, accepted, own
            )
        found = Outcome(tuple(prio3.unshard(sums)), sent, accepted, dict(refused))
        return mechanism._result(found)


def _fresh(
    blocks: Iterable[list[Report]], refused: collections.Counter[str]
) -> Iterator[list[Report]]:
    """Leave out reports with a repeated nonce, and count them."""
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
