"""Gradients of single examples, and the sums of clipped ones under a plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Truths
from turnout.errors import InvalidValueError
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.trees import Structure, example_parts, flatten

_MOST_PARAMETERS = 2**40

_LOG = logging.getLogger(__name__)


def zeros(plan: RandomParticipationSGD, parameters: int) -> Array:
    """Give the sum of no gradients."""
    return np.zeros(parameters, np.int64 if plan.grid is not None else np.float64)


def add_gradients(
    plan: RandomParticipationSGD, gradients: Any, examples: Sequence[int], structure: Structure
) -> tuple[Array, int]:
    """Clip each example's gradient, add all up: in steps of the grid if there is one.

    Where a client is the unit, the mean of a client's gradients is what is clipped.

    Under a plan with noise an example whose gradient is not finite counts as zero. Were it refused,
    the error or the missing update would show that the example is there, which no noise hides.

    Parameters
    ----------
    plan
        The public parameters.
    gradients
        One gradient for each example, see :meth:`turnout.federated.Client.update`.
    examples
        How many elements of each client were sampled. Of one client as the unit any number of
        gradients above 0 is taken.
    structure
        The form of the model's parameters.

    Returns
    -------
    tuple of numpy.ndarray and int
        The sum, int64 in steps of the grid, or float64, one number for each parameter; and how many
        of the gradients, or means, are finite, which is as private as they are.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If gradients have another shape or dtype; without noise also if they are not finite.
    """
    counts = [count for count in examples if count > 0]
    if not counts:
        return zeros(plan, structure.total), 0
    any_number = plan.unit == "client" and len(counts) == 1
    parts = _parts_of(gradients, None if any_number else sum(counts), structure)
    if plan.unit == "client":
        parts = _means(parts, [parts[0].shape[0]] if any_number else counts)
    try:
        return _clipped_sum(plan, parts), parts[0].shape[0]
    except InvalidValueError:
        finite = _finite(parts)
        if plan.mechanism is None or finite.all():
            raise
    _LOG.warning("gradients of sampled elements are not finite: they count as zero")
    return _clipped_sum(plan, [part[finite] for part in parts]), int(finite.sum())


def check_trial(gradients: Any, examples: int | None, structure: Structure) -> None:
    """Check gradients that were computed before anything is spent.

    Parameters
    ----------
    gradients
        What a function of gradients gave, of elements that are public or stay with the caller.
    examples
        How many there must be; None for any number above 0.
    structure
        The form of the model's parameters.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they have another shape or dtype, or none of them is finite.
    """
    parts = _parts_of(gradients, examples, structure)
    if not _finite(parts).any():
        raise InvalidValueError(
            "gradients must be finite numbers, got NaN or infinity in the gradient of every trial "
            "element: nothing was spent. Look for a logarithm or a division of 0 in the loss, or "
            "for data that are NaN"
        )


def _parts_of(gradients: Any, examples: int | None, structure: Structure) -> list[Array]:
    parts = example_parts(gradients, structure)
    if examples is not None and parts[0].shape[0] != examples:
        raise InvalidValueError(
            f"gradients must hold one gradient for each of the {examples} sampled elements, got "
            f"{parts[0].shape[0]}"
        )
    if parts[0].shape[0] == 0:
        raise InvalidValueError("gradients must hold that of at least one element, got none")
    return parts


def _means(parts: list[Array], counts: Sequence[int]) -> list[Array]:
    """Give the mean of each client's rows. It is computed from its own rows alone."""
    ends = np.cumsum(counts).tolist()
    rows = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):
        return [np.stack([part[row].mean(axis=0, dtype=float) for row in rows]) for part in parts]


def _finite(parts: list[Array]) -> Truths:
    """Say of each example whether all numbers of its gradient are finite."""
    found: Truths = np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in parts])
    return found


def _clipped_sum(plan: RandomParticipationSGD, parts: list[Array]) -> Array:
    if plan.grid is not None:
        return _core.clip_to_grid(parts, plan.clip, plan.grid.step)
    return _core.clip_and_sum(parts, plan.clip)


def structure_of(parameters: Any) -> Structure:
    """Give the form of a model: of a tree of its parameters, or of so many in one array."""
    if isinstance(parameters, Structure):
        structure = parameters
    elif isinstance(parameters, (int, np.integer)):
        count = _arguments.integer("parameters", parameters, least=1, most=_MOST_PARAMETERS)
        structure = flatten(np.broadcast_to(0.0, (count,)))[1]
    else:
        structure = flatten(parameters)[1]
    if structure.total == 0:
        raise InvalidValueError("parameters must hold at least one number, got none")
    return structure


def one_at_a_time(gradients: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the gradient of each element alone, in a batch of one.

    In a larger batch the gradient of an element may come out in other bits where another one is
    added or left out: matrices are multiplied in other blocks. Then one element changes the sum by
    more than its own gradient, which :class:`~turnout.federated.grid.Grid` and the accounting
    suppose it does not. Alone it cannot. This costs the speed of batches;
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
