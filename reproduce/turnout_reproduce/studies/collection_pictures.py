"""Pictures of studies of collections."""

from __future__ import annotations

from typing import Any

from turnout._drawing import new_axes, plain_logarithmic
from turnout._extras import require
from turnout._types import Axes, Floats

_ESTIMATE = "#1f6f8b"


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
