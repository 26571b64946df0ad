"""What is asked of a plan, and what an oracle promises for it."""

from __future__ import annotations

from dataclasses import dataclass, field

from turnout import _arguments
from turnout.frequency.oracle import FrequencyOracle
from turnout.planning.laws import Population, ReportLaw, Spread


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
class PlanSetting:
    """What is asked of a plan.

    Attributes
    ----------
    nodes, target, value, budget, confidence, method, cost_per_report, cost_per_bit
        As for :func:`plan`.
    population
        The assumed frequencies, equal ones put together.
    """

    nodes: int
    target: str
    value: float | None
    budget: float | None
    confidence: float
    method: str
    cost_per_report: float
    cost_per_bit: float
    population: Population = field(repr=False)

    def spread_at(self, rate: float, oracle: FrequencyOracle) -> Spread:
        """Give the law of the errors of an oracle's estimates at a participation rate."""
        inverse = self.population.inverse_size(_arguments.probability("rate", rate), self.method)
        return Spread(ReportLaw.of(oracle), self.population, inverse, self.method)

    def error_at(self, rate: float, oracle: FrequencyOracle) -> float:
        """Promise the error of an oracle at a participation rate, in terms of the target."""
        return self.spread_at(rate, oracle).value(self.target, self.confidence)

    def cost_at(self, rate: float, oracle: FrequencyOracle) -> float:
        """Give what the reports of an oracle cost at a participation rate."""
        unit = self.cost_per_report + self.cost_per_bit * oracle.report_bits
        return self.nodes * rate * unit

    def sought(self, each: PlanCandidate) -> float:
        """Give what is to be small: the cost with a value, else the error."""
        return each.error if self.value is None else each.cost

    def rank(self, each: PlanCandidate) -> tuple[bool, bool, float, int]:
        """Order candidates: the best first, those that cannot be chosen last."""
        return (
            each.oracle is None, each.remark is not None, self.sought(each), each.report_bits or 0
        )  # fmt: skip


def written_cost(cost: float) -> str:
    """Write a cost in full where it is large, with six digits where it is small.

    Examples
    --------
    >>> written_cost(1234567.8), written_cost(0.123456789)
    ('1,234,568', '0.123457')
    """
    return f"{cost:,.0f}" if cost >= 100_000 else f"{cost:,.6g}"
