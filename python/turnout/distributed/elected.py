"""Sampling with users who report sets of items, some of whom are elected to add up."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._rounding import written_up
from turnout._types import Bytes
from turnout._values import settle
from turnout.accounting import TwoStageCountSampling
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.deployment import telling_sentence
from turnout.distributed.sampled import Sampled
from turnout.errors import InvalidValueError

#: One elected user would see what is reported to it.
_FEWEST_ELECTED = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elected(Sampled):
    """A mechanism in which users report sets of items, and elected users add up.

    :class:`~turnout.distributed.TwoStageSampling` documents the parameters.
    """

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
                f"collusion_bound must be at least max_colluding_users = {colluding}, or "
                f"elected above it: otherwise all {least} users elected for an item might "
                "collude and see its reports"
            )
        if least < self._contributors:
            raise InvalidValueError(
                f"elected must be at least {self._contributors}, the elected users that add "
                f"dummies, got {self.elected}"
            )
        if least > self.users - self.max_missing_users:
            raise InvalidValueError(
                f"users must be at least {least + self.max_missing_users}, got "
                f"{self.users}: {least} users are elected for each item (see "
                "collusion_bound, elected, or with dummies max_colluding_users and "
                "honest_aggregators), and others may be missing"
            )

    @property
    def _least_elected(self) -> int:
        """The smallest number of users that are elected for an item."""
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
        """The privacy accounting of one round, against those who know all sets and counts."""
        return self._accounting(self._rate)

    def _adders(self) -> str:
        return "elected users"

    def _title(self) -> str:
        kind = "uniform"
        if self.gamma is not None:
            kind = f"adaptive (gamma {repr(self.gamma).removesuffix('.0')})"
        return f"two-stage sampling, {self.reported} items reported, {kind}"

    def _dummies_of(self) -> str:
        count = self._contributors
        who = "the first user" if count == 1 else f"each of the first {count} users"
        return f"by {who} elected for it"

    def _told(self) -> list[tuple[str, str]]:
        learns = "nothing about a person's item from the items reported (epsilon 0)"
        if self.gamma is not None:
            most = written_up(self.reporting_epsilon)
            learns = f"at most epsilon {most} from the items reported"
        return [*super()._told(), ("first server", f"learns {learns}")]

    def _facts(self) -> dict[str, Any]:
        return {
            **super()._facts(),
            "own_probability": self.own_probability,
            "sampling_probability": self._counted_rate,
            "reporting_epsilon": self.reporting_epsilon,
        }

    def _trust(self) -> list[str]:
        sentences = ["no other user exploits or discloses its own randomness or shares"]
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
        """The probability p_chi that the set of a participating user contains its own item."""
        return self._sampler.own_probability

    @property
    def _counted_rate(self) -> float:
        """The probability q_chi = p p_chi that a user is counted for its item."""
        return self._rate * self.own_probability

    @property
    def reporting_epsilon(self) -> float:
        """The exact local guarantee eps* of a set, rounded up; 0 for uniform reporting.

        That of the realised gamma. The paper's log gamma (Theorem 3.3) is an upper bound.
        """
        return self._sampler.local_epsilon(self._rate)

    def collusion_probability(self, colluding: int, reporters: int) -> float:
        """Compute the probability that all users elected for an item collude.

        Parameters
        ----------
        colluding
            The number of colluding users.
        reporters
            The number m_j of users that report the item.

        Returns
        -------
        float
            ``C(colluding, e) / C(n, e)`` if e users are elected; 0 if that is impossible, as with
            ``collusion_bound >= colluding``. This holds for one election of an item. A round that
            loses users has further elections, at most ``max_missing_users``.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a number is out of range.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.distributed.TwoStageSampling(4, 10, reported=2, rate=0.5, floor=2)
        >>> mechanism.collusion_probability(colluding=3, reporters=2)  # 3/10 * 2/9
        0.06666666666666667
        """
        bad = _arguments.integer("colluding", colluding, least=0, most=self.users)
        count = _arguments.integer("reporters", reporters, least=0, most=self.users)
        committee = self._committee_size(count)
        return math.comb(bad, committee) / math.comb(self.users, committee)

    def _committee_size(self, reporters: int) -> int:
        """Return the number of users elected for an item with this many reporters."""
        return self.elected if self.elected is not None else max(reporters, self._least_elected)

    @property
    def _contributors(self) -> int:
        """The number of elected users of each item that add a full set of dummies."""
        if not self.dummies:
            return 0
        # Even a user that colludes with nobody knows its own.
        return max(self.max_colluding_users, 1) + self.honest_aggregators

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


def checked_gamma(gamma: object) -> float:
    """Check gamma: how many times as likely a set with the user's own item is."""
    checked = _arguments.number("gamma", gamma)
    if not 1.0 < checked < math.inf:
        raise InvalidValueError(f"gamma must be a finite number above 1, got {checked}")
    return checked
