"""Pictures of populations: mean laws of draws, and bounds of the users' mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from turnout._drawing import new_axes
from turnout._types import Axes, Floats
from turnout.samplers.pictures import (
    BAND,
    DRAWS,
    REFERENCE,
    SAMPLER,
    TRUTH,
    finish,
    legend,
    plot_heatmap,
)
from turnout.samplers.study.metrics import LogDensity

#: Up to so many draws are shown as points on a map.
_FEW_DRAWS = 500


def plot_mean_map(
    density: LogDensity, truth: Any, draws: Floats, *, sides: Any, title: str, ax: Any
) -> list[Axes]:
    """Draw the mean law of draws in the plane, beside the truth if it is known."""
    maps = plot_heatmap(density, truth, bounds=sides, ax=ax)
    maps[0].set_title(title, fontsize=10)
    if len(draws) <= _FEW_DRAWS:
        # So few draws say more than any estimate of where they come from.
        maps[0].scatter(
            draws[:, 0], draws[:, 1], s=14, color=DRAWS, edgecolors="white", linewidths=0.5
        )
        # The map's own limits: a draw far away stretches nothing.
        maps[0].set(xlim=sides[0], ylim=sides[1])
    if truth is not None:
        maps[1].set_title("mean of the users' own distributions", fontsize=10)
    return maps


def plot_mean_law(
    x: Floats,
    curve: Floats,
    limits: tuple[Floats, Floats],
    *,
    reference: Floats,
    band: tuple[float, float],
    truth: Floats | None,
    label: str,
    title: str,
    ax: Any,
) -> Axes:
    """Draw the mean law of draws on the line.

    Parameters
    ----------
    x
        Where; the other arrays hold densities there.
    curve, limits
        The estimate, and the limits of its interval.
    reference, band
        The reference, and the limits of the logarithm of a mean law's ratio to it.
    truth
        The mean of the users' own laws, if known.
    label, title
        What the interval is, and what stands above.
    ax
        Matplotlib axes to draw on; new ones by default.
    """
    axes = new_axes(ax)
    if np.isfinite(band).all():
        axes.fill_between(
            x,
            reference * math.exp(band[0]),
            reference * math.exp(band[1]),
            color=BAND,
            linewidth=0.0,
            label="band that no mean law leaves",
            zorder=1,
        )
    axes.plot(x, reference, color=REFERENCE, linestyle="--", linewidth=1.2, label="reference $Q_0$")
    axes.fill_between(x, *limits, color=SAMPLER, alpha=0.25, linewidth=0.0, label=label, zorder=2)
    axes.plot(x, curve, color=SAMPLER, linewidth=1.8, label="mean law of the draws", zorder=4)
    if truth is not None:
        axes.plot(x, truth, color=TRUTH, linewidth=1.4, label="mean of the users' own", zorder=3)
    axes.set_xlabel("value")
    finish(axes, (float(x[0]), float(x[-1])), curve, reference)
    _, top = axes.get_ylim()
    axes.set_ylim(top=max(top, 1.05 * float(limits[1].max())))
    axes.set_title(title, fontsize=10, loc="left", pad=58)
    return axes


def plot_identified(
    names: Sequence[str],
    shares: Floats,
    bounds: Mapping[str, tuple[Floats, Floats]],
    *,
    truth: Floats | None,
    title: str,
    ax: Any,
) -> Axes:
    """Draw bounds of the users' mean, and the shares of the draws.

    Parameters
    ----------
    names, shares
        The answers, and the share of each.
    bounds
        What they are: the wider first, then the narrower, one lower and upper limit for each
        answer.
    truth
        The mean of the users' own laws, if known.
    title
        What stands above.
    ax
        Matplotlib axes to draw on; new ones by default.
    """
    size = len(names)
    axes = new_axes(ax, width=max(7.0, min(14.0, 4.0 + 0.35 * size)))
    positions = np.arange(size)
    if truth is not None:
        axes.bar(positions, truth, width=0.75, color="#c9ced6", label="truth", zorder=1)
    styles = ((4.0, 0.3), (8.0, 0.7))
    for (label, (low, high)), (thick, alpha) in zip(bounds.items(), styles, strict=True):
        axes.vlines(
            positions, low, high, color=SAMPLER, linewidth=thick, alpha=alpha, label=label, zorder=2
        )
    axes.plot(
        positions, shares, "D", color=DRAWS, markersize=5, label="share of the draws", zorder=3
    )
    axes.set_xticks(positions, names)
    if sum(map(len, names)) > 60:
        for name in axes.get_xticklabels():
            name.set(rotation=40, ha="right", rotation_mode="anchor")
    axes.set_xlabel("answer")
    axes.set_ylabel("mean probability over users")
    axes.set_ylim(bottom=0.0)
    axes.set_title(title, fontsize=10, loc="left", pad=46)
    axes.spines[["top", "right"]].set_visible(False)
    legend(axes)
    return axes
