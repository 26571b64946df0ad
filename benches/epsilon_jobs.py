"""Which epsilon each accountant states for the same training, and whether it is one.

Two trainings at one delta: Poisson-sampled Gaussian noise, which all accountants have; and clients
that take part at random and sample their data, which only turnout has. For the latter the others
are given what they can express: the product of both rates as one, or the sampling rate alone. A
number below turnout's lower value is too small to be a guarantee.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from report import Figures, Row, duration

ROUNDS, DELTA = 1000, 1e-5
POISSON_RATE, POISSON_NOISE = 0.01, 1.0
CLIENT_RATE, SAMPLE_RATE, LOCAL_SIZE, NOISE = 0.001, 0.1, 30, 2.4903
REPEATS = 3
#: Flower's accountant takes a rate as a number of clients among all.
FLOWER_CLIENTS = 10**6

HEADINGS = ("program", "what it is given", "epsilon", "verdict", "time")
TITLES = {
    "poisson": f"Poisson-sampled Gaussian noise, rate {POISSON_RATE:g}, noise multiplier "
    f"{POISSON_NOISE:g}, {ROUNDS:,} rounds, delta {DELTA:g}",
    "participation": f"Random participation, clients at {CLIENT_RATE:g}, sampling at "
    f"{SAMPLE_RATE:g} of {LOCAL_SIZE} elements, noise multiplier {NOISE:g}, {ROUNDS:,} rounds, "
    f"delta {DELTA:g}",
}
NOTES = [
    "turnout gives a lower and an upper value. The upper value is the guarantee. An epsilon below "
    "the lower value is too small; others are compared with the upper value.",
    "time: the time of one call, without anything kept from an earlier one.",
]


@dataclass(frozen=True)
class Accountant:
    """One accountant: epsilon of so many rounds of sampled Gaussian noise."""

    program: str
    epsilon: Callable[[float, float], float]
    nested: Callable[[], bool] | None = None


def load() -> tuple[list[Accountant], dict[str, str]]:
    """Return the accountants that are installed, and why others are not to be had."""
    accountants, problems = [], {}
    for name, make in (("dp-accounting", _google), ("flwr", _flower), ("opacus", _opacus)):
        try:
            accountants += make()
        except ImportError as error:
            problems[name] = f"not installed: {error}"
        except Exception as error:  # a broken peer must not end the comparison
            problems[name] = f"failed: {type(error).__name__}: {error}"
    return accountants, problems


def _google() -> list[Accountant]:
    library = importlib.import_module("dp_accounting")

    def accountant(name: str, make: Callable[[], Any]) -> Accountant:
        def epsilon(rate: float, noise: float) -> float:
            event = library.PoissonSampledDpEvent(rate, library.GaussianDpEvent(noise))
            return float(make().compose(event, ROUNDS).get_epsilon(DELTA))

        def nested() -> bool:
            inner = library.PoissonSampledDpEvent(SAMPLE_RATE, library.GaussianDpEvent(NOISE))
            return bool(make().supports(library.PoissonSampledDpEvent(CLIENT_RATE, inner)))

        return Accountant(f"dp-accounting, {name}", epsilon, nested)

    return [
        accountant("PLDAccountant", library.pld.PLDAccountant),
        accountant("RdpAccountant", library.rdp.RdpAccountant),
    ]


def _flower() -> list[Accountant]:
    server = importlib.import_module("flwr.serverapp")

    def epsilon(rate: float, noise: float) -> float:
        config = server.PrivacyConfig(
            target_delta=DELTA,
            population_size=FLOWER_CLIENTS,
            neighboring_relation=server.NeighboringRelation.ADD_OR_REMOVE_ONE,
            sampling_method=server.SamplingMethod.POISSON,
        )
        accountant = server.RdpAccountant(config)
        event = server.GaussianPrivacyEvent(noise, round(rate * FLOWER_CLIENTS), FLOWER_CLIENTS)
        accountant.compose(event, ROUNDS)
        return float(accountant.get_epsilon(DELTA))

    return [Accountant("flwr, RdpAccountant", epsilon)]


def _opacus() -> list[Accountant]:
    library = importlib.import_module("opacus.accountants")

    def accountant(name: str) -> Accountant:
        def epsilon(rate: float, noise: float) -> float:
            made = getattr(library, name)()
            made.history = [(noise, rate, ROUNDS)]
            return float(made.get_epsilon(delta=DELTA))

        return Accountant(f"opacus, {name}", epsilon)

    return [accountant("PRVAccountant"), accountant("RDPAccountant")]


def measure(turnout: ModuleType | None, on_progress: Callable[[str], object]) -> list[Figures]:
    """Return both tables."""
    accountants, problems = load()
    missing = [f"{name}: {problem}" for name, problem in problems.items()]
    own = None if turnout is None else importlib.import_module(f"{turnout.__name__}.accounting")
    on_progress("epsilon of Poisson sampling")
    poisson: list[Row] = []
    given, bounds = f"Poisson sampling at {POISSON_RATE:g}", None
    if own is not None:
        row, bounds = _own(own, own.LocalSampling(POISSON_RATE, POISSON_NOISE), given)
        poisson.append(row)
    for one in accountants:
        poisson.append(_row(one, given, POISSON_RATE, POISSON_NOISE, bounds))
    on_progress("epsilon of random participation")
    random: list[Row] = []
    bounds = None
    if own is not None:
        rates = (CLIENT_RATE, SAMPLE_RATE)
        mechanism = own.RandomParticipation(*rates, LOCAL_SIZE, NOISE)
        row, bounds = _own(own, mechanism, "random participation")
        random.append(row)
        weak = own.WeakClientSampling(*rates, NOISE)
        upper, seconds = _timed(lambda: _compose(own, weak)[1])
        given = "random participation, seen by the adversary"
        random.append(_made("turnout", given, upper, bounds, seconds))
    product = CLIENT_RATE * SAMPLE_RATE
    for one in accountants:
        given = f"Poisson sampling at {CLIENT_RATE:g} x {SAMPLE_RATE:g}"
        random.append(_row(one, given, product, NOISE, bounds))
        given = f"Poisson sampling at {SAMPLE_RATE:g}, participation left out"
        random.append(_row(one, given, SAMPLE_RATE, NOISE, bounds))
        if one.nested is not None and not one.nested():
            given = "Poisson sampling of clients around that of data"
            cells = (one.program, given, "-", "not supported", "-")
            raw = {"program": one.program, "given": given, "epsilon": None}
            random.append(Row(cells, "", raw))
    return [
        Figures("epsilon, poisson", TITLES["poisson"], HEADINGS, poisson, NOTES + missing),
        Figures(
            "epsilon, participation", TITLES["participation"], HEADINGS, random, NOTES + missing
        ),
    ]


def _compose(own: Any, mechanism: Any) -> tuple[float, float]:
    """Compose from nothing: what an earlier call has left behind is dropped."""
    importlib.import_module(f"{own.__name__}.loss_grid")._cached.cache_clear()
    low, high = mechanism.compose(rounds=ROUNDS).epsilon_bounds(delta=DELTA)
    return float(low), float(high)


def _own(own: Any, mechanism: Any, given: str) -> tuple[Row, tuple[float, float]]:
    """Return turnout's row, and its lower and upper value."""
    (low, high), seconds = _timed(lambda: _compose(own, mechanism))
    cells = ("turnout", given, f"{low:.5g} to {high:.5g}", "guarantee", duration(seconds))
    raw = {
        "program": "turnout",
        "given": given,
        "lower": low,
        "epsilon": high,
        "best_seconds": seconds,
        "verdict": "guarantee",
    }
    return Row(cells, "", raw), (low, high)


