"""Pictures of outcomes: curves with error bars, one part of the picture for each panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout._extras import require
from turnout._types import Figure

if TYPE_CHECKING:
    from turnout_reproduce.outcome import Curve, Outcome


def panels(
    outcome: Outcome,
    title: str,
    *,
    x: str,
    y: str,
    log: bool = False,
    steps: bool = False,
    caption: str = "",
    finish: Callable[[Figure], object] | None = None,
) -> Figure:
    """Draw the curves of an outcome.

    Parameters
    ----------
    outcome
        What an experiment gave.
    title
        What stands above.
    x, y
        What the axes are called.
    log
        Whether ``y`` is on a logarithmic scale.
    steps
        Whether curves without an error are filled steps, as for a histogram.
    caption
        What stands below, beside where the data come from.
    finish
        What else is done to the picture.

    Returns
    -------
    matplotlib.figure.Figure
        The picture; error bars are two standard errors to each side.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    names = list(dict.fromkeys(curve.panel for curve in outcome.curves))
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(max(4.6 * len(names), 6.4), 4.4), sharey=True, squeeze=False
    )
    for name, ax in zip(names, axes[0], strict=True):
        for place, curve in enumerate(c for c in outcome.curves if c.panel == name):
            _draw(ax, curve, f"C{place}", steps)
        if name:
            ax.set_title(name, loc="left", fontsize="medium")
        ax.set_xlabel(x)
        if log:
            ax.set_yscale("log")
            readable(ax.yaxis)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    axes[0][0].set_ylabel(y)
    figure.suptitle(title, x=0.01, ha="left", fontsize="large")
    words = " ".join(text for text in (caption, outcome.data) if text)
    figure.text(0.01, 0.01, words, ha="left", va="bottom", fontsize="x-small", wrap=True)
    figure.tight_layout(rect=(0, 0.07 if words else 0, 1, 1))
    if finish is not None:
        finish(figure)
    return figure  # type: ignore[no-any-return]


def legend_beside(figure: Figure) -> None:
    """Put the legend of a picture of one part to its right."""
    figure.axes[0].legend(
        frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))


def readable(axis: Any) -> None:
    """Write the decades of a logarithmic axis as numbers; of a few of them 2 and 5 too."""
    ticker = require("matplotlib.ticker", "plot")
    low, high = sorted(axis.get_view_interval())
    if high < 3000.0 * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def _draw(ax: Any, curve: Curve, color: str, steps: bool) -> None:
    if curve.error is None:
        if steps:
            ax.fill_between(
                curve.x, curve.y, step="mid", color="0.8", linewidth=0, label=curve.label
            )
        else:
            ax.plot(curve.x, curve.y, "--", color=color, linewidth=1.2, label=curve.label)
        return
    bars = [2.0 * error for error in curve.error]
    ax.errorbar(
        curve.x, curve.y, bars, fmt="o-", color=color, markersize=3, linewidth=1, capsize=2,
        label=curve.label,
    )  # fmt: skip
