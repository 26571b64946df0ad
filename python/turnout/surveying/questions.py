"""What a column is asked for, and how the reports of it are drawn and counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from turnout._types import Array
from turnout.bounds import Bounds
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.frequency.estimation.estimators import estimator_variance
from turnout.mean.mechanism import Duchi, Hybrid, Piecewise
from turnout.participation import Bernoulli, Everyone, Participation
from turnout.planning.choice import choose_oracle
from turnout.surveying.numbers import Grid, NumberEstimate, NumberGroups


@dataclass(frozen=True)
class Asked:
    """Who answers a question.

    Attributes
    ----------
    rate
        With which probability each of the people that it may concern reports.
    share
        With which probability it concerns a person: below one, people answer one question of many.
    """

    rate: float
    share: Fraction = Fraction(1)

    @property
    def within(self) -> Participation:
        """How those whom it concerns take part."""
        return Everyone() if self.rate == 1.0 else Bernoulli(self.rate)

    @property
    def overall(self) -> Participation:
        """How all people take part."""
        rate = float(Fraction(self.rate) * self.share)
        return Everyone() if rate == 1.0 else Bernoulli(rate)


class Question(ABC):
    """What a column is asked for."""

    #: What can be answered, as the column is read.
    domain: Domain | Bounds

    @abstractmethod
    def randomizer(self, epsilon: float) -> Any:
        """Choose how answers are randomized: the way of least error."""

    @abstractmethod
    def variance(self, epsilon: float, nodes: int, asked: Asked) -> float:
        """Say how large the mean squared error is, of a share or of the range of the numbers."""

    def prepared(self, codes: Array, seed: int | None) -> Array:
        """Change what was read into what is randomized."""
        return codes

    def tally(
        self, randomizer: Any, codes: Array, nodes: int, asked: Asked, seed: int | None
    ) -> Any:
        """Randomize and count the answers of those who take part and whom the question concerns."""
        drawn = randomizer.draw_reports(codes, Everyone(), seed)
        return randomizer.tally(Reports(randomizer, asked.overall, drawn.reports, nodes))

    def estimate(self, tally: Any, method: str) -> Any:
        """Estimate from a tally, or from that of all groups."""
        return tally.estimate(method)


@dataclass(frozen=True)
class SharesOf(Question):
    """How often each answer is given."""

    domain: Domain

    def randomizer(self, epsilon: float) -> Any:
        """Choose the oracle of least error."""
        return choose_oracle(epsilon, self.domain).oracle

    def variance(self, epsilon: float, nodes: int, asked: Asked) -> float:
        """Say the mean over the answers, if all are given equally often."""
        counts = np.full(self.domain.size, max(nodes // self.domain.size, 1), np.uint64)
        variances = estimator_variance(self.randomizer(epsilon), asked.overall, true_counts=counts)
        return float(variances.mean()) / int(counts.sum()) ** 2


@dataclass(frozen=True)
class MeanOf(Question):
    """The mean of a number."""

    domain: Bounds

    def randomizer(self, epsilon: float) -> Any:
        """Choose the mechanism of smaller worst-case variance."""
        return mean_mechanism(epsilon, self.domain)

    def variance(self, epsilon: float, nodes: int, asked: Asked) -> float:
        """Say the worst of a range of one."""
        reports = max(nodes * asked.rate * float(asked.share), 1.0)
        worst: float = self.randomizer(epsilon).worst_variance
        return worst / (2 * self.domain.half) ** 2 / reports


@dataclass(frozen=True)
class SpreadOf(Question):
    """Mean and quantiles of a number, from one histogram.

    Attributes
    ----------
    domain
        The numbers that can be given.
    grid
        The points of the histogram.
    probabilities
        The quantiles that are listed.
    """

    domain: Bounds
    grid: Grid
    probabilities: tuple[float, ...]

    def randomizer(self, epsilon: float) -> Any:
        """Make the histogram."""
        return self.grid.collection(epsilon)

    def variance(self, epsilon: float, nodes: int, asked: Asked) -> float:
        """Say that of the mean alone, which differs by a factor that hardly depends on epsilon."""
        return MeanOf(self.domain).variance(epsilon, nodes, asked)

    def prepared(self, codes: Array, seed: int | None) -> Array:
        """Move numbers to points."""
        return self.grid.codes(codes, seed)

    def estimate(self, tally: Any, method: str) -> NumberEstimate | NumberGroups:
        """Estimate mean and quantiles."""
        if isinstance(tally, GroupedTally):
            return NumberGroups(tally, self.grid, self.probabilities)
        return NumberEstimate(tally, self.grid, self.probabilities)


def mean_mechanism(epsilon: float, bounds: Bounds) -> Any:
    """Choose the mechanism for means of smaller worst-case variance.

    Examples
    --------
    >>> type(mean_mechanism(0.5, Bounds(0, 1))).__name__
    'Duchi'
    """
    pair = (bounds.low, bounds.high)
    found = [kind(epsilon, pair) for kind in (Duchi, Hybrid, Piecewise)]
    return min(found, key=lambda mechanism: mechanism.worst_variance)
