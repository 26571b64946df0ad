"""Compute gradients of single examples with JAX (extra ``jax``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidValueError

__all__ = ["gradients"]

#: The smallest batch that is compiled for; others have twice, four times, ... as many examples.
_LEAST = 16


def gradients(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function for the gradient of each example, by ``vmap`` of ``grad``.

    Parameters
    ----------
    loss
        A function of the parameters, in arrays nested in any way, and the arrays of one example. It
        computes the loss of that example, a number, with JAX.

    Returns
    -------
    callable
        A function of the parameters, and of the examples of a batch as arrays with one more axis in
        front. It returns arrays with that axis in front, nested like the parameters: the form that
        :class:`~turnout.federated.InProcessEngine` and :class:`~turnout.federated.Client` take.
        They are arrays of JAX, which may still be computed, or of NumPy if examples were added.

    Raises
    ------
    InvalidTypeError
        If ``loss`` is not a function.
    MissingExtraError
        If JAX is not installed.

    Notes
    -----
    JAX compiles a function once for each shape, and the number of sampled elements differs from
    round to round. Batches are filled up to 16, 32, 64, ... examples with copies of their own
    examples, whose gradients are then left out.

    JAX raises no error for an index out of range: it takes the nearest one. So a label that does
    not exist counts as the last one. Check labels where the data are read.

    An added example may change the last bits of the gradients of others: see ``batch_slack`` of
    :class:`~turnout.federated.RandomParticipationSGD` and :func:`~turnout.federated.one_at_a_time`.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> def loss(parameters, x, y):
    ...     return (x @ parameters["weights"] + parameters["bias"] - y) ** 2 / 2
    >>> per_example = tn.federated.jax.gradients(loss)
    >>> parameters = {"weights": np.ones(2, np.float32), "bias": np.zeros((), np.float32)}
    >>> x, y = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.zeros(3, np.float32)
    >>> found = per_example(parameters, x, y)
    >>> found["weights"].tolist(), found["bias"].tolist()
    ([[3.0, 6.0], [21.0, 28.0], [55.0, 66.0]], [3.0, 7.0, 11.0])
    """
    if not callable(loss):
        raise _arguments.mistyped("loss must be a function of parameters and an example", loss)
    jax = require("jax", "jax")

    def one(parameters: Any, example: tuple[Any, ...]) -> Any:
        return loss(parameters, *example)

    compiled = jax.jit(jax.vmap(jax.grad(one), in_axes=(None, 0)))

    def per_example(parameters: Any, *batch: Any) -> Any:
        arrays = [np.asarray(part) for part in batch]
        sizes = {part.shape[:1] for part in arrays}
        if len(sizes) != 1 or sizes <= {(), (0,)}:
            raise InvalidValueError(
                "batch must be arrays with the same number of examples in front, at least one, got "
                f"arrays of the shapes {[part.shape for part in arrays]}"
            )
        count = arrays[0].shape[0]
        size = max(_LEAST, 1 << (count - 1).bit_length())
        # Every row is that of an example: made-up numbers might be outside of what the loss takes.
        rows = np.arange(size) % count
        found = compiled(parameters, tuple(part[rows] for part in arrays))
        if size == count:
            return found
        return jax.tree.map(lambda part: np.asarray(part)[:count], found)

    return per_example
