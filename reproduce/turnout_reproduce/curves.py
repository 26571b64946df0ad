"""Curves with their errors, and the one way in which pictures draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnout._extras import require
from turnout.errors import InvalidValueError

#: Of more curves than there are colours each has a place on a scale of them, and neighbours differ
#: by their line.
_COLOURS = 10
_EXACT, _MEASURED = ("--", "-.", ":"), ("o-", "s--", "^:")


@dataclass(frozen=True)
class Curve:
    """One line or set of points of a picture.

    Attributes
    ----------
    label
        What the legend calls it.
    x, y
        The points.
    error
        The standard error of each ``y`` over repeats; None if they are exact.
    panel
        The part of the picture that it belongs to.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] | None = None
    panel: str = ""

    def __post_init__(self) -> None:
        """Refuse points without a partner."""
        lengths = {len(self.x), len(self.y), len(self.x if self.error is None else self.error)}
        if len(lengths) > 1:
            raise InvalidValueError(
                f"x, y and error of {self.label!r} must have one length, got {sorted(lengths)}"
            )


def panels_of(curves: Sequence[Curve]) -> list[str]:
    """Name the parts of a picture of curves, in their order."""
    return list(dict.fromkeys(curve.panel for curve in curves))


def draw(
    curves: Sequence[Curve],
    axes: Sequence[Any],
    *,
    x: str,
    y: str = "",
    log: str = "",
    steps: bool = False,
) -> None:
    """Draw curves, on axes for each panel; bars are two standard errors to each side.

    Parameters
    ----------
    curves
        What is drawn.
    axes
        Matplotlib axes, as many as there are panels.
    x, y
        What the axes are called.
    log
        Which of them are on a logarithmic scale: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
    steps
        Whether curves without an error are filled steps, as for a histogram.
    """
    for name, ax in zip(panels_of(curves), axes, strict=True):
        here = [curve for curve in curves if curve.panel == name]
        for place, curve in enumerate(here):
            _draw(ax, curve, place, len(here), steps)
        if name:
            ax.set_title(name, loc="left", fontsize="medium")
        ax.set_xlabel(x)
        if "x" in log:
            ax.set_xscale("log")
            readable(ax.xaxis, 100.0)
        if "y" in log:
            ax.set_yscale("log")
            readable(ax.yaxis)
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    axes[0].set_ylabel(y)


def readable(axis: Any, few: float = 3000.0) -> None:
    """Write the decades of a logarithmic axis as numbers; where these are ``few`` 2 and 5 too."""
    ticker = require("matplotlib.ticker", "plot")
    low, high = sorted(axis.get_view_interval())
    if high < few * low:
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def count_on_top(ax: Any, words: str, whole: float) -> None:
    """Write above axes how many a share of a whole is."""
    top = ax.secondary_xaxis(
        "top", functions=(lambda share: share * whole, lambda count: count / whole)
    )
    top.set_xlabel(words)
    if ax.get_xscale() == "linear":
        top.xaxis.set_major_formatter("{x:,.0f}")


def _draw(ax: Any, curve: Curve, place: int, number: int, steps: bool) -> None:
    color, style = f"C{place}", 0
    if number > _COLOURS:
        scale = require("matplotlib.pyplot", "plot").get_cmap("turbo")
        color, style = scale(0.05 + 0.9 * place / (number - 1)), place % 3
    if curve.error is not None:
        bars = [2.0 * error for error in curve.error]
        ax.errorbar(
            curve.x, curve.y, bars, fmt=_MEASURED[style], color=color, markersize=3,
            linewidth=1, capsize=2, label=curve.label,
        )  # fmt: skip
    elif steps:
        ax.fill_between(curve.x, curve.y, step="mid", color="0.8", linewidth=0, label=curve.label)
    else:
        ax.plot(curve.x, curve.y, _EXACT[style], color=color, linewidth=1.2, label=curve.label)
