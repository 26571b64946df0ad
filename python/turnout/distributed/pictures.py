"""Pictures of distributed aggregation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from turnout._drawing import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from turnout.distributed.recommend import Recommendation

__all__ = ["plot_recommendation"]

_ANY_DATA = "#1f6f8b"
_WITH_FLOOR = "#d8973c"
_LOCAL = "#9aa3b0"


def plot_recommendation(recommendation: Recommendation, ax: Any = None) -> Axes:
    """Draw the error of each mechanism: see :meth:`Recommendation.plot`."""
    records = recommendation.records
    axes = new_axes(ax, width=8.0, height=1.6 + 0.32 * len(records))
    positions = np.arange(len(records))[::-1]
    kinds = (
        ("for any data", _ANY_DATA, lambda row: row.mechanism is not None and not row.conditional),
        ("for data with the floor", _WITH_FLOOR, lambda row: row.conditional),
        ("local, no aggregators", _LOCAL, lambda row: row.mechanism is None),
    )
    for label, color, belongs in kinds:
        rows = [index for index, record in enumerate(records) if belongs(record)]
        if rows:
            errors = [records[index].rmse for index in rows]
            # Points: on a logarithmic axis the length of a bar would say nothing.
            axes.plot(errors, positions[rows], "o", color=color, markersize=8, label=label)
    for position, record in zip(positions, records, strict=True):
        axes.annotate(
            f"{record.rmse:.3g}",
            (record.rmse, position),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    errors = [record.rmse for record in records]
    axes.set_xlim(min(errors) / 2, max(errors) * 2)
    axes.grid(visible=True, color="0.92")
    axes.set_axisbelow(True)
    axes.set_yticks(positions, [record.title for record in records], fontsize=9)
    axes.set_xlabel("root mean squared error of a frequency")
    axes.set_title(
        f"{recommendation.users:,} users, {recommendation.items:,} items, epsilon = "
        f"{recommendation.epsilon:g}, delta = {recommendation.delta:g}",
        fontsize=10,
    )
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return axes
