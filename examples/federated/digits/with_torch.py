"""Train a small convolutional network on handwritten digits with PyTorch.

python examples/federated/digits/with_torch.py digits
"""

from __future__ import annotations

from typing import Any

import images
import torch

import turnout as tn


def made(pixels: int) -> Any:
    """Make 8 filters of 3 x 3, a pool of 2 x 2 and a dense layer, for images of this side."""
    torch.manual_seed(1)
    inner = (pixels - 2) // 2
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * inner * inner, 10),
    )


def network(pixels: int) -> Any:
    """Give a module's parameters, and functions for their gradients and scores."""
    module = made(pixels)

    def scores(model: Any, batch: Any) -> Any:
        tn.federated.torch.set_state_dict(module, model)
        with torch.no_grad():
            return module(torch.as_tensor(batch)).numpy()

    return (
        tn.federated.torch.state_dict(module),
        tn.federated.torch.gradients(module, torch.nn.functional.cross_entropy),
        scores,
    )


if __name__ == "__main__":
    images.train(network, __doc__)
