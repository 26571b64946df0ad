"""One realistic record of every group of people: age and weekly hours in the Adult data.

Each group (people of one occupation and education) plays a person with records of its own, and
gives a single private record away. No server sees any other.

    python examples/samplers/adult.py --epsilon 4 --plot adult.png
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import os
import zlib
from pathlib import Path

import numpy as np

import turnout as tn

COLUMNS = {"education": 3, "occupation": 6, "age": 0, "hours": 12}

#: Public facts: the youngest and oldest age asked for, and the hours of a week that are counted.
LOW, HIGH = [17.0, 1.0], [91.0, 100.0]


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Give (age, hours) of every row, and the group that it belongs to."""
    with gzip.open(path, "rt") as lines:
        rows = [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15]
    rows = [row for row in rows if row[COLUMNS["occupation"]] != "?"]
    numbers = [[float(row[COLUMNS[name]]) for name in ("age", "hours")] for row in rows]
    groups = [f"{row[COLUMNS['occupation']]}, {row[COLUMNS['education']]}" for row in rows]
    return np.array(numbers), np.array(groups)


def main() -> None:
    """Draw, compare, and make a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = Path(os.environ.get("TURNOUT_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=folder / "adult.data.gz")
    parser.add_argument("--epsilon", type=float, default=4.0, help="privacy of a group's record")
    parser.add_argument("--plot", type=Path, help="write a picture to this file")
    parser.add_argument("--seed", type=int, help="for tests only")
    options = parser.parse_args()
    if options.plot and importlib.util.find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install 'turnout[plot]'")
    if not options.data.exists():
        parser.error(f"{options.data} is not there: get adult.data.gz from the UCI repository")
    try:
        records, groups = read(options.data)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        parser.error(f"{options.data} is not adult.data.gz: {error}")
    if not len(records):
        parser.error(f"{options.data} is not adult.data.gz: no row has 15 columns")
    sampler = tn.samplers.MollifiedDensity(
        options.epsilon, reference=tn.samplers.Uniform(LOW, HIGH), random_state=options.seed
    )
    try:
        released = tn.samplers.sample_population(
            sampler, records, groups, progress=True, seed=options.seed
        )
    except tn.errors.InvalidValueError as error:
        parser.error(str(error))
    # What the groups would release without privacy: one of their records.
    chooser = np.random.default_rng(options.seed)
    honest = np.array([chooser.choice(records[groups == group]) for group in released.users])
    public = sampler.reference.draw(len(released), seed=options.seed)
    print(
        f"{len(records):,} rows of {len(released)} groups; one record of each, epsilon = "
        f"{options.epsilon:g} for all rows of a group"
    )
    print(f"{'':24}{'age':>16}{'hours a week':>16}")
    for name, table in (
        ("a true record of each", honest),
        ("released", released.draws),
        ("reference alone", public),
    ):
        means, deviations = table.mean(axis=0), table.std(axis=0)
        cells = [
            f"{mean:.1f} ± {deviation:.1f}"
            for mean, deviation in zip(means, deviations, strict=True)
        ]
        print(f"{name:24}" + "".join(f"{cell:>16}" for cell in cells))
    if options.plot:
        draw(honest, released.draws, options)


def draw(honest: np.ndarray, released: np.ndarray, options: argparse.Namespace) -> None:
    """Set the released records beside true ones."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained"
    )
    panels = (
        (honest, "one true record of each group"),
        (released, f"released, ε = {options.epsilon:g}"),
    )
    for ax, (table, title) in zip(axes, panels, strict=True):
        ax.scatter(*table.T, s=12, alpha=0.6, color="#1f6f8b")
        ax.set(title=title, xlabel="age", xlim=(LOW[0], HIGH[0]), ylim=(LOW[1], HIGH[1]))
    axes[0].set_ylabel("hours a week")
    figure.savefig(options.plot, dpi=120)
    print(f"picture in {options.plot}")


if __name__ == "__main__":
    main()
