"""Noise levels and Figures 6 and 7 of the participation paper: accuracy at each analysis's noise.

Hasircioglu, Gunduz, "Privacy Amplification via Random Participation in Federated Learning",
sections 6.1 and 6.2. The paper prints the noise; it trains a network on EMNIST by class and prints
neither accuracies nor how many rounds it trains.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from turnout._seeds import derived
from turnout._types import Array, Figure, Floats
from turnout.accounting import LocalSampling, WeakClientSampling
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.paper import theorem_4_1_delta
from turnout.accounting.participation import RandomParticipation
from turnout_reproduce.curves import Curve
from turnout_reproduce.datasets import Images, ImageSplit, read_images, read_mnist
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.participation_curves import SOURCE, real_delta
from turnout_reproduce.pictures import legend_beside, panels
from turnout_reproduce.studies.study import Study
from turnout_reproduce.studies.trainings import TrainingRecord, compare_trainings
from turnout_reproduce.training.network import ConvolutionalNetwork
from turnout_reproduce.training.scenarios import Arm, Scenario, arms_of

_BATCH: Final = 70.0
#: What a round may cost in both experiments.
EPSILON, DELTA = 0.015, 1e-6
_SCHEMES: Final = ("proposed", "WCS", "OLS")


@dataclasses.dataclass(frozen=True)
class Section:
    """A section of the paper: who takes part, and what it prints.

    Attributes
    ----------
    number
        Its number.
    scenario
        Who takes part.
    noise
        The printed noise of each scheme and the unit of its last digit.
    """

    number: str
    scenario: Scenario
    noise: Mapping[str, tuple[float, float]]


SECTIONS: Final = (
    Section(
        "6.1", Scenario("many clients", 23264, 30, 0.001, 0.1),
        {"proposed": (1.065, 1e-3), "WCS": (7.65, 1e-2), "OLS": (22.4, 1e-1)},
    ),
    Section(
        "6.2", Scenario("few clients", 697, 1000, 0.1, 0.001),
        {"proposed": (0.646, 1e-3), "WCS": (0.873, 1e-3), "OLS": (1.103, 1e-3)},
    ),
)  # fmt: skip
_CLASSES: Final = 62
_SIDE: Final = 8
_TESTED: Final = 5_000
#: Learning rates of the paper's network (appendix B.2), and of the linear model: public constants.
_PAPER_RATES: Final = {
    "6.1": {"none": 0.002, "printed": 0.002, "sound": 0.002, "wcs": 0.0001, "ols": 0.0001},
    "6.2": dict.fromkeys(("none", "printed", "sound", "wcs", "ols"), 0.002),
}
_LINEAR_RATES: Final = {
    "6.1": {"none": 0.2, "printed": 0.1, "sound": 0.1, "wcs": 0.05, "ols": 0.02},
    "6.2": dict.fromkeys(("none", "printed", "sound", "wcs", "ols"), 0.1),
}
#: MNIST has so many clients' examples; rates for the paper's average batch.
_MNIST: Final = {"6.1": (2000, 0.0117, 0.1), "6.2": (60, 0.117, 0.01)}
#: Rounds, rounds between looks at the accuracy, and repeats.
_QUICK, _FULL = (100, 10, 3), (2000, 100, 5)


def _noise_levels(scale: Scale) -> Outcome:
    findings: list[Finding] = []
    curves: list[Curve] = []
    for printed in SECTIONS:
        needed = _needed(printed)
        findings += _proposed(printed, needed)
        findings += _baselines(printed, needed)
        batch = printed.scenario.average_batch
        findings.append(
            Finding.compared(f"{printed.number}: average batch", batch, _BATCH, tolerance=0.5)
        )
        places = tuple(float(place) for place in range(len(_SCHEMES)))
        panel = f"section {printed.number}: {printed.scenario.name}"
        given = tuple(printed.noise[scheme][0] for scheme in _SCHEMES)
        ours = tuple(needed[scheme] for scheme in ("sound", "wcs", "ols"))
        curves.append(Curve("printed", places, given, panel=panel))
        curves.append(Curve("needed", places, ours, panel=panel))
        if "unsound" in needed:
            curves.append(
                Curve("asked for by equation (6)", (0.0,), (needed["unsound"],), panel=panel)
            )
    return Outcome(
        tuple(findings),
        tuple(curves),
        {
            "epsilon": EPSILON,
            "delta": DELTA,
            "scenarios": {
                printed.number: dataclasses.asdict(printed.scenario) for printed in SECTIONS
            },
            "exact": True,
        },
        "Computed without chance, for epsilon = 0.015 and delta = 1e-6 in each round.",
    )


def _needed(printed: Section) -> dict[str, float]:
    """Give the noise that each analysis asks for; none for Theorem 4.1 where it asks for none."""
    wanted = dict.fromkeys(("unsound", "sound", "wcs", "ols"), 1.0)
    arms = arms_of(printed.scenario, EPSILON, DELTA, wanted)
    return {arm.name: arm.noise_multiplier for arm in arms}


def _proposed(printed: Section, needed: Mapping[str, float]) -> list[Finding]:
    """Judge the printed noise of Theorem 4.1."""
    section = printed.number
    noise, unit = printed.noise["proposed"]
    who = printed.scenario
    rates, size = (who.client_rate, who.sample_rate), who.local_size
    mechanism = RandomParticipation(*rates, size, noise)
    real, bound = real_delta(mechanism, EPSILON), float(mechanism.delta(EPSILON))
    claimed = float(theorem_4_1_delta(EPSILON, *rates, size, noise))
    return [
        Finding.compared(
            f"{section}, proposed: noise that the sound bound needs",
            needed["sound"],
            noise,
            tolerance=unit,
            wrong=f"Theorem 4.1 is no bound: at {noise} a client that can exist has delta "
            f"{real:.3g}",
        ),
        Finding.compared(
            f"{section}, proposed: noise that equation (6) asks for",
            needed["unsound"],
            noise,
            tolerance=unit,
            wrong=f"the printed noise does not solve equation (6), whose delta is "
            f"{claimed:.3g} there",
        )
        if "unsound" in needed
        else Finding.compared(
            f"{section}, proposed: delta of equation (6) at {noise}",
            claimed,
            DELTA,
            wrong="the printed noise does not solve equation (6), which is below 1e-6 for "
            "every noise that was tried and so asks for none",
        ),
        Finding.compared(
            f"{section}, proposed: delta of a client that can exist at {noise}, at least",
            real,
            DELTA,
            wrong=f"the printed noise does not keep delta: {real / DELTA:.3g} times as much",
        ),
        Finding.alone(f"{section}, proposed: sound bound of delta at {noise}", bound),
    ]


def _baselines(printed: Section, needed: Mapping[str, float]) -> list[Finding]:
    """Judge the printed noise of weak client sampling and only local sampling."""
    found, who = [], printed.scenario
    kinds: tuple[tuple[str, Mechanism], ...] = (
        ("WCS", WeakClientSampling(who.client_rate, who.sample_rate, 1.0)),
        ("OLS", LocalSampling(who.sample_rate, 1.0)),
    )
    for scheme, mechanism in kinds:
        noise, unit = printed.noise[scheme]
        spent = float(mechanism.replace(noise_multiplier=noise).delta(EPSILON))
        found += [
            Finding.compared(
                f"{printed.number}, {scheme}: noise needed",
                needed[scheme.lower()],
                noise,
                tolerance=unit,
            ),
            Finding.compared(
                f"{printed.number}, {scheme}: delta at {noise}",
                spent,
                DELTA,
                wrong=f"the printed noise is below what is needed: delta is missed by "
                f"{spent / DELTA - 1:.1%}",
            ),
        ]
    return found


def _mark_points(figure: Figure) -> None:
    marks = {"printed": ("x", "C3"), "needed": ("o", "C0")}
    for ax in figure.axes:
        for line in ax.get_lines():
            mark, colour = marks.get(str(line.get_label()), ("^", "C1"))
            line.set(marker=mark, color=colour, markersize=7, linewidth=0, fillstyle="none")
        ax.set_xticks(range(len(_SCHEMES)), _SCHEMES)
        ax.set_xlim(-0.4, len(_SCHEMES) - 0.6)
        ax.set_yticks([0.5, 1, 2, 5, 10, 20])
        ax.yaxis.minorticks_off()
        ax.legend(frameon=False, fontsize="small", loc="upper left")


Trainings = Study[TrainingRecord]


class _Data(NamedTuple):
    split: ImageSplit
    name: str
    words: str


class _Linear:
    """Softmax regression: what is trained where the paper's network would take too long."""

    def __init__(self, classes: int, pixels: int) -> None:
        self._shape = (pixels, classes)

    def initial_parameters(self) -> dict[str, Floats]:
        return {"weights": np.zeros(self._shape), "bias": np.zeros(self._shape[1])}

    def per_example_gradients(
        self, parameters: Any, images: Array, labels: Array, /
    ) -> dict[str, Floats]:
        pixels = _pixels(images)
        scores = pixels @ parameters["weights"] + parameters["bias"]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        errors = odds / odds.sum(axis=1, keepdims=True)
        errors[np.arange(len(labels)), labels] -= 1.0
        return {"weights": pixels[:, :, None] * errors[:, None, :], "bias": errors}

    def accuracy(self, parameters: Any, images: Array, labels: Array, /) -> float:
        scores = _pixels(images) @ parameters["weights"] + parameters["bias"]
        return float((scores.argmax(axis=1) == labels).mean())


