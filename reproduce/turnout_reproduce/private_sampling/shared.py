"""What the studies of private samplers share: sizes, samplers, claims and the picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout._extras import require
from turnout._seeds import derived
from turnout._types import Figure, Floats
from turnout.samplers.density import MollifiedDensity
from turnout_reproduce.baselines.bernstein import BernsteinSampler
from turnout_reproduce.baselines.kernel import PrivateKernelDensity
from turnout_reproduce.boosting.sampler import MollifiedBoosting
from turnout_reproduce.boosting.weak_learner import LOG_TWO, default_learner
from turnout_reproduce.curves import Curve
from turnout_reproduce.measures.targets import FloorOfMollifier, PublicReference
from turnout_reproduce.outcome import Finding, Outcome, Scale
from turnout_reproduce.studies.samplers import SamplerRecord, compare_samplers

SOURCE: Final = "Husain, Balle, Cranko, Nock: Local Differential Privacy for Sampling"

#: What legends call the samplers.
FLOOR: Final = "floor: projection of the truth"
DENSITY: Final = "MollifiedDensity"
MBDE: Final = "MBDE"
DPB: Final = "DPB (Bernstein)"
KERNEL: Final = "private kernel density"
REFERENCE: Final = "reference alone"

NLL: Final = "negative log-likelihood, nats"
COVERAGE: Final = "mode coverage at 95 %"


#: Projections are normalised to about 1e-4: nothing is below the floor by less.
_NORMALIZED: Final = 2e-4

Found = dict[tuple[str, float], SamplerRecord]


@dataclass(frozen=True)
class Sizes:
    """How large a study is.

    Attributes
    ----------
    epsilons, records, fresh, repeats, rounds
        As for a comparison of samplers; the most rounds.
    released
        Repeats of the baselines, which vary much and are fast.
    passes
        How often a network sees its data; as the library does if 0.
    """

    epsilons: tuple[float, ...]
    records: int
    fresh: int
    repeats: int
    released: int
    rounds: int
    passes: int = 0


@dataclass(frozen=True)
class Study:
    """One target with one reference: a column of a picture.

    Attributes
    ----------
    name
        What stands above the column; empty if there is only one.
    make_target
        Makes the target from a seed.
    box
        The public bounds that the baselines are given.
    bounds
        Where the densest part of a sampler is looked for.
    reference
        The mollified samplers' reference; the standard normal if None.
    """

    name: str
    make_target: Callable[[int], Any]
    box: tuple[float, float]
    bounds: Any
    reference: Any = None


def sizes_of(
    scale: Scale,
    records: int,
    repeats: int,
    *,
    fixed: bool = True,
    passes: int = 25,
    quick: tuple[float, ...] = (1.0, 5.0, 10.0),
) -> Sizes:
    """Give the sizes: ``records`` in a full run; in a quick one the rest, and epsilons ``quick``.

    A target that is ``fixed`` is the same in all repeats, so that samplers may have different ones.
    """
    if scale.full:
        return Sizes((0.1, 1.0, 2.0, 5.0, 10.0), records, 10_000, 20, 100 if fixed else 20, 10)
    released = 4 * repeats if fixed else repeats
    return Sizes(quick, 500, 4_000, repeats, released, 3, passes)


def rounds_of(epsilon: float, most: int) -> int:
    """Leave out the rounds of boosting that would add less than 1 % to all weights."""
    base = epsilon / (epsilon + 4.0 * LOG_TWO)
    return min(most, math.ceil(math.log(0.01) / math.log(base)))


def _contenders(study: Study, sizes: Sizes) -> dict[str, Callable[[float], Any]]:
    learner = estimator = None
    if sizes.passes:
        learner = default_learner(2 * sizes.records, None).set_params(max_iter=sizes.passes)
        mixture = require("sklearn.mixture", "samplers").GaussianMixture
        estimator = mixture(8, reg_covar=1e-5, init_params="k-means++")
    reference = study.reference
    return {
        FLOOR: lambda epsilon: FloorOfMollifier(epsilon, reference),
        DENSITY: lambda epsilon: MollifiedDensity(
            epsilon, reference=reference, estimator=estimator
        ),
        MBDE: lambda epsilon: MollifiedBoosting(
            epsilon,
            reference=reference,
            n_rounds=rounds_of(epsilon, sizes.rounds),
            weak_learner=learner,
        ),
        DPB: lambda epsilon: BernsteinSampler(epsilon, bounds=study.box),
        KERNEL: lambda epsilon: PrivateKernelDensity(epsilon, bounds=study.box),
        REFERENCE: lambda _: PublicReference(reference),
    }


def compared(study: Study, sizes: Sizes, scale: Scale, place: int) -> Found:
    """Run all samplers on a target; every epsilon protects one person's whole data set."""
    made = _contenders(study, sizes)
    baselines = {name: made.pop(name) for name in (DPB, KERNEL)}
    found: Found = {}
    for samplers, repeats in ((made, sizes.repeats), (baselines, sizes.released)):
        comparison = compare_samplers(
            samplers,
            study.make_target,
            epsilons=sizes.epsilons,
            n_records=sizes.records,
            n_fresh=sizes.fresh,
            repeats=repeats,
            bounds=study.bounds,
            progress=scale.progress,
            seed=derived(scale.seed, place) or 0,
        )
        found |= {(row.sampler, row.epsilon): row for row in comparison.records}
    return found


