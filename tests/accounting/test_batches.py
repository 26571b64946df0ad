"""Batches of a fixed size, shuffled ones and random check-ins: against enumerated data sets."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from turnout.accounting import (
    FixedSizeBatches,
    GaussianMechanism,
    LocalSampling,
    RandomCheckIns,
    ShuffledBatches,
    calibrate,
    compose,
)
from turnout.accounting.loss_grid import LossGrid
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.privacy_loss import connect
from turnout.errors import InvalidTypeError, InvalidValueError

Floats = npt.NDArray[np.float64]

EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5])


def boxes(means: Floats, noise: float) -> Floats:
    """Give the masses of boxes on a line under Gaussians: what they lose is lost."""
    edges = np.linspace(-12.0, 12.0, 1500)[None, :] - means[:, None] / noise
    below, above = special.ndtr(edges), special.ndtr(-edges)
    inner = np.where(edges[:, :-1] < 0.0, np.diff(below), -np.diff(above))
    return np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)


def lost(one: Floats, other: Floats) -> Floats:
    """Give the divergence at every epsilon."""
    return np.array([np.maximum(one - math.exp(e) * other, 0.0).sum() for e in EPSILONS])


def batch_law(gradients: tuple[float, ...], size: int, noise: float) -> Floats:
    """Draw every batch."""
    sums = np.array([sum(batch) for batch in itertools.combinations(gradients, size)])
    return boxes(sums, noise).mean(axis=0)


@pytest.mark.parametrize(("records", "size", "noise"), [(3, 1, 0.8), (4, 2, 1.5), (5, 3, 0.6)])
def test_no_data_lose_more_by_batches_of_a_fixed_size_and_opposed_ones_as_much(
    records: int, size: int, noise: float
) -> None:
    mechanism = FixedSizeBatches(size, records, noise)
    bounds = {word: mechanism.delta(EPSILONS, word) for word in ("remove", "add", "replace")}
    random = np.random.default_rng(records)
    opposed = (-1.0,) * (records - 1)
    found = [opposed, *(tuple(random.uniform(-1, 1, records - 1)) for _ in range(20))]
    for place, others in enumerate(found):
        one, another = (1.0, -1.0) if place == 0 else random.choice([-1.0, 0.0, 1.0, 0.7], 2)
        with_it = batch_law((*others, one), size, noise)
        laws = {
            "remove": (with_it, batch_law(others, size, noise)),
            "add": (batch_law(others, size, noise), with_it),
            "replace": (with_it, batch_law((*others, another), size, noise)),
        }
        for word, pair in laws.items():
            assert (lost(*pair) <= bounds[word] * (1 + 1e-12)).all()
            if place == 0:
                assert lost(*pair) == pytest.approx(bounds[word], rel=1e-3, abs=1e-9)


def test_a_replacement_moves_a_sum_by_two_norms() -> None:
    # What an accountant says to which the noise is that over one norm.
    careless = LocalSampling(0.01, 2.0).compose(1000)
    bounds = FixedSizeBatches(100, 10_000, 2.0).compose(1000).epsilon_bounds(1e-5)
    assert careless.epsilon(1e-5) < 0.6 * bounds.low
    assert 0.8 < bounds.low / bounds.high < 1.0
    assert (bounds.reached, bounds.exact) == ("all other gradients opposed to the one", False)


def test_batches_of_a_fixed_size_cost_no_more_than_by_renyi_divergences() -> None:
    events = pytest.importorskip("dp_accounting.dp_event")
    accountant = pytest.importorskip("dp_accounting.privacy_accountant")
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    theirs = rdp.RdpAccountant(neighboring_relation=accountant.NeighboringRelation.REPLACE_ONE)
    # Their noise is that over the norm of a difference.
    single = events.SampledWithoutReplacementDpEvent(1000, 50, events.GaussianDpEvent(1.5))
    theirs.compose(single, 200)
    ours = FixedSizeBatches(50, 1000, 3.0).compose(200).epsilon_bounds(1e-6)
    assert ours.high < theirs.get_epsilon(1e-6)
    assert ours.low > 0.4 * theirs.get_epsilon(1e-6)


def test_added_or_removed_records_compose_exactly() -> None:
    composed = FixedSizeBatches(30, 1000, 2.0).compose(50, "add_or_remove")
    bounds = composed.epsilon_bounds(1e-5)
    assert bounds.exact
    local = LocalSampling(0.03, 1.0).compose(50).epsilon(1e-5)
    assert bounds.high == pytest.approx(local, rel=1e-9)
    assert bounds.low > 0.99 * bounds.high


# One person in one of many sums.


def in_two_slots(rate: float, noise: float, distance: float) -> tuple[Floats, Floats]:
    """Give the laws of two sums with a person and without, on a plane."""
    near, far = boxes(np.array([0.0, distance]), noise)
    nobody = np.multiply.outer(near, near)
    somebody = 0.5 * (np.multiply.outer(near, far) + np.multiply.outer(far, near))
    return (1.0 - rate) * nobody + rate * somebody, nobody


@pytest.mark.parametrize(
    ("rate", "noise"),
    [pytest.param(1.0, 1.0, marks=pytest.mark.everyday), (0.4, 0.7), (0.05, 2.0), (1.0, 6.0)],
)
def test_two_slots_lose_what_integration_says(rate: float, noise: float) -> None:
    one, other = in_two_slots(rate, noise, 1.0)
    mechanism = RandomCheckIns(rate, 2, noise)
    for word, pair in (("remove", (one, other)), ("add", (other, one))):
        exact = lost(*pair)
        assert (exact <= mechanism.delta(EPSILONS, word)).all()
        # The boxes lose a little of it.
        assert mechanism.delta(EPSILONS, word) == pytest.approx(exact, rel=2e-3, abs=1e-8)
        for epsilon, value in zip(EPSILONS.tolist(), exact.tolist(), strict=True):
            bounds = mechanism.compose(1, word).delta_bounds(epsilon)
            assert bounds.low <= value * (1 + 1e-3) + 1e-12
            assert bounds.low >= (0.95 if epsilon < 2.0 else 0.6) * value - 1e-8


def test_one_slot_is_local_sampling() -> None:
    for word in ("remove", "add"):
        ours = RandomCheckIns(0.2, 1, 1.3).delta(EPSILONS, word)
        assert (ours == LocalSampling(0.2, 1.3).delta(EPSILONS, word)).all()


@pytest.mark.parametrize(
    ("slots", "rate", "noise"), [(10, 1.0, 1.0), (40, 0.5, 0.7), (9, 1.0, 2.0)]
)
def test_many_slots_lose_what_simulation_says(slots: int, rate: float, noise: float) -> None:
    random = np.random.default_rng(slots)
    repeats = 60_000
    shown = random.standard_normal((repeats, slots))
    ratios = np.exp(shown / noise - 0.5 / noise**2).mean(axis=1)
    ratio = 1.0 - rate + rate * ratios
    epsilons = np.array([0.0, 0.1, 0.3]) * rate
    for word in ("remove", "add"):
        growth = np.exp(epsilons)
        gains = (ratio[:, None] - growth) if word == "remove" else (1.0 - growth * ratio[:, None])
        gains = np.maximum(gains, 0.0)
        mean, error = gains.mean(axis=0), gains.std(axis=0) / math.sqrt(repeats)
        reach = stats.norm.isf(1e-6 / 12) * error + 1e-9
        for place, epsilon in enumerate(epsilons.tolist()):
            bounds = RandomCheckIns(rate, slots, noise).compose(1, word).delta_bounds(epsilon)
            assert bounds.low - reach[place] <= mean[place] <= bounds.high + reach[place]
            assert bounds.low > 0.8 * bounds.high


BRACKETS: list[Mechanism] = [
    *(
        RandomCheckIns(rate, slots, noise)
        for rate, slots, noise in [
            (0.0, 5, 1.0), (1e-6, 100, 0.3), (0.3, 2, 0.01), (1.0, 10**6, 0.5), (1.0, 3, 1e3),
            (0.5, 1000, 3e4), (1.0, 50, 1e-7), (0.9, 7, 1e9), (1.0, 300, 0.15),
        ]
    ),
    *(ShuffledBatches(many, noise) for many, noise in [(1, 1.0), (20, 0.2), (10**6, 30.0)]),
    *(FixedSizeBatches(*case) for case in [(1, 10**10, 1.0), (9, 10, 1e-3), (1, 2, 1e7)]),
]  # fmt: skip


@pytest.mark.parametrize("mechanism", BRACKETS, ids=repr)
def test_lower_values_are_below_upper_ones_and_both_fall(mechanism: Mechanism) -> None:
    epsilons = [0.0, 1e-9, 1e-3, 0.1, 1.0, 5.0, 60.0, 800.0]
    for word in mechanism.adjacencies:
        bounds = [mechanism.compose(1, word).delta_bounds(e) for e in epsilons]
        assert all(0.0 <= low <= high <= 1.0 for low, high in bounds)
        assert (np.diff([high for _, high in bounds]) <= 1e-7).all()
    for law in mechanism._reached():
        # One that is real has a mass of one, and what is composed of it no more.
        grid = LossGrid(((law, 2),), ("remove", "add"), 1e-20, 1.0)
        if grid.spread > 0.0:
            total = grid._losses[0][0]
            assert float(total.mass.sum()) + total.infinite <= 1.0 + 1e-6


def test_more_slots_and_a_lower_rate_protect_better() -> None:
    slots = [RandomCheckIns(0.5, many, 0.8).delta(EPSILONS[:3]) for many in (1, 3, 40)]
    assert (np.diff(slots, axis=0) < 1e-9).all()
    rates = [RandomCheckIns(rate, 20, 0.8).delta(EPSILONS[:3]) for rate in (0.1, 1.0)]
    assert (np.diff(rates, axis=0) > -1e-9).all()


def test_passes_of_check_ins_compose() -> None:
    # Three passes of the pair itself, on two slots, by enumeration of losses.
    one, other = in_two_slots(1.0, 3.0, 1.0)
    loss = np.log(one / other).ravel()
    counts, edges = np.histogram(loss, 90, weights=one.ravel())
    sums, _ = np.histogram(loss, edges, weights=(one.ravel() * loss))
    centres = sums / np.maximum(counts, 1e-300)
    total = (centres[:, None, None] + centres[None, :, None] + centres[None, None, :]).ravel()
    masses = (counts[:, None, None] * counts[None, :, None] * counts[None, None, :]).ravel()
    exact = float((masses * np.maximum(0.0, -np.expm1(0.4 - total))).sum())
    bounds = RandomCheckIns(1.0, 2, 3.0).compose(3, "remove").delta_bounds(0.4)
    # Bins with their mean loss lose a little of it.
    assert exact <= bounds.high <= exact * 1.03
    assert exact * 0.9 <= bounds.low <= exact
    assert 0.97 * bounds.high <= bounds.low <= bounds.high
    assert not bounds.exact  # a grid alone is known of what the data lose


# One pass in a random order.


@pytest.mark.everyday
def test_no_data_lose_more_in_a_shuffled_pass_and_opposed_ones_what_is_said() -> None:
    noise = 1.4
    mechanism = ShuffledBatches(2, noise)
    promised = mechanism.delta(EPSILONS)

    def law(gradients: tuple[float, ...]) -> Floats:
        orders = set(itertools.permutations(range(4)))
        splits = {frozenset(order[:2]) for order in orders}
        total = sum(gradients)
        firsts = np.array([sum(gradients[i] for i in split) for split in splits])
        masses = boxes(firsts, noise), boxes(total - firsts, noise)
        return np.einsum("sx,sy->xy", *masses) / len(splits)

    random = np.random.default_rng(4)
    cases = [((-1.0, -1.0, -1.0), 1.0, -1.0)]
    cases += [(tuple(random.uniform(-1, 1, 3)), *random.uniform(-1, 1, 2)) for _ in range(2)]
    for place, (others, one, another) in enumerate(cases):
        first, second = law((*others, one)), law((*others, another))
        for pair in ((first, second), (second, first)):
            assert (lost(*pair) <= promised).all()
        if place == 0:
            real = np.maximum(lost(first, second), lost(second, first))
            for epsilon, value in zip(EPSILONS.tolist(), real.tolist(), strict=True):
                bounds = mechanism.compose(1).delta_bounds(epsilon)
                assert 0.95 * value - 1e-8 <= bounds.low <= value * (1 + 1e-3) + 1e-12
                assert bounds.reached == "all other gradients opposed to the one"


def test_a_shuffled_pass_is_no_poisson_sampling() -> None:
    bounds = ShuffledBatches(1000, 1.0).compose(1).epsilon_bounds(1e-6)
    poisson = LocalSampling(1 / 1000, 1.0).compose(1000).epsilon(1e-6)
    assert 10.0 * poisson < bounds.low < bounds.high
    assert bounds.high == pytest.approx(GaussianMechanism(0.5).epsilon(1e-6), rel=1e-12)


@pytest.mark.parametrize(
    ("mechanism", "parameter", "slightly_worse"),
    [
        (FixedSizeBatches(10, 1000, 2.0), "noise_multiplier", 1 / 1.001),
        (FixedSizeBatches(10, 1000, 2.0), "batch_size", 1),
        (FixedSizeBatches(10, 1000, 2.0), "records", -1),
        (RandomCheckIns(0.5, 30, 1.0), "rate", 1.001),
        (ShuffledBatches(30, 1.0), "noise_multiplier", 1 / 1.001),
    ],
)
def test_parameters_calibrate(mechanism: Mechanism, parameter: str, slightly_worse: Any) -> None:
    found = calibrate(mechanism, parameter, 0.3, 1e-4)
    less = found * slightly_worse if isinstance(found, float) else found + slightly_worse
    assert mechanism.replace(**{parameter: found}).delta(0.3) <= 1e-4
    assert mechanism.replace(**{parameter: less}).delta(0.3) > 1e-4


def test_batches_compose_with_other_releases() -> None:
    both = compose([(FixedSizeBatches(10, 1000, 2.0), 20), GaussianMechanism(5.0)], "replace")
    bounds = both.epsilon_bounds(1e-6)
    alone = FixedSizeBatches(10, 1000, 2.0).compose(20).epsilon(1e-6)
    assert alone < bounds.high
    assert bounds.low <= bounds.high
    assert "opposed" in bounds.reached


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FixedSizeBatches(10, 10, 1.0), InvalidValueError, "batch_size must be less than"),
        (lambda: FixedSizeBatches(0, 10, 1.0), InvalidValueError, "batch_size must be"),
        (lambda: FixedSizeBatches(1, 1, 1.0), InvalidValueError, "records must be"),
        (lambda: FixedSizeBatches(1.5, 10, 1.0), InvalidTypeError, "batch_size must be"),
        (lambda: FixedSizeBatches(1, 10, 0.0), InvalidValueError, "noise_multiplier must be"),
        (lambda: RandomCheckIns(1.2, 10, 1.0), InvalidValueError, "rate must be"),
        (lambda: RandomCheckIns(0.5, 0, 1.0), InvalidValueError, "slots must be"),
        (lambda: RandomCheckIns(0.5, 10**7, 1.0), InvalidValueError, "slots must be"),
        (lambda: ShuffledBatches(0, 1.0), InvalidValueError, "batches must be"),
        (lambda: ShuffledBatches(3, math.inf), InvalidValueError, "noise_multiplier must be"),
    ],
)
def test_bad_parameters_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("mechanism", "rounds", "delta"),
    [
        (RandomCheckIns(0.5, 2, 0.36), 20, 1e-3),
        (RandomCheckIns(0.1, 1000, 0.3), 10, 1e-3),
    ],
)
def test_the_least_of_several_bounds_composes_to_no_more_than_each(
    mechanism: RandomCheckIns, rounds: int, delta: float
) -> None:
    """Where another bound becomes the least a profile is not convex: such dots are left out."""
    known = LocalSampling(mechanism.rate, mechanism.noise_multiplier).compose(rounds)
    bounds = mechanism.compose(rounds).epsilon_bounds(delta)
    assert bounds.low <= bounds.high <= known.epsilon(delta)
    assert not bounds.exact


@pytest.mark.parametrize("noise", [0.36, 0.6])
def test_masses_of_one_round_are_those_of_a_law(noise: float) -> None:
    mechanism = RandomCheckIns(0.5, 2, noise)

    loss = connect(mechanism._tail, ("remove", "add"), 1e-2, (60.0, 30.0), 512)
    assert loss.mass.sum() + loss.infinite == pytest.approx(1.0, abs=1e-6)


def test_delta_never_rises_with_epsilon_however_small_it_is() -> None:
    for mechanism in (RandomCheckIns(0.01, 5253, 6.408), RandomCheckIns(0.1925, 81122, 35.944)):
        deltas = mechanism.delta(np.array([0.0, 0.0005, 0.001, 0.003, 0.01, 0.02]))
        assert (np.diff(deltas) <= 0.0).all()