def _pixels(images: Array) -> Floats:
    return np.asarray(images.reshape(len(images), -1) / 255.0 - 0.5)


def _stand_in(examples: int, seed: int) -> ImageSplit:
    """Draw pictures of 62 classes: a pattern for each class, and noise."""
    random = np.random.default_rng(derived(seed, 0))
    patterns = random.normal(128.0, 35.0, (_CLASSES, _SIDE, _SIDE)).astype(np.float32)

    def images(number: int) -> Images:
        labels = random.integers(0, _CLASSES, number).astype(np.uint8)
        pixels = random.standard_normal((number, _SIDE, _SIDE), dtype=np.float32)
        pixels *= 40.0
        pixels += patterns[labels]
        return Images(np.clip(pixels, 0.0, 255.0).astype(np.uint8), labels)

    return ImageSplit(images(examples), images(_TESTED))


def _data(section: Section, scale: Scale) -> _Data:
    """Read EMNIST by class or MNIST from the folder; else draw a stand-in."""
    folder = scale.data
    if folder is not None:
        emnist = [
            _found(folder, f"emnist-byclass-{part}-{kind}")
            for part in ("train", "test")
            for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
        ]
        places = [place for place in emnist if place is not None]
        if len(places) == len(emnist):
            split = ImageSplit(
                read_images(places[0], places[1], transposed=True),
                read_images(places[2], places[3], transposed=True),
            )
            return _Data(split, "EMNIST", "EMNIST by class, as the paper.")
        name = "train-images-idx3-ubyte"
        if _found(folder, name) or _found(folder, f"mnist-{name}"):
            words = "MNIST stands in for EMNIST by class, with rates for the same average batch."
            return _Data(read_mnist(folder), "MNIST", words)
    needed = section.scenario.clients * section.scenario.local_size
    return _Data(
        _stand_in(needed, scale.seed),
        "drawn",
        f"{needed:,} drawn pictures of {_CLASSES} classes stand in for EMNIST by class.",
    )


