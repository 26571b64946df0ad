"""Every frequency oracle side by side on real data, at equal epsilon.

Marital status, occupation and native country in the Adult data, evaluations in Nursery, cells in
Gowalla; the files are looked for in the folder that ``TURNOUT_DATA`` names::

    TURNOUT_DATA=~/data python examples/oracles/side_by_side.py --plot oracles.png

Each line is measured: every person is randomized and counted, ``--repeats`` times.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import turnout as tn
from turnout_reproduce.studies.oracles import OracleRecord, compare_oracles
from turnout_reproduce.studies.study import Study

#: For each study: the file, the column, and what it holds.
STUDIES = {
    "adult-marital": ("adult.data.gz", 5, "marital status in Adult"),
    "adult-occupation": ("adult.data.gz", 6, "occupation in Adult"),
    "adult-country": ("adult.data.gz", 13, "native country in Adult"),
    "nursery": ("nursery.data.gz", 8, "evaluation in Nursery"),
    "gowalla": ("gowalla_user_cell.csv", 1, "most visited cell in Gowalla"),
}


def main() -> int:
    """Run the studies and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", choices=STUDIES, action="append", help="default: all")
    parser.add_argument("--epsilon", type=float, action="append", help="default: 0.5, 1 and 2")
    parser.add_argument("--participation", type=float, default=1.0, help="default: everyone")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a picture of every study")
    options = parser.parse_args()
    folder = Path(os.environ.get("TURNOUT_DATA", "../shared/data"))
    found: dict[str, Study[OracleRecord]] = {}
    for name in options.study or STUDIES:
        file, column, what = STUDIES[name]
        try:
            counts = Counter(read(folder / file, column))
        except FileNotFoundError:
            print(f"{file} is not in {folder}: set TURNOUT_DATA to the folder that has it")
            return 1
        comparison = compare_oracles(
            list(counts.values()),
            epsilons=options.epsilon or (0.5, 1.0, 2.0),
            participation=tn.Bernoulli(options.participation),
            repeats=options.repeats,
        )
        said = comparison.settings
        print(f"\n{what}: {said['nodes']:,} people, {said['domain_size']} answers")
        print(comparison.table())
        found[what] = comparison
    if options.plot is not None:
        draw(found, options.plot)
    return 0


def read(path: Path, column: int) -> Iterator[str]:
    """Read one column of a CSV file, which may be compressed; rows that lack it are left out."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    with io.StringIO(text) as file:
        rows = csv.reader(file, skipinitialspace=True)
        if path.suffix == ".csv":
            next(rows)
        for row in rows:
            if len(row) > column:
                yield row[column]


def draw(comparisons: dict[str, Study[OracleRecord]], path: Path) -> None:
    """Draw every study on axes of its own."""
    from matplotlib import pyplot

    figure, places = pyplot.subplots(
        len(comparisons), figsize=(9, 5.8 * len(comparisons)), layout="constrained", squeeze=False
    )
    figure.get_layout_engine().set(hspace=0.04)
    for axes, (what, comparison) in zip(places[:, 0], comparisons.items(), strict=True):
        comparison.plot(axes)
        axes.set_title(f"{what}: {axes.get_title()}", fontsize=10)
    figure.savefig(path, dpi=120)
    print(f"\n{path}")


if __name__ == "__main__":
    sys.exit(main())
