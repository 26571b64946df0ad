"""Pictures of populations: mean laws of draws, and bounds of the users' mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from turnout import _arguments
from turnout._drawing import new_axes
from turnout.samplers.pictures import (
    BAND,
    DRAWS,
    POINTS,
    REFERENCE,
    SAMPLER,
    TRUTH,
    finish,
    interval_of,
    legend,
    plot_heatmap,
)
from turnout.samplers.study.metrics import log_density

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from turnout.samplers.population.answers import FinitePopulationEstimate
    from turnout.samplers.population.points import PopulationEstimate

__all__ = ["plot_identified", "plot_population"]

#: Up to so many draws are shown as points on a map.
_FEW_DRAWS = 500


def plot_population(estimate: PopulationEstimate, truth: Any, bounds: Any, ax: Any) -> Any:
    """Draw a population estimate: see :meth:`PopulationEstimate.plot`."""
    reference = estimate.reference
    paid = "" if estimate.epsilon is None else f", ε = {estimate.epsilon:g} each"
    if reference.dimension == 2:
        sides = bounds
        if sides is None:
            sides = [interval_of(None, None, column) for column in estimate.draws.T]
        maps = plot_heatmap(estimate, truth, bounds=sides, ax=ax)
        maps[0].set_title(f"mean law of the draws of {estimate.users:,} users{paid}", fontsize=10)
        if estimate.users <= _FEW_DRAWS:
            # So few draws say more than any estimate of where they come from.
            maps[0].scatter(
                estimate.draws[:, 0],
                estimate.draws[:, 1],
                s=14,
                color=DRAWS,
                edgecolors="white",
                linewidths=0.5,
            )
            # The map's own limits: a draw far away stretches nothing.
            maps[0].set(xlim=sides[0], ylim=sides[1])
        if truth is not None:
            maps[1].set_title("mean of the users' own distributions", fontsize=10)
        return maps
    low, high = interval_of(bounds, None, estimate.draws[:, 0])
    axes = new_axes(ax)
    x = np.linspace(low, high, POINTS)
    middle = np.exp(reference.log_density(x[:, None]))
    limits = estimate.band
    if np.isfinite(limits).all():
        axes.fill_between(
            x,
            middle * math.exp(limits[0]),
            middle * math.exp(limits[1]),
            color=BAND,
            linewidth=0.0,
            label="band that no mean law leaves",
            zorder=1,
        )
    axes.plot(x, middle, color=REFERENCE, linestyle="--", linewidth=1.2, label="reference $Q_0$")
    found = estimate.interval(x[:, None])
    axes.fill_between(
        x,
        found.low,
        found.high,
        color=SAMPLER,
        alpha=0.25,
        linewidth=0.0,
        label="95% interval" + (", all cells at once" if estimate.method == "histogram" else ""),
        zorder=2,
    )
    curve = estimate.density(x[:, None])
    axes.plot(x, curve, color=SAMPLER, linewidth=1.8, label="mean law of the draws", zorder=4)
    if truth is not None:
        known = np.exp(log_density("truth", truth)(x[:, None]))
        axes.plot(x, known, color=TRUTH, linewidth=1.4, label="mean of the users' own", zorder=3)
    axes.set_xlabel("value")
    finish(axes, (low, high), curve, reference, x)
    _, top = axes.get_ylim()
    axes.set_ylim(top=max(top, 1.05 * float(found.high.max())))
    axes.set_title(
        f"one draw of each of {estimate.users:,} users{paid} ({estimate.method})",
        fontsize=10,
        loc="left",
        pad=58,
    )
    return axes


def plot_identified(estimate: FinitePopulationEstimate, truth: Any, ax: Any, level: float) -> Axes:
    """Draw identified bounds: see :meth:`FinitePopulationEstimate.plot`."""
    size = estimate.domain.size
    known = None if truth is None else _arguments.frequencies("truth", truth, size)
    axes = new_axes(ax, width=max(7.0, min(14.0, 4.0 + 0.35 * size)))
    positions = np.arange(size)
    if known is not None:
        axes.bar(positions, known, width=0.75, color="#c9ced6", label="truth", zorder=1)
    wide, narrow = estimate.bounds(level), estimate.bounds(None)
    for bounds, thick, alpha, label in (
        (wide, 4.0, 0.3, f"bounds of the users' mean, {level:.0%} (all at once)"),
        (narrow, 8.0, 0.7, "the same, were the law of the draws known"),
    ):
        axes.vlines(
            positions,
            bounds.low,
            bounds.high,
            color=SAMPLER,
            linewidth=thick,
            alpha=alpha,
            label=label,
            zorder=2,
        )
    axes.plot(
        positions,
        estimate.mixture.frequencies,
        "D",
        color=DRAWS,
        markersize=5,
        label="share of the draws",
        zorder=3,
    )
    names = [str(label) for label in estimate.domain.labels]
    axes.set_xticks(positions, names)
    if sum(map(len, names)) > 60:
        for name in axes.get_xticklabels():
            name.set(rotation=40, ha="right", rotation_mode="anchor")
    axes.set_xlabel("answer")
    axes.set_ylabel("mean probability over users")
    axes.set_ylim(bottom=0.0)
    axes.set_title(
        f"one draw of each of {estimate.users:,} users, ε = {estimate.mixture.plan.epsilon:g} each",
        fontsize=10,
        loc="left",
        pad=46,
    )
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes)
    return axes
