"""Pictures of choices and trade-offs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout._extras import require
from turnout.frequency.pictures import new_axes
from turnout.planning.proposal import WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from turnout.planning.choice import OracleChoice
    from turnout.planning.tradeoff import TradeOff

__all__ = ["plot_choice", "plot_tradeoff"]

_CHOSEN = "#1f6f8b"
_OTHER = "#8a93a0"
_LIMIT = "#d1495b"

#: From the front: the lines of a picture with many oracles stay apart in colour and dash.
_DASHES = ("-", "--", "-.", ":")


def plot_choice(choice: OracleChoice, ax: Any) -> Axes:
    """Draw a choice: see :meth:`OracleChoice.plot`."""
    axes = new_axes(ax)
    found = [each for each in choice.candidates if each.report_bits is not None]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    named: list[tuple[float, float]] = []
    # From the smallest report up, so that names of points side by side step upwards.
    for each in sorted(found, key=lambda each: (each.report_bits or 0, each.variance)):
        chosen = each.oracle is choice.oracle
        fits = each.refused is None
        x, y = float(each.report_bits or 1), math.sqrt(each.variance)
        axes.plot(
            [x],
            [y],
            "o",
            markersize=9 if chosen else 6,
            color=_CHOSEN if chosen else _OTHER,
            fillstyle="full" if fits else "none",
            zorder=4 if chosen else 3,
        )
        named.append((x, y))
    if choice.report_bits is not None:
        axes.axvline(choice.report_bits, color=_LIMIT, linewidth=1.2, linestyle="--", zorder=1)
    low, high = (min(y for _, y in named), max(y for _, y in named))
    axes.set_ylim(low / 1.25, max(high * 1.25, low * 2.0))
    bits = [x for x, _ in named]
    axes.set_xlim(min(bits) / 1.6, max(max(bits) * 4.0, min(bits) * 8.0))
    _name_points(axes, choice)
    axes.set_xlabel("bits of a report")
    axes.set_ylabel("standard error of a frequency × √reports")
    limit = "" if choice.report_bits is None else f", at most {choice.report_bits:,} bits"
    axes.set_title(
        f"ε = {choice.epsilon:g}, {choice.domain.size:,} answers{limit}", fontsize=10, loc="left"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", color="0.92", zorder=0)
    return axes


def _name_points(axes: Axes, choice: OracleChoice) -> None:
    """Write names beside points; names that would overlap move up, with a line to their point."""
    figure: Any = axes.figure
    figure.draw_without_rendering()
    taken: list[tuple[float, float, float]] = []
    line, letter = 11.0, 5.2
    scale = figure.dpi / 72.0
    found = [each for each in choice.candidates if each.report_bits is not None]
    for each in sorted(found, key=lambda each: (each.variance, each.report_bits or 0)):
        place = axes.transData.transform((each.report_bits or 1, math.sqrt(each.variance)))
        x, y = float(place[0]) / scale + 7.0, float(place[1]) / scale
        width = letter * len(each.name)
        level = y
        while any(
            abs(level - other) < line and x < right and left < x + width
            for left, right, other in taken
        ):
            level += 1.0
        taken.append((x, x + width, level))
        moved = level - y > line / 2
        chosen = each.oracle is choice.oracle
        axes.annotate(
            each.name.replace("_", " "),
            (each.report_bits or 1, math.sqrt(each.variance)),
            textcoords="offset points",
            xytext=(7.0, level - y),
            fontsize=8,
            va="center",
            color=_CHOSEN if chosen else "0.3",
            fontweight="bold" if chosen else "normal",
            arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.6} if moved else None,
        )


def plot_tradeoff(tradeoff: TradeOff, ax: Any) -> Axes:
    """Draw a trade-off: see :meth:`TradeOff.plot`."""
    axes = new_axes(ax, width=7.6, height=4.6)
    proposal = tradeoff.proposal
    pyplot = require("matplotlib.pyplot", "plot")
    colours = pyplot.get_cmap("viridis")
    last = max(1, len(tradeoff.curves) - 1)
    for position, curve in enumerate(tradeoff.curves):
        chosen = curve.name == proposal.oracle.name
        axes.plot(
            tradeoff.rates,
            curve.errors,
            linestyle="-" if chosen else _DASHES[position % len(_DASHES)],
            linewidth=2.4 if chosen else 1.2,
            marker="." if len(tradeoff.rates) == 1 else None,
            color=colours(0.05 + 0.8 * position / last),
            label=f"{curve.name.replace('_', ' ')} ({curve.report_bits:,} bits)",
            zorder=3 if chosen else 2,
        )
    axes.plot([proposal.rate], [proposal.error], "o", color=_LIMIT, markersize=7, zorder=5)
    if proposal.value is not None:
        axes.axhline(proposal.value, color=_LIMIT, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("participation rate")
    words = WORDS[proposal.target]
    axes.set_ylabel(
        f"{words}, {proposal.confidence:.4g} confidence"
        if proposal.target == "max_error"
        else words
    )

    def reports(rate: Any) -> Any:
        return rate * proposal.nodes

    def rate(reports: Any) -> Any:
        return reports / proposal.nodes

    top = axes.secondary_xaxis("top", functions=(reports, rate))
    top.set_xlabel("expected reports")
    axes.legend(
        frameon=False,
        fontsize=8,
        title=f"ε = {proposal.epsilon:g}, {proposal.population.size:,} answers",
        title_fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    axes.spines["right"].set_visible(False)
    axes.grid(visible=True, which="major", color="0.92", zorder=0)
    return axes