def curves(study: Study, found: Found, sizes: Sizes) -> list[Curve]:
    """Give negative log-likelihood and mode coverage of each sampler against epsilon."""
    result = []
    for metric, words in (("nll", NLL), ("coverage", COVERAGE)):
        for name in (FLOOR, DENSITY, MBDE, DPB, KERNEL, REFERENCE):
            rows = [found[name, epsilon] for epsilon in sizes.epsilons]
            means = tuple(getattr(row, metric) for row in rows)
            errors = tuple(getattr(row, f"{metric}_error") for row in rows)
            panel = f"{study.name}: {words}"
            result.append(Curve(name, sizes.epsilons, means, errors, panel))
    return result


def told(what: str, value: float, error: float, why: str) -> Finding:
    """Judge a claim that holds if a value is above 0: by three standard errors, or not at all."""
    if abs(value) <= 3.0 * error:
        return Finding(what, value, error, None, "differs", "not told apart by so few repeats")
    return Finding.claimed(what, value, value > 0.0, error=error, why=why)


def _above(one: Floats, other: Floats) -> tuple[float, float]:
    """Give the mean of the first above that of the second, and its standard error.

    Repeats of one number share targets and records.
    """
    if one.size == other.size:
        pairs = one - other
        return float(pairs.mean()), float(pairs.std(ddof=1) / math.sqrt(pairs.size))
    error = math.sqrt(one.var(ddof=1) / one.size + other.var(ddof=1) / other.size)
    return float(one.mean() - other.mean()), error


def claims(study: Study, found: Found, sizes: Sizes, why: Mapping[str, str]) -> list[Finding]:
    """Judge what section IV says of likelihoods, and the floor, on one target.

    Parameters
    ----------
    study, found, sizes
        What was run.
    why
        Why a claim (``"better"``, ``"steadier"``) does not hold, if it does not.
    """
    begin = f"{study.name}: " if study.name else ""
    first, before, last = sizes.epsilons[0], *sizes.epsilons[-2:]
    better = why.get("better", "it is not")

    def losses(name: str, epsilon: float) -> Floats:
        return np.array(found[name, epsilon].losses)

    def least(name: str, other: str) -> tuple[float, float]:
        return min(
            _above(losses(name, epsilon), losses(other, epsilon)) for epsilon in sizes.epsilons
        )

    result = []
    for epsilon in (1.0, last):
        row = found[MBDE, epsilon]
        what = f"{begin}NLL of MBDE at epsilon = {epsilon:g}"
        result.append(Finding.alone(what, row.nll, error=row.nll_error))
    for name in (DENSITY, MBDE):
        value, error = least(name, FLOOR)
        result.append(
            Finding.claimed(
                f"{begin}{name} is nowhere below the floor: least NLL above it",
                value,
                value > -3.0 * error - _NORMALIZED,
                error=error,
                why="a density outside of the mollifier",
            )
        )
    falls = [
        _above(losses(MBDE, low), losses(MBDE, high))
        for low, high in zip(sizes.epsilons, sizes.epsilons[1:], strict=False)
    ]
    what = f"{begin}the NLL of MBDE falls as epsilon grows: least fall"
    result.append(told(what, *min(falls), "it does not"))
    for name in (DPB, KERNEL):
        what = f"{begin}MBDE is better than {name}: least NLL of the latter above it"
        result.append(told(what, *least(name, MBDE), better))
    what = f"{begin}MBDE at epsilon = {before:g} is as good as DPB at {last:g}: NLL of DPB above it"
    result.append(told(what, *_above(losses(DPB, last), losses(MBDE, before)), better))
    own, own_error = _above(losses(MBDE, before), losses(MBDE, last))
    other, other_error = _above(losses(DPB, before), losses(DPB, last))
    what = (
        f"{begin}the NLL of DPB is flat where that of MBDE falls: how much less it falls from "
        f"epsilon = {before:g} to {last:g}"
    )
    error = math.hypot(own_error, other_error)
    result.append(told(what, own - other, error, "it falls more"))
    spread = [
        0.5 * math.log(np.mean([losses(name, epsilon).var(ddof=1) for epsilon in sizes.epsilons]))
        for name in (DPB, MBDE)
    ]
    # A standard deviation of n repeats has a relative error of about (2 (n - 1))^-1/2.
    error = math.sqrt(sum(0.5 / (n - 1) for n in (sizes.repeats, sizes.released)))
    what = (
        f"{begin}MBDE has much smaller standard deviations than DPB, epsilon {first:g} to "
        f"{last:g}: log of the ratio"
    )
    result.append(told(what, spread[0] - spread[1], error, why.get("steadier", "they are not")))
    return result


