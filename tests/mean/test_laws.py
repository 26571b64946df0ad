"""Laws from first principles: cells of the grid, corners of the cube, and whole small designs."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums

WORDS = 2**64
EPSILONS = (
    1e-6,
    1e-4,
    0.003,
    0.05,
    0.3,
    1.0,
    2.499,
    2.5,
    3.9,
    5.0,
    7.5,
    11.1,
    17.0,
    23.0,
    31.7,
    40.0,
)

#: A run of neighbouring cells with one probability each: first cell, number of cells, probability.
Run = tuple[int, int, Fraction]


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x from decimal arithmetic, which is correctly rounded to 120 digits."""
    with decimal.localcontext() as context:
        context.prec = 120
        return Fraction(decimal.Decimal(x).exp()) * (1 - Fraction(1, 10**118))


def runs(mechanism: tn.mean.Piecewise, value: Fraction) -> list[Run]:
    """The probability of every cell for a value in [-1, 1], as runs of equal ones."""
    window, anywhere = mechanism._core.law
    cells = mechanism.cells
    place = (value + 1) / 2 * (cells - window)
    start, rest = math.floor(place), place - math.floor(place)
    far = Fraction(anywhere, WORDS * cells)
    near = Fraction(WORDS - anywhere, WORDS * window)
    edges = [0, start, start + 1, start + window, start + window + 1, cells]
    levels = [far, far + near * (1 - rest), far + near, far + near * rest, far]
    if rest == 0:
        edges, levels = [0, start, start + window, cells], [far, far + near, far]
    made = [(a, b - a, p) for (a, b), p in zip(itertools.pairwise(edges), levels, strict=True)]
    return [run for run in made if run[1]]


