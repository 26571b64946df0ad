"""Pictures of estimates by groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import short
from turnout._extras import require
from turnout._types import Axes, Figure, Floats
from turnout.collecting.groups.series_pictures import Lines
from turnout.collecting.keys import Key, shown_key
from turnout.errors import EstimatorError, InvalidValueError

#: So many panels are drawn, so many of them in a row; of more groups, those with the most reports.
_PANELS, _COLUMNS, _GROUPS = 12, 3, 40

#: So many answers are drawn over time.
_LABELS = 6

_ESTIMATE, _TOTAL, _MUTED = "#1f6f8b", "#d1495b", "0.45"


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
        codes: list[int] = estimate.domain.encode(wanted).tolist()
        return codes
    if size <= most:
        return list(range(size))
    shares = estimate.frequencies
    weights = estimate.received.astype(np.float64)
    known = ~np.isnan(shares[:, 0])
    overall = weights[known] @ shares[known] if known.any() else np.zeros(size)
    return sorted(np.argsort(-overall, kind="stable")[:most].tolist())


def heading(estimate: Any, codes: Sequence[int], what: str) -> str:
    """Say what a picture shows."""
    size = estimate.domain.size
    some = "" if len(codes) == size else f", {len(codes)} of {size} answers"
    method = "" if estimate.method == "hajek" else f", estimator {estimate.method}"
    reports = f"{estimate.tally.received:,} reports"
    return f"{what}{some}, {reports}, ε = {estimate.plan.oracle.epsilon:g} for each{method}"


def interval_words(level: float, simultaneous: str | None, over: str) -> str:
    """Say how many intervals hold at once."""
    together = {
        "labels": "all answers of a group at once",
        "groups": "all groups of an answer at once",
        "all": "all at once",
    }
    scope = f" ({together[over]})" if simultaneous else ""
    return f"{100 * level:.4g} % intervals{scope}"


def plot_groups(
    estimate: Any, labels: Any, level: float, simultaneous: str | None, over: str
) -> Figure:
    """Draw groups by answers: see :meth:`GroupedEstimate.plot`."""
    pyplot = require("matplotlib.pyplot", "plot")
    if not len(estimate):
        raise InvalidValueError("there is nothing to draw: the estimate has no groups")
    estimate.each_level(level, simultaneous, over)
    codes = chosen_labels(estimate, labels, _PANELS)
    columns = 2 if len(codes) == 4 else min(_COLUMNS, len(codes))
    rows = -(-len(codes) // columns)
    every = list(estimate.tally.items())
    sizes = np.argsort(-estimate.received.astype(np.float64), kind="stable")
    drawn = np.sort(sizes[:_GROUPS])
    groups = drawn.size
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(2.2 + 2.9 * columns, 1.2 + rows * (0.75 + 0.26 * groups)),
        sharey=True,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    try:
        limits = estimate.interval(level, simultaneous=simultaneous, over=over)
        low, high = limits.low, limits.high
        words = interval_words(level, simultaneous, over)
    except EstimatorError:
        low = high = estimate.frequencies
        words = f"{estimate.method!r} is biased: no intervals"
    try:
        total = estimate.total.frequencies
    except EstimatorError:
        total = np.full(estimate.domain.size, np.nan)
    shares = estimate.frequencies
    for place, axes in enumerate(grid.flat):
        if place >= len(codes):
            axes.set_visible(False)
            continue
        code = codes[place]
        limits_drawn = low[drawn, code], high[drawn, code]
        _panel(axes, shares[drawn, code], limits_drawn, total[code])
        axes.set_title(short(str(estimate.domain.labels[code])), fontsize=10, loc="left")
    names = [
        f"{short(shown_key(key))}  ({tally.received:,})"
        for key, tally in (every[place] for place in drawn)
    ]
    some = f", {groups} largest of {len(every)} groups" if groups < len(every) else ""
    some = f"Shares by {', '.join(map(short, estimate.names))}{some}"
    grid[0, 0].set_yticks(range(groups), names)
    grid[0, 0].set_ylim(groups - 0.4, -0.6)
    figure.supxlabel("share of the people of the group", fontsize=9)
    figure.supylabel(f"{', '.join(map(short, estimate.names))} (reports)", fontsize=9)
    note = f"{words}; line: all groups together"
    figure.suptitle(f"{heading(estimate, codes, some)}\n{note}", fontsize=10, x=0.01, ha="left")
    result: Figure = figure
    return result


def lines_of_labels(
    series: Any, labels: Any, level: float, simultaneous: str | None, over: str
) -> Lines:
    """Say what is drawn of the answers over time: see :meth:`Series.plot`."""
    estimate = series.estimate
    estimate.each_level(level, simultaneous, over)
    codes = chosen_labels(estimate, labels, _LABELS)
    words, shown = interval_words(level, simultaneous, over), True
    try:
        estimate.interval(level, simultaneous=simultaneous, over=over)
    except EstimatorError:
        words, shown = f"{estimate.method!r} is biased: no intervals", False

    def limits(panel: Key) -> tuple[Floats, Floats] | None:
        if not shown:
            return None
        found: tuple[Floats, Floats] = series.interval(
            panel, level=level, simultaneous=simultaneous, over=over
        )
        return found

    names = [str(estimate.domain.labels[code]) for code in codes]
    return Lines(
        names,
        codes,
        series.numbers,
        limits,
        "share of the people",
        heading(estimate, codes, ""),
        words,
        share=True,
    )


def _panel(axes: Axes, shares: Floats, limits: tuple[Floats, Floats], total: float) -> None:
    """Draw the groups of one answer."""
    places = np.arange(shares.size)
    low, high = limits
    known = ~np.isnan(shares)
    axes.axvline(0.0, color="0.75", linewidth=0.8, zorder=0)
    if np.isfinite(total):
        axes.axvline(total, color=_TOTAL, linewidth=1.0, zorder=1)
    drawn = known & np.isfinite(low) & np.isfinite(high)
    axes.hlines(places[drawn], low[drawn], high[drawn], color=_ESTIMATE, linewidth=1.6, zorder=2)
    axes.plot(shares[known], places[known], "o", color=_ESTIMATE, markersize=4.5, zorder=3)
    for place in places[~known]:
        axes.annotate(
            "no reports",
            (0.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=7,
            color=_MUTED,
        )
    axes.grid(axis="x", alpha=0.25)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(labelsize=8, labelbottom=True)
    axes.xaxis.set_major_locator(require("matplotlib.ticker", "plot").MaxNLocator(4))
    axes.spines[["top", "right", "left"]].set_visible(False)
