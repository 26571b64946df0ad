"""Parameters at the ends of their ranges, and what is refused by name."""

from __future__ import annotations

import math
import random
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import turnout.accounting as ta
from turnout.accounting import paper
from turnout.accounting.participation import participation_delta
from turnout.errors import BudgetExceededError, InvalidTypeError, InvalidValueError

ADJACENCIES = ("remove", "add")
NAN, INF = math.nan, math.inf


def tightness(exact: mpf, sigma: float) -> float:
    """Return how far above the exact delta the bound may be, relatively.

    Tails of neighbouring Gaussians cancel all but a share 1 / sigma of each other, and far out a
    tail is less well known than its place: that is rounded up.
    """
    if sigma > 1e3:
        return 3e-8
    return 1e-11 if exact > mpf(10) ** -25 else 1e-9


SETTINGS = [
    (0.001, 0.1, 30, 2.5),
    (0.1, 0.001, 1000, 0.8),
    (0.5, 1.0, 4, 1.0),
    (1.0, 1.0, 3, 0.5),
    (1.0, 0.01, 7, 3.0),
    (1e-12, 1e-8, 5, 1.0),
    (0.9, 0.5, 2, 1e-6),
    (0.9, 0.5, 2, 1e6),
    (0.3, 1e-7, 10**8, 1.0),
    (1 - 1e-15, 0.3, 6, 0.05),
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("setting", SETTINGS)
def test_delta_is_right_to_1e_11_and_never_too_small_at_the_ends_of_all_ranges(
    setting: tuple[float, float, int, float], adjacency: str, references: ModuleType
) -> None:
    mechanism = ta.RandomParticipation(*setting)
    for epsilon in (0.0, 1e-9, 1e-4, 0.1, 1.0, 1e4):
        exact = references.best_shares_delta(epsilon, setting, adjacency)
        found = mechanism.delta(epsilon, adjacency=adjacency)
        references.check_bound(found, exact, tightness(exact, setting[3]))


@pytest.mark.parametrize("seed", range(40))
def test_delta_of_random_parameters_is_right_to_1e_11_and_never_too_small(
    seed: int, references: ModuleType
) -> None:
    draw = random.Random(seed)

    def between(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    setting = (between(1e-6, 1), between(1e-3, 1), draw.randrange(40), between(0.05, 20))
    mechanism = ta.RandomParticipation(*setting)
    for epsilon in (between(1e-6, 1), between(0.1, 5)):
        for way in ADJACENCIES:
            exact = references.best_shares_delta(epsilon, setting, way)
            found = mechanism.delta(epsilon, adjacency=way)
            references.check_bound(found, exact, tightness(exact, setting[3]))


def test_tiny_deltas_down_to_1e_300_are_right_to_1e_11(references: ModuleType) -> None:
    reached = 1.0
    for target in (30, 60, 100, 150, 200, 250, 292):
        epsilon = math.sqrt(2 * target * math.log(10))
        for setting in ((0.1, 0.5, 3, 1.0), (1.0, 0.5, 0, 1.0), (0.5, 1.0, 2, 1.0)):
            exact = references.best_shares_delta(epsilon, setting, "remove")
            found = ta.RandomParticipation(*setting).delta(epsilon, adjacency="remove")
            # Where one of the tails is subnormal, its logarithm costs a digit.
            references.check_bound(found, exact, 1e-11 if exact > 1e-290 else 5e-11)
            reached = min(reached, found)
        exact = references.gaussian_delta(epsilon, 1.0)
        references.check_bound(ta.GaussianMechanism(1.0).delta(epsilon), exact)
    assert 0 < reached < 1e-299


def test_the_gaussian_mechanism_is_right_at_the_ends_of_all_ranges(references: ModuleType) -> None:
    for sigma in (1e-6, 0.01, 1.0, 100.0, 1e6):
        for epsilon in (0.0, 1e-9, 0.1, 3.0, 1e4):
            exact = references.gaussian_delta(epsilon, sigma)
            found = ta.GaussianMechanism(sigma).delta(epsilon)
            references.check_bound(found, exact, tightness(exact, sigma))


def test_more_elements_than_can_be_summed_leave_weak_client_sampling() -> None:
    # Ten thousand sampled elements on average: the client that takes part is in plain sight.
    for size in (10**6, 10**8):
        found = ta.RandomParticipation(0.2, 0.01, size, 1.0).delta(0.01)
        weak = ta.WeakClientSampling(0.2, 0.01, 1.0).delta(0.01)
        assert found == pytest.approx(weak, rel=1e-11)


def test_nobody_or_nothing_sampled_means_no_loss() -> None:
    for mechanism in (
        ta.RandomParticipation(0.0, 0.5, 10, 1.0),
        ta.RandomParticipation(0.5, 0.0, 10, 1.0),
        ta.LocalSampling(0.0, 1.0),
        ta.WeakClientSampling(0.0, 0.5, 1.0),
        ta.CentralShuffling(0.5, 0.0, 1.0),
        ta.CountSampling(0.0, 10),
    ):
        for adjacency in mechanism.adjacencies:
            assert mechanism.delta(0.0, adjacency=adjacency) == 0
            assert mechanism.epsilon(0.0, adjacency=adjacency) == 0


def test_delta_zero_needs_an_infinite_epsilon_and_delta_one_none() -> None:
    for mechanism in (
        ta.RandomParticipation(0.5, 0.5, 10, 1.0),
        ta.LocalSampling(0.5, 1.0),
        ta.GaussianMechanism(1.0),
        ta.SkellamNoise(3.0),
    ):
        assert mechanism.epsilon(0.0) == INF
        assert mechanism.epsilon(1.0) == 0
        assert mechanism.epsilon([1.0, 0.0]).tolist() == [0.0, INF]


def test_what_is_rarer_than_numbers_is_no_bounded_loss() -> None:
    weak = ta.WeakClientSampling(0.1, 0.1, 1.0)
    assert weak.delta(50.0) > 0.0
    assert weak.epsilon(0.0) == weak.compose(10).epsilon(0.0) == INF
    with pytest.raises(InvalidValueError, match="no noise_multiplier reaches"):
        ta.calibrate(weak, "noise_multiplier", 1.0, 0.0)
    with pytest.raises(BudgetExceededError):
        ta.PrivacyLedger(epsilon=40.0, delta=0.0).spend(weak)
    for rates in ((1e-200, 1e-200), (1e-160, 1e-160), (5e-324, 0.5), (0.5, 5e-324)):
        for rare in (ta.RandomParticipation(*rates, 5, 1.0), ta.WeakClientSampling(*rates, 1.0)):
            assert rare.epsilon(0.0) == INF
            # One element is told from none with the product of the rates.
            assert mpf(rare.delta(0.0)) >= mpf(rates[0]) * mpf(rates[1]) * mpf("0.3829249225")
            assert rare.compose(1).delta_bounds(0.0).low == 0.0


@pytest.mark.parametrize("power", [60, 78, 110, 140])
def test_rounds_of_the_rarest_losses_lose_no_less_than_one(power: int) -> None:
    rare = ta.RandomParticipation(10.0**-power, 10.0**-power, 5, 1.0)
    assert rare.delta(0.0) <= rare.compose(10).delta(0.0)


def test_without_noise_the_sampled_element_is_seen() -> None:
    assert ta.RandomParticipation(0.5, 0.5, 10, 1e-6).delta(0.0) == pytest.approx(0.25, rel=1e-11)
    assert ta.RandomParticipation(0.5, 0.5, 10, 1e-6).delta(100.0) == pytest.approx(0.25, rel=1e-11)


def test_numbers_give_floats_and_arrays_give_arrays_of_their_shape() -> None:
    mechanism = ta.RandomParticipation(0.5, 0.5, 10, 1.0)
    assert type(mechanism.delta(0.1)) is type(mechanism.epsilon(1e-3)) is float
    assert type(mechanism.delta(np.float32(0.5))) is float
    assert mechanism.delta(np.zeros((2, 3))).shape == (2, 3)
    assert mechanism.delta([]).shape == (0,)
    assert mechanism.delta([0.1, 0.2]).dtype == np.float64


@pytest.mark.parametrize("adjacency", ["add_or_remove", "add", "remove"])
def test_a_number_gives_the_delta_of_its_place_in_an_array(adjacency: str) -> None:
    mechanism = ta.RandomParticipation(0.1, 0.3, 10, 0.8)
    epsilons = np.linspace(0.0, 2.0, 12).reshape(3, 4)
    for points in (epsilons, epsilons.T, epsilons[::2, ::-1], np.asfortranarray(epsilons)):
        together = mechanism.delta(points, adjacency)
        one_by_one = [mechanism.delta(epsilon, adjacency) for epsilon in points.ravel()]
        assert together.ravel().tolist() == one_by_one
        assert mechanism.delta(np.array(points[0, 0]), adjacency) == one_by_one[0]


@pytest.mark.parametrize("bad", [-1.0, -5e-324, math.nan, math.inf, -math.inf])
def test_a_number_is_refused_in_the_same_words_as_an_array_with_it(bad: float) -> None:
    mechanism = ta.RandomParticipation(0.5, 0.5, 10, 1.0)
    words = re.escape(f"epsilon must be a number of at least 0 and finite, got {bad}")
    for given_epsilon in (bad, np.float64(bad), np.array(bad), [0.5, bad], np.array([[bad]])):
        with pytest.raises(InvalidValueError, match=words):
            mechanism.delta(given_epsilon)


MECHANISM = ta.RandomParticipation(0.5, 0.5, 10, 1.0)
ROUND = {"client_rate": 0.5, "sample_rate": 0.5, "local_size": 10, "noise_multiplier": 1.0}


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("client_rate", [-0.1, 1.0000001, NAN, INF]),
        ("sample_rate", [-1e-300, 2, NAN, -INF]),
        ("local_size", [-1, 10**30]),
        ("noise_multiplier", [-1.0, NAN, INF, 0.0]),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(argument: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidValueError, match=argument):
            ta.RandomParticipation(**{**ROUND, argument: value})
        if argument == "local_size":
            continue
        with pytest.raises(InvalidValueError, match=argument):
            paper.theorem_4_1_delta(0.1, **{**ROUND, argument: value})


@pytest.mark.parametrize("argument", list(ROUND))
def test_parameters_of_the_wrong_type_are_refused_by_name(argument: str) -> None:
    wrong = ["1", None, True, 1j, [1.0, 2.0], b"1"] + ([0.5] if argument == "local_size" else [])
    for value in wrong:
        with pytest.raises(InvalidTypeError, match=argument):
            ta.RandomParticipation(**{**ROUND, argument: value})
        with pytest.raises(InvalidTypeError, match=argument):
            paper.theorem_4_1_delta(0.1, **{**ROUND, argument: value})


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda value: ta.LocalSampling(value, 1.0), "sample_rate"),
        (lambda value: ta.LocalSampling(0.5, value), "noise_multiplier"),
        (lambda value: ta.WeakClientSampling(value, 0.5, 1.0), "client_rate"),
        (lambda value: ta.CentralShuffling(0.5, value, 1.0), "sample_rate"),
        (ta.GaussianMechanism, "noise_multiplier"),
        (lambda value: ta.CountSampling(value, 10), "rate"),
        (ta.DiscreteLaplaceNoise, "scale"),
        (ta.DiscreteGaussianNoise, "scale"),
        (ta.SkellamNoise, "mean"),
        (MECHANISM.delta, "epsilon"),
        (lambda value: MECHANISM.delta([0.1, value]), "epsilon"),
        (MECHANISM.epsilon, "delta"),
        (lambda value: MECHANISM.compose(3).delta(value), "epsilon"),
        (lambda value: MECHANISM.compose(3).epsilon(value), "delta"),
        (lambda value: ta.calibrate_noise(MECHANISM, epsilon=value, delta=1e-6), "epsilon"),
        (lambda value: ta.calibrate_noise(MECHANISM, epsilon=1.0, delta=value), "delta"),
        (lambda value: participation_delta(value, 1.0, 0.5, 0.5, 3), "epsilon"),
        (lambda value: participation_delta(0.1, [1.0, value], 0.5, 0.5, 3), "noise_multiplier"),
        (lambda value: paper.theorem_3_1_delta(value, 10, 10), "epsilon"),
        (lambda value: paper.theorem_3_2_delta(1.0, 3, 10, 100, value), "z"),
    ],
)
def test_what_is_no_number_of_the_range_is_refused_by_name(make: Any, argument: str) -> None:
    for value in (NAN, -0.1, -INF):
        with pytest.raises(InvalidValueError, match=argument):
            make(value)
    for wrong in ("0.5", None, 1j):
        with pytest.raises(InvalidTypeError, match=argument):
            make(wrong)


