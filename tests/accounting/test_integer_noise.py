"""Integer noise: exact deltas by sums over all outcomes with fifty digits."""

from __future__ import annotations

import itertools
import math
from types import ModuleType
from typing import Any

import pytest
from mpmath import mp, mpf

import turnout.accounting as ta

KINDS: dict[str, Any] = {
    "discrete_laplace": ta.DiscreteLaplaceNoise,
    "discrete_gaussian": ta.DiscreteGaussianNoise,
    "skellam": ta.SkellamNoise,
}

#: Kind, scale, and a radius beyond which the noise has a mass below 1e-40 (two coordinates).
CASES = [
    ("discrete_laplace", 0.3, 40),
    ("discrete_laplace", 1.0, 100),
    ("discrete_gaussian", 0.4, 12),
    ("discrete_gaussian", 1.0, 20),
    ("discrete_gaussian", 5.27, 80),
    ("skellam", 0.2, 30),
    ("skellam", 2.0, 50),
    ("skellam", 13.15, 100),
]


@pytest.mark.parametrize("adjacency", ["replace", "add", "remove"])
@pytest.mark.parametrize(("kind", "scale", "radius"), CASES)
def test_delta_is_the_sum_over_all_outcomes_rounded_up(
    kind: str, scale: float, radius: int, adjacency: str, references: ModuleType
) -> None:
    mechanism = KINDS[kind](scale)
    for epsilon in (0.0, 0.3, 1.0):
        exact = references.integer_noise_delta(kind, scale, epsilon, adjacency, radius)
        found = mechanism.delta(epsilon, adjacency=adjacency)
        # Where the exact delta is zero the sum has the rounding of its 50 digits.
        with mp.workdps(50):
            assert mpf(found) >= exact - mpf(10) ** -45
            assert mpf(found) <= exact * (1 + mpf(10) ** -11) + mpf(10) ** -30


@pytest.mark.parametrize("kind", list(KINDS))
def test_wide_noise_for_one_count_is_the_sum_over_all_outcomes(
    kind: str, references: ModuleType
) -> None:
    scale, radius = {
        "discrete_laplace": (40.0, 3600), "discrete_gaussian": (60.0, 820),
        "skellam": (400.0, 350),
    }[kind]  # fmt: skip
    mechanism = KINDS[kind](scale)
    for epsilon in (0.0, 0.005, 0.02):
        exact = references.integer_noise_delta(kind, scale, epsilon, "add", radius)
        found = mechanism.delta(epsilon, adjacency="add")
        assert float(exact) * (1 - 1e-15) <= found <= float(exact) * (1 + 1e-10) + 1e-30


@pytest.mark.parametrize(("kind", "scale", "_radius"), CASES)
def test_adding_and_removing_are_alike_because_the_noise_is_symmetric(
    kind: str, scale: float, _radius: int
) -> None:
    mechanism = KINDS[kind](scale)
    for epsilon in (0.0, 0.1, 0.9):
        one, other = (mechanism.delta(epsilon, adjacency=way) for way in ("add", "remove"))
        assert one == other == mechanism.delta(epsilon, adjacency="add_or_remove")
        assert one <= mechanism.delta(epsilon) == mechanism.delta(epsilon, adjacency="replace")


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0, 17.0])
def test_discrete_laplace_noise_is_pure_from_two_over_its_scale_on(scale: float) -> None:
    noise = ta.DiscreteLaplaceNoise(scale)
    for edge, adjacency in ((2 / scale, "replace"), (1 / scale, "add")):
        assert noise.delta(edge * (1 + 1e-12), adjacency=adjacency) == 0
        assert noise.delta(edge * (1 - 1e-3), adjacency=adjacency) > 0
        assert noise.epsilon(0.0, adjacency=adjacency) == pytest.approx(edge, rel=1e-9)
        assert noise.epsilon(0.0, adjacency=adjacency) >= edge * (1 - 1e-15)


def test_one_laplace_count_has_a_delta_in_closed_form() -> None:
    # P and Q differ by the factor e^(1/b) on each side of the shift.
    scale = 1.5
    ratio = math.exp(-1 / scale)
    for epsilon in (0.0, 0.2, 0.5):
        exact = (1 - math.exp(epsilon) * ratio) / (1 + ratio)
        found = ta.DiscreteLaplaceNoise(scale).delta(epsilon, adjacency="add")
        assert found == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("kind", list(KINDS))
def test_more_noise_is_never_worse(kind: str) -> None:
    for adjacency in ("replace", "add"):
        for epsilon in (0.0, 0.05, 0.5):
            deltas = [
                KINDS[kind](scale).delta(epsilon, adjacency=adjacency)
                for scale in (0.5, 1.0, 1.9, 4.0, 10.0, 30.0)
            ]
            assert all(one >= two for one, two in itertools.pairwise(deltas))


def test_wide_discrete_and_skellam_noise_are_close_to_gaussian_noise() -> None:
    sigma, epsilon = 200.0, 0.01
    for adjacency, gaussian in (
        ("add", ta.GaussianMechanism(sigma)),
        ("replace", ta.GaussianMechanism(sigma / math.sqrt(2))),
    ):
        expected = gaussian.delta(epsilon)
        for noise in (ta.DiscreteGaussianNoise(sigma), ta.SkellamNoise(sigma**2 / 2)):
            assert noise.delta(epsilon, adjacency=adjacency) == pytest.approx(expected, rel=0.02)
