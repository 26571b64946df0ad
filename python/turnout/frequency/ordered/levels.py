"""What is counted of the levels of a tree, and estimated from all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout._values import settle
from turnout.collecting.parted_tally import PartedTally
from turnout.domain import Domain
from turnout.errors import EstimatorError
from turnout.frequency.estimation.covariance import Covariance, sampled_covariance
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.projection import simplex
from turnout.frequency.ordered.statistics import OrderedStatistics
from turnout.frequency.ordered.tree import ConsistentTree
from turnout.frequency.tally import Tally

#: Numbers of a block of coefficients.
_BLOCK = 2**22


class HierarchicalTally(PartedTally):
    """The tallies of all levels; those of different nodes under the same plan add up.

    Examples
    --------
    >>> import turnout as tn
    >>> collection = tn.HierarchicalCollection(1.0, 16)
    >>> tally = collection.collect([3, 4, 9] * 100) + collection.collect([3] * 50)
    >>> tally.received, [level.nodes for level in tally.levels]
    (350, [350, 350])
    """

    __slots__ = ()

    @property
    def domain(self) -> Domain:
        """The answers."""
        domain: Domain = self.plan.domain
        return domain

    @property
    def levels(self) -> tuple[Tally, ...]:
        """The tally of each level, from the longest runs to single answers."""
        return self.parts

    def estimate(self, method: str = "hajek") -> HierarchicalEstimate:
        """Estimate the frequencies of all answers consistently.

        Parameters
        ----------
        method
            The estimator of each level: ``"hajek"``.

        Returns
        -------
        HierarchicalEstimate
            Frequencies, ranges, quantiles and means.

        Raises
        ------
        EstimatorError
            If a level has no reports.
        InvalidValueError
            If there is no such method.
        """
        _arguments.choice("method", method, ("hajek",))
        if any(level.received == 0 for level in self.levels):
            raise EstimatorError("a level has no reports: nothing can be estimated from it")
        tree = self.oracle.tree
        observed = [level.estimate().frequencies for level in self.levels]
        noise = [
            _covariance(level, np.full(size, 1.0 / size)).variances[0]
            for level, size in zip(self.levels, tree.sizes, strict=True)
        ]
        consistent = tree.consistent(np.array(noise))
        frequencies = consistent.leaves(observed)
        held = simplex(frequencies)
        covariances = tuple(
            _covariance(level, tree.sums(held, place)) for place, level in enumerate(self.levels)
        )
        law = _Law(consistent, covariances, held, self.nodes)
        estimation = _Estimation(frequencies, law)
        frequencies.flags.writeable = False
        return HierarchicalEstimate(
            self.plan, method, self.nodes, self.received, frequencies, "none", estimation, law=law
        )


@dataclass(frozen=True)
class _Law:
    """What is known of the errors of a consistent estimate."""

    consistent: ConsistentTree
    covariances: tuple[Covariance, ...]
    held: Floats
    nodes: int

    def variances(self, coefficients: Floats) -> Floats:
        """Variances of weighted sums of the frequencies, for each row."""
        parts = self.consistent.coefficients(coefficients)
        total: Floats = np.zeros(len(coefficients))
        for covariance, part in zip(self.covariances, parts, strict=True):
            total += covariance.variance(part)
        # No node is in two levels: what all nodes hold does not vary.
        mean = coefficients @ self.held
        spread = (coefficients - mean[:, None]) ** 2 @ self.held
        return np.maximum(total - spread / max(self.nodes - 1, 1), 0.0)

    def single_variances(self) -> Floats:
        """Variances of the frequencies of single answers."""
        size = self.held.size
        rows, single = max(1, _BLOCK // size), np.empty(size)
        for start in range(0, size, rows):
            chosen = np.eye(min(rows, size - start), size, start)
            single[start : start + rows] = self.variances(chosen)
        return single


class _Estimation(Estimation):
    """Frequencies whose variances are computed when they are asked for: a long time of many."""

    def __init__(self, frequencies: Floats, law: _Law) -> None:
        settle(self, frequencies=frequencies, law=law)

    @cached_property
    def variances(self) -> Floats:
        """The variances of the frequencies of single answers."""
        law: _Law = self.__dict__["law"]
        return law.single_variances()


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalEstimate(FrequencyEstimate, OrderedStatistics):
    """Consistent frequencies of ordered answers, from the reports of all levels.

    Made by :meth:`HierarchicalTally.estimate`: a :class:`turnout.FrequencyEstimate` whose
    variances, also those of ranges, quantiles and means, are those of the whole linear estimate,
    given the number of reports of each level, with the covariances within each level. The
    frequencies are unbiased and add up to one; they may be negative.

    Examples
    --------
    >>> import turnout as tn
    >>> collection = tn.HierarchicalCollection(2.0, 64)
    >>> estimate = collection.simulate([100_000] * 64, seed=1).estimate()
    >>> estimate.quantile(0.5).low <= 31 <= estimate.quantile(0.5).high
    True
    >>> bool(estimate.interval(0.999, simultaneous="bonferroni").contains([1 / 64] * 64).all())
    True
    """

    law: Any = field(default=None, repr=False)

    def _variances(self, coefficients: Floats) -> Floats:
        found: Floats = self.law.variances(coefficients)
        return found


def _covariance(tally: Tally, frequencies: Floats) -> Covariance:
    nodes = tally.nodes
    sampling = nodes / (nodes - 1) if nodes > 1 else 1.0
    return sampled_covariance(tally.oracle, tally.received, frequencies, sampling=sampling)
