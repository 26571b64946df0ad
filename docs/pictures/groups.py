"""Draw the picture of ``topics/groups.rst``: ``python docs/pictures/groups.py``."""

from __future__ import annotations

import datetime
from pathlib import Path

import matplotlib as mpl
import numpy as np

import turnout as tn

mpl.use("Agg")

FOLDER = Path(__file__).parent


def grouped() -> tn.GroupedTally:
    """Three weeks of a simulated collection, with a failure of two days."""
    oracle = tn.OptimizedUnaryEncoding(
        1.0, tn.Domain(["never", "once", "often", "prefer not to say"])
    )
    start, tallies = datetime.date(2026, 3, 2), {}
    for day in range(21):
        if day in (9, 10):
            continue
        nodes = 150_000 if day % 7 > 4 else 250_000
        shares = np.array([0.5 - 0.01 * day, 0.3, 0.15 + 0.01 * day, 0.05])
        counts = np.rint(shares * nodes).astype(np.int64)
        tallies[start + datetime.timedelta(day)] = oracle.simulate(
            counts, participation=tn.Bernoulli(0.2), seed=day
        )
    return tn.GroupedTally(["day"], tallies)


if __name__ == "__main__":
    figure = grouped().estimate().series().plot(simultaneous="sidak")
    figure.savefig(FOLDER / "groups_series.png", dpi=110)
