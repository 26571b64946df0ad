"""Pictures of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import answered, interval_words, new_axes, short
from turnout._types import Axes, Floats, Integers
from turnout.errors import EstimatorError

#: Of more answers that are no numbers so many are drawn, the most frequent; of numbers these many.
_MANY, _NAMED, _MOST_NUMBERS = 60, 40, 2000

_ESTIMATE = "#1f6f8b"
_TRUTH = "#c9ced6"
_TRUTH_LINE = "#d1495b"


def plot_estimate(
    estimate: Any, truth: Any, ax: Any, level: float, simultaneous: str | None
) -> Axes:
    """Draw an estimate: see :meth:`FrequencyEstimate.plot`."""
    size = estimate.domain.size
    known = None if truth is None else _arguments.frequencies("truth", truth, size)
    codes, numbers = _drawn(estimate)
    line = numbers is not None
    positions: Floats = np.arange(len(codes), dtype=np.float64) if numbers is None else numbers
    axes = new_axes(ax, width=min(14.0, 4.0 + 0.35 * len(codes)))
    (points,) = axes.plot(
        positions,
        estimate.frequencies[codes],
        "." if line else "o",
        markersize=4 if line else 5,
        color=_ESTIMATE,
        zorder=2,
    )
    shown: list[Any] = [points]
    try:
        interval = estimate.interval(level, simultaneous=simultaneous)
        low, high = interval.low[codes], interval.high[codes]
        # By itself: an estimate may be outside of its interval, which is cut to [0, 1].
        bars = axes.errorbar(
            positions,
            (low + high) / 2,
            yerr=(high - low) / 2,
            fmt="none",
            ecolor=_ESTIMATE,
            elinewidth=0.8 if line else 1.4,
            capsize=0 if line else 3,
            zorder=2,
        )
        shown = [(bars, points)]
        notes = [f"estimate, {interval_words(level, simultaneous)}"]
    except EstimatorError:
        notes = [f"estimate {estimate.method!r}: biased, no interval"]
    if known is not None:
        truth_drawn: Any
        if line:
            (truth_drawn,) = axes.plot(
                positions, known[codes], color=_TRUTH_LINE, linewidth=1.6, zorder=3
            )
        else:
            truth_drawn = axes.bar(positions, known[codes], width=0.75, color=_TRUTH, zorder=1)
        shown.insert(0, truth_drawn)
        notes.insert(0, "truth")
    axes.axhline(0.0, color="0.4", linewidth=0.8, zorder=0)
    if not line:
        names = [short(str(label)) for label in estimate.domain.decode(codes)]
        axes.set_xticks(positions, names)
        if sum(map(len, names)) > 60:
            upright = len(codes) > 20
            for name in axes.get_xticklabels():
                name.set(rotation=90 if upright else 40, ha="right", rotation_mode="anchor")
                name.set_verticalalignment("center" if upright else "top")
    some = "" if len(codes) == size else f", the {len(codes)} most frequent of {size:,}"
    axes.set_xlabel(f"answer{some}")
    axes.set_ylabel(f"share of all {'users' if _aggregated(estimate) else 'people'}")
    axes.set_title(_title(estimate), fontsize=10, loc="left", pad=22)
    # Above the axes, where its marker is not taken for a point.
    axes.legend(
        shown,
        notes,
        frameon=False,
        fontsize=9,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.0,
        ncols=2,
    )
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _drawn(estimate: Any) -> tuple[Integers, Floats | None]:
    """Choose the answers that are drawn, and where many stand that are numbers."""
    size = estimate.domain.size
    if size <= _MANY:
        return np.arange(size), None
    if size <= _MOST_NUMBERS:
        labels = estimate.domain.labels
        if all(type(label) in (int, float) for label in labels):
            numbers = np.array(labels, np.float64)
            codes = np.argsort(numbers, kind="stable")
            return codes, numbers[codes]
    return np.argsort(-estimate.frequencies, kind="stable")[:_NAMED], None


def _aggregated(estimate: Any) -> bool:
    """Whether an estimate is of a mechanism of distributed aggregation, which has users."""
    return hasattr(estimate.plan, "users")


def _title(estimate: Any) -> str:
    """Say how many took part, and what the estimate is."""
    projected = "" if estimate.postprocessing == "none" else f", {estimate.postprocessing}"
    if _aggregated(estimate):
        some = "" if estimate.received == estimate.nodes else f"{estimate.received:,} of "
        method = estimate.method.replace("_", " ")
        return f"{some}{estimate.nodes:,} users, {method}{projected}"
    method = "" if estimate.method == "hajek" else f", estimator {estimate.method}"
    privacy = _privacy(estimate.plan)
    return f"{answered(estimate.received, estimate.nodes)}, {privacy}{method}{projected}"


def _privacy(plan: Any) -> str:
    """Say which epsilon a plan has; of a plan without an oracle, which class it is of."""
    if (whole := getattr(plan, "plan", None)) is not None:
        return f"{', '.join(plan.names)} alone, {_privacy(whole)}"
    oracle = getattr(plan, "oracle", None)
    return type(plan).__name__ if oracle is None else f"ε = {oracle.epsilon:g}"
