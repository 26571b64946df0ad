"""Dense networks in bulk against scikit-learn and against fifty digits."""

from __future__ import annotations

import pickle
import warnings

import mpmath
import numpy as np
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers.networks import DenseNetwork, DenseNetworks

neural_network = pytest.importorskip("sklearn.neural_network")

LOG_TWO = np.log(2.0)
ACTIVATIONS = ("identity", "tanh", "logistic", "relu")


def classifier(dimension, *, activation="tanh", hidden=(25, 25, 25), seed=1, dtype=float):
    generator = np.random.default_rng(seed)
    records = np.concatenate(
        [generator.normal(0.5, 0.3, (300, dimension)), generator.normal(0.0, 1.0, (300, dimension))]
    ).astype(dtype)
    network = neural_network.MLPClassifier(
        hidden, activation=activation, solver="adam", max_iter=20, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return network.fit(records, np.repeat([1, 0], 300))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dimension", [1, 2, 7])
@pytest.mark.parametrize("hidden", [(25, 25, 25), (3,), ()])
def test_logits_are_the_log_odds_of_scikit_learn(activation, dimension, hidden):
    fitted = classifier(dimension, activation=activation, hidden=hidden)
    points = np.random.default_rng(2).normal(0.0, 1.5, (777, dimension))
    odds = fitted.predict_proba(points)
    logits = DenseNetwork.from_mlp(fitted).logits(points)
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
    network = DenseNetwork.from_mlp(fitted)
    np.testing.assert_allclose(network.logits(points), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 256, 257, 5000])
def test_scores_are_the_clipped_sum(count):
    fitted = [classifier(2, seed=seed) for seed in range(3)]
    fitted.append(classifier(2, activation="relu", hidden=(40, 3)))
    weights = [0.5, -0.25, 0.125, 2.0]
    networks = [
        DenseNetwork.from_mlp(each, [seed, 0.0], [1.0, 2.0]) for seed, each in enumerate(fitted)
    ]
    points = np.random.default_rng(4).normal(0.0, 2.0, (count, 2))
    expected = sum(
        weight * np.clip(network.logits(points), -LOG_TWO, LOG_TWO)
        for weight, network in zip(weights, networks, strict=True)
    )
    scores = DenseNetworks(networks, weights).scores(points)
    assert scores.shape == (count,)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    if count == 5000:
        assert (np.abs(networks[0].logits(points)) > LOG_TWO).mean() > 0.05, "nothing was clipped"


def test_a_point_scores_the_same_alone():
    networks = DenseNetworks([DenseNetwork.from_mlp(classifier(1))], [1.0])
    points = np.random.default_rng(5).normal(size=(700, 1))
    together = networks.scores(points)
    alone = np.array([networks.scores(points[i : i + 1])[0] for i in range(700)])
    assert (together == alone).all()
    assert (pickle.loads(pickle.dumps(networks)).scores(points) == together).all()
    strided = np.repeat(points, 2, axis=1)[:, :1]
    assert (networks.scores(strided) == together).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("lie", [np.nan, np.inf, -np.inf, 1e308])
def test_networks_that_lie_stay_within_the_clip(activation, lie):
    fitted = classifier(1, activation=activation, hidden=(5, 5))
    points = np.linspace(-3.0, 3.0, 101)[:, None]
    for layer in range(3):
        for parameters in (fitted.coefs_, fitted.intercepts_):
            kept = parameters[layer].copy()
            parameters[layer].flat[0] = lie
            network = DenseNetwork.from_mlp(fitted)
            parameters[layer] = kept
            scores = DenseNetworks([network, network], [1.0, 0.5]).scores(points)
            assert np.isfinite(scores).all()
            assert (np.abs(scores) <= 1.5 * LOG_TWO * (1.0 + 1e-15)).all()


