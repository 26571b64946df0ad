"""The jobs of privacy accounting that are compared, and who does each of them.

One round of random participation at p = 0.001, q = 0.1: its delta, the noise that reaches a target,
a grid of 10,000 points; then 10,000 rounds together. Nobody else has that mechanism: with
dp-accounting Poisson sampling is compared, which both have.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import accounting_reference as reference
from jobs import Job, Layout, Target
from measurement import Contender

CLIENT_RATE = 0.001
SAMPLE_RATE = 0.1
EPSILON = 0.015
DELTA = 1e-6
SMALL_SIZE, SMALL_NOISE = 30, 2.4903
LARGE_SIZE, LARGE_NOISE = 100_000, 7.66
#: How many calls of a small job are timed together, where caches are warm.
AGAIN = 50
GRID_SIDE = 100
ROUNDS = 10_000
COMPOSED_DELTA = 1e-5
POISSON_RATE, POISSON_NOISE = 0.01, 1.0

PEER = "dp-accounting"
REFERENCE = "NumPy/SciPy"
LAYOUT = Layout(
    columns=("turnout", REFERENCE, PEER),
    ratios={REFERENCE: "ratio to NumPy/SciPy"},
)

TITLE = (
    f"Privacy accounting, time of a call: p={CLIENT_RATE:g}, q={SAMPLE_RATE:g}, "
    f"epsilon {EPSILON:g}, calibrated to delta {DELTA:g}"
)
NOTES = [
    "NumPy/SciPy gives the nearest value, on one thread. turnout gives an upper bound, on all "
    "cores.",
    "Again and again: calls one right after the other.",
    "From cold: the other programs run in between, so that caches hold other data. All other rows "
    "are measured like this.",
    "dp-accounting has no random participation.",
]


def load_peer() -> tuple[ModuleType | None, dict[str, str]]:
    """Return dp-accounting, or None and why it is not to be had."""
    try:
        importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        return importlib.import_module("dp_accounting"), {}
    except ImportError as error:
        return None, {PEER: f"not installed: {error}"}


def build(turnout: ModuleType | None, peer: ModuleType | None) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peer
        The package ``dp_accounting``, or None if it is not installed.
    """
    own = None if turnout is None else importlib.import_module(f"{turnout.__name__}.accounting")
    return [
        *_deltas(own),
        _grid(own),
        _calibrate(own),
        _calibrate_poisson(own, peer),
        _compose(own),
        _compose_poisson(own, peer),
    ]


def _deltas(own: Any) -> list[Job]:
    """Return the jobs of a single delta, by the number of elements and by what runs in between."""
    cases = (
        (SMALL_SIZE, SMALL_NOISE, ", again and again", Target(seconds=20e-6), AGAIN),
        (SMALL_SIZE, SMALL_NOISE, ", from cold", Target(seconds=30e-6), 1),
        (LARGE_SIZE, LARGE_NOISE, "", Target(), 1),
    )
    jobs = []
    for size, noise, how, target, again in cases:
        given = (CLIENT_RATE, SAMPLE_RATE, size)
        accept = _near(float(reference.delta(EPSILON, noise, *given)), 1e-9)
        contenders = []
        if own is not None:
            call = partial(own.RandomParticipation(*given, noise).delta, EPSILON)
            contenders.append(Contender("turnout", "delta", 1, call, accept, again=again))
        call = partial(reference.delta, EPSILON, noise, *given)
        contenders.append(Contender(REFERENCE, "all terms at once", 1, call, accept, again=again))
        name = f"delta of a round, d={size:,}{how}"
        jobs.append(Job(name, contenders, target, timed=True, nobody=frozenset({PEER})))
    return jobs


def _grid(own: Any) -> Job:
    epsilons = np.geomspace(0.005, 0.5, GRID_SIDE)[:, np.newaxis]
    noises = np.geomspace(1.0, 10.0, GRID_SIDE)
    rates, step = (CLIENT_RATE, SAMPLE_RATE), 33
    picked = [
        [float(reference.delta(e, s, *rates, SMALL_SIZE)) for s in noises[::step]]
        for e in epsilons[::step, 0]
    ]

    def accept(result: npt.NDArray[np.float64]) -> bool:
        right = np.allclose(result[::step, ::step], picked, rtol=1e-8, atol=0.0)
        return result.shape == (GRID_SIDE, GRID_SIDE) and right

    points = GRID_SIDE**2
    call: Callable[[], object]
    contenders = []
    if own is not None:
        call = partial(own.participation.participation_delta, epsilons, noises, *rates, SMALL_SIZE)
        contenders.append(Contender("turnout", "participation_delta", points, call, accept))
    call = partial(reference.delta, epsilons, noises, *rates, SMALL_SIZE)
    contenders.append(Contender(REFERENCE, "all points at once", points, call, accept))
    name = f"delta, grid of {points:,} points, d={SMALL_SIZE}"
    return Job(name, contenders, timed=True, nobody=frozenset({PEER}))


