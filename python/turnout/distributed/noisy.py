"""Counts with integer noise that no single party knows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.deployment import Deployed
from turnout.distributed.noise import NOISES, NoiseLaw
from turnout.distributed.noised import noised_estimation
from turnout.distributed.published import Limits
from turnout.distributed.results import Costs
from turnout.distributed.roles.vectors import ROLES
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

#: How likely the noise of a round may be too large for the field; it would only spoil the estimate.
_WRAPS = 2.0**-64


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyAggregation(Deployed):
    """A mechanism in which each party adds a piece of integer noise under the shares.

    Every user shares its item. The noise consists of whole numbers in the field, drawn exactly:
    nothing is rounded, and :attr:`accounting` gives the guarantee. Either each user adds a small
    piece of the noise (``source="users"``), or each party that adds up adds a whole one
    (``source="parties"``).

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number.
    users
        The number n of users.
    noise
        ``"discrete_laplace"``, ``"discrete_gaussian"`` or ``"skellam"``.
    parameter
        The scale of the discrete Laplace noise, or the mean of each Poisson variable of the Skellam
        noise; both describe the total of the honest pieces. For the discrete Gaussian, the
        parameter sigma^2 of *each piece*. If None, the smallest that reaches ``epsilon`` and
        ``delta``.
    epsilon, delta
        The target, for :attr:`accounting`. You may omit delta for discrete Laplace noise: it is
        then 0.
    source
        The parties that add the pieces: ``"users"`` or ``"parties"``.
    parties
        The parties that add up the shares: a number m >= 2 of aggregators, or ``"users"`` if every
        user is a party.
    compressed
        Whether all shares but one travel as seeds of 32 bytes.
    honest_aggregators
        The number of parties that add noise and keep it secret.
    max_colluding_users
        The number of users that may disclose their noise to the adversary. With 0, users are
        protected from aggregators and from the public; with 1, also from each other.
    max_missing_users
        The number of users, with their noise, that may be missing from a round. The pieces are so
        large that those of the remaining users suffice.
    adjacency
        The neighbouring data sets: ``"replace"`` (one user's item changes, which changes two
        counts), or ``"add_or_remove"`` (one participating user holds an item or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or no noise reaches the target.

    Notes
    -----
    The pieces of discrete Laplace noise are differences of negative binomial variables with
    fractional shape, whose sum is exactly discrete Laplace. The pieces of Skellam noise are
    Skellam. A sum of discrete Gaussians is not a discrete Gaussian: its law is computed by
    convolution (:class:`turnout.accounting.SummedDiscreteGaussianNoise`). DPDG of Yang et al.,
    section 3.1.2, gives every user a variance that is too small by a factor of n.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = NoisyAggregation(3, 1000, epsilon=1.0)
    >>> mechanism.parameter, round(mechanism.law().variance, 2)
    (2.0, 7.84)
    >>> estimate = mechanism.run([0] * 500 + [1] * 300 + [2] * 200, seed=1).estimate
    >>> estimate.interval(0.99).contains([0.5, 0.3, 0.2])
    array([ True,  True,  True])
    """

    name: ClassVar[str] = "noisy"
    _found: ClassVar[str | None] = "parameter"
    _roles = ROLES
    _words: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        noise.replace("_", "-"): {"noise": noise} for noise in NOISES
    }

    noise: str = "discrete_laplace"
    parameter: float | None = None
    source: str = "users"

    def __post_init__(self) -> None:
        """Check the arguments and find the noise."""
        _arguments.choice("noise", self.noise, tuple(NOISES))
        _arguments.choice("source", self.source, ("users", "parties"))
        kind = NOISES[self.noise]
        if kind.pure and self.epsilon is not None and self.delta is None:
            settle(self, delta=0.0)
        super().__post_init__()
        accounting = kind(1.0, self._required_pieces, 0).accounting
        parameter = self._calibrated("parameter", accounting, kind.accounted)
        if self.parameter is None and parameter < kind.least:
            # A target so lax that less noise would do than can be drawn.
            settle(self, parameter=kind.least)
            parameter = self._calibrated("parameter", accounting, kind.accounted)
        settle(self, parameter=parameter)
        try:
            # The sampler may refuse a piece: before anything is promised.
            self._contribution(0)
        except InvalidValueError as error:
            raise InvalidValueError(
                f"parameter must allow drawing the noise, got {parameter}: {error}"
            ) from error

    @classmethod
    def _needs_delta(cls, **arguments: Any) -> bool:
        return not NOISES[arguments.get("noise", cls.noise)].pure

    def _title(self) -> str:
        source = "every user" if self.source == "users" else "each that adds up"
        return f"{self.noise.replace('_', ' ')} noise, a piece from {source}; {self._adding()}"

    def _told(self) -> list[tuple[str, str]]:
        deviation = math.sqrt(self.law().variance)
        return [*super()._told(), ("noise", f"standard deviation {deviation:.4g} on every count")]

    def _facts(self) -> dict[str, Any]:
        found = {"parameter": self.parameter, "noise_variance": self.law().variance}
        return {**super()._facts(), **found}

    @property
    def _pure(self) -> bool:
        """Whether a delta of 0 is possible."""
        return NOISES[self.noise].pure

    @property
    def _required_pieces(self) -> int:
        """The number of honest pieces whose noise protects."""
        if self.source == "users":
            return self.users - self.max_colluding_users - self.max_missing_users
        return self.honest_aggregators

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""
        return self.law().accounting

    def _parties_trust(self) -> str:
        if self.source == "parties":
            return super()._parties_trust()
        return (
            f"at least one of the {self._number_of_parties} parties that add up does not share "
            "what it sees with the others"
        )

    @property
    def _users_protect(self) -> bool:
        return self.source == "users"

    @property
    def _contributors(self) -> int:
        """The number of parties that add noise when they add up."""
        return self._contributing_parties if self.source == "parties" else 0

    def law(self, received: int | None = None) -> NoiseLaw:
        """Return the law of all noise on one count.

        Parameters
        ----------
        received
            The number of users in the round; all by default.

        Returns
        -------
        NoiseLaw
            The law, with variance, quantiles and tail bounds.
        """
        pieces = self.users if received is None else received
        if self.source == "parties":
            pieces = self._contributors
        assert self.parameter is not None
        return NOISES[self.noise](self.parameter, self._required_pieces, pieces)

    @functools.cached_property
    def _largest_noise(self) -> int:
        return self.law().tail_bound(_WRAPS / self.domain.size)

    @property
    def _largest_sum(self) -> int:
        return self.users + 2 * self._largest_noise

    def _reach(self, held: Limits, items: int, received: int, chance: float) -> Limits:
        law = self.law(received)
        # Of several items the noise is that of so many times as many pieces.
        noise = dataclasses.replace(law, contributors=items * law.contributors).tail_bound(chance)
        return held[0] - noise, held[1] + noise

    def _noise_of_users(self, seed: int | None = None) -> Integers | None:
        """Draw the sum of the pieces of all users; None if the parties add the noise.

        Parameters
        ----------
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray or None
            int64, one number for each item.
        """
        return self.law().total(self.domain.size, seed) if self.source == "users" else None

    def _vector_costs(self) -> Costs:
        """Count the draws of a user for its vector: its piece of noise, if users add it."""
        return Costs(noise=self.domain.size if self.source == "users" else 0)

    def _contribution_costs(self, items: int) -> Costs:
        """Count the draws of a contributor for some items: its noise."""
        return Costs(noise=items)

    def _user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw what one user shares: its item, and its noise if users add it.

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
        by_users = self.source == "users"
        vector = self._contribution(seed=seed) if by_users else np.zeros(self.domain.size, np.int64)
        vector[code] += 1
        return vector

    def _contribution(self, items: int | None = None, seed: int | None = None) -> Integers:
        """Draw one piece of noise.

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
        return self.law().piece(self.domain.size if items is None else items, seed)

    def _decode(self, sums: Array) -> Integers:
        """Decode field elements as noisy counts, which may be negative or above n."""
        middle = self.users // 2
        shifted = self.field._add(sums, self.field._reduce(np.full(sums.shape, -middle)))
        return self.field._lift(shifted) + middle

    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        return noised_estimation(sums, received, self.law(received))