@pytest.mark.parametrize("make", [ta.CountSampling, paper.theorem_3_1_delta])
def test_counts_must_be_whole_and_not_negative(make: Any) -> None:
    rest = (0.5,) if make is ta.CountSampling else (0.5, 10)
    with pytest.raises(InvalidValueError, match="floor"):
        make(*rest, -1)
    for wrong in (1.5, "3", None, True):
        with pytest.raises(InvalidTypeError, match="floor"):
            make(*rest, wrong)


def test_rounds_and_nodes_must_be_whole_and_at_least_one(oracle: Any) -> None:
    for value in (0, -1):
        with pytest.raises(InvalidValueError, match="rounds"):
            MECHANISM.compose(value)
        with pytest.raises(InvalidValueError, match="nodes"):
            ta.Shuffled(oracle, value)
    for wrong in (1.5, "3", None, True):
        with pytest.raises(InvalidTypeError, match="rounds"):
            MECHANISM.compose(wrong)
        with pytest.raises(InvalidTypeError, match="nodes"):
            ta.Shuffled(oracle, wrong)


def test_an_unknown_adjacency_is_refused_by_name(oracle: Any) -> None:
    for word in ("replace", "both", "", 3):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="adjacency"):
            MECHANISM.delta(0.1, adjacency=word)
    with pytest.raises(InvalidValueError, match="adjacency"):
        ta.Shuffled(oracle, 100).delta(0.1, adjacency="remove")


