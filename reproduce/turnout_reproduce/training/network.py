"""A small network for images in JAX, with a gradient for each example: extra ``jax``."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._types import Array
from turnout.errors import InvalidTypeError, InvalidValueError

Parameters = dict[str, npt.NDArray[np.float32]]

#: Height and width of an image, in pixels.
_SIDE = 28

#: Examples are padded to one of these numbers, so that a run compiles at most once for each.
_BATCHES = (16, 64, 96, 128, 256)

#: Images that are looked at together where no gradient is needed: more do not fit caches.
_FORWARD_BATCH = 96

#: Filters' side, stride, padding and number of each convolution; pools have side 2 and stride 1.
_FIRST = (8, 2, 3, 16)
_SECOND = (4, 2, 0, 32)

#: Numbers that come out of the convolutions, and out of the first dense layer.
_FLAT = 4 * 4 * _SECOND[3]
_HIDDEN = 32


class ConvolutionalNetwork:
    """Two convolutions and two dense layers, for grey images of 28 by 28 pixels.

    16 filters of 8 by 8 with stride 2 on the padded image, 32 filters of 4 by 4 with stride 2, each
    with a rectifier and a maximum over 2 by 2 with stride 1, a dense layer of 32 with a rectifier,
    and a dense layer with an output for each class. The loss is the cross-entropy. With 10 classes
    there are 26,010 parameters.

    Parameters
    ----------
    classes
        How many classes there are: 10 for MNIST, 62 for EMNIST by class. Labels are from 0.
    seed
        Of the initial parameters.

    Raises
    ------
    MissingExtraError
        If JAX is not installed: extra ``jax``.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The participation paper (Hasircioglu and Gunduz, appendix B.1) trains two convolutions and two
    dense layers whose sizes its text does not say. These are those of the tutorials of TensorFlow
    Privacy, on which much of the literature on private training reports.

    Images are numbers from 0 to 1, or bytes, which are divided by 255. Nothing else is done to
    them, so that nothing about the data is needed that is not public. Everything is deterministic:
    the same examples in the same batch give the same bits on the same machine. In another batch
    the order of floating-point sums may differ.

    Examples
    --------
    >>> import numpy as np
    >>> network = ConvolutionalNetwork(classes=10, seed=1)  # doctest: +SKIP
    >>> parameters = network.initial_parameters()  # doctest: +SKIP
    >>> images, labels = np.zeros((3, 28, 28), np.uint8), np.array([5, 0, 4])
    >>> gradients = network.per_example_gradients(parameters, images, labels)  # doctest: +SKIP
    >>> gradients["dense2_weights"].shape  # doctest: +SKIP
    (3, 32, 10)
    """

    def __init__(self, classes: int = 10, *, seed: int = 0) -> None:
        self._classes = _arguments.integer("classes", classes, least=2, most=2**16)
        self._seed = _arguments.integer("seed", seed, least=0, most=2**64 - 1)
        self._compiled = _compiled()

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self._classes

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of parameters."""
        return {
            "conv1_weights": (_FIRST[0] ** 2, _FIRST[3]),
            "conv1_bias": (_FIRST[3],),
            "conv2_weights": (_SECOND[0] ** 2 * _FIRST[3], _SECOND[3]),
            "conv2_bias": (_SECOND[3],),
            "dense1_weights": (_FLAT, _HIDDEN),
            "dense1_bias": (_HIDDEN,),
            "dense2_weights": (_HIDDEN, self._classes),
            "dense2_bias": (self._classes,),
        }

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def initial_parameters(self) -> Parameters:
        """Draw parameters to start from: of the seed alone, the same on every machine.

        Weights are uniform with the variance of Glorot and Bengio (2010), biases are zero.

        Returns
        -------
        dict of str to numpy.ndarray
            Arrays of float32.
        """
        generator = np.random.default_rng(self._seed)
        drawn: Parameters = {}
        for name, shape in self.shapes.items():
            if len(shape) == 1:
                drawn[name] = np.zeros(shape, np.float32)
                continue
            inputs, outputs = shape
            # A filter's outputs are spread over as many places as it looks at.
            fan = inputs + outputs * {"conv1_weights": 64, "conv2_weights": 16}.get(name, 1)
            bound = math.sqrt(6.0 / fan)
            drawn[name] = generator.uniform(-bound, bound, shape).astype(np.float32)
        return drawn

    def per_example_gradients(
        self, parameters: Any, images: npt.ArrayLike, labels: npt.ArrayLike
    ) -> Parameters:
        """Compute the gradient of each example's loss.

        Parameters
        ----------
        parameters
            As :meth:`initial_parameters` gives them; arrays of any library.
        images
            Shape (examples, 28, 28): uint8, or floating-point numbers from 0 to 1.
        labels
            Shape (examples,): whole numbers from 0 to ``classes - 1``.

        Returns
        -------
        dict of str to numpy.ndarray
            One array of float32 and shape (examples, ...) for each of the parameters.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument has another shape or type, or a label is none.
        """
        values = self._checked(parameters)
        pixels, classes = self._examples(images, labels)
        if len(classes) == 0:
            return {name: np.zeros((0, *shape), np.float32) for name, shape in self.shapes.items()}
        parts = [
            self._gradients(values, pixels[start : start + _BATCHES[-1]], classes[start:])
            for start in range(0, len(classes), _BATCHES[-1])
        ]
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.shapes}

    def accuracy(self, parameters: Any, images: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """Compute the share of examples whose largest output is that of their class.

        Parameters
        ----------
        parameters, images, labels
            As for :meth:`per_example_gradients`; at least one example.

        Returns
        -------
        float
            From 0 to 1.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            As for :meth:`per_example_gradients`, or if there is no example.
        """
        return self._average(self._compiled.correct, parameters, images, labels)

    def loss(self, parameters: Any, images: npt.ArrayLike, labels: npt.ArrayLike) -> float:
        """Compute the mean cross-entropy, in nats.

        Parameters
        ----------
        parameters, images, labels
            As for :meth:`per_example_gradients`; at least one example.

        Returns
        -------
        float
            At least 0.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            As for :meth:`per_example_gradients`, or if there is no example.
        """
        return self._average(self._compiled.losses, parameters, images, labels)

    def _gradients(self, values: Any, pixels: Any, classes: Any) -> Parameters:
        number = len(pixels)
        found = self._batch(self._compiled.gradients, values, pixels, classes[:number])
        return {name: np.asarray(found[name])[:number] for name in self.shapes}

    def _average(self, function: Any, parameters: Any, images: Any, labels: Any) -> float:
        values = self._checked(parameters)
        pixels, classes = self._examples(images, labels)
        if len(classes) == 0:
            raise InvalidValueError("images must hold at least one example, got none")
        total = 0.0
        for start in range(0, len(classes), _FORWARD_BATCH):
            part = slice(start, start + _FORWARD_BATCH)
            found = self._batch(function, values, pixels[part], classes[part])
            total += float(np.asarray(found, np.float64)[: len(classes[part])].sum())
        return total / len(classes)

    @staticmethod
    def _batch(function: Any, values: Any, pixels: Any, classes: Any) -> Any:
        """Call a function with so many examples that it is compiled for them."""
        batch = next(size for size in _BATCHES if size >= len(pixels))
        return function(values, _padded(pixels, batch), _padded(classes, batch))

    def _checked(self, parameters: Any) -> Parameters:
        shapes = self.shapes
        if not isinstance(parameters, dict) or set(parameters) != set(shapes):
            raise _arguments.mistyped(
                f"parameters must be a dict of arrays with the keys {', '.join(shapes)}", parameters
            )
        values = {name: np.asarray(parameters[name], np.float32) for name in shapes}
        for name, shape in shapes.items():
            if values[name].shape != shape:
                raise InvalidValueError(
                    f"parameters[{name!r}] must have the shape {shape}, got {values[name].shape}"
                )
        return values

    def _examples(self, images: Any, labels: Any) -> tuple[Any, npt.NDArray[np.int32]]:
        pixels, classes = np.asarray(images), np.asarray(labels)
        if pixels.ndim != 3 or pixels.shape[1:] != (_SIDE, _SIDE):
            raise InvalidValueError(
                f"images must have the shape (examples, {_SIDE}, {_SIDE}), got {pixels.shape}"
            )
        if pixels.dtype != np.uint8 and pixels.dtype.kind != "f":
            raise InvalidTypeError(
                f"images must be uint8, or floating-point numbers from 0 to 1, got {pixels.dtype}"
            )
        if classes.dtype.kind not in "iu" and classes.size:
            raise InvalidTypeError(f"labels must be whole numbers, got {classes.dtype}")
        if classes.shape != pixels.shape[:1]:
            raise InvalidValueError(
                f"labels must be one for each of {len(pixels)} images, got the shape "
                f"{classes.shape}"
            )
        wrong = (classes < 0) | (classes >= self._classes)
        _arguments.refuse_entries("labels", classes, wrong, f"from 0 to {self._classes - 1}")
        return pixels, classes.astype(np.int32)

    def __repr__(self) -> str:
        """Show what it was made with."""
        return f"ConvolutionalNetwork(classes={self._classes}, seed={self._seed})"


def _padded(array: Array, length: int) -> Array:
    """Add zeros, and make pixels numbers from 0 to 1."""
    kind = np.int32 if array.dtype == np.int32 else np.float32
    result = np.zeros((length, *array.shape[1:]), kind)
    result[: len(array)] = array
    if array.dtype == np.uint8:
        result /= np.float32(255.0)
    return result


class _Functions(NamedTuple):
    """What is compiled, once a process: for a batch of examples, one result for each."""

    gradients: Any
    losses: Any
    correct: Any


@functools.cache
def _compiled() -> _Functions:
    jax = require("jax", "jax")
    numbers = require("jax.numpy", "jax")

    def convolution(values: Any, weights: Any, bias: Any, layer: tuple[int, ...]) -> Any:
        # As a product with the patches: gradients of each example are several times faster on
        # processors than those of the library's convolution.
        side, stride, padding, _ = layer
        # Slices of columns, then of rows: a graph that compiles in a fraction of the time.
        values = numbers.pad(values, ((padding, padding), (padding, padding), (0, 0)))
        places = (values.shape[0] - side) // stride + 1
        starts = [slice(at, at + stride * (places - 1) + 1, stride) for at in range(side)]
        columns = numbers.concatenate([values[:, chosen] for chosen in starts], axis=-1)
        patches = numbers.concatenate([columns[chosen] for chosen in starts], axis=-1)
        found = patches.reshape(places * places, -1) @ weights + bias
        found = jax.nn.relu(found).reshape(places, places, -1)
        rows = numbers.maximum(found[:-1], found[1:])
        return numbers.maximum(rows[:, :-1], rows[:, 1:])

    def outputs(parameters: Any, image: Any) -> Any:
        values = image[:, :, None]
        for name, layer in (("conv1", _FIRST), ("conv2", _SECOND)):
            weights, bias = parameters[f"{name}_weights"], parameters[f"{name}_bias"]
            values = convolution(values, weights, bias, layer)
        hidden = values.reshape(-1) @ parameters["dense1_weights"] + parameters["dense1_bias"]
        return jax.nn.relu(hidden) @ parameters["dense2_weights"] + parameters["dense2_bias"]

    def loss(parameters: Any, image: Any, label: Any) -> Any:
        return -jax.nn.log_softmax(outputs(parameters, image))[label]

    def correct(parameters: Any, image: Any, label: Any) -> Any:
        return numbers.argmax(outputs(parameters, image)) == label

    def each(function: Any) -> Any:
        return jax.jit(jax.vmap(function, in_axes=(None, 0, 0)))

    return _Functions(each(jax.grad(loss)), each(loss), each(correct))
