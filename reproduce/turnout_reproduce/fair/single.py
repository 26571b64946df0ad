"""Figures 1 and 2 of the fair paper: sampling against Gaussian noise, and against the users."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np

from turnout._types import Integers
from turnout.accounting import CountSampling, GaussianMechanism, calibrate, paper
from turnout.distributed import NoisyAggregation, SamplingAggregation
from turnout.distributed.noise import NOISES
from turnout.domain import Domain
from turnout_reproduce.curves import Curve
from turnout_reproduce.fair import claims
from turnout_reproduce.fair.shared import (
    BARS,
    ERROR,
    REPEATS,
    Measured,
    experiment,
    legend_below,
    lemma,
    measure,
    rate_of,
    read_datasets,
    repeats_of,
)
from turnout_reproduce.outcome import Finding, Outcome, Scale
from turnout_reproduce.pictures import panels

_USERS: Final = 1000
_EPSILONS: Final = tuple(round(0.1 * tenth, 1) for tenth in range(1, 11))
#: The deltas of DPDG that the paper's text names.
_STRICT: Final = 1e-7
_LAX: Final = 0.5
#: Below this epsilon DPDS is to be better than DPDG with the lax delta.
_CROSSING: Final = 0.6

#: Of Figure 2.
_LEVELS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)
_POPULATIONS: Final = (1000, 2000, 3000, 4000, 5000)


def _dpds(counts: Integers, epsilon: float) -> SamplingAggregation:
    """Make the paper's mechanism, with the floor that the sample has."""
    users, floor = int(counts.sum()), int(counts.min())
    domain = Domain.from_integers(counts.size)
    return SamplingAggregation(
        domain, users, rate=rate_of(epsilon), floor=floor, parties=2, compressed=False
    )


def _dpdg(items: int, users: int, epsilon: float, delta: float) -> float:
    """Sum the paper's V_G over items: of all the noise that DPDG is meant to have."""
    return items * 4 * math.log(1.25 / delta) / (users * epsilon) ** 2


def _equal(counts: Integers, epsilon: float) -> float:
    """Sum the variances of discrete Gaussian noise with the exact guarantee that DPDS has."""
    users, delta = int(counts.sum()), _dpds(counts, epsilon).accounting.delta(epsilon)
    make = partial(
        NoisyAggregation, Domain.from_integers(counts.size), users, noise="discrete_gaussian"
    )
    # This delta may be above 1 over the users, at which no mechanism may aim.
    noise = make(parameter=1.0)
    parameter = NOISES[noise.noise].accounted
    found = calibrate(noise.accounting, parameter, epsilon, delta, adjacency=noise.adjacency)
    noise = make(parameter=float(found))
    return counts.size * noise.expected_error() ** 2


def _against_noise(scale: Scale) -> Outcome:
    data = read_datasets(scale)
    curves: list[Curve] = []
    findings: list[Finding] = []
    measured: list[Measured] = []
    for place, (name, counts) in enumerate(data.samples(_USERS)):
        found = [
            measure(_dpds(counts, epsilon), counts, scale, (1, place, number))
            for number, epsilon in enumerate(_EPSILONS)
        ]
        means, errors, exact = (tuple(part) for part in zip(*found, strict=True))
        strict, lax = (
            tuple(_dpdg(counts.size, _USERS, epsilon, delta) for epsilon in _EPSILONS)
            for delta in (_STRICT, _LAX)
        )
        equal = tuple(_equal(counts, epsilon) for epsilon in _EPSILONS)
        curves += [
            Curve("DPDS", _EPSILONS, means, errors, name),
            Curve(f"DPDG, nominal delta {_STRICT:g}", _EPSILONS, strict, None, name),
            Curve(f"DPDG, nominal delta {_LAX:g}", _EPSILONS, lax, None, name),
            Curve("discrete Gaussian, DPDS's exact delta", _EPSILONS, equal, None, name),
        ]
        if place == 0:
            findings += _printed(name, exact[0], strict[0])
        findings += _claims(name, counts, exact, (strict, lax, equal))
        measured += found
    findings.append(lemma("Lemma 3.1, the error is (1 - p)/(pn)", measured, scale))
    findings.append(_as_printed())
    settings = {
        "users": _USERS,
        "epsilons": list(_EPSILONS),
        "deltas": [_STRICT, _LAX],
        "repeats": repeats_of(scale),
        "paper_repeats": REPEATS,
        "error": ERROR,
    }
    return Outcome(tuple(findings), tuple(curves), settings, data.words)


