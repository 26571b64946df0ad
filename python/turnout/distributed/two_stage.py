"""Sampling in two stages: users report only some items, to elected users."""

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
from turnout.distributed.payloads import NUMBER, bits_size
from turnout.distributed.results import CostLedger, Costs
from turnout.distributed.roles.elections import WORD_SIZE
from turnout.distributed.roles.staged import ROLES
from turnout.errors import InvalidValueError

#: Sets are drawn and shared in one piece; this many entries of them are the most.
_MOST_SET_ENTRIES = 200_000_000
#: Shares that a study may draw.
_MOST_SHARES = 20_000_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoStageSampling(Elected):
    """A mechanism in which users report only a few items, and elected users add up.

    Each user tosses a coin (probability ``rate``). Then it draws a set of ``reported`` items from
    all, and sends the set to a first server. That server elects users for each item. The reporters
    of the item share one bit with them: whether they hold the item and their coin says so. The
    elected users send their sums to a second server. Compared with :class:`SamplingAggregation`
    among users, each user sends less, and the sample is smaller.

    Without ``gamma``, reporting is uniform: the set reveals nothing about the user's item, which is
    in it with probability M / N. With ``gamma``, reporting is adaptive: sets that contain the own
    item of a participating user are ``gamma`` times as likely. The sample is then larger, and the
    set leaks information to the first server, which :attr:`reporting_epsilon` bounds.

    Parameters
    ----------
    domain
        The items: a :class:`turnout.Domain`, or their number N.
    users
        The number n of users.
    reported
        The number M of items in each set, from 1 to N.
    gamma
        How many times as likely a set with the user's own item is, above 1; None for uniform
        reporting.
    rate
        The probability of the coin, in (0, 1). If None, the largest that reaches ``epsilon`` and
        ``delta``.
    epsilon, delta
        The target, for :attr:`accounting`.
    floor
        The smallest number of users that hold each item, whatever happens: a promise about the
        data.
    dummies
        The number of dummy users that each contributor adds to each item.
    collusion_bound
        The number phi of TSS'. At least ``phi + 1`` users are elected for each item, so that phi
        colluding users never see all shares. None is TSS: as many users are elected as report the
        item, but at least two. Then all of them may collude, with probability
        :meth:`collusion_probability`.
    elected
        The exact number of users to elect for each item instead, at least two, which costs less.
    honest_aggregators
        The number of elected users that add dummies and keep their coins secret.
    max_colluding_users
        The number of users that may disclose what they know to the adversary. The floor counts only
        honest users.
    max_missing_users
        The number of users that may fail to report a set, or be lost after it. The floor does not
        count them. Other users are elected in place of lost ones.
    adjacency
        ``"replace"``: one user's item changes; or ``"add_or_remove"``: one participating user holds
        an item or none.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range; if there is neither a floor nor
        dummies; if ``max_colluding_users`` could include all elected users; if no rate reaches the
        target.

    Notes
    -----
    TSS and TSS' of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially Private Distributed
    Frequency Estimation", algorithms 3 and 4. Their Theorem 3.4, the guarantee of one-stage
    sampling, holds for a server that sees no set. But the first server knows every set and, like
    everyone, the published counts. The elected users know who reports. Therefore :attr:`accounting`
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
        """Evaluate the paper's table, if as many users are elected as report an item."""
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
        election = 8 + 4 * (2 * size + sum(sizes))
        duties = sum(4 * len(who) * (1 + int(m)) for who, m in zip(chosen, reporters, strict=True))
        # An election for all users and the server; and when all is there, a word for each user.
        reporting = Costs(
            messages=2 * n + 1,
            bytes=(n + 1) * (MESSAGE_OVERHEAD + election)
            + duties
            + n * (MESSAGE_OVERHEAD + WORD_SIZE),
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
        """Add the messages of users: a set each, bundles of shares, two of each elected user."""
        field, size, n = self.field, self.domain.size, self.users
        users.messages += n
        users.bytes += n * (MESSAGE_OVERHEAD + bits_size(size))
        # Who is elected for which items: bundles go from every user to those elected for its items.
        elected = np.unique(np.concatenate(chosen))
        # They say that nothing is missing.
        users.messages += len(elected)
        users.bytes += len(elected) * (MESSAGE_OVERHEAD + NUMBER.size)
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
