"""Pictures of estimates by groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import ESTIMATE, TOTAL, TRUTH, largest, short, short_label
from turnout._extras import require
from turnout._types import Axes, Figure, Floats
from turnout.collecting.groups.series_pictures import Lines, made_from
from turnout.collecting.keys import shown_key
from turnout.domain import code_of
from turnout.errors import EstimatorError, InvalidValueError

#: So many panels are drawn, so many of them in a row; of more groups, those with the most reports.
_PANELS, _COLUMNS, _GROUPS = 12, 3, 40

#: So many answers are drawn over time.
_LABELS = 6


def chosen_labels(estimate: Any, labels: Any, most: int) -> list[int]:
    """Find the codes of the labels to draw: all, or the most frequent of more than ``most``.

    Raises
    ------
    InvalidValueError
        If a label is none of the domain, or none is given.
    """
    size = estimate.domain.size
    if labels is not None:
        wanted = _arguments.items("labels", labels, "labels of the domain")
        if not wanted:
            raise InvalidValueError("labels must name at least one answer, got none")
        return [code_of("labels", estimate.domain, label) for label in wanted]
    if size <= most:
        return list(range(size))
    shares = estimate.frequencies
    weights = estimate.received.astype(np.float64)
    known = ~np.isnan(shares[:, 0])
    overall = weights[known] @ shares[known] if known.any() else np.zeros(size)
    return largest(overall, most)


def plot_groups(
    estimate: Any, labels: Any, level: float, simultaneous: str | None, over: str
) -> Figure:
    """Draw groups by answers: see :meth:`GroupedEstimate.plot`."""
    pyplot = require("matplotlib.pyplot", "plot")
    if not len(estimate):
        raise InvalidValueError("the estimate has no groups to draw")
    codes = chosen_labels(estimate, labels, _PANELS)
    limits, words = _limits(estimate, level, simultaneous, over)
    try:
        total = estimate.total.frequencies
    except EstimatorError:
        total = np.full(estimate.domain.size, np.nan)
    drawn = largest(estimate.received, _GROUPS)
    columns = 2 if len(codes) == 4 else min(_COLUMNS, len(codes))
    rows = -(-len(codes) // columns)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(2.2 + 2.9 * columns, 1.2 + rows * (0.75 + 0.26 * len(drawn))),
        sharey=True,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for axes in grid.flat[len(codes) :]:
        axes.set_visible(False)
    for axes, code in zip(grid.flat, codes, strict=False):
        _panel(axes, estimate.frequencies[drawn, code], limits[:, drawn, code], total[code])
        axes.set_title(short_label(estimate.domain.labels[code]), fontsize=10, loc="left")
    every = list(estimate.tally.items())
    names = [
        f"{short(shown_key(key))}  ({tally.received:,})"
        for key, tally in (every[place] for place in drawn)
    ]
    grid[0, 0].set_yticks(range(len(names)), names)
    grid[0, 0].set_ylim(len(names) - 0.4, -0.6)
    by = ", ".join(map(short, estimate.names))
    figure.supxlabel("share of the people of the group", fontsize=9)
    figure.supylabel(f"{by} (reports)", fontsize=9)
    some = f", {len(drawn)} largest of {len(every)} groups" if len(drawn) < len(every) else ""
    title = f"Shares by {by}{some}{_some(estimate, codes)}, {made_from(estimate)}"
    note = f"{words}; line: all groups together"
    figure.suptitle(f"{title}\n{note}", fontsize=10, x=0.01, ha="left")
    result: Figure = figure
    return result


def lines_of_labels(
    estimate: Any, labels: Any, level: float, simultaneous: str | None, over: str
) -> Lines:
    """Return the lines of answers over time: see :meth:`Series.plot`."""
    codes = chosen_labels(estimate, labels, _LABELS)
    limits, words = _limits(estimate, level, simultaneous, over)
    return Lines(
        [estimate.domain.labels[code] for code in codes],
        estimate.frequencies[:, codes],
        limits[:, :, codes],
        axis="share of the people",
        words=words,
        some=_some(estimate, codes),
        share=True,
    )


def _limits(estimate: Any, level: float, simultaneous: str | None, over: str) -> tuple[Floats, str]:
    """Return the limits, of the shape (2, groups, answers), and say how many hold at once."""
    estimate._each_level(level, simultaneous, over)
    try:
        limits = estimate.interval(level, simultaneous=simultaneous, over=over)
    except EstimatorError:
        nothing = np.full((2, *estimate.frequencies.shape), np.nan)
        return nothing, f"{estimate.method!r} is biased: no intervals"
    together = {
        "labels": "all answers of a group at once",
        "groups": "all groups of an answer at once",
        "all": "all at once",
    }
    scope = f" ({together[over]})" if simultaneous else ""
    return np.stack([limits.low, limits.high]), f"{100 * level:.4g} % intervals{scope}"


def _some(estimate: Any, codes: Sequence[int]) -> str:
    size = estimate.domain.size
    return "" if len(codes) == size else f", {len(codes)} of {size} answers"


def _panel(axes: Axes, shares: Floats, limits: Floats, total: float) -> None:
    """Draw the groups of one answer."""
    places = np.arange(shares.size)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    if np.isfinite(total):
        axes.axvline(total, color=TRUTH, linewidth=1.0, zorder=1)
    axes.hlines(places, *np.ma.masked_invalid(limits), color=ESTIMATE, linewidth=1.6, zorder=2)
    known = ~np.isnan(shares)
    axes.plot(shares[known], places[known], "o", color=ESTIMATE, markersize=4.5, zorder=3)
    for place in places[~known].tolist():
        axes.text(
            0.02,
            place,
            "no reports",
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=7,
            color=TOTAL,
        )
    axes.grid(axis="x", alpha=0.25)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8, labelbottom=True)
    axes.xaxis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(4))
    axes.spines[["top", "right", "left"]].set_visible(False)
