"""The content of a page about sums that parties added up without seeing answers."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from turnout._label_texts import number_of
from turnout.bounds import Bounds
from turnout.collecting.keys import Key
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.distributed.results import CostLedger, Costs
from turnout.distributed.verified_sum import VerifiedSum
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.mean.estimate import MeanEstimate
from turnout.reporting.collected import Card, Collected, Rows, asked_card, versions, without
from turnout.reporting.frequencies import Shares, SharesTogether, telling_shares
from turnout.reporting.means import Means
from turnout.reporting.telling import Telling, View
from turnout.reporting.words import file_size, percent, rounded_up

#: At which delta epsilon is said of a mechanism whose noise was given by itself.
_DELTA = 1e-6


def _tiny(delta: float) -> str:
    """Format a small probability with three digits, rounded up.

    Examples
    --------
    >>> _tiny(1e-6), _tiny(0.00012345)
    ('1e-6', '1.24e-4')
    """
    rounded = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING).create_decimal(repr(delta))
    return f"{rounded.normalize():e}"


class _OfSums(Shares):
    """The description of shares that come from sums with noise."""

    noise: ClassVar[str] = "The noise of the sums is in the shares"


class _TogetherOfSums(SharesTogether, _OfSums):
    """The description of shares of combinations of answers from sums with noise."""


class _MeanOfSums(Means):
    """The description of a mean that comes from a sum with noise."""

    noise: ClassVar[str] = "The noise of the sum is in the mean"

    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals cover, and the sum."""
        found = estimate.sum_interval(**view.scope)
        return (
            f"{super().words(estimate, view)} The sum of all numbers is estimated as "
            f"{estimate.sum:,.0f}: between {found.low:,.0f} and {found.high:,.0f}."
        )


def telling_sums(domain: Any) -> Telling:
    """Return the description of shares or a mean that come from sums with noise."""
    if isinstance(domain, Bounds):
        return _MeanOfSums()
    return _TogetherOfSums() if isinstance(telling_shares(domain), SharesTogether) else _OfSums()


