"""Hadamard response: the halves of the answers, the size of reports, and large domains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidValueError
from turnout.frequency.oracles.hadamard_response import HadamardResponse


@pytest.mark.parametrize(
    ("size", "bits", "dtype"),
    [
        (2, 2, "u1"),
        (3, 2, "u1"),
        (4, 3, "u1"),
        (255, 8, "u1"),
        (256, 9, "u2"),
        (65_535, 16, "u2"),
        (65_536, 17, "u4"),
        (2**32 - 1, 32, "u4"),
    ],
)
def test_reports_have_one_bit_more_than_the_largest_code(size: int, bits: int, dtype: str) -> None:
    oracle = HadamardResponse(1.0, size)
    assert oracle.report_bits == bits
    assert oracle._report_count == 2**bits
    assert oracle.report_dtype == np.dtype(dtype)
    assert oracle.randomize(np.array([0, size - 1])).codes.dtype == np.dtype(dtype)


@pytest.mark.parametrize("size", [2, 10, 64, 100])
def test_a_report_supports_the_answers_with_an_even_number_of_common_bits(size: int) -> None:
    oracle = HadamardResponse(1.0, size)
    kernel: Any = oracle._kernel
    bits = kernel.supports(np.arange(oracle._report_count, dtype=np.uint8))
    for report, row in enumerate(bits.tolist()):
        for code in range(size):
            even = (report & (code + 1)).bit_count() % 2 == 0
            assert row[code // 64] >> (code % 64) & 1 == even


def test_the_two_weights_fill_a_word() -> None:
    for size in (2, 100, 70_000):
        for epsilon in (1e-5, 1.0, 10.0, 42.0):
            oracle = HadamardResponse(epsilon, size)
            own, other = oracle._core.words
            assert (own + other) * oracle._report_count == 2**64
            assert oracle.realized_ratio * other == own


def test_a_large_domain_is_estimated_from_one_transform() -> None:
    size = 200_000
    oracle = HadamardResponse(2.0, size)
    values = np.arange(400_000) % 7 * 20_000
    estimate = oracle.collect(values, participation=tn.Bernoulli(0.5), seed=1).estimate()
    truth = np.bincount(values, minlength=size) / values.size
    errors = (estimate.frequencies - truth) / estimate.standard_errors
    # 200,000 standardised errors.
    assert np.abs(errors).max() < 7
    assert math.isclose(errors.std(), 1.0, abs_tol=0.02)


def test_an_epsilon_beyond_the_bits_that_are_left_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="too small for a domain"):
        HadamardResponse(1e-10, 2**32 - 1)
