"""Draw the pictures of the pages in ``concepts``: ``python docs/pictures/concepts.py``."""

from __future__ import annotations

import math
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


PICTURES = {"participation": participation}


if __name__ == "__main__":
    for name, draw in PICTURES.items():
        save(draw(), name)
