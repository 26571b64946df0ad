"""Figures 4 and 5 and Table 2 of the fair paper: groups of users who want different privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

import turnout
from turnout._extras import require
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats
from turnout_reproduce.curves import Curve, readable
from turnout_reproduce.fair.shared import (
    BARS,
    ERROR,
    REPEATS,
    experiment,
    legend_below,
    read_datasets,
    repeats_of,
)
from turnout_reproduce.outcome import Finding, Outcome, Scale
from turnout_reproduce.pictures import panels
from turnout_reproduce.studies.weighting import PRINTED, WeightingRecord, compare_weightings

#: 1000 users in four groups, in each setting.
_SIZES: Final = (250, 250, 250, 250)
_ITEMS: Final = 30
_METHODS: Final = {
    "inverse_variance": "weighted (OWA, VWA)",
    "unweighted": "unweighted (UWA)",
    "consistent": "least epsilon for all (CPA)",
    "population": "weighted, for the draw of users too",
}
_PLACES: Final = tuple(float(place) for place in range(1, len(PRINTED) + 1))

#: Table 2: the weights, the same for both distributions, and the errors for normal data.
_WEIGHTS: Final = {
    "s1": (0.0316, 0.1477, 0.3045, 0.5162),
    "s2": (0.0333, 0.0333, 0.3885, 0.5448),
    "s3": (0.0517, 0.0517, 0.0517, 0.8449),
    "s4": (0.0259, 0.3017, 0.2495, 0.4229),
}
_NORMAL: Final = {
    "s1": (4.96e-3, 5.72e-3),
    "s2": (6.26e-3, 6.51e-3),
    "s3": (8.66e-3, 1.4e-2),
    "s4": (4.02e-3, 4.17e-3),
}
_FAR: Final = 3.0


#: Of each way to aggregate what came out.
Weighted = dict[str, WeightingRecord]


def normal_frequencies(items: int) -> Floats:
    """Cut a standard normal variable into intervals of equal length from -3 to 3.

    The ends take what lies beyond.
    """
    inner = np.linspace(-_FAR, _FAR, items + 1)[1:-1]
    below = np.array([0.0, *(0.5 * math.erfc(-edge / math.sqrt(2)) for edge in inner), 1.0])
    shares: Floats = np.diff(below)
    return shares


def _studies(frequencies: Floats, scale: Scale, path: tuple[int, ...]) -> dict[str, Weighted]:
    """Aggregate in all settings."""
    return {
        name: {
            record.method: record
            for record in compare_weightings(
                epsilons,
                _SIZES,
                frequencies=frequencies,
                repeats=repeats_of(scale, 10),
                seed=derived(scale.seed, *path, place),
            ).records
        }
        for place, (name, (epsilons, _, _)) in enumerate(PRINTED.items())
    }


def _curve(studies: dict[str, Weighted], method: str, panel: str) -> Curve:
    records = [study[method] for study in studies.values()]
    found = [(record.simulated or 0.0, record.simulated_error or 0.0) for record in records]
    means, errors = zip(*found, strict=True)
    return Curve(_METHODS[method], _PLACES, means, errors, panel)


def _aggregation(scale: Scale) -> Outcome:
    data = read_datasets(scale)
    curves: list[Curve] = []
    findings: list[Finding] = []
    off = 0.0
    for place, dataset in enumerate(data.sets):
        studies = _studies(dataset.frequencies, scale, (5, place))
        curves += [_curve(studies, method, dataset.name) for method in _METHODS]
        name = dataset.name
        for words, value in (
            ("of the mechanism", "trace"),
            ("with the users'", "population_trace"),
        ):
            gains = [
                min(getattr(study[other], value) for other in ("unweighted", "consistent"))
                / getattr(study["inverse_variance"], value)
                for study in studies.values()
            ]
            findings.append(
                Finding.claimed(
                    f"{name}: weighted has the least error, {words}: least ratio of another's "
                    "exact error to its own, over s1 to s4",
                    min(gains),
                    min(gains) > 1.0,
                    why="another way has less error in one setting",
                )
            )
        better = [
            study["population"].population_trace / study["inverse_variance"].population_trace
            for study in studies.values()
        ]
        findings.append(
            Finding.alone(
                f"{name}: error with weights that count the draw of the users over that with the "
                "paper's, least over s1 to s4",
                min(better),
            )
        )
        off = max(off, _farthest(list(studies.values())))
    findings.append(_as_exact(off, scale))
    words = f"{data.words} 1000 users drawn from each, in four groups."
    return Outcome(tuple(findings), tuple(curves), _settings(scale), words)


def _as_exact(off: float, scale: Scale) -> Finding:
    return Finding.claimed(
        "the exact error with the draw of the users: largest distance of a mean of repeats from "
        "it, in standard errors",
        off,
        off < (5.5 if scale.full else 6.5),
        why="so far off no mean of correct runs is once in 10^6",
    )


def _settings(scale: Scale) -> dict[str, object]:
    return {
        "sizes": list(_SIZES),
        "epsilons": {name: list(epsilons) for name, (epsilons, _, _) in PRINTED.items()},
        "repeats": repeats_of(scale, 10),
        "paper_repeats": REPEATS,
        "error": ERROR,
    }


def _name_settings(figure: Figure) -> None:
    """Write the names of the settings below the axes."""
    legend_below(figure)
    for axes in figure.axes:
        axes.set_xticks(_PLACES, list(PRINTED))
        axes.set_xlim(_PLACES[0] - 0.3, _PLACES[-1] + 0.3)


#: Pictures over the settings.
_over_settings = partial(panels, x="setting of the privacy levels", log="y", finish=_name_settings)


def _table(scale: Scale) -> Outcome:
    uniform = np.full(_ITEMS, 1.0 / _ITEMS)
    normal = normal_frequencies(_ITEMS)
    even, bell = _studies(uniform, scale, (6, 0)), _studies(normal, scale, (6, 1))
    findings = [
        Finding.compared(
            f"{name}: weight of group {group + 1}", ours, printed, tolerance=0.5e-4 + 1e-9
        )
        for name, weights in _WEIGHTS.items()
        for group, (ours, printed) in enumerate(
            zip(even[name]["inverse_variance"].weights, weights, strict=True)
        )
    ]
    apart = max(
        abs(one - two)
        for study in even.values()
        for one, two in zip(
            study["inverse_variance"].weights, study["numerical"].weights, strict=True
        )
    )
    findings.append(
        Finding.claimed(
            "both solutions give the same weights (OWA/VWA): largest difference",
            apart,
            apart < 0.5e-4,
            why="the optimizer ends elsewhere",
        )
    )
    for name, (_, weighted, unweighted) in PRINTED.items():
        printed = {"inverse_variance": weighted, "unweighted": unweighted}
        findings += _errors(f"{name}, uniform", even[name], printed, uniform)
        printed = dict(zip(printed, _NORMAL[name], strict=True))
        findings += _errors(f"{name}, normal", bell[name], printed, normal)
    findings += _distributions(even, bell)
    findings.append(_as_exact(_farthest([*even.values(), *bell.values()]), scale))
    curves = []
    for name, printed_weights in _WEIGHTS.items():
        ours_weights = even[name]["inverse_variance"].weights
        curves += [
            Curve(f"{name}, printed", _PLACES, printed_weights, None, "weights"),
            Curve(f"{name}, ours", _PLACES, ours_weights, None, "weights"),
        ]
    curves += [*_columns(even, "uniform"), *_columns(bell, "normal")]
    words = (
        "Data: 30 items, uniform, or a standard normal variable in 30 intervals from -3 to 3; "
        "the paper does not say where it cuts."
    )
    return Outcome(tuple(findings), tuple(curves), _settings(scale), words)


def _errors(
    name: str, study: Weighted, printed: dict[str, float], frequencies: Floats
) -> list[Finding]:
    """Compare the errors of one row, which the paper has from 20 runs."""
    # Sums of squares of nearly normal errors with variances in proportion to the frequencies.
    own = math.sqrt(2 * float((frequencies**2).sum()) / REPEATS)
    least = study["inverse_variance"].trace
    found = []
    for method, value in printed.items():
        ours = study[method].trace
        wrong = (
            f"no weights give less than {least:.3g}, as equation (4) has it"
            if value < least
            else "by Lemma 3.1 the error of sampling is the same for every distribution"
            if "normal" in name
            else ""
        )
        found.append(
            Finding.compared(
                f"{name}, {_METHODS[method]}: error of the mechanism",
                ours,
                value,
                tolerance=3.0 * own * ours,
                wrong=wrong,
            )
        )
    return found


def _distributions(even: dict[str, Weighted], bell: dict[str, Weighted]) -> list[Finding]:
    """Judge whether normal data have the larger error."""
    ratios = {
        value: max(
            getattr(bell[name]["inverse_variance"], value)
            / getattr(even[name]["inverse_variance"], value)
            for name in PRINTED
        )
        for value in ("trace", "population_trace")
    }
    return [
        Finding.claimed(
            "the error is larger for normal than for uniform data: largest ratio, of the mechanism",
            ratios["trace"],
            ratios["trace"] > 1.0 + 1e-9,
            why="by Lemma 3.1 the error of sampling is the same for every distribution",
        ),
        Finding.claimed(
            "the same with the draw of the users: largest ratio",
            ratios["population_trace"],
            ratios["population_trace"] > 1.0 + 1e-9,
            why="the draw of users varies least where few items are frequent",
        ),
    ]


def _farthest(studies: list[Weighted]) -> float:
    return max(
        abs((record.simulated or 0.0) - record.population_trace)
        / (record.simulated_error or math.inf)
        for study in studies
        for record in study.values()
    )


def _columns(studies: dict[str, Weighted], distribution: str) -> list[Curve]:
    """Give the printed errors, the exact ones of the mechanism, and the simulated ones."""
    curves = []
    for place, (method, short) in enumerate(
        (("inverse_variance", "weighted"), ("unweighted", "unweighted"))
    ):
        printed = tuple(
            (PRINTED[name][1], PRINTED[name][2])[place]
            if distribution == "uniform"
            else _NORMAL[name][place]
            for name in PRINTED
        )
        exact = tuple(study[method].trace for study in studies.values())
        one = _curve(studies, method, f"{distribution} data")
        curves += [
            Curve(f"{short}, printed", _PLACES, printed, None, one.panel),
            Curve(f"{short}, mechanism", _PLACES, exact, None, one.panel),
            Curve(f"{short}, simulated with users", one.x, one.y, one.error, one.panel),
        ]
    return curves


def _draw_table(outcome: Outcome) -> Figure:
    pyplot = require("matplotlib.pyplot", "plot")
    names = list(dict.fromkeys(curve.panel for curve in outcome.curves))
    figure, axes = pyplot.subplots(1, len(names), figsize=(14.0, 4.8))
    for name, ax in zip(names, axes, strict=True):
        for curve in outcome.curves:
            if curve.panel == name:
                _draw_cells(ax, curve)
        ax.set_title(name, loc="left", fontsize="medium")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(
            frameon=False,
            fontsize="small",
            loc="upper center",
            bbox_to_anchor=(0.45, -0.16),
            ncols=2,
        )
    axes[0].set(xlabel="group", ylabel="weight", xticks=_PLACES)
    both = [limit for ax in axes[1:] for limit in ax.get_ylim()]
    for ax in axes[1:]:
        ax.set(xlabel="setting of the privacy levels", ylabel=ERROR, yscale="log")
        ax.set_ylim(0.8e-3, 1.1 * max(both))
        ax.set_xticks(_PLACES, list(PRINTED))
        readable(ax.yaxis)
    figure.suptitle("Fair paper, Table 2: printed and ours", x=0.01, ha="left", fontsize="large")
    words = f"Bars: two standard errors. {outcome.data}"
    figure.text(0.01, 0.01, words, ha="left", va="bottom", fontsize="x-small", wrap=True)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure  # type: ignore[no-any-return]


def _draw_cells(ax: Any, curve: Curve) -> None:
    """Draw what is printed as a cross, what is exact as a ring, what is simulated with bars."""
    colors = {"s1": "C0", "s2": "C1", "s3": "C2", "s4": "C3", "weighted": "C0", "unweighted": "C1"}
    color = colors[curve.label.partition(",")[0]]
    if curve.error is not None:
        bars = [2.0 * error for error in curve.error]
        ax.errorbar(
            curve.x, curve.y, bars, fmt=".", color=color, markersize=4, capsize=4, linewidth=1,
            label=curve.label,
        )  # fmt: skip
        return
    marker = "x" if curve.label.endswith("printed") else "o"
    ax.plot(
        curve.x, curve.y, marker, color=color, markersize=8, fillstyle="none", label=curve.label
    )


#: Of each of four groups: 10,000 in all.
_GROUP: Final = 2500
#: Standard normal values beyond are cut off: one in 16,000.
_BOUNDS: Final = (-4.0, 4.0)
_WAYS: Final = ("inverse_variance", "unweighted")

#: One group's estimate, given its epsilon, and a seed for its users and one for the noise.
Group = Callable[[float, "int | None", "int | None"], Any]


def _frequencies(oracle: type[turnout.FrequencyOracle]) -> Group:
    def group(epsilon: float, users: int | None, noise: int | None) -> Any:
        random = np.random.default_rng(users)
        counts = random.multinomial(_GROUP, normal_frequencies(_ITEMS)).astype(np.uint64)
        kernel: Any = oracle
        return kernel(epsilon, _ITEMS).simulate(counts, seed=noise).estimate()

    return group


def _means(mechanism: type[turnout.mean.MeanMechanism]) -> Group:
    def group(epsilon: float, users: int | None, noise: int | None) -> Any:
        values = np.random.default_rng(users).normal(size=_GROUP).clip(*_BOUNDS)
        return mechanism(epsilon, _BOUNDS).collect(values, seed=noise).estimate()

    return group


_MECHANISMS: Final[dict[str, Group]] = {
    "GRR": _frequencies(turnout.DirectEncoding),
    "OUE": _frequencies(turnout.OptimizedUnaryEncoding),
    "Duchi": _means(turnout.mean.Duchi),
    "PM": _means(turnout.mean.Piecewise),
}


def _local_distances(place: int, setting: int, scale: Scale) -> Floats:
    """Aggregate some times; squared errors, a row for each run, a column for each way."""
    group = list(_MECHANISMS.values())[place]
    epsilons = list(PRINTED.values())[setting][0]
    rows = []
    for run in track(range(repeats_of(scale, 5)), list(_MECHANISMS)[place], scale.progress):
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


def _local_aggregation(scale: Scale) -> Outcome:
    curves: list[Curve] = []
    findings: list[Finding] = []
    for place, name in enumerate(_MECHANISMS):
        found = [_local_distances(place, setting, scale) for setting in range(len(PRINTED))]
        means = np.array([one.mean(axis=0) for one in found])
        errors = np.array([one.std(axis=0, ddof=1) / np.sqrt(len(one)) for one in found])
        for column, label in enumerate(("weighted", "unweighted (direct)")):
            y, bars = tuple(means[:, column].tolist()), tuple(errors[:, column].tolist())
            curves.append(Curve(label, _PLACES, y, bars, name))
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
        "users": 4 * _GROUP,
        "items": _ITEMS,
        "bounds": list(_BOUNDS),
        "epsilons": {name: list(epsilons) for name, (epsilons, _, _) in PRINTED.items()},
        "repeats": repeats_of(scale, 5),
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


EXPERIMENTS: Final = (
    experiment(
        "Figure 4",
        "Weighted, unweighted and consistent-privacy aggregation",
        _aggregation,
        partial(
            _over_settings,
            title="Fair paper, Figure 4: weighted aggregation of sampled counts, 1000 users",
            y=ERROR,
            caption=BARS,
        ),
    ),
    experiment(
        "Figure 5",
        "Weighted aggregation of GRR, OUE, Duchi's mechanism and PM",
        _local_aggregation,
        partial(
            _over_settings,
            title="Fair paper, Figure 5: weighted aggregation of local mechanisms, 10,000 users",
            y="squared error",
            caption=f"{BARS} Errors of GRR and OUE are summed over items.",
        ),
    ),
    experiment(
        "Table 2", "Weights and errors of groups with different privacy levels", _table, _draw_table
    ),
)
