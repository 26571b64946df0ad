"""Distances by hand-computed numbers, by their inequalities, and by their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.estimation.projection import DISTANCES, distance

Floats = npt.NDArray[np.float64]

SYMMETRIC = ("total_variation", "l1", "l2", "rmse", "max", "hellinger")


def distributions(seed: int, number: int) -> list[Floats]:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 8))
    return [generator.dirichlet(np.ones(size)) for _ in range(number)]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("total_variation", 0.5),
        ("l1", 1.0),
        ("l2", math.sqrt(0.25 + 0.0625 + 0.0625)),
        ("rmse", math.sqrt((0.25 + 0.0625 + 0.0625) / 3)),
        ("max", 0.5),
        ("hellinger", math.sqrt(1 - math.sqrt(0.5))),
        ("kl", math.inf),
    ],
)
def test_a_distance_has_its_value_by_hand(metric: str, expected: float) -> None:
    estimate, reference = np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.25, 0.25])
    assert distance(estimate, reference, metric) == pytest.approx(expected, rel=1e-12)


def test_kl_is_of_the_reference_from_the_estimate_in_nats() -> None:
    estimate, reference = np.array([0.5, 0.25, 0.25]), np.array([1.0, 0.0, 0.0])
    assert distance(estimate, reference, "kl") == pytest.approx(math.log(2), rel=1e-12)
    lopsided = np.array([0.9, 0.05, 0.05])
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.25 / 0.05)
    assert distance(lopsided, estimate, "kl") == pytest.approx(expected, rel=1e-12)


def test_total_variation_is_the_largest_difference_of_the_probability_of_an_event() -> None:
    for seed in range(30):
        one, other = distributions(seed, 2)
        largest = max(
            abs(float((one - other)[list(event)].sum()))
            for size in range(one.size + 1)
            for event in itertools.combinations(range(one.size), size)
        )
        assert distance(one, other, "total_variation") == pytest.approx(largest, abs=1e-12)


@pytest.mark.parametrize("metric", SYMMETRIC)
def test_a_metric_is_symmetric_zero_only_at_itself_and_obeys_the_triangle(metric: str) -> None:
    for seed in range(30):
        one, other, third = distributions(seed, 3)
        direct = distance(one, other, metric)
        assert direct == pytest.approx(distance(other, one, metric), rel=1e-12)
        assert distance(one, one, metric) == 0.0
        assert direct > 0.0
        assert direct <= distance(one, third, metric) + distance(third, other, metric) + 1e-12


def test_the_distances_obey_the_inequalities_between_them() -> None:
    slack = 1e-12
    for seed in range(30):
        one, other = distributions(seed, 2)
        found = {metric: distance(one, other, metric) for metric in DISTANCES}
        assert found["hellinger"] ** 2 <= found["total_variation"] + slack
        assert found["total_variation"] <= math.sqrt(2) * found["hellinger"] + slack
        assert found["total_variation"] <= math.sqrt(found["kl"] / 2) + slack  # Pinsker
        assert found["max"] <= found["total_variation"] + slack
        assert found["l2"] == pytest.approx(found["rmse"] * math.sqrt(one.size), rel=1e-12)
        assert found["max"] <= found["l2"] + slack <= found["l1"] + 2 * slack
        assert found["kl"] >= 0.0


def estimate(seed: int = 0) -> tn.FrequencyEstimate:
    return tn.DirectEncoding(0.3, 4).simulate([500, 300, 200, 0], seed=seed).estimate()


def test_an_estimate_measures_its_distance_to_numbers_and_to_another_estimate() -> None:
    one, other = estimate(0), estimate(1)
    by_numbers = one.distance(other.frequencies.tolist(), "l1")
    assert by_numbers == np.abs(one.frequencies - other.frequencies).sum()
    assert one.distance(other, "l1") == by_numbers
    assert one.distance(other) == pytest.approx(by_numbers / 2)
    assert one.distance(one) == 0.0


@pytest.mark.parametrize("metric", ["hellinger", "kl"])
def test_a_distance_of_distributions_refuses_negative_entries_and_names_the_entry(
    metric: str,
) -> None:
    negative = next(found for found in map(estimate, range(100)) if found.frequencies.min() < 0)
    code = int(np.flatnonzero(negative.frequencies < 0)[0])
    with pytest.raises(InvalidValueError, match=f"the estimate has the negative .* code {code}"):
        negative.distance([0.5, 0.3, 0.2, 0.0], metric)
    with pytest.raises(
        InvalidValueError, match=r"reference has the negative entry -0\.1 at code 3"
    ):
        negative.project("simplex").distance([0.6, 0.3, 0.2, -0.1], metric)
    assert negative.project("simplex").distance([0.5, 0.3, 0.2, 0.0], metric) > 0


@pytest.mark.parametrize("metric", ["hellinger", "kl"])
def test_a_distance_of_distributions_refuses_entries_that_do_not_add_up_to_one(
    metric: str,
) -> None:
    with pytest.raises(InvalidValueError, match="add up to"):
        distance(np.array([0.9, 0.9]), np.array([0.5, 0.5]), metric)


def test_a_reference_of_another_size_or_with_no_numbers_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="reference must have"):
        estimate().distance([0.5, 0.5])
    with pytest.raises(InvalidValueError, match="reference must be of the same domain"):
        estimate().distance(tn.DirectEncoding(1.0, 2).simulate([5, 5], seed=1).estimate())
    with pytest.raises(InvalidTypeError, match="reference"):
        estimate().distance(["a", "b", "c", "d"])
    with pytest.raises(InvalidValueError, match=r"reference\[1\] must be finite"):
        estimate().distance([0.5, math.nan, 0.25, 0.25])


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidValueError, match="metric must be one of 'total_variation', 'l1'"):
        estimate().distance([0.25] * 4, "cosine")
