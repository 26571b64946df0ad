"""Sampling in two stages: users report some items only, to elected users."""

from __future__ import annotations

import dataclasses
import functools
import math
import random
import secrets
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Array, Bytes, Integers
from turnout._values import settle
from turnout.accounting import TwoStageCountSampling
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.aggregation import Codes, step_seed
from turnout.distributed.deployment import telling_sentence
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.distributed.payloads import bits_size
from turnout.distributed.results import CostLedger, Costs
from turnout.distributed.sampled import Sampled
from turnout.errors import InvalidValueError

#: Sets are drawn and shared in one piece; this many entries of them are the most.
_MOST_SET_ENTRIES = 200_000_000
#: Shares that a study may draw.
_MOST_SHARES = 20_000_000_000

#: One elected user would see what is reported to it.
_FEWEST_ELECTED = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStageSampling(Sampled):
    """Sampling in which a user reports a few items only, and elected users add up.

    Each user tosses a coin (probability ``rate``); then it draws a set of ``reported`` items out of
    all, and tells it to a first server. That server elects users for each item, to whom those who
    report the item share one bit: whether it is theirs and their coin says so. The elected users
    send their sums to a second server. Compared with :class:`SamplingAggregation` among users, each
    user sends less; the price is a smaller sample.

    Reporting is uniform unless ``gamma`` is given: the set says nothing about the user's item,
    which is in it with probability M / N. With ``gamma`` it is adaptive: the sets that hold the own
    item of a user that takes part are that many times as likely; a larger sample, and a leak to the
    first server that :attr:`reporting_epsilon` bounds.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number N.
    users
        The number n of users.
    reported
        The number M of items in each set, from 1 to N.
    gamma
        How much likelier a set with the own item is, above 1; None for uniform reporting.
    rate
        The probability of the coin, in (0, 1). If None, the largest that reaches ``epsilon`` and
        ``delta``.
    epsilon, delta
        The target, for :attr:`accounting`.
    floor
        How many users hold each item at least, whatever happens: a promise about the data.
    dummies
        How many dummy users each contributor adds to each item.
    collusion_bound
        The number phi of TSS': at least ``phi + 1`` users are elected for each item, so that phi
        colluding users never see all shares. None is TSS, as many as report the item, but at least
        two: then all of them may collude, with :meth:`collusion_probability`.
    elected
        Elect exactly so many users for each item instead, at least two, which costs less.
    honest_aggregators
        How many of the elected users that add dummies keep their coins to themselves.
    max_colluding_users
        How many users may tell the adversary what they know. The floor counts honest users only.
    max_missing_users
        How many users may fail to report a set. They are not counted in the floor.
    adjacency
        ``"replace"``: one user's item changes; or ``"add_or_remove"``: one user that takes part
        holds an item or none.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range; if there is neither a floor nor
        dummies; if ``max_colluding_users`` could be all that are elected; if no rate reaches the
        target.

    Notes
    -----
    TSS and TSS' of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially Private Distributed
    Frequency Estimation", algorithms 3 and 4. Their Theorem 3.4, the guarantee of one-stage
    sampling, holds for a server that sees no set. But the first server knows every set and, as
    everyone does, the published counts; the elected users know who reports. So :attr:`accounting`
    is the exact delta against an adversary that knows all sets and the published counts
    (:class:`turnout.accounting.TwoStageCountSampling`).

    The first ``max(max_colluding_users, 1) + honest_aggregators`` elected users of each item add
    dummies.

    Examples
    --------
    >>> mechanism = TwoStageSampling(
    ...     10, 1000, reported=4, gamma=3.0, epsilon=2.0, delta=1e-5, dummies=100
    ... )
    >>> round(mechanism.own_probability, 4), mechanism.reporting_epsilon < 1.0
    (0.6667, True)
    """

    name: ClassVar[str] = "two_stage"

    reported: int
    gamma: float | None = None
    collusion_bound: int | None = None
    elected: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments and find the rate."""
        super().__post_init__()
        size, integer = self.domain.size, _arguments.integer
        settle(self, reported=integer("reported", self.reported, least=1, most=size))
        if self.gamma is not None:
            settle(self, gamma=checked_gamma(self.gamma))
        bounds = {"collusion_bound": (0, self.users - 1), "elected": (_FEWEST_ELECTED, self.users)}
        for name, (least, most) in bounds.items():
            if getattr(self, name) is not None:
                value = integer(name, getattr(self, name), least=least, most=most)
                settle(self, **{name: value})
        self._check_committees()
        self._find_rate(self._accounting(0.5))

    def _check_committees(self) -> None:
        colluding, least = self.max_colluding_users, self._least_elected
        if self.elected is not None and self.collusion_bound is not None:
            raise InvalidValueError(
                "elected and collusion_bound must not both be given: elected is how many, "
                "collusion_bound how many at least"
            )
        if colluding and least <= colluding:
            raise InvalidValueError(
                f"collusion_bound must be at least max_colluding_users = {colluding}, or elected "
                f"above it: all {least} elected for an item might collude and see its "
                "reports"
            )
        if least < self._contributors:
            raise InvalidValueError(
                f"elected must be at least {self._contributors}, the elected users that add "
                f"dummies, got {self.elected}"
            )
        if least > self.users - self.max_missing_users:
            raise InvalidValueError(
                f"users must be at least {least + self.max_missing_users}, got {self.users}: "
                f"{least} are elected for an item (collusion_bound, elected, or with dummies "
                "max_colluding_users and honest_aggregators), others may be missing"
            )

    @property
    def _least_elected(self) -> int:
        """How many users are elected for an item at least."""
        if self.elected is not None:
            return self.elected
        bound = 0 if self.collusion_bound is None else self.collusion_bound + 1
        return max(bound, self._contributors, _FEWEST_ELECTED)

    def _accounting(self, rate: float) -> Mechanism:
        return TwoStageCountSampling(
            rate,
            self.domain.size,
            self.reported,
            1.0 if self.gamma is None else self.gamma,
            self._honest_floor,
            self._hidden_dummies,
        )

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one round, against whoever knows all sets and the counts."""
        return self._accounting(self._rate)

    def _trust(self) -> list[str]:
        sentences = ["no other user uses or gives away what it knows of its own coins and shares"]
        if self.max_colluding_users:
            sentences = [telling_sentence(self.max_colluding_users)]
        if self.dummies:
            sentences.append(
                f"at least {self.honest_aggregators} of the {self._contributors} users that add "
                "dummies to an item keep the coins of these to themselves"
                if self.honest_aggregators > 1
                else f"at least one of the {self._contributors} users that add dummies to an item "
                "keeps the coins of these to itself"
            )
        return sentences

    @functools.cached_property
    def _sampler(self) -> _core.SetSampler:
        return _core.SetSampler(self.domain.size, self.reported, self.gamma)

    @property
    def own_probability(self) -> float:
        """The probability p_chi that the own item of a user that takes part is in its set."""
        return self._sampler.own_probability

    @property
    def sampling_probability(self) -> float:
        """The probability q_chi = p p_chi that a user is counted for its item."""
        return self._rate * self.own_probability

    @property
    def _counted_rate(self) -> float:
        return self.sampling_probability

    @property
    def reporting_epsilon(self) -> float:
        """The exact local guarantee eps* of a set, rounded up; 0 for uniform reporting.

        That of the realised gamma. The paper's log gamma (Theorem 3.3) is an upper bound.
        """
        return self._sampler.local_epsilon(self._rate)

    def collusion_probability(self, colluding: int, reporters: int) -> float:
        """Compute how likely all users that are elected for an item collude.

        Parameters
        ----------
        colluding
            The number of colluding users.
        reporters
            The number m_j of users that report the item.

        Returns
        -------
        float
            ``C(colluding, e) / C(n, e)`` where e users are elected; 0 where that is impossible, as
            with ``collusion_bound >= colluding``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a number is out of range.

        Examples
        --------
        >>> mechanism = TwoStageSampling(4, 10, reported=2, rate=0.5, floor=2)
        >>> mechanism.collusion_probability(colluding=3, reporters=2)  # 3/10 * 2/9
        0.06666666666666667
        """
        bad = _arguments.integer("colluding", colluding, least=0, most=self.users)
        count = _arguments.integer("reporters", reporters, least=0, most=self.users)
        committee = self._committee_size(count)
        return math.comb(bad, committee) / math.comb(self.users, committee)

    def _committee_size(self, reporters: int) -> int:
        """How many users are elected for an item that so many report."""
        return self.elected if self.elected is not None else max(reporters, self._least_elected)

    @property
    def _contributors(self) -> int:
        """How many elected users of each item add a full set of dummies."""
        if not self.dummies:
            return 0
        # Even a user that colludes with nobody knows its own.
        return max(self.max_colluding_users, 1) + self.honest_aggregators

    def paper_costs(self) -> dict[str, Costs]:
        """Evaluate the paper's table, where as many users are elected as report an item."""
        if self.elected is not None:
            return {}
        n, size, element = self.users, self.domain.size, self.field.bits / 8
        alpha, own = self.reported / size, self.own_probability
        user_bits, item_bits = (n - 1).bit_length() / 8, (size - 1).bit_length() / 8
        sent = alpha * size * (1 + own * n)
        return {
            "user": Costs(
                bytes=size / 8 + sent * (item_bits + element),
                additions=(own * n - 1) * (own + alpha) * size,
                draws=(own * n - 1) * alpha * size,
                coins=1,
                sets=1,
            ),
            "reporting server": Costs(
                bytes=alpha * size * n * (n + 1) * user_bits + (n + 1) * size * item_bits
            ),
            "server": Costs(additions=(alpha * n - 1) * size),
        }

    def _draw_sets(
        self, codes: npt.NDArray[np.uint32], seed: int | None = None
    ) -> tuple[Bytes, npt.NDArray[np.uint32]]:
        """Draw the coins and sets of some users.

        Parameters
        ----------
        codes
            uint32, the code of each user's item.
        seed
            For tests and simulations only.

        Returns
        -------
        coins : numpy.ndarray
            uint8, 1 for a user that takes part.
        sets : numpy.ndarray
            uint32 of shape (users, reported): the items of each set, in order.
        """
        return self._sampler.draw(codes, self._rate, seed)

    def _added_up(self, codes: Codes, seed: int | None) -> tuple[Array, CostLedger]:
        field, size, n = self.field, self.domain.size, self.users
        if n * self.reported > _MOST_SET_ENTRIES:
            raise InvalidValueError(
                f"users and reported must be at most {_MOST_SET_ENTRIES} together, got {n} and "
                f"{self.reported}"
            )
        coins, sets = self._draw_sets(codes, step_seed(seed, "sets"))
        reporters = np.bincount(sets.ravel(), minlength=size)
        sizes = [min(self._committee_size(count), n) for count in reporters.tolist()]
        shares = sum(int(one) * two for one, two in zip(reporters, sizes, strict=True))
        if shares > _MOST_SHARES:
            raise InvalidValueError(
                f"elected must be given for so many users: {shares:,} shares would be drawn"
            )
        chosen = _choose(n, sizes, seed)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        sums, draws, additions = _core.two_stage_sums(
            codes, coins, sets, offsets, np.concatenate(chosen).astype(np.uint32), field.modulus,
            step_seed(seed, "shares"),
        )  # fmt: skip
        elected_sums = sums.astype(field._dtype)
        for index, own in self._contributions(seed):
            places = offsets[:-1].astype(np.int64) + index
            elected_sums[places] = field._add(elected_sums[places], own)
        total = np.zeros(size, field._dtype)
        starts = offsets.astype(np.int64)
        for item in range(size):
            part = elected_sums[starts[item] : starts[item + 1]]
            total[item] = field._sum(part[:, None])[0]
        users = Costs(coins=n, sets=n, draws=draws, additions=additions)
        users += self._contributions_costs()
        self._count_messages(users, sets, chosen, reporters)
        election = 4 + 4 * (2 * size + sum(sizes))
        duties = sum(4 * len(who) * (1 + int(m)) for who, m in zip(chosen, reporters, strict=True))
        reporting = Costs(
            messages=n + 1,
            bytes=(n + 1) * (MESSAGE_OVERHEAD + election) + duties,
            additions=n * size,
        )
        server = Costs(additions=sum(sizes))
        totals = {"user": users, "reporting server": reporting, "server": server}
        parties = {"user": n, "reporting server": 1, "server": 1}
        return total, CostLedger(totals, parties, self.paper_costs())

    def _count_messages(
        self,
        users: Costs,
        sets: npt.NDArray[np.uint32],
        chosen: list[Integers],
        reporters: Integers,
    ) -> None:
        """Add the messages of users: a set each, bundles of shares, a sum of each elected user."""
        field, size, n = self.field, self.domain.size, self.users
        users.messages += n
        users.bytes += n * (MESSAGE_OVERHEAD + bits_size(size))
        # Who is elected for which items: bundles go from every user to those elected for its items.
        elected = np.unique(np.concatenate(chosen))
        member = np.zeros((size, len(elected)), np.float32)
        for item, who in enumerate(chosen):
            member[item, np.searchsorted(elected, who)] = 1.0
        place = np.full(n, -1)
        place[elected] = np.arange(len(elected))
        step = max(1, 50_000_000 // max(len(elected), size))
        for start in range(0, n, step):
            block = sets[start : start + step].astype(np.int64)
            reported = np.zeros((len(block), size), np.float32)
            np.put_along_axis(reported, block, 1.0, axis=1)
            counts = (reported @ member).astype(np.int64)
            own = place[start : start + step]
            counts[np.flatnonzero(own >= 0), own[own >= 0]] = 0  # what a user keeps for itself
            users._count_bundles(counts[counts > 0], field.bits)
        users._count_bundles(member.sum(axis=0).astype(np.int64), field.bits)


def checked_gamma(gamma: object) -> float:
    """Check how much likelier an item is reported by a user that holds it."""
    checked = _arguments.number("gamma", gamma)
    if not 1.0 < checked < math.inf:
        raise InvalidValueError(f"gamma must be a finite number above 1, got {checked}")
    return checked


def _choose(n: int, sizes: list[int], seed: int | None) -> list[Integers]:
    """Elect users for each item."""
    own = step_seed(seed, "elections")
    drawn = secrets.SystemRandom() if own is None else random.Random(own)
    return [np.array(drawn.sample(range(n), size), np.int64) for size in sizes]
