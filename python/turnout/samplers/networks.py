"""Small dense networks, evaluated at many points at once by the core.

scikit-learn's ``predict_proba`` checks its input on every call and rounds probabilities near 0 and
1, so that their log-odds are lost; a boosted score needs the log-odds of many networks at many
points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats
from turnout.accounting.values import positive
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers.base import points

_ACTIVATIONS = ("identity", "tanh", "logistic", "relu")


class DenseNetwork:
    """A network of dense layers with one output: a logit.

    Points are first standardised to ``(x - shift) / scale``. Weights and biases may be anything,
    infinities and NaN included.

    Parameters
    ----------
    weights
        The weights of the layers, from the first to the last: an array of shape (inputs, units) for
        each. The last has one unit.
    biases
        The biases of the layers: an array of shape (units,) for each.
    activation
        What hidden units make of their sum: ``"tanh"``, ``"logistic"``, ``"relu"`` or
        ``"identity"``. The output is not activated.
    shift, scale
        Of shape (inputs,); 0 and 1 if None. A scale is above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the shapes do not fit together, an array does not hold real numbers, the activation is
        not known, or shift or scale cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> network = DenseNetwork([[[1.0, 2.0]], [[3.0], [-1.0]]], [[0.0, 0.0], [0.5]])
    >>> bool(np.isclose(network(np.array([[0.25]]))[0], 3 * np.tanh(0.25) - np.tanh(0.5) + 0.5))
    True
    """

    def __init__(
        self,
        weights: Iterable[Any],
        biases: Iterable[Any],
        *,
        activation: str = "tanh",
        shift: Any = None,
        scale: Any = None,
    ) -> None:
        self.activation = _arguments.choice("activation", activation, _ACTIVATIONS)
        matrices = [
            _reals(f"weights[{layer}]", matrix, 2)
            for layer, matrix in enumerate(_arguments.items("weights", weights, "a list of arrays"))
        ]
        offsets = [
            _reals(f"biases[{layer}]", vector, 1)
            for layer, vector in enumerate(_arguments.items("biases", biases, "a list of arrays"))
        ]
        self.sizes = _sizes(matrices, offsets)
        self.shift = _affine("shift", shift, 0.0, self.sizes[0])
        self.scale = _affine("scale", scale, 1.0, self.sizes[0])
        if not (self.scale > 0.0).all():
            raise _arguments.invalid("scale must be above 0", scale)
        pieces = [part.ravel() for pair in zip(matrices, offsets, strict=True) for part in pair]
        self._parameters: Floats = np.concatenate(pieces)

    @classmethod
    def from_mlp(cls, classifier: Any, shift: Any = None, scale: Any = None) -> DenseNetwork:
        """Take over a fitted classifier of scikit-learn.

        Parameters
        ----------
        classifier
            A fitted :class:`sklearn.neural_network.MLPClassifier` of the classes 0 and 1.
        shift, scale
            What makes of a point the input that the classifier was fitted on:
            ``(x - shift) / scale``.

        Returns
        -------
        DenseNetwork
            Gives the log-odds of class 1: the sigmoid of them is the classifier's probability.

        Raises
        ------
        InvalidTypeError
            If this is no fitted MLPClassifier.
        InvalidValueError
            If its classes are not 0 and 1.
        """
        try:
            weights, biases = classifier.coefs_, classifier.intercepts_
            hidden, output = classifier.activation, classifier.out_activation_
            classes = np.asarray(classifier.classes_)
        except AttributeError as error:
            raise _arguments.mistyped(
                "classifier must be a fitted MLPClassifier of scikit-learn", classifier
            ) from error
        if output != "logistic" or classes.shape != (2,) or classes.tolist() != [0, 1]:
            raise InvalidValueError(
                "classifier must have been fitted on the classes 0 and 1, got the classes "
                f"{_arguments.shown(classes.tolist())}"
            )
        return cls(weights, biases, activation=hidden, shift=shift, scale=scale)

    def logits(self, X: Any) -> Floats:
        """Give the output at points.

        Parameters
        ----------
        X
            Points of shape (n, inputs), finite.

        Returns
        -------
        numpy.ndarray
            The logits, float64 of shape (n,); NaN or infinite if the network says so.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the points are not finite real numbers of that shape.
        """
        return _core.network_logits(self._parts, points("X", X, least=0, columns=self.sizes[0]))

    def __call__(self, X: Any) -> Floats:
        """Give the output at points, as :meth:`logits`."""
        return self.logits(X)

    @property
    def _parts(self) -> tuple[str, tuple[int, ...], Floats, Floats, Floats]:
        return self.activation, self.sizes, self._parameters, self.shift, self.scale

    def __repr__(self) -> str:
        sizes = "-".join(map(str, self.sizes))
        return f"DenseNetwork({sizes}, activation={self.activation!r})"


class DenseNetworks:
    """A weighted sum of clipped logits.

    ``sum_t weights[t] * clip(logit_t(x), -clip, clip)``, where a logit that is NaN counts as 0.
    Whatever the networks return, rounding apart, it is within ``clip * sum_t |weights[t]|`` of 0.
    The last digits depend on the vector instructions of the machine, never on the number of
    threads.

    Parameters
    ----------
    networks
        One or more networks of the same number of inputs.
    weights
        One finite number for each.
    clip
        Above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there is no network, they differ in their inputs, the weights are not one finite number
        for each, or ``clip`` is not finite and above 0.

    Examples
    --------
    >>> import numpy as np
    >>> line = DenseNetwork([[[1.0]]], [[0.0]])
    >>> DenseNetworks([line, line], [1.0, 0.5], clip=2.0).scores(np.array([[1.0], [-9.0]]))
    array([ 1.5, -3. ])
    """

    def __init__(
        self, networks: Iterable[DenseNetwork], weights: Any, clip: float = math.log(2.0)
    ) -> None:
        expected = "a sequence of DenseNetwork"
        self.networks: tuple[DenseNetwork, ...] = tuple(
            _arguments.items("networks", networks, expected)
        )
        if not self.networks:
            raise InvalidValueError("networks must hold at least one network, got none")
        for position, network in enumerate(self.networks):
            _arguments.instance(f"networks[{position}]", network, DenseNetwork, "a DenseNetwork")
        inputs = sorted({network.sizes[0] for network in self.networks})
        if len(inputs) > 1:
            raise InvalidValueError(
                f"networks must have one and the same number of inputs, got {inputs}"
            )
        self.weights = _reals("weights", weights, 1)
        if self.weights.size != len(self.networks) or not np.isfinite(self.weights).all():
            raise _arguments.invalid(
                f"weights must be one finite number for each of the {len(self.networks)} networks",
                weights,
            )
        self.clip = positive("clip", clip)

    def scores(self, X: Any) -> Floats:
        """Give the sum at points.

        Parameters
        ----------
        X
            Points of shape (n, inputs), finite.

        Returns
        -------
        numpy.ndarray
            float64 of shape (n,).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the points are not finite real numbers of that shape.
        """
        checked = points("X", X, least=0, columns=self.networks[0].sizes[0])
        parts = [network._parts for network in self.networks]
        return _core.network_scores(parts, self.weights.tolist(), self.clip, checked)

    def __call__(self, X: Any) -> Floats:
        """Give the sum at points, as :meth:`scores`."""
        return self.scores(X)

    def __repr__(self) -> str:
        return f"DenseNetworks({len(self.networks)} networks, clip={self.clip:g})"


def _reals(argument: str, value: Any, dimensions: int) -> Floats:
    """Return real numbers, finite or not, as a contiguous float64 array."""
    array = _arguments.as_array(argument, value, "an array of real numbers")
    if array.dtype.kind not in "iuf":
        raise InvalidTypeError(f"{argument} must hold real numbers, got dtype {array.dtype}")
    if array.ndim != dimensions or array.size == 0:
        raise InvalidValueError(
            f"{argument} must have {dimensions} dimension(s) and not be empty, got shape "
            f"{array.shape}"
        )
    return np.ascontiguousarray(array, np.float64)


def _sizes(weights: list[Floats], biases: list[Floats]) -> tuple[int, ...]:
    if not weights or len(weights) != len(biases):
        raise InvalidValueError(
            "weights and biases must have one array for each layer, and there must be a layer: got "
            f"{len(weights)} and {len(biases)} arrays"
        )
    sizes = [weights[0].shape[0]]
    for layer, (matrix, vector) in enumerate(zip(weights, biases, strict=True)):
        if matrix.shape != (sizes[-1], vector.size):
            raise InvalidValueError(
                f"weights[{layer}] must have the shape ({sizes[-1]}, {vector.size}) of the layer "
                f"before and of biases[{layer}], got {matrix.shape}"
            )
        sizes.append(vector.size)
    if sizes[-1] != 1:
        raise InvalidValueError(f"the last layer must have one unit, got {sizes[-1]}")
    return tuple(sizes)


def _affine(argument: str, value: Any, default: float, inputs: int) -> Floats:
    if value is None:
        return np.full(inputs, default)
    array = _reals(argument, value, 1)
    if array.size != inputs or not np.isfinite(array).all():
        raise _arguments.invalid(
            f"{argument} must be one finite number for each of the {inputs} input(s)", value
        )
    return array
