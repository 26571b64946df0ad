"""Figure 5 of the fair paper: weighted aggregation of local mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import turnout
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats
from turnout.reproduce.fair.shared import REPEATS, SOURCE, legend_below
from turnout.reproduce.fair.weighted import PLACES, name_settings, normal_frequencies
from turnout.reproduce.outcome import Curve, Experiment, Finding, Outcome, Scale
from turnout.reproduce.pictures import panels
from turnout.weighting.study import PRINTED

#: Of each of four groups: 10,000 in all.
_USERS: Final = 2500
_ITEMS: Final = 30
#: Standard normal values beyond are cut off: one in 16,000.
_BOUNDS: Final = (-4.0, 4.0)
_WAYS: Final = ("inverse_variance", "unweighted")

#: One group's estimate, given its epsilon, and a seed for its users and one for the noise.
Group = Callable[[float, "int | None", "int | None"], Any]


def _repeats(scale: Scale) -> int:
    return 50 * REPEATS if scale.full else 5 * REPEATS


def _frequencies(oracle: type[turnout.frequency.FrequencyOracle]) -> Group:
    def group(epsilon: float, users: int | None, noise: int | None) -> Any:
        random = np.random.default_rng(users)
        counts = random.multinomial(_USERS, normal_frequencies(_ITEMS)).astype(np.uint64)
        kernel: Any = oracle
        return kernel(epsilon, _ITEMS).simulate(counts, seed=noise).estimate()

    return group


def _means(mechanism: type[turnout.mean.MeanMechanism]) -> Group:
    def group(epsilon: float, users: int | None, noise: int | None) -> Any:
        values = np.random.default_rng(users).normal(size=_USERS).clip(*_BOUNDS)
        return mechanism(epsilon, _BOUNDS).collect(values, seed=noise).estimate()

    return group


_MECHANISMS: Final[dict[str, Group]] = {
    "GRR": _frequencies(turnout.DirectEncoding),
    "OUE": _frequencies(turnout.OptimizedUnaryEncoding),
    "Duchi": _means(turnout.mean.Duchi),
    "PM": _means(turnout.mean.Piecewise),
}


def _distances(place: int, setting: int, scale: Scale) -> Floats:
    """Aggregate some times; squared errors, a row for each run, a column for each way."""
    group = list(_MECHANISMS.values())[place]
    epsilons = list(PRINTED.values())[setting][0]
    rows = []
    for run in track(range(_repeats(scale)), list(_MECHANISMS)[place], scale.progress):
        groups = [
            group(
                epsilon,
                derived(scale.seed, 7, place, setting, run, number, 0),
                derived(scale.seed, 7, place, setting, run, number, 1),
            )
            for number, epsilon in enumerate(epsilons)
        ]
        rows.append([_distance(turnout.weighting.combine(groups, method=way)) for way in _WAYS])
    return np.array(rows)


def _distance(estimate: Any) -> float:
    """Give the squared error about the population: its frequencies, or its mean of zero."""
    if isinstance(estimate, turnout.FrequencyEstimate):
        return float(((estimate.frequencies - normal_frequencies(_ITEMS)) ** 2).sum())
    return float(estimate.mean) ** 2


def _aggregation(scale: Scale) -> Outcome:
    curves: list[Curve] = []
    findings: list[Finding] = []
    for place, name in enumerate(_MECHANISMS):
        found = [_distances(place, setting, scale) for setting in range(len(PRINTED))]
        means = np.array([one.mean(axis=0) for one in found])
        errors = np.array([one.std(axis=0, ddof=1) / np.sqrt(len(one)) for one in found])
        for column, label in enumerate(("weighted", "unweighted (direct)")):
            y, bars = tuple(means[:, column].tolist()), tuple(errors[:, column].tolist())
            curves.append(Curve(label, PLACES, y, bars, name))
        findings += [_improvement(name, found, means, errors)]
        findings += [
            Finding.alone(
                f"{name}, {setting}: squared error, {way}",
                float(means[number, column]),
                error=float(errors[number, column]),
            )
            for number, setting in enumerate(PRINTED)
            for column, way in enumerate(("weighted", "unweighted"))
        ]
    settings = {
        "users": 4 * _USERS,
        "items": _ITEMS,
        "bounds": list(_BOUNDS),
        "epsilons": {name: list(epsilons) for name, (epsilons, _, _) in PRINTED.items()},
        "repeats": _repeats(scale),
        "paper_repeats": REPEATS,
    }
    words = (
        "Data: 10,000 standard normal values in four groups; in 30 intervals from -3 to 3 for GRR "
        "and OUE, cut at 4 for means. The paper says neither cuts nor settings: those of Table 2."
    )
    return Outcome(tuple(findings), tuple(curves), settings, words)


def _improvement(name: str, found: list[Floats], means: Floats, errors: Floats) -> Finding:
    """Judge whether weights help in every setting; both ways aggregate the same reports."""
    gains = [one[:, 1] - one[:, 0] for one in found]
    certain = [gain.mean() > 3.0 * gain.std(ddof=1) / np.sqrt(gain.size) for gain in gains]
    ratios = means[:, 1] / means[:, 0]
    least = int(ratios.argmin())
    error = ratios[least] * float(np.hypot(*(errors[least] / means[least])))
    return Finding.claimed(
        f"{name}: weighted aggregation has much less error than direct: least ratio over s1 to s4",
        float(ratios[least]),
        bool(all(certain)),
        error=float(error),
        why="in one setting the improvement is not three standard errors",
    )


def _draw(outcome: Outcome) -> Figure:
    figure = panels(
        outcome,
        "Fair paper, Figure 5: weighted aggregation of local mechanisms, 10,000 users",
        x="setting of the privacy levels",
        y="squared error",
        log=True,
        caption="Bars: two standard errors. Errors of GRR and OUE are summed over items.",
    )
    return name_settings(legend_below(figure))


EXPERIMENTS: Final = (
    Experiment(
        "fair/figure-5",
        "Weighted aggregation of GRR, OUE, Duchi's mechanism and PM",
        f"{SOURCE}, Figure 5",
        _aggregation,
        _draw,
    ),
)
