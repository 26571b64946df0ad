"""Draw pictures of samplers: densities with the mollifier's band, heat maps, curves of studies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._drawing import ESTIMATE, TRUTH, finish, new_axes
from turnout._extras import require
from turnout._types import Axes, Floats
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError
from turnout.samplers._arguments import points
from turnout.samplers.adapters import LogDensity, as_reference, log_density_of
from turnout.samplers.base import PrivateSampler
from turnout.samplers.minimax import MinimaxSampler
from turnout.samplers.reference import box

if TYPE_CHECKING:
    from turnout.samplers.reference import Reference


#: The colour of draws.
DRAWS = "#c9822b"

#: Points of a curve, and cells to the side of a heat map.
POINTS, _CELLS = 1201, 161

#: Up to this many draws are drawn one by one.
_FEW = 200


def plot_density(
    density: Any,
    *,
    bounds: Any = None,
    reference: Any = None,
    epsilon: float | None = None,
    truth: Any = None,
    draws: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the law of a draw on the line, with the band that it cannot leave.

    Parameters
    ----------
    density
        A fitted sampler of one feature, or any log-density: a callable of points of shape (n, 1),
        or an object with ``score_samples``, ``log_density`` or ``logpdf``.
    bounds
        The pair (low, high) of limits to plot between. By default they are around the reference or
        the draws, or are the bounds of a sampler that has them.
    reference, epsilon
        The public reference and the epsilon of the band. By default they are those of a fitted
        sampler, with its own limits (a minimax sampler's are not symmetric). Without them no band
        is drawn.
    truth
        The true log-density, given like ``density``.
    draws
        Draws of shape (n, 1): shown one by one, or as a histogram if there are many.
    ax
        Matplotlib axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, with labels and a legend.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    NotFittedError
        If the sampler is not fitted.
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> from turnout.samplers import Normal, StandardNormal
    >>> axes = plot_density(Normal([0.1], [0.9]), reference=StandardNormal(1), epsilon=1.0)
    >>> axes.get_ylabel()
    'density'
    """
    values = _log_density_of("density", density, 1)
    known = None if truth is None else _log_density_of("truth", truth, 1)
    base, band = _band_of(density, reference, epsilon)
    drawn = None if draws is None else points("draws", draws, columns=1)[:, 0]
    if bounds is None and base is None and isinstance(density, PrivateSampler):
        bounds = getattr(density, "bounds", None)
    low, high = interval_of(bounds, base, drawn)
    axes = new_axes(ax)
    x = np.linspace(low, high, POINTS)
    middle = None
    if base is not None:
        middle = np.exp(base.log_density(x[:, None]))
        draw_reference(axes, x, middle, band)
    if drawn is not None:
        _draw_draws(axes, drawn, (low, high))
    if known is not None:
        axes.plot(x, np.exp(known(x[:, None])), color=TRUTH, linewidth=1.4, label="truth", zorder=3)
    curve = np.exp(values(x[:, None]))
    axes.plot(x, curve, color=ESTIMATE, linewidth=2.0, label="law of a draw", zorder=4)
    frame(axes, (low, high), curve, middle)
    return axes


def plot_heatmap(
    density: Any,
    truth: Any = None,
    *,
    bounds: Any,
    draws: Any = None,
    ax: Any = None,
) -> list[Axes]:
    """Plot the law of a draw in the plane, beside the truth on the same scale of colours.

    Parameters
    ----------
    density
        A fitted sampler of two features, or any log-density, as for :func:`plot_density`.
    truth
        The true log-density; left out if None.
    bounds
        Two pairs (low, high).
    draws
        Draws of shape (n, 2), shown as points on the sampler's map.
    ax
        One matplotlib axes for each map; new ones by default.

    Returns
    -------
    list of matplotlib.axes.Axes
        The axes: the sampler's, and the truth's if given.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    NotFittedError
        If the sampler is not fitted.
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> from turnout.samplers import StandardNormal
    >>> maps = plot_heatmap(StandardNormal(2), bounds=[(-3, 3), (-3, 3)])
    >>> len(maps)
    1
    """
    given = [("law of a draw", _log_density_of("density", density, 2))]
    if truth is not None:
        given.append(("truth", _log_density_of("truth", truth, 2)))
    low, high = box(bounds)
    if low.size != 2:
        raise _arguments.invalid("bounds must be two pairs", bounds)
    sides = [
        start + (stop - start) * (np.arange(_CELLS) + 0.5) / _CELLS
        for start, stop in zip(low, high, strict=True)
    ]
    grid = np.stack(np.meshgrid(*sides, indexing="xy"), axis=-1).reshape(-1, 2)
    maps = [np.exp(values(grid)).reshape(_CELLS, _CELLS) for _, values in given]
    axes = row_of_axes(ax, len(maps))
    top = max(float(each.max()) for each in maps)
    image: Any = None
    for one, (title, _), shown in zip(axes, given, maps, strict=True):
        image = one.imshow(
            shown,
            origin="lower",
            extent=(low[0], high[0], low[1], high[1]),
            vmin=0.0,
            vmax=top if top > 0 else 1.0,
            cmap="viridis",
            aspect="auto",
            interpolation="nearest",
        )
        one.set_title(title, fontsize=10)
        one.set_xlabel("first feature")
        one.set_ylabel("second feature" if one is axes[0] else "")
    if draws is not None:
        placed = points("draws", draws, columns=2)
        axes[0].plot(placed[:, 0], placed[:, 1], ".", color="white", markersize=2.5, alpha=0.7)
        axes[0].set_xlim(low[0], high[0])
        axes[0].set_ylim(low[1], high[1])
    colour_bar = axes[0].figure.colorbar(image, ax=axes, pad=0.02)
    colour_bar.set_label("density")
    return axes


