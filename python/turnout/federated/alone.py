"""Gradients that do not depend on the batch they are computed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from turnout import _arguments
from turnout.errors import InvalidValueError
from turnout.federated.trees import flatten


def one_at_a_time(gradients: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the gradient of each element alone, in a batch of one.

    In a larger batch the gradient of an element may come out in other bits where another one is
    added or left out: matrices are multiplied in other blocks. Then one element changes the sum by
    more than its own gradient, which :class:`~turnout.federated.Grid` and the accounting suppose it
    does not. Alone it cannot. This costs the speed of batches;
    ``RandomParticipationSGD(batch_slack=...)`` covers what a batch changes by noise instead.

    Parameters
    ----------
    gradients
        A function whose last argument is the indices of elements, as
        :meth:`turnout.federated.Client.answer` and :class:`~turnout.federated.InProcessEngine`
        call it. It must not keep anything between its calls.

    Returns
    -------
    callable
        Takes the same arguments, and gives the same gradients one by one. An argument before the
        elements that has one number for each of them (the clients of ``batched=True``) is divided
        in the same way.

    Raises
    ------
    InvalidTypeError
        If ``gradients`` is no function.

    Examples
    --------
    >>> data = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> alone = one_at_a_time(lambda elements: data[elements])
    >>> alone(np.array([1, 0]))
    array([[3., 4.],
           [1., 2.]])
    """
    if not callable(gradients):
        raise _arguments.mistyped("gradients must be a function", gradients)

    def alone(*arguments: Any) -> Any:
        *before, elements = arguments
        found = []
        structure = None
        for place in range(len(elements)):
            row = slice(place, place + 1)
            given = [each[row] if _divided(each, len(elements)) else each for each in before]
            leaves, structure = flatten(gradients(*given, elements[row]))
            if any(leaf.shape[:1] != (1,) for leaf in leaves):
                raise _arguments.invalid(
                    "gradients must hold one gradient for the one element that is given", structure
                )
            # A function may fill one buffer again and again.
            found.append([np.array(leaf) for leaf in leaves])
        if structure is None:
            raise InvalidValueError("elements must hold at least one index, got none")
        return structure.unflatten([np.concatenate(column) for column in zip(*found, strict=True)])

    return alone


def _divided(argument: Any, count: int) -> bool:
    """Say whether an argument has a whole number for each element."""
    return (
        isinstance(argument, np.ndarray)
        and argument.dtype.kind in "iu"
        and argument.shape == (count,)
    )
