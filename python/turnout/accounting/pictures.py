"""Pictures of the costs of mechanisms: several on one axis, with the paper's curve.

The paper is Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated
Learning"; :func:`plot` draws its Figures 1, 2, 3 and 5. For random participation a dashed curve
shows its Theorem 4.1, which is not a bound (:func:`turnout.accounting.paper.theorem_4_1_delta`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._drawing import new_axes, plain_logarithmic
from turnout._extras import require
from turnout._types import Axes, Floats
from turnout.accounting.curves import (
    Mechanisms,
    common_parameters,
    named,
    neighbours,
    refuse_without,
    theorem,
)
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.participation import CentralShuffling, WeakClientSampling
from turnout.errors import InvalidValueError

#: The least number above 0.
_LEAST = math.nextafter(0.0, 1.0)


class _Along(NamedTuple):
    """A quantity on the horizontal axis."""

    label: str
    #: The parameters that change along it.
    varied: tuple[str, ...]
    #: The least and the largest number, and both in words.
    limits: tuple[float, float, str]


_ALONG = {
    "epsilon": _Along("ε", (), (0.0, math.inf, "of at least 0")),
    "noise_multiplier": _Along(
        "noise multiplier σ", ("noise_multiplier",), (_LEAST, math.inf, "above 0")
    ),
    "rounds": _Along("rounds", (), (1.0, math.inf, "of at least 1")),
    "sample_rate": _Along(
        "sample rate q", ("sample_rate", "client_rate"), (_LEAST, 1.0, "above 0 and at most 1")
    ),
}

_LETTERS = {"delta": "δ", "epsilon": "ε"}
_OTHER = {"delta": "epsilon", "epsilon": "delta"}

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

_POINTS, _FEWER_POINTS = 161, 61


class _Line(NamedTuple):
    """A mechanism and its style."""

    label: str
    mechanism: Any
    word: str
    colour: Any

    @property
    def style(self) -> dict[str, Any]:
        if isinstance(self.mechanism, WeakClientSampling):
            # The limit that random participation tends to: both must be seen where they meet.
            return {"linestyle": "-", "linewidth": 4.5, "zorder": 2, "alpha": 0.4}
        central = isinstance(self.mechanism, CentralShuffling)
        return {"linestyle": ":" if central else "-", "linewidth": 1.8, "zorder": 3}

    @property
    def product(self) -> float:
        """The product of the two rates; not a number where there is no client rate."""
        client_rate: float = getattr(self.mechanism, "client_rate", math.nan)
        return client_rate * float(getattr(self.mechanism, "sample_rate", math.nan))

    def changed(self, x: str, place: float) -> Mechanism | None:
        """Return the mechanism with a changed parameter; None if the others do not allow it."""
        if x == "rounds":
            mechanism: Mechanism = self.mechanism
            return mechanism
        changes = {x: place}
        if x == "sample_rate" and not math.isnan(self.product):
            changes["client_rate"] = min(1.0, self.product / place)
            if self.product / place > 1.0 + 1e-9:
                return None
        result: Mechanism = self.mechanism.replace(**changes)
        return result


class _Question(NamedTuple):
    """The quantities of a picture: ``y`` at a ``level`` of the other, along ``x``."""

    x: str
    y: str
    level: float
    places: Floats

    def curve(self, line: _Line, *, lower: bool = False) -> Floats:
        """Evaluate a mechanism, or its lower value."""
        if self.x == "epsilon":
            return np.asarray(line.mechanism.delta(self.places, line.word))

        def value(mechanism: Mechanism, place: float) -> float:
            composed = mechanism.compose(int(place) if self.x == "rounds" else 1, line.word)
            if lower:
                return float(getattr(composed, f"{self.y}_bounds")(self.level).low)
            return float(getattr(composed, self.y)(self.level))

        return self._along(line, value)

    def claim(self, line: _Line) -> Floats:
        """Evaluate the paper's claim."""
        if self.x == "epsilon":
            return theorem(line.mechanism, "delta", self.places)
        return self._along(line, lambda changed, _: float(theorem(changed, self.y, self.level)))

    def _along(self, line: _Line, value: Callable[[Mechanism, float], float]) -> Floats:
        places = self.places.tolist()
        changed = [line.changed(self.x, place) for place in places]
        return np.array(
            [
                math.nan if mechanism is None else value(mechanism, place)
                for mechanism, place in zip(changed, places, strict=True)
            ]
        )


