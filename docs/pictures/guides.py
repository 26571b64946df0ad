"""Draw the pictures of ``start.rst`` and of the guides: ``python docs/pictures/guides.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from statsmodels.datasets import fair

import turnout as tn

mpl.use("Agg")

from matplotlib import pyplot as plt

FOLDER = Path(__file__).parent
RATINGS = ["very poor", "poor", "fair", "good", "very good"]


def save(axes: Any, name: str) -> None:
    """Write a picture beside this file."""
    axes.figure.savefig(FOLDER / f"{name}.png", dpi=110)
    plt.close(axes.figure)


def ratings() -> Any:
    """Draw the first collection of ``start.rst``: its estimate beside the truth."""
    answers = [RATINGS[int(code) - 1] for code in fair.load_pandas().data["rate_marriage"]]
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(RATINGS))
    truth = [answers.count(label) / len(answers) for label in RATINGS]
    return oracle.tally(oracle.randomize(answers, seed=2)).estimate().plot(truth=truth)


def main() -> None:
    """Draw all of them."""
    save(ratings(), "start_ratings")


if __name__ == "__main__":
    main()
