"""Pictures of means: points with their intervals, below each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout._drawing import finish, new_axes, short
from turnout._types import Axes, Floats

_ESTIMATE, _TRUTH, _TOTAL = "#1f6f8b", "#d1495b", "0.45"


def draw_means(
    names: Sequence[str],
    means: Floats,
    limits: tuple[Floats, Floats],
    *,
    title: str,
    note: str,
    ax: Any = None,
    truth: Floats | None = None,
    total: float | None = None,
    quantity: str = "mean",
) -> Axes:
    """Draw means with their intervals, the first name at the top.

    Parameters
    ----------
    names
        What each mean is of.
    means
        The means; where one is nan nothing is drawn.
    limits
        The lower and the upper limits.
    title
        What the picture shows.
    note
        What the bars are.
    ax
        Where to draw; a new picture by default.
    truth
        The true means, if they are known.
    total
        The mean of all together, drawn as a line.
    quantity
        What the numbers are, below the axis.

    Returns
    -------
    matplotlib.axes.Axes
        The picture, with labels and a legend.
    """
    axes = new_axes(ax, width=7.2, height=min(12.0, 1.7 + 0.34 * len(names)))
    places = np.arange(len(names))
    # Of a single report nothing is known: its limits are infinite, and no bar is drawn.
    low, high = (np.where(np.isfinite(limit), limit, np.nan) for limit in limits)
    if total is not None:
        axes.axvline(total, color=_TOTAL, linewidth=1.2, linestyle="--", label="all together")
    axes.errorbar(
        (low + high) / 2,
        places,
        xerr=(high - low) / 2,
        fmt="none",
        ecolor=_ESTIMATE,
        elinewidth=1.6,
        capsize=3,
    )
    axes.plot(means, places, "o", markersize=5, color=_ESTIMATE, label=note)
    if truth is not None:
        axes.plot(truth, places, "D", markersize=5, color=_TRUTH, label="truth", zorder=3)
    axes.set_yticks(places, [short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(quantity)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    finish(axes, title)
    return axes
