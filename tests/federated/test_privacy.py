"""The guarantee against the exact law of what is released, worked out without the accounting."""

from __future__ import annotations

import itertools
import threading
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special

from turnout import _core
from turnout.accounting import (
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    PrivacyLedger,
    RandomParticipation,
    WeakClientSampling,
    compose,
)
from turnout.errors import BudgetExceededError, InvalidValueError
from turnout.federated import SGD, Client, InProcessEngine, RandomParticipationSGD, Server, draws
from turnout.federated.grid import Grid

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MODES = ("trusted_server", "always_send", "participants_only")
EPSILONS = np.array([0.0, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.2, 3.0, 5.0])


def plan_of(**changes: Any) -> RandomParticipationSGD:
    chosen: dict[str, Any] = {
        "client_rate": 0.6, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 0.8,
        "local_size": 3, "grid_bits": 8,
    }  # fmt: skip
    return RandomParticipationSGD(**{**chosen, **changes})


# The law of a round, by enumeration.


def noise_masses(numbers: Integers, centre: int, bits: int) -> Floats:
    """Masses of round(2^bits Z) + centre."""
    low, high = (numbers - centre - 0.5) / 2.0**bits, (numbers - centre + 0.5) / 2.0**bits
    # From the tail that is smaller, so that no digits cancel.
    upper = low > 0
    return np.where(
        upper, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low)
    )


def weights_of(elements: Integers, client_rate: float, sample_rate: float) -> list[Any]:
    """Which sums are sent with which probabilities, over all sampled sets; first: none is."""
    found = [(1.0 - client_rate, np.zeros(elements.shape[1], np.int64))]
    for chosen in itertools.product([False, True], repeat=len(elements)):
        weight = client_rate * np.prod([sample_rate if c else 1 - sample_rate for c in chosen])
        found.append((float(weight), elements[np.array(chosen, bool)].sum(axis=0)))
    return found


def law(
    elements: Integers, client_rate: float, sample_rate: float, bits: int, reach: int, *, seen: bool
) -> Floats:
    """Masses of what is released: rows for not taking part and taking part if that is seen."""
    numbers = np.arange(-reach, reach + 1)
    rows = np.zeros((2, *[numbers.size] * elements.shape[1]))
    for place, (weight, total) in enumerate(weights_of(elements, client_rate, sample_rate)):
        masses = [noise_masses(numbers, int(centre), bits) for centre in total]
        rows[int(place > 0 and seen)] += weight * product_of(masses)
    return rows


def product_of(masses: list[Floats]) -> Floats:
    return masses[0] if len(masses) == 1 else np.multiply.outer(masses[0], masses[1])


def check_guarantee(
    mechanism: Mechanism,
    others: Integers,
    element: Integers,
    rates: tuple[float, float],
    bits: int,
    *,
    seen: bool,
) -> float:
    """Fail if a divergence is above the guarantee; give the largest part of it that is used."""
    radius = float(np.abs(others).sum() + np.abs(element).sum())
    reach = int(radius + 9.0 * 2**bits)
    whole = law(np.vstack([others, element]), *rates, bits, reach, seen=seen)
    fewer = law(others, *rates, bits, reach, seen=seen)
    used = 0.0
    for word, left, right in (("remove", whole, fewer), ("add", fewer, whole)):
        claimed = mechanism.delta(EPSILONS, adjacency=word)
        for epsilon, delta in zip(EPSILONS, np.asarray(claimed), strict=True):
            found = float(np.maximum(left - np.exp(epsilon) * right, 0.0).sum())
            assert found <= delta * (1 + 1e-9) + 1e-13, (word, epsilon, others, element, rates)
            if delta > 1e-6:
                used = max(used, found / float(delta))
    return used


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bounded", [True, False])
def test_one_element_changes_a_round_by_no_more_than_the_accounting_says(
    mode: str, bounded: bool
) -> None:
    random, used = np.random.default_rng(4), []
    for _ in range(60):
        rates = (float(random.choice([1.0, 0.9, 0.4, 0.05])), float(random.choice([1.0, 0.7, 0.2])))
        size = int(random.integers(1, 4))
        plan = plan_of(
            client_rate=rates[0],
            sample_rate=rates[1],
            noise_multiplier=float(random.choice([0.5, 1.0, 3.0])),
            mode=mode,
            local_size=size if bounded else None,
            nominal_local_size=1,
        )
        assert plan.grid is not None
        assert plan.mechanism is not None
        # A trusted server sees it too, but what it releases does not tell.
        seen = mode == "participants_only"
        most = int(plan.grid.radius)
        numbers = random.choice([-most, most, 0, int(random.integers(-most, most))], size=(size, 1))
        numbers[-1] = random.choice([-most, most])
        used.append(
            check_guarantee(plan.mechanism, numbers[:-1], numbers[-1:], rates, 8, seen=seen)
        )
    # Some of these come close: the enumeration could tell if the guarantee were smaller.
    assert max(used) > 0.99


