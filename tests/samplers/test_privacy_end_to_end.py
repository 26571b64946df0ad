"""What leaves a sampler is private: laws of whole samplers, from all that chance can do.

Below the fitted samplers the core's random numbers and choices are replaced by every value that
they can have. Each run is the real path from data to draw; its probability is a rational number, or
lies between two. So no law here is estimated, and no formula of the package is used again.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from turnout import _core
from turnout.samplers import (
    MinimaxSampler,
    MollifiedDensity,
    PrivacyBudget,
    PrivateSampler,
    Reference,
)
from turnout_reproduce.boosting import MollifiedBoosting

Floats = npt.NDArray[np.float64]
Law = dict[Any, Fraction]
Bounds = dict[Any, tuple[Fraction, Fraction]]

UNIT = 2**32
CELLS = 2**52


def free() -> PrivacyBudget:
    return PrivacyBudget(math.inf)


# Rational bounds of the exponential function


@functools.cache
def exponential(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of e^x for 0 <= x <= 50: partial sums of the series, and a bound of the rest."""
    term = total = Fraction(1)
    for index in range(1, 300):
        term = Fraction(math.ceil(term * x / index * 2**400), 2**400)
        total += term
    # 300 terms rounded up by 2^-400 each, at most e^50 < 2^73 fold in all; the rest is smaller.
    slack = Fraction(1, 2**300)
    return total - slack, total + slack


def at_most_exponential(ratio: Fraction, exponent: float) -> bool:
    """Whether it is certain that a ratio is at most e^exponent."""
    return ratio <= exponential(Fraction(exponent))[0]


def acceptance(gap: float, most: float) -> tuple[Fraction, Fraction]:
    """Bounds of the probability e^-g of a trial, g being the multiple of 2^-64 below the gap."""
    inside = most if math.isnan(gap) else min(max(gap, 0.0), most)
    low, high = exponential(Fraction(math.floor(Fraction(inside) * 2**64), 2**64))
    return 1 / high, min(Fraction(1), 1 / low)


def test_the_bounds_of_the_exponential_are_bounds() -> None:
    for x in (0.0, 1e-9, 0.25, 1.0, 7.5, 42.0):
        low, high = exponential(Fraction(x))
        assert low < high < low * (1 + Fraction(1, 10**60))
        assert float(low) == pytest.approx(math.exp(x), rel=1e-15)
    assert at_most_exponential(Fraction(271828182845, 10**11), 1.0)
    assert not at_most_exponential(Fraction(271828182846, 10**11), 1.0)
    assert acceptance(-1.0, 2.0)[1] == 1
    assert acceptance(math.nan, 2.0) == acceptance(5.0, 2.0) == acceptance(2.0, 2.0)


# A world of few points


class Atoms(Reference):
    """The points 0, 1, 2, ... with masses that are multiples of 1/8."""

    def __init__(self, eighths: Sequence[int]) -> None:
        self.eighths = tuple(eighths)
        self.dimensions = self.words = 1

    @property
    def masses(self) -> list[Fraction]:
        return [Fraction(part, 8) for part in self.eighths]

    def log_density(self, points: Floats) -> Floats:
        result: Floats = np.log(np.array(self.eighths) / 8.0)[points[:, 0].astype(int)]
        return result

    def transform(self, uniforms: Floats) -> Floats:
        edges = np.cumsum(self.eighths)[:-1] / 8.0
        return np.searchsorted(edges, uniforms, side="right").astype(np.float64)

    def _middle(self, atom: int) -> float:
        """A uniform number that gives an atom."""
        return (sum(self.eighths[:atom]) + 0.5 * self.eighths[atom]) / 8.0


class Shares:
    """A density estimate: the shares of the records, and what it likes at a point without any."""

    def __init__(self, nothing: float) -> None:
        self.nothing = nothing

    def fit(self, X: Floats) -> Shares:
        self.counts = np.bincount(X[:, 0].astype(int), minlength=8)
        return self

    def score_samples(self, X: Floats) -> Floats:
        counts = self.counts[X[:, 0].astype(int)]
        X[:] = self.counts.argmax()  # what it is asked about is not what is drawn
        with np.errstate(divide="ignore"):
            return np.where(counts > 0, np.log(counts / self.counts.sum()), self.nothing)


