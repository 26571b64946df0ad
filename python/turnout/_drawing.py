"""What pictures share: axes, plain numbers along them, and labels that fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from turnout._extras import require
from turnout._types import Axes, Figure, Floats
from turnout.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axis import Axis


#: Labels of more letters are cut.
_LONGEST_NAME = 30


def new_axes(ax: Any, width: float = 7.0, height: float = 4.2) -> Axes:
    """Give the axes to draw on, new ones if there are none.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError
        If ``ax`` is not matplotlib axes.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "errorbar"):
        raise InvalidTypeError(f"ax must be matplotlib axes, got {ax!r}")
    result: Axes = ax
    return result


def known_truth(truth: Any, size: int, each: str) -> Floats | None:
    """Take what is known to be true, if it is: one number for each entry that is drawn."""
    if truth is None:
        return None
    known = np.atleast_1d(np.asarray(truth, np.float64))
    if known.shape != (size,):
        raise InvalidValueError(f"truth must have one {each.format(size)}, got shape {known.shape}")
    return known


def panels(draw: Mapping[str, Callable[..., Any]]) -> Figure:
    """Draw panels below each other, each with its name before its title.

    Parameters
    ----------
    draw
        What draws each panel, on the axes that it is given as ``ax``, by name.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    figure, axes = pyplot.subplots(
        len(draw), 1, figsize=(8.4, 3.6 * len(draw)), layout="constrained", squeeze=False
    )
    for axis, (name, each) in zip(axes[:, 0], draw.items(), strict=True):
        each(ax=axis)
        axis.set_title(f"{name}: {axis.get_title(loc='left')}", fontsize=10, loc="left", pad=22)
    result: Figure = figure
    return result


def finish(axes: Axes, title: str) -> None:
    """Write title and legend, and leave out the lines above and at the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(loc="best", frameon=False, fontsize=9)


def plain_logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis with few plain numbers, which do not overlap: .01, .02, .05."""
    ticker = require("matplotlib.ticker", "plot")
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def answered(received: int, nodes: int) -> str:
    """Say how many people answered of those who were asked.

    Examples
    --------
    >>> answered(500, 1000), answered(1000, 1000)
    ('500 of 1,000 people answered', '1,000 people answered')
    """
    return f"{received:,}{'' if received == nodes else f' of {nodes:,}'} people answered"


def interval_words(level: float, simultaneous: str | None) -> str:
    """Say what the bars are.

    Examples
    --------
    >>> interval_words(0.95, None), interval_words(0.9, "sidak")
    ('95 % intervals', '90 % intervals (all at once)')
    """
    together = " (all at once)" if simultaneous else ""
    return f"{100 * level:.4g} % intervals{together}"


def short(name: str) -> str:
    """Cut a label that would leave no room, and keep it from being a formula or no text at all."""
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    # Matplotlib takes what stands between dollars for a formula; halves of pairs of UTF-16 are no
    # text.
    return cut.replace("$", r"\$").encode("utf-8", "replace").decode("utf-8")
