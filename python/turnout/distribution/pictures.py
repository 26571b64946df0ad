"""The picture of a distribution."""

from __future__ import annotations

from typing import Any

from turnout._drawing import ESTIMATE, TRUTH, answered, finish, known_truth, new_axes
from turnout._types import Axes


def draw_bins(estimate: Any, truth: Any, ax: Any, level: float) -> Axes:
    """Draw the shares of bins as steps: see :meth:`DistributionEstimate.plot`."""
    known = known_truth(truth, estimate.domain.size, "share for each of the {} bins")
    edges, shares, median = estimate.edges, estimate.frequencies, estimate.quantile(0.5, level)
    axes = new_axes(ax, width=7.2, height=3.8)
    axes.stairs(shares, edges, fill=True, color=ESTIMATE, alpha=0.45, label="estimate")
    axes.stairs(shares, edges, color=ESTIMATE, linewidth=1.2)
    if known is not None:
        axes.stairs(known, edges, color=TRUTH, linewidth=1.4, label="truth")
    note = f"median, {100 * level:.4g} % interval"
    axes.axvspan(median.low, median.high, color="0.5", alpha=0.2, label=note)
    axes.axvline(median.value, color="0.35", linewidth=1.2, linestyle="--")
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(0, None)
    axes.set_xlabel("number")
    axes.set_ylabel("share of a bin")
    people = answered(estimate.received, estimate.nodes)
    finish(axes, f"{people}, ε = {estimate.plan.oracle.epsilon:g} ({estimate.method})")
    return axes