def _found(folder: Path, name: str) -> Path | None:
    for place in (folder / name, folder / f"{name}.gz"):
        if place.is_file():
            return place
    return None


def _arms(section: Section, data: _Data, rates: dict[str, float]) -> tuple[Scenario, list[Arm]]:
    """Give the scenario and the noise of each analysis; the printed one too if it belongs there."""
    scenario = section.scenario
    if data.name == "MNIST":
        clients, p, q = _MNIST[section.number]
        scenario = dataclasses.replace(scenario, clients=clients, client_rate=p, sample_rate=q)
    known = {name: rate for name, rate in rates.items() if name != "printed"}
    arms = arms_of(scenario, EPSILON, DELTA, known)
    if data.name != "MNIST":
        noise = section.noise["proposed"][0]
        printed = Arm("printed", "printed noise, no guarantee", noise, rates["printed"], False)
        arms.insert(1, printed)
    return scenario, arms


def _run(section: Section, scale: Scale) -> Outcome:
    data = _data(section, scale)
    network = scale.full and data.name != "drawn"
    classes = 10 if data.name == "MNIST" else _CLASSES
    pixels = int(np.prod(data.split.train.images.shape[1:]))
    rates = (_PAPER_RATES if network else _LINEAR_RATES)[section.number]
    scenario, arms = _arms(section, data, rates)
    rounds, every, repeats = _FULL if scale.full else _QUICK

    def model(seed: int) -> Any:
        return ConvolutionalNetwork(classes, seed=seed) if network else _Linear(classes, pixels)

    study = compare_trainings(
        [(scenario, arms)],
        data.split,
        model,
        epsilon=EPSILON,
        delta=DELTA,
        rounds=rounds,
        every=every,
        seeds=[derived(scale.seed, 1, repeat) or 0 for repeat in range(repeats)],
        progress=scale.progress,
    )
    curves = [dataclasses.replace(curve, panel="") for curve in study.picture.curves]
    return Outcome(
        tuple(_findings(section, study, [arm.name for arm in arms])),
        tuple(curves),
        {
            **dataclasses.asdict(scenario),
            "model": "convolutional network" if network else "softmax regression",
            "data": data.name,
            "rounds": rounds,
            "repeats": repeats,
            "momentum": 0.9,
            "learning rates": {arm.name: arm.learning_rate for arm in arms},
            "noise": {arm.name: arm.noise_multiplier for arm in arms},
        },
        f"{data.words} "
        + ("" if network else "Softmax regression stands in for the network. ")
        + f"The {rounds} rounds are ours.",
    )


