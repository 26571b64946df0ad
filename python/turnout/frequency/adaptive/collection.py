"""Two rounds of collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout.collecting.kind import collected
from turnout.collecting.plan import Plan
from turnout.frequency.adaptive.parameters import TwoRoundParameters
from turnout.frequency.adaptive.second import SecondTally, seeds_of
from turnout.frequency.adaptive.tallies import TwoRoundTallies
from turnout.frequency.adaptive.under_way import TwoRounds
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.tally import Tally
from turnout.participation import Everyone


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