def _calibrate(own: Any) -> Job:
    given = (CLIENT_RATE, SAMPLE_RATE, SMALL_SIZE)
    accept = _near(2.373275, 1e-6)
    contenders = []
    if own is not None:
        mechanism = own.RandomParticipation(*given, 1.0)
        call = partial(own.calibrate_noise, mechanism, EPSILON, DELTA)
        contenders.append(_contender("turnout", "calibrate_noise", call, accept))
    call = partial(reference.calibrate, EPSILON, DELTA, *given)
    contenders.append(_contender(REFERENCE, "Brent's method", call, accept))
    name = f"noise for a round, d={SMALL_SIZE}"
    return Job(name, contenders, timed=True, nobody=frozenset({PEER}))


def _calibrate_poisson(own: Any, peer: ModuleType | None) -> Job:
    expected = 22.497462
    contenders = []
    if own is not None:
        mechanism = own.LocalSampling(SAMPLE_RATE, 1.0)
        call = partial(own.calibrate_noise, mechanism, EPSILON, DELTA)
        contenders.append(_contender("turnout", "calibrate_noise", call, _near(expected, 1e-6)))
    if peer is not None:
        bracket = peer.mechanism_calibration.ExplicitBracketInterval(1.0, 64.0)

        def event(noise: float) -> object:
            return peer.PoissonSampledDpEvent(SAMPLE_RATE, peer.GaussianDpEvent(noise))

        call = partial(
            peer.calibrate_dp_mechanism, peer.pld.PLDAccountant, event, EPSILON, DELTA, bracket
        )
        contenders.append(_contender(PEER, "calibrate_dp_mechanism", call, _near(expected, 1e-5)))
    name = f"noise for Poisson sampling, q={SAMPLE_RATE:g}"
    return Job(name, contenders, timed=True, nobody=frozenset({REFERENCE}))


def _compose(own: Any) -> Job:
    contenders = []
    if own is not None:
        mechanism = own.RandomParticipation(CLIENT_RATE, SAMPLE_RATE, SMALL_SIZE, SMALL_NOISE)
        call = partial(_composed, mechanism)
        # Our profile, composed by dp-accounting at a step of 1e-5, gives 0.2728.
        contenders.append(_contender("turnout", "compose", call, _near(0.27287, 1e-3)))
    name = f"epsilon of {ROUNDS:,} rounds, d={SMALL_SIZE}"
    return Job(name, contenders, timed=True, nobody=frozenset({REFERENCE, PEER}))


def _compose_poisson(own: Any, peer: ModuleType | None) -> Job:
    expected = 6.18774
    contenders = []
    if own is not None:
        call = partial(_composed, own.LocalSampling(POISSON_RATE, POISSON_NOISE))
        contenders.append(_contender("turnout", "compose", call, _near(expected, 1e-4)))
    if peer is not None:
        accept = _near(expected, 1e-4)
        contenders.append(_contender(PEER, "self_compose, step 1e-4", _composed_by_peer, accept))
    name = f"epsilon of {ROUNDS:,} Poisson rounds, q={POISSON_RATE:g}"
    return Job(name, contenders, timed=True, nobody=frozenset({REFERENCE}))


def _composed(mechanism: Any) -> float:
    """Compose from nothing: what an earlier call has left behind is dropped."""
    importlib.import_module("turnout.accounting.loss_grid")._cached.cache_clear()
    return float(mechanism.compose(ROUNDS).epsilon(COMPOSED_DELTA))


def _composed_by_peer() -> float:
    library = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    once = library.from_gaussian_mechanism(POISSON_NOISE, sampling_prob=POISSON_RATE)
    return float(once.self_compose(ROUNDS).get_epsilon_for_delta(COMPOSED_DELTA))


def _contender(
    column: str, variant: str, call: Callable[[], object], accept: Callable[[Any], bool]
) -> Contender:
    return Contender(column, variant, 1, call, accept)


def _near(expected: float, tolerance: float) -> Callable[[Any], bool]:
    """Accept a number within a relative tolerance."""
    return lambda result: math.isclose(float(result), expected, rel_tol=tolerance)
