"""Draw the pictures of ``topics/planning.rst``: ``python docs/pictures/planning.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from turnout.frequency.choice import registered
from turnout.planning.choice import choose_oracle
from turnout.planning.participation import optimal_participation
from turnout.planning.planner import plan
from turnout_reproduce.studies import compare_shuffled

mpl.use("Agg")

from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent


def save(figure: Any, name: str) -> None:
    """Write a picture beside this file."""
    figure.savefig(FOLDER / f"planning_{name}.png", dpi=110)
    plt.close(figure)


def participation() -> Any:
    """Draw probabilities against the cost, and the gain against the budget."""
    generator = np.random.default_rng(1)
    epsilons = generator.choice([0.5, 1.0, 2.0, 4.0], 20_000)
    costs = generator.lognormal(0.0, 1.0, 20_000)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    found = optimal_participation(epsilons, costs, 0.3 * costs.sum(), domain_size=20)
    colours = plt.get_cmap("viridis")
    for position, epsilon in enumerate((0.5, 1.0, 2.0, 4.0)):
        here = epsilons == epsilon
        order = np.argsort(costs[here])
        left.plot(
            costs[here][order],
            found.probabilities[here][order],
            color=colours(0.1 + 0.25 * position),
            label=f"ε = {epsilon:g}",
        )
    left.axhline(found.uniform_rate, color="0.5", linewidth=1.0, linestyle=":", label="common rate")
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("cost of a node's report")
    left.set_ylabel("participation probability")
    left.set_title("30 % of the cost of all reports", fontsize=10, loc="left")
    left.legend(frameon=False, fontsize=8)
    shares = np.geomspace(0.01, 1.0, 25)
    gains = [
        optimal_participation(epsilons, costs, share * costs.sum(), domain_size=20).gain
        for share in shares
    ]
    right.plot(shares, gains, color="#1f6f8b")
    right.set_xscale("log")
    right.set_ylim(bottom=1.0)
    right.set_xlabel("budget, as a share of the cost of all reports")
    right.set_ylabel("variance at a common rate / at the best")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Draw all of them."""
    save(choose_oracle(1.0, 1000, report_bits=64).plot().figure, "choice")
    proposal = plan(epsilon=1.0, domain_size=50, nodes=1_000_000, value=0.005)
    save(proposal.tradeoff().plot().figure, "tradeoff")
    save(participation(), "participation")
    counts = np.round(100_000 * 0.8 ** np.arange(20) / 5).astype(np.int64)
    study = compare_shuffled(counts, oracles=registered().values())
    print(study.table())  # noqa: T201
    save(study.plot()[0].figure, "shuffled")


if __name__ == "__main__":
    main()
