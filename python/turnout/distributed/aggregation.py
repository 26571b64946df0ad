"""What all mechanisms of distributed aggregation have in common: what is shared and published."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Sized
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._documents import digest
from turnout._types import Array, Floats, Integers
from turnout._values import settle
from turnout.accounting import calibrate
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import nonnegative, unit_interval
from turnout.distributed.field import PrimeField
from turnout.distributed.results import CostLedger, Costs, Guarantee, RoundResult
from turnout.domain import Domain, domain_of
from turnout.errors import ImplausibleSumsError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation

Codes: TypeAlias = npt.NDArray[np.uint32]
Limits: TypeAlias = tuple[int, int]

_HONEST_BUT_CURIOUS = (
    "everyone follows the protocol: shares carry no proof that they are those of one item"
)
#: How often an honest round is refused at most.
_CHANCE = 1e-6

_MOST_USERS = 2**31 - 1
_MOST_ITEMS = 2**24


@dataclasses.dataclass(frozen=True, kw_only=True)
class AggregationMechanism(abc.ABC):
    """Base class: who takes part, who may collude, what everyone draws, and what is published.

    Rounds and roles act on a mechanism, so it knows nothing of them: see
    :meth:`turnout.distributed.Round.start`. Mechanisms are frozen: they compare by their
    parameters, and every round has randomness of its own.
    """

    #: The word for this mechanism in descriptions and on the command line.
    name: ClassVar[str]

    #: The parameter that is found for a target if it is not given.
    _found: ClassVar[str]

    domain: Domain = dataclasses.field(kw_only=False)
    users: int = dataclasses.field(kw_only=False)
    epsilon: float | None = None
    delta: float | None = None
    honest_aggregators: int = 1
    max_colluding_users: int = 0
    max_missing_users: int = 0
    adjacency: str = "replace"

    def __post_init__(self) -> None:
        """Check what all mechanisms have."""
        domain = domain_of("domain", self.domain)
        if domain.size > _MOST_ITEMS:
            raise _arguments.invalid(f"domain must have at most {_MOST_ITEMS} items", domain.size)
        settle(
            self,
            domain=domain,
            users=_arguments.integer("users", self.users, least=1, most=_MOST_USERS),
        )
        if (self.epsilon is None) != (self.delta is None):
            raise InvalidValueError(
                "epsilon and delta must be given together, got epsilon = "
                f"{_arguments.shown(self.epsilon)}, delta = {_arguments.shown(self.delta)}"
            )
        if self.epsilon is not None and self.delta is not None:
            epsilon = nonnegative("epsilon", _arguments.number("epsilon", self.epsilon))
            delta = unit_interval("delta", _arguments.number("delta", self.delta))
            settle(self, epsilon=float(epsilon), delta=float(delta))
        least = {"honest_aggregators": 1, "max_colluding_users": 0, "max_missing_users": 0}
        for name, smallest in least.items():
            settle(self, **{name: _arguments.integer(name, getattr(self, name), least=smallest)})
        away = self.max_colluding_users + self.max_missing_users
        if away >= self.users:
            raise InvalidValueError(
                "max_colluding_users and max_missing_users must leave a user of "
                f"{self.users}, got {self.max_colluding_users} and {self.max_missing_users}"
            )

    def _calibrated(self, argument: str, mechanism: Mechanism, parameter: str) -> float:
        """Take the parameter that was given, or find the one that reaches the target.

        ``mechanism`` is the accounting for any value of the parameter.
        """
        given = getattr(self, argument)
        if self.adjacency not in mechanism.adjacencies:
            allowed = ", ".join(map(repr, mechanism.adjacencies))
            raise _arguments.invalid(f"adjacency must be one of {allowed}", self.adjacency)
        if given is None:
            if self.epsilon is None or self.delta is None:
                raise InvalidValueError(
                    f"epsilon and delta must be given, or {argument}: got epsilon = "
                    f"{self.epsilon}, delta = {self.delta}, {argument} = None"
                )
            if self.delta == 0.0 and not self._pure:
                raise InvalidValueError(
                    f"delta must be above 0, got 0.0: no {argument} reaches it with this mechanism"
                )
            return float(
                calibrate(mechanism, parameter, self.epsilon, self.delta, adjacency=self.adjacency)
            )
        value = _arguments.number(argument, given)
        try:
            chosen = mechanism.replace(**{parameter: value})
        except InvalidValueError as error:
            raise InvalidValueError(f"{argument} = {value} cannot be: {error}") from error
        if self.epsilon is not None and self.delta is not None:
            reached = chosen.delta(self.epsilon, self.adjacency)
            if reached > self.delta:
                raise InvalidValueError(
                    f"{argument} = {value} does not reach delta = {self.delta} at epsilon = "
                    f"{self.epsilon}: its delta is {reached:.3g}"
                )
        return value

    @property
    def _pure(self) -> bool:
        """Whether a delta of 0 can be reached."""
        return False

    # What a mechanism is.

    @property
    @abc.abstractmethod
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""

    @property
    def guarantee(self) -> Guarantee:
        """What is protected, against whom, and what that rests on."""
        data, missing = "the data may be anything", self.max_missing_users
        if self._promised:
            data = (
                f"every item is held by at least {self._promised} users, before and after the "
                "change"
            )
        sentences = [*self._trust(), data, _HONEST_BUT_CURIOUS]
        if missing and self._users_protect:
            are = "user is" if missing == 1 else "users are"
            sentences.append(f"at most {missing} {are} missing from a round")
        return Guarantee(
            self.accounting, self.adjacency, self.epsilon, self.delta, tuple(sentences)
        )

    @abc.abstractmethod
    def _trust(self) -> list[str]:
        """Say who must keep what to themselves."""

    @property
    def _promised(self) -> int:
        """How many users hold each item by a promise that the guarantee rests on, or 0."""
        return 0

    @property
    def _users_protect(self) -> bool:
        """Whether users that are missing take some protection with them."""
        return self._promised > 0

    @property
    @abc.abstractmethod
    def _largest_sum(self) -> int:
        """How many values a published sum can take; the field must tell them apart."""

    @functools.cached_property
    def field(self) -> PrimeField:
        """The field that shares are in: of the smallest prime that tells all sums apart."""
        return PrimeField.larger_than(self._largest_sum)

    @abc.abstractmethod
    def _user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw what one user shares: a whole number for each item.

        Parameters
        ----------
        code
            The code of the user's item.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            int64, one number for each item.
        """

    @abc.abstractmethod
    def _contribution(self, items: int | None = None, seed: int | None = None) -> Integers:
        """Draw what one contributor adds to the sum: dummies or noise.

        Parameters
        ----------
        items
            For how many items; all by default.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            int64, one number for each item.
        """

    @property
    @abc.abstractmethod
    def _contributors(self) -> int:
        """How many parties add a contribution, each on its own, to the sum."""

    @property
    def _has_messages(self) -> bool:
        """Whether parties exchange messages: a trusted server that has all records needs none."""
        return True

    @property
    def share_bytes(self) -> int | None:
        """What one user sends, without headers; None where it varies."""
        return None

    # What it costs.

    @abc.abstractmethod
    def _vector_costs(self) -> Costs:
        """Count what a user draws for its vector."""

    @abc.abstractmethod
    def _contribution_costs(self, items: int) -> Costs:
        """Count what a contributor draws for some items: coins of dummies, or noise."""

    def paper_costs(self) -> dict[str, Costs]:
        """Evaluate Table 1 of Yang et al. for one party of each role.

        Bytes are those of bare elements and numbers, of ``ceil(log2 q)``, ``ceil(log2 n)`` and
        ``ceil(log2 N)`` bits, without headers. The table is for users as parties (DPDS) and for
        two-stage sampling (TSS) in which as many users are elected as report an item; for other
        ways to add up there are none.

        Returns
        -------
        dict
            Costs by role.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.distributed.SamplingAggregation(
        ...     30, 1000, rate=0.5, floor=33, parties="users"
        ... )
        >>> mechanism.paper_costs()["user"].draws  # (n - 1) N
        29970
        """
        return {}

    # What is published.

    @abc.abstractmethod
    def decode(self, sums: Array) -> Integers:
        """Read field elements as the whole numbers that they stand for.

        Parameters
        ----------
        sums
            The reconstructed sum: a field element for each item.

        Returns
        -------
        numpy.ndarray
            int64.
        """

    @abc.abstractmethod
    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums.

        Parameters
        ----------
        sums
            One whole number for each item.
        received
            The number of users that are in them.

        Returns
        -------
        Estimation
            Frequencies among the received users, and their variances.
        """

    @abc.abstractmethod
    def _reach(self, held: tuple[int, int], items: int, received: int, chance: float) -> Limits:
        """Bound the sum over some items, if all parties follow the protocol.

        Parameters
        ----------
        held
            How many of the received users hold one of the items: the least and the most.
        items
            How many items are added up.
        received
            The number of users in the round.
        chance
            How likely the sum is beyond the limits at most, whoever holds what.
        """

    def _unpublished(self, sums: Integers) -> tuple[Integers, Integers]:
        """Give the least and the most that each sum may have been before it was published."""
        return sums, sums

    def _implausible(self, sums: Integers, received: int, chance: float = _CHANCE) -> str | None:
        """Say why sums cannot come from parties that all follow the protocol, or None if they can.

        Every user holds one item, so that the law of the total is known, whoever holds what; and of
        each item no more users than all of them are counted, and no fewer than none.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users that are in it.
        chance
            How often honest rounds are found implausible at most.

        Returns
        -------
        str or None
            What is beyond which limits.
        """
        size = self.domain.size
        least, most = self._unpublished(sums)
        low, high = self._reach((0, received), 1, received, chance / 2.0 / size)
        wrong = np.flatnonzero((most < low) | (least > high))
        if wrong.size:
            first = int(wrong[0])
            return (
                f"sums[{first}] is {sums[first]}; where all parties follow the protocol it is "
                f"between {low} and {high}"
            )
        low, high = self._reach((received, received), size, received, chance / 2.0)
        if low <= int(most.sum()) and int(least.sum()) <= high:
            return None
        return (
            f"the sums add up to {int(sums.sum())}; where all parties follow the protocol, to "
            f"between {low} and {high}"
        )

    def _check_sums(self, sums: Integers, received: int) -> None:
        """Refuse sums that cannot be, or hardly ever are."""
        reason = self._implausible(sums, received)
        if reason is not None:
            raise ImplausibleSumsError(
                f"{reason}, but for one round in a million at most. A message was altered, or a "
                "party sent what is not the shares of one item. Do not publish these sums. A new "
                "round costs privacy again"
            )

    # What follows.

    def estimate(self, sums: npt.ArrayLike, received: int | None = None) -> FrequencyEstimate:
        """Estimate frequencies from published sums.

        Parameters
        ----------
        sums
            The decoded sum of one round: one whole number for each item.
        received
            The number of users that are in it; all of them by default.

        Returns
        -------
        FrequencyEstimate
            The frequencies among these users, with exact variances and intervals.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one whole number for each item.
        ImplausibleSumsError
            If parties that all follow the protocol reach such sums in one round of a million at
            most: each sum, and their total, which does not depend on who holds what.
        """
        numbers = _arguments.frequencies("sums", sums, self.domain.size)
        if (numbers != np.floor(numbers)).any():
            raise InvalidValueError("sums must be whole numbers, and some are not")
        count = self.users
        if received is not None:
            count = _arguments.integer("received", received, least=1, most=self.users)
        wholes = numbers.astype(np.int64)
        self._check_sums(wholes, count)
        estimation = self._estimate_sums(wholes, count)
        return FrequencyEstimate._from_estimation(self, self.name, count, count, estimation)

    def variances(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the exact variances of the estimated frequencies.

        Parameters
        ----------
        frequencies
            The true frequency of each item.

        Returns
        -------
        numpy.ndarray
            float64, one variance for each item.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        truth = _arguments.frequencies("frequencies", frequencies, self.domain.size)
        model = self._estimate_sums(np.zeros(self.domain.size, np.int64), self.users).model
        assert model is not None
        return model.variance(truth)

    def expected_error(self, frequencies: npt.ArrayLike | None = None) -> float:
        """Compute the root of the mean over items of the expected squared error.

        Parameters
        ----------
        frequencies
            The true frequencies; uniform by default. They do not matter where the variance is
            linear in them, as it is for all mechanisms here without a threshold, below which items
            are lost.

        Returns
        -------
        float
            The root mean squared error of a frequency; with a threshold bias included.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        size = self.domain.size
        truth = np.full(size, 1.0 / size) if frequencies is None else frequencies
        return float(np.sqrt(self._squared_errors(truth).mean()))

    def _squared_errors(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the expected squared error of each estimated frequency."""
        return self.variances(frequencies)

    # A round in this process.

    def run(self, values: Any, seed: int | None = None) -> RoundResult:
        """Run one round in this process, in the compiled core.

        Every coin, set, share and sum is drawn and computed as the parties would, and no message is
        made; the bytes and messages of the costs are those that the messages would have. The noise
        of all users together is drawn from its law where that is known (discrete Laplace and
        Skellam).

        Parameters
        ----------
        values
            One item for each user: anything that :meth:`turnout.Domain.encode` takes.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        RoundResult
            The estimate, the sums, and the costs.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError, InvalidTypeError
            If a value is not in the domain.
        InvalidValueError
            If there is not one value for each user, or two-stage sampling would draw more than
            2 * 10^10 shares.
        """
        seed = _arguments.seed(seed)
        codes = self.domain.encode(values).astype(np.uint32)
        check_users(self, codes)
        total, costs = self._added_up(codes, seed)
        sums = self.decode(total)
        return RoundResult(self.estimate(sums), sums, costs)

    @abc.abstractmethod
    def _added_up(self, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
        """Draw and add up what the parties of a round would: the total, as field elements."""

    def _contributions(self, seed: int | None) -> Iterator[tuple[int, Array]]:
        """Draw what each contributor adds, as elements of the field."""
        for index in range(self._contributors):
            own = self._contribution(seed=step_seed(seed, "contribution", index))
            yield index, self.field._reduce(own)

    def _contributions_costs(self) -> Costs:
        items = self._contributors * self.domain.size
        return Costs(additions=items) + self._contribution_costs(items)

    # What travels.

    def __getstate__(self) -> dict[str, Any]:
        """Copy and pickle the parameters; what follows from them is computed again."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}

    def to_dict(self) -> dict[str, Any]:
        """Describe the mechanism in terms of JSON.

        Returns
        -------
        dict
            What :func:`turnout.distributed.mechanism_from_dict` takes.
        """
        fields: dict[str, Any] = {"mechanism": self.name}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            fields[item.name] = value.to_dict() if isinstance(value, Domain) else value
        return fields

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of :meth:`to_dict`, in hexadecimal."""
        return digest(self.to_dict())


def check_users(mechanism: AggregationMechanism, values: Sized) -> None:
    """Refuse a round that has not one value for each user."""
    if len(values) != mechanism.users:
        raise InvalidValueError(
            f"values must hold one item for each of the {mechanism.users} users, got {len(values)}"
        )


def step_seed(seed: int | None, *names: object) -> int | None:
    """Derive the seed of one step; None stays None."""
    if seed is None:
        return None
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
