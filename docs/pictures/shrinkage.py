"""Compare shrinking with projections for ``topics/shrinkage.rst``, and draw its picture.

``python docs/pictures/shrinkage.py`` writes ``shrinkage.png``; with ``--tables`` it prints those of
the page, too: the root mean square error of ``shrink`` over that of the best of the three
projections.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

import turnout as tn

mpl.use("Agg")

FOLDER = Path(__file__).parent
PROJECTIONS = ("simplex", "norm_sub", "clip_normalize")
NODES = 50_000
SHY, OPEN = 0.15, 0.45
#: People in each answer to "native country" in the Adult data (UCI).
NATIVE_COUNTRY = (
    29170, 643, 583, 198, 137, 121, 114, 106, 100, 95, 90, 81, 80, 75, 73, 70, 67, 64, 62, 60, 59,
    51, 44, 43, 37, 34, 31, 29, 29, 28, 24, 20, 19, 19, 18, 18, 16, 14, 13, 13, 12, 1,
)  # fmt: skip

Floats = npt.NDArray[np.float64]


def populations(k: int) -> dict[str, Floats]:
    """Give frequencies of nine shapes, or of the tenth for its 42 answers."""
    ranks = np.arange(1.0, k + 1.0)
    generator = np.random.default_rng(k)
    shapes = {
        "Zipf": 1 / ranks,
        "uniform": np.ones(k),
        "geometric": 0.9**ranks,
        "a tenth of the answers": (ranks <= max(1, k // 10)).astype(np.float64),
        "half on one answer": np.r_[1.0, np.full(k - 1, 1 / (k - 1))],
        "bell": np.exp(-0.5 * ((ranks - (k + 1) / 2) / (k / 6)) ** 2),
        "Dirichlet(.5)": generator.gamma(0.5, size=k),
        "Dirichlet(1)": generator.gamma(1.0, size=k),
        "two levels": np.where(ranks <= k // 2, 3.0, 1.0),
    }
    if k == len(NATIVE_COUNTRY):
        shapes = {"native country in Adult": np.array(NATIVE_COUNTRY, np.float64)}
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def held_out(k: int) -> dict[str, Floats]:
    """Give frequencies of further shapes, not those that numbers were chosen by."""
    ranks, generator = np.arange(1.0, k + 1.0), np.random.default_rng(1000 + k)
    low, high = 0.05 * k + 0.5, 0.1 * k + 0.5
    two = [np.exp(-0.5 * ((ranks - at * k) / w) ** 2) for at, w in ((0.25, low), (0.75, high))]
    shapes = {
        "two bells": two[0] + 0.5 * two[1],
        "Pareto(1.2)": generator.pareto(1.2, k) + 1,
        "Pareto(2)": generator.pareto(2.0, k) + 1,
        "lognormal(1)": generator.lognormal(0.0, 1.0, k),
        "lognormal(2)": generator.lognormal(0.0, 2.0, k),
        "mixture of Poisson": generator.poisson(np.where(generator.random(k) < 0.2, 20, 2)) + 0.5,
        "three levels": np.where(ranks <= k // 10 + 1, 10.0, np.where(ranks <= k // 2, 3.0, 1.0)),
        "3 % have nearly all": (ranks <= max(1, k * 3 // 100)) + 1e-3,
        "ramp": ranks / k,
        "Dirichlet(5)": generator.gamma(5.0, size=k),
        "Dirichlet(.2)": generator.gamma(0.2, size=k) + 1e-9,
        "half have nothing": np.where(ranks <= k // 2, generator.exponential(size=k), 0.0) + 1e-9,
        "one of a fifth": np.r_[0.25 * (ranks**-0.5).sum(), ranks[1:] ** -0.5],
        "three stand out": np.where(ranks <= 3, 6.0, 1.0),
    }
    return {name: shape / shape.sum() for name, shape in shapes.items()}


def estimates(
    counts: npt.NDArray[np.int64], epsilon: float, who: str, seed: int
) -> tn.FrequencyEstimate:
    """Run one collection by subset selection, which with small domains is direct encoding."""
    oracle = tn.SubsetSelection(epsilon, counts.size)
    if who == "by answer":
        codes = np.repeat(np.arange(counts.size), counts)
        rates = np.where(codes < max(1, counts.size // 10), SHY, OPEN)
        taking_part = tn.Personalized(rates)
        return oracle.collect(codes, participation=taking_part, seed=seed).estimate()
    taking_part = tn.Everyone() if who == "everybody" else tn.Bernoulli(0.3)
    return oracle.simulate(counts, participation=taking_part, seed=seed).estimate()


def ratios(
    k: int,
    epsilon: float,
    who: str,
    repeats: int,
    *,
    nodes: int = NODES,
    shapes: Callable[[int], dict[str, Floats]] = populations,
) -> dict[str, float]:
    """Divide the error of shrinking by that of the best projection, in each population."""
    result = {}
    for name, shares in shapes(k).items():
        counts = np.floor(shares * nodes).astype(np.int64)
        truth = counts / counts.sum()
        squares = np.zeros(4)
        for repeat in range(repeats):
            estimate = estimates(counts, epsilon, who, 1 + repeat)
            made = [estimate.shrink(), *(estimate.project(each) for each in PROJECTIONS)]
            squares += [each.distance(truth, "rmse") ** 2 for each in made]
        # Where one answer has all, both can be right without any error.
        result[name] = float(np.sqrt(squares[0] / squares[1:].min())) if squares[0] else 0.0
    return result


def mean_of(found: Mapping[Any, float]) -> float:
    """Compute the geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(list(found.values()), 1e-2)))))


