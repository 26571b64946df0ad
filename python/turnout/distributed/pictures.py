"""Pictures of distributed aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turnout._drawing import new_axes
from turnout._types import Axes

_COLOURS = ("#1f6f8b", "#d8973c", "#9aa3b0")


def plot_errors(
    titles: Sequence[str],
    errors: Sequence[float],
    kinds: Mapping[str, Sequence[bool]],
    title: str,
    ax: Any = None,
) -> Axes:
    """Draw one error below another, in the colour of its kind.

    Parameters
    ----------
    titles, errors
        What has which error, from above.
    kinds
        Up to three kinds, each with which of them belong to it; those of none are not drawn.
    title
        What stands above.
    ax
        Matplotlib axes to draw on; new ones by default.
    """
    axes = new_axes(ax, width=8.0, height=1.6 + 0.32 * len(titles))
    positions = np.arange(len(titles))[::-1]
    values = np.array(errors)
    for (label, members), color in zip(kinds.items(), _COLOURS, strict=True):
        rows = np.flatnonzero(members)
        if rows.size:
            # Points: on a logarithmic axis the length of a bar would say nothing.
            axes.plot(values[rows], positions[rows], "o", color=color, markersize=8, label=label)
    for position, error in zip(positions, errors, strict=True):
        axes.annotate(
            f"{error:.3g}",
            (error, position),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.set_xlim(min(errors) / 2, max(errors) * 2)
    axes.grid(visible=True, color="0.92")
    axes.set_axisbelow(True)
    axes.set_yticks(positions, titles, fontsize=9)
    axes.set_xlabel("root mean squared error of a frequency")
    axes.set_title(title, fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return axes
