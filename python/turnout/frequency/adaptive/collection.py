"""Two rounds of collection: under way, and their tallies put together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats
from turnout.collecting.kind import collected
from turnout.collecting.plan import Plan
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.adaptive.parameters import TwoRoundParameters
from turnout.frequency.adaptive.rates import Spending
from turnout.frequency.adaptive.second import SecondRound, SecondTally, seeds_of
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.rounds import Rounds
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Everyone, Participation

#: Shares of nodes are realised to 2^-62.
_SCALE = 2**62


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

    collection: TwoRoundParameters
    first: Tally
    second: SecondTally

    @property
    def spent(self) -> Spending:
        """The budget that was really spent."""
        return self.collection.spending(self.second.round)

    @property
    def received(self) -> int:
        """The reports of both rounds: what the collection cost."""
        return self.first.received + self.second.received

    def estimate(self, weight: float | None = None) -> FrequencyEstimate:
        """Put the rounds together.

        Parameters
        ----------
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
        collection, first, second = self.collection, self.first, self.second
        collection.check_first(first)
        _arguments.instance("second", second, SecondTally, "a SecondTally")
        if second.participation.uniform_rate != 1.0:
            raise _arguments.invalid("second must be of all who were asked", second.participation)
        if second.nodes == 0:
            raise EstimatorError("nobody was asked in the second round")
        first = self._of_all(first, second.nodes)
        nodes = first.nodes
        left = nodes - first.received if collection.once else nodes
        if second.nodes != left:
            raise InvalidValueError(
                f"second must be of the {left} nodes that were left to ask, got {second.nodes}"
            )
        rough = first.estimate().estimation
        one, two = rough.frequencies, second.round.counts(second) / second.nodes
        if weight is None:
            # The same frequencies in both variances: the weights then hardly depend on them.
            least = 1.0 / max(1, first.received + second.received)
            plug = np.clip(0.5 * (one + two), least, 1.0)
            weights = best_weights(*self._moments(plug, first, second))
        else:
            fixed = _arguments.number("weight", weight)
            if not 0.0 <= fixed <= 1.0:
                raise InvalidValueError(f"weight must be in [0, 1], got {fixed}")
            weights = np.full(collection.domain.size, fixed)
        frequencies = weights * one + (1 - weights) * two
        plug = np.clip(frequencies, 0.0, 1.0)
        variances = combined_variance(weights, *self._moments(plug, first, second))
        # Drawn up by two reports: an answer that nobody reports has some variance too.
        cautious = np.clip(plug + 2.0 / (second.nodes * second.round.rates), 0.0, 1.0)
        wide = combined_variance(weights, *self._moments(cautious, first, second))
        estimation = Estimation(
            frequencies, variances, interval_variances=np.maximum(variances, wide)
        )
        received = first.received + second.received
        return FrequencyEstimate.from_estimation(
            collection, "two_rounds", nodes, received, estimation
        )

    def _of_all(self, first: Tally, asked: int) -> Tally:
        """Count the tally of a group that was asked first among all nodes, as a random part."""
        if not self.collection.once or first.participation.uniform_rate != 1.0:
            return first
        nodes = first.nodes + asked
        plan = Plan(first.oracle, Bernoulli(first.nodes / nodes))
        return Tally(plan, first.support, first.received, nodes)

    def _moments(
        self, frequencies: Floats, first: Tally, second: SecondTally
    ) -> tuple[Floats, Floats, Floats]:
        """Variances of the rounds' frequencies and their covariance, at given frequencies."""
        n, asked = first.nodes, second.nodes
        model = first.estimate().estimation.model
        if model is None:
            raise EstimatorError("the first round must have one rate for all nodes")
        one = model.variance(frequencies)
        held = frequencies * asked
        two = second.round.variance_of(held, second.received, asked) / asked**2
        spread = frequencies * (1 - frequencies) / max(n - 1, 1)
        two = two + spread * (n - asked) / asked
        return one, np.maximum(two, 0.0), -spread if self.collection.once else np.zeros_like(one)


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


class TwoRounds(Rounds[FrequencyOracle, TwoRoundTallies]):
    """Two rounds under way: close each with its tally.

    Made by :meth:`TwoRoundCollection.rounds`. Where nobody reports twice, a random part of the
    nodes is asked in each round (:meth:`assign`), and everyone who is asked first reports.
    Otherwise all are asked in both.

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

    def __init__(self, protocol: TwoRoundParameters) -> None:
        self._protocol = protocol
        super().__init__(protocol.first_oracle)

    @property
    def protocol(self) -> TwoRoundParameters:
        """The collection."""
        return self._protocol

    @classmethod
    def begun(cls, parameters: dict[str, Any]) -> TwoRounds:
        """Begin with the parameters that a document holds."""
        given = {**parameters, "domain": Domain.from_dict(parameters.get("domain"))}
        return cls(TwoRoundParameters(**given))

    @property
    def shares(self) -> list[int]:
        """How many of the nodes are asked in each round; nothing if all are asked in both."""
        if not self._protocol.once:
            return []
        first = int(Fraction(self._protocol.first_participation.uniform_rate or 0) * _SCALE)
        return [first, _SCALE - first]

    @property
    def participation(self) -> Participation:
        """Who of those who are asked takes part."""
        asked = self._protocol.once or self._closed
        return Everyone() if asked else self._protocol.first_participation

    def plan(self, participation: Participation | float | None = None) -> Plan:
        """Give the plan of the open round, with its number as the serial.

        Parameters
        ----------
        participation
            None: the collection says who takes part.

        Returns
        -------
        Plan
            All that a node needs.

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
        if not self._closed:
            return self._protocol.second_round(tally)
        second: SecondTally = tally
        result = TwoRoundTallies(self._protocol, self._closed[0], second)
        # Tallies that do not go together are refused here, and nothing has changed.
        result.estimate()
        self._result = result
        return None


class TwoRoundCollection(TwoRoundParameters):
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

    def rounds(self) -> TwoRounds:
        """Begin: the server's side, in which each round is a plan.

        Returns
        -------
        TwoRounds
            Gives the rounds, takes their tallies, and has the result.
        """
        return TwoRounds(self)

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
        counts = self.first_oracle.draw_counts(codes[chosen], Everyone(), one)
        first = self._first_tally(counts.sums, counts.received, codes.size)
        asked = codes[~chosen] if self._once else codes
        second: Any = collected(self.second_round(first), asked, Everyone(), two)
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
        support = self.first_oracle.simulate(chosen, seed=one).support
        first = self._first_tally(support, int(chosen.sum()), int(counts.sum()))
        asked = counts - chosen if self._once else counts
        second: Any = self.second_round(first).simulate(asked, seed=two)
        return TwoRoundTallies(self, first, second)

    def _first_tally(self, support: Any, received: int, nodes: int) -> Tally:
        return Tally(Plan(self.first_oracle, self.first_participation), support, received, nodes)

    def estimate(
        self, first: Tally, second: SecondTally, *, weight: float | None = None
    ) -> FrequencyEstimate:
        """Put the rounds together: see :meth:`TwoRoundTallies.estimate`.

        Parameters
        ----------
        first, second
            The tallies of the rounds.
        weight
            The weight of the first round, in [0, 1].

        Returns
        -------
        FrequencyEstimate
            Frequencies with standard errors and normal intervals.

        Raises
        ------
        TurnoutError
            As there.
        """
        return TwoRoundTallies(self, first, second).estimate(weight)
