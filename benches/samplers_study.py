"""How well private samplers keep a person's distribution: likelihood and mode coverage.

Three studies, each of one person, 20 seeds, and five epsilons for one draw that protects the
*whole* data set; 10,000 records in the first, 2,000 in the others:

- ``mixture``: the private-sampling paper's mixture on the line, deviations .01, .1, .1;
- ``random``: three Gaussians of deviation .2 at random places in [-2, 2];
- ``ring``: eight Gaussians of deviation .3 on a circle of radius 4 in the plane.

The mollified samplers have a standard normal reference, the paper's. On the ring, which that
reference hardly reaches, they are also run with a uniform reference on the public box that the
baselines are given. The floor is the projection of the true density: no sampler in the mollifier of
that reference is better.

Results are kept in a file as they come: an interrupted study goes on where it was. ``--quick`` is a
small one that takes a few minutes; boosting takes half a minute a fit in the full one.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One thread a process: the processes share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("RAYON_NUM_THREADS", "1")

import matplotlib as mpl

from turnout.samplers import (
    BernsteinSampler,
    MollifiedBoosting,
    MollifiedDensity,
    PrivateKernelDensity,
    Uniform,
    compare_samplers,
    random_gaussians_1d,
    ring_of_gaussians,
    seed_mixture,
)
from turnout.samplers.study.comparison import FloorOfMollifier, PublicReference, SamplerComparison

EPSILONS = (0.1, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Experiment:
    """One target, the public box of the baselines, and where coverage is looked for."""

    title: str
    make_target: Callable[[int], Any]
    box: Any
    bounds: Any
    references: dict[str, Any]
    n_records: int = 2_000


EXPERIMENTS = {
    "mixture": Experiment(
        "Seed mixture 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), reference N(0, 1), box [-1, 2]",
        lambda seed: seed_mixture(),
        (-1.0, 2.0),
        (-8.0, 8.0),
        {"": None},
        10_000,
    ),
    "random": Experiment(
        "Three random Gaussians of deviation .2 in [-2, 2], reference N(0, 1), box [-4, 4]",
        random_gaussians_1d,
        (-4.0, 4.0),
        (-8.0, 8.0),
        {"": None},
    ),
    "ring": Experiment(
        "Ring of 8 Gaussians, radius 4, deviation .3, reference N(0, I), box [-6, 6]^2",
        lambda seed: ring_of_gaussians(),
        (-6.0, 6.0),
        [(-7.0, 7.0), (-7.0, 7.0)],
        {"": None, ", uniform": Uniform([-6.0, -6.0], [6.0, 6.0])},
    ),
}


def rounds(epsilon: float) -> int:
    """Leave out the rounds of boosting that would add less than 1 % to all weights, from ten."""
    base = epsilon / (epsilon + 4.0 * math.log(2.0))
    return min(10, math.ceil(math.log(0.01) / math.log(base)))


def contenders(experiment: Experiment, boosting: bool) -> dict[str, Callable[[float], Any]]:
    """Name the samplers of a study."""
    made: dict[str, Callable[[float], Any]] = {}
    for word, reference in experiment.references.items():
        made[f"floor{word}"] = lambda epsilon, r=reference: FloorOfMollifier(epsilon, r)
        made[f"MollifiedDensity{word}"] = lambda epsilon, r=reference: MollifiedDensity(
            epsilon, reference=r
        )
        if boosting:
            made[f"MollifiedBoosting{word}"] = lambda epsilon, r=reference: MollifiedBoosting(
                epsilon, reference=r, n_rounds=rounds(epsilon)
            )
    box = experiment.box
    made["BernsteinSampler"] = lambda epsilon: BernsteinSampler(epsilon, bounds=box)
    made["PrivateKernelDensity"] = lambda epsilon: PrivateKernelDensity(epsilon, bounds=box)
    for word, reference in experiment.references.items():
        made[f"reference{word}"] = lambda epsilon, r=reference: PublicReference(r)
    return made


def study(name: str, options: argparse.Namespace) -> SamplerComparison:
    """Run or continue one study."""
    experiment = EXPERIMENTS[name]
    kind = "-quick" if options.quick else ""
    return compare_samplers(
        contenders(experiment, not options.without_boosting),
        experiment.make_target,
        epsilons=(1.0, 5.0) if options.quick else EPSILONS,
        n_records=1_000 if options.quick else experiment.n_records,
        n_fresh=10_000,
        repeats=2 if options.quick else options.repeats,
        bounds=experiment.bounds,
        n_jobs=options.jobs,
        progress=True,
        store=options.output / f"{name}{kind}.jsonl",
    )


def write(name: str, found: SamplerComparison, output: Path, kind: str) -> str:
    """Draw the picture of a study, and give its tables."""
    axes = found.plot()
    picture = output / f"samplers_{name}{kind}.png"
    axes[0].figure.savefig(picture, dpi=120)
    title = EXPERIMENTS[name].title
    about = (
        f"{found.n_records:,} records of one person, {found.repeats} seeds, mean ± standard "
        "deviation over seeds; every ε protects the whole data set."
    )
    return "\n".join(
        (
            title,
            "-" * len(title),
            "",
            about,
            "",
            "Negative log-likelihood of fresh records, nats:",
            "",
            found.table("nll"),
            "",
            f"Mode coverage at level {found.level:g}:",
            "",
            found.table("coverage"),
            "",
            f".. image:: {picture.name}",
            "",
        )
    )


def main() -> None:
    """Run the studies and write their tables and pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small study, a few minutes")
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--repeats", type=int, default=20, help="seeds of each study")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--without-boosting", action="store_true", help="leave out the slowest sampler"
    )
    parser.add_argument("--output", type=Path, default=Path("build/samplers"))
    options = parser.parse_args()
    mpl.use("Agg")
    options.output.mkdir(parents=True, exist_ok=True)
    kind = "-quick" if options.quick else ""
    texts = []
    for name in options.experiments:
        found = study(name, options)
        texts.append(write(name, found, options.output, kind))
        print(texts[-1])
    (options.output / f"samplers{kind}.rst").write_text("\n".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
