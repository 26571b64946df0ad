"""Publish counts of sampled users, added up under secret sharing."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout.accounting import CountSampling
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.deployment import (
    ANY_DATA,
    HONEST_BUT_CURIOUS,
    Deployed,
    floor_sentence,
    missing_sentence,
)
from turnout.distributed.limits import exact_sampling_limits, summable
from turnout.distributed.mechanism import Guarantee
from turnout.errors import InvalidValueError
from turnout.frequency.estimators import Estimation
from turnout.frequency.models import StatisticModel

__all__ = [
    "SamplingAggregation",
    "check_counts",
    "check_protected",
    "checked_floor",
    "sampled_estimation",
    "sampling_rate",
]

Integers = npt.NDArray[np.int64]

_MOST_DUMMIES = 10_000_000

#: Variances stay within floating-point range.
_LEAST_RATE = 1e-100


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingAggregation(Deployed):
    """Every user takes part with the same probability, unseen; the counts of those are published.

    A user tosses a coin: with probability ``rate`` it shares its item, otherwise nothing, and both
    look the same. Only the sum of all shares is ever seen. No noise is added: the coins protect,
    and they do so only where enough of them are hidden among the holders of each item. So the
    mechanism asks for a ``floor`` that the data is known to have, or for ``dummies``, with which
    the guarantee holds for any data: each aggregator adds, for each item, that many users that do
    not exist, each with a coin, and their expected number is subtracted from the estimate.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number.
    users
        The number n of users.
    rate
        The probability to take part, in (0, 1). If None, the largest that reaches ``epsilon`` and
        ``delta``.
    epsilon, delta
        The target, for :attr:`accounting`.
    floor
        How many users hold each item at least, whatever happens: a promise about the data.
    dummies
        How many dummy users each contributor adds to each item, 0 to 10^7.
    parties
        Who adds up the shares: a number m >= 2 of aggregators, or ``"users"``: every user is one,
        as in the paper.
    central
        A trusted server samples and adds up (DPCS): no sharing.
    compressed
        Whether all shares but one travel as seeds of 32 bytes.
    honest_aggregators
        How many of those who add dummies keep their coins to themselves and do not collude.
    max_colluding_users
        How many users may tell the adversary their coins. The floor counts honest users only. With
        0 users are protected from aggregators and from the public; with 1, from each other too.
    max_missing_users
        How many users' shares may be missing from a round. They are not counted in the floor.
    adjacency
        What neighbouring data sets are: ``"replace"`` (one user's item changes), or
        ``"add_or_remove"`` (one user that takes part holds an item or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range; if there is neither a floor nor
        dummies, or no hidden coin is left; if no rate reaches the target.

    Notes
    -----
    DPDS, and DPCS with ``central``, of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially
    Private Distributed Frequency Estimation", algorithms 1 and 2. Their Theorems 3.1 and 3.2 are no
    bounds of delta; the rate here comes from the exact delta of
    :class:`turnout.accounting.CountSampling`.

    Whoever knows a coin gets no protection from it: colluding users know theirs, an aggregator
    knows those of its own dummies. So each aggregator adds a full set, and one honest one suffices;
    with ``parties="users"`` the first ``max(max_colluding_users, 1) + honest_aggregators`` users
    do, so that nobody knows all of them.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = SamplingAggregation(3, 1000, epsilon=1.0, delta=1e-5, dummies=100)
    >>> round(mechanism.rate, 3)
    0.743
    >>> result = mechanism.run([0] * 500 + [1] * 300 + [2] * 200, seed=1)
    >>> result.estimate.interval(0.99).contains([0.5, 0.3, 0.2])
    array([ True,  True,  True])
    """

    name: ClassVar[str] = "sampling"

    rate: float | None = None
    floor: int = 0
    dummies: int = 0
    central: bool = False

    def __post_init__(self) -> None:
        """Check the arguments and find the rate."""
        super().__post_init__()
        self._set("floor", checked_floor(self.floor, self.users, self.domain.size))
        dummies = _arguments.integer("dummies", self.dummies, least=0, most=_MOST_DUMMIES)
        self._set("dummies", dummies)
        _arguments.instance("central", self.central, bool, "True or False")
        if self.central and self.max_missing_users:
            raise InvalidValueError(
                "max_missing_users must be 0 with central=True: the server has all records"
            )
        hidden = self.hidden_floor
        check_protected(hidden, self.floor, self.dummies)
        given = self.rate is not None
        rate = self._calibrated("rate", CountSampling(0.5, hidden), "rate")
        self._set("rate", sampling_rate(rate, given))

    @property
    def hidden_floor(self) -> int:
        """How many coins the adversary does not know, for each item, at least."""
        dummies = self.dummies if self.central else self.honest_aggregators * self.dummies
        return self._honest_floor + dummies

    @property
    def _honest_floor(self) -> int:
        return max(self.floor - self.max_colluding_users - self.max_missing_users, 0)

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""
        return CountSampling(self._rate, self.hidden_floor)

    @property
    def sharing_rate(self) -> float:
        """The probability that a user shares its item."""
        return self._rate

    @property
    def _rate(self) -> float:
        assert self.rate is not None
        return self.rate

    @property
    def guarantee(self) -> Guarantee:
        """What is protected, against whom, and what that rests on."""
        sentences = [
            "the server that samples is trusted" if self.central else self._trust(),
            self._users_trust(),
            floor_sentence(self.floor) if self._honest_floor else ANY_DATA,
            HONEST_BUT_CURIOUS,
        ]
        if self.max_missing_users and self._honest_floor:
            sentences.append(missing_sentence(self.max_missing_users))
        return Guarantee(
            self.accounting, self.adjacency, self.epsilon, self.delta, tuple(sentences)
        )

    @property
    def contributors(self) -> int:
        """How many parties add a full set of dummies."""
        if not self.dummies:
            return 0
        return 1 if self.central else self._contributing_parties

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

    def decode(self, sums: npt.NDArray[Any]) -> Integers:
        """Read field elements as counts."""
        return sums.astype(np.int64)

    def _check_sums(self, sums: Integers, received: int) -> None:
        check_counts(sums, received + self.contributors * self.dummies)

    def estimation(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        dummies = self.contributors * self.dummies
        return sampled_estimation(sums, received, self._rate, dummies, self._rate)


def sampled_estimation(
    sums: Integers, received: int, rate: float, dummies: int, dummy_rate: float
) -> Estimation:
    """Estimate from ``Bin(a_j, rate) + Bin(dummies, dummy_rate)`` for each item.

    The variance of the first is ``a_j rate (1 - rate)`` (Lemma 3.1 and Theorem 3.5 of the paper
    give the sums over all items).
    """
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
    if not given and rate <= 0.0:
        raise InvalidValueError("epsilon and delta must be larger: no rate above 0 reaches them")
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
            "work for any data"
        )
    if hidden < 1:
        raise InvalidValueError(
            f"floor must be above max_colluding_users + max_missing_users, got {floor}: no hidden "
            "coin would be left"
        )
