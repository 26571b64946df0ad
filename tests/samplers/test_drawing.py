"""What is drawn follows its law, and its guarantee holds in exact arithmetic."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate, stats

from turnout import _core
from turnout.samplers import Reference, StandardNormal, Uniform, drawing
from turnout.samplers.drawing import automatic_proposals, resampling
from turnout_reproduce.boosting import rejection as of_boosting
from turnout_reproduce.boosting.rejection import automatic_trials, rejection

Floats = npt.NDArray[np.float64]

ALPHA = 1e-6
UNIT = 2**32
EPSILONS = [1e-300, 1e-6, 0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 42.0]

#: What a function of points may give: everything that floats can say.
HOSTILE = [
    0.0,
    -0.0,
    1e-320,
    0.3,
    -0.3,
    5.0,
    -5.0,
    1e3,
    -1e308,
    1e308,
    math.inf,
    -math.inf,
    math.nan,
]

CONTEXT = decimal.Context(prec=60)


def exponential(exponent: Fraction) -> Decimal:
    """e^x to 60 digits."""
    with decimal.localcontext(CONTEXT):
        return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def within(ratio: Fraction, bound: float) -> bool:
    """Whether a rational is at most e^bound, to 50 digits."""
    with decimal.localcontext(CONTEXT):
        left = Decimal(ratio.numerator) / Decimal(ratio.denominator)
        return left <= exponential(Fraction(bound)) * (1 + Decimal(10) ** -50)


class Atoms(Reference):
    """Finitely many points on a line, 0, 1, 2, ..., with given masses."""

    def __init__(self, masses: Any) -> None:
        self.masses = np.asarray(masses, np.float64)
        self.dimensions = self.words = 1

    def log_density(self, points: Floats) -> Floats:
        return np.log(self.masses)[points[:, 0].astype(int)]

    def transform(self, uniforms: Floats) -> Floats:
        edges = np.cumsum(self.masses)[:-1]
        return np.searchsorted(edges, uniforms, side="right").astype(np.float64)


def at_atoms(values: Any) -> Callable[[Floats], Floats]:
    table = np.asarray(values, np.float64)
    return lambda points: table[points[:, 0].astype(int)]


# Rejection


def clamped(gap: float, most: float) -> Fraction:
    """What the core makes of a gap: the multiple of 2^-64 below it, within [0, most]."""
    inside = most if math.isnan(gap) else min(max(gap, 0.0), most)
    return Fraction(math.floor(Fraction(inside) * 2**64), 2**64)


def rejection_law(masses: Floats, gaps: list[float], most: float, trials: int) -> list[Decimal]:
    """Enumerate: the first accepted of so many trials, else one more draw; to 60 digits."""
    with decimal.localcontext(CONTEXT):
        shares = [Decimal(float(mass)) for mass in masses]
        shares = [share / sum(shares) for share in shares]
        accepted = [exponential(-clamped(gap, most)) for gap in gaps]
        law = [Decimal(0)] * len(shares)
        none = Decimal(1)
        for _ in range(trials):
            law = [one + none * m * a for one, m, a in zip(law, shares, accepted, strict=True)]
            none *= 1 - sum(m * a for m, a in zip(shares, accepted, strict=True))
        return [one + none * m for one, m in zip(law, shares, strict=True)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laws_of_rejection_are_within_the_band_whatever_the_gaps(epsilon: float) -> None:
    # Enumerated laws for pairs of adversarial data sets, fall-back included.
    masses = np.array([0.5, 0.3, 0.15, 0.05])
    most = epsilon / 2.0
    rng = np.random.default_rng(1)
    cases = [[0.0, most, most, most], [most, 0.0, 0.0, 0.0], [most] * 4, [math.nan, 0.0, 0.0, 0.0]]
    cases += [[float(gap) for gap in rng.choice(HOSTILE, 4)] for _ in range(6)]
    for trials in (1, 2, 7):
        laws = [rejection_law(masses, gaps, most, trials) for gaps in cases]
        with decimal.localcontext(CONTEXT):
            half, slack = exponential(Fraction(most)), 1 + Decimal(10) ** -45
            shares = [Decimal(float(mass)) for mass in masses]
            shares = [share / sum(shares) for share in shares]
            for law in laws:
                assert abs(sum(law) - 1) < Decimal(10) ** -50
                for drawn, share in zip(law, shares, strict=True):
                    assert 1 / (half * slack) <= drawn / share <= half * slack
            for one, other in itertools.permutations(laws, 2):
                assert all(a <= b * half * half * slack for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("trials", [1, 2, 3, 50])
def test_rejection_follows_the_enumerated_law(trials: int, statistical: Any) -> None:
    masses = [0.5, 0.3, 0.15, 0.05]
    # The last two are outside the range: a gap is at most 1.5 and at least 0.
    gaps = [1.2, 0.2, math.nan, -7.0]
    law = rejection_law(np.array(masses), gaps, 1.5, trials)
    drawn = rejection(
        Atoms(masses), at_atoms(gaps), most=1.5, trials=trials, count=200_000, seed=trials
    )
    observed = np.bincount(drawn[:, 0].astype(int), minlength=4)
    statistical.check_law(observed, [float(share) for share in law])


def test_rows_and_chunks_of_rejection_have_one_law(
    statistical: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many small chunks: each has proposals, trials and a fall-back of its own.
    monkeypatch.setattr(of_boosting, "_CHUNK", 512)
    masses, gaps = [0.4, 0.6], [0.0, 1.0]
    law = rejection_law(np.array(masses), gaps, 1.0, 4)
    drawn = rejection(Atoms(masses), at_atoms(gaps), most=1.0, trials=4, count=100_000, seed=1)
    observed = np.bincount(drawn[:, 0].astype(int), minlength=2)
    statistical.check_law(observed, [float(share) for share in law])
    # Draws of different chunks and of one chunk are independent of each other.
    for step in (1, 128):
        pairs = drawn[:-step, 0] * 2 + drawn[step:, 0]
        counts = np.bincount(pairs.astype(int)[:: 2 * step], minlength=4)
        statistical.check_law(counts, np.outer(law, law).astype(float).ravel())


@pytest.mark.parametrize("trials", [1, 2, 3, 40])
def test_rejection_from_a_continuous_reference(trials: int) -> None:
    def gap(points: Floats) -> Floats:
        return 1.0 + np.sin(2.0 * points[:, 0])

    kept = integrate.quad(lambda x: math.exp(-1.0 - math.sin(2 * x)) * stats.norm.pdf(x), -9, 9)[0]
    grid = np.linspace(-9.0, 9.0, 40_001)

    def agreement(fallback: float) -> float:
        density = stats.norm.pdf(grid) * (
            (1.0 - fallback) * np.exp(-1.0 - np.sin(2.0 * grid)) / kept + fallback
        )
        cdf = integrate.cumulative_simpson(density, x=grid, initial=0.0)
        return float(stats.kstest(drawn[:, 0], lambda x: np.interp(x, grid, cdf)).pvalue)

    drawn = rejection(StandardNormal(1), gap, most=2.0, trials=trials, count=100_000, seed=trials)
    assert agreement((1.0 - kept) ** trials) > ALPHA
    if trials <= 3:
        # The sample tells the law from one without the fall-back, or with one more trial.
        assert max(agreement(0.0), agreement((1.0 - kept) ** (trials + 1))) < ALPHA


def test_proposals_trials_and_fall_back_have_streams_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seeds: list[int | None] = []
    reference = StandardNormal(1)
    draw = reference.draw

    def noted(count: int, *, seed: int | None = None) -> Floats:
        seeds.append(seed)
        return draw(count, seed=seed)

    def first_accepted(gaps: Floats, most: float, seed: int | None = None) -> Any:
        seeds.append(seed)
        return _core.first_accepted(gaps, most, seed)

    monkeypatch.setattr(reference, "draw", noted)
    monkeypatch.setattr(of_boosting, "_core", SimpleNamespace(first_accepted=first_accepted))
    monkeypatch.setattr(of_boosting, "_CHUNK", 64)
    rejection(reference, lambda x: x[:, 0], most=1.0, trials=8, count=40, seed=5)
    assert len(seeds) == len(set(seeds)) == 15
    seeds.clear()
    rejection(reference, lambda x: x[:, 0], most=1.0, trials=8, count=40, seed=None)
    assert seeds == [None] * 15


def test_all_trials_and_the_fall_back_are_always_made(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    reference = StandardNormal(1)
    draw = reference.draw

    def noted(count: int, *, seed: int | None = None) -> Floats:
        counts.append(count)
        return draw(count, seed=seed)

    monkeypatch.setattr(reference, "draw", noted)
    for gap in (0.0, 1.0):
        counts.clear()
        evaluated: list[int] = []

        def gaps(points: Floats, gap: float = gap, evaluated: list[int] = evaluated) -> Floats:
            evaluated.append(len(points))
            return np.full(len(points), gap)

        rejection(reference, gaps, most=1.0, trials=30, count=7, seed=1)
        assert (counts, evaluated) == ([210, 7], [210])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_fall_back_is_rare_where_trials_are_automatic(epsilon: float) -> None:
    most = epsilon / 2.0
    trials = automatic_trials(most)
    with decimal.localcontext(CONTEXT):
        refused = 1 - exponential(-Fraction(most))
        chance = refused**trials
        if trials < of_boosting.MOST:
            assert chance <= Decimal("1e-6")
            # Not many more than needed.
            needed = Decimal("1e-6").ln() / refused.ln() if refused > 0 else Decimal(1)
            assert trials <= 2 * needed + 20
        else:
            assert epsilon > 20.0
    assert 1 <= trials <= 2**20


def test_expected_trials_are_at_most_e_to_half_epsilon() -> None:
    # The first accepted of very many: a geometric number, of mean 1 / acceptance.
    for epsilon in (0.5, 2.0, 4.0):
        most = epsilon / 2.0
        gaps = np.full((20_000, 200), most)
        first = _core.first_accepted(gaps, most, 1) + 1
        error = math.exp(most) / math.sqrt(len(first))
        assert abs(first.mean() - math.exp(most)) < 5 * error


# Resampling


class Noting:
    """A band that notes what it is asked for, and what weights the core makes of it."""

    def __init__(self, epsilon: float, base: float | None = None) -> None:
        self._band = _core.SamplerBand(epsilon, base)
        self.ratios: list[Floats] = []
        self.seeds: list[int | None] = []

    def resample(self, ratios: Floats, seed: int | None = None) -> Any:
        self.ratios.extend(ratios)
        self.seeds.append(seed)
        return self._band.resample(ratios, seed)

    def weights(self) -> list[list[int]]:
        """What every draw chose by: integer weights."""
        reference = [np.full(len(row), UNIT, np.uint64) for row in self.ratios]
        pairs = zip(self.ratios, reference, strict=True)
        return [self._band.weights(*pair)[0].tolist() for pair in pairs]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("base", [None, 0.3])
def test_choices_among_proposals_differ_by_at_most_epsilon(
    epsilon: float, base: float | None
) -> None:
    if base is not None and base * math.exp(epsilon) < 1.0:
        base = 1.0 / math.exp(epsilon / 3.0)
    rng = np.random.default_rng(7)
    reference = Atoms([0.5, 0.3, 0.15, 0.05])
    found = []
    for _ in range(12):
        table = rng.choice(HOSTILE, 4)
        band = Noting(epsilon, base)
        for_data = at_atoms(table)
        resampling(reference, for_data, band=band, proposals=9, count=3, seed=11)  # type: ignore[arg-type]
        found.append(band.weights())
    low, high = _core.SamplerBand(epsilon, base).limits(UNIT)
    assert within(Fraction(high, low), epsilon)
    if base is None:
        assert within(Fraction(high, UNIT), epsilon / 2.0)
        assert within(Fraction(UNIT, low), epsilon / 2.0)
    for draws in zip(*found, strict=True):
        # The proposals are the same, whatever the data: only the weights differ.
        assert all(sum(weights) == 9 * UNIT for weights in draws)
        for weights in draws:
            assert all(low <= weight <= high for weight in weights)
        for one, other in itertools.permutations(draws, 2):
            assert all(
                within(Fraction(a, b), epsilon) for a, b in zip(one, other, strict=True) if a > b
            )


def resampling_law(
    masses: Floats, log_ratios: list[float], epsilon: float, proposals: int
) -> Floats:
    """The law of a draw among independent proposals, by all multisets of atoms."""
    band = _core.SamplerBand(epsilon)
    law = np.zeros(len(masses))
    for atoms in itertools.combinations_with_replacement(range(len(masses)), proposals):
        counts = np.bincount(atoms, minlength=len(masses))
        chance = stats.multinomial(proposals, masses).pmf(counts)
        ratios = np.array([log_ratios[atom] for atom in atoms])
        weights, _ = band.weights(ratios, np.full(proposals, UNIT, np.uint64))
        for atom, weight in zip(atoms, weights, strict=True):
            law[atom] += chance * float(weight) / (proposals * UNIT)
    return law


class Independent(Atoms):
    """Atoms whose proposals are independent, like those of foreign references."""

    def _draw_spread(self, count: int, *, seed: int | None = None) -> Floats:
        return self.draw(count, seed=seed)


@pytest.mark.parametrize("proposals", [2, 5])
def test_resampling_follows_the_enumerated_law(proposals: int, statistical: Any) -> None:
    masses = np.array([0.5, 0.3, 0.2])
    ratios = [2.0, -0.4, math.nan]
    law = resampling_law(masses, ratios, 1.5, proposals)
    assert law.sum() == pytest.approx(1.0)
    assert (np.abs(np.log(law / masses)) <= 0.75).all()
    # The estimate is the ratio times the reference.
    reference = Independent(masses)
    estimate = at_atoms(np.array(ratios) + np.log(masses))
    drawn = resampling(
        reference,
        estimate,
        band=_core.SamplerBand(1.5),
        proposals=proposals,
        count=15_000,
        seed=proposals,
    )
    statistical.check_law(np.bincount(drawn[:, 0].astype(int), minlength=3), law)


def test_laws_of_resampling_are_within_the_band_for_pairs_of_data_sets() -> None:
    masses = np.array([0.6, 0.3, 0.1])
    tables = [[50.0, -50.0, -50.0], [-50.0, 50.0, 50.0], [0.0] * 3, [-math.inf, 1.0, math.inf]]
    tables.append([-math.inf] * 3)
    for epsilon in (0.1, 1.0, 6.0):
        laws = [resampling_law(masses, table, epsilon, 5) for table in tables]
        for law in laws:
            assert (np.abs(np.log(law / masses)) <= epsilon / 2.0 + 1e-9).all()
        # Something is learned: the pair at the ends is far apart.
        spread = np.log(laws[0] / laws[1]).max()
        assert 0.2 * epsilon < spread <= epsilon + 1e-9


def test_many_proposals_come_close_to_the_projection(statistical: Any) -> None:
    # Atoms of equal mass, all of them proposed equally often: the law is the clipped one itself.
    masses = np.full(8, 1 / 8)
    ratios = np.array([3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -2.0, -6.0])
    epsilon = 2.0

    def clipped(c: float) -> Floats:
        return np.clip(np.exp(ratios - c), math.exp(-epsilon / 2), math.exp(epsilon / 2)) / 8

    low, high = -20.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if clipped(middle).sum() > 1.0 else (low, middle)
    drawn = resampling(
        Atoms(masses),
        at_atoms(ratios + np.log(masses)),
        band=_core.SamplerBand(epsilon),
        proposals=64,
        count=12_000,
        seed=3,
    )
    statistical.check_law(np.bincount(drawn[:, 0].astype(int), minlength=8), clipped(low))


def test_resampling_seeds_and_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = StandardNormal(1)
    spread = reference._draw_spread
    seeds: list[int | None] = []

    def noted(count: int, *, seed: int | None = None) -> Floats:
        seeds.append(seed)
        return spread(count, seed=seed)

    monkeypatch.setattr(reference, "_draw_spread", noted)

    def draws(seed: int | None) -> tuple[Floats, Noting]:
        band = Noting(1.0)
        found = resampling(
            reference,
            lambda x: x[:, 0],
            band=band,  # type: ignore[arg-type]
            proposals=8,
            count=50,
            seed=seed,
        )
        return found, band

    first, band = draws(3)
    # Proposals and choices of every draw have seeds of their own.
    assert len({*seeds, *band.seeds}) == 100
    assert np.unique(first).size == 50
    assert len({row.tobytes() for row in band.ratios}) == 50
    seeds.clear()
    assert draws(None)[1].seeds == seeds == [None] * 50


def test_an_estimate_that_writes_into_its_input_changes_no_proposal() -> None:
    # As scikit-learn's StandardScaler(copy=False) does.
    def log_density(points: Floats) -> Floats:
        points -= 3.0
        points *= 1e6
        return np.zeros(len(points))

    def gaps(points: Floats) -> Floats:
        points[:] = -1.0
        return np.zeros(len(points))

    box = Uniform(0.0, 1.0)
    band = _core.SamplerBand(1.0)
    drawn = resampling(box, log_density, band=band, proposals=16, count=20, seed=1)
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()
    drawn = rejection(box, gaps, most=1.0, trials=4, count=20, seed=1)
    assert ((drawn >= 0.0) & (drawn <= 1.0)).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_automatic_proposals_bound_the_largest_share(epsilon: float) -> None:
    proposals = automatic_proposals(epsilon)
    assert 1024 <= proposals <= 2**20
    if proposals < 2**20:
        assert math.exp(epsilon / 2.0) / proposals <= 1.0 / 256.0 + 1e-12
    else:
        assert epsilon > 16.0


def test_log_ratios_read_nonsense_as_no_density() -> None:
    box = Uniform(0.0, 1.0)
    at = np.array([[0.5], [0.5], [0.5], [2.0], [2.0]])
    given = np.array([math.nan, math.inf, -math.inf, 0.0, -math.inf])
    found = drawing.log_ratios(box, lambda _: given, at)
    assert found.tolist() == [-math.inf, math.inf, -math.inf, math.inf, -math.inf]


def test_log_ratios_are_evaluated_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_CHUNK", 7)
    at = np.random.default_rng(1).normal(size=(50, 2))
    law = stats.multivariate_normal([1.0, 0.0])
    expected = law.logpdf(at) - stats.multivariate_normal([0.0, 0.0]).logpdf(at)
    found = drawing.log_ratios(StandardNormal(2), law.logpdf, at)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
