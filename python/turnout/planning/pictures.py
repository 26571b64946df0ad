"""Pictures of choices and trade-offs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout._drawing import new_axes, plain_logarithmic
from turnout._extras import require
from turnout.planning.proposal import WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from turnout.planning.choice import OracleChoice
    from turnout.planning.tradeoff import TradeOff

__all__ = ["plot_choice", "plot_tradeoff"]

#: The colour of what is proposed, and of what was asked for.
_CHOSEN = "#d1495b"

#: Oracles of one size and nearly one error stay apart by marker.
_MARKERS = ("o", "s", "^", "D", "v", "P")

#: Lines of nearly one error stay apart by dash.
_DASHES = ("-", "--", "-.", ":")


def plot_choice(choice: OracleChoice, ax: Any) -> Axes:
    """Draw a choice: see :meth:`OracleChoice.plot`."""
    axes = new_axes(ax, width=8.0)
    colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
    found = [each for each in choice.candidates if each.oracle is not None]
    for position, each in enumerate(found):
        chosen = each.oracle is choice.oracle
        axes.plot(
            [each.report_bits or 1],
            [math.sqrt(each.variance)],
            _MARKERS[position % len(_MARKERS)],
            markersize=11 if chosen else 7,
            color=colours(0.05 + 0.85 * position / max(1, len(found) - 1)),
            fillstyle="full" if each.refused is None else "none",
            markeredgecolor=_CHOSEN if chosen else None,
            markeredgewidth=2.0 if chosen else 1.2,
            linestyle="none",
            label=each.name.replace("_", " ") + (" (chosen)" if chosen else ""),
            zorder=4 if chosen else 3,
        )
    if choice.report_bits is not None:
        axes.axvline(choice.report_bits, color=_CHOSEN, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    low, high = (limit(math.sqrt(each.variance) for each in found) for limit in (min, max))
    axes.set_ylim(low / 1.2, max(high * 1.2, low * 2.0))
    bits = [each.report_bits or 1 for each in found]
    axes.set_xlim(min(bits) / 1.7, max(max(bits) * 1.7, min(bits) * 6.0))
    plain_logarithmic(axes.yaxis)
    axes.set_xlabel("bits of a report")
    axes.set_ylabel("standard error of a frequency × √reports")
    limit_words = "" if choice.report_bits is None else f", at most {choice.report_bits:,} bits"
    axes.set_title(
        f"ε = {choice.epsilon:g}, {choice.domain.size:,} answers{limit_words}",
        fontsize=10,
        loc="left",
    )
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", color="0.92", zorder=0)
    return axes


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
    axes.plot([proposal.rate], [proposal.error], "o", color=_CHOSEN, markersize=7, zorder=5)
    if proposal.value is not None:
        axes.axhline(proposal.value, color=_CHOSEN, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_logarithmic(axes.yaxis)
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
