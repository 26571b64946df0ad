"""Draw the pictures of the pages in ``concepts``: ``python docs/pictures/concepts.py``.

Names of pictures (``oracles``) draw those alone.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import turnout as tn

mpl.use("Agg")

from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
BLUE, RED, GREY, GREEN = "#1f6f8b", "#c8553d", "0.45", "#6a994e"


def save(figure: Any, name: str) -> None:
    """Write a picture beside this file."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / f"concepts_{name}.png", dpi=110)
    plt.close(figure)


def participation() -> Any:
    """Draw epsilon against the rate, where participation is seen and where it is hidden."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    rates = np.geomspace(0.01, 1.0, 25)
    left.plot(rates, np.ones_like(rates), color=RED, label="seen")
    left.plot(rates, np.log1p(rates * math.expm1(1.0)), color=BLUE, label="hidden")
    left.set_title("one report", fontsize=10, loc="left")
    left.set_ylabel("epsilon")
    oracle, nodes = tn.DirectEncoding(3.0, 2), 100_000
    shuffled = {"seen": [], "hidden": []}
    for rate in rates:
        seen = tn.accounting.Shuffled(oracle, round(rate * nodes))
        hidden = tn.accounting.Shuffled(oracle, nodes, tn.Bernoulli(rate))
        shuffled["seen"].append(seen.epsilon(1e-6))
        shuffled["hidden"].append(hidden.epsilon(1e-6))
    for word, color in (("seen", RED), ("hidden", BLUE)):
        right.plot(rates, shuffled[word], color=color, label=word)
    right.set_title("shuffled reports of 100,000 nodes", fontsize=10, loc="left")
    right.set_ylabel("epsilon at delta = 1e-6")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("participation rate")
        axes.legend(title="participation is", frameon=False, fontsize=9, title_fontsize=9)
    return figure


def oracles() -> Any:
    """Draw noise and its inverse for two answers, and the need of oracles for reports."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    oracle = tn.DirectEncoding(math.log(3), tn.Domain(["no", "yes"]))
    tally = oracle.collect(["yes"] * 600 + ["no"] * 1_400, seed=3)
    estimate = tally.estimate()
    interval = estimate.interval(0.95)
    columns = (
        ("true share", np.array([0.7, 0.3]), GREY),
        ("share of the reports", tally.support / tally.received, RED),
        ("estimate", estimate.frequencies, BLUE),
    )
    for position, (label, shares, color) in enumerate(columns):
        places = np.arange(2) + 0.27 * (position - 1)
        errors = None
        if label == "estimate":
            errors = np.array([shares - interval.low, interval.high - shares])
        left.bar(places, shares, 0.25, color=color, label=label, yerr=errors, capsize=3)
    left.set_xticks([0, 1], ["no", "yes"])
    left.set_xlabel("answer")
    left.set_ylabel("share of 2,000 people")
    left.set_ylim(0, 1.0)
    left.legend(frameon=False, fontsize=9)
    sizes = np.unique(np.geomspace(2, 1000, 30).round().astype(int))
    kinds = (
        (tn.DirectEncoding, "direct encoding", "-"),
        (tn.HadamardResponse, "Hadamard response", ":"),
        (tn.OptimizedUnaryEncoding, "optimized unary encoding", "--"),
        (tn.ProjectiveGeometryResponse, "projective geometry response", "-."),
        (tn.SubsetSelection, "subset selection", "-"),
    )
    colors = (RED, GREY, GREEN, "#8e6c8a", BLUE)
    for (kind, label, style), color in zip(kinds, colors, strict=True):
        need = []
        for size in sizes:
            p, q = kind(1.0, int(size)).support_probabilities
            need.append(q * (1 - q) / (p - q) ** 2 / 0.01**2)
        right.plot(sizes, need, style, color=color, label=label)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("number of answers")
    right.set_ylabel("reports for a standard error of 0.01")
    right.legend(frameon=False, fontsize=8.5)
    return figure


