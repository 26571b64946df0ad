"""Pictures of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import (
    ESTIMATE,
    TRUTH,
    answered,
    draw_intervals,
    finish,
    heighten,
    interval_words,
    name_answers,
    new_axes,
)
from turnout._types import Axes, Floats, Integers
from turnout.errors import EstimatorError

#: Of more answers that are no numbers so many are drawn, the most frequent; of numbers these many.
_MANY, _NAMED, _MOST_NUMBERS = 60, 40, 2000


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
    axes.axhline(0.0, color="0.4", linewidth=0.8, zorder=0)
    if known is not None and line:
        axes.plot(positions, known[codes], color=TRUTH, linewidth=1.6, label="truth", zorder=3)
    elif known is not None:
        axes.bar(positions, known[codes], width=0.75, color="#c9ced6", label="truth", zorder=1)
    try:
        interval = estimate.interval(level, simultaneous=simultaneous)
        limits = interval.low[codes], interval.high[codes]
        draw_intervals(axes, positions, limits, thin=line)
        note = f"estimate, {interval_words(level, simultaneous)}"
    except EstimatorError:
        note = f"estimate {estimate.method!r}: biased, no interval"
    axes.plot(
        positions,
        estimate.frequencies[codes],
        "." if line else "o",
        markersize=4 if line else 5,
        color=ESTIMATE,
        label=note,
        zorder=2,
    )
    if not line:
        higher = name_answers(axes, positions, estimate.domain.decode(codes))
        if ax is None:
            heighten(axes, higher)
    some = "" if len(codes) == size else f", the {len(codes)} most frequent of {size:,}"
    axes.set_xlabel(f"answer{some}")
    axes.set_ylabel(f"share of all {'users' if _aggregated(estimate) else 'people'}")
    finish(axes, _title(estimate), legend="above", first="truth")
    return axes


def _drawn(estimate: Any) -> tuple[Integers, Floats | None]:
    """Choose the answers to draw, and their positions if they are many numbers."""
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
    """Return whether an estimate is of a mechanism of distributed aggregation."""
    return hasattr(estimate.plan, "users")


def _title(estimate: Any) -> str:
    """Write the title: how many took part, and the method."""
    projected = "" if estimate.postprocessing == "none" else f", {estimate.postprocessing}"
    if _aggregated(estimate):
        some = "" if estimate.received == estimate.nodes else f"{estimate.received:,} of "
        method = estimate.method.replace("_", " ")
        return f"{some}{estimate.nodes:,} users, {method}{projected}"
    method = "" if estimate.method == "hajek" else f", estimator {estimate.method}"
    privacy = _privacy(estimate.plan)
    return f"{answered(estimate.received, estimate.nodes)}, {privacy}{method}{projected}"


def _privacy(plan: Any) -> str:
    """Write the epsilon of a plan; without an oracle, write the class of the plan."""
    if (whole := getattr(plan, "plan", None)) is not None:
        return f"{', '.join(plan.names)} alone, {_privacy(whole)}"
    oracle = getattr(plan, "oracle", None)
    return type(plan).__name__ if oracle is None else f"ε = {oracle.epsilon:g}"
