"""What the mechanisms that publish counts of sampled users have in common."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout.accounting.mechanism import Mechanism
from turnout.collecting.statistic import StatisticModel
from turnout.distributed.aggregation import Aggregation
from turnout.distributed.costs import Costs
from turnout.distributed.limits import exact_sampling_limits, summable
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

_MOST_DUMMIES = 10_000_000

#: Variances stay within floating-point range.
_LEAST_RATE = 1e-100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampled(Aggregation):
    """A mechanism in which users toss coins, and contributors add dummies with coins.

    See the subclasses for what the parameters mean.
    """

    _found: ClassVar[str] = "rate"

    rate: float | None = None
    floor: int = 0
    dummies: int = 0

    def __post_init__(self) -> None:
        """Check the arguments; the subclass finds the rate."""
        super().__post_init__()
        self._set("floor", checked_floor(self.floor, self.users, self.domain.size))
        dummies = _arguments.integer("dummies", self.dummies, least=0, most=_MOST_DUMMIES)
        self._set("dummies", dummies)

    def _find_rate(self, accounting: Mechanism) -> None:
        """Check that coins are hidden, and find the rate for the accounting of any rate."""
        self._check_protected()
        given = self.rate is not None
        self._set("rate", sampling_rate(self._calibrated("rate", accounting, "rate"), given))

    def _check_protected(self) -> None:
        """Refuse sampling that would protect nobody, with the reason."""
        check_protected(self._honest_floor + self._hidden_dummies, self.floor, self.dummies)

    @property
    def _honest_floor(self) -> int:
        return max(self.floor - self.max_colluding_users - self.max_missing_users, 0)

    @property
    def _hidden_dummies(self) -> int:
        return self.honest_aggregators * self.dummies

    @property
    def _rate(self) -> float:
        assert self.rate is not None
        return self.rate

    @property
    def _largest_sum(self) -> int:
        return self.users + self.contributors * self.dummies

    def user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw what one user shares: its item if its coin says so, otherwise zeros.

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
        vector = np.zeros(self.domain.size, np.int64)
        vector[code] = _core.bernoulli_counts(1, self._rate, 1, seed)[0]
        return vector

    def contribution(self, items: int | None = None, seed: int | None = None) -> Integers | None:
        """Draw a full set of dummies: how many of them take part, for each item.

        Parameters
        ----------
        items
            For how many items; all by default.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray or None
            int64, one number for each item.
        """
        if not self.dummies:
            return None
        length = self.domain.size if items is None else items
        return _core.bernoulli_counts(self.dummies, self._rate, length, seed)

    def vector_costs(self) -> Costs:
        """Count what a user draws for its vector: a coin."""
        return Costs(coins=1)

    def contribution_costs(self, items: int) -> Costs:
        """Count what a contributor draws for some items: the coins of dummies."""
        return Costs(coins=self.dummies * items)

    def decode(self, sums: Array) -> Integers:
        """Read field elements as counts."""
        return sums.astype(np.int64)

    def _check_sums(self, sums: Integers, received: int) -> None:
        check_counts(sums, received + self.contributors * self.dummies)

    def _estimation(self, sums: Integers, received: int, rate: float) -> Estimation:
        """Estimate from ``Bin(a_j, rate) + Bin(dummies, dummy_rate)`` for each item.

        The variance of the first is ``a_j rate (1 - rate)`` (Lemma 3.1 and Theorem 3.5 of the paper
        give the sums over all items).
        """
        dummies, dummy_rate = self.contributors * self.dummies, self._rate
        model = StatisticModel(
            a=dummies * dummy_rate,
            b=received * rate,
            v0=dummies * dummy_rate * (1 - dummy_rate),
            v1=received * rate * (1 - rate),
            trials=received + dummies,
        )
        statistic = sums.astype(np.float64)
        frequencies = model.frequency(statistic)
        variances = model.variance(np.clip(frequencies, 0.0, 1.0))
        limits = None
        if rate == dummy_rate or summable(dummies, dummy_rate):
            rates = (rate, dummy_rate)
            limits = functools.partial(exact_sampling_limits, sums, received, rates, dummies)
        return Estimation(frequencies, variances, model, statistic, limits=limits)


def sampling_rate(rate: float, given: bool) -> float:
    """Check a rate; one that was found is made less than one, or refused."""
    if not given and rate >= 1.0:
        return math.nextafter(1.0, 0.0)
    if not _LEAST_RATE <= rate < 1.0:
        raise InvalidValueError(
            f"rate must be a probability from {_LEAST_RATE:g} and below 1, got {rate}"
        )
    return rate


def checked_floor(floor: int, users: int, items: int) -> int:
    """Check a promise about the data that some data can keep."""
    checked = _arguments.integer("floor", floor, least=0, most=users)
    if checked * items > users:
        raise InvalidValueError(
            f"floor must be at most {users // items}, got {checked}: {users} users with one item "
            f"each cannot hold each of {items} items so often"
        )
    return checked


def check_counts(sums: Integers, most: int) -> None:
    """Refuse sums that no users and dummies can have."""
    wrong = np.flatnonzero((sums < 0) | (sums > most))
    if wrong.size:
        raise InvalidValueError(
            f"sums[{wrong[0]}] must be from 0 to {most}, the users and dummies, got "
            f"{sums[wrong[0]]}: a party did not follow the protocol"
        )


def check_protected(hidden: int, floor: int, dummies: int) -> None:
    """Refuse sampling that would protect nobody, with the reason."""
    if not floor and not dummies:
        raise InvalidValueError(
            "floor or dummies must be given: without noise, only hidden coins of other holders of "
            "the same item protect a user, and an item that one user holds would have delta = "
            "rate. Give floor, if that many users are sure to hold every item, or dummies, which "
            "work for any data; or, with SamplingAggregation, threshold, which does too"
        )
    if hidden < 1:
        raise InvalidValueError(
            f"floor must be above max_colluding_users + max_missing_users, got {floor}: no hidden "
            "coin would be left"
        )
