"""Deltas that the fair paper prints for two stages and for noise, beside what is true."""

from __future__ import annotations

import math

import pytest

from turnout.accounting import CountSampling
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.fair import claims


def test_theorem_3_4_claims_the_delta_of_one_stage() -> None:
    assert claims.theorem_3_4_delta(1.5, 0.5, 4) == CountSampling(0.5, 4).delta(1.5)


def test_the_delta_of_the_distributed_gaussian_solves_the_printed_formula() -> None:
    meant = math.sqrt(2 * math.log(1.25 / 1e-5))
    assert claims.distributed_gaussian_delta(1.0, meant) == pytest.approx(1e-5)
    assert claims.distributed_gaussian_delta(0.0, 3.0) == 1


def test_what_is_no_noise_is_refused_by_name() -> None:
    with pytest.raises(InvalidValueError, match="noise_multiplier"):
        claims.distributed_gaussian_delta(1.0, -1)
    for wrong in ("0.5", None, 1j):
        with pytest.raises(InvalidTypeError, match="noise_multiplier"):
            claims.distributed_gaussian_delta(1.0, wrong)  # type: ignore[arg-type]
