"""How the error falls as more nodes report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from turnout.planning.proposal import PlanProposal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TradeOff", "TradeOffCurve"]


@dataclass(frozen=True)
class TradeOffCurve:
    """The promised errors of one oracle.

    Attributes
    ----------
    name
        The oracle's word in plans.
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
class TradeOff:
    """The result of :meth:`PlanProposal.tradeoff`.

    Attributes
    ----------
    rates
        The participation rates, rising.
    curves
        One for each oracle, the smallest error first.
    proposal
        What was planned.
    """

    rates: tuple[float, ...]
    curves: tuple[TradeOffCurve, ...]
    proposal: PlanProposal = field(repr=False)

    @classmethod
    def of(cls, proposal: PlanProposal, rates: Sequence[float]) -> TradeOff:
        """Compute the curves of a proposal's candidates."""
        curves = []
        for each in proposal.candidates:
            if each.epsilon != proposal.epsilon or each.oracle is None:
                continue
            bits = each.oracle.report_bits
            unit = proposal.cost_per_report + proposal.cost_per_bit * bits
            errors = tuple(proposal.error_at(rate, each.oracle) for rate in rates)
            costs = tuple(proposal.nodes * rate * unit for rate in rates)
            curves.append(TradeOffCurve(each.name, bits, costs, errors))
        curves.sort(key=lambda curve: (curve.errors[-1], curve.report_bits, curve.name))
        return cls(tuple(rates), tuple(curves), proposal)

    def table(self) -> str:
        """Format the errors as a plain-text table.

        Returns
        -------
        str
            One line for each rate, one column for each oracle.
        """
        widths = [max(9, len(curve.name)) for curve in self.curves]
        names = " ".join(
            f"{curve.name:>{width}}" for curve, width in zip(self.curves, widths, strict=True)
        )
        lines = [f"{'rate':>9} {names}"]
        for position, rate in enumerate(self.rates):
            cells = " ".join(
                f"{curve.errors[position]:>{width}.3g}"
                for curve, width in zip(self.curves, widths, strict=True)
            )
            lines.append(f"{rate:>9.4g} {cells}")
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error against the participation rate, a line for each oracle.

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
        from turnout.planning.pictures import plot_tradeoff  # noqa: PLC0415

        return plot_tradeoff(self, ax)
