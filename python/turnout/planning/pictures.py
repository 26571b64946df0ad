"""Pictures of choices and trade-offs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from turnout._drawing import new_axes, plain_logarithmic
from turnout._extras import require
from turnout._types import Axes

#: The colour of what is proposed, and of what was asked for.
_CHOSEN = "#d1495b"

#: Oracles of one size and nearly one error stay apart by marker.
_MARKERS = ("o", "s", "^", "D", "v", "P")

#: Lines of nearly one error stay apart by dash.
_DASHES = ("-", "--", "-.", ":")


class Point(NamedTuple):
    """An oracle among others: the size of its reports, and the standard error from one."""

    name: str
    bits: int
    error: float
    fits: bool
    chosen: bool


class Line(NamedTuple):
    """The promised errors of an oracle."""

    name: str
    bits: int
    errors: Sequence[float]
    chosen: bool


def plot_choice(points: Sequence[Point], limit: int | None, title: str, ax: Any) -> Axes:
    """Draw the standard errors of oracles against their bits, of which there may be a limit."""
    axes = new_axes(ax, width=8.0)
    colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
    for position, each in enumerate(points):
        axes.plot(
            [each.bits],
            [each.error],
            _MARKERS[position % len(_MARKERS)],
            markersize=11 if each.chosen else 7,
            color=colours(0.05 + 0.85 * position / max(1, len(points) - 1)),
            fillstyle="full" if each.fits else "none",
            markeredgecolor=_CHOSEN if each.chosen else None,
            markeredgewidth=2.0 if each.chosen else 1.2,
            linestyle="none",
            label=each.name.replace("_", " ") + (" (chosen)" if each.chosen else ""),
            zorder=4 if each.chosen else 3,
        )
    if limit is not None:
        axes.axvline(limit, color=_CHOSEN, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    low, high = (end(each.error for each in points) for end in (min, max))
    axes.set_ylim(low / 1.2, max(high * 1.2, low * 2.0))
    bits = [each.bits for each in points]
    axes.set_xlim(min(bits) / 1.7, max(max(bits) * 1.7, min(bits) * 6.0))
    plain_logarithmic(axes.yaxis)
    axes.set_xlabel("bits of a report")
    axes.set_ylabel("standard error of a frequency × √reports")
    axes.set_title(title, fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, which="major", color="0.92", zorder=0)
    return axes


def plot_tradeoff(
    rates: Sequence[float],
    lines: Sequence[Line],
    *,
    proposed: tuple[float, float],
    target: float | None,
    nodes: int,
    words: str,
    title: str,
    ax: Any,
) -> Axes:
    """Draw errors against rates, with what is proposed as a point and the target as a line."""
    axes = new_axes(ax, width=7.6, height=4.6)
    pyplot = require("matplotlib.pyplot", "plot")
    colours = pyplot.get_cmap("viridis")
    last = max(1, len(lines) - 1)
    for position, line in enumerate(lines):
        axes.plot(
            rates,
            line.errors,
            linestyle="-" if line.chosen else _DASHES[position % len(_DASHES)],
            linewidth=2.4 if line.chosen else 1.2,
            marker="." if len(rates) == 1 else None,
            color=colours(0.05 + 0.8 * position / last),
            label=f"{line.name.replace('_', ' ')} ({line.bits:,} bits)",
            zorder=3 if line.chosen else 2,
        )
    rate, error = proposed
    axes.plot([rate], [error], "o", color=_CHOSEN, markersize=7, zorder=5)
    if target is not None:
        axes.axhline(target, color=_CHOSEN, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    plain_logarithmic(axes.yaxis)
    axes.set_xlabel("participation rate")
    axes.set_ylabel(words)

    def reports(rates: Any) -> Any:
        return rates * nodes

    def shares(reports: Any) -> Any:
        return reports / nodes

    top = axes.secondary_xaxis("top", functions=(reports, shares))
    top.set_xlabel("expected reports")
    axes.legend(
        frameon=False,
        fontsize=8,
        title=title,
        title_fontsize=9,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    axes.spines["right"].set_visible(False)
    axes.grid(visible=True, which="major", color="0.92", zorder=0)
    return axes