def test_a_logit_that_is_no_number_counts_as_zero():
    silent = DenseNetwork([[[1.0]]], [[np.nan]])
    line = DenseNetwork([[[1.0]]], [[0.0]])
    endless = DenseNetwork([[[np.inf]]], [[0.0]])
    points = np.array([[0.25], [-3.0]])
    assert np.isnan(silent.logits(points)).all()
    found = DenseNetworks([silent, line], [5.0, 1.0], 0.5).scores(points)
    assert found.tolist() == [0.25, -0.5]
    assert DenseNetworks([endless], [1.0], 0.5).scores(points).tolist() == [0.5, -0.5]
    # Infinity times 0 is no number.
    assert DenseNetworks([endless], [1.0], 0.5).scores(np.zeros((1, 1))).tolist() == [0.0]


def test_what_is_no_classifier_of_two_classes_is_refused():
    with pytest.raises(InvalidTypeError, match="fitted MLPClassifier"):
        DenseNetwork.from_mlp(neural_network.MLPClassifier())
    with pytest.raises(InvalidTypeError, match="fitted MLPClassifier"):
        DenseNetwork.from_mlp("a network")
    points = np.random.default_rng(1).normal(size=(30, 1))
    for classes in ([0, 1, 2], [1, 2]):
        network = neural_network.MLPClassifier((2,), solver="lbfgs", max_iter=50, tol=1.0)
        network.fit(points, np.resize(classes, 30))
        with pytest.raises(InvalidValueError, match="classes 0 and 1"):
            DenseNetwork.from_mlp(network)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], []), InvalidValueError, "there must be a layer"),
        (([[[1.0]]], []), InvalidValueError, "one array for each layer"),
        (([[1.0]], [[1.0]]), InvalidValueError, r"weights\[0\] must have 2 dimension"),
        (([[[1.0]]], [1.0]), InvalidValueError, r"biases\[0\] must have 1 dimension"),
        (
            ([[[1.0, 2.0]]], [[1.0]]),
            InvalidValueError,
            r"weights\[0\] must have the shape \(1, 1\)",
        ),
        (([[[1.0, 2.0]]], [[1.0, 2.0]]), InvalidValueError, "must have one unit"),
        (([[["a"]]], [[1.0]]), InvalidTypeError, r"weights\[0\] must hold real numbers"),
        ((3, [[1.0]]), InvalidTypeError, "weights must be a list of arrays"),
    ],
)
def test_bad_layers(arguments, error, message):
    with pytest.raises(error, match=message):
        DenseNetwork(*arguments)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"activation": "softmax"}, "activation must be one of"),
        ({"shift": [0.0, 1.0]}, "shift must be one finite number for each of the 1"),
        ({"shift": [np.nan]}, "shift must be one finite number"),
        ({"scale": [0.0]}, "scale must be above 0"),
        ({"scale": [-1.0]}, "scale must be above 0"),
        ({"scale": [np.inf]}, "scale must be one finite number"),
    ],
)
def test_bad_standardisation(keywords, message):
    with pytest.raises(InvalidValueError, match=message):
        DenseNetwork([[[1.0]]], [[0.0]], **keywords)


def test_bad_sums_and_points():
    one = DenseNetwork([[[1.0]]], [[0.0]])
    two = DenseNetwork([[[1.0], [1.0]]], [[0.0]])
    with pytest.raises(InvalidValueError, match="at least one network"):
        DenseNetworks([], [])
    with pytest.raises(InvalidTypeError, match=r"networks\[1\] must be a DenseNetwork"):
        DenseNetworks([one, 3], [1.0, 1.0])
    with pytest.raises(InvalidValueError, match="number of inputs"):
        DenseNetworks([one, two], [1.0, 1.0])
    for weights in ([1.0, 2.0], [np.nan]):
        with pytest.raises(InvalidValueError, match="one finite number for each of the 1"):
            DenseNetworks([one], weights)
    for clip in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InvalidValueError, match="clip must be"):
            DenseNetworks([one], [1.0], clip)
    for points, message in [
        (np.zeros((3, 2)), r"X must have 1 column"),
        (np.zeros(3), "2-D"),
        (np.array([[np.nan]]), "finite"),
    ]:
        with pytest.raises(InvalidValueError, match=message):
            one.logits(points)
        with pytest.raises(InvalidValueError, match=message):
            DenseNetworks([one], [1.0]).scores(points)
