"""Axes with a line for each mechanism."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._drawing import new_axes
from turnout._extras import require
from turnout._types import Axes, Floats
from turnout.accounting.curves import (
    Mechanisms,
    common_parameters,
    named,
    neighbours,
    refuse_without,
)
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.participation import (
    CentralShuffling,
    RandomParticipation,
    WeakClientSampling,
)

_COLOURS = ("#1f6f8b", "#d1495b", "#c9822b", "#5b8c5a", "#7a5195", "#3d405b", "#a0522d", "#6c757d")
_CLAIM = "Theorem 4.1 (not a bound)"

#: Below this no delta is drawn.
_SMALLEST_DELTA = 1e-12

#: A delta that people ask for.
_SMALL_DELTA = 1e-6

#: Stands for zero on a logarithmic axis: a curve that reaches it drops off the picture.
_ZERO = 1e-300

#: Where curves of so different reach share an axis, the axis is logarithmic.
_FAR_APART = 40.0

#: How far below the largest epsilon others are drawn.
_DEEPEST = 1e-6

_POINTS, FEWER_POINTS = 161, 61


class Line:
    """A mechanism and how it is drawn."""

    def __init__(self, label: str, mechanism: Mechanism, word: str, colour: Any) -> None:
        self.label = label
        self.mechanism = mechanism
        self.word = word
        self.colour = colour
        self.style: dict[str, Any] = {"linestyle": "-", "linewidth": 1.8, "zorder": 3}
        if isinstance(mechanism, CentralShuffling):
            self.style["linestyle"] = ":"
        elif isinstance(mechanism, WeakClientSampling):
            # The limit that random participation tends to: both must be seen where they meet.
            self.style.update(linewidth=4.5, alpha=0.4, zorder=2)


class Picture:
    """Axes with a line for each mechanism."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        adjacency: str | None,
        ax: Axes | None,
        labels: Sequence[str] | None,
        paper: bool,
    ) -> None:
        chosen = named(mechanisms, labels)
        words = [mechanism.adjacency(adjacency) for _, mechanism in chosen]
        require("matplotlib.pyplot", "plot")
        self._given = None if ax is None else new_axes(ax)
        self.paper = paper
        self._one_word = words[0] if len(set(words)) == 1 else None
        colours = _colours(len(chosen))
        self.lines = [
            Line(
                label if self._one_word else f"{label} ({neighbours(word)})",
                mechanism,
                word,
                colour,
            )
            for (label, mechanism), word, colour in zip(chosen, words, colours, strict=True)
        ]
        self.mechanisms = [line.mechanism for line in self.lines]
        self._largest = 0.0
        self._smallest = math.inf
        self._claims: list[Any] = []

    @functools.cached_property
    def axes(self) -> Axes:
        """The axes: made when all is known that can be refused."""
        return new_axes(self._given, width=8.8, height=4.6)

    def default_epsilons(self) -> tuple[Floats, bool]:
        """Give epsilons that show every curve, and whether their axis should be logarithmic."""
        reached = [
            line.mechanism.epsilon(delta, line.word)
            for line in self.lines
            for delta in (_SMALL_DELTA, _SMALLEST_DELTA)
        ]
        known = [end for end in reached if 0.0 < end < math.inf] or [1.0]
        if max(known) / min(known) < _FAR_APART:
            return np.linspace(0.0, max(known), _POINTS), False
        return np.geomspace(min(known) / 10.0, max(known), _POINTS), True

    def noises(self, given: npt.ArrayLike | None) -> Floats:
        """Check noise multipliers, or choose them."""
        refuse_without(self.mechanisms, "noise_multiplier")
        if given is not None:
            return increasing("noise_multipliers", given, least=0.0, above=True)
        own = [float(mechanism.noise_multiplier) for mechanism in self.mechanisms]  # type: ignore[attr-defined]
        return np.geomspace(min(0.5, min(own) / 2.0), max(10.0, 2.0 * max(own)), FEWER_POINTS)

    def curves(
        self,
        points: Floats,
        values: Callable[[Mechanism, str], Floats],
        claims: Callable[[Mechanism], Floats | None],
    ) -> None:
        """Draw the curves of all mechanisms, and the paper's where it has any."""
        found = [values(line.mechanism, line.word) for line in self.lines]
        claimed = [
            claims(line.mechanism)
            if self.paper and isinstance(line.mechanism, RandomParticipation)
            else None
            for line in self.lines
        ]
        for line, curve in zip(self.lines, found, strict=True):
            self.line(points, curve, line)
        for line, claim in zip(self.lines, claimed, strict=True):
            if claim is not None:
                self._claim(points, claim, line)

    def line(self, points: Floats, values: Floats, line: Line, **style: Any) -> Floats:
        """Draw one curve; give what was drawn."""
        drawn = _drawable(values)
        self.axes.plot(
            points, drawn, color=line.colour, label=line.label, **{**line.style, **style}
        )
        seen = drawn[drawn > _ZERO]
        if seen.size:
            self._largest = max(self._largest, float(seen.max()))
            self._smallest = min(self._smallest, float(seen.min()))
        return drawn

    def _claim(self, points: Floats, values: Floats, line: Line) -> None:
        self._claims += self.axes.plot(
            points,
            _drawable(values),
            "--",
            color=line.colour,
            linewidth=1.2,
            dashes=(4, 2.5),
            zorder=4,
        )

    def across(self, points: Floats) -> None:
        """Make the horizontal axis logarithmic, as far as a curve is in sight."""
        self.axes.set_xscale("log")
        self.axes.set_xlim(points[0], points[-1])

    def noise(self, points: Floats) -> None:
        """Make the horizontal axis one of noise, up to where no curve is in sight any more."""
        ticker = require("matplotlib.ticker", "plot")
        self.across(points)
        bottom = self.axes.get_ylim()[0]
        seen = [
            np.flatnonzero(np.asarray(curve.get_ydata(), dtype=np.float64) >= bottom)
            for curve in self.axes.get_lines()
        ]
        last = max((int(places[-1]) for places in seen if places.size), default=points.size - 1)
        self.axes.set_xlim(points[0], points[min(last + 1, points.size - 1)])
        axis = self.axes.xaxis
        axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axis.set_minor_formatter(ticker.NullFormatter())

    def deltas(self) -> None:
        """Make the vertical axis one of deltas."""
        self._logarithmic(_SMALLEST_DELTA)

    def epsilons(self) -> None:
        """Make the vertical axis one of epsilons."""
        self._logarithmic(_DEEPEST * self._largest)

    def _logarithmic(self, least: float) -> None:
        self.axes.set_yscale("log")
        if self._largest > 0.0:
            self.axes.set_ylim(max(least, 0.5 * self._smallest), 2.0 * self._largest)

    def finished(self, x: str, y: str, varied: Sequence[str], note: str = "") -> Axes:
        """Write what the picture shows beside it."""
        axes = self.axes
        axes.set_xlabel(x)
        meant = f" ({neighbours(self._one_word)})" if self._one_word else ""
        axes.set_ylabel(y + meant)
        common = common_parameters(self.mechanisms, varied)
        axes.set_title("; ".join(text for text in (common, note) if text), fontsize=10)
        axes.grid(color="#e8e8e8", linewidth=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        handles: list[Any] = list(axes.get_legend_handles_labels()[0])
        if self._claims:
            first = self._claims[0]
            handles.append(
                require("matplotlib.lines", "plot").Line2D(
                    [],
                    [],
                    linestyle="--",
                    linewidth=first.get_linewidth(),
                    color=first.get_color() if len(self._claims) == 1 else "0.3",
                    label=_CLAIM,
                )
            )
        # Beside the axes it covers no curve; on axes of others there may be no room.
        place: dict[str, Any] = (
            {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
            if self._given is None
            else {"loc": "best"}
        )
        axes.legend(handles=handles, frameon=False, fontsize=9, **place)
        return axes


def _drawable(values: Floats) -> Floats:
    """Let zeros fall off a logarithmic axis, and leave out what is infinite or missing."""
    return np.where(np.isfinite(values), np.maximum(values, _ZERO), np.nan)


def _colours(number: int) -> list[Any]:
    if number <= len(_COLOURS):
        return list(_COLOURS[:number])
    palette = require("matplotlib.pyplot", "plot").get_cmap("viridis")
    return [palette(0.92 * position / (number - 1)) for position in range(number)]


def increasing(
    argument: str, value: Any, *, least: float, above: bool = False, most: float = math.inf
) -> Floats:
    """Return at least two numbers within bounds, in ascending order."""
    array = np.unique(
        _arguments.vector(argument, value, "a sequence of numbers").astype(np.float64)
    )
    inside = (array > least if above else array >= least) & (array <= most) & np.isfinite(array)
    if array.size < 2 or not inside.all():
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        upper = "" if math.isinf(most) else f" and at most {most:g}"
        raise _arguments.invalid(
            f"{argument} must be two or more different finite numbers {bound}{upper}", value
        )
    return array
