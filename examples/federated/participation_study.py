"""What the sound bound of random participation is worth: MNIST, trained with less noise.

The experiment of section 6 of Hasircioglu and Gunduz, "Privacy Amplification via Random
Participation in Federated Learning", on MNIST: many clients with little data, and few clients with
much. Every arm but "no privacy" keeps the same epsilon and delta in a round; they differ in who is
trusted, and in how much noise their analysis requires.

    python examples/federated/participation_study.py --quick

A run that is stopped or killed goes on where it was when it is started again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from pathlib import Path

from turnout.errors import TurnoutError
from turnout_reproduce.datasets import ImageSplit, fetch_mnist, read_mnist
from turnout_reproduce.studies.study import Study, mean_interval
from turnout_reproduce.studies.trainings import TrainingRecord, compare_trainings
from turnout_reproduce.training.network import ConvolutionalNetwork
from turnout_reproduce.training.scenarios import Arm, Scenario, arms_of

#: The paper's epsilon and delta of a round.
EPSILON, DELTA = 0.015, 1e-6

#: As many clients as the 60,000 images give; rates for an average batch of 70, as in the paper.
MANY = Scenario("many clients", 2000, 30, client_rate=0.0117, sample_rate=0.1)
FEW = Scenario("few clients", 60, 1000, client_rate=0.117, sample_rate=0.01)

#: Rounds, rounds between looks at the accuracy, and seeds.
QUICK, FULL = (400, 50, 3), (2000, 100, 5)

#: Learning rates, public constants: the more noise and the more rounds, the smaller. Chosen after a
#: few tries with other seeds in the first scenario.
QUICK_RATES = {
    "many clients": {
        "none": 0.02, "central": 0.03, "sound": 0.006,
        "wcs": 0.003, "ols": 0.002, "each": 0.0003, "every": 0.0003,
    },
    "few clients": {
        "none": 0.02, "central": 0.03, "sound": 0.008,
        "wcs": 0.008, "ols": 0.008, "each": 0.005, "every": 0.002,
    },
}  # fmt: skip
FULL_RATES = {
    "many clients": {
        "none": 0.02, "central": 0.015, "sound": 0.003,
        "wcs": 0.002, "ols": 0.001, "each": 0.0002, "every": 0.0002,
    },
    "few clients": {
        "none": 0.02, "central": 0.015, "sound": 0.004,
        "wcs": 0.004, "ols": 0.004, "each": 0.0025, "every": 0.001,
    },
}  # fmt: skip


def images(folder: Path | None) -> ImageSplit:
    """Read MNIST from a folder, or download it."""
    if folder is not None:
        return read_mnist(folder)
    shared = Path(__file__).parents[2].parent / "shared" / "data"
    place = Path(os.environ.get("TURNOUT_DATA", shared))
    return read_mnist(place) if place.is_dir() else fetch_mnist()


def main() -> None:
    """Train, print a table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the files of MNIST")
    parser.add_argument("--output", type=Path, default=Path("participation_study"))
    parser.add_argument("--quick", action="store_true", help="fewer rounds and seeds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seeds", type=int, help="how many")
    parser.add_argument("--resume", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    for name in ("rounds", "seeds"):
        number = getattr(options, name)
        if number is not None and number < 1:
            parser.error(f"--{name} must be at least 1, got {number}")
    rounds, every, seeds = QUICK if options.quick else FULL
    rates = QUICK_RATES if options.quick else FULL_RATES
    rounds, seeds = options.rounds or rounds, options.seeds or seeds
    parts = options.output / ("parts-quick" if options.quick else "parts")
    if not options.resume and parts.exists():
        shutil.rmtree(parts)
    start = time.monotonic()
    try:
        scenarios = [(one, arms_of(one, EPSILON, DELTA, rates[one.name])) for one in (MANY, FEW)]
        study = compare_trainings(
            scenarios,
            images(options.data),
            lambda seed: ConvolutionalNetwork(10, seed=seed),
            epsilon=EPSILON,
            delta=DELTA,
            rounds=rounds,
            every=min(every, rounds),
            seeds=range(1, seeds + 1),
            folder=parts,
        )
    except (TurnoutError, OSError) as error:
        parser.error(str(error))
    print_table(scenarios, study, rounds, seeds)
    results = options.output / "results.json"
    content = {**study.settings, "records": study.to_records()}
    results.write_text(json.dumps(content, indent=1), encoding="utf-8")
    picture = options.output / "accuracy.png"
    study.plot()[0].figure.savefig(picture, dpi=120)
    print(f"{time.monotonic() - start:.0f} s; numbers in {results}, picture in {picture}")


def print_table(
    scenarios: list[tuple[Scenario, list[Arm]]],
    study: Study[TrainingRecord],
    rounds: int,
    seeds: int,
) -> None:
    """Say what came out, and what the whole training costs."""
    for scenario, arms in scenarios:
        print(
            f"{scenario.name}: {scenario.clients:,} clients with {scenario.local_size:,} images, "
            f"p = {scenario.client_rate:g}, q = {scenario.sample_rate:g}; after {rounds} rounds, "
            f"mean of {seeds} seed{'s' if seeds > 1 else ''}, and its 95 % interval"
        )
        print(f"  {'':24}{'noise':>8}{'accuracy':>26}{'proven delta':>16}{'epsilon in all':>16}")
        for arm in arms:
            last = study.find(scenario=scenario.name, arm=arm.name, rounds=rounds)
            low, high = mean_interval(last.accuracies)
            spread = f" ({low:.3f} to {high:.3f})" if seeds > 1 else ""
            cells = [f"{last.accuracy:.3f}{spread}", "", ""]
            if arm.noise_multiplier:
                cells[1] = f"{last.proven_delta:.2e}"
                whole = arm.mechanism(scenario).compose(rounds)
                cells[2] = f"{whole.epsilon(1e-5):.3g}"
            print(
                f"  {arm.label:24}{arm.noise_multiplier:8.3f}{cells[0]:>26}{cells[1]:>16}"
                f"{cells[2]:>16}"
            )
    print(f"epsilon = {EPSILON:g}, delta = {DELTA:g} a round; epsilon in all at delta = 1e-5")


if __name__ == "__main__":
    main()
