"""Deltas that the fair paper prints, beside what is true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from turnout.accounting import CountSampling
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.fair import claims


@pytest.mark.parametrize(
    ("items", "floor", "claimed"),
    [(2, 500, 1.4e-3), (10, 100, 1.5e-11), (30, 33, 5.6e-26), (100, 10, 1e-58)],
)
def test_theorem_3_1_claims_what_only_very_few_items_allow(
    items: int, floor: int, claimed: float
) -> None:
    assert claims.theorem_3_1_delta(1.0, items, floor) == pytest.approx(claimed, rel=0.05)
    true = CountSampling(1 - math.exp(-1), floor).delta(1.0)
    assert (true < claimed) == (items == 2)


@pytest.mark.parametrize(("items", "floor", "claimed"), [(30, 33, 3.4e-9), (10, 100, 3.2e-5)])
def test_theorem_3_2_claims_too_little_as_well(items: int, floor: int, claimed: float) -> None:
    found = claims.theorem_3_2_delta(1.0, items, floor, nodes=1000, z=1.0)
    assert found == pytest.approx(claimed, rel=0.01)
    assert CountSampling(1 - math.exp(-2), floor).delta(1.0) > 30 * found


def test_claimed_deltas_solve_the_printed_conditions() -> None:
    epsilon, items, nodes, z = 0.8, 7, 500, 0.6
    for floor in (20, 60):
        delta = claims.theorem_3_1_delta(epsilon, items, floor)
        most = max((2 * math.pi / delta) ** (2 / (items + 1)), (1 / delta) ** (2 / items))
        gap = math.exp(-epsilon) - math.exp(-2 * epsilon)
        assert floor == pytest.approx(most / (2 * math.pi * gap), rel=1e-12)
        delta = claims.theorem_3_2_delta(epsilon, items, floor, nodes, z)
        half = math.exp(-epsilon / 2)
        most = max(
            (2 * math.pi / delta) ** (2 / (items + 1)) / (1 + half) ** 2,
            (4 * math.pi / delta) ** (2 / items),
        )
        factor = math.exp(z + epsilon) / (2 * math.pi * (1 - half) ** 2)
        assert floor == pytest.approx(factor * most, rel=1e-12)


def test_theorem_3_4_claims_the_delta_of_one_stage() -> None:
    assert claims.theorem_3_4_delta(1.5, 0.5, 4) == CountSampling(0.5, 4).delta(1.5)


def test_the_delta_of_the_distributed_gaussian_solves_the_printed_formula() -> None:
    meant = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert claims.distributed_gaussian_delta(1.0, meant) == pytest.approx(1e-5)


def test_nothing_is_claimed_at_epsilon_zero() -> None:
    assert claims.theorem_3_1_delta(0.0, 10, 100) == 1
    assert claims.distributed_gaussian_delta(0.0, 3.0) == 1


@pytest.mark.parametrize(
    ("claim", "argument"),
    [
        (lambda value: claims.theorem_3_1_delta(value, 10, 10), "epsilon"),
        (lambda value: claims.theorem_3_1_delta(0.5, 10, value), "floor"),
        (lambda value: claims.theorem_3_2_delta(1.0, 3, 10, 100, value), "z"),
        (lambda value: claims.distributed_gaussian_delta(1.0, value), "noise_multiplier"),
    ],
)
def test_what_is_no_number_of_the_range_is_refused_by_name(claim: Any, argument: str) -> None:
    with pytest.raises(InvalidValueError, match=argument):
        claim(-1)
    for wrong in ("0.5", None, 1j):
        with pytest.raises(InvalidTypeError, match=argument):
            claim(wrong)


def test_theorem_3_2_refuses_what_its_conditions_refuse() -> None:
    with pytest.raises(InvalidValueError, match="z must be at most"):
        claims.theorem_3_2_delta(1.0, 10, 100, 1000, 5.0)
    with pytest.raises(InvalidValueError, match="nodes must be at least"):
        claims.theorem_3_2_delta(1.0, 10, 101, 1000, 1.0)
