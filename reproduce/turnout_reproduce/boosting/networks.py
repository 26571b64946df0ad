"""Evaluate small dense networks at many points at once, in the core.

scikit-learn's ``predict_proba`` checks its input on every call and rounds probabilities near 0 and
1, so that their log-odds are lost; a boosted score needs the log-odds of many networks at many
points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from turnout import _core
from turnout._types import Floats


class DenseNetwork(NamedTuple):
    """A network of dense layers with one output: a logit.

    Points are first standardised to ``(x - shift) / scale``. Parameters may be anything, infinities
    and NaN included.

    Attributes
    ----------
    activation
        The function that hidden units apply to their sum: ``"tanh"``, ``"logistic"``, ``"relu"`` or
        ``"identity"``. The output is not activated.
    sizes
        The number of inputs, and of units in each layer; the last has one.
    parameters
        For each layer in turn, the weights, of shape (inputs, units), and then the biases.
    shift, scale
        Of shape (inputs,); a scale is above 0.

    Examples
    --------
    >>> import numpy as np
    >>> layers = np.array([1.0, 2.0, 0.0, 0.0, 3.0, -1.0, 0.5])
    >>> network = DenseNetwork("tanh", (1, 2, 1), layers, np.zeros(1), np.ones(1))
    >>> expected = 3 * np.tanh(0.25) - np.tanh(0.5) + 0.5
    >>> bool(np.isclose(network.logits(np.array([[0.25]]))[0], expected))
    True
    """

    activation: str
    sizes: tuple[int, ...]
    parameters: Floats
    shift: Floats
    scale: Floats

    @classmethod
    def from_mlp(cls, classifier: Any, shift: Floats, scale: Floats) -> DenseNetwork:
        """Convert a classifier of scikit-learn that was fitted on the classes 0 and 1.

        The network's logit is the log-odds of class 1, if the classifier was fitted on
        ``(x - shift) / scale``.
        """
        layers = list(zip(classifier.coefs_, classifier.intercepts_, strict=True))
        sizes = (len(shift), *(biases.size for _, biases in layers))
        parameters = np.concatenate([part.ravel() for layer in layers for part in layer])
        return cls(classifier.activation, sizes, parameters.astype(np.float64), shift, scale)

    def logits(self, points: Floats) -> Floats:
        """Return the output at points of shape (n, inputs), whatever it is."""
        return _core.network_logits(self, np.ascontiguousarray(points))


def clipped_sum(
    networks: Sequence[DenseNetwork], weights: Sequence[float], clip: float, points: Floats
) -> Floats:
    """Return ``sum_t weights[t] * clip(logit_t(x), -clip, clip)``; a NaN logit counts as 0.

    Whatever the networks return, the sum is within ``clip * sum_t |weights[t]|`` of 0, apart from
    rounding. The last digits depend on the vector instructions of the machine, never on the number
    of threads.
    """
    return _core.network_scores(networks, weights, clip, np.ascontiguousarray(points))
