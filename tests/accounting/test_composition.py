"""Sums of privacy losses against sums that are known exactly."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import special

import turnout as tn
from turnout.accounting import (
    CentralShuffling,
    Composition,
    CountSampling,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    Shuffled,
    SummedDiscreteGaussianNoise,
    WeakClientSampling,
    compose,
    privacy_loss,
)
from turnout.errors import InvalidTypeError, InvalidValueError

DELTAS = [1e-3, 1e-9, 1e-100]

#: A mechanism's losses: likelihood ratio and mass under the first law; None is infinite.
Losses = dict[Fraction | None, Fraction]


def check_gaussian(total: Composition, sigma: Any, deltas: Sequence[float], exact: Any) -> None:
    """Compare epsilon with that of one Gaussian mechanism, by its delta in 50 digits."""
    for delta in deltas:
        lower, upper = total.epsilon_bounds(delta)
        assert lower <= upper == total.epsilon(delta)
        assert exact(upper, sigma) <= mpf(delta), "the upper value spends more than delta"
        if upper > 0.0:
            assert exact(upper / 1.001, sigma) > mpf(delta), "the upper value is not tight"
        if lower > 0.0:
            assert exact(lower, sigma) >= mpf(delta) * (1 - mpf(10) ** -9)
            assert lower >= 0.97 * upper


@pytest.mark.parametrize("sigma", [0.7, 5.0, 100.0])
@pytest.mark.parametrize("rounds", [1, 2, 10, 1000])
def test_gaussian_mechanisms_add_up_to_one_within_a_thousandth(
    rounds: int, sigma: float, references: ModuleType
) -> None:
    with mp.workdps(50):
        single = mpf(sigma) / mp.sqrt(rounds)
        total = GaussianMechanism(sigma).compose(rounds)
        check_gaussian(total, single, DELTAS, references.gaussian_delta)


@pytest.mark.parametrize(
    "parts",
    [
        [(2.0, 3), (5.0, 1)],
        [(0.8, 1), (50.0, 1000)],
        [(1.0, 1), (3.0, 20), (300.0, 5000)],
    ],
)
def test_different_gaussian_mechanisms_add_up_by_their_precisions(
    parts: list[tuple[float, int]], references: ModuleType
) -> None:
    listed: list[Any] = [
        (GaussianMechanism(sigma), rounds) if rounds > 1 else GaussianMechanism(sigma)
        for sigma, rounds in parts
    ]
    with mp.workdps(50):
        single = 1 / mp.sqrt(sum(rounds / mpf(sigma) ** 2 for sigma, rounds in parts))
        check_gaussian(compose(listed), single, DELTAS[:2], references.gaussian_delta)


@pytest.mark.parametrize("rounds", [2, 1000])
def test_deltas_of_gaussian_mechanisms_are_bracketed_wherever_they_lie(
    rounds: int, references: ModuleType
) -> None:
    total = GaussianMechanism(math.sqrt(rounds)).compose(rounds)
    for epsilon in (0.0, 0.01, 1.0, 5.0, 12.0, 20.0):
        exact = references.gaussian_delta(epsilon, 1.0)
        lower, upper = total.delta_bounds(epsilon)
        assert lower <= exact * (1 + mpf(10) ** -9)
        assert exact <= upper <= exact * (1 + mpf(10) ** -2)
        assert lower >= 0.7 * upper


def test_the_order_of_mechanisms_does_not_matter_and_rounds_add_up() -> None:
    one, two = GaussianMechanism(3.0), LocalSampling(0.1, 1.0)
    there, back = compose([(one, 2), (two, 5)]), compose([(two, 3), one, (two, 2), one])
    assert there.rounds == back.rounds == 7
    assert dict(there.parts) == dict(back.parts) == {one: 2, two: 5}
    for delta in (1e-3, 1e-9):
        assert there.epsilon(delta) == pytest.approx(back.epsilon(delta), rel=1e-9)
    assert compose([one] * 4).epsilon(1e-5) == one.compose(4).epsilon(1e-5)


VARIED: list[Composition] = [
    LocalSampling(0.01, 1.0).compose(100),
    RandomParticipation(0.1, 0.1, 5, 1.0).compose(30, "remove"),
    WeakClientSampling(0.2, 0.1, 1.5).compose(30, "add"),
    DiscreteGaussianNoise(4.0).compose(10),
    Shuffled(tn.DirectEncoding(1.0, 2), 50).compose(3),
    compose([(CountSampling(0.3, 200), 3), DiscreteLaplaceNoise(9.0)], "add_or_remove"),
]


@pytest.mark.parametrize("total", VARIED, ids=repr)
def test_delta_of_epsilon_of_delta_is_at_most_delta_and_bounds_are_in_order(
    total: Composition,
) -> None:
    targets = np.array([[1e-3, 1e-6], [1e-9, 1e-12]])
    epsilons = total.epsilon(targets)
    assert isinstance(epsilons, np.ndarray)
    deltas = total.delta(epsilons)
    assert isinstance(deltas, np.ndarray)
    assert epsilons.shape == deltas.shape == targets.shape
    # Each of the two looks at the sum from another place.
    assert (deltas <= targets * (1 + 1e-4)).all()
    assert (np.diff(epsilons.ravel()) >= 0.0).all()
    for delta, epsilon in zip(targets.ravel(), epsilons.ravel(), strict=True):
        lower, upper = total.epsilon_bounds(float(delta))
        assert 0.0 <= lower <= upper == epsilon
        low, high = total.delta_bounds(float(epsilon))
        assert 0.0 <= low <= high <= delta * (1 + 1e-4)


def convolved(one: Losses, rounds: int) -> Losses:
    total: Losses = {Fraction(1): Fraction(1)}
    for _ in range(rounds):
        longer: Losses = {}
        for ratio, mass in total.items():
            for other, part in one.items():
                key = None if ratio is None or other is None else ratio * other
                longer[key] = longer.get(key, Fraction(0)) + mass * part
        total = longer
    return total


def delta_of(total: Losses, alpha: Fraction) -> Fraction:
    parts = (
        mass if ratio is None else mass * (1 - alpha / ratio)
        for ratio, mass in total.items()
        if ratio is None or ratio > alpha
    )
    return sum(parts, Fraction(0))


def losses_of(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> Losses:
    losses: Losses = {}
    for outcome, mass in one.items():
        if mass > 0:
            key = mass / other[outcome] if other.get(outcome) else None
            losses[key] = losses.get(key, Fraction(0)) + mass
    return losses


@pytest.mark.parametrize("adjacency", ["replace", "add"])
@pytest.mark.parametrize(("scale", "rounds"), [(0.5, 2), (2.0, 10), (30.0, 100), (7.3, 1000)])
def test_discrete_laplace_noise_adds_up_as_its_few_losses_do(
    scale: float, rounds: int, adjacency: str
) -> None:
    # One count: 1/b or -1/b; two counts: 2/b, 0 or -2/b, so they are one count twice as often.
    signs = rounds * (2 if adjacency == "replace" else 1)
    total = DiscreteLaplaceNoise(scale).compose(rounds, adjacency)
    with mp.workdps(60):
        up = 1 / (1 + mp.exp(-1 / mpf(scale)))
        masses = [mp.binomial(signs, k) * up**k * (1 - up) ** (signs - k) for k in range(signs + 1)]
        for part in (0.0, 0.05, 0.2, 0.5):
            epsilon = part * signs / scale
            exact = sum(
                mass * -mp.expm1(epsilon - loss)
                for k, mass in enumerate(masses)
                if (loss := (2 * k - signs) / mpf(scale)) > epsilon
            )
            lower, upper = total.delta_bounds(epsilon)
            assert lower <= exact * (1 + mpf(10) ** -9)
            assert exact <= upper <= exact * (1 + mpf(10) ** -6) + mpf(10) ** -290
    assert total.epsilon(0.0) == pytest.approx(signs / scale, rel=1e-12)
    assert total.epsilon(0.0) >= signs / scale * (1 - 1e-15)


@pytest.mark.parametrize("adjacency", ["replace", "remove", "add"])
@pytest.mark.parametrize(
    ("rate", "floor", "rounds"), [(0.125, 1, 2), (0.25, 4, 3), (0.0625, 2, 3), (0.25, 8, 2)]
)
def test_sampled_counts_add_up_as_their_exact_losses_do(
    rate: float, floor: int, rounds: int, adjacency: str, references: ModuleType
) -> None:
    more, fewer = [floor + 1, floor], [floor, floor + 1]
    if adjacency != "replace":
        more, fewer = [floor + 1], [floor]
    laws = references.product_law(more, rate), references.product_law(fewer, rate)
    exact = convolved(losses_of(*(laws[::-1] if adjacency == "add" else laws)), rounds)
    total = CountSampling(rate, floor).compose(rounds, adjacency)
    for epsilon in (0.0, 0.1, 0.5, 1.5):
        value = float(delta_of(exact, references.alpha_of(epsilon)))
        lower, upper = total.delta_bounds(epsilon)
        assert lower <= value * (1 + 1e-9)
        assert value * (1 - 1e-14) <= upper <= value * 1.05 + 1e-12
        assert lower >= 0.95 * value - 1e-12


NO_LOSS: list[Mechanism] = [
    RandomParticipation(0.0, 0.5, 3, 1.0),
    WeakClientSampling(0.0, 0.5, 1.0),
    CentralShuffling(0.0, 1.0, 1.0),
    LocalSampling(0.0, 1.0),
    CountSampling(0.0, 5),
]


@pytest.mark.parametrize("mechanism", NO_LOSS, ids=repr)
def test_what_samples_nobody_spends_nothing(mechanism: Mechanism) -> None:
    total = mechanism.compose(1000)
    assert total.epsilon_bounds(0.0) == total.epsilon_bounds(1e-9) == (0.0, 0.0)
    assert total.delta_bounds(0.0) == (0.0, 0.0)
    adjacency = mechanism.default_adjacency
    both = compose([(mechanism, 9), (GaussianMechanism(2.0), 4)], adjacency)
    alone = GaussianMechanism(2.0).compose(4, adjacency)
    assert both.epsilon(1e-6) == pytest.approx(alone.epsilon(1e-6), rel=1e-3)


def test_epsilon_is_infinite_where_an_outcome_gives_a_person_away() -> None:
    # All m + 1 people of an item are kept with probability p^(m + 1): never without the last one.
    seen = 0.3**4
    total = CountSampling(0.3, 3).compose(5, "remove")
    assert total.epsilon(seen) == math.inf
    assert total.epsilon_bounds(seen / 10)[1] == math.inf
    assert math.isfinite(total.epsilon(6.0 * seen))


def test_next_to_no_noise_leaves_no_privacy() -> None:
    total = GaussianMechanism(1e-6).compose(10)
    assert total.epsilon(1e-6) > 1e12
    assert total.delta(10.0) == 1.0
    assert GaussianMechanism(0.01).compose(10).delta_bounds(1000.0)[1] == 1.0


def test_a_delta_of_one_needs_no_epsilon_and_one_of_zero_an_infinite_one() -> None:
    for total in (GaussianMechanism(1.0).compose(3), CountSampling(0.5, 3).compose(3)):
        assert total.epsilon_bounds(1.0) == (0.0, 0.0)
        assert total.epsilon_bounds(0.0)[1] == math.inf


def test_lower_values_do_not_exceed_what_is_exactly_known() -> None:
    # Either round shows the person, or none says anything.
    total, exact = CountSampling(0.5, 0).compose(2), 0.75
    assert exact * (1 - 1e-6) <= total.delta_bounds(1.0)[0] <= exact
    assert total.epsilon_bounds(0.8)[0] == 0.0


@pytest.mark.parametrize(("floor", "rounds"), [(0, 3), (1, 3)])
def test_masses_of_infinite_loss_are_combined(floor: int, rounds: int) -> None:
    total = CountSampling(0.5, floor).compose(rounds, "remove")
    exact = 1.0 - (1.0 - 0.5 ** (floor + 1)) ** rounds
    assert exact <= total.delta(40.0) <= exact * (1 + 1e-6)
    assert math.isfinite(total.epsilon(exact * 1.01))
    # They are real: lower values have them too.
    assert exact * (1 - 1e-6) <= total.delta_bounds(40.0).low <= exact
    assert total.epsilon_bounds(exact * 0.99).low == math.inf
    assert math.isfinite(total.epsilon_bounds(exact * 1.01).low)


def test_what_upper_values_keep_for_rounding_is_no_loss_without_end() -> None:
    noise = SummedDiscreteGaussianNoise(4.0, 5)
    assert noise.delta(1e9) > 0.0
    assert noise.compose(3).delta_bounds(1e5).low == 0.0


def test_tiny_noise_warns_of_nothing() -> None:
    assert GaussianMechanism(0.03).compose(2).epsilon(1e-3) > 500.0


@pytest.mark.parametrize(
    ("mechanisms", "adjacency", "message"),
    [
        ([GaussianMechanism(1.0), CountSampling(0.1, 9)], None, "'add_or_remove' and 'replace'"),
        ([LocalSampling(0.1, 1.0)], "replace", "adjacency must be one of 'add_or_remove'"),
        ([Shuffled(tn.DirectEncoding(1.0, 3), 99)], "remove", "adjacency must be one of 'repl"),
        ([GaussianMechanism(1.0)], "swap", "adjacency must be one of"),
        ([], None, "at least one mechanism"),
        ([(GaussianMechanism(1.0), 0)], None, r"mechanisms\[0\]: rounds.*got 0"),
        ([GaussianMechanism(1.0), (GaussianMechanism(1.0), 10**9 + 1)], None, r"mechanisms\[1\]"),
    ],
)
def test_mechanisms_that_cannot_be_composed_are_refused(
    mechanisms: Any, adjacency: Any, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        compose(mechanisms, adjacency)


@pytest.mark.parametrize(
    ("mechanisms", "message"),
    [
        (GaussianMechanism(1.0), "mechanisms must be a sequence"),
        ([GaussianMechanism(1.0), (3, GaussianMechanism(1.0))], r"mechanisms\[1\]"),
        ([(GaussianMechanism(1.0), 2.0)], r"mechanisms\[0\]: rounds"),
    ],
)
def test_what_is_no_mechanism_is_refused(mechanisms: Any, message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        compose(mechanisms)


def test_epsilons_and_deltas_out_of_range_are_refused_by_name() -> None:
    total = GaussianMechanism(1.0).compose(2)
    for wrong in (-0.1, math.nan, math.inf):
        for method in (total.delta, total.delta_bounds):
            with pytest.raises(InvalidValueError, match="epsilon must be"):
                method(wrong)
    for wrong in (-0.1, math.nan, 1.1):
        for method in (total.epsilon, total.epsilon_bounds):
            with pytest.raises(InvalidValueError, match="delta must be"):
                method(wrong)
    for text in ("1", None, True):
        with pytest.raises(InvalidTypeError, match="epsilon must be"):
            total.delta(text)  # type: ignore[call-overload]


def test_far_in_the_tail_neither_memory_nor_time_explode() -> None:
    start = time.process_time()
    tracemalloc.start()
    lower, upper = CentralShuffling(0.001, 0.1, 2.5).compose(1000).delta_bounds(0.5)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lower <= upper < 1e-30
    assert peak < 500e6
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("mechanism", "rounds"),
    [
        (GaussianMechanism(4.0), 10),
        (LocalSampling(0.02, 1.0), 200),
        (RandomParticipation(0.3, 0.1, 5, 1.0), 50),
    ],
    ids=repr,
)
def test_handed_over_to_dp_accounting_the_sum_is_the_same(
    mechanism: Mechanism, rounds: int
) -> None:
    theirs = mechanism.privacy_loss_distribution(1e-4).self_compose(rounds)
    ours = mechanism.compose(rounds)
    for delta in (1e-3, 1e-6):
        assert ours.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), rel=1e-3)


def test_the_length_of_a_transform_is_the_smallest_even_one_of_factors_2_3_and_5() -> None:
    smooth = sorted(2**i * 3**j * 5**k for i in range(1, 22) for j in range(14) for k in range(10))
    for least in [*range(1, 3000), 10**5, 2**20 - 1, 2**20, 2**20 + 1]:
        expected = next(length for length in smooth if length >= least)
        assert privacy_loss._fast_length(least) == expected


def a_loss(index: list[int], mass: list[float], step: float, *, place: float) -> privacy_loss.Loss:
    """Make a loss whose mass was at one place of one cell."""
    spread = (1.0 + step) * (place * (step - place) + 0.125 * step**3)
    cells = privacy_loss.Cells(*(np.array([value]) for value in (1.0, step, spread)))
    return privacy_loss.Loss(np.array(index), np.array(mass), 0.0, step, cells)


@pytest.mark.parametrize("rounds", [1, 20, 1000])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_a_sum_grows_by_more_than_the_bound_only_with_the_given_chance(
    place: float, rounds: int
) -> None:
    step = 0.05
    outcome = place * step
    # Split between 0 and the step with the mean of e^-loss kept.
    up = -math.expm1(-outcome) / -math.expm1(-step)
    loss = a_loss([0, 1], [1.0 - up, up], step, place=outcome)
    grown = [privacy_loss.growth([(loss, rounds)], chance) for chance in (1e-2, 1e-6)]
    assert 0.0 < grown[0] <= grown[1] <= rounds * step
    for bound, chance in zip(grown, (1e-2, 1e-6), strict=True):
        above = math.floor((bound + rounds * outcome) / step) + 1
        ups = range(above, rounds + 1)
        tail = sum(mp.binomial(rounds, k) * mpf(up) ** k * (1 - mpf(up)) ** (rounds - k)
                   for k in ups)  # fmt: skip
        assert tail <= chance


@pytest.mark.parametrize("order", [0.0, 0.7, 4.0])
def test_outside_of_its_window_a_tilted_sum_has_next_to_no_mass(order: float) -> None:
    step, rounds = 0.1, 60
    loss = a_loss([-1, 0, 7], [0.3, 0.69, 0.01], step, place=0.05)
    low, high = privacy_loss.window([(loss, rounds)], order)
    masses = np.zeros(9)
    masses[loss.index + 1] = loss.mass * np.exp(order * step * loss.index)
    masses /= masses.sum()
    law = np.ones(1)
    for _ in range(rounds):
        law = np.convolve(law, masses)
    places = np.arange(law.size) - rounds
    assert law[(places < low) | (places > high)].sum() < 1e-12


@pytest.mark.parametrize(
    ("mechanism", "rounds", "adjacency"),
    [
        (CountSampling(1e-30, 3), 1_000_000, "replace"),
        (CountSampling(1e-30, 3), 10**9, "remove"),
        (CountSampling(1e-218, 1), 202, "remove"),
        (LocalSampling(1e-60, 0.06), 7_293, "add_or_remove"),
    ],
)
def test_what_hardly_ever_happens_costs_next_to_nothing_however_often_it_is_repeated(
    mechanism: Mechanism, rounds: int, adjacency: str
) -> None:
    composition = mechanism.compose(rounds, adjacency)
    # Nobody can gain from more than the rounds in which anything happens at all.
    assert rounds * mechanism.delta(0.0, adjacency) < 1e-10
    assert composition.epsilon(1e-5) == 0.0
    assert mechanism.delta(0.1, adjacency) <= composition.delta(0.1) < 1e-6


def test_a_grid_may_have_gaps_that_no_number_can_undo() -> None:
    composition = GaussianMechanism(0.0002).compose(43, "replace")
    assert composition.epsilon(1e-61) > 43 * GaussianMechanism(0.0002).epsilon(0.5, "replace")


def by_moments(rate: float, noise: float, rounds: int, delta: float) -> float:
    """Bound epsilon of sampled Gaussian noise by its moments of whole orders: Renyi divergences."""
    best = math.inf
    for order in range(2, 600):
        k = np.arange(order + 1)
        terms = (
            special.gammaln(order + 1)
            - special.gammaln(k + 1)
            - special.gammaln(order - k + 1)
            + (order - k) * math.log1p(-rate)
            + k * math.log(rate)
            + k * (k - 1) / (2.0 * noise**2)
        )
        divergence = rounds * float(special.logsumexp(terms)) / (order - 1)
        paid = (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, divergence + math.log1p(-1.0 / order) - paid)
    return best


@pytest.mark.parametrize(
    ("rate", "noise", "rounds", "delta"), [(1e-3, 1.0, 30, 1e-120), (1e-6, 0.3, 1000, 1e-200)]
)
def test_where_the_best_tilt_is_too_long_the_next_one_is_taken(
    rate: float, noise: float, rounds: int, delta: float
) -> None:
    found = LocalSampling(rate, noise).compose(rounds).epsilon(delta)
    assert found <= 1.01 * by_moments(rate, noise, rounds, delta)
