"""Pictures of joint tables and of conditional shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout._drawing import (
    answered,
    draw_intervals,
    finish,
    heighten,
    interval_words,
    name_answers,
    new_axes,
    short_label,
)
from turnout._types import Axes

#: More cells have no numbers in them.
_WRITTEN = 150


def plot_table(estimate: Any, ax: Any, level: float, simultaneous: str | None) -> Axes:
    """Draw a table of two questions: see :meth:`JointEstimate.plot`."""
    (rows, down), (columns, across) = estimate.questions.items()
    interval = estimate.interval(level, simultaneous=simultaneous)
    half = ((interval.high - interval.low) / 2).reshape(estimate.table.shape)
    axes = new_axes(ax, width=min(14.0, 3.0 + 0.9 * across.size))
    drawn = axes.imshow(100 * estimate.table, cmap="Blues", vmin=0.0, aspect="auto")
    axes.figure.colorbar(drawn, ax=axes, label="share of all people, %")
    higher = name_answers(axes, np.arange(across.size), across.labels)
    if ax is None:
        heighten(axes, higher)
    axes.set_yticks(range(down.size), list(map(short_label, down.labels)))
    axes.set_xlabel(columns)
    axes.set_ylabel(rows)
    if estimate.table.size <= _WRITTEN:
        dark = estimate.table.max() / 2
        for (row, column), share in np.ndenumerate(estimate.table):
            axes.text(
                column,
                row,
                f"{100 * share:.1f}\n± {100 * half[row, column]:.1f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if share > dark else "black",
            )
    axes.set_title(
        f"{answered(estimate.received, estimate.nodes)}, {interval_words(level, simultaneous)}",
        fontsize=10,
        loc="left",
    )
    return axes


def plot_shares(shares: Any, ax: Any, level: float, simultaneous: str | None) -> Axes:
    """Draw conditional shares: see :meth:`ConditionalShares.plot`."""
    interval = shares.interval(level, simultaneous=simultaneous)
    found, groups = shares.shares, shares.groups
    axes = new_axes(ax, width=min(14.0, 4.0 + 0.5 * found.size))
    places = np.arange(found.shape[1])
    records = shares.to_records()[: places.size]
    higher = name_answers(axes, places, (record["label"] for record in records))
    if ax is None:
        heighten(axes, higher)
    for number, group in enumerate(groups):
        beside = places + 0.7 * ((number + 0.5) / len(groups) - 0.5)
        colour, name = f"C{number}", short_label(group)
        draw_intervals(axes, beside, (interval.low[number], interval.high[number]), colour=colour)
        axes.plot(beside, found[number], "o", markersize=5, color=colour, label=name)
    axes.set_xlabel(shares.of)
    axes.set_ylabel("share among those who answered")
    axes.axhline(0.0, color="0.4", linewidth=0.8, zorder=0)
    words = f"{shares.of} by {', '.join(shares.given)}, {interval_words(level, simultaneous)}"
    finish(axes, words, legend="above")
    return axes
