"""What an engine adds to the time of gradients, and whole trainings beside Opacus's.

A round of a network with 10^5 parameters is timed with clipping, sums, noise and step. Beside it
stand the calls of the same function of gradients alone, with the same batches. Its results are read
as NumPy arrays. The function comes from ``tn.federated.jax.gradients``.

The training is that of ``examples/federated/digits``: 80 steps of a small convolutional network,
with as many images a step on average, the same noise and the same optimizer for all.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from measurement import Contender, Timing, measure
from report import Figures, Row, duration

TITLE = "Training of networks"
#: Of a round.
CLIENTS, SIZE = 64, 16
HEADINGS = ("job", "turnout", "compared with", "its time", "ratio", "target", "met?")
NOTES = [
    f"A round: {CLIENTS} clients with {SIZE} elements each, all of which take part; clipping on "
    "the grid, noise and step included. The engine asks for as many gradients in a call as the "
    "caches hold. The target compares with the same gradients in the same calls. In one call of "
    "the whole round, gradients take longer, since their memory is new.",
    "Digits: 80 steps with 300 of 1,500 images on average; each reaches an accuracy "
    "of 0.75 or more. Compiling and importing is done in a first training, which is not timed. "
    "Opacus draws its batches with Poisson sampling, through its own data loader.",
]
#: A round may take so many times as long as its gradients, and a training as Opacus's.
MOST_OF_ROUND, MOST_OF_TRAINING = 1.05, 2.0
LEAST_ACCURACY = 0.75
DIGITS = Path(__file__).resolve().parents[1] / "examples" / "federated" / "digits"

ONE_CALL, SAME_CALLS, PEER = "gradients in one call", "the same gradients", "Opacus"


def run(
    turnout: ModuleType | None, seconds: float, quick: bool, show: Callable[[str], object]
) -> Figures:
    """Measure rounds and trainings; ``quick`` times each of them as seldom as possible."""
    rows: list[Row] = []
    missing: list[str] = []
    spent = 0.0 if quick else seconds
    for part in (_rounds, _trainings):
        try:
            if turnout is not None:
                rows += part(spent, show)
        except ImportError as error:
            missing.append(f"left out: {error}")
    return Figures("networks", TITLE, HEADINGS, rows, NOTES + missing)


def _row(job: str, own: Timing, other: Timing, most: float | None) -> Row:
    """Return the row of a job: how many times as long as the other it takes."""
    problem = own.problem or other.problem
    raw = {"job": job, "compared": other.column, "most": most, "problem": problem}
    target = "-" if most is None else f"<= {most:g}"
    if problem is not None:
        cells = (job, "-", other.column, "-", "-", target, "-")
        return Row(cells, f"{job}: {problem}", raw)
    ratio = own.best / other.best
    met = "-" if most is None else "yes" if ratio <= most else "no"
    times = duration(own.best), other.column, duration(other.best)
    raw |= {"seconds": own.best, "compared_seconds": other.best, "ratio": ratio}
    return Row((job, *times, f"{ratio:.2f}", target, met), "", raw)


def _rounds(seconds: float, show: Callable[[str], object]) -> Iterator[Row]:
    """Time the rounds of two networks."""
    for name, (start, scores, shape) in _networks(importlib.import_module("jax")).items():
        size = sum(part.size for part in start.values())
        job = f"a round of a {name} network, {size:,} parameters"
        show(job)
        own, same, one = measure(_contenders(start, scores, shape), seconds, lambda share: None)
        yield _row(job, own, same, MOST_OF_ROUND)
        yield _row(job, own, one, None)


def _contenders(start: Any, scores: Any, shape: tuple[int, ...]) -> list[Contender]:
    """Return a round of the engine, its calls for gradients alone, and one call for all of them."""
    jax = importlib.import_module("jax")
    federated = importlib.import_module("turnout.federated")
    random = np.random.default_rng(0)
    inputs = random.standard_normal((CLIENTS, SIZE, *shape), np.float32)
    labels = random.integers(10, size=(CLIENTS, SIZE))
    per_example = federated.jax.gradients(
        lambda model, x, label: -jax.nn.log_softmax(scores(model, x))[label]
    )
    calls: list[Any] = []

    def gradients(model: Any, who: Any, which: Any) -> Any:
        calls.append((who, which))
        return per_example(model, inputs[who, which], labels[who, which])

    plan = federated.RandomParticipationSGD(
        1.0, 1.0, clip=1.0, noise_multiplier=1.0, local_size=SIZE
    )
    engine = federated.InProcessEngine(
        plan, start, gradients, SIZE, federated.SGD(0.1), clients=CLIENTS, batched=True
    )

    def one_round() -> Any:
        calls.clear()
        return engine.run(engine.server.round + 1)

    def alone(batches: list[Any]) -> None:
        for who, which in batches:
            found = per_example(engine.server.parameters, inputs[who, which], labels[who, which])
            for part in found.values():
                np.asarray(part)

    every = np.repeat(np.arange(CLIENTS), SIZE), np.tile(np.arange(SIZE), CLIENTS)
    number = CLIENTS * SIZE
    return [
        Contender("turnout", "InProcessEngine", number, one_round, _is_finite),
        Contender(SAME_CALLS, "alone", number, lambda: alone(calls), lambda result: True),
        Contender(ONE_CALL, "alone", number, lambda: alone([every]), lambda result: True),
    ]


def _is_finite(model: Any) -> bool:
    return all(bool(np.isfinite(part).all()) for part in model.values())


def _networks(jax: Any) -> dict[str, tuple[dict[str, Any], Any, tuple[int, ...]]]:
    """Return models to start from, functions of their scores, and the shape of an input."""
    random = np.random.default_rng(1)

    def made(*shape: int) -> Any:
        wide = np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else np.inf
        return (random.normal(size=shape) / wide).astype(np.float32)

    def dense(model: Any, x: Any) -> Any:
        inner = jax.nn.relu(model["inner"] @ x + model["bias"])
        return model["outer"] @ inner + model["offset"]

    def convolutional(model: Any, image: Any) -> Any:
        found = jax.lax.conv(image[None], model["filters"], (1, 1), "VALID")[0]
        found = jax.nn.relu(found + model["shift"][:, None, None])
        return dense(model, found.reshape(16, 12, 2, 12, 2).mean(axis=(2, 4)).ravel())

    def head(inputs: int, width: int) -> dict[str, Any]:
        outer = {"outer": made(10, width), "offset": made(10)}
        return {"inner": made(width, inputs), "bias": made(width)} | outer

    filters = {"filters": made(16, 1, 5, 5), "shift": made(16)}
    return {
        "dense": (head(784, 128), dense, (784,)),
        "convolutional": (filters | head(16 * 144, 43), convolutional, (1, 28, 28)),
    }


def _trainings(seconds: float, show: Callable[[str], object]) -> Iterator[Row]:
    """Time trainings on digits beside Opacus's."""
    torch, opacus = (importlib.import_module(name) for name in ("torch", "opacus"))
    importlib.import_module("sklearn")
    if str(DIGITS) not in sys.path:
        sys.path.append(str(DIGITS))
    images = importlib.import_module("images")
    data = images.read("digits", None)
    show("trainings on digits")
    libraries = {"PyTorch": "with_torch", "JAX": "with_jax"}
    contenders = [_opacus_training(torch, opacus, images, data)]
    for library, name in libraries.items():
        contenders.append(_own_training(library, importlib.import_module(name), images, data))
    peer, *own = measure(contenders, seconds, lambda share: None)
    for timing in own:
        yield _row(f"training on digits, {timing.column}", timing, peer, MOST_OF_TRAINING)