def _row(
    one: Accountant, given: str, rate: float, noise: float, bounds: tuple[float, float] | None
) -> Row:
    try:
        epsilon, seconds = _timed(lambda: one.epsilon(rate, noise))
    except Exception as error:  # a broken peer must not end the comparison
        problem = f"failed: {type(error).__name__}"
        cells = (one.program, given, "-", problem, "-")
        raw = {"program": one.program, "given": given, "epsilon": None, "problem": str(error)}
        return Row(cells, f"{one.program}: {error}", raw)
    return _made(one.program, given, epsilon, bounds, seconds)


def _made(
    program: str, given: str, epsilon: float, bounds: tuple[float, float] | None, seconds: float
) -> Row:
    verdict = "-" if bounds is None else verdict_of(epsilon, *bounds)
    cells = (program, given, f"{epsilon:.5g}", verdict, duration(seconds))
    raw = {
        "program": program,
        "given": given,
        "epsilon": epsilon,
        "best_seconds": seconds,
        "verdict": verdict,
    }
    return Row(cells, "", raw)


def verdict_of(epsilon: float, low: float, high: float) -> str:
    """Return what an epsilon is worth beside a lower and an upper value."""
    if epsilon < low:
        return f"too small by {1.0 - epsilon / low:.0%}".replace("%", " %")
    if epsilon <= high:
        return "as tight"
    excess = epsilon / high
    if excess < 2.0:
        return f"{excess - 1.0:.1%} larger".replace("%", " %")
    return f"{excess:.2g} times as large"


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and the best time of some calls."""
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(REPEATS):
            start = time.perf_counter()
            result = call()
            seconds.append(time.perf_counter() - start)
    return result, min(seconds)
