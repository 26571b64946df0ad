"""Pictures of estimates over time."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from turnout._drawing import short
from turnout._extras import require
from turnout._types import Axes, Figure, Floats, Truths, Unsigned
from turnout.collecting.keys import Key, Part, as_dates, shown_key, shown_part
from turnout.errors import InvalidValueError

#: So many columns and panels are drawn: of more series, those with the most reports.
_COLUMNS, _PANELS = 2, 8

#: How a year is written.
_YEAR = re.compile(r"[12]\d{3}", re.ASCII)

#: A step is a gap in the series if it is so many times the smallest one.
_GAP = 1.5

#: Okabe and Ito's colours, which colour-blind people tell apart, the light ones left out.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#000000")
_STYLES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Lines:
    """What is drawn of a series over time.

    Attributes
    ----------
    names
        The name of each line; without names there is no legend.
    places
        Which column of values and limits each line is.
    values
        Gives the values of a panel, of the shape (times, columns).
    limits
        Gives their limits; None where there are none.
    axis
        What the values are.
    title, words
        What the picture shows, and what the bands are.
    share
        Whether values are shares: bands far outside of [0, 1] are cut off.
    """

    names: Sequence[str]
    places: Sequence[int]
    values: Callable[[Key], Floats]
    limits: Callable[[Key], tuple[Floats, Floats] | None]
    axis: str
    title: str
    words: str
    share: bool = False


def draw_series(series: Any, lines: Lines) -> Figure:
    """Draw lines with bands over time, and the number of reports below.

    Raises
    ------
    InvalidValueError
        If there are no times.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    panels = _largest(series)
    if not series.times:
        raise InvalidValueError("there is nothing to draw: the series has no times")
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = pyplot.figure(
        figsize=(7.6 if columns == 1 else 11.0, 0.9 + 3.6 * rows), layout="constrained"
    )
    grid = figure.add_gridspec(2 * rows, columns, height_ratios=[4, 1] * rows)
    positions = _positions(series.times)
    shared: Any = None
    bottoms: list[Any] = []
    for place, panel in enumerate(panels):
        row, column = 2 * (place // columns), place % columns
        top = figure.add_subplot(grid[row, column], sharex=shared, sharey=shared)
        bottom = figure.add_subplot(grid[row + 1, column], sharex=top)
        _draw_panel(lines, panel, top, positions)
        _draw_sizes(bottom, positions, series.received(panel))
        if panel:
            top.set_title(short(shown_key(panel)), fontsize=10, loc="left")
        if column == 0:
            top.set_ylabel(lines.axis, fontsize=9)
            bottom.set_ylabel("reports", fontsize=9)
        shared = shared or top
        bottoms.append(bottom)
    if lines.share:
        _keep_in_view(shared, [lines.values(panel)[:, lines.places] for panel in series.panels])
    for bottom in bottoms:
        _time_axis(bottom, series, positions)
        bottom.set_xlabel(short(series.time), fontsize=9)
    if lines.names:
        # One legend for all panels, below them.
        handles, names = shared.get_legend_handles_labels()
        figure.legend(
            handles,
            names,
            loc="outside lower left",
            ncols=min(len(names), 6),
            frameon=False,
            fontsize=9,
        )
    several = len(series.panels)
    some = f", {len(panels)} largest of {several} series" if several > len(panels) else ""
    title = f"{lines.axis.capitalize()} by {short(series.time)}{some}{lines.title}"
    figure.suptitle(f"{title}\nbands: {lines.words}", fontsize=10, x=0.01, ha="left")
    result: Figure = figure
    return result


def _largest(series: Any) -> list[Key]:
    """Find the series with the most reports, in their order."""
    panels: list[Key] = series.panels
    if len(panels) <= _PANELS:
        return panels
    sizes = series.sizes()
    largest = set(sorted(panels, key=lambda panel: -sizes[panel])[:_PANELS])
    return [panel for panel in panels if panel in largest]


def _positions(times: Sequence[Part]) -> list[float]:
    """Where the times stand on the axis: numbers and dates at their values, others in order."""
    found = _dates(times)
    if found is not None:
        dates = require("matplotlib.dates", "plot")
        return [float(value) for value in dates.date2num(found)]
    if _are_numbers(times) or _are_years(times):
        return [float(time) for time in times]  # type: ignore[arg-type]
    return [float(place) for place in range(len(times))]


def _dates(times: Sequence[Part]) -> Sequence[Any] | None:
    """Give times as dates, texts of dates too; None if they are none."""
    if all(isinstance(time, datetime.date) for time in times):
        return times
    return as_dates(times)


def _are_years(times: Sequence[Part]) -> bool:
    """Whether times are years that are written as text."""
    return all(isinstance(time, str) and _YEAR.fullmatch(time) for time in times)


def _are_numbers(times: Sequence[Part]) -> bool:
    return all(isinstance(time, (int, float)) and not isinstance(time, bool) for time in times)


def runs(positions: Sequence[float], known: Truths) -> Iterator[slice]:
    """Cut a series where a time has no reports, or where times are missing.

    Times are missing where a step is more than half as long again as the smallest one: months and
    years have steps of several lengths.

    Examples
    --------
    >>> list(runs([1, 2, 3, 5, 6], np.array([True, True, True, True, False])))
    [slice(0, 3, None), slice(3, 4, None)]
    """
    steps = [later - earlier for earlier, later in pairwise(positions)]
    least = min(steps, default=None)
    start: int | None = None
    for place, here in enumerate(known.tolist()):
        far = place > 0 and least is not None and steps[place - 1] > _GAP * least
        if start is not None and (far or not here):
            yield slice(start, place)
            start = None
        if here and start is None:
            start = place
    if start is not None:
        yield slice(start, len(positions))


def _draw_panel(lines: Lines, panel: Key, axes: Axes, positions: list[float]) -> None:
    """Draw the lines and bands of one series."""
    values = lines.values(panel)
    nothing = np.full_like(values, np.nan)
    low, high = lines.limits(panel) or (nothing, nothing)
    known = ~np.isnan(values[:, 0])
    pieces = list(runs(positions, known))
    for number, column in enumerate(lines.places):
        colour = _COLOURS[number % len(_COLOURS)]
        style = _STYLES[number // len(_COLOURS) % len(_STYLES)]
        name = short(lines.names[number]) if lines.names else "_"
        for piece in pieces:
            here = positions[piece]
            lonely = len(here) == 1
            bounds = low[piece, column], high[piece, column]
            if lonely and np.isfinite(bounds).all():
                axes.vlines(here, *bounds, color=colour, alpha=0.45, linewidth=3)
            elif np.isfinite(bounds).any():
                axes.fill_between(here, *bounds, color=colour, alpha=0.16, linewidth=0)
            axes.plot(
                here,
                values[piece, column],
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


def _keep_in_view(axes: Axes, tables: Sequence[Floats]) -> None:
    """Cut off what bands far outside of [0, 1] would take from all that can be true."""
    low, high = axes.get_ylim()
    shares = np.concatenate([table.ravel() for table in tables])
    known = shares[~np.isnan(shares)]
    least = min(-0.1, float(known.min(initial=0.0)) - 0.05)
    most = max(1.1, float(known.max(initial=1.0)) + 0.05)
    axes.set_ylim(max(low, least), min(high, most))


def _draw_sizes(axes: Axes, positions: list[float], received: Unsigned) -> None:
    """Draw how many reports there are at each time."""
    steps = [later - earlier for earlier, later in pairwise(positions)]
    width = 0.7 * min(steps, default=1.0)
    axes.bar(positions, received.astype(np.float64), width=width, color="#8fa3ad")
    axes.tick_params(labelsize=8)
    ticker = require("matplotlib.ticker", "plot")
    axes.yaxis.set_major_locator(ticker.MaxNLocator(2, integer=True))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: _compact(value)))
    axes.set_ylim(0.0, 1.08 * max(1.0, float(received.max())))
    axes.spines[["top", "right"]].set_visible(False)


def _compact(value: float) -> str:
    """Write a number of reports briefly.

    Examples
    --------
    >>> _compact(500), _compact(25_000), _compact(1.5e9)
    ('500', '25k', '1.5G')
    """
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _time_axis(axes: Axes, series: Any, positions: list[float]) -> None:
    """Label the axis of time."""
    times = series.times
    ticker = require("matplotlib.ticker", "plot")
    if _dates(times) is not None:
        dates = require("matplotlib.dates", "plot")
        axes.xaxis_date()
        locator = dates.AutoDateLocator(minticks=3, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.xaxis.get_offset_text().set_fontsize(8)
        return
    if _are_numbers(times) or _are_years(times):
        whole = not any(isinstance(time, float) for time in times)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(10, integer=whole))
        return
    names = [short(shown_part(time)) for time in times]
    every = -(-len(names) // 30)
    axes.set_xticks(positions[::every], names[::every])
    if sum(map(len, names[::every])) > 60:
        axes.tick_params(axis="x", rotation=40)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
