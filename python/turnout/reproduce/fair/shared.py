"""What the experiments of the fair paper have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Integers
from turnout.distributed import AggregationMechanism
from turnout.reproduce.outcome import Finding, Scale

SOURCE: Final = (
    "Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency "
    "Estimation"
)

#: What the paper calls MSE and defines as a mean over items; its numbers are sums over items.
ERROR: Final = "squared error, summed over items"

#: How often the paper runs each algorithm.
REPEATS: Final = 20

#: Mean, standard error and exact expectation.
Measured = tuple[float, float, float]


def repeats_of(scale: Scale) -> int:
    """Give the paper's number of repeats, or fifty times as many, for small standard errors."""
    return 50 * REPEATS if scale.full else REPEATS


def rate_of(epsilon: float) -> float:
    """Compute the paper's sampling probability ``1 - exp(-epsilon)``."""
    return -math.expm1(-epsilon)


def measure(
    mechanism: AggregationMechanism, counts: Integers, scale: Scale, path: tuple[int, ...]
) -> Measured:
    """Run a mechanism some times on users of whom ``counts`` hold each item.

    Returns
    -------
    tuple of float
        The mean of the squared distances to the true frequencies, its standard error, and the
        exact expectation.
    """
    truth = counts / counts.sum()
    codes = np.repeat(np.arange(counts.size), counts)
    distances = np.array(
        [
            ((mechanism.run(codes, derived(scale.seed, 1, *path, run)).estimate.frequencies - truth)
             ** 2).sum()
            for run in track(range(repeats_of(scale)), mechanism.name, scale.progress)
        ]
    )  # fmt: skip
    error = float(distances.std(ddof=1) / math.sqrt(distances.size))
    return float(distances.mean()), error, float(mechanism.variances(truth).sum())


def lemma(name: str, found: Sequence[Measured], scale: Scale) -> Finding:
    """Compare all means with the exact expectations that the paper has, too."""
    from scipy import special  # noqa: PLC0415

    off = max(abs(mean - exact) / error for mean, error, exact in found)
    least = -float(special.stdtrit(repeats_of(scale) - 1, 1e-6 / (2 * len(found))))
    return Finding.claimed(
        f"{name}: largest distance of a mean of repeats from it, in standard errors",
        off,
        off < least,
        why=f"beyond {least:.2g}, which means of correct runs exceed once in 10^6",
    )


def legend_below(figure: Figure, columns: int = 4) -> Figure:
    """Put one legend for all parts of a picture below its title."""
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="upper left",
        bbox_to_anchor=(0.005, 0.94),
        ncols=columns,
        frameon=False,
        fontsize="small",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 0.92))
    return figure
