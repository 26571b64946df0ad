"""The kernels that clip gradients one by one and add them up."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout import _core
from turnout.errors import InvalidTypeError, InvalidValueError

FINITE = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(min_value=5e-324, allow_infinity=False)


def _length(integers, step):
    """Give the exact square of a row's length on the grid."""
    return sum(int(n) ** 2 for n in integers) * Fraction(step) ** 2


def _matrix(examples, parameters, dtype, seed=0):
    size = 2 / math.sqrt(parameters)
    draws = np.random.default_rng(seed).normal(scale=size, size=(examples, parameters))
    draws *= np.random.default_rng(seed + 1).uniform(size=(examples, 1))
    return draws.astype(dtype)


@settings(max_examples=300, deadline=None)
@given(
    row=st.lists(FINITE, min_size=1, max_size=30),
    clip=POSITIVE,
    bits=st.floats(min_value=-2, max_value=61.9),
    near=st.none() | st.floats(min_value=0.5, max_value=2),
)
def test_no_example_exceeds_the_clip_exactly(row, clip, bits, near):
    norm = math.hypot(*row)
    if near is not None and 0 < near * norm < math.inf:
        clip = near * norm
    step = clip / 2**bits
    if not 0 < step < math.inf or clip / step >= 2**62:
        return
    integers = _core.clip_to_grid([np.array([row])], clip, step)
    assert _length(integers, step) <= Fraction(clip) ** 2
    # Nor is more cut off than the rounding of an entry and a relative 1e-12.
    kept = Fraction(0)
    if 1e-300 < norm < math.inf:
        kept = min(Fraction(1), Fraction(clip) / Fraction(norm)) * (1 - Fraction(1, 10**12))
    for n, x in zip(integers.tolist(), row, strict=True):
        assert n == 0 or (n > 0) == (x > 0)
        assert (abs(n) + 1) * Fraction(step) >= abs(Fraction(x)) * kept


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [1, 10, 3000, 40_000])
@pytest.mark.parametrize("bits", [24, 40])
def test_sums_are_those_of_numpy(dtype, parameters, bits):
    gradients = _matrix(30, parameters, dtype)
    clip = 0.9
    wide = gradients.astype(np.float64)
    factors = np.minimum(1, clip / np.linalg.norm(wide, axis=1))
    assert 3 < np.count_nonzero(factors < 1) < 27
    clipped = wide * factors[:, None]
    sums = _core.clip_and_sum([gradients], clip)
    assert sums.dtype == np.float64
    np.testing.assert_allclose(sums, clipped.sum(axis=0), rtol=0, atol=1e-11)
    step = clip / 2**bits
    integers = _core.clip_to_grid([gradients], clip, step)
    assert integers.dtype == np.int64
    if dtype == np.float32 and bits == 24:
        # Products are in single precision, and the margin of the clip has room for that.
        norms = np.linalg.norm(wide, axis=1)
        margin = 1 - 3 * 2.0**-24
        scales = np.where(norms <= clip * margin, 1 / step, clip / step / norms * margin)
        products = gradients * scales.astype(np.float32)[:, None]
        assert products.dtype == np.float32
        assert np.array_equal(integers, np.trunc(products).astype(np.int64).sum(axis=0))
        return
    expected = np.trunc(clipped / step).sum(axis=0)
    # Entries next to a multiple of the step may fall on the other side of it.
    np.testing.assert_allclose(integers, expected, rtol=0, atol=2 if bits == 24 else 30)


def test_the_norm_is_over_all_parts():
    parts = [_matrix(9, 20, np.float32), _matrix(9, 7, np.float64, 5), np.zeros((9, 0))]
    together = np.concatenate(parts, axis=1, dtype=np.float64)
    np.testing.assert_allclose(
        _core.clip_and_sum(parts, 0.7), _core.clip_and_sum([together], 0.7), rtol=0, atol=1e-12
    )
    assert np.array_equal(
        _core.clip_to_grid(parts, 100.0, 0.01), _core.clip_to_grid([together], 100.0, 0.01)
    )


def test_examples_of_a_sum_are_exact_on_the_grid():
    gradients = _matrix(50, 300, np.float32)
    step = 0.5 / 2**24
    one_by_one = [_core.clip_to_grid([gradients[i : i + 1]], 0.5, step) for i in range(50)]
    assert all(_length(row, step) <= Fraction(1, 4) for row in one_by_one)
    assert np.array_equal(_core.clip_to_grid([gradients], 0.5, step), np.sum(one_by_one, axis=0))


