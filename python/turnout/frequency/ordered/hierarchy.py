"""Range queries over large ordered domains: every node reports one level of a tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _kinds
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.domain import Domain, domain_of
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError, PlanMismatchError
from turnout.frequency.candidates import checked_oracle
from turnout.frequency.estimation.covariance import Covariance, sampled_covariance
from turnout.frequency.estimation.projection import simplex
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.ordered.statistics import OrderedStatistics
from turnout.frequency.ordered.tree import Tree
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Everyone, Participation, taking_part_in

__all__ = ["HierarchicalCollection", "HierarchicalEstimate", "HierarchicalTally"]

Floats = npt.NDArray[np.float64]
OracleMaker = Callable[[float, int], FrequencyOracle]


class HierarchicalCollection:
    """Collect ordered answers so that shares of long ranges are precise.

    Level ``l`` of a tree divides the domain into up to ``fanout^l`` runs of consecutive answers;
    the last level has the answers themselves. Every node draws one level, whatever its answer, and
    reports which run of that level holds it, with the whole epsilon: it reports once, so epsilon
    holds for the collection. The estimates of all levels are made consistent by weighted least
    squares (every run is the sum of its parts, all of them are one), in which a long range is the
    sum of few runs.

    Parameters
    ----------
    epsilon
        The privacy parameter of a node's report, in nats.
    domain
        The answers in their order, or their number.
    fanout
        Into how many parts every run is divided. Four or five is best with consistency, four is the
        default.
    oracle
        How levels are reported: ``"auto"`` (default) takes, for each level, direct encoding or
        optimized unary encoding, whichever has the smaller variance; or a class of oracles, or
        another function of epsilon and the number of runs that makes one. What it makes may not
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

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        *,
        fanout: int = 4,
        oracle: str | OracleMaker = "auto",
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        self._domain = domain = domain_of("domain", domain)
        self._tree = Tree(domain.size, _arguments.integer("fanout", fanout, least=2))
        maker: OracleMaker
        if isinstance(oracle, str):
            _arguments.choice("oracle", oracle, ("auto",))
            maker = _smallest_variance
        elif callable(oracle):
            maker = oracle
        else:
            raise InvalidTypeError(
                f"oracle must be 'auto' or a class of oracles, got {_arguments.shown(oracle)}"
            )
        self._oracles = tuple(
            checked_oracle(
                "oracle", maker(self._epsilon, size), self._epsilon, Domain.from_integers(size)
            )
            for size in self._tree.sizes
        )

    @property
    def epsilon(self) -> float:
        """The privacy parameter that was asked for, in nats."""
        return self._epsilon

    @property
    def realized_epsilon(self) -> float:
        """The largest one of the levels, rounded up: what a node spends."""
        return max(oracle.realized_epsilon for oracle in self._oracles)

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._domain

    @property
    def fanout(self) -> int:
        """Into how many parts every run is divided."""
        return self._tree.fanout

    @property
    def tree(self) -> Tree:
        """Which run of each level holds an answer."""
        return self._tree

    @property
    def oracles(self) -> tuple[FrequencyOracle, ...]:
        """How each level is reported, from the longest runs to single answers."""
        return self._oracles

    def randomize(
        self,
        values: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> tuple[Reports, ...]:
        """Draw a level for each node, and randomize the answers of those that take part.

        Parameters
        ----------
        values
            One answer for each node.
        participation
            Who takes part: everyone (default) or a common rate.
        seed
            For tests and simulations only, as for :meth:`FrequencyOracle.randomize`.

        Returns
        -------
        tuple of Reports
            For each level the reports of all nodes at the rate of participation divided by the
            number of levels.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If a node's answer is not in the domain.
        InvalidValueError
            If the participation is personal.
        InvalidTypeError
            If an argument is of the wrong type.
        """
        rate = _common_rate(participation)
        codes = self._domain.encode(values)
        generator, seeds = self._randomness(seed)
        drawn = generator.integers(len(self._oracles), size=codes.size)
        made = []
        for level, oracle in enumerate(self._oracles):
            runs = self._tree.run(codes[drawn == level], level)
            reports = oracle.randomize(runs, participation=Bernoulli(rate), seed=seeds[level])
            made.append(Reports(oracle, self._share(rate), reports.codes, codes.size))
        return tuple(made)

    def tally(self, reports: Iterable[Reports]) -> HierarchicalTally:
        """Count the reports of all levels.

        Parameters
        ----------
        reports
            What :meth:`randomize` gave.

        Returns
        -------
        HierarchicalTally
            The sufficient statistics.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another collection.
        """
        given = _arguments.items("reports", reports, "one Reports object for each level")
        if len(given) != len(self._oracles):
            raise PlanMismatchError(
                f"reports must be of {len(self._oracles)} levels, got {len(given)}"
            )
        pairs = zip(self._oracles, given, strict=True)
        return HierarchicalTally(self, tuple(oracle.tally(level) for oracle, level in pairs))

    def collect(
        self,
        values: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> HierarchicalTally:
        """Randomize and tally.

        Parameters
        ----------
        values, participation, seed
            As for :meth:`randomize`.

        Returns
        -------
        HierarchicalTally
            The sufficient statistics.

        Raises
        ------
        TurnoutError
            As for :meth:`randomize`.
        """
        return self.tally(self.randomize(values, participation=participation, seed=seed))

    def simulate(
        self,
        true_counts: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> HierarchicalTally:
        """Draw a tally with the law of :meth:`collect`, from the true counts alone.

        Parameters
        ----------
        true_counts
            How many nodes hold each answer.
        participation, seed
            As for :meth:`randomize`.

        Returns
        -------
        HierarchicalTally
            The sufficient statistics.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is out of range or of the wrong type.
        """
        rate = _common_rate(participation)
        counts = _arguments.counts("true_counts", true_counts, self._domain.size)
        nodes = sum(counts.tolist())
        generator, seeds = self._randomness(seed)
        levels = len(self._oracles)
        split = generator.multinomial(counts.astype(np.int64), np.full(levels, 1.0 / levels))
        tallies = []
        for level, oracle in enumerate(self._oracles):
            held = self._tree.sums(split[:, level], level)
            part = oracle.simulate(held, participation=Bernoulli(rate), seed=seeds[level])
            plan = Plan(oracle, self._share(rate))
            tallies.append(Tally(plan, part.support, part.received, nodes))
        return HierarchicalTally(self, tuple(tallies))

    def _share(self, rate: float) -> Participation:
        share = rate / len(self._oracles)
        return Everyone() if share == 1.0 else Bernoulli(share)

    def _randomness(self, seed: int | None) -> tuple[np.random.Generator, list[int | None]]:
        """Give a generator of levels, and a seed for the noise of each level if there is one."""
        checked = _arguments.seed(seed)
        levels = len(self._oracles)
        if checked is None:
            return np.random.default_rng(), [None] * levels
        states = np.random.SeedSequence(checked).generate_state(levels + 1, np.uint64).tolist()
        return np.random.default_rng(states[0]), states[1:]

    def __eq__(self, other: object) -> bool:
        """Compare domains and the oracles of all levels."""
        if not isinstance(other, HierarchicalCollection):
            return NotImplemented
        return (self._domain, self.fanout, self._oracles) == (
            other._domain,
            other.fanout,
            other._oracles,
        )

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((self._domain, self.fanout, self._oracles))

    def __repr__(self) -> str:
        """Show the parameters and the number of levels."""
        return (
            f"HierarchicalCollection(epsilon={self._epsilon!r}, domain={self._domain!r}, "
            f"fanout={self.fanout}, {len(self._oracles)} levels)"
        )


@dataclass(frozen=True)
class HierarchicalTally:
    """The tallies of all levels; those of different nodes add up.

    Attributes
    ----------
    collection
        What they were collected by.
    levels
        One :class:`turnout.Tally` for each level.
    """

    collection: HierarchicalCollection
    levels: tuple[Tally, ...]

    def __post_init__(self) -> None:
        """Check that the tallies are of the levels, and of the same nodes.

        Raises
        ------
        PlanMismatchError
            If they are not of the levels.
        InvalidValueError
            If they are not of as many nodes.
        """
        if tuple(tally.oracle for tally in self.levels) != self.collection.oracles or len(
            {tally.participation for tally in self.levels}
        ) not in (0, 1):
            raise PlanMismatchError(
                "levels must have one tally for each level of the collection, all of one rate"
            )
        nodes = {tally.nodes for tally in self.levels}
        if len(nodes) != 1:
            raise InvalidValueError(f"levels must be of the same nodes, got {sorted(nodes)}")

    @property
    def nodes(self) -> int:
        """The number of nodes, reporting or not."""
        return self.levels[0].nodes

    @property
    def received(self) -> int:
        """The number of reports of all levels."""
        return sum(tally.received for tally in self.levels)

    def __add__(self, other: object) -> HierarchicalTally:
        """Add the tally of other nodes."""
        if not isinstance(other, HierarchicalTally):
            return NotImplemented
        if self.collection != other.collection:
            raise PlanMismatchError(
                f"tallies of {other.collection!r} do not add up with those of {self.collection!r}"
            )
        pairs = zip(self.levels, other.levels, strict=True)
        return HierarchicalTally(self.collection, tuple(one + two for one, two in pairs))

    def estimate(self) -> HierarchicalEstimate:
        """Estimate the frequencies of all answers consistently.

        Returns
        -------
        HierarchicalEstimate
            Frequencies, ranges, quantiles and means.

        Raises
        ------
        EstimatorError
            If a level has no reports.
        """
        return HierarchicalEstimate(self)


class HierarchicalEstimate(OrderedStatistics):
    """Consistent frequencies of ordered answers, from the reports of all levels.

    Made by :meth:`HierarchicalTally.estimate`. Variances are those of the whole linear estimate,
    given the number of reports of each level, with the covariances within each level.

    Parameters
    ----------
    tally
        The tallies of all levels.

    Raises
    ------
    EstimatorError
        If a level has no reports.
    """

    def __init__(self, tally: HierarchicalTally) -> None:
        self._tally = _arguments.instance("tally", tally, HierarchicalTally, "a HierarchicalTally")
        if any(level.received == 0 for level in tally.levels):
            raise EstimatorError("a level has no reports: nothing can be estimated from it")
        tree = tally.collection.tree
        observed = [level.estimate().frequencies for level in tally.levels]
        noise = [
            _level_covariance(level, np.full(size, 1.0 / size)).variances[0]
            for level, size in zip(tally.levels, tree.sizes, strict=True)
        ]
        self._consistent = tree.consistent(np.array(noise))
        self._frequencies = self._consistent.leaves(observed)
        self._frequencies.flags.writeable = False
        held = simplex(self._frequencies)
        self._held = held
        self._covariances = [
            _level_covariance(level, tree.sums(held, place))
            for place, level in enumerate(tally.levels)
        ]

    @property
    def tally(self) -> HierarchicalTally:
        """What was counted."""
        return self._tally

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._tally.collection.domain

    @property
    def frequencies(self) -> Floats:
        """Estimates of the frequencies, unbiased and adding up to one; perhaps negative."""
        return self._frequencies

    def _variances(self, coefficients: Floats) -> Floats:
        parts = self._consistent.coefficients(coefficients)
        total: Floats = np.zeros(len(coefficients))
        for covariance, part in zip(self._covariances, parts, strict=True):
            total += covariance.variance(part)
        # No node is in two levels: what all nodes hold does not vary.
        mean = coefficients @ self._held
        spread = (coefficients - mean[:, None]) ** 2 @ self._held
        return np.maximum(total - spread / max(self._tally.nodes - 1, 1), 0.0)

    def __repr__(self) -> str:
        """Show how many reports there are, and of what."""
        return (
            f"HierarchicalEstimate({self._tally.received} reports of {self._tally.nodes} nodes, "
            f"{self._tally.collection!r})"
        )


def _level_covariance(tally: Tally, frequencies: Floats) -> Covariance:
    nodes = tally.nodes
    sampling = nodes / (nodes - 1) if nodes > 1 else 1.0
    return sampled_covariance(tally.oracle, tally.received, frequencies, sampling=sampling)


def _smallest_variance(epsilon: float, size: int) -> FrequencyOracle:
    """Make the oracle whose estimates of rare answers have the smaller variance."""
    found: list[tuple[float, FrequencyOracle]] = []
    for name in ("direct_encoding", "optimized_unary_encoding"):
        if name in _kinds.REGISTERED:
            oracle = _kinds.REGISTERED[name](epsilon, size)
            p, q = oracle.support_probabilities
            found.append((q * (1 - q) / (p - q) ** 2, oracle))
    return min(found, key=lambda pair: pair[0])[1]


def _common_rate(participation: Participation | float | None) -> float:
    taking_part = taking_part_in(participation)
    rate = taking_part.uniform_rate
    if rate is None:
        raise InvalidValueError(
            f"participation must be Everyone() or Bernoulli(...), got {taking_part!r}: levels "
            "are weighted by their numbers of reports, which need one rate for all nodes"
        )
    return rate