def estimators() -> Any:
    """Draw estimates of many collections, with the truth."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
    common: dict[str, list[float]] = {"g": [], "c_hat": [], "hajek": []}
    for seed in range(2000):
        tally = oracle.simulate([8_000, 12_000], participation=tn.Bernoulli(0.3), seed=seed)
        for method, values in common.items():
            values.append(float(tally.estimate(method).frequencies[1]))
    country = np.repeat([False, True], [14_000, 6_000])
    codes = np.repeat(np.array([0, 1, 0, 1]), [12_600, 1_400, 1_800, 4_200])
    binary = tn.DirectEncoding(2.0, tn.Domain.from_integers(2))
    rates = tn.Personalized(np.where(country, 0.2, 0.6))
    personal: dict[str, list[float]] = {"T": [], "horvitz_thompson": [], "hajek": []}
    for seed in range(2000):
        tally = binary.collect(codes, participation=rates, seed=seed)
        for method, values in personal.items():
            values.append(float(tally.estimate(method).frequencies[1]))
    colors = {"g": RED, "T": RED, "c_hat": GREEN, "horvitz_thompson": GREEN, "hajek": BLUE}
    panels = ((left, common, 0.6, "one rate of 0.3"), (right, personal, 0.28, "rates 0.6 and 0.2"))
    for axes, found, truth, title in panels:
        bins = np.linspace(min(map(min, found.values())), max(map(max, found.values())), 45)
        for method, values in found.items():
            axes.hist(values, bins, histtype="stepfilled", color=colors[method], alpha=0.25)
            axes.hist(values, bins, histtype="step", color=colors[method], label=method)
        axes.axvline(truth, color="black", linewidth=1.0, linestyle="--", label="truth")
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("estimated share of yes")
        axes.set_ylabel("collections, of 2,000")
        axes.legend(frameon=False, fontsize=9)
    return figure


def largest_local_epsilon(nodes: int) -> float:
    """Find the largest local epsilon whose shuffled reports have epsilon 1 at delta 1e-6."""
    low, high = 1.0, 12.0
    for _ in range(20):
        middle = (low + high) / 2
        shuffled = tn.accounting.Shuffled(tn.DirectEncoding(middle, 3), nodes)
        low, high = (middle, high) if shuffled.epsilon(1e-6) <= 1.0 else (low, middle)
    return low


def threat_models() -> Any:
    """Draw the error of each model against the number of people."""
    figure, axes = plt.subplots(figsize=(6.2, 4.0), layout="constrained")
    sizes = np.geomspace(300, 1_000_000, 12).round().astype(int)
    errors: dict[str, list[float]] = {"local": [], "shuffled": [], "secret sharing": []}
    for nodes in map(int, sizes):
        counts = [nodes - nodes // 4 - nodes // 20, nodes // 4, nodes // 20]
        for word, epsilon in (("local", 1.0), ("shuffled", largest_local_epsilon(nodes))):
            variance = tn.estimator_variance(
                tn.DirectEncoding(epsilon, 3), tn.Everyone(), true_counts=counts
            )
            errors[word].append(math.sqrt(variance[1]) / nodes)
        shared = tn.distributed.NoisyAggregation(3, users=nodes, epsilon=1.0)
        errors["secret sharing"].append(math.sqrt(shared.law().variance) / nodes)
    labels = ("local: nobody is trusted", "shuffled", "secret sharing, or a trusted server")
    colors = (RED, GREEN, BLUE)
    for values, label, color in zip(errors.values(), labels, colors, strict=True):
        axes.plot(sizes, values, "o-", markersize=3, color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=0.3)
    axes.set_xlabel("people")
    axes.set_ylabel("standard error of a share of 25 %")
    axes.set_title("published with epsilon 1", fontsize=10, loc="left")
    axes.legend(frameon=False, fontsize=9)
    return figure


def epsilon() -> Any:
    """Draw the belief after a report against the belief before."""
    figure, axes = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
    prior = np.linspace(0.0, 1.0, 201)
    shades = plt.get_cmap("viridis")
    for position, value in enumerate((4.0, 2.0, 1.0, 0.5)):
        factor = math.exp(value)
        upper = factor * prior / (1 - prior + factor * prior)
        lower = prior / (factor * (1 - prior) + prior)
        color = shades(0.85 - 0.25 * position)
        axes.fill_between(prior, lower, upper, color=color, alpha=0.18, linewidth=0)
        axes.plot(prior, upper, color=color, label=f"ε = {value:g}")
        axes.plot(prior, lower, color=color)
    axes.plot(prior, prior, color="black", linewidth=1.0, linestyle="--", label="nothing learnt")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("belief in the answer before the report")
    axes.set_ylabel("belief after the report")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    return figure


PICTURES = {
    "epsilon": epsilon,
    "participation": participation,
    "oracles": oracles,
    "estimators": estimators,
    "threat_models": threat_models,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        save(PICTURES[name](), name)
