"""What a sound bound is worth: accuracy against rounds under several accountings.

The experiment of section 6 of the participation paper (Hasircioglu and Gunduz): the same training
with the noise that each analysis asks for, at the same epsilon and delta of a round.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from turnout import _arguments, _seeds
from turnout._documents import parsed
from turnout._files import atomic_write, read_bytes
from turnout._progress import track
from turnout._types import Array, Integers
from turnout.errors import CorruptDataError, PlanMismatchError
from turnout.federated.engine import InProcessEngine
from turnout.federated.optimizers import SGD
from turnout_reproduce.studies.study import Picture, Study, curve_of
from turnout_reproduce.training.scenarios import Arm, Scenario

if TYPE_CHECKING:
    from turnout_reproduce.datasets import Images, ImageSplit


# What a seed of the study derives seeds for; the numbers belong to its results.
_MODEL, _PLAN, _SHARES = range(1, 4)

_FORMAT = "turnout participation study"


class Model(Protocol):
    """What is trained, such as :class:`turnout_reproduce.training.network.ConvolutionalNetwork`."""

    def initial_parameters(self) -> Any:
        """Give the parameters to start from."""

    def per_example_gradients(self, parameters: Any, images: Array, labels: Array, /) -> Any:
        """Give one gradient for each example."""

    def accuracy(self, parameters: Any, images: Array, labels: Array, /) -> float:
        """Give the share of examples that are told right."""


@dataclasses.dataclass(frozen=True)
class TrainingRecord:
    """Test accuracy under one arm after so many rounds.

    Attributes
    ----------
    scenario, arm, noise_multiplier, keeps_target
        The setting: see :class:`~turnout_reproduce.training.Arm`.
    proven_delta
        The delta of a round that is proven for this noise at the epsilon of the study; None
        without noise.
    rounds
        How many had passed.
    accuracy, accuracy_error
        Mean over the seeds, and its standard error: NaN for one seed.
    accuracies
        That of each seed.
    """

    scenario: str
    arm: str
    noise_multiplier: float
    keeps_target: bool
    proven_delta: float | None
    rounds: int
    accuracy: float
    accuracy_error: float
    accuracies: tuple[float, ...] = dataclasses.field(repr=False)


def compare_trainings(
    scenarios: Sequence[tuple[Scenario, Sequence[Arm]]],
    data: ImageSplit,
    model: Any,
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    every: int,
    seeds: Iterable[int] = (0, 1, 2),
    clip: float = 1.0,
    momentum: float = 0.9,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Study[TrainingRecord]:
    """Train under every arm, and look at the test accuracy on the way.

    With the same seed all arms start from the same model, split the examples among clients in the
    same way and draw the same participants. Noise is exact, see
    :class:`turnout.federated.Grid`.

    Parameters
    ----------
    scenarios
        Each with its arms, of :func:`turnout_reproduce.training.scenarios.arms_of`.
    data
        Examples to train and to test with.
    model
        ``model(seed)`` gives a :class:`Model`, such as
        :class:`turnout_reproduce.training.network.ConvolutionalNetwork`.
    epsilon, delta
        What the arms were made for; written into the result.
    rounds
        How long each training is.
    every
        After how many rounds the accuracy is looked at, and a checkpoint is written.
    seeds
        One training for each; for studies only, like every seed.
    clip
        The norm that gradients are clipped to, except without privacy.
    momentum
        Of stochastic gradient descent.
    folder
        Where checkpoints and accuracies are kept: what was done there before is not done again. A
        run that was killed ends with the same numbers as one that was not.
    progress
        Whether a progress bar is shown on standard error.

    Returns
    -------
    Study
        A :class:`TrainingRecord` for each scenario, arm and number of rounds at which accuracy was
        looked at; ``settings`` has ``epsilon``, ``delta``, ``seeds``, ``clip`` and ``momentum``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or there are too few examples.
    PlanMismatchError
        If the folder holds curves of the same names with other settings.
    CorruptDataError
        If a file in the folder is damaged.
    """
    total = _arguments.integer("rounds", rounds, least=1)
    step = _arguments.integer("every", every, least=1, most=total)
    place = None if folder is None else Path(folder)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    chosen = [_arguments.integer("seeds", seed, least=0, most=2**64 - 1) for seed in seeds]
    common = _Common(data, model, clip, momentum, step, place)
    trainings = [
        _Training(scenario, arm, seed, common)
        for scenario, arms in scenarios
        for seed in chosen
        for arm in arms
    ]
    stops = sorted({*range(step, total + 1, step), total})
    work = [(training, after) for training in trainings for after in training.missing(stops)]
    for training, after in track(work, "participation study", wanted=progress):
        training.reach(after)
    found: defaultdict[tuple[Scenario, Arm], list[list[float]]] = defaultdict(list)
    for training in trainings:
        found[training.scenario, training.arm].append(training.accuracies(stops))
    records: list[TrainingRecord] = []
    curves = []
    for (scenario, arm), accuracies in found.items():
        rows = [
            _record(scenario, arm, epsilon, after, values)
            for after, values in zip(stops, zip(*accuracies, strict=True), strict=True)
        ]
        records += rows
        title = _title(scenario, epsilon, delta)
        curves.append(curve_of(_label(arm, rows[0]), rows, "rounds", "accuracy", title))
    studied = {
        "epsilon": epsilon,
        "delta": delta,
        "seeds": chosen,
        "clip": clip,
        "momentum": momentum,
    }
    return Study(tuple(records), studied, Picture(tuple(curves), "rounds", "test accuracy"))


def _record(
    scenario: Scenario, arm: Arm, epsilon: float, after: int, accuracies: tuple[float, ...]
) -> TrainingRecord:
    noise = arm.noise_multiplier
    spread = math.nan
    if len(accuracies) > 1:
        spread = float(np.std(accuracies, ddof=1)) / math.sqrt(len(accuracies))
    return TrainingRecord(
        scenario.name,
        arm.name,
        noise,
        arm.keeps_target,
        float(arm.mechanism(scenario).delta(epsilon)) if noise else None,
        after,
        float(np.mean(accuracies)),
        spread,
        accuracies,
    )


def _label(arm: Arm, record: TrainingRecord) -> str:
    """Say what the noise is; of what keeps no guarantee the delta that is proven for it."""
    if record.proven_delta is None:
        return arm.label
    proven = "" if arm.keeps_target else f" (proven: δ = {record.proven_delta:.1e})"
    return f"{arm.label}, σ = {arm.noise_multiplier:.4g}{proven}"


def _title(scenario: Scenario, epsilon: float, delta: float) -> str:
    return (
        f"{scenario.name}: {scenario.clients:,} clients with {scenario.local_size:,} examples\n"
        f"p = {scenario.client_rate:g}, q = {scenario.sample_rate:g}; "
        f"ε = {epsilon:g}, δ = {delta:g} a round"
    )


class _Common(NamedTuple):
    """What all trainings of a study share."""

    data: ImageSplit
    model: Any
    clip: float
    momentum: float
    every: int
    folder: Path | None


class _Training:
    """One training, which may have begun in a process that was killed."""

    def __init__(self, scenario: Scenario, arm: Arm, seed: int, common: _Common) -> None:
        needed = scenario.clients * scenario.local_size
        if needed > len(common.data.train):
            raise _arguments.invalid(
                f"scenarios: {scenario.name!r} needs {needed} examples", len(common.data.train)
            )
        self.scenario, self.arm, self._seed, self._common = scenario, arm, seed, common
        self._engine: InProcessEngine | None = None
        self._model: Any = None
        stem = f"{scenario.name}-{arm.name}-{seed}".replace(" ", "_")
        folder = common.folder
        self._checkpoint = None if folder is None else folder / f"{stem}.checkpoint"
        self._file = None if folder is None else folder / f"{stem}.json"
        self._accuracies = self._read()

    def missing(self, stops: Sequence[int]) -> list[int]:
        """Give the rounds whose accuracy is not known; all if one in the middle is lost."""
        lost = [after for after in stops if after not in self._accuracies]
        if not lost:
            return []
        if any(after > lost[0] for after in self._accuracies):
            # The checkpoint is past it.
            self._accuracies = {}
            if self._checkpoint is not None:
                self._checkpoint.unlink(missing_ok=True)
            return list(stops)
        return lost

    def reach(self, after: int) -> None:
        """Train until so many rounds are over, and look at the accuracy."""
        if self._engine is None:
            self._begin()
        assert self._engine is not None
        if self._engine.server.round > after:
            # The file with accuracies is gone, the checkpoint is not.
            assert self._checkpoint is not None
            self._checkpoint.unlink()
            self._begin()
        parameters = self._engine.run(after)
        test = self._common.data.test
        self._accuracies[after] = self._model.accuracy(parameters, test.images, test.labels)
        self._write()

    def accuracies(self, stops: Sequence[int]) -> list[float]:
        """Give the accuracies, and let go of the rest."""
        self._engine = self._model = None
        return [self._accuracies[after] for after in stops]

    def _begin(self) -> None:
        arm, train = self.arm, self._common.data.train
        scenario = arm.placed(self.scenario)
        model = self._model = self._common.model(_seeds.derived(self._seed, _MODEL))
        shares = self._shares(train)

        def gradients(parameters: Any, clients: Any, elements: Integers) -> Any:
            chosen = shares[clients, elements]
            return model.per_example_gradients(
                parameters, train.images[chosen], train.labels[chosen]
            )

        plan = arm.plan(
            self.scenario,
            self._common.clip if arm.noise_multiplier else math.inf,
            _seeds.derived(self._seed, _PLAN),
        )
        self._engine = InProcessEngine(
            plan,
            model.initial_parameters(),
            gradients,
            scenario.local_size,
            SGD(arm.learning_rate, momentum=self._common.momentum),
            clients=scenario.clients,
            checkpoint=self._checkpoint,
            checkpoint_every=self._common.every,
            batched=True,
        )
        if self._checkpoint is not None:
            self._engine.resume()

    def _shares(self, train: Images) -> Integers:
        """Split the examples among clients: at random, and the same in all arms."""
        scenario = self.arm.placed(self.scenario)
        order = np.random.default_rng(_seeds.derived(self._seed, _SHARES)).permutation(len(train))
        return order[: scenario.clients * scenario.local_size].reshape(scenario.clients, -1)

    def _settings(self) -> dict[str, Any]:
        return {
            "scenario": dataclasses.asdict(self.scenario),
            "arm": dataclasses.asdict(self.arm),
            "seed": self._seed,
            "clip": self._common.clip,
            "momentum": self._common.momentum,
            "examples": [len(self._common.data.train), len(self._common.data.test)],
        }

    def _write(self) -> None:
        if self._file is None:
            return
        content = {
            "format": _FORMAT,
            "settings": self._settings(),
            "accuracies": [list(pair) for pair in sorted(self._accuracies.items())],
        }
        with atomic_write(self._file) as temporary:
            temporary.write_text(json.dumps(content), encoding="utf-8")

    def _read(self) -> dict[int, float]:
        if self._file is None or not self._file.exists():
            return {}
        try:
            content = parsed(read_bytes(self._file))
            settings = content["settings"]
            found = {int(after): float(value) for after, value in content["accuracies"]}
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptDataError(f"{self._file} is damaged: {error}") from error
        if settings != self._settings():
            raise PlanMismatchError(
                f"{self._file} is of a study with other settings: use another folder"
            )
        return found
