"""Pictures of distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout._drawing import finish, new_axes, short
from turnout._types import Axes, Floats

_ESTIMATE, _TRUTH = "#1f6f8b", "#d1495b"


def draw_bins(
    edges: Floats,
    frequencies: Floats,
    median: Any,
    *,
    title: str,
    truth: Floats | None = None,
    ax: Any = None,
) -> Axes:
    """Draw the shares of bins as steps, and the median with its interval."""
    axes = new_axes(ax, width=7.2, height=3.8)
    axes.stairs(frequencies, edges, fill=True, color=_ESTIMATE, alpha=0.45, label="estimate")
    axes.stairs(frequencies, edges, color=_ESTIMATE, linewidth=1.2)
    if truth is not None:
        axes.stairs(truth, edges, color=_TRUTH, linewidth=1.4, label="truth")
    axes.axvspan(
        median.low,
        median.high,
        color="0.5",
        alpha=0.2,
        label=f"median, {100 * median.level:.4g} % interval",
    )
    axes.axvline(median.value, color="0.35", linewidth=1.2, linestyle="--")
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.set_ylim(0, None)
    axes.set_xlabel("number")
    axes.set_ylabel("share of a bin")
    finish(axes, title)
    return axes


def draw_quartiles(
    names: Sequence[str], rows: Sequence[Any], *, title: str, note: str, ax: Any = None
) -> Axes:
    """Draw the quartiles of each group, the first name at the top, and the median's interval."""
    axes = new_axes(ax, width=7.2, height=min(12.0, 1.7 + 0.34 * len(names)))
    for place, quartiles in enumerate(rows):
        lower, median, upper = quartiles
        words = (note, "quartiles", "median") if place == 0 else (None, None, None)
        axes.plot(
            [median.low, median.high],
            [place, place],
            color=_ESTIMATE,
            alpha=0.35,
            linewidth=7,
            solid_capstyle="butt",
            label=words[0],
        )
        ends = [lower.value, upper.value]
        axes.plot(ends, [place, place], "|-", color="0.35", linewidth=1.2, label=words[1])
        axes.plot([median.value], [place], "o", markersize=5, color=_ESTIMATE, label=words[2])
    axes.set_yticks(np.arange(len(names)), [short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("number")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    finish(axes, title)
    return axes
