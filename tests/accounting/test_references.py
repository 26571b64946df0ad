"""The second computations agree with a third, so that they can be trusted to judge the library."""

from __future__ import annotations

import math
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from mpmath import mp, mpf

SETTINGS = [(0.3, 0.4, 3, 0.7), (0.9, 0.2, 2, 2.0), (0.5, 0.9, 2, 1.0), (1.0, 0.3, 1, 1.5)]


@pytest.mark.parametrize("adjacency", ["remove", "add"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_tails_beyond_the_crossing_are_the_integral_of_the_positive_part(
    setting: tuple[float, float, int, float], adjacency: str, references: ModuleType
) -> None:
    for epsilon in (0.03, 0.4):
        tails = references.mixture_delta(epsilon, setting, adjacency)
        integral = references.mixture_delta(epsilon, setting, adjacency, quadrature=True)
        assert abs(tails - integral) <= mpf(10) ** -30 * tails


def test_sampling_everything_is_the_analytic_gaussian_mechanism(references: ModuleType) -> None:
    for adjacency in ("remove", "add"):
        found = references.poisson_gaussian_delta(0.7, 1.0, 1.3, adjacency)
        assert abs(found - references.gaussian_delta(0.7, 1.3)) < mpf(10) ** -40


@pytest.mark.parametrize("adjacency", ["remove", "add"])
def test_full_participation_hides_nothing_whatever_the_number_of_elements(
    adjacency: str, references: ModuleType
) -> None:
    sampled = references.poisson_gaussian_delta(0.2, 0.3, 0.8, adjacency)
    for size in (0, 1, 40):
        found = references.mixture_delta(0.2, (1.0, 0.3, size, 0.8), adjacency)
        assert abs(found - sampled) < mpf(10) ** -40


@pytest.mark.parametrize("kind", ["aligned", "opposed", "zero"])
def test_boxes_stay_below_the_quadrature_and_close_in_on_it(
    kind: str, configurations: ModuleType
) -> None:
    drawn = configurations.draw(np.random.default_rng(3), 2, 3, kind)
    assert drawn.dimension == 1
    for adjacency in ("remove", "add"):
        exact = configurations.line_delta(drawn, 0.1, (0.6, 0.4), 0.9, adjacency)
        for width, error in ((0.3, 0.03), (0.03, 3e-4)):
            boxes = configurations.Round.of(drawn, 0.4, 0.9, (width, width))
            found = boxes.delta(0.1, (0.6, 0.4), adjacency)
            assert exact * (1 - error) <= found <= exact * (1 + mpf(10) ** -13)


@pytest.mark.parametrize("kind", ["orthogonal", "oblique", "free"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_thirty_digits_confirm_the_boxes_and_turning_the_axes_changes_nothing(
    dimension: int, kind: str, configurations: ModuleType
) -> None:
    drawn = configurations.draw(np.random.default_rng(5), dimension, 2, kind)
    turned = configurations.Configuration(
        kind, drawn.new[::-1], drawn.others[::-1, ::-1], drawn.multiplicities
    )
    for adjacency in ("remove", "add"):
        boxes = configurations.Round.of(drawn, 0.4, 0.9, (0.15, 0.25, 0.3))
        found = boxes.delta(0.1, (0.6, 0.4), adjacency)
        confirmed = boxes.delta_30_digits(0.1, (0.6, 0.4), adjacency)
        assert abs(confirmed - found) <= 1e-12 * found
        again = configurations.Round.of(turned, 0.4, 0.9, (0.12, 0.2, 0.25))
        assert again.delta(0.1, (0.6, 0.4), adjacency) == pytest.approx(found, rel=0.04)


def test_boxes_follow_a_simulation_of_the_round(
    configurations: ModuleType, statistical: ModuleType
) -> None:
    p, q, sigma, runs = 0.6, 0.4, 0.9, 200_000
    random = np.random.default_rng(8)
    drawn = configurations.draw(random, 3, 3, "free")
    takes_part = random.random(runs) < p
    kept = (random.random((runs, 3)) < q) & takes_part[:, None]
    new = (random.random(runs) < q) & takes_part
    noise = random.normal(0, sigma, (runs, 3))
    without = kept @ drawn.others + noise
    boxes = configurations.Round.of(drawn, q, sigma, (0.5, 0.5, 0.5))
    event = (boxes.gaps(0.05, (p, q), "remove") > 0).ravel()
    shape = [len(edges) - 1 for edges in boxes.edges]
    for sums, law in zip(
        (without + np.outer(new, drawn.new), without), boxes.laws(p, q), strict=True
    ):
        inside = sums @ drawn.basis.T / sigma
        places = [
            np.clip(np.searchsorted(edges, inside[:, axis]) - 1, 0, shape[axis] - 1)
            for axis, edges in enumerate(boxes.edges)
        ]
        hits = event[np.ravel_multi_index(places, shape)].sum()
        mass = float(law.ravel()[event].sum())
        statistical.check_share(hits, runs, mass, mass)


def test_losses_on_a_grid_bracket_a_composition_that_is_known(
    losses: ModuleType, references: ModuleType
) -> None:
    # Gaussians compose to a Gaussian: 16 rounds at 4 sigma are one at sigma.
    setting = (1.0, 1.0, 0, 4.0)
    below, above = losses.composed_bracket(
        setting, 16, "remove", step=2e-3, reach=12.0, scale=1.0, points=60_000
    )
    for epsilon in (0.1, 1.0, 3.0):
        exact = float(references.gaussian_delta(epsilon, 1.0))
        assert exact * 0.997 < below.delta(epsilon) < exact < above.delta(epsilon) < exact * 1.001


def test_binomial_sums_agree_in_rationals_and_in_fifty_digits(references: ModuleType) -> None:
    exact = references.count_sampling_delta(0.8, 0.4, 9, "replace", 9)
    found = references.count_replacement_delta(0.8, 0.4, 9)
    with mp.workdps(50):
        assert abs(found * exact.denominator / exact.numerator - 1) < mpf(10) ** -40


def test_the_published_reduction_of_shuffling_is_no_bound(
    references: ModuleType, shuffling: ModuleType
) -> None:
    # Two nodes, three values: where the other node holds a third value it is the exact law.
    local, epsilon = 0.5, 0.3
    change = Fraction(1 / (math.exp(local) + 2))
    response = shuffling.Response(3, 1 - 2 * change, change)
    pair = shuffling.shuffled_pair(2, response.keep, change, 2 * change)
    alpha = references.alpha_of(epsilon)
    third = [shuffling.histogram_law((value, 2), response) for value in (0, 1)]
    assert references.hockey_stick(*pair, alpha) == references.hockey_stick(*third, alpha)
    keep, other = float(response.keep), float(change)
    plain = shuffling.shuffled_delta(epsilon, 2, keep, other, 2 * other)
    assert plain == pytest.approx(float(references.hockey_stick(*pair, alpha)), rel=1e-12)
    # Where it holds the first value, two reports of that value are likelier than the pair knows.
    keep = response.keep
    by_hand = keep * (keep - alpha * change)
    assert shuffling.worst_shuffled_delta(epsilon, 2, response) == by_hand
    assert by_hand > Fraction(11, 10) * references.hockey_stick(*pair, alpha)


@pytest.mark.parametrize(("size", "nodes"), [(2, 4), (3, 2), (3, 5), (4, 4), (5, 3)])
def test_two_bounds_of_shuffling_hold_for_all_data(
    size: int, nodes: int, shuffling: ModuleType
) -> None:
    for local, rate in ((0.5, 1), (2.0, 1), (2.0, 0.5)):
        change = Fraction(1 / (math.exp(local) + size - 1))
        response = shuffling.Response(size, 1 - (size - 1) * change, change, Fraction(rate))
        own, other = response.keep * response.rate, change * response.rate
        for epsilon in (0.0, 0.1, 0.4, 1.5):
            worst = shuffling.worst_shuffled_delta(epsilon, nodes, response)
            assert worst <= shuffling.shuffled_bound(epsilon, nodes, own, other, 2 * other)
            blanket = shuffling.blanket_bound(
                epsilon, nodes, (float(own), float(other)), float(2 * other), float(1 - own - other)
            )
            assert float(worst) <= blanket * (1 + 1e-12) + 1e-15


def test_moderate_data_sets_agree_with_their_enumeration(
    references: ModuleType, shuffling: ModuleType
) -> None:
    response = shuffling.Response(3, Fraction(6, 10), Fraction(2, 10))
    for counts in ((0, 0, 3), (2, 0, 1), (1, 1, 1)):
        others = [value for value, many in enumerate(counts) for _ in range(many)]
        laws = [shuffling.histogram_law((value, *others), response) for value in (0, 1)]
        exact = references.hockey_stick(*laws, references.alpha_of(0.2))
        found = shuffling.data_set_delta(0.2, counts, 0.6, 0.2)
        assert found == pytest.approx(float(exact), rel=1e-12)


def test_a_power_as_a_fraction_has_thirty_digits(references: ModuleType) -> None:
    found = references.alpha_of(1.0)
    assert abs(float(found) - math.e) < 1e-15
    with mp.workdps(60):
        assert abs(mpf(found.numerator) / found.denominator / mp.e - 1) < mpf(10) ** -40