def powers(first: int, count: int) -> tuple[int, int]:
    """Sums of the cells of a run and of their squares."""

    def below(end: int) -> tuple[int, int]:
        return end * (end - 1) // 2, (end - 1) * end * (2 * end - 1) // 6

    return tuple(b - a for a, b in zip(below(first), below(first + count), strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_cell_of_the_grid(epsilon: float) -> None:
    mechanism = tn.mean.Piecewise(epsilon)
    values = [Fraction(x) for x in (-1, 1, 0, Fraction(1, 3), Fraction(-7, 9))]
    laws = [runs(mechanism, value) for value in values]
    top = max(p for law in laws for _, _, p in law)
    least = min(p for law in laws for _, _, p in law)
    assert top / least == mechanism.realized_ratio
    assert mechanism.realized_ratio <= exponential_below(epsilon)
    # It is attained: the first cell is in the window of -1 and not in that of 1.
    assert laws[0][0][2] / laws[1][0][2] == mechanism.realized_ratio
    last = mechanism.cells - 1
    for value, law in zip(values, laws, strict=True):
        assert sum(count * p for _, count, p in law) == 1
        assert sum(count for _, count, _ in law) == mechanism.cells
        mean = second = Fraction(0)
        for first, count, p in law:
            one, two = powers(first, count)
            mean += p * (2 * one - last * count)
            second += p * (4 * two - 4 * last * one + last**2 * count)
        assert mechanism._scale * mean == value
        variance = mechanism._scale**2 * second - value**2
        assert float(variance) <= mechanism.worst_variance * (1 + 1e-12)
        known = mechanism._second_moment.rounding
        assert float(mechanism.variance([float(value)])[0]) == pytest.approx(
            float(variance), rel=1e-9, abs=known
        )


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 8.0, 12.0])
def test_drawn_cells_have_their_law_up_to_the_edges_of_the_window(
    epsilon: float, statistical: ModuleType
) -> None:
    low, high, nodes = 10.0, 14.0, 2_000_000
    mechanism = tn.mean.Piecewise(epsilon, (low, high))
    for value in (10.0, 11.25, 13.999):
        law = runs(mechanism, (Fraction(value) - 12) / 2)
        # Cut long runs into pieces, so that a wrong law within them shows too.
        edges = [0]
        for first, count, _ in law:
            edges += [first + count * part // 20 for part in range(1, 21)]
        edges = sorted(set(edges))
        chances = []
        for a, b in itertools.pairwise(edges):
            (p,) = [p for first, count, p in law if first <= a and b <= first + count]
            chances.append(float(p * (b - a)))
        cells = mechanism.randomize(np.full(nodes, value), seed=int(7 * value)).codes
        observed = np.histogram(cells.astype(np.int64), bins=edges)[0]
        # The last bin of a histogram is closed; there is no cell at its end.
        assert observed.sum() == nodes
        statistical.check_law(observed, chances)


def test_sampled_coordinates_are_uniform_and_their_cells_independent(
    statistical: ModuleType,
) -> None:
    mechanism = tn.mean.Piecewise(6.0, (0.0, 1.0), dimensions=4)
    held = np.array([0.1, 0.5, 0.8, 1.0])
    nodes = 600_000
    reports = mechanism.randomize(np.tile(held, (nodes, 1)), seed=3)
    assert mechanism._sampled == 2
    one = tn.mean.Piecewise(3.0)
    assert mechanism.cells == one.cells
    assert mechanism.realized_ratio == one.realized_ratio**2
    blocks = np.linspace(0, mechanism.cells, 6).astype(np.int64)
    chance = np.zeros((4, 5))
    for j, value in enumerate(held):
        for first, count, p in runs(one, 2 * Fraction(value) - 1):
            for block in range(5):
                overlap = min(first + count, blocks[block + 1]) - max(first, blocks[block])
                chance[j, block] += float(p) * max(int(overlap), 0)
    cells = np.searchsorted(blocks, reports.codes[:, 2:].astype(np.int64), side="right") - 1
    pairs = list(itertools.combinations(range(4), 2))
    expected = np.concatenate([np.outer(chance[a], chance[b]).ravel() / 6 for a, b in pairs])
    index = {pair: place for place, pair in enumerate(pairs)}
    places = np.array([[index.get((a, b), -1) for b in range(4)] for a in range(4)])
    pair = places[reports.codes[:, 0], reports.codes[:, 1]]
    assert (pair >= 0).all()
    observed = np.bincount(25 * pair + 5 * cells[:, 0] + cells[:, 1], minlength=150)
    statistical.check_law(observed, expected)


def corner_law(
    mechanism: tn.mean.Duchi, values: tuple[Fraction, ...]
) -> dict[tuple[int, ...], Fraction]:
    """The law of a report: round every coordinate, then prefer corners that mostly agree."""
    d = len(values)
    ratio = mechanism.realized_ratio
    corners = list(itertools.product((0, 1), repeat=d))
    law = dict.fromkeys(corners, Fraction(0))
    for rounded in corners:
        chance = Fraction(1)
        for bit, value in zip(rounded, values, strict=True):
            chance *= (1 + value) / 2 if bit else (1 - value) / 2
        likely = {t for t in corners if 2 * sum(map(int.__eq__, t, rounded)) > d}
        total = ratio * len(likely) + len(corners) - len(likely)
        for t in corners:
            law[t] += chance * (ratio if t in likely else 1) / total
    return law


@pytest.mark.parametrize("d", range(1, 6))
@pytest.mark.parametrize("epsilon", [1e-6, 0.4, 3.0, 40.0])
def test_corners(d: int, epsilon: float) -> None:
    mechanism = tn.mean.Duchi(epsilon, dimensions=d)
    assert mechanism.realized_ratio <= exponential_below(epsilon)
    # Laws are mixtures of those of the corners, so these show the ratio; it is attained.
    laws = [
        corner_law(mechanism, v) for v in itertools.product((Fraction(-1), Fraction(1)), repeat=d)
    ]
    worst = max(max(law[t] for law in laws) / min(law[t] for law in laws) for t in laws[0])
    assert worst == mechanism.realized_ratio
    values = tuple(Fraction(2 * j - 3, 7) for j in range(d))
    law = corner_law(mechanism, values)
    for j, value in enumerate(values):
        assert mechanism._scale * sum(p * (2 * t[j] - 1) for t, p in law.items()) == value


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_drawn_corners_have_their_law(d: int, statistical: ModuleType) -> None:
    mechanism = tn.mean.Duchi(1.2, (-5.0, 3.0), d)
    held = np.array([-4.0, 3.0, 0.0, -1.0])[:d]
    law = corner_law(mechanism, tuple((Fraction(value) + 1) / 4 for value in held))
    values = np.tile(held, (500_000, 1))
    cells = mechanism.randomize(values[:, 0] if d == 1 else values, seed=d).codes.reshape(-1, d)
    observed = np.bincount(cells.astype(np.int64) @ 2 ** np.arange(d), minlength=2**d)
    expected = [float(law[tuple((place >> j) & 1 for j in range(d))]) for place in range(2**d)]
    statistical.check_law(observed, expected)


def outcomes(
    mechanism: tn.mean.Duchi, participation: tn.Participation, values: list[tuple[Fraction, ...]]
) -> Iterator[tuple[float, tn.mean.MeanTally]]:
    """Every tally that a collection can end in, with its probability."""
    laws = [list(corner_law(mechanism, value).items()) for value in values]
    nodes = len(values)
    rates = [participation.uniform_rate] * nodes
    if isinstance(participation, tn.Personalized):
        rates = participation.probabilities.tolist()
    choices = [
        [(1 - rate, None), *((rate * float(p), t) for t, p in law)]
        for rate, law in zip(rates, laws, strict=True)
    ]
    for drawn in itertools.product(*choices):
        probability = math.prod(p for p, _ in drawn)
        if probability == 0.0:
            continue
        cells = np.array([t for _, t in drawn if t is not None], dtype=np.int64)
        taking = [rate for rate, (_, t) in zip(rates, drawn, strict=True) if t is not None]
        personal = participation.uniform_rate is None
        design = None
        if isinstance(participation, tn.Personalized):
            design = DesignSums.of(participation.probabilities)
        reports = tn.Reports(
            mechanism,
            participation,
            cells.ravel() if mechanism.dimensions == 1 else cells.reshape(-1, mechanism.dimensions),
            nodes,
            probabilities=taking if personal else None,
            design=design,
        )
        yield probability, mechanism.tally(reports)


DESIGNS = [
    (1, tn.Everyone()),
    (1, tn.Bernoulli(0.3)),
    (1, tn.Personalized([0.2, 0.9, 0.5, 1.0, 0.35])),
    (2, tn.Bernoulli(0.6)),
    (2, tn.Personalized([0.25, 1.0, 0.7])),
]


@pytest.mark.parametrize(("d", "participation"), DESIGNS, ids=repr)
def test_small_designs_in_full(d: int, participation: tn.Participation) -> None:
    # Participation depends on the values: the nodes with large ones take part rarely.
    nodes = 5 if d == 1 else 3
    values = [tuple(Fraction(3 - 2 * i + j, 7) for j in range(d)) for i in range(nodes)]
    bounds = (2.0, 10.0)
    mechanism = tn.mean.Duchi(1.5, bounds, d)
    held = 6.0 + 4.0 * np.array([[float(x) for x in value] for value in values])
    truth = held.mean(axis=0)
    given = held[:, 0] if d == 1 else held
    everything = list(outcomes(mechanism, participation, values))
    assert sum(p for p, _ in everything) == pytest.approx(1.0, abs=1e-12)
    # Horvitz-Thompson: unbiased, whoever takes part. With personal probabilities there is no
    # standard error without reports, and so no estimate: its value would be the middle.
    chances = np.array([p for p, _ in everything])
    personal = participation.uniform_rate is None
    found = np.array(
        [
            np.full(d, 6.0)
            if personal and tally.received == 0
            else np.atleast_1d(tally.estimate("horvitz_thompson").mean)
            for _, tally in everything
        ]
    )
    np.testing.assert_allclose(chances @ found, truth, rtol=1e-8)
    spread = chances @ (found - truth) ** 2
    exact = tn.estimator_variance(mechanism, participation, values=given, method="horvitz_thompson")
    np.testing.assert_allclose(spread, np.atleast_1d(exact), rtol=1e-8)
    if personal:
        return
    # Hajek, given a report: unbiased for a common rate, and the variance is exact.
    some = [(p, tally.estimate()) for p, tally in everything if tally.received]
    chances = np.array([p for p, _ in some])
    chances /= chances.sum()
    found = np.array([np.atleast_1d(estimate.mean) for _, estimate in some])
    np.testing.assert_allclose(chances @ found, truth, rtol=1e-9)
    spread = chances @ (found - truth) ** 2
    exact = tn.estimator_variance(mechanism, participation, values=given)
    np.testing.assert_allclose(spread, np.atleast_1d(exact), rtol=1e-9)
    covered = sum(
        p * np.atleast_1d(estimate.interval(0.9).contains(truth[0] if d == 1 else truth))
        for p, (_, estimate) in zip(chances, some, strict=True)
    )
    assert (covered >= 0.9).all()
