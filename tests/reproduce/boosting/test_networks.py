"""Dense networks in bulk against scikit-learn and against fifty digits."""

from __future__ import annotations

import pickle
import warnings

import mpmath
import numpy as np
import pytest

from turnout_reproduce.boosting.networks import DenseNetwork, clipped_sum

neural_network = pytest.importorskip("sklearn.neural_network")

LOG_TWO = np.log(2.0)
ACTIVATIONS = ("identity", "tanh", "logistic", "relu")


def classifier(dimensions, *, activation="tanh", hidden=(25, 25, 25), seed=1, dtype=float):
    generator = np.random.default_rng(seed)
    records = np.concatenate(
        [
            generator.normal(0.5, 0.3, (300, dimensions)),
            generator.normal(0.0, 1.0, (300, dimensions)),
        ]
    ).astype(dtype)
    network = neural_network.MLPClassifier(
        hidden, activation=activation, solver="adam", max_iter=20, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return network.fit(records, np.repeat([1, 0], 300))


def taken(fitted):
    """The network of a classifier that was fitted on points as they are."""
    inputs = fitted.n_features_in_
    return DenseNetwork.from_mlp(fitted, np.zeros(inputs), np.ones(inputs))


def line_of(weight, bias):
    return DenseNetwork("tanh", (1, 1), np.array([weight, bias]), np.zeros(1), np.ones(1))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dimensions", [1, 2, 7])
@pytest.mark.parametrize("hidden", [(25, 25, 25), (3,), ()])
def test_logits_are_the_log_odds_of_scikit_learn(activation, dimensions, hidden):
    fitted = classifier(dimensions, activation=activation, hidden=hidden)
    points = np.random.default_rng(2).normal(0.0, 1.5, (777, dimensions))
    odds = fitted.predict_proba(points)
    logits = taken(fitted).logits(points)
    kept = (odds > 1e-3).all(axis=1)
    assert kept.mean() > 0.5
    expected = np.log(odds[:, 1]) - np.log(odds[:, 0])
    np.testing.assert_allclose(logits[kept], expected[kept], rtol=0, atol=1e-12)


def exactly(network, activation, point, shift, scale):
    """Evaluate a classifier at a point with fifty digits."""
    functions = {
        "identity": lambda x: x,
        "tanh": mpmath.tanh,
        "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
        "relu": lambda x: max(x, mpmath.mpf(0)),
    }
    with mpmath.workdps(50):
        values = [
            (mpmath.mpf(float(x)) - mpmath.mpf(float(a))) / mpmath.mpf(float(b))
            for x, a, b in zip(point, shift, scale, strict=True)
        ]
        last = len(network.coefs_) - 1
        for layer, (weights, biases) in enumerate(
            zip(network.coefs_, network.intercepts_, strict=True)
        ):
            sums = [
                mpmath.fsum(v * mpmath.mpf(float(w)) for v, w in zip(values, column, strict=True))
                + mpmath.mpf(float(bias))
                for column, bias in zip(weights.T, biases, strict=True)
            ]
            values = sums if layer == last else [functions[activation](x) for x in sums]
        return float(values[0])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_logits_to_the_last_digits(activation):
    fitted = classifier(2, activation=activation, hidden=(9, 6))
    shift, scale = np.array([0.3, -2.0]), np.array([0.01, 5.0])
    network = DenseNetwork.from_mlp(fitted, shift, scale)
    # Far out, where the probabilities of scikit-learn are 0 and 1.
    points = np.random.default_rng(3).normal(0.0, 3.0, (40, 2)) * scale + shift
    points[:5] *= 100.0
    expected = [exactly(fitted, activation, point, shift, scale) for point in points]
    np.testing.assert_allclose(network.logits(points), expected, rtol=1e-12, atol=1e-12)


def test_weights_of_single_precision_are_taken_as_they_are():
    fitted = classifier(1, dtype=np.float32)
    assert fitted.coefs_[0].dtype == np.float32
    points = np.linspace(-1.0, 1.0, 9)[:, None]
    shift, scale = np.zeros(1), np.ones(1)
    expected = [exactly(fitted, "tanh", point, shift, scale) for point in points]
    network = taken(fitted)
    np.testing.assert_allclose(network.logits(points), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 256, 257, 5000])
def test_scores_are_the_clipped_sum(count):
    fitted = [classifier(2, seed=seed) for seed in range(3)]
    fitted.append(classifier(2, activation="relu", hidden=(40, 3)))
    weights = [0.5, -0.25, 0.125, 2.0]
    networks = [
        DenseNetwork.from_mlp(each, np.array([seed, 0.0]), np.array([1.0, 2.0]))
        for seed, each in enumerate(fitted)
    ]
    points = np.random.default_rng(4).normal(0.0, 2.0, (count, 2))
    expected = sum(
        weight * np.clip(network.logits(points), -LOG_TWO, LOG_TWO)
        for weight, network in zip(weights, networks, strict=True)
    )
    scores = clipped_sum(networks, weights, LOG_TWO, points)
    assert scores.shape == (count,)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    if count == 5000:
        assert (np.abs(networks[0].logits(points)) > LOG_TWO).mean() > 0.05, "nothing was clipped"


def test_a_point_scores_the_same_alone():
    network = taken(classifier(1))

    def scores(network, points):
        return clipped_sum([network], [1.0], LOG_TWO, points)

    points = np.random.default_rng(5).normal(size=(700, 1))
    together = scores(network, points)
    alone = np.array([scores(network, points[i : i + 1])[0] for i in range(700)])
    assert (together == alone).all()
    assert (scores(pickle.loads(pickle.dumps(network)), points) == together).all()
    strided = np.repeat(points, 2, axis=1)[:, :1]
    assert (scores(network, strided) == together).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("lie", [np.nan, np.inf, -np.inf, 1e308])
def test_networks_that_lie_stay_within_the_clip(activation, lie):
    fitted = classifier(1, activation=activation, hidden=(5, 5))
    points = np.linspace(-3.0, 3.0, 101)[:, None]
    for layer in range(3):
        for parameters in (fitted.coefs_, fitted.intercepts_):
            kept = parameters[layer].copy()
            parameters[layer].flat[0] = lie
            network = taken(fitted)
            parameters[layer] = kept
            scores = clipped_sum([network, network], [1.0, 0.5], LOG_TWO, points)
            assert np.isfinite(scores).all()
            assert (np.abs(scores) <= 1.5 * LOG_TWO * (1.0 + 1e-15)).all()


def test_a_logit_that_is_no_number_counts_as_zero():
    silent = line_of(1.0, np.nan)
    line = line_of(1.0, 0.0)
    endless = line_of(np.inf, 0.0)
    points = np.array([[0.25], [-3.0]])
    assert np.isnan(silent.logits(points)).all()
    found = clipped_sum([silent, line], [5.0, 1.0], 0.5, points)
    assert found.tolist() == [0.25, -0.5]
    assert clipped_sum([endless], [1.0], 0.5, points).tolist() == [0.5, -0.5]
    # Infinity times 0 is no number.
    assert clipped_sum([endless], [1.0], 0.5, np.zeros((1, 1))).tolist() == [0.0]
