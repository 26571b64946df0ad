"""Base class of the mechanisms of distributed aggregation: what is shared, drawn and added up."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sized
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array, Integers
from turnout.accounting.guarantee import Guarantee
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.field import PrimeField
from turnout.distributed.messages import Role, in_words
from turnout.distributed.published import Published
from turnout.distributed.results import CostLedger, Costs, RoundResult
from turnout.errors import InvalidValueError

Codes: TypeAlias = npt.NDArray[np.uint32]

#: The mechanisms that are imported, by their names.
REGISTERED: Final[dict[str, type[AggregationMechanism]]] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AggregationMechanism(Published):
    """Base class: who takes part, who may collude, what everyone draws, and what is published.

    A mechanism owns its rounds: it names the roles that exchange messages in them
    (:meth:`turnout.distributed.Round.start` makes them), says whom people must trust, and what
    commands and pages tell of it. Mechanisms are frozen: they compare by their parameters, and
    every round has randomness of its own.
    """

    #: The roles of a round, those who are asked first: classes that are called with the mechanism,
    #: the identifier of the round and the index of the party. The last is the server.
    _roles: ClassVar[tuple[type[Any], ...]] = ()

    #: What commands call the mechanism, and the arguments that each of these words stands for; its
    #: name if there are none.
    _words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    #: The arguments of which one must be given, so that anybody is protected.
    _protecting: ClassVar[tuple[str, ...]] = ()

    #: The sentence of trust that says what everyone must do.
    _conduct: ClassVar[str] = (
        "everyone follows the protocol: shares carry no proof that they are those of one item"
    )

    def __init_subclass__(cls, **named: Any) -> None:
        """Make a mechanism known by its name: a round that travels says it.

        Raises
        ------
        InvalidValueError
            If another mechanism has the name.
        """
        super().__init_subclass__(**named)
        name = vars(cls).get("name")
        if name is None:
            return
        other = REGISTERED.setdefault(name, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise InvalidValueError(
                f"name must be one that no other mechanism has, got {name!r}, which is that of "
                f"{other.__module__}.{other.__qualname__}"
            )
        REGISTERED[name] = cls

    @classmethod
    def _command_words(cls) -> Mapping[str, Mapping[str, Any]]:
        """Give the words of commands, and the arguments that each stands for."""
        return cls._words or {cls.name.replace("_", "-"): {}}

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        """Whether a mechanism with these arguments reaches no delta of 0."""
        return True

    # Who takes part in a round.

    def _number_of(self, role: Role) -> int:
        """How many parties have a role in a round; 0 if it has none of them."""
        if all(each._role is not role for each in self._roles):
            return 0
        return self.users if role is Role.USER else 1

    def _bearer(self, role: Role) -> str:
        """Name the party that has a role, in a table of costs."""
        return in_words(role)

    def _adders(self) -> str:
        """Say who adds up."""
        return "the server"

    # What is told of it.

    def _title(self) -> str:
        """Say what the mechanism is, in a few words."""
        return self.name.replace("_", " ")

    def _told(self) -> list[tuple[str, str]]:
        """Say what the mechanism is and what was found for it: names and texts."""
        return [("mechanism", self._title())]

    def _facts(self) -> dict[str, Any]:
        """Give what was found for the mechanism, for programs."""
        return {"field": self._modulus}

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
        sentences = [*self._trust(), data, self._conduct]
        if missing and self._users_protect:
            are = "user is" if missing == 1 else "users are"
            sentences.append(f"at most {missing} {are} missing from a round")
        found = Guarantee(
            self.accounting, self.adjacency, self.epsilon, self.delta, tuple(sentences)
        )
        if self.adjacency == "replace":
            return found
        return dataclasses.replace(found, change="one user that takes part holds an item or none")

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

    @property
    def _modulus(self) -> int:
        """How many elements the field has."""
        return self.field.modulus

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
    def _no_rounds(self) -> str | None:
        """Say why no :class:`Round` is made of it; None if one is."""
        if self._has_messages:
            return None
        return "central=True: a trusted server has all records and needs no messages; use run"

    @property
    def _share_bytes(self) -> int | None:
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
        sums = self._decode(total)
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