def test_nothing_to_add_up():
    assert _core.clip_and_sum([], 1.0).shape == (0,)
    assert _core.clip_to_grid([], 1.0, 0.5).shape == (0,)
    assert np.array_equal(_core.clip_and_sum([np.zeros((0, 3))], 1.0), np.zeros(3))
    assert np.array_equal(_core.clip_to_grid([np.zeros((4, 3))], 1.0, 0.5), np.zeros(3, np.int64))


def test_no_clip_is_infinite():
    gradients = _matrix(5, 30, np.float64)
    np.testing.assert_allclose(
        _core.clip_and_sum([gradients], math.inf), gradients.sum(axis=0), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        ([np.zeros(3)], r"gradients\[0\] must be a two-dimensional .* 1 dimension"),
        ([np.zeros((2, 2)), np.zeros((2, 2), np.int64)], r"gradients\[1\] must be .* dtype int64"),
        ([np.zeros((2, 2), np.float16)], r"gradients\[0\] must be .* dtype float16"),
        ([np.zeros((2, 2)).astype(">f8")], r"gradients\[0\] must be .* dtype >f8"),
        ([[[1.0]]], r"gradients\[0\] must be a two-dimensional"),
        ([np.zeros((3, 4)).T], r"gradients\[0\] must be a C-contiguous"),
        ([np.zeros((3, 4))[:, :2]], r"gradients\[0\] must be a C-contiguous"),
    ],
)
def test_arrays_that_are_refused(gradients, message):
    with pytest.raises(InvalidTypeError, match=message):
        _core.clip_and_sum(gradients, 1.0)
    with pytest.raises(InvalidTypeError, match=message):
        _core.clip_to_grid(gradients, 1.0, 0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_may_begin_anywhere_in_memory(dtype):
    gradients = _matrix(5, 3, dtype)
    moved = np.frombuffer(b"x" + gradients.tobytes(), dtype, offset=1).reshape(5, 3)
    assert not moved.flags.aligned
    for sums in (_core.clip_and_sum, lambda *given: _core.clip_to_grid(*given, 2.0**-20)):
        np.testing.assert_array_equal(sums([moved], 0.5), sums([gradients], 0.5))
        assert sums([moved[:0]], 0.5).shape == (3,)


def test_parts_must_be_of_the_same_examples():
    with pytest.raises(InvalidValueError, match=r"gradients\[1\] must have a row for each of"):
        _core.clip_and_sum([np.zeros((2, 2)), np.zeros((3, 2))], 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameters", [3, 40_000])
def test_the_first_example_that_is_not_finite_is_named(bad, dtype, parameters):
    gradients = np.ones((12, parameters), dtype)
    gradients[7, 2] = gradients[9, 0] = bad
    for call in (
        lambda: _core.clip_and_sum([np.ones((12, 1)), gradients], 1.0),
        lambda: _core.clip_to_grid([np.ones((12, 1)), gradients], 1.0, 0.1),
    ):
        with pytest.raises(InvalidValueError, match=r"gradients of example 7 must be finite"):
            call()


@pytest.mark.parametrize(
    ("clip", "step", "message"),
    [
        (0.0, 1.0, "clip must be a finite number above 0, got 0"),
        (math.nan, 1.0, "clip must be a finite number above 0, got NaN"),
        (math.inf, 1.0, "clip must be a finite number above 0, got inf"),
        (1.0, 0.0, "step must be a finite number above 0, got 0"),
        (1.0, -1.0, "step must be a finite number above 0, got -1"),
        (1.0, 2.0**-62, r"clip / step must be below 2\^62, got"),
        (1.0, 2.0**-61, r"clip / step times the number of examples must be below 2\^62, got"),
    ],
)
def test_grids_that_are_refused(clip, step, message):
    with pytest.raises(InvalidValueError, match=message):
        _core.clip_to_grid([np.ones((2, 1))], clip, step)


@pytest.mark.parametrize("clip", [0.0, -1.0, math.nan])
def test_clips_that_are_refused(clip):
    with pytest.raises(InvalidValueError, match=r"clip must be a number of at least 2\^-1000"):
        _core.clip_and_sum([np.ones((2, 1))], clip)


@pytest.mark.parametrize("exponent", [60, 74, 200, 440])
def test_no_gradient_is_longer_than_a_clip_that_is_tiny_beside_it(exponent: int) -> None:
    # The factor clip / norm is subnormal: rounded, it can be twice as large.
    clip = 2.0**-1000
    found = _core.clip_and_sum([np.array([[0.75, 0.25]]) * 2.0**exponent], clip) / clip
    assert 1.0 - 1e-12 < float(np.hypot(*found)) <= 1.0