def plot(
    mechanisms: Mechanisms,
    x: str = "epsilon",
    y: str = "delta",
    *,
    at: float | None = None,
    points: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    paper: bool = True,
    lower: bool = True,
) -> Axes:
    """Draw delta or epsilon of mechanisms against one of their parameters.

    Parameters
    ----------
    mechanisms
        A mechanism, a sequence of mechanisms, or a dict of labels and mechanisms.
    x
        The quantity on the horizontal axis. ``"epsilon"``: for ``y="delta"``, one use of each
        mechanism. ``"noise_multiplier"``: the mechanisms' own values do not matter.
        ``"sample_rate"``: each mechanism keeps the product of its two rates, and with it the
        expected batch. At a sample rate q its client rate is that product over q, and the curve
        starts where this is 1. Mechanisms without a client rate are drawn at each q. ``"rounds"``:
        every point is a composition, which takes some tenths of a second, and some seconds with its
        lower value. The paper's theorem covers only one round, so it has no curve here.
    y
        ``"delta"`` or ``"epsilon"``, on a logarithmic axis; a curve ends where it is 0.
    at
        The delta in [0, 1] at which epsilon is drawn, or the epsilon, finite and at least 0, at
        which delta is drawn. Omit it if ``x`` is epsilon.
    points
        The points to evaluate, at least two. By default epsilons from 0 to where delta is tiny,
        noise from 0.5 to 10 and twice the mechanisms' own, seven numbers of rounds from 1 to
        10,000, or sample rates from the smallest product of the two rates to 1.
    adjacency
        The neighbouring data sets; each mechanism's default if None.
    ax
        Matplotlib axes to draw on; new ones by default.
    labels
        A text for each mechanism, for the legend.
    paper
        Whether to draw the paper's Theorem 4.1 for random participation, dashed.
    lower
        Whether to compute lower values of many rounds and draw them as a band below the line.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, a mechanism lacks the parameter, or no
        default sample rates can be found because all rates are 0 or there is no client rate.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> axes = plot(LocalSampling(0.1, 1.0), "noise_multiplier", "epsilon", at=1e-5)
    >>> axes.get_ylabel()
    'ε at δ = 1e-05 (add or remove one)'
    """
    _arguments.choice("x", x, _ALONG)
    _arguments.choice("y", y, ("delta", "epsilon"))
    level = _level(x, y, at)
    lines = _lines(mechanisms, adjacency, ax, labels)
    if x in ("noise_multiplier", "sample_rate"):
        refuse_without([line.mechanism for line in lines], x)
    places = _default_places(x, lines) if points is None else _places(x, points)
    question = _Question(x, y, level, places)
    curves = [question.curve(line) for line in lines]
    banded = x == "rounds" and lower
    floors = [question.curve(line, lower=True) for line in lines] if banded else []
    claims = [question.claim(line) for line in lines] if paper and x != "rounds" else []
    # All is known that can be refused.
    axes = new_axes(ax, width=8.8, height=4.6)
    marks: dict[str, Any] = {"marker": "o", "markersize": 3.5} if x == "rounds" else {}
    for line, curve in zip(lines, curves, strict=True):
        style = {**line.style, **marks}
        axes.plot(places, _drawable(curve), color=line.colour, label=line.label, **style)
    for line, curve, floor in zip(lines, curves, floors, strict=False):
        # A lower value of 0 says nothing.
        below = np.where(floor > 0.0, floor, np.nan)
        band: dict[str, Any] = {"color": line.colour, "alpha": 0.25, "linewidth": 0.0}
        axes.fill_between(places, below, _drawable(curve), **band)
    dashed: list[Any] = []
    for line, claim in zip(lines, claims, strict=False):
        if not np.isnan(claim).all():
            dashes: dict[str, Any] = {"linewidth": 1.2, "dashes": (4, 2.5), "zorder": 4}
            dashed += axes.plot(places, _drawable(claim), "--", color=line.colour, **dashes)
    _scale(axes, x, y, places, curves)
    shown = "δ" if x == "epsilon" else f"{_LETTERS[y]} at {_LETTERS[_OTHER[y]]} = {level:g}"
    _describe(axes, lines, x, shown, banded=banded)
    _add_legend(axes, dashed, beside=ax is None)
    return axes


def _level(x: str, y: str, at: float | None) -> float:
    """Check the fixed level."""
    if x == "epsilon":
        if y == "epsilon":
            raise InvalidValueError("y must be 'delta' where x is 'epsilon', got 'epsilon'")
        if at is not None:
            raise _arguments.invalid("at must be left out where x is 'epsilon'", at)
        return 0.0
    name = f"at (of {_OTHER[y]})"
    level = _arguments.number(name, at)
    if not 0.0 <= level <= (sys.float_info.max if y == "delta" else 1.0):
        upper = "finite" if y == "delta" else "at most 1"
        raise _arguments.invalid(f"{name} must be a number of at least 0 and {upper}", at)
    return level


def _lines(
    mechanisms: Mechanisms, adjacency: str | None, ax: Any, labels: Sequence[str] | None
) -> list[_Line]:
    chosen = named(mechanisms, labels)
    words = [mechanism._adjacency_of(adjacency) for _, mechanism in chosen]
    palette = require("matplotlib.pyplot", "plot").get_cmap("viridis")
    if ax is not None:
        new_axes(ax)
    number = len(chosen)
    colours: list[Any] = list(_COLOURS[:number])
    if number > len(_COLOURS):
        colours = [palette(0.92 * position / (number - 1)) for position in range(number)]
    return [
        _Line(
            label if len(set(words)) == 1 else f"{label} ({neighbours(word)})",
            mechanism,
            word,
            colour,
        )
        for (label, mechanism), word, colour in zip(chosen, words, colours, strict=True)
    ]


