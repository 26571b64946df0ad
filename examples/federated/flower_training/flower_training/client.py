"""A node: its images, the gradients of some of them, and what it may spend."""

from __future__ import annotations

from typing import Any

from flwr.app import Context

from flower_training.model import LARGEST_NODE, gradients, images_of
from turnout.accounting import PrivacyLedger
from turnout.federated.flower import client_app


def local(context: Context) -> Any:
    """Read the images of this node."""
    images, labels = images_of(int(context.node_config["partition-id"]))
    return len(images), lambda model, elements: gradients(model, images[elements], labels[elements])


app = client_app(local, budget=PrivacyLedger(epsilon=2.0, delta=1e-5), size_bound=LARGEST_NODE)
