"""The experiments of section III: a mixture on the line, random Gaussians, a ring in the plane."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Final

from turnout.samplers.reference import Uniform
from turnout_reproduce.curves import Curve
from turnout_reproduce.measures.metrics import kl_divergence
from turnout_reproduce.measures.targets import (
    GaussianMixtureTarget,
    random_gaussians_1d,
    ring_of_gaussians,
    seed_mixture,
)
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.private_sampling.shared import (
    MBDE,
    REFERENCE,
    SOURCE,
    Found,
    Study,
    claims,
    compared,
    curves,
    draw,
    settings_of,
    sizes_of,
    told,
)

#: The two readings of N(m, s) in 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)).
READINGS: Final = {
    "s is a standard deviation": seed_mixture(),
    "s is a variance": GaussianMixtureTarget([0.3, 0.5, 0.7], [0.1, 0.1**0.5, 0.1**0.5]),
}


#: Where Q0 leaves less than this uncovered, nothing can cover much more.
_ROOM: Final = 0.02


def entropy_of(target: GaussianMixtureTarget) -> float:
    """Compute the entropy on the line: what no negative log-likelihood can be below."""
    low, high = target.bounds[0]
    side = (low - 1.0, high + 1.0)
    # Against the uniform density of the box, which is a constant.
    width = math.log(side[1] - side[0])
    return width - float(kl_divergence(target, Uniform(*side), bounds=side, tolerance=1e-9))


def _coverage(found: Found, name: str, epsilon: float) -> tuple[float, float]:
    row = found[name, epsilon]
    return row.coverage, row.coverage_error


def _gained(begin: str, found: Found, last: float, why: str) -> list[Finding]:
    """Judge the mode coverage, which is said to be much better than that of Q0."""
    (own, own_error), (alone, alone_error) = (
        _coverage(found, name, last) for name in (MBDE, REFERENCE)
    )
    what = f"{begin}coverage of MBDE at epsilon = {last:g} is significantly above that of Q0: gain"
    gain, error = own - alone, math.hypot(own_error, alone_error)
    whole = Finding.alone(f"{begin}coverage of Q0 alone", alone, error=alone_error)
    if 1.0 - alone + 3.0 * alone_error < _ROOM:
        return [whole, Finding.claimed(what, gain, gain > 3.0 * error, error=error, why=why)]
    return [whole, told(what, gain, error, why)]


def _of_ours(findings: list[Finding]) -> list[Finding]:
    """Say of claims that fail where the text has no such setting that they differ, no more."""
    return [
        replace(finding, verdict="differs", why=f"in a setting of ours: {finding.why}")
        if finding.verdict == "paper is wrong"
        else finding
        for finding in findings
    ]


def _mixture(scale: Scale) -> Outcome:
    sizes = sizes_of(scale, 10_000, 3)
    shown: list[Curve] = []
    findings: list[Finding] = []
    studies = [
        Study(name, lambda _, target=target: target, (-1.0, 2.0), (-8.0, 8.0))  # type: ignore[misc]
        for name, target in READINGS.items()
    ]
    entropies = [entropy_of(target) for target in READINGS.values()]
    for place, (study, entropy) in enumerate(zip(studies, entropies, strict=True)):
        found = compared(study, sizes, scale, 10 + place)
        shown += curves(study, found, sizes)
        findings.append(Finding.alone(f"{study.name}: entropy, which no NLL can be below", entropy))
        findings += claims(study, found, sizes, {})
        findings += _gained(
            f"{study.name}: ", found, sizes.epsilons[-1],
            "Q0 alone covers the modes of this mixture: its coverage tells nothing",
        )  # fmt: skip
    findings.append(
        Finding.alone(
            "entropy of one reading above that of the other: an NLL that is printed without the "
            "reading can be compared with nothing",
            entropies[1] - entropies[0],
        )
    )
    return Outcome(
        tuple(findings),
        tuple(shown),
        {**settings_of(sizes, studies), "reference": "N(0, 1)"},
        f"Data: 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), {sizes.records:,} records of one "
        "person; Q0 = N(0, 1).",
    )


def _random(scale: Scale) -> Outcome:
    sizes = sizes_of(scale, 2_000, 6, fixed=False)
    study = Study("", random_gaussians_1d, (-4.0, 4.0), (-8.0, 8.0))
    found = compared(study, sizes, scale, 20)
    why = {"steadier": "the targets themselves vary, and DPB is near the uniform density"}
    findings = claims(study, found, sizes, why)
    findings += _gained("", found, sizes.epsilons[-1], "Q0 alone covers most modes of most targets")
    return Outcome(
        tuple(_of_ours(findings)),
        tuple(curves(study, found, sizes)),
        {
            **settings_of(sizes, [study]),
            "modes": 3,
            "deviation": 0.2,
            "means": "uniform on [-2, 2]",
            "reference": "N(0, 1)",
        },
        f"Data: three Gaussians of deviation 0.2, means uniform on [-2, 2], {sizes.records:,} "
        "records of one person; Q0 = N(0, 1). The paper prints no sizes: these are ours.",
    )


def _ring(scale: Scale) -> Outcome:
    # The network needs more steps to find modes where the reference is flat.
    normal, flat = (
        sizes_of(scale, 2_000, 3, passes=passes, quick=(1.0, 10.0)) for passes in (25, 100)
    )
    side = (-6.0, 6.0)
    studies = [
        Study("Q0 = N(0, I)", lambda _: ring_of_gaussians(), side, [(-7.0, 7.0)] * 2),
        Study(
            "Q0 uniform on the box",
            lambda _: ring_of_gaussians(),
            side,
            [(-7.0, 7.0)] * 2,
            Uniform([-6.0, -6.0], [6.0, 6.0]),
        ),
    ]
    shown: list[Curve] = []
    findings: list[Finding] = []
    reasons: tuple[dict[str, str], ...] = (
        {"better": "N(0, I) hardly reaches the ring, and no density of its mollifier does either"},
        {},
    )
    words = (
        "the mollifier of this reference does not reach the modes",
        "the uniform reference alone covers everything",
    )
    parts = zip(studies, (normal, flat), reasons, words, strict=True)
    for study, sizes, why, reason in parts:
        # The same records for both references.
        found = compared(study, sizes, scale, 30)
        shown += curves(study, found, sizes)
        findings += claims(study, found, sizes, why)
        findings += _gained(f"{study.name}: ", found, sizes.epsilons[-1], reason)
        if study.reference is None:
            value, error = _coverage(found, MBDE, 1.0)
            what = f"{study.name}: coverage of MBDE at epsilon = 1"
            findings.append(Finding.alone(what, value, error=error))
    return Outcome(
        tuple(_of_ours(findings)),
        tuple(shown),
        {**settings_of(flat, studies), "modes": 8, "radius": 4.0, "deviation": 0.3},
        f"Data: eight Gaussians of deviation 0.3 on a circle of radius 4, {flat.records:,} "
        "records of one person. The paper prints no sizes: these are ours.",
    )


EXPERIMENTS: Final = (
    Experiment(
        "private-sampling/mixture",
        "Likelihood and coverage of the mixture on the line, under both readings of N(m, s)",
        f"{SOURCE}, sections III and IV",
        _mixture,
        functools.partial(draw, title="Private-sampling paper: three Gaussians on the line"),
    ),
    Experiment(
        "private-sampling/random",
        "Likelihood and coverage of random Gaussians on the line",
        f"{SOURCE}, sections III and IV",
        _random,
        functools.partial(draw, title="Private-sampling paper: random Gaussians on the line"),
    ),
    Experiment(
        "private-sampling/ring",
        "Likelihood and coverage of a ring of Gaussians in the plane, with two references",
        f"{SOURCE}, sections III and IV",
        _ring,
        functools.partial(draw, title="Private-sampling paper: ring of Gaussians in the plane"),
    ),
)