def _default_places(x: str, lines: list[_Line]) -> Floats:
    """Choose default points to evaluate."""
    if x == "rounds":
        return np.geomspace(1.0, 1e4, 7).round()
    if x == "noise_multiplier":
        own = [float(line.mechanism.noise_multiplier) for line in lines]
        return np.geomspace(min(0.5, min(own) / 2.0), max(10.0, 2.0 * max(own)), _FEWER_POINTS)
    if x == "sample_rate":
        known = [line.product for line in lines if 0.0 < line.product < 1.0]
        if not known:
            raise InvalidValueError(
                "points must be given where no mechanism has two rates with a product between 0 "
                "and 1, got None"
            )
        return np.geomspace(min(known), 1.0, _FEWER_POINTS)
    reached = [
        line.mechanism.epsilon(delta, line.word)
        for line in lines
        for delta in (_SMALL_DELTA, _SMALLEST_DELTA)
    ]
    ends = [end for end in reached if 0.0 < end < math.inf] or [1.0]
    if max(ends) / min(ends) < _FAR_APART:
        return np.linspace(0.0, max(ends), _POINTS)
    return np.geomspace(min(ends) / 10.0, max(ends), _POINTS)


def _places(x: str, given: npt.ArrayLike) -> Floats:
    """Check the points to evaluate: at least two numbers within bounds; sort them."""
    array = np.unique(
        _arguments.vector("points", given, "a sequence of numbers").astype(np.float64)
    )
    least, most, bound = _ALONG[x].limits
    inside = (array >= least) & (array <= most) & np.isfinite(array)
    if array.size < 2 or not inside.all():
        raise _arguments.invalid(
            f"points must be two or more different finite numbers {bound}", given
        )
    if x == "rounds" and (array != np.floor(array)).any():
        raise _arguments.invalid("points must be whole numbers of rounds", given)
    return array


def _drawable(values: Floats) -> Floats:
    """Prepare values for a logarithmic axis: zeros fall off, infinite values are left out."""
    return np.where(np.isfinite(values), np.maximum(values, _ZERO), np.nan)


def _scale(axes: Axes, x: str, y: str, places: Floats, curves: list[Floats]) -> None:
    """Set the limits of the axes to the curves."""
    seen = np.concatenate([curve[np.isfinite(curve) & (curve > _ZERO)] for curve in curves])
    axes.set_yscale("log")
    if seen.size:
        least = _SMALLEST_DELTA if y == "delta" else _DEEPEST * seen.max()
        axes.set_ylim(max(least, 0.5 * seen.min()), 2.0 * seen.max())
    near = x == "epsilon" and not (places[0] > 0.0 and places[-1] / places[0] > 100.0)
    axes.set_xscale("linear" if near else "log")
    if x != "rounds":
        axes.set_xlim(places[0], places[-1])
    if x == "noise_multiplier":
        # Up to where no curve is in sight any more.
        bottom = axes.get_ylim()[0]
        drawn = [
            np.flatnonzero(np.asarray(curve.get_ydata(), dtype=np.float64) >= bottom)
            for curve in axes.get_lines()
        ]
        last = max((int(found[-1]) for found in drawn if found.size), default=places.size - 1)
        axes.set_xlim(places[0], places[min(last + 1, places.size - 1)])
        plain_logarithmic(axes.xaxis)


def _describe(axes: Axes, lines: list[_Line], x: str, shown: str, *, banded: bool) -> None:
    """Write the labels and the title of the picture."""
    axes.set_xlabel(_ALONG[x].label)
    words = {line.word for line in lines}
    meant = f" ({neighbours(words.pop())})" if len(words) == 1 else ""
    axes.set_ylabel(shown + meant)
    note = ""
    if x == "sample_rate":
        kept = {line.product for line in lines if not math.isnan(line.product)}
        note = f"p q = {kept.pop():g}" if len(kept) == 1 else "p q fixed for each"
    elif banded:
        note = "bands reach down to lower values"
    common = common_parameters([line.mechanism for line in lines], _ALONG[x].varied)
    axes.set_title("; ".join(text for text in (common, note) if text), fontsize=10)
    axes.grid(color="#e8e8e8", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _add_legend(axes: Axes, dashed: list[Any], *, beside: bool) -> None:
    handles: list[Any] = list(axes.get_legend_handles_labels()[0])
    if dashed:
        colour = dashed[0].get_color() if len(dashed) == 1 else "0.3"
        style = {"linestyle": "--", "linewidth": dashed[0].get_linewidth(), "color": colour}
        line = require("matplotlib.lines", "plot").Line2D
        handles.append(line([], [], label=_CLAIM, **style))
    # Beside the axes it covers no curve; on axes of others there may be no room.
    place: dict[str, Any] = {"loc": "best"}
    if beside:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    axes.legend(handles=handles, frameon=False, fontsize=9, **place)
