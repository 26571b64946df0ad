"""Pictures of outcomes: curves with error bars, one part of the picture for each panel."""

from __future__ import annotations

from collections.abc import Callable

from turnout._extras import require
from turnout._types import Figure
from turnout_reproduce.curves import draw, panels_of
from turnout_reproduce.outcome import Outcome


def panels(
    outcome: Outcome,
    title: str,
    *,
    x: str,
    y: str,
    log: str = "",
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
    x, y, log, steps
        As for :func:`turnout_reproduce.curves.draw`.
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
    number = len(panels_of(outcome.curves))
    figure, axes = pyplot.subplots(
        1, number, figsize=(max(4.6 * number, 6.4), 4.4), sharey=True, squeeze=False
    )
    draw(outcome.curves, axes[0], x=x, y=y, log=log, steps=steps)
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
