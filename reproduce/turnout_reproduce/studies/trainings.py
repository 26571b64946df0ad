"""What a sound bound is worth: accuracy against rounds under several accountings.

The experiment of section 6 of the participation paper (Hasircioglu and Gunduz): the same training
with the noise that each analysis asks for, at the same epsilon and delta of a round.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from turnout import _arguments, _seeds
from turnout._atomic import atomic_write
from turnout._documents import parsed
from turnout._files import read_bytes
from turnout._progress import track
from turnout._tables import Tabular
from turnout._types import Array, Integers
from turnout.errors import CorruptDataError, InvalidValueError, PlanMismatchError
from turnout.federated.engine import InProcessEngine
from turnout.federated.optimizers import SGD
from turnout.federated.plan import RandomParticipationSGD
from turnout_reproduce.studies.training_pictures import Line, Panel, plot_study
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
class Curve:
    """Test accuracy of one training.

    Attributes
    ----------
    scenario, arm
        Their names.
    seed
        Of everything random in it.
    accuracies
        After how many rounds, and how much.
    """

    scenario: str
    arm: str
    seed: int
    accuracies: dict[int, float]


@dataclasses.dataclass(frozen=True)
class ParticipationStudy(Tabular):
    """Accuracies of all arms in all scenarios.

    Attributes
    ----------
    epsilon, delta
        What a round costs in the arms that keep it.
    scenarios
        Each scenario with its arms.
    curves
        One for each scenario, arm and seed.
    """

    epsilon: float
    delta: float
    scenarios: tuple[tuple[Scenario, tuple[Arm, ...]], ...]
    curves: tuple[Curve, ...]

    _columns = ("scenario", "arm", "seed", "rounds", "accuracy")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each measurement of each training, for tables and programs.

        Returns
        -------
        list of dict
            With ``scenario``, ``arm``, ``seed``, ``rounds`` (that had passed) and ``accuracy``.
        """
        rows = (
            (curve.scenario, curve.arm, curve.seed, *measured)
            for curve in self.curves
            for measured in curve.accuracies.items()
        )
        return [dict(zip(self._columns, row, strict=True)) for row in rows]

    def table(self, scenario: str, arm: str) -> tuple[list[int], Any, Any]:
        """Give rounds, mean accuracies over the seeds, and their standard errors.

        Parameters
        ----------
        scenario, arm
            Names.

        Returns
        -------
        tuple
            A list of rounds and two arrays of float64; standard errors are NaN for one seed.

        Raises
        ------
        InvalidValueError
            If there is no such curve.
        """
        chosen = [curve for curve in self.curves if (curve.scenario, curve.arm) == (scenario, arm)]
        if not chosen:
            raise InvalidValueError(f"the study has no curve of {arm!r} in {scenario!r}")
        rounds = sorted(set.intersection(*(set(curve.accuracies) for curve in chosen)))
        values = np.array([[curve.accuracies[after] for after in rounds] for curve in chosen])
        errors = np.full(len(rounds), np.nan)
        if len(values) > 1:
            errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
        return rounds, values.mean(axis=0), errors

    def to_dict(self) -> dict[str, Any]:
        """Describe everything in terms of JSON, with the delta that is proven for each arm."""
        scenarios = []
        for scenario, arms in self.scenarios:
            described = []
            for arm in arms:
                rounds, means, errors = self.table(scenario.name, arm.name)
                noise = arm.noise_multiplier
                described.append(
                    {
                        **dataclasses.asdict(arm),
                        "proven_delta": scenario.delta(self.epsilon, noise) if noise else None,
                        "rounds": rounds,
                        "mean_accuracy": means.tolist(),
                        "standard_error": [
                            None if math.isnan(error) else error for error in errors.tolist()
                        ],
                        "accuracies": {
                            str(curve.seed): list(curve.accuracies.values())
                            for curve in self.curves
                            if (curve.scenario, curve.arm) == (scenario.name, arm.name)
                        },
                    }
                )
            scenarios.append({**dataclasses.asdict(scenario), "arms": described})
        return {
            "format": _FORMAT,
            "version": 1,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "scenarios": scenarios,
        }

    def plot(self, axes: Any = None) -> Any:
        """Draw accuracy against rounds, a panel for each scenario.

        What keeps no guarantee is labelled with the delta that is proven for its noise.
        """
        return plot_study([self._panel(*each) for each in self.scenarios], axes)

    def _panel(self, scenario: Scenario, arms: tuple[Arm, ...]) -> Panel:
        title = (
            f"{scenario.name}: {scenario.clients:,} clients with {scenario.local_size:,} examples\n"
            f"p = {scenario.client_rate:g}, q = {scenario.sample_rate:g}; "
            f"ε = {self.epsilon:g}, δ = {self.delta:g} a round"
        )
        return Panel(title, [self._line(scenario, arm) for arm in arms])

    def _line(self, scenario: Scenario, arm: Arm) -> Line:
        label, noise = arm.label, arm.noise_multiplier
        if noise:
            label += f", σ = {noise:.2f}"
            if not arm.keeps_target:
                label += f" (proven: δ = {scenario.delta(self.epsilon, noise):.1e})"
        broken = bool(noise) and not arm.keeps_target
        return Line(arm.name, label, *self.table(scenario.name, arm.name), broken)


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
) -> ParticipationStudy:
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
    ParticipationStudy
        All curves.

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
    return ParticipationStudy(
        epsilon,
        delta,
        tuple((scenario, tuple(arms)) for scenario, arms in scenarios),
        tuple(training.curve(stops) for training in trainings),
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
        self._scenario, self._arm, self._seed, self._common = scenario, arm, seed, common
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

    def curve(self, stops: Sequence[int]) -> Curve:
        """Give the accuracies, and let go of the rest."""
        self._engine = self._model = None
        found = {after: self._accuracies[after] for after in stops}
        return Curve(self._scenario.name, self._arm.name, self._seed, found)

    def _begin(self) -> None:
        scenario, arm, train = self._scenario, self._arm, self._common.data.train
        model = self._model = self._common.model(_seeds.derived(self._seed, _MODEL))
        shares = self._shares(train)

        def gradients(parameters: Any, clients: Any, elements: Integers) -> Any:
            chosen = shares[clients, elements]
            return model.per_example_gradients(
                parameters, train.images[chosen], train.labels[chosen]
            )

        plan = RandomParticipationSGD(
            scenario.client_rate,
            scenario.sample_rate,
            self._common.clip if arm.noise_multiplier else math.inf,
            noise_multiplier=arm.noise_multiplier or None,
            noise="exact" if arm.noise_multiplier else "none",
            local_size=scenario.local_size,
            seed=_seeds.derived(self._seed, _PLAN),
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
        scenario = self._scenario
        order = np.random.default_rng(_seeds.derived(self._seed, _SHARES)).permutation(len(train))
        return order[: scenario.clients * scenario.local_size].reshape(scenario.clients, -1)

    def _settings(self) -> dict[str, Any]:
        return {
            "scenario": dataclasses.asdict(self._scenario),
            "arm": dataclasses.asdict(self._arm),
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