def test_in_two_dimensions_other_directions_are_no_worse() -> None:
    random, bits, sigma = np.random.default_rng(5), 2, 0.7
    radius, used = 2.0**bits / sigma, []
    for trial in range(40):
        rates = (float(random.choice([1.0, 0.5, 0.1])), float(random.choice([0.9, 0.3])))
        count = int(random.integers(1, 3))
        angles = random.uniform(0.0, 2.0 * np.pi, count + 1)
        if trial % 4 == 0:
            angles = random.choice([0.0, np.pi], count + 1)
        found = np.trunc(radius * np.column_stack([np.cos(angles), np.sin(angles)]))
        numbers = found.astype(np.int64)
        mechanism = RandomParticipation(*rates, count, sigma)
        used.append(check_guarantee(mechanism, numbers[:-1], numbers[-1:], rates, bits, seen=False))
    assert max(used) > 0.5


def test_the_enumeration_finds_accountings_that_are_too_small() -> None:
    # Hiding who takes part where it is seen, one element less, a little less noise.
    full, rates = np.array([[-320], [-320], [320]]), (0.4, 0.5)
    wrong = [
        (RandomParticipation(*rates, 2, 0.8), full, True),
        (RandomParticipation(*rates, 1, 0.8), full, False),
        (RandomParticipation(*rates, 0, 0.801), full[2:], False),
        (WeakClientSampling(*rates, 0.801), full[2:], True),
    ]
    for mechanism, elements, seen in wrong:
        with pytest.raises(AssertionError):
            check_guarantee(mechanism, elements[:-1], elements[-1:], rates, 8, seen=seen)
    check_guarantee(RandomParticipation(*rates, 2, 0.8), full[:2], full[2:], rates, 8, seen=False)


@pytest.mark.parametrize("mode", MODES)
def test_what_leaves_has_the_enumerated_law(statistical: ModuleType, mode: str) -> None:
    plan = plan_of(mode=mode, seed=6)
    assert plan.grid is not None
    gradients, rounds = np.array([[5.0], [-0.3], [0.7]]), 30_000
    radius, step = plan.grid.radius, plan.grid.step
    elements = np.array([[int(radius)], [int(-0.3 / step)], [int(0.7 / step)]])
    client = Client(plan, 3, parameters=1, index=4)
    server = Server(plan, np.zeros(1), SGD(1.0))
    released, took_part = np.zeros(rounds), np.zeros(rounds, bool)
    for number in range(rounds):
        update = client.answer(number, lambda chosen: gradients[chosen])
        took_part[number] = update is not None
        if mode == "trusted_server":
            before = server.parameters
            server.open(1)
            server.add(update, 4)
            released[number] = (before - server.close())[0] / (plan._scale(1) * step)
        elif update is not None:
            released[number] = update.values[0]
    reach = 3000
    rows = law(elements, 0.6, 0.5, 8, reach, seen=mode == "participants_only")
    places = np.rint(released).astype(np.int64) + reach
    np.testing.assert_allclose(released, places - reach, atol=1e-6)
    if mode == "participants_only":
        observed = np.bincount(places[took_part], minlength=2 * reach + 1)
        statistical.check_law([(~took_part).sum(), took_part.sum()], [0.4, 0.6])
        masses = rows[1] / 0.6
    else:
        observed, masses = np.bincount(places, minlength=2 * reach + 1), rows[0]
    width = 25
    length = observed.size // width * width
    statistical.check_law(
        observed[:length].reshape(-1, width).sum(axis=1),
        masses[:length].reshape(-1, width).sum(axis=1),
    )