def _printed(name: str, error: float, noise: float) -> list[Finding]:
    """Compare the numbers that section 4.2.1 prints."""
    gain = 1.0 - error / noise
    return [
        Finding.compared(
            f"{name}: error of DPDS at epsilon = 0.1 (4.2.1: around 0.01)",
            error,
            0.01,
            tolerance=0.005,
        ),
        Finding.compared(
            f"{name}: improvement over DPDG with delta = {_STRICT:g} there (4.2.1: over 90 %)",
            gain,
            0.9,
            tolerance=max(0.0, gain - 0.9),
        ),
    ]


def _claims(
    name: str, counts: Integers, exact: tuple[float, ...], others: tuple[tuple[float, ...], ...]
) -> list[Finding]:
    """Judge what section 4.2.1 and Theorem 3.1 say of one data set."""
    # A row for each way to add noise: its error over that of sampling at each epsilon.
    strict, lax, equal = np.array(others) / np.array(exact)
    least, fair = float(strict.min()), float(equal.min())
    below = float(lax[np.array(_EPSILONS) < _CROSSING].min())
    floor = int(counts.min())
    claimed = float(paper.theorem_3_1_delta(1.0, counts.size, floor))
    true = CountSampling(rate_of(1.0), floor).delta(1.0)
    return [
        Finding.claimed(
            f"{name}: DPDS beats DPDG with nominal delta {_STRICT:g}: least ratio of the errors",
            least,
            least > 1.0,
            why="DPDG has the smaller error at the largest epsilon",
        ),
        Finding.claimed(
            f"{name}: DPDS beats DPDG with nominal delta {_LAX} while epsilon < {_CROSSING}: "
            "least ratio of the errors",
            below,
            below > 1.0,
            why="4 N ln(1.25/delta)/(n epsilon)^2, the paper's noise over all items, is less than "
            "(1 - p)/(pn) from a smaller epsilon on",
        ),
        Finding.claimed(
            f"{name}: Theorem 3.1 bounds delta: exact over claimed at epsilon = 1, floor {floor}",
            true / claimed,
            true <= claimed,
            why="the claimed delta is the mass of one outcome and falls with the number of items; "
            f"claimed {claimed:.2g}, exact {true:.2g}",
        ),
        Finding.claimed(
            f"{name}: DPDS has less error than Gaussian noise for the same privacy: least ratio "
            "of the errors at equal exact epsilon and delta",
            fair,
            fair > 1.0,
            why="both are compared at a delta that neither has; at DPDS's exact delta discrete "
            "Gaussian noise has less error",
        ),
    ]


def _as_printed() -> Finding:
    """Compute the delta of DPDG with as little noise as each user is told to add."""
    meant = math.sqrt(2 * math.log(1.25 / _STRICT))
    claimed = float(claims.distributed_gaussian_delta(1.0, meant))
    true = GaussianMechanism(meant / math.sqrt(_USERS)).delta(1.0)
    return Finding.claimed(
        f"DPDG as printed has delta {claimed:.2g} at epsilon = 1: exact delta",
        true,
        true <= claimed,
        why="n users that each add the variance (G sigma/n)^2 add up to G^2 sigma^2/n, not to "
        "G^2 sigma^2",
    )


