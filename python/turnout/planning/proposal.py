"""What the planner proposes, and how it is checked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._tables import Listing
from turnout._types import Floats, Unsigned
from turnout.collecting.plan import Plan
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Participation
from turnout.planning.laws import WORDS, Population, ReportLaw, Spread
from turnout.planning.tradeoff import TradeOff, TradeOffCurve

#: Up to so many nodes the largest error is measured node by node.
_NODE_BY_NODE = 100_000


@dataclass(frozen=True)
class PlanCandidate:
    """One oracle at one epsilon.

    Attributes
    ----------
    name, epsilon
        The oracle's word in plans, and the epsilon.
    oracle
        The oracle; None if it does not take the epsilon or the domain.
    rate
        The participation rate.
    cost
        The expected cost.
    error
        The promised error.
    remark
        Why it cannot be chosen, or None.
    """

    name: str
    epsilon: float
    oracle: FrequencyOracle | None
    rate: float
    cost: float
    error: float
    remark: str | None

    @property
    def report_bits(self) -> int | None:
        """The size of a report; None without an oracle."""
        return None if self.oracle is None else self.oracle.report_bits


@dataclass(frozen=True)
class PlanCheck:
    """A promise beside what simulated collections measured.

    Attributes
    ----------
    target
        What was promised.
    promised, measured
        The error, and its value over the simulated collections.
    standard_error
        Of the measured value.
    runs
        How many collections were simulated.
    """

    target: str
    promised: float
    measured: float
    standard_error: float
    runs: int

    @property
    def ratio(self) -> float:
        """The measured error over the promised one."""
        return self.measured / self.promised


@dataclass(frozen=True, eq=False)
class PlanProposal(Listing):
    """The result of :func:`plan`.

    Attributes
    ----------
    oracle
        The randomizer.
    participation
        :class:`~turnout.Bernoulli`, or :class:`~turnout.Everyone` if all nodes must report.
    nodes, target, value, budget, confidence, method, cost_per_report, cost_per_bit
        The setting.
    error
        The promised error, in terms of ``target``; at most ``value`` if there is one.
    cost
        The expected cost; at most ``budget`` if there is one.
    candidates
        Every oracle at every epsilon that was looked at.
    population
        The assumed frequencies, equal ones put together.
    """

    oracle: FrequencyOracle
    participation: Participation
    nodes: int
    target: str
    value: float | None
    budget: float | None
    confidence: float
    method: str
    cost_per_report: float
    cost_per_bit: float
    error: float
    cost: float
    candidates: tuple[PlanCandidate, ...] = field(repr=False)
    population: Population = field(repr=False)

    _columns = ("name", "epsilon", "rate", "cost", "error", "report_bits", "remark")

    def _listed(self) -> Iterable[Any]:
        return sorted(self.candidates, key=self._rank)

    @property
    def rate(self) -> float:
        """The participation rate."""
        return self.participation.uniform_rate or 1.0

    @property
    def epsilon(self) -> float:
        """The privacy of a report."""
        return self.oracle.epsilon

    @property
    def expected_reports(self) -> float:
        """How many reports are expected: nodes times rate."""
        return self.nodes * self.rate

    @property
    def expected_bits(self) -> float:
        """The expected size of all reports in bits."""
        return self.expected_reports * self.oracle.report_bits

    @property
    def errors(self) -> dict[str, float]:
        """The promised errors in terms of every target."""
        spread = self.spread_at(self.rate)
        return {target: spread.value(target, self.confidence) for target in WORDS}

    @property
    def collection_plan(self) -> Plan:
        """The plan that reports and tallies of this collection carry."""
        return Plan(self.oracle, self.participation)

    def spread_at(self, rate: float, oracle: FrequencyOracle | None = None) -> Spread:
        """Give the law of the errors at another rate, perhaps of another oracle.

        Parameters
        ----------
        rate
            The participation rate, in (0, 1].
        oracle
            Another oracle of the same domain; the proposed one by default.
        """
        inverse = self.population.inverse_size(_arguments.probability("rate", rate), self.method)
        law = ReportLaw.of(self.oracle if oracle is None else oracle)
        return Spread(law, self.population, inverse, self.method)

    def error_at(self, rate: float, oracle: FrequencyOracle | None = None) -> float:
        """Promise the error at another rate, perhaps of another oracle.

        Parameters
        ----------
        rate, oracle
            As for :meth:`spread_at`.
        """
        return self.spread_at(rate, oracle).value(self.target, self.confidence)

    def table(self) -> str:
        """Format the alternatives as a plain-text table.

        Returns
        -------
        str
            One line for each oracle at the epsilon that was chosen, the chosen one with an
            asterisk; for several epsilons one more for the best at each.
        """
        rows = sorted(
            (each for each in self.candidates if each.epsilon == self.epsilon), key=self._rank
        )
        width = max(len(each.name) for each in self.candidates)
        header = (
            f"  {'oracle':<{width}} {'epsilon':>8} {'bits':>7} {'rate':>9} {'reports':>14} "
            f"{'cost':>14} {self.target:>15}"
        )
        lines = [header, *(self._line(each, width) for each in rows)]
        others = sorted({each.epsilon for each in self.candidates} - {self.epsilon})
        for epsilon in others:
            here = [each for each in self.candidates if each.epsilon == epsilon]
            lines.append(self._line(min(here, key=self._rank), width))
        return "\n".join(lines)

    def _rank(self, each: PlanCandidate) -> tuple[bool, bool, float, int]:
        first = each.error if self.value is None else each.cost
        return each.oracle is None, each.remark is not None, first, each.report_bits or 0

    def _line(self, each: PlanCandidate, width: int) -> str:
        mark = "*" if each.oracle is self.oracle else " "
        if each.oracle is None:
            return f"{mark} {each.name:<{width}} {each.epsilon:>8.4g} refused: {each.remark}"
        note = "" if each.remark is None else f"  ({each.remark})"
        return (
            f"{mark} {each.name:<{width}} {each.epsilon:>8.4g} {each.report_bits:>7,} "
            f"{each.rate:>9.4g} {self.nodes * each.rate:>14,.0f} {each.cost:>14,.6g} "
            f"{each.error:>15.4g}{note}"
        )

    def explain(self) -> str:
        """Say in sentences what is proposed, and why.

        Returns
        -------
        str
            A paragraph.
        """
        oracle, bits = self.oracle, self.oracle.report_bits
        everyone = self.rate == 1.0
        who = "all" if everyone else f"{100 * self.rate:.6g} % of the"
        sentences = [
            f"{oracle.name} with epsilon {oracle.epsilon:g}: {who} {self.nodes:,} nodes report, "
            f"{self.expected_reports:,.0f} reports of {bits:,} bits, at a cost of {self.cost:,.6g}."
        ]
        words = WORDS[self.target]
        if self.target == "max_error":
            words += f" over all answers, with probability {self.confidence:g}"
        promise = f"The {words} is {self.error:.4g}"
        if self.value is not None:
            promise += f", at most {self.value:g}"
        sentences.append(promise + ".")
        if self.value is None and self.budget is None:
            sentences.append("Nothing smaller is reached: all nodes report.")
        runner = self._runner_up()
        if runner is not None:
            if self.value is None:
                ratio = runner.error / self.error
                sentences.append(f"The next best, {runner.name}, has {_times(ratio)} the error.")
            else:
                ratio = runner.cost / self.cost
                sentences.append(f"The next best, {runner.name}, costs {_times(ratio)} as much.")
        sentences.append(self._parts())
        if self._rare():
            sentences.append(
                "Fewer than 10 reports are expected to support a rare answer: the promise is "
                "coarse there, and may be too large by a tenth."
            )
        return " ".join(sentences)

    def _runner_up(self) -> PlanCandidate | None:
        here = [
            each
            for each in self.candidates
            if each.epsilon == self.epsilon and each.oracle is not self.oracle
        ]
        fitting = [each for each in here if each.remark is None]
        return min(fitting, key=self._rank, default=None)

    def _parts(self) -> str:
        """Say how much of the variance is that of the choice of nodes."""
        spread = self.spread_at(self.rate)
        silent = ReportLaw(0.0, 0.0, 0.0, 0.0, exclusive=False)
        chosen = Spread(silent, self.population, spread.inverse, self.method).rmse()
        share = (chosen / spread.rmse()) ** 2
        return f"Of the variance {share:.1%} comes from who takes part, the rest from perturbation."

    def _rare(self) -> bool:
        p, q = self.oracle.support_probabilities
        least = float(self.population.values.min())
        share = least * p + (1.0 - least) * q
        return self.target == "max_error" and q > 0.0 and self.expected_reports * share < 10.0

    def tradeoff(self, rates: Any = None) -> TradeOff:
        """Promise the error of every candidate at this epsilon, against the participation rate.

        Parameters
        ----------
        rates
            Participation rates in (0, 1]; by default 33 from a tenth of the proposed one to 1.

        Returns
        -------
        TradeOff
            Curves, a table and a picture.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a rate is no probability, or there are none.
        """
        if rates is None:
            low = max(self.population.least_rate(), min(self.rate / 10.0, 0.1))
            chosen = np.geomspace(low, 1.0, 33).tolist() if low < 1.0 else [1.0]
            chosen[-1] = 1.0
        else:
            given = _arguments.items("rates", rates, "an iterable of rates")
            chosen = sorted({_arguments.probability("rates", rate) for rate in given})
            if not chosen:
                raise InvalidValueError("rates must hold a rate, got none")
        curves = []
        for each in self.candidates:
            if each.epsilon != self.epsilon or each.oracle is None:
                continue
            bits = each.oracle.report_bits
            unit = self.cost_per_report + self.cost_per_bit * bits
            errors = tuple(self.error_at(rate, each.oracle) for rate in chosen)
            costs = tuple(self.nodes * rate * unit for rate in chosen)
            curves.append(TradeOffCurve(each.name, bits, costs, errors))
        curves.sort(key=lambda curve: (curve.errors[-1], curve.report_bits, curve.name))
        return TradeOff(
            tuple(chosen),
            tuple(curves),
            oracle=self.oracle.name,
            rate=self.rate,
            error=self.error,
            nodes=self.nodes,
            answers=self.population.size,
            epsilon=self.epsilon,
            target=self.target,
            value=self.value,
            confidence=self.confidence,
        )

    def simulate(self, runs: int = 400, *, seed: int | None = None) -> PlanCheck:
        """Simulate the collection, and measure the error that was promised.

        Parameters
        ----------
        runs
            How many collections to simulate, from 10 to a million. The population has the assumed
            frequencies, as far as whole nodes can.
        seed
            Makes the check reproducible.

        Returns
        -------
        PlanCheck
            The promised and the measured error.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is of the wrong type or out of range.

        Examples
        --------
        >>> from turnout.planning import plan
        >>> proposal = plan(epsilon=1.0, domain_size=4, nodes=10_000, oracles="direct_encoding")
        >>> bool(0.8 < proposal.simulate(200, seed=1).ratio < 1.2)
        True
        """
        runs = _arguments.integer("runs", runs, least=10, most=1_000_000)
        first = _arguments.seed(seed)
        counts = self._counts()
        truth = counts / self.nodes
        values: Any = None
        if self.target == "max_error" and self.nodes <= _NODE_BY_NODE:
            # Simulation from counts is exact for each answer, not always for all of them at once.
            values = np.repeat(np.arange(counts.size), counts.astype(np.int64))
            if self.oracle.domain != Domain.from_integers(counts.size):
                values = self.oracle.domain.decode(values)
        found = np.empty(runs)
        for run in range(runs):
            stream = derived(first, run)
            tally = (
                self.oracle.simulate(counts, participation=self.participation, seed=stream)
                if values is None
                else self.oracle.collect(values, participation=self.participation, seed=stream)
            )
            errors = np.abs(tally.estimate(self.method).frequencies - truth)
            if self.target == "rmse":
                found[run] = (errors**2).mean()
            elif self.target == "total_variation":
                found[run] = errors.sum() / 2.0
            else:
                found[run] = errors.max()
        measured, error = self._measured(found)
        return PlanCheck(self.target, self.error, measured, error, runs)

    def _measured(self, found: Floats) -> tuple[float, float]:
        runs = found.size
        if self.target != "max_error":
            mean, error = float(found.mean()), float(found.std(ddof=1) / math.sqrt(runs))
            if self.target == "total_variation":
                return mean, error
            root = math.sqrt(mean)
            return root, error / (2.0 * root)
        # The standard error of a quantile, from the order statistics one deviation around it.
        level = self.confidence
        reach = math.sqrt(level * (1.0 - level) / runs)
        low, middle, high = np.quantile(
            found, [max(0.0, level - reach), level, min(1.0, level + reach)]
        )
        return float(middle), float(high - low) / 2.0

    def _counts(self) -> Unsigned:
        """Round the assumed frequencies to whole nodes that add up."""
        population = self.population
        shares = np.repeat(population.values, population.weights.astype(np.int64)) * self.nodes
        counts = np.floor(shares).astype(np.uint64)
        missing = self.nodes - sum(counts.tolist())
        order = np.argsort(-(shares - np.floor(shares)), kind="stable")
        counts[order[:missing]] += np.uint64(1)
        return counts


def _times(ratio: float) -> str:
    """Write a ratio of at least 1, however close to it."""
    return f"{ratio:.3g} times" if ratio >= 1.005 else "less than 1.005 times"
