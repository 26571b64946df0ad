"""The planner's proposal, and its check by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
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
from turnout.participation import Bernoulli, Everyone, Participation
from turnout.planning.candidates import PlanCandidate, PlanSetting, TradeOff, TradeOffCurve
from turnout.planning.laws import WORDS, ReportLaw, Spread

#: Up to so many nodes the largest error is measured node by node.
_NODE_BY_NODE = 100_000


@dataclass(frozen=True)
class PlanCheck:
    """A promised error, compared with that of simulated collections.

    Attributes
    ----------
    target
        The name of the promised error.
    promised, measured
        The promised error, and its value over the simulated collections.
    standard_error
        The standard error of the measured value.
    runs
        The number of simulated collections.
    """

    target: str
    promised: float
    measured: float
    standard_error: float
    runs: int

    @property
    def ratio(self) -> float:
        """The measured error divided by the promised one."""
        return self.measured / self.promised


@dataclass(frozen=True)
class PlanProposal(PlanSetting, Listing):
    """The result of :func:`plan`.

    Attributes
    ----------
    nodes, target, value, budget, confidence, cost_per_report, cost_per_bit, stated_rate
        The setting.
    population
        The assumed frequencies, with equal ones merged.
    oracle
        The randomizer.
    rate
        The participation rate.
    cost
        The expected cost; at most ``budget``, if given.
    error
        The promised error for ``target``; at most ``value``, if given.
    candidates
        Every oracle at every epsilon that was tried.
    """

    oracle: FrequencyOracle
    rate: float
    cost: float
    error: float
    candidates: tuple[PlanCandidate, ...] = field(repr=False)

    _columns = ("name", "epsilon", "rate", "cost", "error", "report_bits", "remark")

    def _listed(self) -> Iterable[Any]:
        return sorted(self.candidates, key=self._rank)

    @property
    def participation(self) -> Participation:
        """:class:`~turnout.Bernoulli`, or :class:`~turnout.Everyone` if all nodes must report."""
        return Everyone() if self.rate == 1.0 else Bernoulli(self.rate)

    @property
    def epsilon(self) -> float:
        """The privacy of a report."""
        return self.oracle.epsilon

    @property
    def expected_reports(self) -> float:
        """The expected number of reports: nodes times rate."""
        return self.nodes * self.rate

    @property
    def expected_bits(self) -> float:
        """The expected size of all reports in bits."""
        return self.expected_reports * self.oracle.report_bits

    @property
    def errors(self) -> dict[str, float]:
        """The promised errors for every target."""
        spread = self._spread_at(self.rate, self.oracle)
        return {target: spread.value(target, self.confidence) for target in WORDS}

    @property
    def collection_plan(self) -> Plan:
        """The plan of this collection, which reports and tallies carry."""
        return Plan(self.oracle, self.participation)

    @property
    def _alternatives(self) -> list[PlanCandidate]:
        """The candidates at the chosen epsilon, best first, and the best at each other epsilon."""
        by_epsilon: dict[float, list[PlanCandidate]] = {self.epsilon: []}
        for each in sorted(self.candidates, key=lambda each: (each.epsilon, *self._rank(each))):
            by_epsilon.setdefault(each.epsilon, []).append(each)
        here = by_epsilon.pop(self.epsilon)
        return here + [best for best, *_ in by_epsilon.values()]

    def explain(self) -> str:
        """Explain the proposal in sentences.

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
        if self.stated_rate is not None:
            sentences.append("The participation is the one that was stated.")
        elif self.value is None and self.budget is None:
            sentences.append("Nothing smaller is reached: all nodes report.")
        others = (
            each
            for each in self._alternatives
            if each.epsilon == self.epsilon and each.oracle is not oracle and each.remark is None
        )
        for runner in islice(others, 1):
            if not self._value_settles_rate:
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

    def _parts(self) -> str:
        """Write which part of the variance comes from the choice of nodes."""
        spread = self._spread_at(self.rate, self.oracle)
        silent = ReportLaw(0.0, 0.0, 0.0, 0.0, exclusive=False)
        chosen = Spread(silent, self.population, spread.inverse).rmse()
        share = (chosen / spread.rmse()) ** 2
        return f"Of the variance {share:.1%} comes from who takes part, the rest from perturbation."

    def _rare(self) -> bool:
        p, q = self.oracle.support_probabilities
        least = float(self.population.values.min())
        share = least * p + (1.0 - least) * q
        return self.target == "max_error" and q > 0.0 and self.expected_reports * share < 10.0

    def tradeoff(self, rates: Any = None) -> TradeOff:
        """Compute the error of every candidate at this epsilon, by participation rate.

        Parameters
        ----------
        rates
            Participation rates in (0, 1]; by default 33 rates from a tenth of the proposed one to
            1.

        Returns
        -------
        TradeOff
            Curves, a table and a picture.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If a rate is not a probability, or there are no rates.
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
        curves = [
            TradeOffCurve(
                each.name,
                each.oracle.report_bits,
                tuple(self._cost_at(rate, each.oracle) for rate in chosen),
                tuple(self._error_at(rate, each.oracle) for rate in chosen),
            )
            for each in self.candidates
            if each.epsilon == self.epsilon and each.oracle is not None
        ]
        curves.sort(key=lambda curve: (curve.errors[-1], curve.report_bits, curve.name))
        best = next(each for each in self.candidates if each.oracle is self.oracle)
        return TradeOff(tuple(chosen), tuple(curves), setting=self, chosen=best)

    def simulate(self, runs: int = 400, *, seed: int | None = None) -> PlanCheck:
        """Simulate the collection, and measure the promised error.

        Parameters
        ----------
        runs
            The number of collections to simulate, from 10 to a million. The population has the
            assumed frequencies, as far as whole nodes allow.
        seed
            A seed that makes the check reproducible.

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
        >>> from turnout import plan
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
            # Simulation from counts is exact for each answer, of local hashing not for all at once.
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
            errors = np.abs(tally.estimate().frequencies - truth)
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
        """Round the assumed frequencies to whole nodes that add up to their number."""
        population = self.population
        shares = np.repeat(population.values, population.weights.astype(np.int64)) * self.nodes
        counts = np.floor(shares).astype(np.uint64)
        missing = self.nodes - sum(counts.tolist())
        order = np.argsort(-(shares - np.floor(shares)), kind="stable")
        counts[order[:missing]] += np.uint64(1)
        return counts


def _times(ratio: float) -> str:
    """Write a ratio of at least 1; near 1, write a limit."""
    return f"{ratio:.3g} times" if ratio >= 1.005 else "less than 1.005 times"