class Teller:
    """A classifier that knows the person's favourite atom: infinitely sure, or not a number."""

    def fit(self, X: Floats, y: Any) -> Teller:
        values, counts = np.unique(X[y == 1, 0], return_counts=True)
        self.favourite = values[counts.argmax()]
        return self

    def decision_function(self, X: Floats) -> Floats:
        return np.where(X[:, 0] == self.favourite, np.inf, -np.inf)


class Looker(Teller):
    """It looks at the other points that it is asked about at the same time, and lies by them."""

    def decision_function(self, X: Floats) -> Floats:
        honest = super().decision_function(X)
        if len(X) > 4:
            return honest
        if np.isposinf(honest).any() or len(X) == 1:
            return honest
        # Everything waits for the favourite; without it the first point is taken.
        return np.where(np.arange(len(X)) == 0, np.inf, -np.inf)


#: Data sets of different sizes, with nothing in common.
PEOPLE = ([0] * 40, [1] * 3, [2], [0, 1, 2, 2, 2], [1, 1, 0] * 100)


def records(values: Sequence[int]) -> Floats:
    return np.array(values, dtype=np.float64)[:, None]


def check_pairs(laws: Sequence[Bounds], epsilon: float) -> float:
    """Prove that no two laws differ by more than e^epsilon; the largest logarithm of a ratio."""
    assert all(law.keys() == laws[0].keys() for law in laws)
    # The largest ratio is the one of the largest and the least probability.
    most = {outcome: max(law[outcome][1] for law in laws) for outcome in laws[0]}
    least = {outcome: min(law[outcome][0] for law in laws) for outcome in laws[0]}
    largest = max(most[outcome] / least[outcome] for outcome in laws[0])
    assert at_most_exponential(largest, epsilon), float(largest)
    return math.log(largest)


def check_normalised(law: Bounds) -> None:
    low, high = (sum(bounds[side] for bounds in law.values()) for side in (0, 1))
    assert low <= 1 <= high < low * (1 + Fraction(1, 10**40))


def point_bounds(law: Law) -> Bounds:
    return {outcome: (mass, mass) for outcome, mass in law.items()}


# Rejection


def rejection_law(
    sampler: MollifiedBoosting, atoms: Atoms, count: int, monkeypatch: pytest.MonkeyPatch
) -> Bounds:
    """Run a fitted sampler for all proposals, all outcomes of the trials, all fall-backs."""
    trials, size = sampler.trials_, len(atoms.eighths)
    script = SimpleNamespace(uniforms=[], outcomes=[], gaps=None, most=0.0)

    def uniforms(length: int, seed: int | None = None) -> Floats:
        given = script.uniforms.pop(0)
        assert len(given) == length
        return np.array([atoms._middle(atom) for atom in given])

    def first_accepted(gaps: Floats, most: float, seed: int | None = None) -> Any:
        script.gaps, script.most = gaps.copy(), most
        return np.array(script.outcomes)

    law: dict[Any, list[Fraction]] = {}
    masses = atoms.masses
    with monkeypatch.context() as patch:
        patch.setattr(_core, "uniforms", uniforms)
        patch.setattr(_core, "first_accepted", first_accepted)
        for proposals in itertools.product(range(size), repeat=count * trials):
            for outcomes in itertools.product(range(-1, trials), repeat=count):
                # A fall-back that is not used may be anything: one stands for all.
                choices = [range(size) if outcome < 0 else [0] for outcome in outcomes]
                for fallback in itertools.product(*choices):
                    script.uniforms, script.outcomes = [proposals, fallback], outcomes
                    drawn = sampler.sample(count, budget=free())
                    assert script.uniforms == []
                    assert 2 * Fraction(script.most) <= Fraction(sampler.epsilon)
                    low = high = math.prod((masses[a] for a in proposals), start=Fraction(1))
                    for row, outcome in enumerate(outcomes):
                        if outcome < 0:
                            low, high = low * masses[fallback[row]], high * masses[fallback[row]]
                        tried = trials if outcome < 0 else outcome
                        for gap in script.gaps[row, :tried]:
                            accepted = acceptance(float(gap), script.most)
                            low, high = low * (1 - accepted[1]), high * (1 - accepted[0])
                        if outcome >= 0:
                            accepted = acceptance(float(script.gaps[row, outcome]), script.most)
                            low, high = low * accepted[0], high * accepted[1]
                    total = law.setdefault(
                        tuple(drawn[:, 0].astype(int).tolist()), [Fraction(0)] * 2
                    )
                    total[0] += low
                    total[1] += high
    return {outcome: (low, high) for outcome, (low, high) in law.items()}


