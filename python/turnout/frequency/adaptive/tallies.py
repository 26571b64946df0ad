"""The tallies of two rounds, what they spent, and their joint estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.adaptive.second import SecondTally
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli


@dataclass(frozen=True)
class Spending:
    """The budget that two rounds actually spend, in nats; every number is rounded up.

    Attributes
    ----------
    first
        The realised epsilon of a report of the first round.
    randomizer
        The realised epsilon of the oracle of the second round.
    report
        The largest log-likelihood ratio of a report of the second round: for visible participation
        ``randomizer + ln(max pi / min pi)``.
    silence
        The same for silence: ``ln((1 - min pi) / (1 - max pi))``; 0 if everyone sends.
    """

    first: float
    randomizer: float
    report: float
    silence: float

    @property
    def second(self) -> float:
        """The epsilon of the second round: the larger of :attr:`report` and :attr:`silence`."""
        return max(self.report, self.silence)

    @property
    def total(self) -> float:
        """The larger epsilon of the two rounds: a node reports in at most one of them."""
        return max(self.first, self.second)

    def __str__(self) -> str:
        """Write the parts of the total."""
        return (
            f"{self.total:.6g}: {self.first:.6g} in the first round and {self.second:.6g} in the "
            f"second (a report {self.report:.6g}, of which the randomizer {self.randomizer:.6g}; "
            f"silence {self.silence:.6g}); the larger, as nobody reports twice"
        )


@dataclass(frozen=True, eq=False)
class TwoRoundTallies:
    """The tallies of both rounds.

    Attributes
    ----------
    collection
        The collection.
    first
        The tally of the first round.
    second
        The tally of the second round.
    """

    collection: Any
    first: Tally
    second: SecondTally

    @property
    def spent(self) -> Spending:
        """The budget that was actually spent."""
        spent: Spending = self.collection._spending(self.second.round)
        return spent

    @property
    def received(self) -> int:
        """The number of reports of both rounds, the cost of the collection."""
        return self.first.received + self.second.received

    def estimate(self, weight: float | None = None) -> FrequencyEstimate:
        """Estimate the frequencies from both rounds.

        Parameters
        ----------
        weight
            The weight of the first round, in [0, 1]. None: for each answer the weight of the
            smallest variance, computed from the estimates. It causes a bias that is small relative
            to the standard error. A fixed weight has no bias (0: only the second round).

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
        covariance ``-f (1 - f) / (n - 1)``.
        """
        collection, first, second = self.collection, self.first, self.second
        collection._check_first(first)
        _arguments.instance("second", second, SecondTally, "a SecondTally")
        if second.participation.uniform_rate != 1.0:
            raise _arguments.invalid(
                "second must cover everyone who was asked", second.participation
            )
        if second.nodes == 0:
            raise EstimatorError("nobody was asked in the second round")
        first = self._of_all(first, second.nodes)
        nodes = first.nodes
        if second.nodes != nodes - first.received:
            raise InvalidValueError(
                f"second must cover the {nodes - first.received} nodes that were left to "
                f"ask, got {second.nodes}"
            )
        rough = first.estimate().estimation
        one, two = rough.frequencies, second.round._counts(second) / second.nodes
        if weight is None:
            # The same frequencies in both variances: the weights then hardly depend on them.
            least = 1.0 / max(1, first.received + second.received)
            plug = np.clip(0.5 * (one + two), least, 1.0)
            alone, other, covariance = self._moments(plug, first, second)
            spread = alone + other - 2 * covariance
            # Both variances may be 0: then any weight will do.
            any_weight = np.full_like(alone, 0.5)
            best = np.divide(other - covariance, spread, out=any_weight, where=spread > 0)
            weights = np.clip(best, 0.0, 1.0)
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
        return FrequencyEstimate._from_estimation(
            collection,
            "two_rounds",
            nodes,
            received,
            estimation,
            left_out=first.left_out + second.left_out,
        )

    def _of_all(self, first: Tally, asked: int) -> Tally:
        """Count the tally of a group that was asked first among all nodes, as a random part."""
        if first.participation.uniform_rate != 1.0:
            return first
        nodes = first.nodes + asked
        return replace(first, plan=Plan(first.oracle, Bernoulli(first.nodes / nodes)), nodes=nodes)

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
        two = second.round._variance_of(held, second.received) / asked**2
        spread = frequencies * (1 - frequencies) / max(n - 1, 1)
        two = two + spread * (n - asked) / asked
        return one, np.maximum(two, 0.0), -spread


def combined_variance(weights: Floats, one: Floats, two: Floats, covariance: Floats) -> Floats:
    """Return the variance of a weighted mean of two estimates."""
    other = 1 - weights
    total = weights**2 * one + other**2 * two + 2 * weights * other * covariance
    result: Floats = np.maximum(total, 0.0)
    return result
