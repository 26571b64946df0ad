"""Federated training with random participation.

Clients join a round at random and sample their data at random; nobody sees who did, and that is
what the accounting counts on. :class:`RandomParticipationSGD` holds the public parameters,
:class:`Client` and :class:`Server` are its two halves, :class:`InProcessEngine` runs both in one
process, and :mod:`turnout.federated.flower` (extra ``flower``) in Flower.
"""

from turnout._public import listing
from turnout.federated.checkpoint import TrainingState, load_checkpoint, save_checkpoint
from turnout.federated.client import Client, Draw, Update
from turnout.federated.engine import InProcessEngine
from turnout.federated.optimizers import SGD, Optimizer
from turnout.federated.plan import Grid
from turnout.federated.schedules import Constant, CosineDecay, StepDecay, Warmup
from turnout.federated.server import Server
from turnout.federated.sums import one_at_a_time
from turnout.federated.training import RandomParticipationSGD
from turnout.federated.trees import Structure, flatten

__all__ = [
    "SGD",
    "Client",
    "Constant",
    "CosineDecay",
    "Draw",
    "Grid",
    "InProcessEngine",
    "Optimizer",
    "RandomParticipationSGD",
    "Server",
    "StepDecay",
    "Structure",
    "TrainingState",
    "Update",
    "Warmup",
    "flatten",
    "load_checkpoint",
    "one_at_a_time",
    "save_checkpoint",
]

__dir__ = listing(__all__)