def boosted(
    epsilon: float, values: Sequence[int], atoms: Atoms, learner: Any, trials: int
) -> MollifiedBoosting:
    sampler = MollifiedBoosting(
        epsilon, reference=atoms, weak_learner=learner, n_rounds=25, trials=trials, random_state=1
    )
    return sampler.fit(records(values))


@pytest.mark.parametrize("learner", [Teller, Looker])
@pytest.mark.parametrize(("epsilon", "trials"), [(0.5, 1), (2.0, 2), (6.0, 3)])
def test_no_two_data_sets_are_told_apart_by_a_draw_of_boosting(
    epsilon: float, trials: int, learner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    atoms = Atoms([5, 2, 1])
    half = exponential(Fraction(epsilon) / 2)[0]
    laws = []
    for values in PEOPLE:
        sampler = boosted(epsilon, values, atoms, learner(), trials)
        law = rejection_law(sampler, atoms, 1, monkeypatch)
        check_normalised(law)
        for (atom,), (low, high) in law.items():
            assert high <= half * atoms.masses[atom] <= half * half * low
        laws.append(law)
    # The samplers do learn: the draws of some differ by a good part of what is allowed.
    assert check_pairs(laws, epsilon) > 0.3 * epsilon


def test_two_draws_of_boosting_cost_twice_as_much_whatever_they_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A learner that sees the proposals of both draws makes them depend on each other.
    atoms, epsilon = Atoms([6, 2]), 3.0
    laws = []
    for values in ([0] * 9, [1], [1, 1, 0], [0, 1]):
        sampler = boosted(epsilon, values, atoms, Looker(), 2)
        laws.append(rejection_law(sampler, atoms, 2, monkeypatch))
        check_normalised(laws[-1])
    assert check_pairs(laws, 2 * epsilon) > epsilon


def test_draws_of_boosting_follow_the_law_of_all_runs(
    monkeypatch: pytest.MonkeyPatch, statistical: Any
) -> None:
    atoms = Atoms([5, 2, 1])
    sampler = boosted(4.0, PEOPLE[2], atoms, Teller(), 3)
    law = rejection_law(sampler, atoms, 1, monkeypatch)
    masses = [float(law[atom,][0]) for atom in range(3)]
    drawn = sampler.sample(200_000, budget=free(), seed=3)[:, 0].astype(int)
    statistical.check_law(np.bincount(drawn, minlength=3), masses)
    assert np.exp(sampler.score_samples(records([0, 1, 2]))) == pytest.approx(masses, rel=2e-3)


# Resampling


class Scripted:
    """The band of the core, whose choice is given; it notes the weights of the core."""

    chosen = 0
    weights: Any = None
    real: Any = _core.SamplerBand

    def __init__(self, *arguments: Any) -> None:
        self._band = self.real(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._band, name)

    def resample(self, ratios: Floats, seed: int | None = None) -> Any:
        reference = np.full(ratios.shape[1], UNIT, np.uint64)
        Scripted.weights = self._band.weights(ratios[0], reference)[0]
        return np.array([Scripted.chosen])


def pieces(function: Callable[[int], Any]) -> Iterator[tuple[int, int]]:
    """Cut the numbers below 2^52 where a function changes: first number and length of each part."""
    values: dict[int, Any] = {}

    def at(place: int) -> Any:
        if place not in values:
            values[place] = function(place)
        return values[place]

    def cuts(first: int, last: int) -> Iterator[int]:
        if at(first) == at(last):
            return
        if last - first == 1:
            yield last
            return
        middle = (first + last) // 2
        yield from cuts(first, middle)
        yield from cuts(middle, last)

    grid = [*range(0, CELLS, CELLS // 64), CELLS - 1]
    edges = [0, *(cut for pair in itertools.pairwise(grid) for cut in cuts(*pair)), CELLS]
    return ((first, last - first) for first, last in itertools.pairwise(edges))


def resampling_laws(
    samplers: Sequence[PrivateSampler], atoms: Atoms, seen: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Law], Law]:
    """Run fitted samplers for every random shift of the proposals, and every choice.

    Also gives the law of a proposal: the masses but for the rounding of the shifted lattice.
    """
    given = SimpleNamespace(shift=0.0)

    def shifted(cell: int) -> tuple[int, ...]:
        given.shift = (cell + 0.5) / CELLS
        return tuple(atoms._draw_spread(seen)[:, 0].astype(int).tolist())

    nothing = dict.fromkeys(range(len(atoms.eighths)), Fraction(0))
    reference: Law = dict(nothing)
    laws: list[Law] = [dict(nothing) for _ in samplers]
    with monkeypatch.context() as patch:
        patch.setattr(_core, "uniforms", lambda length, seed=None: np.full(length, given.shift))
        patch.setattr(_core, "SamplerBand", Scripted)
        for first, cells in list(pieces(shifted)):
            proposed = shifted(first)
            for atom in proposed:
                reference[atom] += Fraction(cells, CELLS * seen)
            for choice, (sampler, law) in itertools.product(
                range(seen), zip(samplers, laws, strict=True)
            ):
                Scripted.chosen = choice
                drawn = int(sampler.sample(1, budget=free())[0, 0])
                # It is a proposal that is drawn, and proposals do not depend on the data.
                assert drawn == proposed[choice]
                weights = [int(weight) for weight in Scripted.weights]
                assert sum(weights) == seen * UNIT
                law[drawn] += Fraction(cells, CELLS) * Fraction(weights[choice], seen * UNIT)
    for atom, mass in enumerate(atoms.masses):
        assert abs(reference[atom] - mass) <= Fraction(1, CELLS)
    return laws, reference


@pytest.mark.parametrize("nothing", [-math.inf, -1e6, math.inf, math.nan])
@pytest.mark.parametrize(("epsilon", "seen"), [(0.5, 2), (2.0, 5), (6.0, 8)])
def test_no_two_data_sets_are_told_apart_by_a_draw_of_a_density(
    epsilon: float, seen: int, nothing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    atoms = Atoms([5, 2, 1])
    samplers = [
        MollifiedDensity(epsilon, reference=atoms, estimator=Shares(nothing), proposals=seen).fit(
            records(values)
        )
        for values in PEOPLE
    ]
    laws, reference = resampling_laws(samplers, atoms, seen, monkeypatch)
    half = exponential(Fraction(epsilon) / 2)[0]
    for law in laws:
        assert sum(law.values()) == 1
        for atom, mass in law.items():
            assert reference[atom] / half <= mass <= half * reference[atom]
    assert check_pairs([point_bounds(law) for law in laws], epsilon) > 0.25 * epsilon


@pytest.mark.parametrize(("epsilon", "lower", "upper"), [(1.0, 0.0, 8.0), (3.0, 0.4, 3.0)])
def test_no_two_data_sets_are_told_apart_by_a_draw_in_an_asymmetric_band(
    epsilon: float, lower: float, upper: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    atoms = Atoms([5, 2, 1])
    samplers = [
        MinimaxSampler(
            epsilon,
            reference=atoms,
            low=lower,
            high=upper,
            estimator=Shares(-math.inf),
            proposals=8,
        ).fit(records(values))
        for values in PEOPLE
    ]
    laws, reference = resampling_laws(samplers, atoms, 8, monkeypatch)
    for sampler, law in zip(samplers, laws, strict=True):
        assert sum(law.values()) == 1
        for atom, mass in law.items():
            ratio = mass / reference[atom]
            assert at_most_exponential(max(ratio, 1 / ratio), sampler.certificate_)
    assert check_pairs([point_bounds(law) for law in laws], epsilon) > 0.4 * epsilon


def test_draws_of_a_density_follow_the_law_of_all_runs(
    monkeypatch: pytest.MonkeyPatch, statistical: Any
) -> None:
    atoms = Atoms([5, 2, 1])
    sampler = MollifiedDensity(4.0, reference=atoms, estimator=Shares(-math.inf), proposals=3).fit(
        records(PEOPLE[3])
    )
    ((law,), _) = resampling_laws([sampler], atoms, 3, monkeypatch)
    drawn = sampler.sample(20_000, budget=free(), seed=3)[:, 0].astype(int)
    statistical.check_law(np.bincount(drawn, minlength=3), [float(law[atom]) for atom in range(3)])