def _populations(scale: Scale) -> Outcome:
    data = read_datasets(scale)
    samples = {users: data.samples(users) for users in _POPULATIONS}
    curves: list[Curve] = []
    findings: list[Finding] = []
    measured: list[Measured] = []
    for place in range(len(data.sets)):
        for number, epsilon in enumerate(_LEVELS):
            found = []
            for size, users in enumerate(_POPULATIONS):
                name, counts = samples[users][place]
                mechanism = _dpds(counts, epsilon)
                found.append(measure(mechanism, counts, scale, (2, place, number, size)))
            means, errors, exact = (tuple(part) for part in zip(*found, strict=True))
            users_shown = tuple(map(float, _POPULATIONS))
            curves.append(Curve(f"epsilon = {epsilon}", users_shown, means, errors, name))
            measured += found
            if place == 0 and number == 0:
                findings += _printed_sizes(name, samples[_POPULATIONS[0]][0][1], exact)
    findings.append(_proportion(measured))
    findings.append(lemma("Lemma 3.1, the error is (1 - p)/(pn)", measured, scale))
    settings = {
        "users": list(_POPULATIONS),
        "epsilons": list(_LEVELS),
        "repeats": repeats_of(scale),
        "paper_repeats": REPEATS,
        "error": ERROR,
    }
    return Outcome(tuple(findings), tuple(curves), settings, data.words)


def _proportion(measured: list[Measured]) -> Finding:
    """Compare the errors of most and least users, over all curves."""
    few, many = measured[:: len(_POPULATIONS)], measured[len(_POPULATIONS) - 1 :: len(_POPULATIONS)]
    growth = _POPULATIONS[-1] / _POPULATIONS[0]
    (less, less_error), (more, more_error) = (
        (sum(mean for mean, _, _ in group), math.hypot(*(error for _, error, _ in group)))
        for group in (many, few)
    )
    ratio = growth * less / more
    error = ratio * math.hypot(less_error / less, more_error / more)
    return Finding.claimed(
        "the error is inversely proportional to n: error times n at 5000 over that at 1000",
        ratio,
        abs(ratio - 1.0) < 5.0 * error,
        error=error,
        why="it falls otherwise",
    )


def _printed_sizes(name: str, counts: Integers, exact: tuple[float, ...]) -> list[Finding]:
    """Compare the two numbers that section 4.2.2 prints."""
    from scipy import special  # noqa: PLC0415

    # The sum of squares of nearly normal errors with variances in proportion to the frequencies,
    # as a gamma variable of the same mean and variance.
    shares = counts / counts.sum()
    shape = REPEATS / (2 * float((shares**2).sum()))
    chance = float(special.gammainc(shape, 2.4e-3 / exact[0] * shape))
    return [
        Finding.compared(
            f"{name}: error at epsilon = 0.2, n = 1000 (4.2.2: around 2.4e-3)",
            exact[0],
            2.4e-3,
            tolerance=0.5e-4,
            wrong=f"Lemma 3.1 gives {exact[0]:.2g}, as does its own value at n = 5000 times five; "
            f"means of {REPEATS} runs are so small in {chance:.1%} of cases",
        ),
        Finding.compared(
            f"{name}: error at epsilon = 0.2, n = 5000 (4.2.2: around 0.9e-3)",
            exact[-1],
            0.9e-3,
            tolerance=0.5e-4,
        ),
    ]


EXPERIMENTS: Final = (
    experiment(
        "Figure 1",
        "Sampling (DPDS) against Gaussian noise (DPDG)",
        _against_noise,
        partial(
            panels,
            title="Fair paper, Figure 1: sampling and Gaussian noise, 1000 users",
            x="epsilon", y=ERROR, log="y", caption=BARS, finish=legend_below,
        ),
    ),
    experiment(
        "Figure 2",
        "Error of sampling (DPDS) and number of users",
        _populations,
        partial(
            panels,
            title="Fair paper, Figure 2: error of DPDS and number of users",
            x="users", y=ERROR, log="y", caption=BARS, finish=partial(legend_below, columns=5),
        ),
    ),
)  # fmt: skip