# Sensitivity.

STRANGE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.7e308, -1.7e308, 1e-160, 1e160]),
    st.floats(-2.0, 2.0),
)
STRANGE_SINGLE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([0.0, -0.0, 2.0**-149, -(2.0**-149), 3.4028234663852886e38]),
)


@settings(max_examples=300, deadline=None)
@given(
    row=st.integers(0, 40).flatmap(lambda m: arrays(np.float64, (1, m), elements=STRANGE)),
    single=st.integers(1, 40).flatmap(
        lambda m: arrays(np.float32, (1, m), elements=STRANGE_SINGLE)
    ),
    clip=st.floats(1e-300, 1e300),
    sigma=st.floats(2.0**-16, 1e3),
    shrink=st.sampled_from([None, 1.0, 1.0 + 2**-52, 1.0 - 2**-53]),
)
def test_no_example_is_longer_than_the_radius(
    row: Floats, single: Any, clip: float, sigma: float, shrink: float | None
) -> None:
    try:
        grid = Grid.of(clip, sigma, 24)
    except InvalidValueError:
        return
    if shrink is not None and row.any():
        # Almost exactly as long as the clipping norm.
        with np.errstate(over="ignore", under="ignore"):
            scaled = row / np.abs(row).max()
            row = scaled / np.linalg.norm(scaled) * clip * shrink
        if not np.isfinite(row).all():
            return
    limit = (Fraction(grid.clip) / Fraction(grid.step)) ** 2
    assert grid.noise_multiplier >= Fraction(sigma)
    for parts in ([row], [single], [row, single], [single, row]):
        found = _core.clip_to_grid(parts, grid.clip, grid.step)
        assert sum(int(number) ** 2 for number in found) <= limit


def test_rows_that_are_many_equal_numbers_stay_within_the_radius() -> None:
    for width in (1, 2, 3, 16, 17, 2047, 2049, 100_003):
        for scale in (1.0, 1.0 + 2**-52, 3.0, 1e-200, 1e200):
            for clip in (1.0, 0.1, 1e-200, 1e200):
                grid = Grid.of(clip, 2.0**-16, 24)
                row = np.full((1, width), scale * clip / np.sqrt(width))
                if not 0.0 < row[0, 0] < np.inf:
                    continue
                found = _core.clip_to_grid([row], grid.clip, grid.step)
                limit = (Fraction(grid.clip) / Fraction(grid.step)) ** 2
                assert width * int(found[0]) ** 2 <= limit
                assert (found == found[0]).all()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_an_element_without_a_gradient_moves_nothing(mode: str, wrong: float) -> None:
    # With an error or a missing update it would move the sum of all the others.
    plan = plan_of(client_rate=1.0, sample_rate=1.0, mode=mode, seed=2)
    gradients = np.array([[0.5, 0.5], [0.1, 0.1], [0.1, 0.1]])
    broken = gradients.copy()
    broken[1, 1] = wrong
    update = Client(plan, 3, parameters=2).answer(0, lambda chosen: broken[chosen])
    fewer = Client(plan, 2, parameters=2).answer(0, lambda chosen: gradients[[0, 2]][chosen])
    assert update is not None
    assert fewer is not None
    np.testing.assert_array_equal(update.values, fewer.values)
    nested = {"a": broken[:, :1].astype(np.float32), "b": broken[:, 1:]}
    models = {"a": np.zeros(1), "b": np.zeros(1)}
    again = Client(plan, 3, parameters=models).answer(0, lambda chosen: nested)
    assert again is not None
    np.testing.assert_array_equal(again.values, fewer.values)
    engine = InProcessEngine(
        plan,
        np.zeros(2),
        lambda model, client, chosen: broken[chosen],
        3,
        SGD(1.0),
        clients=2,
        batched=True,
    )
    assert np.isfinite(engine.run(1)).all()


