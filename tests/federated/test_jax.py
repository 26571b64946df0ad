"""Gradients of single examples with JAX: right ones, and a network that learns digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loading import load

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import Adam, InProcessEngine, RandomParticipationSGD

jax = pytest.importorskip("jax")
jnp = jax.numpy


def load_digits() -> Any:
    pytest.importorskip("sklearn")
    return load(Path(__file__).with_name("digits.py"), "federated_digits")


def logistic(parameters: Any, x: Any, y: Any) -> Any:
    return -jax.nn.log_softmax(x @ parameters["weights"] + parameters["bias"][0])[y]


@pytest.mark.parametrize("count", [1, 5, 16, 17, 40])
def test_gradients_are_those_of_the_formula(count: int) -> None:
    random = np.random.default_rng(count)
    x = random.normal(size=(count, 4)).astype(np.float32)
    y = random.integers(3, size=count)
    model = {
        "weights": random.normal(size=(4, 3)).astype(np.float32),
        "bias": [random.normal(size=3).astype(np.float32)],
    }
    found = tn.federated.jax.gradients(logistic)(model, x, y)
    logits = x @ model["weights"] + model["bias"][0]
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = chance - np.eye(3)[y]
    assert isinstance(found["weights"], jax.Array if count == 16 else np.ndarray)
    np.testing.assert_allclose(found["weights"], x[:, :, None] * error[:, None], atol=1e-5)
    np.testing.assert_allclose(found["bias"][0], error, atol=1e-5)


def test_it_compiles_for_a_few_sizes_only() -> None:
    traced = []

    def loss(parameters: Any, x: Any) -> Any:
        traced.append(x.shape)
        return jnp.sum((x - parameters) ** 2)

    per_example = tn.federated.jax.gradients(loss)
    for count in range(1, 65):
        found = per_example(np.zeros(2, np.float32), np.ones((count, 2), np.float32))
        assert found.shape == (count, 2)
    assert len(traced) == 3


def test_a_row_that_fills_the_batch_is_one_of_the_examples() -> None:
    per_example = tn.federated.jax.gradients(lambda scale, x: scale / x)
    found = per_example(np.float32(1.0), np.array([2.0, 4.0], np.float32))
    np.testing.assert_allclose(found, [0.5, 0.25])
    with jax.debug_nans(True):
        per_example(np.float32(1.0), np.array([2.0, 4.0, 5.0], np.float32))


def network() -> Any:
    random = np.random.default_rng(1)

    def made(*shape: int) -> Any:
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    zeros = np.zeros
    return [
        {"kernel": made(8, 1, 3, 3), "bias": zeros(8, np.float32)},
        {"weights": made(10, 72), "bias": zeros(10, np.float32)},
    ]


def logits(parameters: Any, image: Any) -> Any:
    convolution, dense = parameters
    found = jax.lax.conv(image[None], convolution["kernel"], (1, 1), "VALID")[0]
    found = jax.nn.relu(found + convolution["bias"][:, None, None])
    found = found.reshape(8, 3, 2, 3, 2).mean(axis=(2, 4))
    return dense["weights"] @ found.ravel() + dense["bias"]


@pytest.mark.slow
def test_a_convolutional_network_learns_digits() -> None:
    data = load_digits()
    digits = data.Digits()
    per_example = tn.federated.jax.gradients(
        lambda parameters, image, label: -jax.nn.log_softmax(logits(parameters, image))[label]
    )
    engine = InProcessEngine(
        RandomParticipationSGD(**data.PLAN),
        network(),
        lambda model, clients, elements: per_example(
            model, digits.images[clients, elements], digits.labels[clients, elements]
        ),
        sizes=data.SIZE, clients=data.CLIENTS, optimizer=Adam(0.02), batched=True,
    )  # fmt: skip
    model = engine.run(60)
    images, labels = digits.test
    found = jax.vmap(logits, in_axes=(None, 0))(model, images).argmax(axis=1)
    assert np.mean(np.asarray(found) == labels) > 0.85


@pytest.mark.parametrize(
    ("batch", "shapes"),
    [
        ((), r"shapes \[\]"),
        ((np.ones((3, 2)), np.ones(2)), r"\(3, 2\), \(2,\)"),
        ((np.ones((0, 2)),), r"\(0, 2\)"),
        ((np.float32(1.0),), r"\(\)"),
    ],
)
def test_batches_that_make_no_sense_are_refused(batch: Any, shapes: str) -> None:
    per_example = tn.federated.jax.gradients(logistic)
    with pytest.raises(InvalidValueError, match=f"batch must be arrays with .*{shapes}"):
        per_example(np.ones(2), *batch)


def test_a_loss_must_be_a_function() -> None:
    with pytest.raises(InvalidTypeError, match="loss must be a function"):
        tn.federated.jax.gradients(3)  # type: ignore[arg-type]


def test_a_label_out_of_range_counts_as_the_nearest() -> None:
    per_example = tn.federated.jax.gradients(lambda model, y: -jax.nn.log_softmax(model)[y])
    found = per_example(np.array([0.1, 0.2, 0.3], np.float32), np.array([2, 7]))
    np.testing.assert_array_equal(found[0], found[1])
