"""Two rounds of collection."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._rounding import logarithm_up, rounded_down
from turnout.collecting.plan import Plan
from turnout.domain import Domain, domain_of
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.frequency.adaptive.rates import rates_for_rare
from turnout.frequency.adaptive.second import SecondRound, SecondTally, seeds_of
from turnout.frequency.adaptive.spending import Spending, second_round_ratios
from turnout.frequency.candidates import checked_oracle, registered
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Everyone, Participation

__all__ = ["TwoRoundCollection", "TwoRoundTallies"]

Floats = npt.NDArray[np.float64]
MakeOracle = Callable[[float, Domain], FrequencyOracle]


@dataclass(frozen=True, eq=False)
class TwoRoundTallies:
    """What both rounds gave.

    Attributes
    ----------
    collection
        The collection.
    first
        The tally of the first round.
    second
        That of the second.
    """

    collection: TwoRoundCollection
    first: Tally
    second: SecondTally

    @property
    def spent(self) -> Spending:
        """The budget that was really spent."""
        return self.second.round.spent

    @property
    def received(self) -> int:
        """The reports of both rounds: what the collection cost."""
        return self.first.received + self.second.received

    def estimate(self, weight: float | None = None) -> FrequencyEstimate:
        """Estimate the frequencies: see :meth:`TwoRoundCollection.estimate`."""
        return self.collection.estimate(self.first, self.second, weight=weight)


class TwoRoundCollection:
    """Estimate roughly, then ask more of those who hold a rare answer.

    The first round has a common rate. In the second a node that holds ``x`` takes part with a
    probability in inverse proportion to the frequency that the first round found for ``x``, within
    limits. The server sees who takes part, so this costs budget: see
    :func:`turnout.frequency.adaptive.second_round_ratios`. The epsilon of the second randomizer is
    what is left of the total.

    It pays for rare answers where sampling, not randomization, is what limits the error: at a large
    epsilon (6 and more in the study of the documentation) and few reports. At epsilon up to 2 one
    round is better for every answer there, and for frequent answers at every epsilon.

    Parameters
    ----------
    domain
        The answers, or their number.
    epsilon
        The total budget of a node, both rounds and their participation included.
    first_rate, second_rate
        The expected share of all nodes that report in the first, and in the second round.
    low, high
        The limits of the rates of the second round.
    once
        Whether those who reported in the first round are left out of the second (default). Then
        each round may spend the whole budget; otherwise the rounds share it.
    share
        The first round's share of epsilon if ``once`` is False.
    hidden
        Whether nodes that do not take part in the second round send the randomized report of a
        dummy answer. Then participation costs nothing, ``high`` may be 1, every node asked sends,
        and nothing is gained over one round of everyone: the dummies add the noise that
        participation was to save. Here to show that.
    power
        How strongly the rates follow the frequencies, as in
        :func:`turnout.frequency.adaptive.rates_for_rare`.
    oracle
        Makes a randomizer from an epsilon and a domain, or is the name of one of turnout's; direct
        encoding by default.

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

    def __init__(
        self,
        domain: Domain | Sequence[Hashable] | int,
        *,
        epsilon: float,
        first_rate: float,
        second_rate: float,
        low: float,
        high: float,
        once: bool = True,
        share: float = 0.5,
        hidden: bool = False,
        power: float = 1.0,
        oracle: MakeOracle | str | None = None,
    ) -> None:
        if isinstance(oracle, str):
            known = registered()
            _arguments.choice("oracle", oracle, tuple(known))
            oracle = known[oracle]
        if oracle is None:
            oracle = DirectEncoding
        if not callable(oracle):
            raise InvalidTypeError(
                "oracle must be a name or callable with an epsilon and a domain, got "
                f"{_arguments.shown(oracle)}"
            )
        self.oracle_maker = oracle
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._first_rate = _arguments.probability("first_rate", first_rate)
        self._second_rate = _arguments.probability("second_rate", second_rate)
        self._low = _arguments.probability("low", low)
        self._high = _arguments.probability("high", high)
        self._once = _flag("once", once)
        self._hidden = _flag("hidden", hidden)
        self._power = power
        if self._low > self._high:
            raise InvalidValueError(f"low must be at most high = {high}, got {low}")
        if self._once and self._first_rate == 1.0:
            raise InvalidValueError(
                "first_rate must be below 1 where nobody reports twice: nobody is left to ask"
            )
        first_epsilon = self._epsilon
        if not self._once:
            first_epsilon *= _arguments.confidence("share", share)
        answers = domain_of("domain", domain)
        made = oracle(first_epsilon, answers)
        self._first_oracle = checked_oracle("oracle", made, first_epsilon, answers)
        self._check_second()

    def _check_second(self) -> None:
        """Refuse what would fail in the second round, before the first has cost anything."""
        size = self.domain.size
        target = self._target
        if target > 1.0:
            raise InvalidValueError(
                f"second_rate must be at most {1.0 - self._first_rate:.6g}, the share of nodes "
                f"that are left, got {self._second_rate}"
            )
        high = self._highest
        rates_for_rare(
            np.full(size, 1 / size), rate=target, low=self._low, high=high, power=self._power
        )
        self._round(np.append(np.full(size - 1, self._low), high))

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._first_oracle.domain

    @property
    def epsilon(self) -> float:
        """The total budget that was asked for."""
        return self._epsilon

    @property
    def first_oracle(self) -> FrequencyOracle:
        """The randomizer of the first round."""
        return self._first_oracle

    @property
    def first_participation(self) -> Participation:
        """Who takes part in the first round."""
        return Everyone() if self._first_rate == 1.0 else Bernoulli(self._first_rate)

    @property
    def once(self) -> bool:
        """Whether a node reports in one round at most."""
        return self._once

    @property
    def _target(self) -> float:
        """The mean rate among the nodes asked in the second round."""
        return self._second_rate / (1.0 - self._first_rate if self._once else 1.0)

    @property
    def _left(self) -> float:
        """What the second round may spend."""
        if self._once:
            return self._epsilon
        spent = Fraction(self._first_oracle.realized_epsilon)
        return rounded_down(Fraction(self._epsilon) - spent)

    @property
    def _highest(self) -> float:
        """The upper limit of the rates, lowered so that silence stays within the budget."""
        if self._hidden or self._low == self._high:
            return self._high
        # (1 - low) / (1 - high) <= e^left, with a margin for rounding; the realised ratio is
        # checked in exact numbers.
        most = 1.0 - (1.0 - self._low) * float(np.exp(-self._left)) * (1.0 + 1e-9)
        return max(self._low, min(self._high, most))

    def second_round(self, first: Tally) -> SecondRound:
        """Decide on the second round, from what the first gave.

        Parameters
        ----------
        first
            The tally of :attr:`first_oracle` under :attr:`first_participation`.

        Returns
        -------
        SecondRound
            Rates and randomizer.

        Raises
        ------
        PlanMismatchError
            If the tally was made under another plan.
        EstimatorError
            If the first round has no reports.
        InvalidTypeError
            If ``first`` is not a tally.
        """
        _arguments.instance("first", first, Tally, "a Tally")
        Plan(self._first_oracle, self.first_participation).check_same(first.plan, "first")
        rates = rates_for_rare(
            first.estimate().frequencies,
            rate=self._target,
            low=self._low,
            high=self._highest,
            power=self._power,
        )
        return self._round(rates)

    def _round(self, rates: Floats) -> SecondRound:
        """Find the randomizer that the budget leaves, and prove in exact numbers that it fits."""
        least, most = float(rates.min()), float(rates.max())
        if self._hidden:
            domain = Domain.from_integers(self.domain.size + 1)
            epsilon = float(np.log1p(np.expm1(self._left) / most))
        else:
            domain = self.domain
            epsilon = self._left - float(np.log(most / least))
        first = self._first_oracle.realized_epsilon
        step = 0.0
        while epsilon - step > 0.0:
            oracle = self.oracle_maker(epsilon - step, domain)
            report, silence = second_round_ratios(oracle.realized_ratio, rates, hidden=self._hidden)
            spent = Spending(
                first,
                oracle.realized_epsilon,
                logarithm_up(report),
                logarithm_up(silence),
                self._once,
            )
            if spent.total <= self._epsilon:
                return SecondRound(oracle, self.domain, rates, spent, hidden=self._hidden)
            if spent.silence > self._left:
                break
            step = 2.0 * step + 1e-15 * self._epsilon
        raise InvalidValueError(
            f"low and high must leave something of the budget: rates from {least:.4g} to "
            f"{most:.4g} alone spend {float(np.log(most / least)):.4g} of {self._left:.4g}"
        )

    def collect(self, values: Any, *, seed: int | None = None) -> TwoRoundTallies:
        """Run both rounds over nodes that are all here.

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
        coins, one, two = seeds_of(_arguments.seed(seed), 3)
        # Who is asked first depends on no answer, and may be known.
        chosen = _core.uniforms(codes.size, coins) < self._first_rate
        counts = self._first_oracle.draw_counts(codes[chosen], Everyone(), one)
        first = self._first_tally(counts.sums, counts.received, codes.size)
        asked = codes[~chosen] if self._once else codes
        second = self.second_round(first).collected(asked, two)
        return TwoRoundTallies(self, first, second)

    def simulate(self, true_counts: Any, *, seed: int | None = None) -> TwoRoundTallies:
        """Draw tallies with the law of :meth:`collect`, from the true counts alone.

        Parameters
        ----------
        true_counts
            How many nodes hold each answer.
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
        coins, one, two = seeds_of(_arguments.seed(seed), 3)
        chosen = np.random.default_rng(coins).binomial(counts, self._first_rate)
        support = self._first_oracle.simulate(chosen, seed=one).support
        first = self._first_tally(support, int(chosen.sum()), int(counts.sum()))
        asked = counts - chosen if self._once else counts
        return TwoRoundTallies(self, first, self.second_round(first).simulate(asked, seed=two))

    def _first_tally(self, support: Any, received: int, nodes: int) -> Tally:
        return Tally(Plan(self._first_oracle, self.first_participation), support, received, nodes)

    def estimate(
        self, first: Tally, second: SecondTally, *, weight: float | None = None
    ) -> FrequencyEstimate:
        """Put the rounds together.

        Parameters
        ----------
        first, second
            The tallies of the rounds.
        weight
            The weight of the first round, in [0, 1]. None: for each answer that of the smallest
            variance, computed from the estimates, which costs a bias that is small beside the
            standard error; a fixed weight has no bias (0: the second round alone).

        Returns
        -------
        FrequencyEstimate
            Frequencies with standard errors and normal intervals.

        Raises
        ------
        InvalidValueError
            If the tallies are not of the same nodes, or the weight is out of range.
        PlanMismatchError
            If a tally was made under another plan.
        EstimatorError
            If the first round has no reports, or nobody was asked in the second.
        InvalidTypeError
            If an argument is of the wrong type.

        Notes
        -----
        Given the numbers of nodes and of reports of the first round, those asked in the second are
        a simple random sample of the others, and the estimates of the two rounds have the
        covariance ``-f (1 - f) / (n - 1)`` if nobody reports twice, else none.
        """
        _arguments.instance("first", first, Tally, "a Tally")
        _arguments.instance("second", second, SecondTally, "a SecondTally")
        Plan(self._first_oracle, self.first_participation).check_same(first.plan, "first")
        nodes = first.nodes
        left = nodes - first.received if self._once else nodes
        if second.asked != left:
            raise InvalidValueError(
                f"second must be of the {left} nodes that were left to ask, got {second.asked}"
            )
        if second.asked == 0:
            raise EstimatorError("nobody was asked in the second round")
        rough = first.estimate().estimation
        one, two = rough.frequencies, second.round.counts(second) / second.asked
        if weight is None:
            # The same frequencies in both variances: the weights then hardly depend on them.
            least = 1.0 / max(1, first.received + second.received)
            plug = np.clip(0.5 * (one + two), least, 1.0)
            weights = best_weights(*self._moments(plug, first, second))
        else:
            fixed = _arguments.number("weight", weight)
            if not 0.0 <= fixed <= 1.0:
                raise InvalidValueError(f"weight must be in [0, 1], got {fixed}")
            weights = np.full(self.domain.size, fixed)
        frequencies = weights * one + (1 - weights) * two
        plug = np.clip(frequencies, 0.0, 1.0)
        variances = combined_variance(weights, *self._moments(plug, first, second))
        # Drawn up by two reports: an answer that nobody reports has some variance too.
        cautious = np.clip(plug + 2.0 / (second.asked * second.round.rates), 0.0, 1.0)
        wide = combined_variance(weights, *self._moments(cautious, first, second))
        estimation = Estimation(
            frequencies, variances, interval_variances=np.maximum(variances, wide)
        )
        received = first.received + second.received
        return FrequencyEstimate.from_estimation(self, "two_rounds", nodes, received, estimation)

    def _moments(
        self, frequencies: Floats, first: Tally, second: SecondTally
    ) -> tuple[Floats, Floats, Floats]:
        """Variances of the rounds' frequencies and their covariance, at given frequencies."""
        n, asked = first.nodes, second.asked
        model = first.estimate().estimation.model
        if model is None:
            raise EstimatorError("the first round must have one rate for all nodes")
        one = model.variance(frequencies)
        held = frequencies * asked
        two = second.round.variance_of(held, second.received, asked) / asked**2
        spread = frequencies * (1 - frequencies) / max(n - 1, 1)
        two = two + spread * (n - asked) / asked
        return one, np.maximum(two, 0.0), -spread if self._once else np.zeros_like(one)

    def __repr__(self) -> str:
        """Show the budget and the rates."""
        return (
            f"TwoRoundCollection({self.domain!r}, epsilon={self._epsilon!r}, "
            f"first_rate={self._first_rate!r}, second_rate={self._second_rate!r}, "
            f"low={self._low!r}, high={self._high!r}, once={self._once!r})"
        )


def best_weights(one: Floats, two: Floats, covariance: Floats) -> Floats:
    """Give the weights of the first of two estimates for which the variance is smallest."""
    spread = one + two - 2 * covariance
    # Both variances may be 0: then any weight will do.
    weights = np.divide(two - covariance, spread, out=np.full_like(one, 0.5), where=spread > 0)
    result: Floats = np.clip(weights, 0.0, 1.0)
    return result


def combined_variance(weights: Floats, one: Floats, two: Floats, covariance: Floats) -> Floats:
    """Give the variance of a weighted mean of two estimates."""
    other = 1 - weights
    total = weights**2 * one + other**2 * two + 2 * weights * other * covariance
    result: Floats = np.maximum(total, 0.0)
    return result


def _flag(argument: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidTypeError(f"{argument} must be True or False, got {_arguments.shown(value)}")
    return bool(value)
