"""The jobs of private samplers that are compared, and who does each of them.

A boosted score is the weighted sum of the clipped logits of ten small networks (tanh 25-25-25), at
many points. NumPy multiplies matrices in blocks that stay in the cache; scikit-learn's own
``predict_proba`` is called network by network.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs import Job, Layout, Target
from measurement import Contender

NETWORKS = 10
POINTS = (200, 100_000)
BLOCK = 2048

PEER = "scikit-learn"
REFERENCE = "NumPy"
LAYOUT = Layout(
    columns=("turnout", REFERENCE, PEER),
    ratios={REFERENCE: "ratio to NumPy", PEER: "to scikit-learn"},
)
TITLE = f"Boosted score of {NETWORKS} networks, tanh 25-25-25, 2 features, time of a call"
NOTES = [
    "turnout uses all cores. NumPy and scikit-learn use as many as their library for matrices does."
]

Floats = npt.NDArray[np.float64]


def load_peer() -> tuple[ModuleType | None, dict[str, str]]:
    """Return scikit-learn's networks, or None and why they are not to be had."""
    try:
        return importlib.import_module("sklearn.neural_network"), {}
    except ImportError as error:
        return None, {PEER: f"not installed: {error}"}


def build(turnout: ModuleType | None, peer: ModuleType | None) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peer
        ``sklearn.neural_network``; without it there are no networks, and no jobs.
    """
    if peer is None:
        return []
    generator = np.random.default_rng(0)
    records = generator.normal(size=(400, 2))
    classes = (records.sum(axis=1) > 0).astype(int)
    networks = []
    for seed in range(NETWORKS):
        network = peer.MLPClassifier((25, 25, 25), activation="tanh", max_iter=1, random_state=seed)
        networks.append(network.partial_fit(records, classes, classes=[0, 1]))
    weights = [0.5**number for number in range(1, NETWORKS + 1)]
    return [_scores(turnout, networks, weights, points) for points in POINTS]


def _scores(turnout: ModuleType | None, networks: list[Any], weights: list[float], n: int) -> Job:
    points = np.random.default_rng(1).normal(size=(n, 2))
    expected = _numpy(networks, weights, points)

    def accept(result: Floats) -> bool:
        return bool(np.allclose(result, expected, rtol=0.0, atol=1e-9))

    contenders = []
    if turnout is not None:
        own = importlib.import_module("turnout_reproduce.boosting.networks")
        same = np.zeros(2), np.ones(2)
        taken = [own.DenseNetwork.from_mlp(one, *same) for one in networks]
        call: Callable[[], object] = partial(own.clipped_sum, taken, weights, math.log(2.0), points)
        contenders.append(Contender("turnout", "clipped_sum", 1, call, accept))
    call = partial(_numpy, networks, weights, points)
    contenders.append(Contender(REFERENCE, "matmul, tanh", 1, call, accept))
    call = partial(_sklearn, networks, weights, points)
    contenders.append(Contender(PEER, "predict_proba", 1, call, accept))
    return Job(f"score at {n:,} points", contenders, Target(), timed=True)


def _numpy(networks: list[Any], weights: list[float], points: Floats) -> Floats:
    total = np.empty(len(points))
    for first in range(0, len(points), BLOCK):
        block = points[first : first + BLOCK]
        sums = np.zeros(len(block))
        for network, weight in zip(networks, weights, strict=True):
            layer = block
            *inner, last = zip(network.coefs_, network.intercepts_, strict=True)
            for matrix, offset in inner:
                layer = layer @ matrix
                layer += offset
                np.tanh(layer, out=layer)
            logits = (layer @ last[0])[:, 0] + last[1]
            sums += weight * np.clip(logits, -math.log(2.0), math.log(2.0))
        total[first : first + BLOCK] = sums
    return total


def _sklearn(networks: list[Any], weights: list[float], points: Floats) -> Floats:
    total = np.zeros(len(points))
    for network, weight in zip(networks, weights, strict=True):
        odds = network.predict_proba(points)
        logits = np.log(odds[:, 1]) - np.log(odds[:, 0])
        total += weight * np.clip(logits, -math.log(2.0), math.log(2.0))
    return total