@dataclass(frozen=True, eq=False)
class OfRounds(Collected):
    """The rounds of parties that add up: one, or one for each group.

    Attributes
    ----------
    estimates
        What each gave: under the empty key if there is one.
    costs
        What each role did in each, where that is known.
    names
        The columns of the groups.
    without
        How many rows do not count.
    """

    estimates: Mapping[Key, FrequencyEstimate | MeanEstimate]
    costs: Sequence[CostLedger] = ()
    names: tuple[str, ...] = ()
    without: LeftOut = NOTHING

    @property
    def _mechanisms(self) -> list[Any]:
        return [one.plan for one in self.estimates.values()]

    @property
    def _first(self) -> Any:
        return self._mechanisms[0]

    @property
    def _of_numbers(self) -> bool:
        """Whether numbers were added up, and not votes."""
        return isinstance(self._first, VerifiedSum)

    @property
    def _users(self) -> int:
        return sum(one.nodes for one in self.estimates.values())

    @property
    def left_out(self) -> LeftOut:
        """The number of rows that do not count."""
        return self.without

    def _promise(self) -> tuple[float, float]:
        """Return the weakest epsilon and delta of what is published about a person."""
        found = []
        for mechanism in self._mechanisms:
            delta = _DELTA if mechanism.delta is None else mechanism.delta
            epsilon = mechanism.epsilon
            if epsilon is None:
                epsilon = mechanism.accounting.epsilon(delta, mechanism.adjacency)
            found.append((float(epsilon), float(delta)))
        return max(epsilon for epsilon, _ in found), max(delta for _, delta in found)

    def _privacy(self) -> str:
        epsilon, delta = self._promise()
        said = f"ε = {rounded_up(epsilon, 4) if math.isfinite(epsilon) else '∞'}"
        return said if not delta else f"{said}, δ = {_tiny(delta)}"

    @property
    def _trusted(self) -> bool:
        """Whether a server sees all answers."""
        return not self._first._has_messages

    def _parties(self) -> str:
        """Name the parties that add up."""
        return str(self._first._adders())

    def _adding(self) -> str:
        """State what the parties do."""
        return "counted the answers, which it saw" if self._trusted else "added up secret shares"

    def cards(self) -> list[Card]:
        """State how many people were counted, by whom, and which epsilon."""
        domain = self._first.domain
        return [
            (
                f"{self._users:,}",
                f"{'person, who is' if self._users == 1 else 'people, all of whom are'} counted",
            ),
            asked_card(telling_sums(domain), domain),
            (self._parties(), self._adding()),
            (self._privacy(), "privacy of each person in what is published"),
        ]

    def lead(self) -> str:
        """State how answers were counted."""
        rounds = "" if len(self.estimates) == 1 else f", in {len(self.estimates):,} rounds"
        how = "by a trusted server" if self._trusted else "from secret shares"
        what = "A mean" if self._of_numbers else "Counts"
        return self._with_left_out(f"{what} with differential privacy, made {how}{rounds}.")

    def statements(self) -> list[str]:
        """State what the noise protects, and the assumptions."""
        epsilon, delta = self._promise()
        change = "gave another number" if self._of_numbers else "gave another answer"
        if self._first.adjacency != "replace":
            change = "had not taken part"
        # Never less than it is: a float of exp() may be.
        ratio = math.exp(epsilon) * (1 + 1e-12) if epsilon < 700 else math.inf
        odds = rounded_up(ratio, 4) if math.isfinite(ratio) else "any number of"
        times = f"no more than {odds} times as likely as if a person {change}"
        but = "" if not delta else f", but for a probability of δ = {_tiny(delta)}"
        found = [f"What is published is {times} ({self._privacy()}){but}."]
        if not delta and math.isfinite(ratio):
            wins = rounded_up(100 * ratio / (1 + ratio), 3)
            found.append(
                "As a bet: somebody thinks that two possible answers of a person are equally "
                "likely. Before the numbers are published they win a bet on "
                "the answer 50 times in 100. Afterwards "
                f"they win it at most {wins} times in 100."
            )
        rests = dict.fromkeys(
            sentence
            for mechanism in self._mechanisms
            for sentence in mechanism.guarantee.assumptions
        )
        found += [f"It rests on this: {sentence}." for sentence in rests]
        if self.names:
            found.append(
                f"The columns of the groups ({', '.join(self.names)}) are not protected: the "
                "number of people in each group is published exactly."
            )
        found.append(
            "The guarantee covers one round. If a person is counted again, in this collection or "
            "in another, the sum of the ε of these rounds protects them."
        )
        return found

    def took_part(self) -> Rows:
        """State how many people were counted."""
        rows: Rows = [
            ("people who count (users)", f"{self._users:,}"),
            ("left out, and not in any other number", str(self.left_out)),
            ("added up by", self._parties()),
        ]
        missing = sum(each.users for each in self._mechanisms) - self._users
        if missing:
            rows.insert(1, ("users whose shares did not arrive", f"{missing:,}"))
        if self.names:
            rows.append((f"groups by {', '.join(self.names)}", f"{len(self.estimates):,}"))
        return rows

    def cost(self) -> Rows:
        """State what one party of each role sends, or a user if only that is known."""
        roles = dict.fromkeys(role for ledger in self.costs for role in ledger.totals)
        rows: Rows = []
        for role in roles:
            ledgers = [ledger for ledger in self.costs if role in ledger.totals]
            total = sum((ledger.totals[role] for ledger in ledgers), Costs())
            parties = sum(ledger.parties[role] for ledger in ledgers)
            if total.messages:
                each = f"{total.messages / parties:,.4g} messages"
                sent = f"{each}, {file_size(total.bytes / parties)}"
                rows.append((f"sent by each {role} (of {parties:,})", sent))
        if not rows:
            size = self._first._share_bytes
            rows = [("sent by each user", "varies" if size is None else file_size(size))]
        return rows

    def making(self) -> Rows:
        """Name the mechanism and its noise."""
        several = {repr(each.accounting) for each in self._mechanisms}
        largest = max(each._error()[0] for each in self._mechanisms)
        of, error = "a share", percent(largest, 3)
        if self._of_numbers:
            of, error = "the mean", f"{largest:.3g}"
        rows: Rows = [
            ("mechanism", self._first.name.replace("_", " ")),
            ("privacy", self._privacy()),
            ("accounting", "; ".join(sorted(several)[:3]) + ("; …" if len(several) > 3 else "")),
            ("neighbouring data", self._first.adjacency.replace("_", " ")),
            (f"error of {of}, expected", f"{error} at most"),
            ("field", f"{self._first._modulus:,} elements"),
        ]
        if len(self.estimates) == 1:
            rows.append(("plan (SHA-256)", self._first.fingerprint))
        return [*rows, versions()]

    def basis(self) -> str:
        """State how many people were counted, by whom, and the epsilon."""
        people = number_of(self._users, "person", "people")
        counted = "who was counted" if self._users == 1 else "all of whom were counted"
        return (
            f"The estimates are about {people}, {counted}{without(self.left_out)}. "
            f"{self._parties().capitalize()} {self._adding()}, and what "
            f"is published has differential privacy ({self._privacy()})."
        )
