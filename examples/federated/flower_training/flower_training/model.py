"""Softmax regression on images: the model, its gradients, and who holds which images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout_reproduce.datasets import read_mnist

#: No node has more images; the accounting rests on it.
LARGEST_NODE = 1000
START = {"weights": np.zeros((784, 10), np.float32), "bias": np.zeros(10, np.float32)}

Floats = npt.NDArray[np.float32]
Model = dict[str, Floats]


def images_of(folder: str, node: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Give the images of one node and what they show."""
    data = read_mnist(folder).train
    places = np.random.default_rng(0).permutation(len(data))
    mine = data.take(places[node * LARGEST_NODE : (node + 1) * LARGEST_NODE])
    return flat(mine.images), mine.labels.astype(np.int64)


def flat(images: npt.NDArray[np.uint8]) -> Floats:
    """Lay images out as rows of numbers from 0 to 1."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def probabilities(model: Model, images: Floats) -> Floats:
    """Give how likely each image is each digit."""
    scores = images @ model["weights"] + model["bias"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def gradients(model: Model, images: Floats, labels: npt.NDArray[np.int64]) -> Model:
    """Give the gradient of the cross entropy of every image by itself."""
    errors = probabilities(model, images)
    errors[np.arange(len(labels)), labels] -= 1
    return {"weights": images[:, :, None] * errors[:, None, :], "bias": errors}
