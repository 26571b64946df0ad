"""Projective geometry response: hyperplanes, the choice of the field, and the size of reports."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from turnout import FrequencyOracle
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.oracles.hadamard_response import HadamardResponse
from turnout.frequency.oracles.projective_geometry import ProjectiveGeometryResponse


def rare_variance(oracle: Any) -> float:
    """The variance of a rare answer's frequency, times the number of reports."""
    p, q = oracle.support_probabilities
    return float(q * (1 - q) / (p - q) ** 2)


def optimum(epsilon: float) -> float:
    """What no pure oracle goes below for large domains, nearly: that of subset selection."""
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


def points_of(field: int, dimensions: int) -> list[tuple[int, ...]]:
    """All points: the vectors whose first coordinate that is not zero is one, in their order."""
    vectors = itertools.product(range(field), repeat=dimensions)
    return [vector for vector in vectors if next((c for c in vector if c), 0) == 1]


@pytest.mark.parametrize(("field", "dimensions"), [(2, 2), (2, 5), (3, 3), (3, 4), (5, 3), (7, 2)])
def test_an_answer_is_supported_by_the_points_of_a_hyperplane_of_its_own(
    field: int, dimensions: int
) -> None:
    points = np.array(points_of(field, dimensions))
    oracle = ProjectiveGeometryResponse(1.0, len(points), field_size=field)
    assert (oracle.field_size, oracle.dimensions) == (field, dimensions)
    assert oracle._report_count == len(points)
    kernel: Any = oracle._kernel
    bits = kernel.supports(np.arange(len(points), dtype=oracle.report_dtype))
    rows = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, : len(points)]
    # The hyperplanes of the space by plain arithmetic, in any order: ours are these, each once.
    expected = (points @ points.T % field == 0).astype(np.uint8)
    assert {tuple(column) for column in rows.T.tolist()} == {
        tuple(column) for column in expected.T.tolist()
    }


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0])
@pytest.mark.parametrize("size", [100, 1000, 100_000])
def test_the_variance_is_close_to_the_optimum_and_no_field_nearby_is_better(
    epsilon: float, size: int
) -> None:
    oracle = ProjectiveGeometryResponse(epsilon, size)
    assert rare_variance(oracle) <= 1.09 * optimum(epsilon)
    for field in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 53, 59, 149):
        other = ProjectiveGeometryResponse(epsilon, size, field_size=field)
        if other._report_count <= max(2**20, 16 * size):
            assert rare_variance(oracle) <= rare_variance(other) * (1 + 1e-12)


def test_with_two_coordinates_it_is_direct_encoding() -> None:
    oracle = ProjectiveGeometryResponse(6.0, 100)
    assert (oracle.field_size, oracle.dimensions) == (101, 2)
    p, q = oracle.support_probabilities
    assert math.isclose(p / q, math.exp(6), rel_tol=1e-9)
    assert math.isclose(p + 101 * q, 1, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("size", "field", "count", "bits", "dtype"),
    [
        (2, 2, 3, 2, "u1"),
        (100, 2, 127, 7, "u1"),
        (100, 5, 156, 8, "u1"),
        (300, 17, 307, 9, "u2"),
        (30_000, 31, 30_784, 15, "u2"),
        (65_000, 257, 66_307, 17, "u4"),
        (2**31 - 1, 2, 2**31 - 1, 31, "u4"),
    ],
)
def test_reports_number_the_points(
    size: int, field: int, count: int, bits: int, dtype: str
) -> None:
    oracle = ProjectiveGeometryResponse(1.0, size, field_size=field)
    assert oracle._report_count == count
    assert oracle.report_bits == bits
    reports = oracle.randomize(np.array([0, size - 1] * 500)).codes
    assert reports.dtype == oracle.report_dtype == np.dtype(dtype)
    assert int(reports.max()) < count


def test_the_field_is_part_of_the_plan() -> None:
    oracle = ProjectiveGeometryResponse(1.0, 100)
    chosen = ProjectiveGeometryResponse(1.0, 100, field_size=oracle.field_size)
    assert chosen == oracle
    assert ProjectiveGeometryResponse(1.0, 100, field_size=11) != oracle
    assert oracle.to_dict()["field_size"] == oracle.field_size
    without = {key: value for key, value in oracle.to_dict().items() if key != "field_size"}
    with pytest.raises(Exception, match="not the description of an oracle"):
        FrequencyOracle.from_dict(without)


@pytest.mark.parametrize("field", [4, 9, 91, 2**31 - 1])
def test_a_field_that_cannot_be_is_refused(field: int) -> None:
    with pytest.raises(InvalidValueError, match=f"field_size must be a prime .*, got {field}"):
        ProjectiveGeometryResponse(1.0, 100, field_size=field)


def test_other_bad_input_is_refused() -> None:
    for field in (1, 0, -7, 2**31):
        with pytest.raises(InvalidValueError, match="field_size"):
            ProjectiveGeometryResponse(1.0, 100, field_size=field)
    with pytest.raises(InvalidTypeError, match="field_size"):
        ProjectiveGeometryResponse(1.0, 100, field_size=3.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="closer to e"):
        ProjectiveGeometryResponse(40.0, 2**28, field_size=2)
    with pytest.raises(InvalidValueError, match="domain_size"):
        ProjectiveGeometryResponse(1.0, 2**31)


def test_it_is_better_than_hadamard_response_for_all_but_the_smallest_epsilons() -> None:
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        geometry = rare_variance(ProjectiveGeometryResponse(epsilon, 1000))
        assert geometry < rare_variance(HadamardResponse(epsilon, 1000))
