"""Gradients of single examples with PyTorch, where it is installed (extra ``torch``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.loading import load

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.federated import Adam, InProcessEngine, RandomParticipationSGD

torch = pytest.importorskip("torch")


def load_digits() -> Any:
    pytest.importorskip("sklearn")
    return load(Path(__file__).with_name("digits.py"), "federated_digits")


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


def test_batch_norm_in_eval_mode_is_fixed() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    module[1].eval()
    per_example = tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)
    model = tn.federated.torch.state_dict(module)
    found = per_example(model, np.ones((2, 4), np.float32), np.array([0, 2]))
    assert found["1.weight"].shape == (2, 3)
    module.train()
    with pytest.raises(InvalidValueError, match="BatchNorm1d at '1'"):
        per_example(model, np.ones((2, 4), np.float32), np.array([0, 2]))
    whole = torch.nn.Sequential(
        torch.nn.InstanceNorm1d(3, track_running_stats=True), torch.nn.Linear(4, 3)
    )
    with pytest.raises(InvalidValueError, match="InstanceNorm1d at '0'"):
        tn.federated.torch.gradients(whole, torch.nn.functional.cross_entropy)
    tn.federated.torch.gradients(whole.eval(), torch.nn.functional.cross_entropy)


def test_an_example_that_fails_costs_the_others_nothing(caplog: Any) -> None:
    module, (images, labels) = network(), batch(5)
    per_example = tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)
    model = tn.federated.torch.state_dict(module)
    right = per_example(model, images, labels)
    wrong = labels.copy()
    wrong[2] = 77
    found = per_example(model, images, wrong)
    for name, values in found.items():
        assert torch.isnan(values[2]).all()
        rest = [0, 1, 3, 4]
        np.testing.assert_allclose(values[rest], right[name][rest], rtol=1e-4, atol=1e-6)
    # Its label is not in the log.
    assert "count as zero" in caplog.text
    assert "77" not in caplog.text
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)(
            model, images[:2], np.array([77, 78])
        )


@pytest.mark.parametrize("batched", [False, True])
def test_an_example_that_fails_does_not_end_a_training(batched: bool) -> None:
    # Alone in a batch, it must not raise either: an error would tell that it exists.
    module, (images, labels) = network(), batch(8)
    labels[3] = 77
    per_example = tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy)
    model = tn.federated.torch.state_dict(module)

    def gradients(parameters: Any, clients: Any, elements: Any) -> Any:
        places = np.broadcast_to(clients, elements.shape)
        return per_example(parameters, images[places], labels[places])

    engine = tn.federated.InProcessEngine(
        tn.federated.RandomParticipationSGD(
            0.9, 1.0, clip=1.0, noise_multiplier=1.0, local_size=1, seed=2
        ),
        model,
        tn.federated.one_at_a_time(gradients) if batched else gradients,
        1,
        tn.federated.SGD(0.01),
        clients=8,
        batched=batched,
    )
    engine.run(3)
    found = per_example(model, images[3:4], labels[3:4])
    assert all(torch.isnan(values).all() for values in found.values())
    assert {name: values.shape[1:] for name, values in found.items()} == {
        name: values.shape for name, values in model.items()
    }


class Words(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two inputs, an embedding, and a layer that vmap cannot do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(9, 4)
        self.layer = torch.nn.GRU(4, 4, batch_first=True)
        self.register_buffer("calls", torch.zeros(()))
        self.last = torch.nn.Linear(6, 3)

    def forward(self, words: Any, more: Any) -> Any:
        self.calls += 1.0
        found = self.layer(self.embedding(words))[0][:, -1]
        return self.last(torch.cat([found, more], dim=1))


def test_modules_that_vmap_cannot_do_are_computed_one_by_one(caplog: Any) -> None:
    torch.manual_seed(1)
    module, cross_entropy = Words(), torch.nn.functional.cross_entropy
    model = tn.federated.torch.state_dict(module)
    words, more = np.arange(12).reshape(3, 4) % 9, np.ones((3, 2), np.float32)
    labels = np.array([0, 1, 2])
    found = tn.federated.torch.gradients(module, cross_entropy)(model, (words, more), labels)
    assert "computed alone" in caplog.text
    assert module.calls == 0.0  # what an example writes reaches nobody
    for row in range(3):
        module.zero_grad()
        part = slice(row, row + 1)
        output = module(torch.tensor(words[part]), torch.tensor(more[part]))
        cross_entropy(output, torch.tensor(labels[part])).backward()
        for name, value in module.named_parameters():
            np.testing.assert_allclose(found[name][row], value.grad, rtol=1e-4, atol=1e-6)


def test_everything_is_computed_where_the_module_is() -> None:
    module = torch.nn.Linear(4, 3, device="meta")
    devices = []

    def loss(output: Any, target: Any) -> Any:
        devices.extend([output.device.type, target.device.type])
        return output.sum()

    model = {"weight": np.zeros((3, 4), np.float32), "bias": np.zeros(3, np.float32)}
    # Nothing is stored on this device, so nothing comes back from it.
    with pytest.raises(NotImplementedError, match="meta"):
        tn.federated.torch.gradients(module, loss)(model, np.ones((2, 4), np.float32), np.ones(2))
    assert set(devices) == {"meta"}


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
    with pytest.raises(InvalidValueError, match=r"take GroupNorm, or .* got BatchNorm2d at '1'"):
        gradients(torch.nn.Sequential(network()[0], torch.nn.BatchNorm2d(8)), cross_entropy)
    model = tn.federated.torch.state_dict(module)
    less = {name: value for name, value in model.items() if name != "5.bias"}
    with pytest.raises(InvalidValueError, match=r"'5.bias' must be \(10,\), got nothing"):
        gradients(module, cross_entropy)(less, *batch(2))
    with pytest.raises(InvalidValueError, match=r"'5.bias' must be \(10,\), got \(9,\)"):
        tn.federated.torch.set_state_dict(module, {**model, "5.bias": np.zeros(9)})
    with pytest.raises(InvalidValueError, match="'more' must be left out"):
        tn.federated.torch.set_state_dict(module, {**model, "more": np.zeros(9)})
    images, labels = batch(3)
    with pytest.raises(InvalidValueError, match=r"same number of examples in front .*\(2,\)"):
        gradients(module, cross_entropy)(model, images, labels[:2])
    with pytest.raises(InvalidTypeError, match="pass several inputs as a tuple"):
        gradients(module, cross_entropy)(model, {"images": images}, labels)
    with pytest.raises(InvalidTypeError, match="parameters must be a dictionary"):
        gradients(module, cross_entropy)(np.zeros(9), images, labels)
    with pytest.raises(InvalidTypeError, match="got bfloat16 at 'weight': call float"):
        tn.federated.torch.state_dict(torch.nn.Linear(2, 2).bfloat16())
    with pytest.raises(InvalidTypeError, match="got float16 at 'weight': call float"):
        gradients(torch.nn.Linear(2, 2).half(), cross_entropy)
    for refuse in (tn.federated.torch.state_dict, lambda given: gradients(given, cross_entropy)):
        with pytest.raises(InvalidValueError, match="a parameter that requires a gradient"):
            refuse(torch.nn.Linear(2, 2).requires_grad_(False))
