"""Pictures of estimates over time."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout._drawing import largest, legend_columns, name_answers, short, short_label
from turnout._extras import require
from turnout._types import Axes, Figure, Floats, Truths, Unsigned
from turnout.collecting.keys import Part, as_dates, shown_key, shown_part
from turnout.errors import InvalidValueError

#: So many columns and panels are drawn: of more series, those with the most reports.
_COLUMNS, _PANELS = 2, 8

#: So many days are all named.
_FEW = 9

#: How a year is written.
_YEAR = re.compile(r"[12]\d{3}", re.ASCII)

#: A step is a gap in the series if it is so many times the smallest one.
_GAP = 1.5

#: Okabe and Ito's colours, which colour-blind people tell apart, the light ones left out.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#000000")
_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Lines:
    """The lines of a series over time.

    Attributes
    ----------
    names
        The answer or other name of each line; without names there is no legend.
    values, limits
        The values, float64 of the shape (groups, lines), and their lower and upper limits, of the
        shape (2, groups, lines); nan where there are none.
    axis
        The meaning of the values, for the axis.
    words
        The meaning of the bands.
    some
        The numbers of drawn lines and of all lines, if not all are drawn.
    share
        Whether the values are shares: then bands far outside of [0, 1] are cut off.
    """

    names: Sequence[Any]
    values: Floats
    limits: Floats
    axis: str
    words: str
    some: str = ""
    share: bool = False


def draw_series(series: Any, lines: Lines) -> Figure:
    """Draw lines with bands over time, and the number of reports below.

    Raises
    ------
    InvalidValueError
        If there are no times.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    sizes = series._sizes()
    panels = [list(sizes)[place] for place in largest(list(sizes.values()), _PANELS)]
    if not series.times:
        raise InvalidValueError("the series has no times to draw")
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = pyplot.figure(
        figsize=(7.6 if columns == 1 else 11.0, 0.9 + 3.6 * rows), layout="constrained"
    )
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=[4, 1] * rows)
    positions, kind = _positions(series.times)
    shared: Any = None
    bottoms: list[Any] = []
    for place, panel in enumerate(panels):
        row, column = 2 * (place // columns), place % columns
        top = figure.add_subplot(grid[row, column], sharex=shared, sharey=shared)
        bottom = figure.add_subplot(grid[row + 1, column], sharex=top)
        tables = [series._picked(each, panel) for each in (lines.values, *lines.limits)]
        _draw_panel(lines, tables, top, positions)
        _draw_sizes(bottom, positions, series.received(panel))
        if panel:
            top.set_title(short(shown_key(panel)), fontsize=10, loc="left")
        if column == 0:
            top.set_ylabel(lines.axis, fontsize=9)
            bottom.set_ylabel("reports", fontsize=9)
        shared = shared or top
        bottoms.append(bottom)
    if lines.share:
        _keep_in_view(shared, lines.values)
    for bottom in bottoms:
        _time_axis(bottom, series.times, positions, kind)
        bottom.set_xlabel(short(series.time), fontsize=9)
    if lines.names:
        # One legend for all panels, below them.
        handles, names = shared.get_legend_handles_labels()
        figure.legend(
            handles,
            names,
            loc="outside lower left",
            ncols=legend_columns(names, figure),
            frameon=False,
            fontsize=9,
        )
    several = len(series.panels)
    some = f", {len(panels)} largest of {several} series" if several > len(panels) else ""
    shown = f"{lines.axis.capitalize()} by {short(series.time)}{some}{lines.some}"
    title = f"{shown}, {made_from(series.estimate)}\nbands: {lines.words}"
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    result: Figure = figure
    return result


def made_from(estimate: Any) -> str:
    """Write what the estimates of groups were made from.

    Examples
    --------
    >>> import turnout as tn
    >>> day = tn.DirectEncoding(1.0, 2).simulate([900, 100], seed=1)
    >>> made_from(tn.GroupedTally(["day"], {1: day}).estimate())
    '1,000 reports, ε = 1 for each'
    """
    method = "" if estimate.method in ("hajek", "ems") else f", estimator {estimate.method}"
    reports = f"{estimate.tally.received:,} reports"
    return f"{reports}, ε = {estimate.plan.oracle.epsilon:g} for each{method}"


def _positions(times: Sequence[Part]) -> tuple[Floats, type]:
    """Return positions of times on the axis: numbers and dates at their values, texts in order."""
    dates: Any = times
    if not all(isinstance(time, datetime.date) for time in times):
        dates = as_dates(times)
    if dates is not None:
        return np.asarray(require("matplotlib.dates", "plot").date2num(dates)), datetime.date
    if all(isinstance(time, str) and _YEAR.fullmatch(time) for time in times):
        return np.array(times, np.float64), int
    if all(isinstance(time, (int, float)) and not isinstance(time, bool) for time in times):
        whole = not any(isinstance(time, float) for time in times)
        return np.array(times, np.float64), int if whole else float
    return np.arange(len(times), dtype=np.float64), str


def runs(positions: npt.ArrayLike, known: Truths) -> Iterator[slice]:
    """Split a series where a time has no reports, or where times are missing.

    Times are missing if a step is more than 1.5 times the smallest one: months and years have steps
    of several lengths.

    Examples
    --------
    >>> list(runs([1, 2, 3, 5, 6], np.array([True, True, True, True, False])))
    [slice(0, 3, None), slice(3, 4, None)]
    """
    steps = np.diff(np.asarray(positions, np.float64))
    far = steps > _GAP * steps.min(initial=np.inf)
    cuts = 1 + np.flatnonzero(far | ~known[1:] | ~known[:-1])
    for start, stop in pairwise([0, *cuts.tolist(), len(known)]):
        if known[start:stop].any():
            yield slice(start, stop)


def _draw_panel(lines: Lines, tables: Sequence[Floats], axes: Axes, positions: Floats) -> None:
    """Draw the lines and bands of one series."""
    values, low, high = tables
    known = ~np.isnan(values[:, 0])
    pieces = list(runs(positions, known))
    for number in range(values.shape[1]):
        colour = _COLOURS[number % len(_COLOURS)]
        style = _STYLES[number // len(_COLOURS) % len(_STYLES)]
        name = short_label(lines.names[number]) if lines.names else "_"
        for piece in pieces:
            here = positions[piece]
            lonely = len(here) == 1
            bounds = low[piece, number], high[piece, number]
            if lonely and np.isfinite(bounds).all():
                axes.vlines(here, *bounds, color=colour, alpha=0.45, linewidth=3)
            elif np.isfinite(bounds).any():
                axes.fill_between(here, *bounds, color=colour, alpha=0.16, linewidth=0)
            axes.plot(
                here,
                values[piece, number],
                color=colour,
                linestyle=style,
                linewidth=1.5,
                marker="o",
                markersize=4 if lonely or len(positions) <= 40 else 0,
                label=name,
            )
            name = "_" + name
        if not pieces:
            axes.plot([], [], color=colour, linestyle=style, marker="o", markersize=4, label=name)
    if not pieces:
        axes.text(0.5, 0.5, "no reports", transform=axes.transAxes, ha="center", color="0.45")
    if lines.share:
        axes.axhline(0.0, color="0.4", linewidth=0.8, zorder=0)
    axes.grid(axis="y", alpha=0.25)
    axes.tick_params(axis="x", labelbottom=False)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _keep_in_view(axes: Axes, shares: Floats) -> None:
    """Limit the axis, so that bands far outside of [0, 1] do not compress the possible range."""
    low, high = axes.get_ylim()
    known = shares[~np.isnan(shares)]
    least = min(-0.1, float(known.min(initial=0.0)) - 0.05)
    most = max(1.1, float(known.max(initial=1.0)) + 0.05)
    axes.set_ylim(max(low, least), min(high, most))


def _draw_sizes(axes: Axes, positions: Floats, received: Unsigned) -> None:
    """Draw the number of reports at each time."""
    width = 0.7 * np.diff(positions).min(initial=np.inf) if len(positions) > 1 else 0.7
    axes.bar(positions, received.astype(np.float64), width=width, color="#8fa3ad")
    axes.tick_params(labelsize=8)
    ticker = require("matplotlib.ticker", "plot")
    axes.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
    axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))
    axes.set_ylim(0.0, 1.08 * max(1.0, float(received.max())))
    axes.spines[["top", "right"]].set_visible(False)


def _time_axis(axes: Axes, times: Sequence[Part], positions: Floats, kind: type) -> None:
    """Label the axis of time."""
    if kind is datetime.date:
        dates = require("matplotlib.dates", "plot")
        locator = dates.AutoDateLocator(minticks=3, maxticks=9)
        if len(times) <= _FEW and not any(isinstance(time, datetime.datetime) for time in times):
            # The days themselves, and nothing between them.
            locator = require("matplotlib.ticker", "plot").FixedLocator(positions)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.xaxis.get_offset_text().set_fontsize(8)
    elif kind is str:
        every = -(-len(times) // 30)
        name_answers(axes, positions[::every], map(shown_part, times[::every]))
    else:
        ticker = require("matplotlib.ticker", "plot")
        axes.xaxis.set_major_locator(ticker.MaxNLocator(10, integer=kind is int))
