"""The best participation of nodes that differ in epsilon and cost, and their estimate."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._tables import Tabular, records_of
from turnout._types import Floats, Integers
from turnout.accounting.values import positive
from turnout.collecting.left_out import NOTHING
from turnout.domain import Domain, one_domain
from turnout.errors import InvalidValueError
from turnout.frequency.choice import make_oracle
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.rounds import sharing
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.tally import Tally
from turnout.participation import Personalized
from turnout.planning.laws import ReportLaw

#: Reports of every epsilon are tallied by themselves.
_MOST_GROUPS = 10_000


@dataclass(frozen=True, eq=False)
class ParticipationPlan(Tabular):
    """The result of :func:`optimal_participation`.

    Attributes
    ----------
    probabilities
        The participation probability of every node, float64, read-only.
    budget
        The largest expected cost of the participation.
    oracles
        One oracle for each epsilon, ascending.
    groups
        The position of every node's oracle.
    costs
        The cost of every node's report.
    multiplier
        How much one more unit of budget would lower the variance, to first order; 0 if all nodes
        report.
    """

    probabilities: Floats
    budget: float
    oracles: tuple[FrequencyOracle, ...]
    groups: Integers = field(repr=False)
    costs: Floats = field(repr=False)
    multiplier: float

    _columns = ("epsilon", "cost", "probability")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each node, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``epsilon``, ``cost`` and ``probability``, in the order of the nodes.
        """
        return self._records(self.nodes)

    def _first_rows(self, most: int) -> tuple[list[dict[str, Any]], int]:
        return self._records(most), self.nodes

    def _records(self, most: int) -> list[dict[str, Any]]:
        epsilons = [self.oracles[group].epsilon for group in self.groups[:most].tolist()]
        return records_of(self._columns, epsilons, self.costs[:most], self.probabilities[:most])

    @property
    def participation(self) -> Personalized:
        """The probabilities as a participation."""
        return Personalized(self.probabilities)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.probabilities.size

    @property
    def weights(self) -> Floats:
        """Each node's contribution to the variance, times its probability: A of the notes."""
        return _totals(self.oracles)[self.groups]

    @property
    def _expected_cost(self) -> float:
        """The sum of costs times probabilities; never above the budget."""
        return math.fsum(self.costs * self.probabilities)

    @property
    def variance(self) -> float:
        """The sum over answers of the variance of the Horvitz-Thompson count, in squared nodes."""
        return math.fsum(self.weights / self.probabilities) - self.nodes

    @property
    def uniform_rate(self) -> float:
        """The common rate of the same cost."""
        return min(1.0, self.budget / math.fsum(self.costs))

    @property
    def gain(self) -> float:
        """The variance at the common rate divided by the variance here; at least 1."""
        return (math.fsum(self.weights) / self.uniform_rate - self.nodes) / self.variance

    def collect(self, values: Any, *, seed: int | None = None) -> tuple[Tally, ...]:
        """Collect the nodes' answers; each node randomizes with its own epsilon.

        Parameters
        ----------
        values
            One answer for each node, in the order of the epsilons.
        seed
            For tests and simulations only, as in :meth:`turnout.FrequencyOracle.randomize`.

        Returns
        -------
        tuple of Tally
            One tally for each epsilon; :func:`estimate_mixed` estimates from them.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If an answer is not in the domain.
        InvalidValueError
            If the numbers of answers and nodes differ, or the seed is out of range.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> plan = optimal_participation([1.0, 1.0, 3.0, 3.0], [1.0, 2.0, 1.0, 2.0], 4.0,
        ...                              domain_size=3)
        >>> [tally.nodes for tally in plan.collect([0, 1, 2, 2])]
        [2, 2]
        """
        first = _arguments.seed(seed)
        codes = np.asarray(self.oracles[0].domain.encode(values))
        if codes.size != self.nodes:
            raise InvalidValueError(
                f"values must have one answer for each of the {self.nodes} nodes, got {codes.size}"
            )
        tallies = []
        for position, oracle in enumerate(self.oracles):
            members = np.flatnonzero(self.groups == position)
            chosen = oracle.domain.decode(codes[members])
            who = Personalized(self.probabilities[members])
            stream = derived(first, position)
            tallies.append(oracle.collect(chosen, participation=who, seed=stream))
        return tuple(tallies)

    def __repr__(self) -> str:
        """Show the numbers of nodes and epsilons, the cost and the gain."""
        return (
            f"ParticipationPlan({self.nodes} nodes, {len(self.oracles)} epsilons, "
            f"cost {self._expected_cost:.6g} of {self.budget:g}, gain {self.gain:.4g})"
        )


def _totals(oracles: Sequence[FrequencyOracle]) -> Floats:
    """Return the contribution of a node with each oracle to the variance."""
    return np.array([ReportLaw.of(oracle).total(oracle.domain.size) for oracle in oracles])


