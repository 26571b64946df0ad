"""Softmax regression on images: the model, its gradients, and who holds which images."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

#: No node has more images; the accounting rests on it.
LARGEST_NODE = 500
NODES = 3
START = {"weights": np.zeros((64, 10), np.float32), "bias": np.zeros(10, np.float32)}

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Model = dict[str, Floats]


def _images(places: slice) -> tuple[Floats, Integers]:
    """Give some of scikit-learn's digits, with numbers from 0 to 1, and what they show."""
    found = load_digits()
    chosen = np.random.default_rng(0).permutation(len(found.target))[places]
    return (found.data[chosen] / 16).astype(np.float32), found.target[chosen].astype(np.int64)


def images_of(node: int) -> tuple[Floats, Integers]:
    """Give the images of one node, from 0 to 2."""
    if not 0 <= node < NODES:
        raise ValueError(f"partition-id must be from 0 to {NODES - 1}, got {node}")
    return _images(slice(node * LARGEST_NODE, (node + 1) * LARGEST_NODE))


def public_images() -> tuple[Floats, Integers]:
    """Give the images that no node has, to measure with."""
    return _images(slice(NODES * LARGEST_NODE, None))


def probabilities(model: Model, images: Floats) -> Floats:
    """Give how likely each image is each digit."""
    scores = images @ model["weights"] + model["bias"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def gradients(model: Model, images: Floats, labels: Integers) -> Model:
    """Give the gradient of the cross entropy of every image by itself."""
    errors = probabilities(model, images)
    errors[np.arange(len(labels)), labels] -= 1
    return {"weights": images[:, :, None] * errors[:, None, :], "bias": errors}