def _settings(images: Any) -> tuple[int, int, int, Any]:
    """Return the clients, the images of each, the rounds, and a plan."""
    federated = importlib.import_module("turnout.federated")
    clients, size, settings = images.SETTINGS["digits"]
    plan = federated.RandomParticipationSGD(
        sample_rate=0.5, clip=1.0, local_size=size, batch_slack=0.01, **settings
    )
    return clients, size, settings["rounds"], plan


def _own_training(library: str, module: Any, images: Any, data: Any) -> Contender:
    federated = importlib.import_module("turnout.federated")
    clients, size, rounds, plan = _settings(images)
    start, gradients, scores = module.network(data.images.shape[-1])

    def train() -> float:
        engine = federated.InProcessEngine(
            plan,
            start,
            lambda model, who, which: gradients(
                model, data.images[who, which], data.labels[who, which]
            ),
            sizes=size,
            clients=clients,
            optimizer=federated.Adam(0.02),
            batched=True,
        )
        found = scores(engine.run(rounds), data.test_images).argmax(axis=1)
        return float((found == data.test_labels).mean())

    return Contender(library, "InProcessEngine", rounds, train, _has_learned)


def _opacus_training(torch: Any, opacus: Any, images: Any, data: Any) -> Contender:
    clients, size, rounds, plan = _settings(images)
    inputs = torch.as_tensor(data.images.reshape(-1, *data.images.shape[2:]))
    targets = torch.as_tensor(data.labels.ravel())
    batch = round(clients * size * plan.client_rate * plan.sample_rate)

    def train() -> float:
        module = importlib.import_module("with_torch").made(data.images.shape[-1])
        optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(inputs, targets), batch_size=batch
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module, optimizer, loader = opacus.PrivacyEngine().make_private(
                module=module,
                optimizer=optimizer,
                data_loader=loader,
                noise_multiplier=plan.noise_multiplier,
                max_grad_norm=plan.clip,
            )
            steps = 0
            while steps < rounds:
                for x, y in loader:
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(module(x), y).backward()
                    optimizer.step()
                    steps += 1
                    if steps == rounds:
                        break
        with torch.no_grad():
            found = module(torch.as_tensor(data.test_images)).argmax(axis=1).numpy()
        return float((found == data.test_labels).mean())

    return Contender(PEER, "make_private", rounds, train, _has_learned)


def _has_learned(accuracy: Any) -> bool:
    return bool(accuracy > LEAST_ACCURACY)