def optimal_participation(
    epsilons: Any,
    costs: Any,
    budget: float,
    *,
    domain_size: Domain | Sequence[Hashable] | int | None = None,
    domain: Domain | Sequence[Hashable] | int | None = None,
    oracle: Any = DirectEncoding,
) -> ParticipationPlan:
    """Find the participation with the smallest variance within a budget.

    It minimises the sum over answers of the variance of the Horvitz-Thompson counts, ``sum_j A_j /
    pi_j``, subject to ``sum_j cost_j pi_j <= budget`` and ``2^-30 <= pi_j <= 1``. The solution is
    ``pi_j`` proportional to ``sqrt(A_j / cost_j)``, cut to its bounds (Neyman's allocation, by
    water-filling): nodes whose reports cost little **or are noisy** report more often, because
    every node counts for itself and noisy nodes need more reports. (If you know that nodes of all
    epsilons answer alike, leave the noisy ones out instead.)

    Parameters
    ----------
    epsilons
        The privacy of every node's report: one number for each node, or one for all. At most 10,000
        distinct epsilons, since the reports of each are tallied separately.
    costs
        The cost of a report of each node, above 0: one number for each node, or one for all.
    budget
        The largest expected cost, above 0.
    domain_size, domain
        The answers: a :class:`turnout.Domain`, a list of labels, or their number. Pass one of the
        two arguments.
    oracle
        The class of the oracle, any callable that takes an epsilon and a domain, or a name.
        ``"auto"`` chooses the oracle of smallest variance at each epsilon.

    Returns
    -------
    ParticipationPlan
        The probabilities, and their gain over a common rate of the same cost.

    Raises
    ------
    InvalidValueError
        If lengths differ, a number is out of range, or the budget is too small even for the
        smallest probabilities.
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    ``A = [p (1 - 2q) + q^2 + (k - 1) q (1 - q)] / (p - q)^2`` with the node's own ``p`` and ``q``.
    Epsilons and costs become public with the probabilities: they must not depend on the answers.
    Open question of Biswas, Cormode, Maple, "Impact of sampling on locally differentially private
    data collection": under their own objective, ``Var*(T)`` at a fixed sum of the probabilities,
    the point where the Lagrangian is stationary (all equal) is the *maximum*.

    Examples
    --------
    >>> plan = optimal_participation([0.5] * 50 + [2.0] * 50, 1.0, 60.0, domain_size=10)
    >>> plan.probabilities[[0, -1]].round(3), round(plan.gain, 2)
    (array([1. , 0.2]), 1.52)
    """
    answers = one_domain(domain_size, domain)
    levels, prices = _for_each_node(epsilons, costs)
    limit = positive("budget", budget)
    least = Personalized.minimum * math.fsum(prices)
    if limit < least:
        raise InvalidValueError(
            f"budget must be at least {least:.6g}, what probabilities of 2^-30 cost, got {limit}"
        )
    distinct, groups = np.unique(levels, return_inverse=True)
    if distinct.size > _MOST_GROUPS:
        raise InvalidValueError(
            f"epsilons must hold at most {_MOST_GROUPS:,} different values, got "
            f"{distinct.size:,}: round them down; the reports of each value need "
            "their own tally"
        )
    oracles = tuple(make_oracle("oracle", oracle, float(level), answers) for level in distinct)
    probabilities, multiplier = _fill(_totals(oracles)[groups], prices, limit)
    probabilities.flags.writeable = False
    prices.flags.writeable = False
    positions = groups.astype(np.int64).reshape(-1)
    return ParticipationPlan(probabilities, limit, oracles, positions, prices, multiplier)


@dataclass(frozen=True)
class _MixedPlan:
    """The plans that an estimate of several groups comes from.

    Attributes
    ----------
    domain
        The answers.
    epsilons
        The privacy of a report in each group.
    plans
        The plan of each group.
    """

    domain: Domain
    epsilons: tuple[float, ...]
    plans: tuple[Any, ...] = field(default=(), repr=False)


