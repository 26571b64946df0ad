"""The setting of a plan, its candidates, and the trade-off between error and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from turnout import _arguments
from turnout._drawing import new_axes, plain_logarithmic
from turnout._extras import require
from turnout._tables import Tabular
from turnout._types import Axes
from turnout.collecting.intervals import mean_inverse
from turnout.frequency.oracle import FrequencyOracle
from turnout.planning.laws import WORDS, Population, ReportLaw, Spread

#: The colour of what is proposed, and of what was asked for.
_PROPOSED = "#d1495b"

#: Lines of nearly one error stay apart by dash.
_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class PlanCandidate:
    """One oracle at one epsilon.

    Attributes
    ----------
    name, epsilon
        The oracle's name in plans, and the epsilon.
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
        """The size of a report in bits; None without an oracle."""
        return None if self.oracle is None else self.oracle.report_bits


@dataclass(frozen=True)
class PlanSetting:
    """The setting of a plan, as passed to :func:`plan`.

    Attributes
    ----------
    nodes, target, value, budget, confidence, cost_per_report, cost_per_bit
        As for :func:`plan`.
    stated_rate
        The given participation rate; None if the planner searches for it.
    population
        The assumed frequencies, with equal ones merged.
    """

    nodes: int
    target: str
    value: float | None
    budget: float | None
    confidence: float
    cost_per_report: float
    cost_per_bit: float
    stated_rate: float | None
    population: Population = field(repr=False)

    def _spread_at(self, rate: float, oracle: FrequencyOracle) -> Spread:
        """Return the law of the errors of an oracle's estimates at a participation rate."""
        inverse = mean_inverse(self.nodes, _arguments.probability("rate", rate))
        return Spread(ReportLaw.of(oracle), self.population, inverse)

    def _error_at(self, rate: float, oracle: FrequencyOracle) -> float:
        """Return the promised error of an oracle at a participation rate, for the target."""
        return self._spread_at(rate, oracle).value(self.target, self.confidence)

    def _cost_at(self, rate: float, oracle: FrequencyOracle) -> float:
        """Return the cost of the reports of an oracle at a participation rate."""
        unit = self.cost_per_report + self.cost_per_bit * oracle.report_bits
        return self.nodes * rate * unit

    def _sought(self, each: PlanCandidate) -> float:
        """Return what to minimise: the cost if the value determines the rate, else the error."""
        return each.cost if self._value_settles_rate else each.error

    @property
    def _value_settles_rate(self) -> bool:
        """Whether the planner searches for the smallest rate that meets the value."""
        return self.value is not None and self.stated_rate is None

    def _rank(self, each: PlanCandidate) -> tuple[bool, bool, float, int]:
        """Return a sort key: the best first, candidates that cannot be chosen last."""
        return (
            each.oracle is None, each.remark is not None, self._sought(each), each.report_bits or 0
        )  # fmt: skip


def written_cost(cost: float) -> str:
    """Write a cost: a large one in full, a small one with six digits.

    Examples
    --------
    >>> written_cost(1234567.8), written_cost(0.123456789)
    ('1,234,568', '0.123457')
    """
    return f"{cost:,.0f}" if cost >= 100_000 else f"{cost:,.6g}"


@dataclass(frozen=True)
class TradeOffCurve:
    """The promised errors of one oracle.

    Attributes
    ----------
    name
        The oracle's name in plans.
    report_bits
        The size of a report.
    costs, errors
        The expected cost and the promised error at each rate.
    """

    name: str
    report_bits: int
    costs: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class TradeOff(Tabular):
    """The result of :meth:`PlanProposal.tradeoff`.

    Attributes
    ----------
    rates
        The participation rates, ascending.
    curves
        One curve for each oracle, the smallest error first.
    setting
        The setting of the plan.
    chosen
        The proposed candidate.
    """

    rates: tuple[float, ...]
    curves: tuple[TradeOffCurve, ...]
    setting: PlanSetting = field(repr=False)
    chosen: PlanCandidate = field(repr=False)

    _columns = ("oracle", "rate", "cost", "error", "report_bits")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each oracle at each rate, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``oracle``, ``rate``, ``cost``, ``error`` and ``report_bits``.
        """
        return [
            {
                "oracle": curve.name,
                "rate": rate,
                "cost": cost,
                "error": error,
                "report_bits": curve.report_bits,
            }
            for curve in self.curves
            for rate, cost, error in zip(self.rates, curve.costs, curve.errors, strict=True)
        ]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error against the participation rate, one line for each oracle.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, on logarithmic scales, with the expected reports on top, the target as a line
            and the proposal as a point.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        setting, best = self.setting, self.chosen
        axes = new_axes(ax, width=7.6, height=4.6)
        colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
        for position, curve in enumerate(self.curves):
            chosen = curve.name == best.name
            axes.plot(
                self.rates,
                curve.errors,
                linestyle="-" if chosen else _DASHES[position % len(_DASHES)],
                linewidth=2.4 if chosen else 1.2,
                marker="." if len(self.rates) == 1 else None,
                color=colours(0.05 + 0.8 * position / max(1, len(self.curves) - 1)),
                label=f"{curve.name.replace('_', ' ')} ({curve.report_bits:,} bits)",
                zorder=3 if chosen else 2,
            )
        axes.plot([best.rate], [best.error], "o", color=_PROPOSED, markersize=7, zorder=5)
        if setting.value is not None:
            axes.axhline(setting.value, color=_PROPOSED, linewidth=1.0, linestyle=":", zorder=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_logarithmic(axes.yaxis)
        axes.set_xlabel("participation rate")
        surely = f", {setting.confidence:.4g} confidence" if setting.target == "max_error" else ""
        axes.set_ylabel(WORDS[setting.target] + surely)
        per_rate: Any = setting.nodes
        top = axes.secondary_xaxis(
            "top", functions=(lambda rate: rate * per_rate, lambda reports: reports / per_rate)
        )
        top.set_xlabel("expected reports")
        axes.legend(
            frameon=False,
            fontsize=8,
            title=f"ε = {best.epsilon:g}, {setting.population.size:,} answers",
            title_fontsize=9,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )
        axes.spines["right"].set_visible(False)
        axes.grid(visible=True, which="major", color="0.92", zorder=0)
        return axes
