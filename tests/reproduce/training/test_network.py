"""The network against NumPy and finite differences; a gradient for each example."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import log_softmax

from turnout.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from turnout_reproduce.training.network import ConvolutionalNetwork, _compiled

pytest.importorskip("jax")

Floats = npt.NDArray[np.float64]


def examples(number: int, seed: int = 1, classes: int = 10) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (number, 28, 28)).astype(np.uint8)
    return images, generator.integers(0, classes, number)


def layer(values: Floats, weights: Floats, bias: Floats, padding: int) -> Floats:
    """A convolution with stride 2 by its definition, a rectifier, and a maximum over 2 by 2."""
    side = round((weights.shape[0] / values.shape[2]) ** 0.5)
    filters = weights.reshape(side, side, values.shape[2], -1)
    values = np.pad(values, ((padding, padding), (padding, padding), (0, 0)))
    places = (len(values) - side) // 2 + 1
    found = np.empty((places, places, filters.shape[3]))
    for row in range(places):
        for column in range(places):
            window = values[2 * row : 2 * row + side, 2 * column : 2 * column + side]
            found[row, column] = np.einsum("abc,abcd->d", window, filters) + bias
    found = np.maximum(found, 0)
    return np.array(
        [
            [found[row : row + 2, column : column + 2].max((0, 1)) for column in range(places - 1)]
            for row in range(places - 1)
        ]
    )


def outputs(parameters: dict[str, Floats], image: npt.NDArray[np.uint8]) -> Floats:
    """The same network in NumPy, in float64."""
    values = layer(
        image[:, :, None] / 255.0, parameters["conv1_weights"], parameters["conv1_bias"], 3
    )
    values = layer(values, parameters["conv2_weights"], parameters["conv2_bias"], 0)
    hidden = values.reshape(-1) @ parameters["dense1_weights"] + parameters["dense1_bias"]
    return np.maximum(hidden, 0) @ parameters["dense2_weights"] + parameters["dense2_bias"]


def loss(parameters: dict[str, Floats], image: Any, label: int) -> float:
    return -float(log_softmax(outputs(parameters, image))[label])


def jittered(network: ConvolutionalNetwork) -> dict[str, Any]:
    """Initial parameters with biases that are not zero, so that these take part."""
    generator = np.random.default_rng(5)
    return {
        name: (array + 0.05 * generator.standard_normal(array.shape)).astype(np.float32)
        for name, array in network.initial_parameters().items()
    }


@pytest.fixture(scope="module")
def network() -> ConvolutionalNetwork:
    return ConvolutionalNetwork(seed=3)


def test_the_size_is_that_of_the_well_known_network(network: ConvolutionalNetwork) -> None:
    assert network.size == 26_010
    assert ConvolutionalNetwork(62).size == 26_010 + 33 * 52
    assert {name: array.shape for name, array in network.initial_parameters().items()} == (
        network.shapes
    )


def test_initial_parameters_are_those_of_the_seed(network: ConvolutionalNetwork) -> None:
    first, again = network.initial_parameters(), ConvolutionalNetwork(seed=3).initial_parameters()
    other = ConvolutionalNetwork(seed=4).initial_parameters()
    for name, array in first.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, again[name])
        assert name.endswith("bias") or not np.array_equal(array, other[name])


def test_losses_and_accuracy_are_those_of_numpy(network: ConvolutionalNetwork) -> None:
    parameters = jittered(network)
    images, labels = examples(40)
    exact = {name: array.astype(np.float64) for name, array in parameters.items()}
    expected = [loss(exact, image, label) for image, label in zip(images, labels, strict=True)]
    assert network.loss(parameters, images, labels) == pytest.approx(np.mean(expected), rel=1e-5)
    right = [int(outputs(exact, image).argmax()) for image in images]
    assert network.accuracy(parameters, images, right) == 1.0
    assert network.accuracy(parameters, images, labels) == np.mean(right == labels)
    scaled = images / 255.0
    assert network.loss(parameters, scaled, labels) == network.loss(parameters, images, labels)


def test_gradients_are_finite_differences_of_the_network_in_numpy(
    network: ConvolutionalNetwork,
) -> None:
    parameters = jittered(network)
    images, labels = examples(2)
    gradients = network.per_example_gradients(parameters, images, labels)
    exact = {name: array.astype(np.float64) for name, array in parameters.items()}
    generator = np.random.default_rng(2)
    for name in network.shapes:
        for example in range(2):
            # The direction of the gradient itself, in which nothing can cancel, and a random one.
            own = gradients[name][example].astype(np.float64)
            chance = generator.standard_normal(own.shape)
            for direction in (own / np.linalg.norm(own), chance / np.linalg.norm(chance)):
                values = [
                    loss({**exact, name: exact[name] + step * direction}, images[example], label)
                    for step in (1e-5, -1e-5)
                    for label in [int(labels[example])]
                ]
                slope = (values[0] - values[1]) / 2e-5
                assert float((own * direction).sum()) == pytest.approx(slope, rel=2e-3, abs=2e-4)


def test_a_batch_is_its_examples_one_by_one(network: ConvolutionalNetwork) -> None:
    parameters = jittered(network)
    images, labels = examples(300)  # more than one batch
    together = network.per_example_gradients(parameters, images, labels)
    for position in (0, 1, 255, 256, 299):
        alone = network.per_example_gradients(
            parameters, images[position : position + 1], labels[position : position + 1]
        )
        for name, gradient in alone.items():
            assert together[name].shape == (300, *network.shapes[name])
            np.testing.assert_allclose(together[name][position], gradient[0], rtol=1e-3, atol=2e-5)
            assert together[name].flags.c_contiguous


def test_the_same_batch_gives_the_same_bits_and_compiles_once(
    network: ConvolutionalNetwork,
) -> None:
    parameters = jittered(network)
    images, labels = examples(70)
    first = network.per_example_gradients(parameters, images, labels)
    compiled = _compiled().gradients._cache_size()
    for number in range(65, 97):
        network.per_example_gradients(parameters, images[:number], labels[:number])
    again = network.per_example_gradients(parameters, images, labels)
    assert _compiled().gradients._cache_size() == compiled
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])


def test_no_examples_have_no_gradients(network: ConvolutionalNetwork) -> None:
    found = network.per_example_gradients(
        network.initial_parameters(), np.zeros((0, 28, 28)), np.zeros(0)
    )
    assert {name: array.shape for name, array in found.items()} == {
        name: (0, *shape) for name, shape in network.shapes.items()
    }


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"images": np.zeros((2, 28, 27))}, InvalidValueError, r"got (2, 28, 27)"),
        ({"images": np.zeros((2, 28, 28), int)}, InvalidTypeError, "got int64"),
        ({"labels": [0, 10]}, InvalidValueError, "labels[1] must be from 0 to 9, got 10"),
        ({"labels": [-1, 0]}, InvalidValueError, "labels[0] must be from 0 to 9, got -1"),
        ({"labels": [0.0, 1.0]}, InvalidTypeError, "labels must be whole numbers, got float64"),
        ({"labels": [0]}, InvalidValueError, "labels must be one for each of 2 images"),
        ({"parameters": {}}, InvalidTypeError, "parameters must be a dict of arrays"),
        ({"parameters": None}, InvalidTypeError, "parameters must be a dict of arrays"),
    ],
)
def test_bad_input_is_named(
    network: ConvolutionalNetwork, change: dict[str, Any], error: type[Exception], words: str
) -> None:
    images, labels = examples(2)
    given = {"parameters": network.initial_parameters(), "images": images, "labels": labels}
    for function in (network.per_example_gradients, network.accuracy, network.loss):
        with pytest.raises(error, match=re.escape(words)):
            function(**{**given, **change})


def test_parameters_of_another_network_are_refused(network: ConvolutionalNetwork) -> None:
    other = ConvolutionalNetwork(62).initial_parameters()
    with pytest.raises(InvalidValueError, match=r"parameters\['dense2_weights'\] must have"):
        network.loss(other, *examples(2))
    with pytest.raises(InvalidValueError, match="at least one example"):
        network.accuracy(network.initial_parameters(), np.zeros((0, 28, 28)), [])


def test_without_jax_the_pip_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "jax", None)
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[jax\]'"):
            ConvolutionalNetwork()
    finally:
        _compiled.cache_clear()