class Band(NamedTuple):
    """How far laws of draws can be from the reference, as logarithms, and its text in a legend."""

    low: float
    high: float
    label: str


def draw_reference(axes: Axes, x: Floats, density: Floats, band: Band | None) -> None:
    """Plot the density of the reference, and the band around it."""
    if band is not None:
        axes.fill_between(
            x,
            density * math.exp(band.low),
            density * math.exp(band.high),
            color="#e3e6eb",
            linewidth=0.0,
            label=band.label,
            zorder=1,
        )
    axes.plot(x, density, color="0.35", linestyle="--", linewidth=1.2, label="reference $Q_0$")


def _log_density_of(argument: str, given: Any, size: int) -> LogDensity:
    """Return checked log-densities of an object with one or two features, as plotted."""
    if isinstance(given, PrivateSampler):
        given._check_fitted()
        if not given._of_points:
            raise InvalidValueError(
                f"{argument} must be a sampler of points, got one of finitely many values, whose "
                f"probabilities_ are a bar chart: {_arguments.shown(given)}"
            )
    features = getattr(given, "n_features_in_", getattr(given, "dimensions", size))
    if features != size:
        other = {1: "plot_density", 2: "plot_heatmap"}.get(features)
        advice = "one or two can be drawn" if other is None else f"use {other}"
        wanted = "one feature" if size == 1 else "two features"
        raise InvalidValueError(f"{argument} must have {wanted} here, got {features}: {advice}")
    return log_density_of(argument, given, finite=True)


def _band_of(
    density: Any, reference: Any, epsilon: float | None
) -> tuple[Reference | None, Band | None]:
    fitted = isinstance(density, PrivateSampler)
    own = fitted and reference is None
    if own:
        reference = getattr(density, "_reference_", None)
    base = None if reference is None else as_reference(reference, 1)
    bounded = fitted and hasattr(density, "certificate_")
    if epsilon is None and bounded:
        epsilon = density._epsilon_
    if epsilon is None or base is None:
        return base, None
    width = positive("epsilon", epsilon)
    if isinstance(density, MinimaxSampler) and own and width == density._epsilon_:
        # Those of the fit, whatever the parameters are now.
        low, high = density._projection_._log_limits
        label = rf"band $b\,Q_0$ to $b\,e^\varepsilon Q_0$, b = {math.exp(low):.3g}, ε = {width:g}"
        return base, Band(low, high, label)
    label = rf"band $Q_0\,e^{{\pm\varepsilon/2}}$, ε = {width:g}"
    return base, Band(-width / 2.0, width / 2.0, label)


def interval_of(bounds: Any, base: Reference | None, drawn: Floats | None) -> tuple[float, float]:
    """Choose where to plot: within bounds, else around the reference, else around the draws."""
    if bounds is not None:
        low, high = box(bounds)
        if low.size != 1:
            raise _arguments.invalid("bounds must be one pair", bounds)
        return float(low[0]), float(high[0])
    column = drawn
    if base is not None:
        column = base._draw_spread(4096, seed=0)[:, 0]
    if column is None:
        raise InvalidValueError("bounds must be given where there is no reference and no draw")
    least, most = np.quantile(column, (0.001, 0.999)).tolist()
    margin = 0.05 * (most - least) or 0.5
    return least - margin, most + margin


def _draw_draws(axes: Axes, drawn: Floats, sides: tuple[float, float]) -> None:
    inside = drawn[(drawn >= sides[0]) & (drawn <= sides[1])]
    if drawn.size <= _FEW:
        axes.plot(
            inside,
            np.zeros(inside.size),
            "|",
            color=DRAWS,
            markersize=12,
            markeredgewidth=1.2,
            label=f"{drawn.size:,} draws",
            zorder=5,
            clip_on=False,
        )
        return
    edges = np.linspace(*sides, 1 + min(80, max(20, round(2 * drawn.size ** (1 / 3)))))
    counts, _ = np.histogram(inside, edges)
    axes.stairs(
        counts / drawn.size / np.diff(edges),
        edges,
        fill=True,
        color=DRAWS,
        alpha=0.3,
        label=f"{drawn.size:,} draws",
        zorder=2,
    )


def frame(
    axes: Axes, sides: tuple[float, float], curve: Floats, middle: Floats | None, title: str = ""
) -> None:
    """Set the limits so that what matters is visible; a narrow mode of the truth may be cut."""
    top = float(max(curve.max(), curve.max() if middle is None else middle.max()))
    axes.set_xlim(*sides)
    axes.set_ylim(0.0, 1.35 * top if math.isfinite(top) and top > 0 else None)
    axes.set_xlabel("value")
    axes.set_ylabel("density")
    finish(axes, title, legend="above")


def row_of_axes(ax: Any, count: int) -> list[Any]:
    """Return one axes for each picture, or make them side by side."""
    pyplot = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, made = pyplot.subplots(
            1, count, figsize=(1.2 + 4.6 * count, 4.6), layout="constrained", squeeze=False
        )
        return list(made[0])
    given = list(ax) if isinstance(ax, (list, tuple, np.ndarray)) else [ax]
    if len(given) != count or not all(hasattr(one, "errorbar") for one in given):
        raise _arguments.mistyped(f"ax must be {count} matplotlib axes, one for each map", ax)
    return given
