"""Range queries over large ordered domains: every node reports one level of a tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.collecting.parted import PartedKind, PartedTally
from turnout.collecting.randomizer import Counts
from turnout.collecting.tally import nothing_received
from turnout.domain import Domain, domain_of
from turnout.frequency.choice import Factory, make_oracle, one_each
from turnout.frequency.estimation.covariance import Covariance, sampled_covariance
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.projection import simplex
from turnout.frequency.groups.estimate import GroupedEstimate
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.ordered.statistics import OrderedStatistics, variances_of_all
from turnout.frequency.ordered.tree import ConsistentTree, Tree
from turnout.frequency.tally import Tally

#: What ``"auto"`` chooses from.
_CANDIDATES = ("direct_encoding", "optimized_unary_encoding")


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

    told: ClassVar[str] = "ordered"

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
            If the method does not exist.
        """
        _arguments.choice("method", method, ("hajek",))
        for number, level in enumerate(self.levels):
            if level.received == 0:
                raise nothing_received(f" at level {number}" if self.received else "")
        tree = self.oracle.tree
        observed = [level.estimate().frequencies for level in self.levels]
        noise = [
            _covariance(level, np.full(size, 1.0 / size)).variances[0]
            for level, size in zip(self.levels, tree.sizes, strict=True)
        ]
        consistent = ConsistentTree(tree, np.array(noise))
        frequencies = consistent.leaves(observed)
        held = simplex(frequencies)
        covariances = tuple(
            _covariance(level, tree.sums(held, place)) for place, level in enumerate(self.levels)
        )
        law = _Law(self.domain, consistent, covariances, held, self.nodes)
        return HierarchicalEstimate._from_estimation(
            self.plan,
            method,
            self.nodes,
            self.received,
            _Estimation(frequencies, law),
            left_out=self.left_out,
        )


@dataclass(frozen=True)
class _Law:
    """What is known of the errors of a consistent estimate."""

    domain: Domain
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


class _Estimation(Estimation):
    """Frequencies whose variances are computed on demand, which is slow for many answers."""

    law: _Law

    def __init__(self, frequencies: Floats, law: _Law) -> None:
        settle(self, frequencies=frequencies, law=law)

    @cached_property
    def variances(self) -> Floats:
        """The variances of the frequencies of single answers."""
        return variances_of_all(self.law.variances, np.equal, self.law.domain)


@dataclass(frozen=True, eq=False, repr=False)
class HierarchicalEstimate(FrequencyEstimate, OrderedStatistics):
    """Consistent frequencies of ordered answers, from the reports of all levels.

    Made by :meth:`HierarchicalTally.estimate`: a :class:`turnout.FrequencyEstimate` whose variances
    are those of the whole linear estimate, also for ranges, quantiles and means. They are given the
    number of reports of each level, and include the covariances within each level. The frequencies
    are unbiased and add up to one; they may be negative.

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

    estimation: _Estimation

    def _variances(self, coefficients: Floats) -> Floats:
        return self.estimation.law.variances(coefficients)


def _covariance(tally: Tally, frequencies: Floats) -> Covariance:
    nodes = tally.nodes
    sampling = nodes / (nodes - 1) if nodes > 1 else 1.0
    return sampled_covariance(tally.oracle, tally.received, frequencies, sampling=sampling)


class HierarchicalCollection(PartedKind):
    """Collect ordered answers so that shares of long ranges are precise.

    Level ``l`` of a tree divides the domain into up to ``fanout^l`` runs of consecutive answers;
    the last level has the answers themselves. Every node draws one level, independently of its
    answer, and reports which run of that level contains the answer, with the whole epsilon. It
    reports once, so epsilon holds for the collection. Weighted least squares makes the estimates of
    all levels consistent: every run is the sum of its parts, and all add up to one. A long range is
    then the sum of few runs.

    Parameters
    ----------
    epsilon
        The privacy parameter of a node's report, in nats.
    domain
        The answers in their order, a list of them, or their number.
    fanout
        The number of parts of every run. Four or five is best with consistency; four is the
        default.
    oracle
        The oracle of the levels: ``"auto"`` (default) chooses, for each level, direct encoding or
        optimized unary encoding, whichever has the smaller variance. Or the name or the class of an
        oracle, or another function of epsilon and the domain of runs that makes one, which must not
        spend more than that epsilon.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is out of range or of the wrong type.

    Notes
    -----
    Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through
    consistency" (2010), with a variance for each level; Cormode, Kulkarni, Srivastava, "Answering
    range queries under local differential privacy" (2019), for one level a node.

    Examples
    --------
    >>> import numpy as np
    >>> collection = HierarchicalCollection(1.0, 256)
    >>> [oracle.domain.size for oracle in collection.oracles]
    [4, 16, 64, 256]
    >>> values = np.random.default_rng(1).binomial(255, 0.5, size=100_000)
    >>> estimate = collection.collect(values, seed=1).estimate()
    >>> share = estimate.range(0, 127)
    >>> low, high = share.interval(0.99)
    >>> low < 0.5 < high
    True
    """

    name = "hierarchical"
    tally_type = HierarchicalTally
    _grouped_type = GroupedEstimate
    no_simulation_because = ""
    domain_type = Domain
    _one_rate_because = (
        "levels are weighted by their numbers of reports, which need one rate for all nodes"
    )

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        fanout: int = 4,
        oracle: Factory | str = "auto",
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._domain = domain_of("domain", domain)
        self._tree = Tree(self._domain.size, _arguments.integer("fanout", fanout, least=2))
        domains = [Domain.from_integers(size) for size in self._tree.sizes]
        self._oracles = tuple(
            make_oracle(*entry, self._epsilon, each, _CANDIDATES)
            for entry, each in zip(one_each("oracle", oracle, domains), domains, strict=True)
        )

    @property
    def fanout(self) -> int:
        """The number of parts of every run."""
        return self._tree.fanout

    @property
    def tree(self) -> Tree:
        """The tree, which maps answers to the runs of each level."""
        return self._tree

    @property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """The oracle of each level, from the longest runs to single answers."""
        return self._oracles

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """The randomizers of the levels."""
        return self._oracles

    @property
    def _choice(self) -> tuple[int, ...]:
        """All levels are drawn alike."""
        return (1,) * len(self._oracles)

    def _answers_of(self, answers: Array, part: int) -> Array:
        """Return which run of a level holds each answer."""
        return self._tree.run(answers, part)

    def draw_from_counts(self, counts: Array, rate: float, seed: int | None) -> Counts:
        """Draw from counts: see :meth:`turnout.collecting.kind.Kind.draw_from_counts`."""
        generator = np.random.default_rng(derived(seed, 0))
        levels = len(self._oracles)
        split = generator.multinomial(counts.astype(np.int64), np.full(levels, 1.0 / levels))
        drawn = []
        for level, oracle in enumerate(self._oracles):
            held = self._tree.sums(split[:, level], level)
            part = oracle.simulate(held, participation=rate, seed=derived(seed, 1, level))
            drawn.append((part.support, part.received))
        return Counts(tuple(drawn), sum(number for _, number in drawn))

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's parameters, with the randomizer of each level."""
        levels = [oracle.to_dict() for oracle in self._oracles]
        return {"fanout": self.fanout, "oracle": levels}

    def __hash__(self) -> int:
        """Hash the compared values."""
        return hash((self._domain, self.fanout, self._oracles))

    def __repr__(self) -> str:
        """Show the parameters and the number of levels."""
        return (
            f"HierarchicalCollection(epsilon={self._epsilon!r}, domain={self._domain!r}, "
            f"fanout={self.fanout}, {len(self._oracles)} levels)"
        )
