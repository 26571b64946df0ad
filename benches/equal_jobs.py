"""What trainings at equal epsilon are worth: the accuracy of each way to train on digits.

The trainings are those of ``examples/federated/digits/equal_epsilon.py``: the same model and images
in every row, and the same epsilon and delta for the whole training.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from report import Figures, Row

EXAMPLE = Path(__file__).parents[1] / "examples" / "federated" / "digits"
DATA = "digits"
#: Trainings of each way, and of each with ``--quick``.
REPEATS, QUICK_REPEATS = 20, 3

HEADINGS = ("training", "noise", "learning rate", "repeats", "test accuracy", "interval")
NOTES = [
    "All train softmax regression with batches of the same average size.",
    "noise: the standard deviation of the noise over the clipping norm. In the last two rows it is "
    "the noise that one client adds.",
    "learning rate: the best of several, chosen with other seeds.",
    "test accuracy: the mean of all repeats. interval: its 95 % interval.",
]


def measure(
    turnout: ModuleType | None, quick: bool, on_progress: Callable[[str], object]
) -> Figures:
    """Return the table of accuracies."""
    title, rows, notes = "Trainings on digits", [], list(NOTES)
    try:
        example = None if turnout is None else _load()
        if example is not None:
            setting = example.SETTINGS[DATA]
            title += (
                f", epsilon {setting.epsilon:g} and delta {setting.delta:g} for "
                f"{setting.rounds} rounds"
            )
            on_progress("accuracy of trainings")
            found = example.images.read(DATA, Path())
            for outcome in example.compare(DATA, found, QUICK_REPEATS if quick else REPEATS):
                on_progress(f"accuracy of trainings: {outcome.arm.label} is done")
                rows.append(_row(outcome))
    except ImportError as error:
        notes.append(f"not measured: {error}")
    return Figures("accuracy, trainings", title, HEADINGS, rows, notes)


def _load() -> Any:
    """Import the example, which imports its neighbour ``images``."""
    if str(EXAMPLE) not in sys.path:
        sys.path.append(str(EXAMPLE))
    return importlib.import_module("equal_epsilon")


def _row(outcome: Any) -> Row:
    arm, (low, high) = outcome.arm, outcome.interval
    cells = (
        arm.label,
        f"{arm.noise_multiplier:.3f}",
        f"{arm.learning_rate:g}",
        str(len(outcome.accuracies)),
        f"{outcome.mean:.1%}".replace("%", " %"),
        f"{low:.1%} to {high:.1%}".replace("%", " %"),
    )
    raw = {
        "training": arm.label,
        "noise_multiplier": arm.noise_multiplier,
        "learning_rate": arm.learning_rate,
        "accuracies": list(outcome.accuracies),
        "accuracy": outcome.mean,
        "interval": [low, high],
    }
    return Row(cells, "", raw)
