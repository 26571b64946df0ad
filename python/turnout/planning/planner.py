"""The planner: the cheapest collection for a target, or the best one for a budget."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from turnout import _arguments
from turnout.accounting.values import nonnegative, positive
from turnout.domain import Domain, one_domain
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.choice import TIE, Factory, factories, make, reasons
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Participation, taking_part_in
from turnout.planning.candidates import PlanCandidate, PlanSetting, written_cost
from turnout.planning.laws import Population
from turnout.planning.proposal import PlanProposal

TARGETS = ("rmse", "max_error", "total_variation")

#: How many epsilons of a range are looked at.
_GRID = 13


def plan(
    *,
    epsilon: Any,
    domain_size: Domain | Sequence[Hashable] | int | None = None,
    domain: Domain | Sequence[Hashable] | int | None = None,
    nodes: int,
    participation: Participation | float | None = None,
    target: str = "rmse",
    value: float | None = None,
    budget: float | None = None,
    cost_per_report: float = 1.0,
    cost_per_bit: float = 0.0,
    confidence: float = 0.95,
    frequencies: Any = None,
    report_bits: int | None = None,
    oracles: Any = None,
) -> PlanProposal:
    """Plan a collection: choose the oracle and the participation rate.

    With ``value``, it is the cheapest collection whose error is at most the value. With ``budget``,
    it is the collection of smallest error whose cost is at most the budget. With both, it is the
    one of smallest epsilon that meets both. With neither, it is the one of smallest error if all
    nodes report. With ``participation`` the rate is fixed: the plan has the smallest error, and
    must keep to ``value`` and ``budget``.

    Parameters
    ----------
    epsilon
        The privacy of a report: a number; a tuple ``(low, high)`` for a range; or a list of numbers
        to choose from. More epsilon always needs fewer reports, so without ``budget`` the planner
        (nearly always) chooses the highest value of a range.
    domain_size, domain
        The answers: a :class:`turnout.Domain`, a list of labels, or their number. Pass one of the
        two arguments.
    nodes
        The number of nodes.
    participation
        The participation, if it is fixed: a number, :class:`turnout.Bernoulli` or
        :class:`turnout.Everyone`. By default the planner searches for the rate.
    target
        The error that ``value`` limits. ``"rmse"``: the root of the mean squared error of the
        estimated frequencies over answers. ``"max_error"``: the limit that the largest error over
        all answers does not exceed with probability ``confidence``. ``"total_variation"``: the
        expected total variation distance of the estimate from the truth, before any projection.
    value
        The largest acceptable error, above 0.
    budget
        The largest acceptable expected cost, above 0.
    cost_per_report, cost_per_bit
        The costs of a report and of each of its bits, at least 0; together above 0.
    confidence
        The probability for ``"max_error"``.
    frequencies
        The assumed true frequencies, one for each answer; equal ones by default. They hardly affect
        rmse and total variation unless epsilon is large or an answer is very common.
    report_bits
        The largest report that can be sent; no limit by default.
    oracles
        The candidates, as for :func:`choose_oracle`.

    Returns
    -------
    PlanProposal
        The oracle, the participation, the promised error and its cost, the alternatives, and a
        check by simulation.

    Raises
    ------
    InvalidValueError
        If an argument is out of range or no oracle fits. If the target cannot be met even if all
        nodes report (the message gives the best error), or not within the budget (the message gives
        the cost).
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    The rmse is exact (design-based variances: perturbation, participation and the finite number of
    nodes). The other two assume normal errors with exactly these variances; the largest error
    includes the skewness of rare answers. See :meth:`PlanProposal.simulate`. Every plan has at
    least 25 expected reports. The rate is rounded up to six digits, so that the promise holds.

    Examples
    --------
    >>> proposal = plan(epsilon=1.0, domain_size=50, nodes=1_000_000, value=0.01,
    ...                 oracles=["direct_encoding"])
    >>> proposal.participation, round(proposal.error, 6)
    (Bernoulli(0.177531), 0.01)
    >>> stated = plan(epsilon=1.0, domain_size=50, nodes=1_000_000, participation=0.2)
    >>> stated.oracle.name, stated.participation, round(stated.error, 5)
    ('subset_selection', Bernoulli(0.2), 0.0042)
    """
    nodes = _arguments.integer("nodes", nodes, least=1, most=2**63)
    _arguments.choice("target", target, TARGETS)
    costs = {
        name: float(nonnegative(name, _arguments.number(name, cost)))
        for name, cost in (("cost_per_report", cost_per_report), ("cost_per_bit", cost_per_bit))
    }
    if not any(costs.values()):
        raise InvalidValueError("cost_per_report and cost_per_bit must not both be 0")
    limit = _arguments.optional_integer("report_bits", report_bits, least=1)
    answers = one_domain(domain_size, domain)
    population = Population.of(nodes, answers.size, frequencies)
    search = _Search(
        nodes=nodes,
        target=target,
        value=None if value is None else positive("value", value),
        budget=None if budget is None else positive("budget", budget),
        confidence=_arguments.confidence("confidence", confidence),
        **costs,
        stated_rate=None if participation is None else _stated(participation, population),
        population=population,
        domain=answers,
        report_bits=limit,
        makers=factories(oracles),
    )
    epsilons, is_range = _epsilons(epsilon)
    candidates = [each for level in epsilons for each in search.at(level)]
    if value is not None and (budget is not None or search.stated_rate is not None):
        chosen = _smallest_epsilon(search, candidates, epsilons, is_range)
        if all(each is not chosen for each in candidates):
            candidates += [each for each in search.at(chosen.epsilon) if each.name != chosen.name]
            candidates.append(chosen)
    else:
        chosen = search.best(candidates)
    return search.propose(chosen, candidates)


def _stated(participation: Participation | float, population: Population) -> float:
    """Check a given rate: it is common to all nodes, and gives enough expected reports."""
    rate = taking_part_in(participation).uniform_rate
    if rate is None:
        raise InvalidValueError(
            f"participation must be one rate for all nodes, got {participation!r}"
        )
    least = population.least_rate()
    if rate < least:
        raise InvalidValueError(
            f"participation must be at least {_up(least)}, for {_fewest(population.nodes)} "
            f"expected reports of {population.nodes:,} nodes, got {rate!r}"
        )
    return rate


def _epsilons(epsilon: Any) -> tuple[list[float], bool]:
    """Return the epsilons to try, ascending, and whether they represent a range."""
    is_range = isinstance(epsilon, tuple)
    expected = "a number, a tuple (low, high) or a list of numbers"
    if isinstance(epsilon, (str, bytes)):
        raise _arguments.mistyped(f"epsilon must be {expected}", epsilon)
    scalar = not is_range and (hasattr(type(epsilon), "__float__") and not np.ndim(epsilon))
    given = [epsilon] if scalar else _arguments.items("epsilon", epsilon, expected)
    levels = [positive("epsilon", each) for each in given]
    if is_range and (len(levels) != 2 or not levels[0] <= levels[1]):
        raise _arguments.invalid(
            "epsilon as a range must be (low, high) with low below high", epsilon
        )
    if not levels:
        raise InvalidValueError("epsilon must hold a number, got none")
    levels = sorted(set(levels))
    if is_range and len(levels) == 2:
        low, high = levels
        inner = np.geomspace(low, high, _GRID)[1:-1].tolist()
        levels = [low, *inner, high]
    return levels, is_range


@dataclass(frozen=True)
class _Search(PlanSetting):
    """The search for the rate of every oracle."""

    #: The largest report that can be sent.
    report_bits: int | None
    domain: Domain
    makers: list[tuple[str, Factory]]

    def at(self, epsilon: float) -> list[PlanCandidate]:
        """Return a candidate for every oracle at an epsilon."""
        return [self._candidate(name, maker, epsilon) for name, maker in self.makers]

    def _candidate(self, name: str, maker: Factory, epsilon: float) -> PlanCandidate:
        try:
            oracle = make(maker, epsilon, self.domain)
        except InvalidTypeError:
            raise
        except InvalidValueError as refusal:
            return PlanCandidate(name, epsilon, None, math.nan, math.inf, math.inf, str(refusal))
        rate = self.stated_rate
        if rate is None:
            rate = max(self._rate(oracle), self.population.least_rate())
        error, cost = self._error_at(rate, oracle), self._cost_at(rate, oracle)
        remark = None
        if self.report_bits is not None and oracle.report_bits > self.report_bits:
            remark = f"reports of more than {self.report_bits:,} bits"
        elif self.value is not None and error > self.value:
            also = ", also if everyone reports" if self.stated_rate is None else ""
            remark = f"error above {self.value:g}{also}"
        elif self.budget is not None and cost > self.budget:
            remark = f"cost above the budget of {written_cost(self.budget)}"
        return PlanCandidate(oracle.name, epsilon, oracle, rate, cost, error, remark)

    def _rate(self, oracle: FrequencyOracle) -> float:
        """Find the smallest rate that meets the value, or the largest within the budget."""
        if self.value is not None:
            return self._rate_for_value(oracle, self.value)
        if self.budget is None:
            return 1.0
        rate = min(1.0, self.budget / self._cost_at(1.0, oracle))
        while self._cost_at(rate, oracle) > self.budget:
            # Rounding must not cost more than there is.
            rate = math.nextafter(rate, 0.0)
        return rate

    def _rate_for_value(self, oracle: FrequencyOracle, value: float) -> float:
        """Find the smallest rate that meets a value, rounded up; 1 if none does."""
        from scipy.optimize import brentq  # noqa: PLC0415

        least = self.population.least_rate()
        if self._error_at(1.0, oracle) >= value:
            return 1.0
        if self._error_at(least, oracle) <= value:
            return least

        def excess(logarithm: float) -> float:
            return math.log(self._error_at(math.exp(logarithm), oracle) / value)

        rate = _round_up(math.exp(float(brentq(excess, math.log(least), 0.0, xtol=1e-12))))
        while rate < 1.0 and self._error_at(rate, oracle) > value:
            rate = _round_up(rate * (1.0 + 1e-6))
        return rate

    def best(self, candidates: list[PlanCandidate]) -> PlanCandidate:
        """Choose a candidate: the cheapest if there is a value, else that of smallest error.

        Of the candidates within half a percent of the best, the one with the smallest reports is
        chosen.

        Raises
        ------
        InvalidValueError
            If no candidate can be chosen.
        """
        fitting = [each for each in candidates if each.remark is None]
        if not fitting:
            raise InvalidValueError(self._refusal(candidates))
        best = min(fitting, key=lambda each: (*self._rank(each), each.epsilon))
        # Half a percent is not worth a report that is a thousand times as large.
        tied = [
            each
            for each in fitting
            if each.epsilon == best.epsilon and self._sought(each) <= TIE * self._sought(best)
        ]
        return min(tied, key=lambda each: (each.report_bits or 0, self._sought(each)))

    def _refusal(self, candidates: list[PlanCandidate]) -> str:
        made = [each for each in candidates if each.oracle is not None]
        if not made:
            why = reasons((each.name, str(each.remark)) for each in candidates)
            return f"no oracle takes epsilon and domain_size: {why}"
        limit = self.report_bits
        small = [each for each in made if limit is None or (each.report_bits or 0) <= limit]
        if not small:
            least = min(made, key=lambda each: each.report_bits or 0)
            return f"report_bits must be at least {least.report_bits} ({least.name}), got {limit}"
        if self.value is not None:
            met = [each for each in small if each.error <= self.value]
            if met:
                cheap = min(met, key=lambda each: (each.cost, each.error))
                return (
                    f"budget must be at least {_up(cheap.cost)} for {self.target} "
                    f"{self.value:g} ({cheap.name} at epsilon {cheap.epsilon:g}), got "
                    f"{self.budget:g}"
                )
            best = min(small, key=lambda each: each.error)
            who = f"all {self.nodes:,} nodes report"
            if self.stated_rate is not None and self.stated_rate < 1.0:
                who = f"{100 * self.stated_rate:.6g} % of the {self.nodes:,} nodes report"
            return (
                f"value must be at least {_up(best.error)}, the {self.target} if {who} "
                f"({best.name} at epsilon {best.epsilon:g}), got {self.value:g}"
            )
        least_cost = min(each.cost for each in small)
        reports = str(_fewest(self.nodes))
        if self.stated_rate is not None:
            reports = f"{self.nodes * self.stated_rate:,.0f} expected"
        return (
            f"budget must be at least {_up(least_cost)}, for {reports} reports, got {self.budget:g}"
        )

    def propose(self, chosen: PlanCandidate, candidates: list[PlanCandidate]) -> PlanProposal:
        """Build the proposal from a choice."""
        asked = {each.name: getattr(self, each.name) for each in fields(PlanSetting)}
        assert chosen.oracle is not None
        return PlanProposal(
            **asked,
            oracle=chosen.oracle,
            rate=chosen.rate,
            cost=chosen.cost,
            error=chosen.error,
            candidates=tuple(candidates),
        )


def _smallest_epsilon(
    search: _Search, candidates: list[PlanCandidate], epsilons: list[float], is_range: bool
) -> PlanCandidate:
    """Find the smallest epsilon with a candidate that meets value and budget."""
    for position, level in enumerate(epsilons):
        fitting = [each for each in candidates if each.epsilon == level and each.remark is None]
        if not fitting:
            continue
        best = search.best(fitting)
        if not is_range or position == 0:
            return best
        low, high = epsilons[position - 1], level
        while high > low * (1.0 + 1e-4):
            middle = _round_up(math.sqrt(low * high))
            if not low < middle < high:
                break
            found = [each for each in search.at(middle) if each.remark is None]
            if found:
                high, best = middle, search.best(found)
            else:
                low = middle
        return best
    return search.best(candidates)


def _fewest(nodes: int) -> int:
    """Write the least number of expected reports of a plan."""
    return min(25, nodes)


def _round_up(rate: float) -> float:
    """Round up to six significant digits; at most 1 for rates below it."""
    if rate >= 1.0 and rate == int(rate):
        return rate
    digits = 5 - math.floor(math.log10(rate))
    rounded = float(f"{math.ceil(rate * 10.0**digits - 1e-9)}e{-digits}")
    return min(1.0, rounded) if rate <= 1.0 else rounded


def _up(value: float) -> str:
    """Write a number with four digits, rounded up."""
    digits = 3 - math.floor(math.log10(value))
    return f"{float(f'{math.ceil(value * 10.0**digits)}e{-digits}'):.6g}"