def table(scale: float) -> None:
    """Print the worst ratio and the geometric mean for each setting."""
    for who in ("everybody", "30 %", "by answer"):
        for k in (3, 5, 10, 30, 42, 100, 300, 1000, 2000):
            row = []
            for epsilon in (0.5, 1.0, 3.0):
                repeats = max(
                    3, int(scale * {3: 200, 5: 150, 10: 100, 30: 40, 42: 40, 100: 24}.get(k, 12))
                )
                found = ratios(k, epsilon, who, repeats if who != "by answer" else repeats // 2 + 1)
                worst = max(found, key=lambda name: found[name])
                row.append(f"{found[worst]:.2f} ({worst}) {mean_of(found):.2f}")
            sys.stdout.write(f"{who} {k} {' | '.join(row)}\n")


def held_out_table(repeats: int) -> None:
    """Print the largest ratios in further populations, and how many are above 1.05."""
    for nodes in (2_000, NODES):
        for who in ("everybody", "by answer"):
            found = {
                (k, epsilon, name): ratio
                for k in (3, 10, 30, 100, 300)
                for epsilon in (0.5, 1.0, 3.0)
                for name, ratio in ratios(
                    k, epsilon, who, repeats, nodes=nodes, shapes=held_out
                ).items()
            }
            worst = sorted(found, key=lambda place: -found[place])[:5]
            above = sum(ratio > 1.05 for ratio in found.values())
            shown = ", ".join(f"{place}: {found[place]:.2f}" for place in worst)
            sys.stdout.write(
                f"{nodes} {who}: {above} of {len(found)} above 1.05, mean {mean_of(found):.2f}; "
                f"{shown}\n"
            )


def coverage(repeats: int) -> None:
    """Print the share of answers that the intervals hold, and their length."""
    for name, shares in populations(100).items():
        counts = np.floor(shares * NODES).astype(np.int64)
        truth, held, width, usual = counts / counts.sum(), [], [], []
        for repeat in range(repeats):
            estimate = estimates(counts, 1.0, "everybody", 1 + repeat)
            interval = estimate.interval(method="empirical_bayes")
            held.append(interval.contains(truth).mean())
            width.append(interval.width.mean())
            usual.append(estimate.interval().width.mean())
        share = np.mean(width) / np.mean(usual)
        sys.stdout.write(f"{name:24s} {np.mean(held):.3f} {share:.2f}\n")


def draw() -> None:
    """Draw one collection of two levels, projected and shrunk."""
    from matplotlib import pyplot  # noqa: PLC0415

    figure, panels = pyplot.subplots(1, 2, figsize=(9.5, 3.6), sharey=True, layout="constrained")
    for axes, name in zip(panels, ("two levels", "Zipf"), strict=True):
        shares = populations(100)[name]
        counts = np.floor(shares * NODES).astype(np.int64)
        estimate = estimates(counts, 1.0, "everybody", 7)
        projected, shrunken = estimate.project("simplex"), estimate.shrink()
        truth, codes = counts / counts.sum(), np.arange(100)
        axes.vlines(codes, projected.frequencies, shrunken.frequencies, color="0.85", linewidth=0.8)
        for made, colour, label in (
            (projected, "#c9822b", "projected onto the simplex"),
            (shrunken, "#1f6f8b", "shrunk"),
        ):
            error = 100 * made.distance(truth, "rmse")
            shown = f"{label}: error {error:.2f} points"
            axes.plot(codes, made.frequencies, ".", color=colour, markersize=5, label=shown)
        axes.plot(codes, truth, color="#d1495b", linewidth=1.3, label="truth")
        axes.set_title(f"{name}: 100 answers, 50,000 nodes, ε = 1", fontsize=10, loc="left")
        axes.set_xlabel("code of the answer")
        axes.set_ylim(-0.001, 0.05)
        axes.legend(frameon=False, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of all nodes (cut at 5 %)")
    figure.savefig(FOLDER / "shrinkage.png", dpi=100)


if __name__ == "__main__":
    draw()
    if "--tables" in sys.argv:
        coverage(20)
        table(float(sys.argv[-1]) if sys.argv[-1] != "--tables" else 1.0)
        held_out_table(20)