def estimate_mixed(
    tallies: Iterable[Tally], method: str = "horvitz_thompson", *, same_people: bool = True
) -> FrequencyEstimate:
    """Estimate the frequencies of a population from the tallies of its groups.

    Each node belongs to one group, which has its own epsilon and participation. Every group
    estimates its own counts, and the counts add up. The result is valid even if the groups have
    different answers. (Weights instead of sums, :func:`turnout.weighting.combine`, give less noise
    if all groups are alike, and a different mean if they are not.)

    Parameters
    ----------
    tallies
        One tally for each group, all of one domain, such as from :meth:`ParticipationPlan.collect`.
    method
        The estimator of every group, as in :meth:`turnout.Tally.estimate`. A group without reports
        has no ``"hajek"`` estimate; its ``"horvitz_thompson"`` estimate is 0, as it must be.
    same_people
        Whether groups that keep the same permanent answers may have the same people, as for
        :func:`turnout.weighting.combine`.

    Returns
    -------
    FrequencyEstimate
        The estimate for all nodes, with normal intervals. Its ``plan`` has ``domain``, and the
        ``epsilons`` and ``plans`` of the groups.

    Raises
    ------
    InvalidTypeError
        If one is not a tally.
    InvalidValueError
        If there are no tallies, their domains differ, or an estimator does not apply or is biased.

    Examples
    --------
    >>> import turnout as tn
    >>> cautious = tn.DirectEncoding(1.0, 3).simulate([100, 200, 700])
    >>> open_minded = tn.DirectEncoding(4.0, 3).simulate([500, 500, 0])
    >>> estimate_mixed([cautious, open_minded]).nodes
    2000
    """
    groups = _arguments.items("tallies", tallies, "an iterable of tallies")
    if not groups:
        raise InvalidValueError("tallies must hold a tally, got none")
    for position, tally in enumerate(groups):
        if not isinstance(tally, Tally):
            raise _arguments.mistyped(f"tallies[{position}] must be a Tally", tally)
        if tally.oracle.domain != groups[0].oracle.domain:
            raise InvalidValueError(
                f"tallies[{position}] must be of the domain of tallies[0], "
                f"{groups[0].oracle.domain!r}, got {tally.oracle.domain!r}"
            )
    estimates = [tally.estimate(method) for tally in groups]
    biased = next((each.estimation.bias for each in estimates if each.estimation.bias), None)
    if biased is not None:
        raise InvalidValueError(f"method must be unbiased: {biased}")
    nodes = sum(each.nodes for each in estimates)
    counts = np.sum([each.counts for each in estimates], axis=0)
    _arguments.instance("same_people", same_people, bool, "True or False")
    plans = tuple(tally.plan for tally in groups)
    alike = sharing(plans) if same_people else [1] * len(plans)
    errors = [each.standard_errors * each.nodes for each in estimates]
    variances = np.sum([n * error**2 for n, error in zip(alike, errors, strict=True)], axis=0)
    return FrequencyEstimate._from_estimation(
        _MixedPlan(groups[0].oracle.domain, tuple(tally.oracle.epsilon for tally in groups), plans),
        method,
        nodes,
        sum(each.received for each in estimates),
        Estimation(counts / nodes, variances / float(nodes) ** 2),
        left_out=sum((each.left_out for each in estimates), NOTHING),
    )


def _for_each_node(epsilons: Any, costs: Any) -> tuple[Floats, Floats]:
    """Check two arguments and extend them to one length: a number is for all nodes."""
    found, sizes = {}, set()
    for name, given in (("epsilons", epsilons), ("costs", costs)):
        single = np.ndim(given) == 0
        entries = [_arguments.number(name, given)] if single else given
        expected = "a sequence of real numbers, one for each node"
        array = _arguments.vector(name, entries, expected).astype(np.float64)
        if not array.size:
            raise InvalidValueError(f"{name} must hold a number for each node, got none")
        wrong = ~((array > 0.0) & np.isfinite(array))
        _arguments.refuse_entries(name, array, wrong, "finite and above 0")
        found[name] = array
        if not single:
            sizes.add(array.size)
    if not sizes:
        raise InvalidValueError(
            "epsilons or costs must hold a number for each node, got two numbers"
        )
    if len(sizes) > 1:
        raise InvalidValueError(
            "epsilons and costs must have the same length, got "
            f"{found['epsilons'].size} and {found['costs'].size}"
        )
    first, second = (np.broadcast_to(array, tuple(sizes)).copy() for array in found.values())
    return first, second


def _fill(totals: Floats, costs: Floats, budget: float) -> tuple[Floats, float]:
    """Minimise ``sum totals / pi`` within the budget; return probabilities and multiplier.

    ``pi = clip(level * ratio)`` with ``ratio = sqrt(totals / costs)``. The cost rises with the
    level. Bisection finds the nodes that are not at their bounds at the level of the budget; the
    equation of these nodes then gives the level.
    """
    floor = Personalized.minimum
    if budget >= math.fsum(costs):
        return np.ones_like(totals), 0.0
    ratios = np.sqrt(totals / costs)
    below, above = math.log(floor / ratios.max()), math.log(1.0 / ratios.min())
    while below < (middle := 0.5 * (below + above)) < above:
        if costs @ np.clip(math.exp(middle) * ratios, floor, 1.0) <= budget:
            below = middle
        else:
            above = middle
    level = math.exp(below)
    probabilities = np.clip(level * ratios, floor, 1.0)
    free = (probabilities > floor) & (probabilities < 1.0)
    if free.any():
        # The equation of those who are free, with sums that cancel nothing.
        rest = budget - math.fsum((costs * probabilities)[~free])
        level = rest / math.fsum((costs * ratios)[free])
        probabilities = np.clip(level * ratios, floor, 1.0)
    # Rounding must not overspend.
    while (excess := math.fsum(costs * probabilities) - budget) > 0.0:
        shrink = 1.0 - max(2.0**-52, 2.0 * excess / budget)
        probabilities[free] = np.clip(probabilities[free] * shrink, floor, 1.0)
        if not free.any():
            free = probabilities > floor
    return probabilities, 1.0 / level**2