def test_without_noise_a_gradient_that_is_not_finite_is_an_error() -> None:
    plan = plan_of(noise="none", noise_multiplier=None, client_rate=1.0, sample_rate=1.0)
    client = Client(plan, 1, parameters=1)
    with pytest.raises(InvalidValueError, match="finite"):
        client.answer(0, lambda chosen: np.array([[np.nan]]))
    floating = plan_of(noise="float", client_rate=1.0, sample_rate=1.0)
    update = Client(floating, 1, parameters=1).answer(0, lambda chosen: np.array([[np.nan]]))
    assert update is not None
    assert update.values.tolist() == [0.0]


# Streams.


def test_no_two_draws_of_a_study_share_their_words() -> None:
    seen = set()
    for plan in (plan_of(seed=seed, mode="always_send") for seed in (0, 1)):
        for number in range(20):
            seen.add(draws.server_noise(plan, 64, number).tobytes())
            for index in range(20):
                seen.add(draws.made_safe(plan, np.zeros(64, np.int64), index, number).tobytes())
    assert len(seen) == 2 * 20 * 21


def test_threads_never_share_noise() -> None:
    seen = [_core.rounded_gaussian(64, 24).tobytes()]
    threads = [
        threading.Thread(target=lambda: seen.append(_core.rounded_gaussian(64, 24).tobytes()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen.append(_core.rounded_gaussian(64, 24).tobytes())
    assert len(set(seen)) == len(seen) == 6


# Ledgers.


def test_kinds_of_rounds_that_depend_on_results_can_exceed_what_composition_says() -> None:
    # Why a node lets no server choose the next kind by what it has seen.
    epsilon, delta = 1.0, 1e-5
    first, seconds = GaussianMechanism(6.0), [
        GaussianMechanism(4.765),
        WeakClientSampling(1.2e-5, 1.0, 0.309),
        WeakClientSampling(1e-3, 1.0, 1.978),
    ]  # fmt: skip

    def beyond(mechanism: Mechanism, losses: Floats) -> Floats:
        """The divergence that is left where the first release had these losses."""
        left = epsilon - losses
        forth = np.asarray(mechanism.delta(np.maximum(left, 0.0), adjacency="remove"))
        back = np.asarray(mechanism.delta(np.maximum(-left, 0.0), adjacency="add"))
        return np.where(left >= 0, forth, 1 - np.exp(left) + np.exp(left) * back)

    points = np.linspace(-9.0, 9.0, 8001)
    masses = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi) * (points[1] - points[0])
    losses = 1 / (2 * 6.0**2) + points / 6.0
    left = [beyond(mechanism, losses) for mechanism in seconds]
    for mechanism, one in zip(seconds, left, strict=True):
        assert compose([(first, 1), (mechanism, 1)]).delta(epsilon) <= delta
        assert float(masses @ one) <= delta
    assert float(masses @ np.maximum.reduce(left)) > 1.9 * delta


def test_no_history_spends_more_than_its_composition() -> None:
    random = np.random.default_rng(8)
    mechanisms = [
        RandomParticipation(0.1, 0.2, 5, 0.9),
        WeakClientSampling(0.1, 0.2, 1.1),
        LocalSampling(0.02, 1.2),
        GaussianMechanism(12.0),
    ]
    refused = 0
    for _ in range(6):
        epsilon, delta = float(random.choice([0.5, 1.0, 2.0])), float(random.choice([1e-5, 1e-7]))
        word = str(random.choice(["add_or_remove", "add", "remove"]))
        ledger = PrivacyLedger(epsilon, delta, word)
        kinds = random.permutation(len(mechanisms))[: int(random.integers(1, 4))]
        used = [mechanisms[kind] for kind in kinds]
        for _ in range(int(random.integers(3, 40))):
            mechanism = used[int(random.integers(len(used)))]
            rounds = int(random.choice([1, 1, 1, 7, 60, 400]))
            try:
                ledger.spend(mechanism, rounds)
            except BudgetExceededError:
                refused += 1
        if ledger.entries:
            parts = [(entry.mechanism, entry.rounds) for entry in ledger.entries]
            assert compose(parts, word).delta(epsilon) <= delta * (1 + 1e-6)
    assert refused > 5
