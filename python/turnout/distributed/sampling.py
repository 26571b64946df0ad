"""Publish counts of sampled users, added up under secret sharing."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.accounting import CountSampling
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.aggregation import Guarantee
from turnout.distributed.deployment import (
    ANY_DATA,
    HONEST_BUT_CURIOUS,
    Deployed,
    floor_sentence,
    missing_sentence,
)
from turnout.distributed.mechanism import AggregationMechanism
from turnout.distributed.sampled import Sampled
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation

__all__ = ["SamplingAggregation"]

Integers = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingAggregation(Deployed, Sampled, AggregationMechanism):
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

    central: bool = False

    def __post_init__(self) -> None:
        """Check the arguments and find the rate."""
        super().__post_init__()
        _arguments.instance("central", self.central, bool, "True or False")
        if self.central and self.max_missing_users:
            raise InvalidValueError(
                "max_missing_users must be 0 with central=True: the server has all records"
            )
        self._find_rate(CountSampling(0.5, self.hidden_floor))

    @property
    def has_messages(self) -> bool:
        """Whether parties exchange messages: not with a trusted server."""
        return not self.central

    @property
    def hidden_floor(self) -> int:
        """How many coins the adversary does not know, for each item, at least."""
        return self._honest_floor + self._hidden_dummies

    @property
    def _hidden_dummies(self) -> int:
        return self.dummies if self.central else super()._hidden_dummies

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""
        return CountSampling(self._rate, self.hidden_floor)

    @property
    def sharing_rate(self) -> float:
        """The probability that a user shares its item."""
        return self._rate

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

    def estimation(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        return self._estimation(sums, received, self._rate)
