"""Train a small convolutional network on handwritten digits with JAX.

python examples/federated/digits/with_jax.py digits
"""

from __future__ import annotations

from typing import Any

import images
import jax
import numpy as np

import turnout as tn


def network(pixels: int) -> Any:
    """Make 8 filters of 3 x 3, a pool of 2 x 2 and a dense layer, for images of this side."""
    random = np.random.default_rng(1)
    inner = (pixels - 2) // 2

    def made(*shape: int) -> Any:
        return (random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    start = {
        "filters": made(8, 1, 3, 3),
        "bias": np.zeros(8, np.float32),
        "weights": made(10, 8 * inner * inner),
        "offset": np.zeros(10, np.float32),
    }

    def scores(model: Any, image: Any) -> Any:
        found = jax.lax.conv(image[None], model["filters"], (1, 1), "VALID")[0]
        found = jax.nn.relu(found + model["bias"][:, None, None])
        found = found.reshape(8, inner, 2, inner, 2).mean(axis=(2, 4))
        return model["weights"] @ found.ravel() + model["offset"]

    def loss(model: Any, image: Any, label: Any) -> Any:
        return -jax.nn.log_softmax(scores(model, image))[label]

    of_all = jax.jit(jax.vmap(scores, in_axes=(None, 0)))
    return (
        start,
        tn.federated.jax.gradients(loss),
        lambda model, batch: np.asarray(of_all(model, batch)),
    )


if __name__ == "__main__":
    images.train(network, __doc__)
