"""Gradients of single examples with PyTorch, where it is installed (extra ``torch``)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import Adam, InProcessEngine, RandomParticipationSGD

torch = pytest.importorskip("torch")


def load_digits() -> Any:
    pytest.importorskip("sklearn")
    place = Path(__file__).with_name("digits.py")
    spec = importlib.util.spec_from_file_location("federated_digits", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def network() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3),
        torch.nn.ReLU(),
        torch.nn.GroupNorm(2, 8),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(72, 10),
    )


def batch(count: int) -> Any:
    random = np.random.default_rng(count)
    images = random.normal(size=(count, 1, 8, 8)).astype(np.float32)
    return images, random.integers(10, size=count)


@pytest.mark.parametrize("count", [1, 7])
def test_gradients_are_those_of_backward(count: int) -> None:
    module, (images, labels) = network(), batch(count)
    cross_entropy = torch.nn.functional.cross_entropy
    model = {name: value + 0.1 for name, value in tn.federated.torch.state_dict(module).items()}
    found = tn.federated.torch.gradients(module, cross_entropy)(model, images, labels)
    before = tn.federated.torch.state_dict(module)

    other = network()
    tn.federated.torch.set_state_dict(other, model)
    for row in range(count):
        other.zero_grad()
        part = slice(row, row + 1)
        cross_entropy(other(torch.tensor(images[part])), torch.tensor(labels[part])).backward()
        for name, value in other.named_parameters():
            np.testing.assert_allclose(found[name][row], value.grad, rtol=1e-4, atol=1e-6)
    # The module itself is as it was.
    for name, value in tn.federated.torch.state_dict(module).items():
        assert value.tobytes() == before[name].tobytes()
    assert all(value.grad is None for value in module.parameters())


def test_a_model_comes_back_as_it_left() -> None:
    module = network()
    model = tn.federated.torch.state_dict(module)
    assert set(model) == set(module.state_dict())
    model["0.bias"][:] = 3.0
    assert not (module[0].bias == 3.0).any()  # a copy
    other = torch.nn.Sequential(*network())
    for value in model.values():
        value.flags.writeable = False
    tn.federated.torch.set_state_dict(other, model)
    for name, value in other.state_dict().items():
        assert value.numpy().tobytes() == model[name].tobytes()
    assert all(value.requires_grad for value in other.parameters())


def test_what_needs_no_gradient_stays_with_the_module() -> None:
    module = network()
    module[0].requires_grad_(False)
    images, labels = batch(3)
    model = tn.federated.torch.state_dict(module)
    assert "0.weight" not in model
    per_example = tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)
    assert set(per_example(model, images, labels)) == set(model)


def test_dropout_draws_for_each_example() -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(64, 1, bias=False))
    per_example = tn.federated.torch.gradients(module, lambda output, target: output.sum())
    found = per_example(
        tn.federated.torch.state_dict(module), np.ones((2, 64), np.float32), np.zeros(2)
    )["1.weight"]
    assert (found[0] != found[1]).any()


@pytest.mark.slow
def test_a_convolutional_network_learns_digits() -> None:
    data = load_digits()
    digits = data.Digits()
    module = network()
    per_example = tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)
    engine = InProcessEngine(
        RandomParticipationSGD(**data.PLAN),
        tn.federated.torch.state_dict(module),
        lambda model, clients, elements: per_example(
            model, digits.images[clients, elements], digits.labels[clients, elements]
        ),
        sizes=data.SIZE, clients=data.CLIENTS, optimizer=Adam(0.02), batched=True,
    )  # fmt: skip
    tn.federated.torch.set_state_dict(module, engine.run(60))
    images, labels = digits.test
    found = module(torch.tensor(images)).argmax(axis=1)
    assert np.mean(found.numpy() == labels) > 0.85


def test_what_makes_no_sense_is_refused() -> None:
    gradients, module = tn.federated.torch.gradients, network()
    cross_entropy = torch.nn.functional.cross_entropy
    with pytest.raises(InvalidTypeError, match=r"module must be a torch.nn.Module"):
        gradients(lambda x: x, cross_entropy)
    with pytest.raises(InvalidTypeError, match="loss must be a function"):
        gradients(module, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"take GroupNorm\), got BatchNorm2d at '1'"):
        gradients(torch.nn.Sequential(network()[0], torch.nn.BatchNorm2d(8)), cross_entropy)
    model = tn.federated.torch.state_dict(module)
    less = {name: value for name, value in model.items() if name != "5.bias"}
    with pytest.raises(InvalidValueError, match=r"'5.bias' must be \(10,\), got nothing"):
        gradients(module, cross_entropy)(less, *batch(2))
    with pytest.raises(InvalidValueError, match=r"'5.bias' must be \(10,\), got \(9,\)"):
        tn.federated.torch.set_state_dict(module, {**model, "5.bias": np.zeros(9)})
    with pytest.raises(InvalidValueError, match="'more' must be left out"):
        tn.federated.torch.set_state_dict(module, {**model, "more": np.zeros(9)})
