"""Draw the picture of ``topics/distributions``, and measure its table.

``python docs/pictures/distributions.py`` draws; with ``table`` it measures, some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import turnout as tn

mpl.use("Agg")

from matplotlib import pyplot as plt

from turnout.distribution import DistributionTally

FOLDER = Path(__file__).parent
REPEATS = 8
POPULATIONS = (
    "bell",
    "two bells",
    "falling",
    "uniform",
    "steps",
    "round numbers",
    "one value",
)


def population(name: str, bins: int) -> Any:
    """Shares of the bins."""
    x = (np.arange(bins) + 0.5) / bins
    if name == "bell":
        shares = np.exp(-(((x - 0.4) / 0.12) ** 2) / 2)
    elif name == "two bells":
        shares = np.exp(-(((x - 0.2) / 0.05) ** 2) / 2) + np.exp(-(((x - 0.8) / 0.1) ** 2) / 2)
    elif name == "falling":
        shares = np.exp(-5 * x)
    elif name == "uniform":
        shares = np.ones(bins)
    elif name == "steps":
        shares = np.where((x > 0.3) & (x < 0.5), 1.0, 0.05)
    elif name == "round numbers":
        shares = np.exp(-(((x - 0.4) / 0.2) ** 2) / 2)
        shares *= np.where(np.arange(bins) % 8 == 0, 1.0, 0.05)
    else:
        shares = 1.0 * (np.arange(bins) == bins // 3)
    return shares / shares.sum()


def errors(epsilon: float, bins: int, nodes: int, name: str, seed: int) -> dict[str, float]:
    """Mean absolute error of the cumulative shares, of each way to collect."""
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(nodes, population(name, bins))
    truth = np.cumsum(counts) / nodes
    wave = tn.SquareWave(epsilon, (0, 1), bins)
    matrix = wave.law.matrix()
    cells = sum(
        generator.multinomial(count, matrix[:, place]) for place, count in enumerate(counts)
    )
    tally = DistributionTally(tn.Plan(wave, tn.Everyone()), cells, nodes, nodes)
    found = {method: tally.estimate(method).cumulative for method in ("ems", "ml")}
    collection = tn.HierarchicalCollection(epsilon, bins)
    found["tree"] = collection.simulate(counts, seed=seed).estimate().monotone
    oracle = tn.choose_oracle(epsilon, bins).oracle
    shares = oracle.simulate(counts, seed=seed).estimate().shrink().frequencies
    found["oracle"] = np.cumsum(shares)
    return {name: float(np.abs(made - truth).mean()) for name, made in found.items()}


def table() -> None:
    """Print the table: errors in percentage points."""
    for bins, nodes in ((64, 10_000), (64, 1_000_000), (512, 10_000)):
        for epsilon in (0.5, 1.0, 3.0):
            for name in POPULATIONS:
                runs = [errors(epsilon, bins, nodes, name, seed) for seed in range(REPEATS)]
                means = {way: np.mean([run[way] for run in runs]) for way in runs[0]}
                shown = "  ".join(f"{way} {100 * error:.2f}" for way, error in means.items())
                sys.stdout.write(f"{bins:4} {nodes:8} {epsilon:3} {name:14} {shown}\n")


def picture() -> None:
    """Draw both estimates of a smooth and of a spiky population."""
    figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.3), layout="constrained")
    wave = tn.SquareWave(1.0, (0, 100), 64)
    for place, (name, ax) in enumerate(zip(("two bells", "round numbers"), axes, strict=True)):
        shares = population(name, 64)
        cells = np.random.default_rng(place).multinomial(100_000, wave.law.matrix() @ shares)
        tally = DistributionTally(tn.Plan(wave, tn.Everyone()), cells, 100_000, 100_000)
        ax.stairs(shares, wave.domain.edges, fill=True, color="0.85", label="truth")
        for method, colour in (("ems", "#1f6f8b"), ("ml", "#c8553d")):
            ax.stairs(
                tally.estimate(method).frequencies,
                wave.domain.edges,
                color=colour,
                linewidth=1.3,
                label=method,
            )
        ax.set_title(f"{name}: 100,000 reports, ε = 1", fontsize=10, loc="left")
        ax.set_xlabel("number")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of a bin")
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(FOLDER / "distributions.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    table() if sys.argv[1:] == ["table"] else picture()