def _findings(section: Section, study: Trainings, arms: list[str]) -> list[Finding]:
    found = []
    for arm in arms:
        last = _last(study, arm)
        found.append(Finding.alone(f"{arm}: accuracy", last.accuracy, error=last.accuracy_error))
    claims = [("the scheme is better than OLS", "sound", "ols")]
    if section.number == "6.1":
        claims += [
            ("the scheme is better than WCS", "sound", "wcs"),
            ("WCS is better than OLS", "wcs", "ols"),
        ]
    else:
        gained, error = _gain(study, "sound", "wcs")
        found.append(Finding.alone("sound - wcs", gained, error=error))
    for words, better, worse in claims:
        gained, error = _gain(study, better, worse)
        what = f"{words}, at noise that keeps the guarantee: {better} - {worse}"
        if abs(gained) <= 3.0 * error:
            why = "not told apart by so few repeats"
            found.append(Finding(what, gained, error, None, "differs", why))
        else:
            found.append(
                Finding.claimed(what, gained, gained > 0.0, error=error, why="it is worse")
            )
    if "printed" in arms:
        gained, error = _gain(study, "printed", "sound")
        what = "what the printed noise gains by breaking its guarantee: printed - sound"
        found.append(Finding.alone(what, gained, error=error))
    return found


def _last(study: Trainings, arm: str) -> TrainingRecord:
    return study.find(arm=arm, rounds=max(row.rounds for row in study.records))


def _gain(study: Trainings, better: str, worse: str) -> tuple[float, float]:
    """Give the mean difference of the last accuracies of the same seeds, and its error."""
    gains = np.subtract(_last(study, better).accuracies, _last(study, worse).accuracies)
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))


def _finish(figure: Figure) -> None:
    figure.set_size_inches(9.6, 4.8)
    legend_beside(figure)


def _experiment(number: int, section: Section) -> Experiment:
    shows = f"accuracy with {section.scenario.name}"
    return Experiment(
        f"participation/figure-{number}",
        shows[0].upper() + shows[1:],
        f"{SOURCE}, Figure {number}",
        functools.partial(_run, section),
        functools.partial(
            panels,
            title=f"Participation paper, Figure {number}: {shows}",
            x="rounds",
            y="test accuracy",
            caption="Bars: two standard errors.",
            finish=_finish,
        ),
    )


EXPERIMENTS: Final = (
    _experiment(6, SECTIONS[0]),
    _experiment(7, SECTIONS[1]),
    Experiment(
        "participation/noise-levels",
        "Noise for epsilon = 0.015 and delta = 1e-6 in each round",
        f"{SOURCE}, sections 6.1 and 6.2",
        _noise_levels,
        functools.partial(
            panels,
            title="Participation paper, sections 6.1 and 6.2: noise levels",
            x="scheme",
            y="noise sigma / C",
            log="y",
            finish=_mark_points,
        ),
    ),
)