def settings_of(sizes: Sizes, studies: Sequence[Study]) -> dict[str, Any]:
    """Say what decides the result."""
    return {
        "epsilons": list(sizes.epsilons),
        "records": sizes.records,
        "fresh records": sizes.fresh,
        "repeats": sizes.repeats,
        "repeats of the baselines": sizes.released,
        "most rounds": sizes.rounds,
        "passes of training": sizes.passes or "25 to 200, fewer for more records",
        "estimate of MollifiedDensity": "8 Gaussians" if sizes.passes else "chosen by BIC",
        "unit": "all records of one person",
        "boxes of the baselines": {study.name: list(study.box) for study in studies},
    }


def draw(outcome: Outcome, *, title: str) -> Figure:
    """Draw likelihood above coverage, a column for each target or reference."""
    pyplot = require("matplotlib.pyplot", "plot")
    columns = list(dict.fromkeys(curve.panel.rpartition(": ")[0] for curve in outcome.curves))
    labels = list(dict.fromkeys(curve.label for curve in outcome.curves))
    figure, axes = pyplot.subplots(
        2, len(columns), figsize=(4.3 * len(columns) + 2.4, 6.6), sharex=True, squeeze=False
    )
    for curve in outcome.curves:
        column, _, metric = curve.panel.rpartition(": ")
        ax = axes[(NLL, COVERAGE).index(metric)][columns.index(column)]
        place = labels.index(curve.label)
        ax.errorbar(
            curve.x, curve.y, [2.0 * error for error in curve.error or ()],
            fmt="--" if curve.label in (FLOOR, REFERENCE) else "o-", color=f"C{place}",
            markersize=3, linewidth=1, capsize=2, zorder=3 - 0.1 * place, label=curve.label,
        )  # fmt: skip
    for place, column in enumerate(columns):
        axes[0][place].set_title(column, loc="left", fontsize="medium")
        axes[1][place].set_xlabel("epsilon of one draw, all records of a person")
        axes[1][place].set_ylim(-0.05, 1.05)
    for row, metric in enumerate((NLL, COVERAGE)):
        axes[row][0].set_ylabel(metric)
        for ax in axes[row]:
            ax.set_xscale("log")
            ax.set_xticks(outcome.curves[0].x)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.minorticks_off()
            ax.grid(alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, x=0.01, ha="left", fontsize="large")
    words = f"Bars: two standard errors. {outcome.data}"
    figure.text(0.01, 0.01, words, ha="left", va="bottom", fontsize="x-small", wrap=True)
    figure.tight_layout(rect=(0, 0.05, 1 - 2.2 / figure.get_figwidth(), 1))
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(
        handles, names, frameon=False, fontsize="small", loc="upper right",
        bbox_to_anchor=(1.0, 0.93),
    )  # fmt: skip
    return figure  # type: ignore[no-any-return]
