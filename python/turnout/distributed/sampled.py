"""The shared base of mechanisms that publish counts of sampled users, with exact limits."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._binomial import at_least, first
from turnout._rounding import written_down
from turnout._types import Array, Floats, Integers
from turnout._values import settle
from turnout.accounting.mechanism import Mechanism
from turnout.collecting.intervals import StatisticModel
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.published import Limits
from turnout.distributed.results import Costs
from turnout.distributed.tails import binomials, binomials_least
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

_MOST_DUMMIES = 10_000_000

#: Dummies further than this many standard deviations from their mean are not summed over: what is
#: left out is below 1e-20, and counts against the tails.
_REACH = 10.0
_LEFT_OUT = 1e-20

#: Variances stay within floating-point range.
_LEAST_RATE = 1e-100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampled(AggregationMechanism):
    """A mechanism in which users toss coins, and contributors add dummies with coins.

    The subclasses document the parameters.
    """

    _found: ClassVar[str | None] = "rate"
    _protecting: ClassVar[tuple[str, ...]] = ("floor", "dummies")

    rate: float | None = None
    floor: int = 0
    dummies: int = 0

    def __post_init__(self) -> None:
        """Check the arguments; the subclass finds the rate."""
        super().__post_init__()
        dummies = _arguments.integer("dummies", self.dummies, least=0, most=_MOST_DUMMIES)
        floor = checked_floor(self.floor, self.users, self.domain.size)
        settle(self, floor=floor, dummies=dummies)

    def _find_rate(self, accounting: Mechanism) -> None:
        """Check that coins are hidden, and find the rate by the accounting of any rate."""
        self._check_protected()
        rate = self._calibrated("rate", accounting, "rate")
        if self.rate is None and rate >= 1.0:
            rate = math.nextafter(1.0, 0.0)
        if not _LEAST_RATE <= rate < 1.0:
            raise InvalidValueError(
                f"rate must be a probability from {_LEAST_RATE:g} and below 1, got {rate}"
            )
        settle(self, rate=rate)

    def _check_protected(self) -> None:
        """Refuse sampling that would protect nobody, and state the reason."""
        if not self.floor and not self.dummies:
            raise InvalidValueError(
                "floor or dummies must be given: without noise, only the hidden coins of "
                "other holders of the same item protect a user, and an item with a "
                "single holder has delta = rate. Pass floor if you are sure that so many "
                "users hold every item. Otherwise pass dummies or, for "
                "SamplingAggregation, threshold, which work for any data"
            )
        if self._honest_floor + self._hidden_dummies < 1:
            raise InvalidValueError(
                "floor must be above max_colluding_users + max_missing_users, got "
                f"{self.floor}: otherwise no hidden coin is left"
            )

    def _told(self) -> list[tuple[str, str]]:
        found = [
            *super()._told(),
            ("rate", f"{written_down(self._rate)} of the people take part, unseen"),
        ]
        if self._contributors:
            found.append(("dummies", f"{self.dummies:,} on every item, {self._dummies_of()}"))
        return found

    @abc.abstractmethod
    def _dummies_of(self) -> str:
        """Name the parties that add the dummies."""

    def _facts(self) -> dict[str, Any]:
        added = self._contributors * self.dummies
        return {**super()._facts(), "rate": self.rate, "dummies_an_item": added}

    @property
    def _promised(self) -> int:
        return self.floor if self._honest_floor else 0

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
        return self.users + self._contributors * self.dummies

    def _user_vector(self, code: int, seed: int | None = None) -> Integers:
        """Draw the vector that one user shares: its item if its coin says so, else zeros.

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

    def _contribution(self, items: int | None = None, seed: int | None = None) -> Integers:
        """Draw a full set of dummies: how many of them take part, for each item.

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
        length = self.domain.size if items is None else items
        return _core.bernoulli_counts(self.dummies, self._rate, length, seed)

    def _vector_costs(self) -> Costs:
        """Count the draws of a user for its vector: a coin."""
        return Costs(coins=1)

    def _contribution_costs(self, items: int) -> Costs:
        """Count the draws of a contributor for some items: the coins of dummies."""
        return Costs(coins=self.dummies * items)

    def _decode(self, sums: Array) -> Integers:
        """Decode field elements as counts."""
        return sums.astype(np.int64)

    @property
    @abc.abstractmethod
    def _counted_rate(self) -> float:
        """The probability that a user is counted for its item."""

    def _reach(self, held: Limits, items: int, received: int, chance: float) -> Limits:
        del received
        dummies = items * self._contributors * self.dummies, self._rate
        low = binomials_least([(held[0], self._counted_rate), dummies], chance / 2.0)
        return low, binomials([(held[1], self._counted_rate), dummies], chance / 2.0)

    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        return self._estimation(sums, received, self._counted_rate)

    def _estimation(self, sums: Integers, received: int, rate: float) -> Estimation:
        """Estimate from ``Bin(a_j, rate) + Bin(dummies, dummy_rate)`` for each item.

        The variance of the first is ``a_j rate (1 - rate)`` (Lemma 3.1 and Theorem 3.5 of the paper
        give the sums over all items).
        """
        dummies, dummy_rate = self._contributors * self.dummies, self._rate
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


def checked_floor(floor: int, users: int, items: int) -> int:
    """Check a promise about the data that some data can keep."""
    checked = _arguments.integer("floor", floor, least=0, most=users)
    if checked * items > users:
        raise InvalidValueError(
            f"floor must be at most {users // items}, got {checked}: {users} users "
            f"with one item each cannot hold every one of {items} items so often"
        )
    return checked


def exact_sampling_limits(
    sums: Integers,
    received: int,
    rates: tuple[float, float],
    dummies: int,
    level: float,
) -> tuple[Floats, Floats]:
    """Invert the tails of ``Bin(a, rate) + Bin(dummies, dummy_rate)`` for the number ``a``.

    Clopper and Pearson (1934): all ``a`` for which neither tail at the sum that was seen is below
    half of what may be missed. They cover with at least the level, whatever ``a``.

    Parameters
    ----------
    sums
        int64, what was published.
    received
        The number of users, of whom ``a`` hold the item.
    rates
        The probability with which a user is counted, and a dummy.
    dummies
        How many dummies are on each item.
    level
        The confidence level.

    Returns
    -------
    tuple of numpy.ndarray
        float64, the limits of the frequencies ``a / received``, in [0, 1].
    """
    tail = (1.0 - level) / 2.0 - _LEFT_OUT
    offsets, masses = _dummies(dummies, rates) if rates[0] != rates[1] else (None, None)

    def upper_tail(held: Integers, least: Integers) -> Floats:
        """Return ``P[sum >= least]`` if ``held`` users hold the item."""
        if offsets is None or masses is None:
            return at_least(held + dummies, least, rates[0])
        beyond = at_least(held[:, None], least[:, None] - offsets[None, :], rates[0])
        result: Floats = beyond @ masses
        return result

    # The least a with P[sum >= seen] >= tail, and the largest with P[sum <= seen] >= tail.
    low = first(lambda held: upper_tail(held, sums) >= tail, sums.size, received)
    beyond = first(lambda held: upper_tail(held, sums + 1) > 1.0 - tail, sums.size, received)
    high = np.maximum(beyond - 1, 0)
    return np.minimum(low, received) / received, np.minimum(high, received) / received


def thresholded_limits(
    sums: Integers, received: int, rate: float, threshold: int, level: float
) -> tuple[Floats, Floats]:
    """Invert the tails of a count that is published if it reaches a threshold.

    If a count is not published, its sum is 0, and it may be any smaller count. The limits enclose
    those of all such counts, and cover the truth with at least the given level, as they do if all
    counts are published.

    Parameters
    ----------
    sums
        int64, what was published; 0 stands for "below the threshold".
    received
        The number of users.
    rate
        The probability with which a user is counted.
    threshold
        The smallest count that is published.
    level
        The confidence level.

    Returns
    -------
    tuple of numpy.ndarray
        float64, the limits of the frequencies, in [0, 1].
    """
    published = sums >= threshold
    largest = np.where(published, sums, threshold - 1)
    low, high = exact_sampling_limits(largest, received, (rate, rate), 0, level)
    return np.where(published, low, 0.0), high


def summable(dummies: int, dummy_rate: float) -> bool:
    """Return whether there are few enough dummies to sum over their number quickly."""
    return dummies * dummy_rate * (1.0 - dummy_rate) <= 1e4


def _dummies(dummies: int, rates: tuple[float, float]) -> tuple[Integers, Floats]:
    """Return the likely numbers of counted dummies, with their probabilities."""
    from scipy import special  # noqa: PLC0415

    rate = rates[1]
    reach = _REACH * math.sqrt(dummies * rate * (1.0 - rate)) + 30.0
    first = max(0, math.floor(dummies * rate - reach))
    last = min(dummies, math.ceil(dummies * rate + reach))
    counts = np.arange(first, last + 1)
    logarithms = special.xlogy(counts, rate) + special.xlog1py(dummies - counts, -rate)
    # All are too large by a factor of dummies + 1.
    found: Floats = np.exp(logarithms - special.betaln(counts + 1.0, dummies - counts + 1.0))
    return counts, found / found.sum()
