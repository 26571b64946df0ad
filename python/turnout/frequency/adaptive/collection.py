"""A collection in two rounds: its parameters, the rates of the second, and the server's side."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import logarithm_up
from turnout._seeds import derived
from turnout._types import Floats
from turnout._values import settle
from turnout.collecting.kind import collected
from turnout.collecting.plan import Plan
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError
from turnout.frequency.adaptive.second import SecondRound, rates_for_rare, second_round_ratios
from turnout.frequency.adaptive.tallies import Spending, TwoRoundTallies
from turnout.frequency.choice import Factory, make_oracle
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.rounds import Rounds, RoundsProtocol
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Everyone, Participation

#: Shares of nodes are realised to 2^-62.
_SCALE = 2**62


@dataclass(frozen=True, eq=False)
class TwoRoundCollection(RoundsProtocol):
    """Estimate roughly in a first round, then ask more nodes with rare answers.

    The first round has a common rate. In the second, a node that holds ``x`` takes part with a
    probability in inverse proportion to the frequency that the first round found for ``x``, within
    limits. The server sees who takes part, so participation costs budget: see
    :func:`turnout.frequency.adaptive.second_round_ratios`. The second randomizer gets the rest of
    the total epsilon. Nodes that reported in the first round are left out of the second, so each
    round may spend the whole budget.

    Two rounds are better for rare answers if sampling, not randomization, limits the error: at a
    large epsilon (6 and more in the study of the documentation) and with few reports. In that study
    one round is better for every answer at epsilon up to 2, and for frequent answers at every
    epsilon.

    Parameters
    ----------
    domain
        The answers, or their number.
    epsilon
        The budget of a node, whichever round it reports in, participation included.
    first_rate, second_rate
        The expected share of all nodes that report in the first, and in the second round.
    low, high
        The limits of the rates of the second round.
    oracle
        A function that makes a randomizer from an epsilon and a domain, or the name of one of
        turnout's oracles (default: ``"direct_encoding"``).

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, the rates cannot be reached within their limits, or the
        limits leave nothing of the budget for the randomizer.

    Examples
    --------
    >>> collection = TwoRoundCollection(
    ...     3, epsilon=6.0, first_rate=0.05, second_rate=0.05, low=0.02, high=0.5
    ... )
    >>> tallies = collection.collect([0] * 9000 + [1] * 900 + [2] * 100, seed=1)
    >>> tallies.spent.total <= 6.0
    True
    >>> rates = tallies.second.round.rates
    >>> bool(rates[0] < rates[1] < rates[2] == 0.5)
    True
    >>> tallies.estimate().interval(0.99).contains([0.9, 0.09, 0.01])
    array([ True,  True,  True])
    """

    domain: Any
    _: KW_ONLY
    epsilon: float
    first_rate: float
    second_rate: float
    low: float
    high: float
    oracle: Factory | str = "direct_encoding"

    def __post_init__(self) -> None:
        """Check the fields, and all that could fail in the second round."""
        settle(
            self,
            domain=domain_of("domain", self.domain),
            epsilon=_arguments.number("epsilon", self.epsilon),
            **{
                name: _arguments.probability(name, getattr(self, name))
                for name in ("first_rate", "second_rate", "low", "high")
            },
        )
        if self.low > self.high:
            raise InvalidValueError(f"low must be at most high = {self.high}, got {self.low}")
        if self.first_rate == 1.0:
            raise InvalidValueError(
                "first_rate must be below 1: nobody reports twice, so somebody must be left to ask"
            )
        self._first_oracle  # noqa: B018 (made, or refused)
        self._check_second()

    def _check_second(self) -> None:
        """Refuse parameters that would fail in the second round, before the first one starts."""
        size = self.domain.size
        target = self._target
        if target > 1.0:
            raise InvalidValueError(
                f"second_rate must be at most {1.0 - self.first_rate:.6g}, the share of nodes "
                f"that are left, got {self.second_rate}"
            )
        high = self._highest
        if not self.low <= target <= high:
            part = self.second_rate / target
            lowered = "" if high == self.high else ", the largest at which silence fits in epsilon"
            raise InvalidValueError(
                f"second_rate must be from {self.low * part:.6g} to {high * part:.6g}: the mean "
                f"of rates from low = {self.low} to {high:.6g}{lowered}; got {self.second_rate}"
            )
        self._round(np.append(np.full(size - 1, self.low), high))

    @cached_property
    def _first_oracle(self) -> FrequencyOracle:
        """The randomizer of the first round."""
        return make_oracle("oracle", self.oracle, self.epsilon, self.domain)

    @property
    def _first_participation(self) -> Participation:
        """Who takes part in the first round."""
        return Bernoulli(self.first_rate)

    @property
    def _target(self) -> float:
        """The mean rate among the nodes asked in the second round."""
        return self.second_rate / (1.0 - self.first_rate)

    @property
    def _highest(self) -> float:
        """The upper limit of the rates, lowered so that silence stays within the budget."""
        if self.low == self.high:
            return self.high
        # (1 - low) / (1 - high) <= e^epsilon, with a margin for rounding; the realised ratio is
        # checked in exact numbers.
        most = 1.0 - (1.0 - self.low) * float(np.exp(-self.epsilon)) * (1.0 + 1e-9)
        return max(self.low, min(self.high, most))

    def second_round(self, first: Tally) -> SecondRound:
        """Compute the second round from the tally of the first.

        Parameters
        ----------
        first
            The tally of the first round's plan, which :meth:`rounds` provides. Or the tally of only
            the group that was asked first, in which everyone reports.

        Returns
        -------
        SecondRound
            The second round with its rates and its randomizer.

        Raises
        ------
        PlanMismatchError
            If the tally was made under another plan.
        EstimatorError
            If the first round has no reports.
        InvalidTypeError
            If ``first`` is not a tally.
        """
        self._check_first(first)
        rates = rates_for_rare(
            first.estimate().frequencies,
            rate=self._target,
            low=self.low,
            high=self._highest,
        )
        return self._round(rates)

    def _check_first(self, first: Any) -> None:
        """Refuse a tally that is not of the first round."""
        _arguments.instance("first", first, Tally, "a Tally")
        of_group = first.participation.uniform_rate == 1.0
        participation = Everyone() if of_group else self._first_participation
        Plan(self._first_oracle, participation)._check_same(first.plan, "first")

    def _spending(self, second: SecondRound) -> Spending:
        """Return what both rounds spend.

        Parameters
        ----------
        second
            What :meth:`second_round` decided on.

        Returns
        -------
        Spending
            The total, and its parts.
        """
        report, silence = second._ratios
        return Spending(
            self._first_oracle.realized_epsilon,
            second.oracle.realized_epsilon,
            logarithm_up(report),
            logarithm_up(silence),
        )

    def _round(self, rates: Floats) -> SecondRound:
        """Find the randomizer that the budget leaves, and prove in exact numbers that it fits."""
        least, most = float(rates.min()), float(rates.max())
        domain = Domain.from_integers(self.domain.size)
        epsilon = self.epsilon - float(np.log(most / least))
        step = 0.0
        while epsilon - step > 0.0:
            oracle = make_oracle("oracle", self.oracle, epsilon - step, domain)
            report, silence = second_round_ratios(oracle.realized_ratio, rates)
            if logarithm_up(max(report, silence)) <= self.epsilon:
                return SecondRound(self.epsilon, self.domain, oracle=oracle, rates=rates)
            if logarithm_up(silence) > self.epsilon:
                break
            step = 2.0 * step + 1e-15 * self.epsilon
        raise InvalidValueError(
            f"low and high must leave something of the budget: rates from {least:.4g} to "
            f"{most:.4g} alone spend {float(np.log(most / least)):.4g} of {self.epsilon:.4g}"
        )

    def rounds(self) -> TwoRounds:
        """Begin the rounds: return the server's side, in which each round is a plan.

        Returns
        -------
        TwoRounds
            The rounds: it provides their plans, takes their tallies, and has the result.
        """
        return TwoRounds(self)

    def collect(self, values: Any, *, seed: int | None = None) -> TwoRoundTallies:
        """Run both rounds with all nodes in this process.

        Parameters
        ----------
        values
            One answer for each node.
        seed
            For tests and simulations only, as for :meth:`FrequencyOracle.randomize`.

        Returns
        -------
        TwoRoundTallies
            The tallies of both rounds, and what they spent.

        Raises
        ------
        TurnoutError
            As for :meth:`FrequencyOracle.randomize`; :class:`~turnout.errors.EstimatorError` if the
            first round has no reports.
        """
        codes = self.domain.encode(values)
        checked = _arguments.seed(seed)
        coins, one, two = (derived(checked, number) for number in range(3))
        # Who is asked first depends on no answer, and may be known.
        chosen = _core.uniforms(codes.size, coins) < self.first_rate
        counts = self._first_oracle.draw_counts(codes[chosen], Everyone(), one)
        first = self._first_tally(counts.sums, counts.received, codes.size)
        second: Any = collected(self.second_round(first), codes[~chosen], Everyone(), two)
        return TwoRoundTallies(self, first, second)

    def simulate(self, true_counts: Any, *, seed: int | None = None) -> TwoRoundTallies:
        """Draw tallies with the distribution of :meth:`collect`, from true counts alone.

        Parameters
        ----------
        true_counts
            The number of nodes that hold each answer.
        seed
            As for :meth:`collect`.

        Returns
        -------
        TwoRoundTallies
            The tallies of both rounds, and what they spent.

        Raises
        ------
        TurnoutError
            If the counts are no counts, or the first round has no reports.
        """
        counts = _arguments.counts("true_counts", true_counts, self.domain.size).astype(np.int64)
        checked = _arguments.seed(seed)
        coins, one, two = (derived(checked, number) for number in range(3))
        chosen = np.random.default_rng(coins).binomial(counts, self.first_rate)
        support = self._first_oracle.simulate(chosen, seed=one).support
        first = self._first_tally(support, int(chosen.sum()), int(counts.sum()))
        second: Any = self.second_round(first).simulate(counts - chosen, seed=two)
        return TwoRoundTallies(self, first, second)

    def _first_tally(self, support: Any, received: int, nodes: int) -> Tally:
        return Tally(Plan(self._first_oracle, self._first_participation), support, received, nodes)


class TwoRounds(Rounds[FrequencyOracle, TwoRoundTallies]):
    """The server's state of two rounds: close each round with its tally.

    :meth:`TwoRoundCollection.rounds` returns it. A random part of the nodes is asked in each round
    (:meth:`assign`), and everyone who is asked first reports.

    Parameters
    ----------
    protocol
        The collection.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> values = np.repeat([0, 1, 2], [9000, 900, 100])
    >>> collection = tn.TwoRoundCollection(
    ...     3, epsilon=6.0, first_rate=0.05, second_rate=0.05, low=0.02, high=0.5
    ... )
    >>> under_way = collection.rounds()
    >>> group = under_way.assign(values.size, seed=1)
    >>> for current in under_way:                       # each is a plan: under_way.plan()
    ...     mine = values[group == under_way.number]
    ...     under_way.close(current.collect(mine, seed=2))
    >>> under_way.result.estimate().interval(0.99).contains([0.9, 0.09, 0.01])
    array([ True,  True,  True])
    """

    name = "two_rounds"
    _protocol_type = TwoRoundCollection

    def __init__(self, protocol: TwoRoundCollection) -> None:
        super().__init__(protocol, protocol._first_oracle)

    @property
    def _shares(self) -> list[int]:
        """How many of the nodes are asked in each round."""
        first = int(Fraction(self.protocol.first_rate) * _SCALE)
        return [first, _SCALE - first]

    @property
    def participation(self) -> Participation:
        """Everyone: in the second round the randomizer decides who reports."""
        return Everyone()

    def plan(self, participation: Participation | float | None = None) -> Plan:
        """Return the plan of the open round, with its number as the serial.

        Parameters
        ----------
        participation
            None: the collection determines who takes part.

        Returns
        -------
        Plan
            The plan, which is all that a node needs.

        Raises
        ------
        ProtocolError
            If the rounds are over.
        InvalidValueError
            If a participation is given.
        """
        if participation is not None:
            raise _arguments.invalid(
                "participation must be left out, the rates of the collection say who takes part",
                participation,
            )
        return super().plan()

    def _following(self, tally: Any) -> SecondRound | None:
        """Decide on the second round, or put both together."""
        collection: TwoRoundCollection = self.protocol
        if not self._closed:
            return collection.second_round(tally)
        result = TwoRoundTallies(collection, self._closed[0], tally)
        # Tallies that do not go together are refused here, and nothing has changed.
        result.estimate()
        self._result = result
        return None
