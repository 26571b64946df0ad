"""What each way to train costs in accuracy, all at the same epsilon: softmax regression on digits.

    python examples/federated/digits/equal_epsilon.py digits

Every arm trains the same model on the same images, for the same epsilon and delta of the whole
training, with batches that are as large on average. They differ in who is trusted, and in what the
accounting may count on.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import images
import numpy as np

from turnout.federated import SGD, InProcessEngine
from turnout_reproduce.studies.study import mean_interval
from turnout_reproduce.training.scenarios import Arm, Scenario, arms_of


@dataclass(frozen=True)
class Setting:
    """What one data set is trained with, and how much it may cost."""

    client_rate: float
    epsilon: float
    delta: float
    rounds: int


SETTINGS = {"digits": Setting(0.4, 4.0, 1e-4, 60), "mnist": Setting(0.02, 2.0, 1e-6, 60)}
ARMS = ("none", "central", "sound", "wcs", "ols", "each", "every")
SAMPLED = 0.1
#: The learning rates that are tried for each arm, and seeds for that, which are not used again.
RATES = (0.03, 0.12, 0.5, 2.0, 8.0)
TRIED = (1001, 1002)


@dataclass(frozen=True)
class Outcome:
    """The test accuracy of one arm: that of each training, their mean, and its interval."""

    arm: Arm
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of all trainings."""
        return float(np.mean(self.accuracies))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean."""
        return mean_interval(self.accuracies)


def compare(data: str, found: images.Images, seeds: int) -> Iterator[Outcome]:
    """Train every arm so many times with the best of some learning rates, one arm after another."""
    setting = SETTINGS[data]
    clients, size, _ = images.SETTINGS[data]
    scenario = Scenario(data, clients, size, setting.client_rate, SAMPLED)
    rates = dict.fromkeys(ARMS, RATES[0])
    for arm in arms_of(scenario, setting.epsilon, setting.delta, rates, setting.rounds):
        tried = [replace(arm, learning_rate=rate) for rate in RATES]
        best = max(
            tried,
            key=lambda one: np.mean([accuracy(one, scenario, found, seed) for seed in TRIED]),
        )
        yield Outcome(best, tuple(accuracy(best, scenario, found, seed) for seed in range(seeds)))


def accuracy(arm: Arm, scenario: Scenario, found: images.Images, seed: int) -> float:
    """Train once and measure on the test images."""
    placed = arm.placed(scenario)
    rows = found.images.reshape(placed.clients, placed.local_size, -1)
    labels = found.labels.reshape(placed.clients, placed.local_size)
    one_hot = np.eye(10, dtype=np.float32)

    def gradients(model: Any, who: Any, which: Any) -> Any:
        x = rows[who, which]
        scores = x @ model["weights"].T + model["bias"]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = chances / chances.sum(axis=1, keepdims=True) - one_hot[labels[who, which]]
        return {"weights": error[:, :, None] * x[:, None, :], "bias": error}

    start = {"weights": np.zeros((10, rows.shape[2]), np.float32), "bias": np.zeros(10, np.float32)}
    engine = InProcessEngine(
        arm.plan(scenario, 1.0, seed),
        start,
        gradients,
        placed.local_size,
        SGD(arm.learning_rate, momentum=0.5),
        clients=placed.clients,
        batched=True,
    )
    model = engine.run(SETTINGS[scenario.name].rounds)
    test = found.test_images.reshape(len(found.test_labels), -1)
    scores = test @ model["weights"].T + model["bias"]
    return float((scores.argmax(axis=1) == found.test_labels).mean())


def main() -> None:
    """Train all arms, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", choices=SETTINGS)
    shared = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    place = Path(os.environ.get("TURNOUT_DATA", shared))
    parser.add_argument("--folder", type=Path, default=place, help="where the files of MNIST are")
    parser.add_argument("--seeds", type=int, default=20, help="how many trainings of each arm")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error(f"--seeds must be at least 2, for an interval, got {options.seeds}")
    setting = SETTINGS[options.data]
    print(
        f"{options.data}: epsilon = {setting.epsilon:g}, delta = {setting.delta:g}, "
        f"{setting.rounds} rounds"
    )
    for outcome in compare(options.data, images.read(options.data, options.folder), options.seeds):
        arm, (low, high) = outcome.arm, outcome.interval
        print(
            f"{arm.label:26}noise {arm.noise_multiplier:7.3f}  rate {arm.learning_rate:5g}  "
            f"accuracy {outcome.mean:.3f} [{low:.3f}, {high:.3f}]",
            flush=True,
        )


if __name__ == "__main__":
    main()
