"""The second round, in which the rate of taking part depends on the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout.domain import Domain
from turnout.errors import InvalidValueError, PlanMismatchError
from turnout.frequency.adaptive.spending import Spending
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Personalized

__all__ = ["SecondRound", "SecondTally"]

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SecondTally:
    """How many reports of a second round support each answer.

    Attributes
    ----------
    round
        The round; tallies of different nodes in the same round add up with ``+``.
    support
        uint64, one for each answer.
    received
        The number of reports.
    asked
        The number of nodes that were asked, reporting or not.
    """

    round: SecondRound
    support: Counts
    received: int
    asked: int

    def __post_init__(self) -> None:
        """Check the numbers."""
        _arguments.instance("round", self.round, SecondRound, "a SecondRound")
        asked = _arguments.integer("asked", self.asked, least=0, most=2**64 - 1)
        _arguments.integer("received", self.received, least=0, most=asked)
        support = _arguments.counts("support", self.support, self.round.domain.size)
        if support.max() > self.received:
            raise InvalidValueError(
                f"support must be at most received = {self.received}, got {support.max()}"
            )
        support.flags.writeable = False
        object.__setattr__(self, "support", support)

    def __add__(self, other: object) -> SecondTally:
        """Add the tally of other nodes."""
        if not isinstance(other, SecondTally):
            return NotImplemented
        if other.round is not self.round and other.round != self.round:
            raise PlanMismatchError("other was made in another round: its rates or oracle differ")
        return SecondTally(
            self.round,
            self.support + other.support,
            self.received + other.received,
            self.asked + other.asked,
        )


class SecondRound:
    """What the second round asks for; made by :meth:`TwoRoundCollection.second_round`.

    A node that holds ``x`` takes part with probability ``pi_x``. The probabilities of the answers
    are public; which of them a node used is what it holds, so that reports come without it.

    Parameters
    ----------
    oracle
        The randomizer; with hidden participation over one code more than the domain has.
    domain
        The answers.
    rates
        The probability of taking part for each answer.
    spent
        What both rounds spend.
    hidden
        Whether a node that does not take part reports the last code of the oracle.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If the arguments do not fit each other.
    """

    __slots__ = ("_domain", "_hidden", "_oracle", "_rates", "_spent")

    def __init__(
        self,
        oracle: FrequencyOracle,
        domain: Domain,
        rates: npt.ArrayLike,
        spent: Spending,
        *,
        hidden: bool = False,
    ) -> None:
        self._oracle = _arguments.instance("oracle", oracle, FrequencyOracle, "an oracle")
        self._domain = _arguments.instance("domain", domain, Domain, "a Domain")
        self._spent = _arguments.instance("spent", spent, Spending, "a Spending")
        self._hidden = bool(hidden)
        if oracle.support_dtype.kind != "u":
            raise InvalidValueError(
                f"oracle must count the reports that support an answer, got {oracle.name}, whose "
                "reports hold scores"
            )
        codes = domain.size + self._hidden
        if oracle.domain.size != codes:
            raise InvalidValueError(
                f"oracle must be of {codes} codes for a domain of {domain.size}, got "
                f"{oracle.domain.size}"
            )
        self._rates = _arguments.frequencies("rates", rates, domain.size).copy()
        wrong = ~((self._rates >= 2.0**-30) & (self._rates <= 1.0))
        if wrong.any():
            position = int(np.flatnonzero(wrong)[0])
            raise InvalidValueError(
                f"rates[{position}] must be in [2^-30, 1], got {self._rates[position]}"
            )
        self._rates.flags.writeable = False

    @property
    def oracle(self) -> FrequencyOracle:
        """The randomizer."""
        return self._oracle

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._domain

    @property
    def rates(self) -> Floats:
        """The probability of taking part for each answer; read-only, realised exactly."""
        return self._rates

    @property
    def spent(self) -> Spending:
        """What both rounds spend."""
        return self._spent

    @property
    def hidden(self) -> bool:
        """Whether a node that does not take part sends a dummy report instead of nothing."""
        return self._hidden

    def collect(self, values: Any, *, seed: int | None = None) -> SecondTally:
        """Ask nodes, and count their reports.

        Parameters
        ----------
        values
            The answers of the nodes that are asked: with ``once=True`` those that did not report in
            the first round.
        seed
            For tests and simulations only, as for :meth:`FrequencyOracle.randomize`.

        Returns
        -------
        SecondTally
            The support of each answer.

        Raises
        ------
        TurnoutError
            As for :meth:`FrequencyOracle.randomize`.
        """
        return self.collected(self._domain.encode(values), _arguments.seed(seed))

    def collected(self, codes: npt.NDArray[Any], checked: int | None) -> SecondTally:
        """Ask the nodes that hold these codes, which are known to be of the domain."""
        if self._hidden:
            kept = np.where(self._coins(codes, checked), codes.astype(np.int64), self._domain.size)
            tally = self._oracle.collect(kept, seed=checked)
            return self._tallied(tally.support, tally.received, codes.size)
        # The kernel gives the rate of each report too: it would tell the answer, and stays here.
        rates = Personalized(self._rates[codes])
        reports = self._oracle.draw_reports(codes, rates, checked).reports
        counts = self._oracle.count_reports(reports)
        return self._tallied(counts.sums, counts.received, codes.size)

    def simulate(self, true_counts: Any, *, seed: int | None = None) -> SecondTally:
        """Draw a tally with the law of :meth:`collect`, from the true counts of the nodes asked.

        Parameters
        ----------
        true_counts
            How many of the nodes asked hold each answer.
        seed
            As for :meth:`collect`.

        Returns
        -------
        SecondTally
            The support of each answer.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the counts are no counts.
        """
        counts = _arguments.counts("true_counts", true_counts, self._domain.size)
        checked = _arguments.seed(seed)
        generator = np.random.default_rng(None if checked is None else [checked, 1])
        present = generator.binomial(counts.astype(np.int64), self._rates)
        asked = sum(counts.tolist())
        if self._hidden:
            present = np.append(present, asked - int(present.sum()))
        tally = self._oracle.simulate(present, seed=checked)
        return self._tallied(tally.support, tally.received, asked)

    def counts(self, tally: SecondTally) -> Floats:
        """Estimate how many of the nodes asked hold each answer, without bias.

        ``F_i = (C(i) - q S) / ((p - q) pi_i)`` from the support ``C`` and the number ``S`` of
        reports: ``E C(i) = q sum_x F_x pi_x + (p - q) F_i pi_i``. With hidden participation ``S``
        is the number of nodes asked.
        """
        p, q = self._oracle.support_probabilities
        result: Floats = (tally.support - tally.received * q) / ((p - q) * self._rates)
        return result

    def variance(self, true_counts: Any) -> Floats:
        """Compute the exact variance of :meth:`counts` for the given nodes.

        Parameters
        ----------
        true_counts
            How many of the nodes asked hold each answer.

        Returns
        -------
        numpy.ndarray
            One variance for each answer, float64, in squared nodes.

        Notes
        -----
        A node that holds x contributes to ``C(i) - q S`` a term with mean ``pi_x (r - q)`` and mean
        square ``pi_x (r (1 - 2q) + q^2)``, where ``r`` is p if x = i and q otherwise.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the counts are no counts.
        """
        counts = _arguments.counts("true_counts", true_counts, self._domain.size)
        held = counts.astype(np.float64)
        return self.variance_of(held, float(held @ self._rates), float(held.sum()))

    def variance_of(self, held: Floats, present: float, asked: float) -> Floats:
        """Give the variance where ``held`` nodes hold an answer and ``present`` take part."""
        p, q = self._oracle.support_probabilities
        d, pi = p - q, self._rates
        own = q + d * pi if self._hidden else pi * (p * (1 - 2 * q) + q * q)
        if self._hidden:
            noise = (asked - held) * q * (1 - q) + held * own * (1 - own)
        else:
            noise = (present - held * pi) * q * (1 - q) + held * (own - (pi * d) ** 2)
        result: Floats = noise / (d * pi) ** 2
        return result

    def _tallied(self, support: Counts, received: int, asked: int) -> SecondTally:
        return SecondTally(self, support[: self._domain.size], received, asked)

    def _coins(self, codes: npt.NDArray[Any], seed: int | None) -> npt.NDArray[np.bool_]:
        """Whether each node takes part: exact coins, drawn for the nodes of one answer at once."""
        coins = np.zeros(codes.size, dtype=np.bool_)
        seeds = seeds_of(seed, self._domain.size)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(self._domain.size + 1))
        for code, rate in enumerate(self._rates.tolist()):
            nodes = order[bounds[code] : bounds[code + 1]]
            if nodes.size:
                drawn = _core.bernoulli_counts(1, rate, nodes.size, seeds[code])
                coins[nodes] = drawn > 0
        return coins

    def __eq__(self, other: object) -> bool:
        """Compare what nodes are asked for."""
        if not isinstance(other, SecondRound):
            return NotImplemented
        return (
            (self._oracle, self._domain, self._hidden, self._spent)
            == (other._oracle, other._domain, other._hidden, other._spent)
        ) and np.array_equal(self._rates, other._rates)

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((self._oracle, self._domain, self._hidden, self._rates.tobytes()))

    def __repr__(self) -> str:
        """Show the oracle, the range of the rates and what is spent."""
        low, high = self._rates.min(), self._rates.max()
        return (
            f"SecondRound({self._oracle!r}, rates {low:.4g} to {high:.4g}, "
            f"spent={self._spent.total:.6g})"
        )


def seeds_of(seed: int | None, number: int) -> list[int | None]:
    """Derive independent seeds from one, or none from none."""
    if seed is None:
        return [None] * number
    state = np.random.SeedSequence(seed).generate_state(number, np.uint64)
    return [int(word) for word in state]
