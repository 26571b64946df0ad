"""The base class of the mechanisms of distributed aggregation."""

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
from turnout.distributed.field import PrimeField
from turnout.distributed.messages import Role, in_words
from turnout.distributed.parameters import Parameters
from turnout.distributed.published import Published
from turnout.distributed.results import CostLedger, Costs, RoundResult
from turnout.errors import InvalidValueError

Codes: TypeAlias = npt.NDArray[np.uint32]

#: The mechanisms that are imported, by their names.
REGISTERED: Final[dict[str, type[AggregationMechanism]]] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AggregationMechanism(Published):
    """A mechanism of distributed aggregation (base class).

    A mechanism owns its rounds: it names the roles that exchange messages in them
    (:meth:`turnout.distributed.Round.start` creates them). It states whom people must trust, and
    describes itself to commands and pages. Mechanisms are frozen and compare by their parameters.
    Every round draws its own randomness.
    """

    #: The roles of a round, those who are asked first: classes that are called with the mechanism,
    #: the identifier of the round and the index of the party. The last is the server.
    _roles: ClassVar[tuple[type[Any], ...]] = ()

    #: What commands call the mechanism, and the arguments that each of these words stands for; its
    #: name if there are none.
    _words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    #: The same for numbers in place of items, if there is such a mechanism.
    _of_numbers: ClassVar[type[Parameters] | None] = None

    #: The arguments of which one must be given, so that anybody is protected.
    _protecting: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **named: Any) -> None:
        """Register a mechanism by its name, which a serialized round contains.

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
                f"name must be unique among mechanisms, got {name!r}, the name of "
                f"{other.__module__}.{other.__qualname__}"
            )
        REGISTERED[name] = cls

    @classmethod
    def _command_words(cls) -> Mapping[str, Mapping[str, Any]]:
        """Return the words that commands accept, with the arguments that each stands for."""
        return cls._words or {cls.name.replace("_", "-"): {}}

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        """Return whether a mechanism with these arguments needs a delta above 0."""
        return True

    # Who takes part in a round.

    def _number_of(self, role: Role) -> int:
        """Return the number of parties with a role in a round; 0 if there are none."""
        if all(each._role is not role for each in self._roles):
            return 0
        return self.users if role is Role.USER else 1

    def _bearer(self, role: Role) -> str:
        """Name the party that has a role, in a table of costs."""
        return in_words(role)

    # What a mechanism is.

    @property
    @abc.abstractmethod
    def _largest_sum(self) -> int:
        """Return the number of values of a published sum; the field must distinguish them."""

    @functools.cached_property
    def field(self) -> PrimeField:
        """The field of the shares; its prime is the smallest that distinguishes all sums."""
        return PrimeField.larger_than(self._largest_sum)

    @property
    def _modulus(self) -> int:
        """The number of elements of the field."""
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
        """The number of parties that each add an independent contribution to the sum."""

    @property
    def _no_rounds(self) -> str | None:
        """Return why the mechanism has no :class:`Round`; None if it has one."""
        if self._has_messages:
            return None
        return "central=True: a trusted server has all records and needs no messages; use run"

    @property
    def _share_bytes(self) -> int | None:
        """The bytes that one user sends, without headers; None if they vary."""
        return None

    # What it costs.

    @abc.abstractmethod
    def _vector_costs(self) -> Costs:
        """Count the draws of a user for its vector."""

    @abc.abstractmethod
    def _contribution_costs(self, items: int) -> Costs:
        """Count the draws of a contributor for some items: coins of dummies, or noise."""

    def paper_costs(self) -> dict[str, Costs]:
        """Evaluate Table 1 of Yang et al. for one party of each role.

        Bytes count bare elements and numbers, of ``ceil(log2 q)``, ``ceil(log2 n)`` and ``ceil(log2
        N)`` bits, without headers. The table is for users as parties (DPDS), and for two-stage
        sampling (TSS) that elects as many users as report an item. The paper has no formulas for
        other ways to add up.

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

        Every coin, set, share and sum is drawn and computed as the parties would do it, without
        making messages. The costs report the bytes and messages that a real exchange would take.
        The total noise of all users is drawn from its law if the law is known (discrete Laplace and
        Skellam).

        Parameters
        ----------
        values
            One item for each user: anything that :meth:`turnout.Domain.encode` accepts.
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
        """Draw and add up the contributions of all parties: the total, as field elements."""

    def _contributions(self, seed: int | None) -> Iterator[tuple[int, Array]]:
        """Draw the contribution of each contributor, as elements of the field."""
        for index in range(self._contributors):
            own = self._contribution(seed=step_seed(seed, "contribution", index))
            yield index, self.field._reduce(own)

    def _contributions_costs(self) -> Costs:
        items = self._contributors * self.domain.size
        return Costs(additions=items) + self._contribution_costs(items)


def check_users(mechanism: Parameters, values: Sized) -> None:
    """Refuse a round without exactly one value for each user."""
    if len(values) != mechanism.users:
        raise InvalidValueError(
            f"values must hold one {mechanism._holding} for each of the {mechanism.users} users, "
            f"got {len(values)}"
        )


def step_seed(seed: int | None, *names: object) -> int | None:
    """Derive the seed of one step; None stays None."""
    if seed is None:
        return None
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
