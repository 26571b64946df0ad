"""Counts of sampled users, added up under secret sharing."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._binomial import at_least
from turnout._types import Array, Floats, Integers
from turnout._values import settle
from turnout.accounting import CountSampling, SampleAndThreshold
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.thresholded import MOST_THRESHOLD
from turnout.distributed.deployment import Deployed
from turnout.distributed.roles.vectors import ROLES
from turnout.distributed.sampled import Sampled, thresholded_limits
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import Estimation


@dataclasses.dataclass(frozen=True, kw_only=True)
class SamplingAggregation(Deployed, Sampled):
    """A mechanism that publishes the counts of secretly sampled users.

    Every user tosses a coin. With probability ``rate`` it shares its item, otherwise nothing, and
    both look the same. Only the sum of all shares is ever seen. No noise is added: the coins
    protect, and only if enough of them are hidden among the holders of each item. Therefore the
    mechanism requires a ``floor`` that the data is known to have, or ``dummies``, with which the
    guarantee holds for any data. Each aggregator adds this many fictitious users to each item, each
    with a coin, and the estimate subtracts their expected number. With a ``threshold`` the
    mechanism needs neither: the server that adds up withholds the counts below it, and is trusted
    not to use them.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number.
    users
        The number n of users.
    rate
        The probability of taking part, in (0, 1). If None, the largest that reaches ``epsilon`` and
        ``delta``.
    epsilon, delta
        The target, for :attr:`accounting`.
    floor
        The smallest number of users that hold each item, whatever happens: a promise about the
        data.
    dummies
        The number of dummy users that each contributor adds to each item, 0 to 10^7.
    threshold
        The smallest count that is published, 1 to 10^5, instead of a floor or dummies. The
        guarantee holds for any data. The server that combines the sums sees the counts below the
        threshold.
    parties
        The parties that add up the shares: a number m >= 2 of aggregators, or ``"users"`` if every
        user is a party, as in the paper.
    central
        Whether a trusted server samples and adds up (DPCS), without secret sharing.
    compressed
        Whether all shares but one travel as seeds of 32 bytes.
    honest_aggregators
        The number of parties that add dummies, keep their coins secret, and do not collude.
    max_colluding_users
        The number of users that may disclose their coins to the adversary. The floor counts only
        honest users. With 0, users are protected from aggregators and from the public; with 1, also
        from each other.
    max_missing_users
        The number of users whose shares may be missing from a round. The floor does not count them.
    adjacency
        The neighbouring data sets: ``"replace"`` (one user's item changes), or ``"add_or_remove"``
        (one participating user holds an item or none).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range; if there is neither a floor nor dummies
        nor a threshold, or no hidden coin is left; if no rate reaches the target.

    Notes
    -----
    DPDS, and DPCS with ``central``, of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially
    Private Distributed Frequency Estimation", algorithms 1 and 2. Their Theorems 3.1 and 3.2 are no
    bounds of delta; the rate here comes from the exact delta of
    :class:`turnout.accounting.CountSampling`.

    A coin does not protect against a party that knows it. Colluding users know their own coins, and
    an aggregator knows those of its own dummies. Therefore each aggregator adds a full set, and one
    honest aggregator suffices. With ``parties="users"`` the first ``max(max_colluding_users, 1) +
    honest_aggregators`` users add one, so that nobody knows all of them.

    With a threshold K the guarantee is that of :class:`turnout.accounting.SampleAndThreshold`,
    against anyone who sees the published counts. Its threshold is K minus the number of colluding
    users, whose coins are known. In the sums 0 stands for "below K". The estimate of such an item
    is 0 and its standard error is unknown. Its interval contains all frequencies for which a count
    below K is not unlikely.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = SamplingAggregation(3, 1000, epsilon=1.0, delta=1e-5, dummies=100)
    >>> round(mechanism.rate, 3)
    0.743
    >>> result = mechanism.run([0] * 500 + [1] * 300 + [2] * 200, seed=1)
    >>> result.estimate.interval(0.99).contains([0.5, 0.3, 0.2])
    array([ True,  True,  True])

    >>> above = SamplingAggregation(3, 1000, epsilon=1.0, delta=1e-8, threshold=20)
    >>> result = above.run([0] * 700 + [1] * 295 + [2] * 5, seed=1)
    >>> result.sums.tolist()
    [179, 81, 0]
    >>> limits = result.estimate.interval(0.99)
    >>> float(limits.low[2]), float(limits.high[2].round(3))
    (0.0, 0.126)
    """

    name: ClassVar[str] = "sampling"
    _roles = ROLES
    _protecting: ClassVar[tuple[str, ...]] = ("floor", "dummies", "threshold")

    threshold: int | None = None
    central: bool = False

    def __post_init__(self) -> None:
        """Check the arguments and find the rate."""
        super().__post_init__()
        _arguments.instance("central", self.central, bool, "True or False")
        if self.central and self.max_missing_users:
            raise InvalidValueError(
                "max_missing_users must be 0 with central=True: the server has all records"
            )
        if self.threshold is not None:
            self._check_threshold()
        self._find_rate(self._accounting(0.5))

    def _check_threshold(self) -> None:
        checked = _arguments.integer("threshold", self.threshold, least=1, most=MOST_THRESHOLD)
        if checked <= self.max_colluding_users:
            raise InvalidValueError(
                f"threshold must be above max_colluding_users, got {checked}: otherwise "
                "colluding users reach it alone"
            )
        if checked > self.users:
            raise InvalidValueError(
                f"threshold must be at most the {self.users} users, got {checked}: "
                "otherwise nothing is published"
            )
        for name in ("floor", "dummies"):
            if getattr(self, name):
                raise InvalidValueError(
                    f"{name} must be 0 with a threshold, which needs neither a floor nor dummies, "
                    f"got {getattr(self, name)}"
                )
        settle(self, threshold=checked)

    def _check_protected(self) -> None:
        if self.threshold is None:
            super()._check_protected()

    def _adders(self) -> str:
        return "a trusted server" if self.central else super()._adders()

    def _title(self) -> str:
        return f"sampling; {self._adding()}"

    def _dummies_of(self) -> str:
        who = "users" if self._users_are_parties else "aggregators"
        return f"by each of {self._contributors} {who}"

    def _told(self) -> list[tuple[str, str]]:
        found = super()._told()
        if self.threshold is not None:
            kept = f"counts below {self.threshold:,} are not published; 0 stands for them"
            found.append(("threshold", kept))
        return found

    @property
    def _has_messages(self) -> bool:
        """Whether parties exchange messages; they do not with a trusted server."""
        return not self.central

    @property
    def _hidden_floor(self) -> int:
        """The smallest number of coins of an item that the adversary does not know."""
        return self._honest_floor + self._hidden_dummies

    @property
    def _hidden_dummies(self) -> int:
        return self.dummies if self.central else super()._hidden_dummies

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one release."""
        return self._accounting(self._rate)

    def _accounting(self, rate: float) -> Mechanism:
        if self.threshold is None:
            return CountSampling(rate, self._hidden_floor)
        # Somebody who knows the coins of some users knows how many others the threshold needs.
        return SampleAndThreshold(rate, self.threshold - self.max_colluding_users)

    @property
    def _sharing_rate(self) -> float:
        """The probability that a user shares its item."""
        return self._rate

    @property
    def _counted_rate(self) -> float:
        return self._rate

    def _trust(self) -> list[str]:
        parties, users = super()._trust()
        if self.central:
            return ["the server that samples is trusted", users]
        if self.threshold is None:
            return [parties, users]
        server = (
            "the server that puts the sums together is trusted: it sees the counts below "
            f"{self.threshold} before it withholds them"
        )
        return [parties, server, users]

    @property
    def _contributors(self) -> int:
        """The number of parties that add a full set of dummies."""
        if not self.dummies:
            return 0
        return 1 if self.central else self._contributing_parties

    def _estimate_sums(self, sums: Integers, received: int) -> Estimation:
        """Estimate frequencies, with their law, from published sums."""
        if self.threshold is None:
            return super()._estimate_sums(sums, received)
        frequencies = sums / (received * self._rate)
        # As if a count had been published whatever it was.
        variances = frequencies * (1.0 - self._rate) / (received * self._rate)
        limits = functools.partial(thresholded_limits, sums, received, self._rate, self.threshold)
        unknown = np.where(sums > 0, variances, np.nan)
        return Estimation(frequencies, unknown, limits=limits)

    def _decode(self, sums: Array) -> Integers:
        """Decode field elements as counts; those below the threshold become 0."""
        counts = super()._decode(sums)
        return np.where(counts >= (self.threshold or 0), counts, 0)

    def _unpublished(self, sums: Integers) -> tuple[Integers, Integers]:
        withheld = max((self.threshold or 0) - 1, 0)
        return sums, np.where(sums == 0, withheld, sums)

    def _check_sums(self, sums: Integers, received: int) -> None:
        below = (sums > 0) & (sums < (self.threshold or 0))
        expected = f"0 or at least the threshold {self.threshold}"
        _arguments.refuse_entries("sums", sums, below, expected)
        super()._check_sums(sums, received)

    def variances(self, frequencies: npt.ArrayLike) -> Floats:
        """Compute the exact variances of the estimated frequencies.

        Parameters
        ----------
        frequencies
            The true frequency of each item.

        Returns
        -------
        numpy.ndarray
            float64, one variance for each item; with a threshold those of estimates that are 0
            where nothing is published.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one number for each item.
        """
        if self.threshold is None:
            return super().variances(frequencies)
        first, second, _ = self._moments(frequencies)
        return np.maximum(second - first**2, 0.0) / (self.users * self._rate) ** 2

    def _squared_errors(self, frequencies: npt.ArrayLike) -> Floats:
        if self.threshold is None:
            return super()._squared_errors(frequencies)
        first, second, mean = self._moments(frequencies)
        squares = np.maximum(second - 2.0 * mean * first + mean**2, 0.0)
        return squares / (self.users * self._rate) ** 2

    def _moments(self, frequencies: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Give mean and mean square of what is published of each item, and of all that is kept."""
        truth = _arguments.frequencies("frequencies", frequencies, self.domain.size)
        held, rate, least = np.clip(truth, 0.0, 1.0) * self.users, self._rate, self.threshold or 0
        mean = held * rate
        # X Bin(a, p)(X) is a p Bin(a - 1, p)(X - 1).
        first = mean * at_least(held - 1.0, np.asarray(least - 1), rate)
        pairs = mean * np.maximum(held - 1.0, 0.0) * rate
        return first, first + pairs * at_least(held - 2.0, np.asarray(least - 2), rate), mean
