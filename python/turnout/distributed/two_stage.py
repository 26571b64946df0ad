"""Sampling in two stages: users report some items only, to elected users."""

from __future__ import annotations

import dataclasses
import random
import secrets
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _core
from turnout._types import Array, Integers
from turnout.distributed.aggregation import Codes, step_seed
from turnout.distributed.elected import Elected
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.distributed.payloads import bits_size
from turnout.distributed.results import CostLedger, Costs
from turnout.distributed.roles.staged import ROLES
from turnout.errors import InvalidValueError

#: Sets are drawn and shared in one piece; this many entries of them are the most.
_MOST_SET_ENTRIES = 200_000_000
#: Shares that a study may draw.
_MOST_SHARES = 20_000_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStageSampling(Elected):
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

    _roles = ROLES

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


def _choose(n: int, sizes: list[int], seed: int | None) -> list[Integers]:
    """Elect users for each item."""
    own = step_seed(seed, "elections")
    drawn = secrets.SystemRandom() if own is None else random.Random(own)
    return [np.array(drawn.sample(range(n), size), np.int64) for size in sizes]
