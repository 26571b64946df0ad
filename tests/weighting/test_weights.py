"""Weights against the paper's table, against each other, and against any other weights."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.weighting.weights import consistent_privacy, sampling_variance

#: What is not public is tested too.
CALLS = vars(tn.weighting) | {one.__name__: one for one in (consistent_privacy, sampling_variance)}

TABLE_2 = {
    (0.1, 0.4, 0.7, 1.0): (0.0316, 0.1477, 0.3045, 0.5162),
    (0.1, 0.1, 0.8, 1.0): (0.0333, 0.0333, 0.3885, 0.5448),
    (0.1, 0.1, 0.1, 1.0): (0.0517, 0.0517, 0.0517, 0.8449),
    (0.1, 0.8, 0.7, 1.0): (0.0259, 0.3017, 0.2495, 0.4229),
}

groups = st.lists(
    st.tuples(st.floats(1e-3, 1e3), st.integers(1, 10_000), st.floats(0.01, 1.0)),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("method", ["inverse_variance", "numerical"])
@pytest.mark.parametrize("epsilons", TABLE_2)
def test_the_weights_of_table_2(epsilons: tuple[float, ...], method: str) -> None:
    variances = [(1 - p) / p for p in 1 - np.exp(-np.array(epsilons))]
    np.testing.assert_allclose(sampling_variance(epsilons), variances, rtol=1e-12)
    found = tn.weighting.weights(variances, [250] * 4, method=method)
    # The paper rounds up the last digit of one of them (0.54478 is printed .5448: right).
    assert tuple(found.round(4).tolist()) == TABLE_2[epsilons]
    assert found.sum() == pytest.approx(1.0, abs=1e-15)


def error(weights: Any, variances: Any, sizes: Any) -> Fraction:
    """The paper's objective f, in exact rationals."""
    w, v, n = ([Fraction(float(x)) for x in column] for column in (weights, variances, sizes))
    noise = sum(b * a**2 * c for a, b, c in zip(w, n, v, strict=True))
    return Fraction(noise) / sum(a * b for a, b in zip(w, n, strict=True)) ** 2


@given(groups)
@settings(max_examples=200, deadline=None)
def test_lemma_3_4_and_optimality(rows: list[tuple[float, int, float]]) -> None:
    variances, sizes, others = (np.array(column) for column in zip(*rows, strict=True))
    best = tn.weighting.weights(variances, sizes)
    least = error(best, variances, sizes)
    slack = 1 + Fraction(1, 10**12)
    assert least <= error(np.ones(len(rows)), variances, sizes) * slack
    assert least <= error(others, variances, sizes) * slack
    # E_1 of the paper's proof, and the library's own value of f.
    closed = 1 / sum(Fraction(int(n)) / Fraction(v) for n, v in zip(sizes, variances, strict=True))
    assert float(least / closed) == pytest.approx(1.0, rel=1e-12)
    for weights in (best, others):
        ours = tn.weighting.combined_variance(weights, variances, sizes)
        assert ours == pytest.approx(float(error(weights, variances, sizes)), rel=1e-12)


@given(groups)
@settings(max_examples=100, deadline=None)
def test_the_two_solutions_agree(rows: list[tuple[float, int, float]]) -> None:
    variances, sizes, _ = (np.array(column) for column in zip(*rows, strict=True))
    closed = tn.weighting.weights(variances, sizes)
    numerical = tn.weighting.weights(variances, sizes, method="numerical")
    least = tn.weighting.combined_variance(closed, variances, sizes)
    found = tn.weighting.combined_variance(numerical, variances, sizes)
    assert found <= least * (1 + 1e-9)


def test_equal_variances_make_equal_weights() -> None:
    for method in ("inverse_variance", "numerical", "unweighted"):
        found = tn.weighting.weights([3.0] * 5, [1, 2, 3, 4, 5], method=method)
        np.testing.assert_allclose(found, 0.2, rtol=1e-9)


def test_extremes() -> None:
    assert tn.weighting.weights([1.0, np.inf]).tolist() == [1.0, 0.0]
    assert tn.weighting.weights([1e-300, 1e300]).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(tn.weighting.weights([5e-324, 5e-324]), 0.5)
    np.testing.assert_allclose(
        tn.weighting.weights([1e308, 1e308], [3, 4], method="numerical"), 0.5
    )
    assert tn.weighting.combined_variance([1.0, 0.0], [2.0, np.inf], [4, 9]) == 0.5
    assert tn.weighting.combined_variance([1e300, 1e300], [2.0, 2.0]) == 1.0


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("weights", ([],), "variances must hold at least one number"),
        ("weights", ([1.0, 0.0],), r"variances\[1\] must be above 0, got 0.0"),
        ("weights", ([1.0, -1.0],), r"variances\[1\] must be above 0"),
        ("weights", ([float("nan")],), r"variances\[0\] must be above 0, got nan"),
        ("weights", ([float("inf")],), "no group has any information"),
        ("weights", ([[1.0]],), "variances must be one-dimensional"),
        ("weights", (["a"],), "variances must"),
        ("weights", ([1.0, 2.0], [3]), "sizes must have one number for each of the 2 groups"),
        ("weights", ([1.0], [2.5]), r"sizes\[0\] must be a whole number"),
        ("weights", ([1.0], [0]), r"sizes\[0\] must be a finite number above 0"),
        ("combined_variance", ([1.0], [1.0, 2.0]), "the same length, got 1 and 2"),
        ("combined_variance", ([-1.0], [1.0]), r"weights\[0\] must be at least 0"),
        ("combined_variance", ([0.0], [1.0]), "weights must not all be zero"),
        ("consistent_privacy", ([],), "epsilons must hold at least one"),
        ("consistent_privacy", ([1.0, 0.0],), r"epsilons\[1\] must be a finite number above 0"),
        ("sampling_variance", ([float("inf")],), r"epsilons\[0\] must be a finite number"),
    ],
)
def test_bad_input(call: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        CALLS[call](*arguments)


def test_bad_methods() -> None:
    with pytest.raises(InvalidValueError, match="method must be one of"):
        tn.weighting.weights([1.0], method="best")
    assert consistent_privacy([0.7, 0.1, 1.0]) == 0.1
