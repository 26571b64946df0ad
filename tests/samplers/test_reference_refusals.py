"""What is no reference, and what foreign objects must do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.samplers.test_reference import COVARIANCE, MEAN, Floats, Own, OwnWithGenerator

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import (
    Mixture,
    Normal,
    StandardNormal,
    Uniform,
    as_reference,
)

# Refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StandardNormal(0), "dimensions must be an integer of at least 1"),
        (lambda: StandardNormal(1.0), "dimensions must be an integer"),  # type: ignore[arg-type]
        (lambda: Normal([0.0, np.nan], [1.0, 1.0]), r"mean\[0, 1\] must be finite"),
        (lambda: Normal(["a"], [1.0]), "mean must hold real numbers"),
        (lambda: Normal([0.0], [[np.inf]]), r"covariance\[0, 0\] must be finite"),
        (lambda: Normal([0.0, 0.0], [1.0]), "covariance must have the shape"),
        (lambda: Normal([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]]), "covariance must be symmetric"),
        (lambda: Normal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "must be positive definite"),
        (lambda: Normal([0.0], [0.0]), "must be positive definite"),
        (lambda: Normal([0.0], [-1.0]), "must be positive definite"),
        (lambda: Uniform(1.0, 1.0), "low must be below high"),
        (lambda: Uniform([0.0, 1.0], [1.0]), "low and high must have the same shape"),
        (lambda: Uniform(-1.7e308, 1.7e308), "their difference finite"),
        (lambda: Uniform(0.0, np.inf), "high.* must be finite"),
        (lambda: Uniform("a", 1.0), "low must hold real numbers"),
        (lambda: Mixture([]), "components must have at least one reference, got none"),
        (lambda: Mixture([StandardNormal(), None]), r"components\[1\] must be a reference"),
        (lambda: Mixture([StandardNormal(), stats.poisson(3)]), r"components\[1\] must be a ref"),
        (lambda: Mixture([OwnWithGenerator()]), r"components\[0\]: dimensions must be given"),
        (lambda: Mixture([Own()]), r"components\[0\] must be drawn from uniform numbers"),
        (lambda: Mixture([as_reference(Own())]), r"components\[0\] must be drawn from uniform"),
        (lambda: Mixture([stats.norm(), StandardNormal(2)]), "one and the same dimension"),
        (lambda: Mixture(3), "components must be a sequence"),  # type: ignore[arg-type]
        (lambda: Mixture([1]), r"components\[0\] must be a reference"),
        (lambda: Mixture([StandardNormal(1), StandardNormal(2)]), "one and the same dimension"),
        (lambda: Mixture([StandardNormal()], [1.0, 2.0]), "weights must be 1 non-negative"),
        (lambda: Mixture([StandardNormal()], [0.0]), "with a positive sum"),
        (lambda: Mixture([StandardNormal()] * 2, [-1.0, 2.0]), "weights must be 2 non-negative"),
        (lambda: Mixture([StandardNormal()], [np.nan]), "weights must be"),
    ],
)
def test_bad_references(make: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        make()


def test_weights_beyond_floating_point_are_weights_or_refused() -> None:
    parts = [StandardNormal(), StandardNormal()]
    try:
        mixture = Mixture(parts, [1e308, 1e308])
    except InvalidValueError:
        return
    assert mixture.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("value", "dimensions", "message"),
    [
        (3.0, 1, "reference must be a reference of turnout.samplers"),
        ("normal", 1, "reference must be"),
        (stats.poisson(3.0), 1, "reference must be"),
        (StandardNormal, 1, "got a class: StandardNormal"),
        (Own, 2, "got a class: Own"),
        (stats.norm(), 2, "must have the dimension of the data, 2, got 1"),
        (StandardNormal(3), 2, "must have the dimension of the data, 2, got 3"),
        (stats.multivariate_normal(MEAN, COVARIANCE), 2, "must have the dimension of the data"),
        (Own(), 3, "must have the dimension of the data, 3, got 2"),
        (object(), 1, "reference must be"),
    ],
)
def test_what_is_no_reference(value: Any, dimensions: int, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        as_reference(value, dimensions)


class NoSource:
    def log_density(self, points: Floats) -> Floats:
        return np.zeros(len(points))

    def draw(self, count: int) -> Floats:
        return np.zeros((count, 1))


class TooFew(NoSource):
    def draw(self, count: int, seed: int | None = None) -> Floats:  # type: ignore[override]
        return np.zeros((count - 1, 1))


class OwnState(NoSource):
    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def draw(self, count: int, seed: int | None = None) -> Floats:  # type: ignore[override]
        return self.generator.normal(size=(count, 1))


class Constant(NoSource):
    def draw(self, count: int, seed: int | None = None) -> Floats:  # type: ignore[override]
        return np.arange(count, dtype=np.float64)[:, None]


def test_foreign_objects_that_cannot_be_used() -> None:
    with pytest.raises(InvalidTypeError, match="takes neither seed nor random_state nor rng"):
        as_reference(NoSource(), 1)
    with pytest.raises(InvalidValueError, match="must draw 64 points when asked to, got 63"):
        as_reference(TooFew(), 1)
    for value in (OwnState(), Constant()):
        with pytest.raises(InvalidValueError, match="from the randomness that it is given"):
            as_reference(value, 1)
