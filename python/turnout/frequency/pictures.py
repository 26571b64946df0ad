"""Pictures of estimates and of studies."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import answered, interval_words, new_axes, plain_logarithmic, short
from turnout._extras import require
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


def plot_comparison(comparison: Any, ax: Any) -> Axes:
    """Draw a study: see :meth:`Comparison.plot`."""
    axes = new_axes(ax)
    pyplot = require("matplotlib.pyplot", "plot")
    colours = pyplot.get_cmap("viridis")
    epsilons = sorted({record.epsilon for record in comparison.records})
    for position, epsilon in enumerate(epsilons):
        rows = sorted(
            (record for record in comparison.records if record.epsilon == epsilon),
            key=lambda record: record.rate,
        )
        axes.errorbar(
            [row.rate for row in rows],
            [row.total_variation for row in rows],
            yerr=[2 * row.total_variation_error for row in rows],
            marker="o",
            markersize=4,
            capsize=3,
            color=colours(0.1 + 0.75 * position / max(1, len(epsilons) - 1)),
            label=f"ε = {epsilon:g}",
        )
    axes.set_xlabel("participation rate")
    axes.set_ylabel("total variation distance to the truth")
    axes.set_ylim(bottom=0.0)

    nodes: int = comparison.nodes

    def cost(rate: Floats) -> Floats:
        return rate * nodes

    def rate(cost: Floats) -> Floats:
        return cost / nodes

    reports = axes.secondary_xaxis("top", functions=(cost, rate))  # type: ignore[arg-type]
    reports.set_xlabel("cost: expected reports")
    axes.legend(frameon=False, title=f"{comparison.method}, {comparison.repeats} repeats ± 2 s.e.")
    axes.spines["right"].set_visible(False)
    return axes


def plot_shuffled(comparison: Any, ax: Any) -> Axes:
    """Draw a comparison of shuffled reports: see :meth:`ShuffledComparison.plot`."""
    names = comparison.oracles
    axes = new_axes(ax, width=7.0 if len(names) == 1 else 9.0)
    records = [row for row in comparison.records if row.central_epsilon > 0.0]
    curator = sorted((row.central_epsilon, row.gaussian_rmse) for row in records)
    if len(names) == 1:
        _draw_shuffled(axes, records)
        central = [row.central_epsilon for row in records]
        local = [row.local_rmse for row in records]
        label = "local reports, no shuffler"
        axes.plot(central, local, marker="s", markersize=4, color="#c9822b", label=label)
    else:
        colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
        for position, name in enumerate(names):
            here = [row for row in records if row.oracle == name]
            axes.plot(
                [row.central_epsilon for row in here],
                [row.shuffled_rmse for row in here],
                marker="osDv^P"[position % 6],
                linestyle=("-", "--", "-.", ":")[position % 4],
                linewidth=1.2,
                markersize=4,
                color=colours(0.05 + 0.85 * position / (len(names) - 1)),
                label=f"{name.replace('_', ' ')}, shuffled",
            )
    axes.plot(
        [central for central, _ in curator],
        [error for _, error in curator],
        marker="^" if len(names) == 1 else None,
        markersize=4,
        color="0.35",
        label="trusted curator, Gaussian noise",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    marks = " (above the points: local ε)" if len(names) == 1 else ""
    axes.set_xlabel(f"central ε at δ = {comparison.delta:g}{marks}")
    axes.set_ylabel("rmse of an answer's frequency")
    axes.set_title(
        f"{comparison.nodes:,} nodes, {comparison.domain_size} answers, equal (ε, δ)", fontsize=10
    )
    if len(names) == 1:
        axes.legend(frameon=False, fontsize=9)
    else:
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_oracles(comparison: Any, ax: Any) -> Axes:
    """Draw oracles side by side: see :meth:`OracleComparison.plot`."""
    least = min(row.epsilon for row in comparison.records)
    first = [row for row in comparison.records if row.epsilon == least]
    others = {row.oracle: row for row in comparison.records}
    # The best of the smallest epsilon on top; below, those that only others have.
    names = [row.oracle for row in sorted(first, key=lambda row: row.rmse_predicted)]
    names += [name for name in others if name not in names]
    axes = new_axes(ax, width=8.0, height=1.6 + 0.34 * len(names))
    colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
    epsilons = sorted({row.epsilon for row in comparison.records})
    for place, epsilon in enumerate(epsilons):
        rows = [row for row in comparison.records if row.epsilon == epsilon]
        colour = colours(0.1 + 0.75 * place / max(1, len(epsilons) - 1))
        heights = [names.index(row.oracle) for row in rows]
        axes.errorbar(
            [row.rmse for row in rows],
            heights,
            xerr=[2 * row.rmse_error for row in rows],
            fmt="o",
            markersize=5,
            capsize=2,
            color=colour,
            label=f"ε = {epsilon:g}",
        )
        predicted = [row.rmse_predicted for row in rows]
        axes.plot(predicted, heights, "|", markersize=11, color=colour, zorder=1)
    sizes = {name: _sizes(comparison, name) for name in names}
    axes.set_yticks(range(len(names)), [f"{name}\n{sizes[name]}" for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    plain_logarithmic(axes.xaxis)
    axes.set_xlabel("rmse of an answer's frequency (± 2 s.e.; bars: what the variance predicts)")
    axes.set_title(
        f"{comparison.nodes:,} nodes, {comparison.domain_size} answers, participation "
        f"{comparison.rate:g}, {comparison.method}",
        fontsize=10,
    )
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _draw_shuffled(axes: Axes, records: list[Any]) -> None:
    """Draw the errors of one oracle's shuffled reports, each with its local epsilon."""
    axes.plot(
        [row.central_epsilon for row in records],
        [row.shuffled_rmse for row in records],
        marker="o",
        markersize=4,
        color=_ESTIMATE,
        label="local reports, shuffled",
    )
    for row in records:
        axes.annotate(
            f"{row.local_epsilon:g}",
            (row.central_epsilon, row.shuffled_rmse),
            textcoords="offset points",
            xytext=(0, 6),
            ha="center",
            fontsize=7,
            color=_ESTIMATE,
        )


def _sizes(comparison: Any, name: str) -> str:
    """Say how large the reports of an oracle are: of some, that depends on epsilon."""
    sizes = [row.report_bits for row in comparison.records if row.oracle == name]
    least, most = min(sizes), max(sizes)
    return f"{most:,} bits" if least == most else f"{least:,} to {most:,} bits"
