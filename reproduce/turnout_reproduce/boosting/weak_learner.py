"""Train weak learners: classifiers whose bounded scores tell a person's records from a density."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout_reproduce.boosting.networks import DenseNetwork, clipped_sum

Score = Callable[[Floats], Floats]

#: The largest score of a weak learner: c* of the paper.
LOG_TWO = math.log(2.0)

#: Records in a step of the default network's training, and about how many steps there are.
_BATCH = 100
_STEPS = 4000


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierScore:
    """The log-odds of a fitted classifier, clipped to [-log 2, log 2]."""

    classifier: Any
    center: Floats
    scale: Floats

    def __call__(self, points: Floats) -> Floats:
        """Return clipped log-odds at points of shape (n, d); NaN counts as 0."""
        with np.errstate(all="ignore"):
            scaled = (points - self.center) / self.scale
            if hasattr(self.classifier, "predict_proba"):
                odds = np.asarray(self.classifier.predict_proba(scaled), np.float64)
                if odds.shape != (len(points), 2):
                    raise InvalidValueError(
                        "weak_learner must give two probabilities for each point, got shape "
                        f"{odds.shape} for {len(points)} points"
                    )
                raw = np.log(odds[:, 1]) - np.log(odds[:, 0])
            else:
                raw = np.asarray(self.classifier.decision_function(scaled), np.float64)
                if raw.shape != (len(points),):
                    raise InvalidValueError(
                        "weak_learner must give one decision value for each point, got shape "
                        f"{raw.shape} for {len(points)} points"
                    )
        return clipped(raw)


def clipped(raw: Floats) -> Floats:
    """Clip scores to [-log 2, log 2]; NaN becomes 0."""
    return np.clip(np.where(np.isnan(raw), 0.0, raw), -LOG_TWO, LOG_TWO)


class BoostedScore:
    """The weighted sum of clipped scores, clipped once more to a certified range.

    Parameters
    ----------
    learners
        Scores of the rounds.
    weights
        Their weights theta.
    most
        The certified range: scores are in [-most, most].
    """

    def __init__(self, learners: Sequence[Any], weights: Sequence[float], most: float) -> None:
        self.learners = tuple(learners)
        self.weights = tuple(weights)
        self.most = most
        # Those of one sampler are of one kind.
        self._networks = all(isinstance(learner, DenseNetwork) for learner in self.learners)

    def __call__(self, points: Floats) -> Floats:
        """Return scores at points of shape (n, d)."""
        total = np.zeros(len(points))
        if self._networks and self.learners:
            total += clipped_sum(self.learners, self.weights, LOG_TWO, points)
        else:
            for learner, theta in zip(self.learners, self.weights, strict=True):
                total += theta * learner(points)
        return np.clip(total, -self.most, self.most)


def default_learner(records: int, seed: int | None) -> Any:
    """Make the network of the paper: tanh 25-25-25 then sigmoid, Nesterov's momentum.

    Parameters
    ----------
    records
        How many records it will be trained on; if there are fewer, each is seen more often.
    seed
        Seeds its first weights and its order of records.

    Returns
    -------
    sklearn.neural_network.MLPClassifier
        The classifier, not fitted.
    """
    network = require("sklearn.neural_network", "samplers").MLPClassifier
    return network(
        hidden_layer_sizes=(25, 25, 25),
        activation="tanh",
        solver="sgd",
        learning_rate_init=0.01,
        momentum=0.9,
        nesterovs_momentum=True,
        batch_size=min(_BATCH, records),
        max_iter=min(200, max(25, _STEPS * _BATCH // records)),
        random_state=seed,
    )


def check_learner(learner: Any) -> None:
    """Raise an error if an object is not a classifier."""
    scores = any(
        callable(getattr(learner, name, None)) for name in ("predict_proba", "decision_function")
    )
    if isinstance(learner, type) or not callable(getattr(learner, "fit", None)) or not scores:
        raise _arguments.mistyped(
            "weak_learner must be a classifier with fit and predict_proba or decision_function",
            learner,
        )


def fitted_score(learner: Any, positives: Floats, negatives: Floats) -> Any:
    """Fit a classifier that tells records from draws, and return its clipped score.

    Parameters
    ----------
    learner
        The classifier, not fitted.
    positives
        The person's records, class 1.
    negatives
        Draws from the current density, class 0.

    Returns
    -------
    callable
        Gives scores in [-log 2, log 2] at points.
    """
    records = np.concatenate([positives, negatives])
    classes = np.repeat([1, 0], [len(positives), len(negatives)])
    center, scale = records.mean(axis=0), records.std(axis=0)
    scale = np.where(scale > 0.0, scale, 1.0)
    with warnings.catch_warnings():
        # That a weak learner did not converge is no concern: weak is enough.
        unfinished = require("sklearn.exceptions", "samplers").ConvergenceWarning
        warnings.filterwarnings("ignore", category=unfinished)
        learner.fit((records - center) / scale, classes)
    if type(learner).__name__ == "MLPClassifier" and type(learner).__module__.startswith("sklearn"):
        return DenseNetwork.from_mlp(learner, center, scale)
    return ClassifierScore(learner, center, scale)