def test_theorem_3_2_refuses_what_its_conditions_refuse() -> None:
    with pytest.raises(InvalidValueError, match="z must be at most"):
        paper.theorem_3_2_delta(1.0, 10, 100, 1000, 5.0)
    with pytest.raises(InvalidValueError, match="nodes must be at least"):
        paper.theorem_3_2_delta(1.0, 10, 101, 1000, 1.0)


def test_nothing_is_claimed_at_epsilon_zero_and_no_delta_at_large_ones() -> None:
    assert paper.theorem_3_1_delta(0.0, 10, 100) == 1
    assert paper.theorem_4_1_delta(1e4, 0.5, 0.5, 3, 1.0) == 0


@pytest.fixture(scope="module")
def oracle() -> Any:
    import turnout as tn

    return tn.DirectEncoding(1.0, 3)


def test_exact_references_do_not_underflow(references: ModuleType) -> None:
    # The check of tiny deltas would be empty if the second computation were zero.
    assert references.best_shares_delta(37.0, (1.0, 0.5, 0, 1.0), "remove") > mpf(10) ** -310


def test_a_delta_that_is_no_number_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(_: object, points: Any) -> dict[str, SimpleNamespace]:
        lost = SimpleNamespace(delta=np.full(points.size, np.nan))
        return {"add": lost, "remove": SimpleNamespace(delta=np.full(points.size, 0.25))}

    monkeypatch.setattr(ta.RandomParticipation, "_divergence", known)
    for adjacency in ("add", "add_or_remove"):
        mechanism = ta.RandomParticipation(0.1, 0.5, 3, 2.0)
        assert math.isnan(mechanism.delta(1.0, adjacency))
        assert np.isnan(mechanism.delta([1.0, 2.0], adjacency)).all()
