"""Every bad argument of a sampler gets one exception of ours that says what was expected."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from turnout.errors import InvalidTypeError, InvalidValueError, NotFittedError, TurnoutError
from turnout.samplers import (
    MinimaxSampler,
    Mixture,
    MollifiedDensity,
    PrivacyBudget,
    StandardNormal,
    Uniform,
)
from turnout_reproduce.boosting import MollifiedBoosting

pytest.importorskip("sklearn")

SIMULATION = PrivacyBudget(math.inf)

#: References with an end, and a point of each side of it.
ENDS = [
    (Uniform(17.0, 90.0), 90.0, 90.000001),
    (stats.gamma(2.0), 0.0, -0.5),
    (Mixture([stats.gamma(2.0), Uniform(-2.0, -1.0)], [1, 0]), 0.0, -1.5),
    (stats.uniform(3.0, 4.0), 7.0, 7.5),
    (Mixture([Uniform(0.0, 1.0), Uniform(3.0, 4.0)]), 3.5, 2.0),
]


class Bell:
    """A density estimate that costs no time to fit, in any dimensions."""

    def fit(self, X: Any, y: Any = None) -> Bell:
        self.center = X.mean(axis=0)
        return self

    def score_samples(self, X: Any) -> Any:
        return -0.5 * ((X - self.center) ** 2).sum(axis=1)

    def decision_function(self, X: Any) -> Any:
        return X[:, 0]


def density(epsilon: Any = 1.0, **parameters: Any) -> MollifiedDensity:
    parameters = {"estimator": Bell(), "proposals": 8, **parameters}
    return MollifiedDensity(epsilon, **parameters)


def boosting(epsilon: Any = 1.0, **parameters: Any) -> MollifiedBoosting:
    parameters = {"weak_learner": Bell(), "n_rounds": 1, "trials": 4, **parameters}
    return MollifiedBoosting(epsilon, **parameters)


BOTH: list[Any] = [density, boosting]
GOOD = np.array([[0.0], [1.0]])
TWO = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 1.0]])


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("epsilon", "message"),
    [
        (0.0, "epsilon must be a finite number above 0 and at most 42, got 0.0"),
        (-1.0, "epsilon must be a finite number above 0"),
        (math.nan, "epsilon must be a finite number above 0.*got nan"),
        (math.inf, "epsilon must be a finite number above 0.*got inf"),
        (43.0, "at most 42, got 43.0"),
        (math.nextafter(42.0, 43.0), "at most 42"),
        (10**400, "epsilon must be a real number within"),
        ("1", "epsilon must be a real number"),
        (None, "epsilon must be a real number"),
        (True, "epsilon must be a real number"),
        (1j, "epsilon must be a real number"),
        ([1.0], "epsilon must be a real number"),
        (np.array([1.0]), "epsilon must be a real number"),
    ],
)
def test_epsilon(make: Any, epsilon: Any, message: str) -> None:
    # The constructor stores; fit checks.
    sampler = make(epsilon)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        sampler.fit(GOOD)
    with pytest.raises(NotFittedError):
        sampler.sample()


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("epsilon", [1e-300, 5e-324, 42.0, 1, np.float32(0.5), np.int64(2)])
def test_epsilons_at_the_ends_and_of_other_types(make: Any, epsilon: Any) -> None:
    sampler = make(epsilon).fit(GOOD)
    assert np.isfinite(sampler.sample(1, seed=1)).all()
    assert sampler.certificate_ <= float(epsilon) / 2.0
    assert sampler.budget_.remaining == 0.0


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([[0.0], [math.nan]], r"X\[1, 0\] must be finite, not NaN or infinity$"),
        ([[0.0, -math.inf]], r"X\[0, 1\] must be finite"),
        ([0.0, 1.0], r"X must be a 2-D array, one record a row, got shape \(2,\)"),
        (3.0, r"X must be a 2-D array.*got shape \(\)"),
        ([[[0.0]]], r"X must be a 2-D array.*got shape \(1, 1, 1\)"),
        (np.empty((0, 1)), r"X must have at least 1 record\(s\)"),
        ([], "X must be a 2-D array"),
        (np.empty((3, 0)), "X must have at least one column"),
        ([["a"], ["b"]], "X must hold real numbers"),
        ([[b"1"]], "X must hold real numbers"),
        ([[True]], "X must hold real numbers"),
        ([[None]], r"X(\[0, 0\])? must"),
        (np.array([[object()]]), "X must hold real numbers"),
        ([[1.0], ["a"]], "X must hold real numbers"),
        ([[1j]], "X must hold real numbers"),
        (np.array([["2024-01-01"]], "M8[D]"), "X must hold real numbers"),
        ([[1.0], [1.0, 2.0]], "X must be an array of real numbers"),
        (None, "X must"),
        (sparse.csr_array(GOOD), "X must be a dense array"),
        (sparse.csr_matrix(GOOD), "X must be a dense array"),
        ("text", "X must"),
        ({"a": [1.0]}, "X must"),
    ],
)
def test_records(make: Any, records: Any, message: str) -> None:
    sampler = make()
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        sampler.fit(records)
    with pytest.raises(NotFittedError):
        sampler.sample()
    fitted = make().fit(GOOD)
    for call in (fitted.score_samples, fitted.score):
        with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
            call(records)


@pytest.mark.parametrize("make", BOTH)
def test_a_failed_fit_leaves_what_was_fitted_before(make: Any) -> None:
    fitted = make().fit(GOOD)
    with pytest.raises(InvalidValueError):
        fitted.fit([[math.nan]])
    # Nothing was changed: bad records are refused before anything is done.
    assert fitted.sample(1, seed=1).shape == (1, 1)


@pytest.mark.parametrize("make", BOTH)
def test_a_masked_array_is_refused_or_its_masked_entries_unread(make: Any) -> None:
    records = np.ma.masked_array([[0.0], [1e9]], mask=[[False], [True]])
    with pytest.raises((InvalidTypeError, InvalidValueError), match="X"):
        make().fit(records)
    # Without masked entries it is an array like any other.
    assert make().fit(np.ma.masked_array(GOOD)).sample(1).shape == (1, 1)


@pytest.mark.parametrize("make", BOTH)
def test_points_of_another_dimension(make: Any) -> None:
    fitted = make().fit(TWO)
    message = "X has 1 features, but .* is expecting 2 features as input"
    with pytest.raises(InvalidValueError, match=message):
        fitted.score_samples(GOOD)
    with pytest.raises(InvalidValueError, match=message):
        fitted.score(GOOD)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (StandardNormal(1), "reference must have the dimension of the data, 2, got 1"),
        (StandardNormal(3), "reference must have the dimension of the data, 2, got 3"),
        (stats.norm(), "reference must have the dimension of the data, 2, got 1"),
        (stats.multivariate_normal(np.zeros(3)), "reference must have the dimension"),
        (StandardNormal, "reference must be .* got a class"),
        ("normal", "reference must be"),
        (0.0, "reference must be"),
    ],
)
def test_references(make: Any, reference: Any, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        make(reference=reference).fit(TWO)


def unfitted() -> list[Any]:
    from sklearn.mixture import GaussianMixture
    from sklearn.neighbors import KernelDensity

    return [GaussianMixture(2), KernelDensity()]


def test_references_that_were_not_fitted() -> None:
    for reference in unfitted():
        with pytest.raises(TurnoutError, match="fit"):
            density(reference=reference).fit(GOOD).sample(1)


def test_references_of_many_laws_at_once() -> None:
    for reference in (stats.norm([0.0, 1.0], 1.0), stats.norm(0.0, [[1.0, 2.0]])):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="reference"):
            density(reference=reference).fit(GOOD).sample(1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"proposals": 1}, "proposals must be an integer from 2"),
        ({"proposals": 2**30 + 1}, "proposals must be an integer from 2"),
        ({"proposals": 8.0}, "proposals must be an integer"),
        ({"proposals": "8"}, "proposals must be an integer"),
        ({"proposals": True}, "proposals must be an integer"),
        ({"estimator": Bell}, "estimator must be a density estimator with fit and score_samples"),
        ({"estimator": StandardNormal(1)}, "estimator must be a density estimator"),
        ({"estimator": stats.norm()}, "estimator must be a density estimator"),
        ({"estimator": lambda x: x[:, 0]}, "estimator must be a density estimator"),
        ({"estimator": "kde"}, "estimator must be a density estimator"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"random_state": -1, "estimator": None}, "random_state must be an integer"),
        ({"random_state": 2**64, "estimator": None}, "random_state must be an integer"),
        ({"random_state": 1.5, "estimator": None}, "random_state must be an integer"),
        ({"random_state": "a", "estimator": None}, "random_state must be an integer"),
    ],
)
def test_parameters_of_the_density(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        density(**parameters).fit(GOOD)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rounds": 0}, "n_rounds must be an integer from 1"),
        ({"n_rounds": -1}, "n_rounds must be an integer from 1"),
        ({"n_rounds": 10_001}, "n_rounds must be an integer from 1 to 10000"),
        ({"n_rounds": 2.0}, "n_rounds must be an integer"),
        ({"n_rounds": None}, "n_rounds must be an integer"),
        ({"trials": 0}, "trials must be an integer from 1"),
        ({"trials": -3}, "trials must be an integer from 1"),
        ({"trials": 2**30 + 1}, "trials must be an integer from 1"),
        ({"trials": 4.0}, "trials must be an integer"),
        ({"trials": False}, "trials must be an integer"),
        ({"weak_learner": Bell}, "weak_learner must be a classifier"),
        ({"weak_learner": "network"}, "weak_learner must be a classifier"),
        ({"weak_learner": StandardNormal(1)}, "weak_learner must be a classifier"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"random_state": 2**64}, "random_state must be an integer"),
        ({"random_state": np.random.default_rng(1)}, "random_state must be an integer"),
    ],
)
def test_parameters_of_boosting(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        boosting(**parameters).fit(GOOD)


@pytest.mark.parametrize("make", BOTH)
def test_draws(make: Any) -> None:
    fitted = make().fit(GOOD)
    for seed in (-1, 2**64, 1.5, "a", True):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="seed must be an integer"):
            fitted.sample(1, seed=seed)
        with pytest.raises((InvalidTypeError, InvalidValueError), match="seed must be an integer"):
            fitted._log_normalizer(points=10, seed=seed)
    for points in (1, 0, 1.5, None):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="points must be an int"):
            fitted._log_normalizer(points=points)
    for confidence in (0.0, 1.0, math.nan, "a"):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="confidence must be"):
            fitted._log_normalizer(confidence=confidence)
    assert fitted.budget_.spent == 0.0


@pytest.mark.parametrize("make", BOTH)
def test_names_of_parameters(make: Any) -> None:
    sampler = make()
    with pytest.raises(InvalidValueError, match=r"has no parameter 'eps': expected one of epsilon"):
        sampler.set_params(eps=1.0)
    with pytest.raises(InvalidValueError, match="has no parameter 'estimater"):
        sampler.set_params(estimater__bandwidth=1.0)
    with pytest.raises(TurnoutError, match="reference"):
        sampler.set_params(reference__scale=1.0)


# What is odd and no mistake


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    "records",
    [
        [[0.25]],
        [[0.25]] * 7,
        [[0.25], [0.5]],
        [[1, 2], [3, 4]],
        np.array([[1, 2]], dtype=object),
        np.array([[1.5, 2.5]], dtype=np.float32),
        np.array([[1.0, 2.0], [3.0, 4.0]], order="F"),
        np.arange(12.0).reshape(6, 2)[::2],
        np.column_stack([np.arange(5.0), np.full(5, 7.0)]),
        [[1e-300], [-1e-300]],
    ],
    ids=lambda records: f"{np.asarray(records).dtype}{np.asarray(records).shape}",
)
def test_records_of_all_forms(make: Any, records: Any) -> None:
    kept = copy.deepcopy(records)
    fitted = make().fit(records)
    assert fitted.n_features_in_ == np.asarray(records).shape[1]
    drawn = fitted.sample(1, seed=1)
    assert drawn.dtype == np.float64
    assert drawn.shape == (1, fitted.n_features_in_)
    assert np.isfinite(fitted.score_samples(records)).all()
    np.testing.assert_array_equal(np.asarray(records), np.asarray(kept))


def usual(kind: str) -> Any:
    from sklearn.linear_model import LogisticRegression

    if kind == "density":
        return MollifiedDensity(1.0, random_state=1)
    learner = None if kind == "network" else LogisticRegression()
    return MollifiedBoosting(1.0, weak_learner=learner, n_rounds=1, random_state=1)


@pytest.mark.parametrize("kind", ["density", "boosting", "network"])
@pytest.mark.parametrize("size", [1e100, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_huge_records_are_drawn_from_or_refused_by_us(kind: str, size: float, count: int) -> None:
    records = np.full((count, 1), size)
    records[::2] *= -1.0
    try:
        fitted = usual(kind).fit(records)
    except TurnoutError:
        return
    drawn = fitted.sample(5, budget=SIMULATION, seed=1)
    assert np.abs(drawn).max() < 10.0
    ratio = fitted.score_samples([[0.0], [1.0]]) - stats.norm.logpdf([0.0, 1.0])
    assert np.abs(ratio).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("make", BOTH)
def test_huge_points_have_a_density_of_zero(make: Any) -> None:
    fitted = make().fit(GOOD)
    with np.errstate(over="ignore"):
        found = fitted.score_samples([[1e150], [-1e300], [0.0]])
    assert (found[:2] < -1e299).all()
    assert np.isfinite(found[2])


@pytest.mark.parametrize(("reference", "inside", "outside"), ENDS)
def test_records_beyond_the_reference_are_refused(
    reference: Any, inside: float, outside: float
) -> None:
    samplers: list[Any] = [
        density(reference=reference),
        boosting(reference=reference),
        MinimaxSampler(1.0, reference=reference, low=0.0, high=3.0, estimator=Bell()),
    ]
    records = [[inside], [outside], [inside], [outside], [outside]]
    for sampler in samplers:
        sampler.fit([[inside]] * 3)
        with pytest.raises(InvalidValueError) as error:
            sampler.fit(records)
        text = str(error.value)
        assert text.startswith("X must be within the support of the reference, ")
        assert ": 3 of 5 records are outside, the first is X[1]." in text
        # No draw of what was fitted before.
        with pytest.raises(NotFittedError):
            sampler.sample(1)


def test_the_bounds_of_a_uniform_reference_are_named() -> None:
    with pytest.raises(InvalidValueError, match=r"Uniform\(\[0\.0, 3\.0\], \[120\.0, 11\.0\]\)"):
        density(reference=Uniform([0.0, 3.0], [120.0, 11.0])).fit([[10.0, 12.0]])


def test_far_records_of_a_reference_without_an_end_are_taken() -> None:
    density().fit([[1e100], [-1e100]])
    density(reference=stats.norm(0.0, 1.0)).fit([[1e10]])
