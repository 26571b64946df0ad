"""Handwritten digits divided among clients, a plan for them, and the options of both programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout.federated import Adam, AdaptiveClipping, InProcessEngine, RandomParticipationSGD

Array = npt.NDArray[Any]

#: For each data set: clients, images of a client, and what the plan needs beside.
SETTINGS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "digits": (75, 20, {"client_rate": 0.4, "epsilon": 8.0, "delta": 1e-4, "rounds": 80}),
    "mnist": (2000, 30, {"client_rate": 0.02, "epsilon": 2.0, "delta": 1e-6, "rounds": 100}),
}


@dataclass(frozen=True)
class Images:
    """Images (1, pixels, pixels) from 0 to 1 and labels: of clients, and public ones to test."""

    images: Array
    labels: Array
    test_images: Array
    test_labels: Array


def read(name: str, folder: Path) -> Images:
    """Read a data set and divide it among clients."""
    clients, size, _ = SETTINGS[name]
    if name == "digits":
        from sklearn.datasets import load_digits

        found = load_digits()
        images, labels = found.images / 16.0, found.target
    else:
        from turnout_reproduce.datasets import read_mnist

        split = read_mnist(folder)
        images = np.concatenate([split.train.images, split.test.images])
        images = images / 255.0
        labels = np.concatenate([split.train.labels, split.test.labels])
    images = images.astype(np.float32)[:, None]
    labels = labels.astype(np.int64)
    if name == "digits":
        order = np.random.default_rng(0).permutation(len(labels))
        images, labels = images[order], labels[order]
    many = clients * size
    pixels = images.shape[1:]
    return Images(
        images[:many].reshape(clients, size, *pixels),
        labels[:many].reshape(clients, size),
        images[many:],
        labels[many:],
    )


def train(
    network: Callable[[int], tuple[Any, Callable[..., Any], Callable[[Any, Array], Array]]],
    description: str,
    arguments: list[str] | None = None,
) -> float:
    """Read the options, train, and say what came out.

    Parameters
    ----------
    network
        Takes the pixels of a side. Gives the model to start from, a function of the model, images
        and labels that gives the gradient of each, and one of the model and images that gives the
        scores of each.
    description
        What the program does.
    arguments
        Those of the command line.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", choices=SETTINGS)
    shared = Path(__file__).resolve().parents[3].parent / "shared" / "data"
    place = Path(os.environ.get("TURNOUT_DATA", shared))
    parser.add_argument("--folder", type=Path, default=place, help="where the files of MNIST are")
    parser.add_argument("--rounds", type=int, help="train fewer rounds than the budget pays for")
    parser.add_argument("--seed", type=int, help="repeat a run; protects nobody")
    parser.add_argument("--picture", type=Path, help="draw the history into this file")
    options = parser.parse_args(arguments)

    clients, size, settings = SETTINGS[options.data]
    images = read(options.data, options.folder)
    plan = RandomParticipationSGD(
        sample_rate=0.5,
        clip=1.0,
        local_size=size,
        # One image of a batch changes the gradients of others in their last bits only.
        batch_slack=0.01,
        adaptive_clipping=AdaptiveClipping(),
        seed=options.seed,
        **settings,
    )
    start, gradients, scores = network(images.images.shape[-1])
    engine = InProcessEngine(
        plan,
        start,
        lambda model, who, which: gradients(
            model, images.images[who, which], images.labels[who, which]
        ),
        sizes=size,
        clients=clients,
        optimizer=Adam(0.02),
        batched=True,
    )

    def measured(model: Any) -> dict[str, float]:
        found = scores(model, images.test_images)
        shifted = found - found.max(axis=1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        rows = np.arange(len(found))
        return {
            "loss": float(-logarithms[rows, images.test_labels].mean()),
            "accuracy": float((found.argmax(axis=1) == images.test_labels).mean()),
        }

    # Of the data, and for whoever has them: keep it to yourself.
    print(engine.check())
    rounds = options.rounds or settings["rounds"]
    engine.run(rounds, evaluate=measured, evaluate_every=10, progress=True)
    history = engine.server.history
    last = history.to_records()[-1]
    print(plan.guarantee)
    print(
        f"accuracy {last['accuracy']:.3f} on {len(images.test_labels):,} test images after "
        f"{rounds} rounds, epsilon {last['epsilon']:.3g} at delta {settings['delta']:g}"
    )
    if options.picture is not None:
        history.plot().savefig(options.picture, dpi=120)
    return float(last["accuracy"])
