"""Clip and add up the gradients of single examples under a plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array, Truths
from turnout.errors import InvalidValueError
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.trees import Structure, example_parts, flatten

_MOST_PARAMETERS = 2**40

#: Numbers of several clients' gradients that the core clips in one call, on the calling thread.
_TOGETHER = 1 << 15

#: What the numbers of a sum may reach.
_ROOM = 2.0**61

_LOG = logging.getLogger(__name__)


def zeros(plan: RandomParticipationSGD, parameters: int) -> Array:
    """Return the sum of no gradients, and of no votes where the clip moves."""
    length = parameters + (plan.adaptive_clipping is not None)
    return np.zeros(length, np.int64 if plan.grid is not None else np.float64)


def add_gradients(
    plan: RandomParticipationSGD,
    gradients: Any,
    examples: Sequence[int],
    structure: Structure,
    clip: float,
) -> tuple[Array, int]:
    """Clip the gradient of each example and add all up, in steps of the grid if there is one.

    Where a client is the unit, the mean of a client's gradients is clipped instead.

    Under a plan with noise an example whose gradient is not finite counts as zero. If it were
    refused, the error or the missing update would reveal that the example exists, and no noise
    hides that.

    Parameters
    ----------
    plan
        The public parameters.
    gradients
        One gradient for each example, see :meth:`turnout.federated.Client.update`.
    examples
        The number of sampled elements of each client. For one client as the unit, any number of
        gradients above 0 is accepted.
    structure
        The form of the model's parameters.
    clip
        The clip of the round.

    Returns
    -------
    tuple of numpy.ndarray and int
        The sum: int64 in steps of the grid, or float64, one number for each parameter, and one for
        the votes where the clip moves. Then the number of finite gradients, or means, which is as
        private as they are.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If gradients have a wrong shape or dtype; without noise also if they are not finite.
    """
    if not any(examples):
        return zeros(plan, structure.total), 0
    return _add_rows(plan, clipped_rows(plan, gradients, examples, structure), clip)


class Gathering:
    """Clip and add up the gradients of several clients in one call, which saves time.

    Use it only with a grid: there a sum is the same, bit for bit, for every grouping.

    Parameters
    ----------
    plan
        The public parameters, with a grid.
    clip
        The clip of the round.
    parameters
        The number of numbers in the model.
    """

    def __init__(self, plan: RandomParticipationSGD, clip: float, parameters: int) -> None:
        self._plan, self._clip = plan, clip
        self._kept: list[list[Array]] = []
        self._longest = _longest(plan, clip)
        self._most = self._room = _TOGETHER // parameters
        self._sum = zeros(plan, parameters)
        self._finite = self._rows = 0

    def take(self, parts: list[Array]) -> Iterator[tuple[Array, int]]:
        """Add up the rows of a client, and yield the sum so far if 64 bits might not hold more.

        Parameters
        ----------
        parts
            The result of :func:`clipped_rows`. Few rows are copied and added later.

        Yields
        ------
        tuple of numpy.ndarray and int
            A sum and its number of finite rows, as :func:`add_gradients` returns them.
        """
        rows = parts[0].shape[0]
        if rows > self._room or (self._kept and len(self._kept[0]) != len(parts)):
            self._add_kept()
        if (self._rows + rows) * self._longest > _ROOM:
            yield from self.rest()
        self._rows += rows
        if rows > self._room:
            self._add(parts)
        else:
            self._kept.append([part.copy() for part in parts])
            self._room -= rows

    def rest(self) -> Iterator[tuple[Array, int]]:
        """Yield the sum of the rows that were not yet in a sum, if there are any."""
        self._add_kept()
        if self._rows:
            yield self._sum, self._finite
            self._sum = np.zeros_like(self._sum)
            self._finite = self._rows = 0

    def _add_kept(self) -> None:
        kept, self._kept, self._room = self._kept, [], self._most
        if not kept:
            return
        try:
            # The core rounds products of float32 to float32: rows of other types do not join them.
            columns = [np.concatenate(column, casting="no") for column in zip(*kept, strict=True)]
        except TypeError:
            for parts in kept:
                self._add(parts)
        else:
            self._add(columns)

    def _add(self, parts: list[Array]) -> None:
        values, finite = _add_rows(self._plan, parts, self._clip)
        self._sum += values
        self._finite += finite


def fits(plan: RandomParticipationSGD, clip: float, rows: int) -> bool:
    """Return whether 64 bits hold the sum of so many clipped rows and their votes."""
    return rows * _longest(plan, clip) <= _ROOM


def _longest(plan: RandomParticipationSGD, clip: float) -> float:
    """Return the largest integer of a row or its vote; 0 without a grid."""
    grid = plan._grid_at(clip)
    if grid is None:
        return 0.0
    return max(grid.radius, 0.0 if plan._votes is None else plan._votes.longest)


def _add_rows(plan: RandomParticipationSGD, parts: list[Array], clip: float) -> tuple[Array, int]:
    """Clip rows and add them up; rows that are not finite count as zero."""
    try:
        return _clipped_sum(plan, parts, clip), parts[0].shape[0]
    except InvalidValueError:
        finite = finite_rows(parts)
        if plan.mechanism is None or finite.all():
            raise
    _LOG.warning("gradients of sampled elements are not finite: they count as zero")
    return _clipped_sum(plan, [part[finite] for part in parts], clip), int(finite.sum())


def round_clip(plan: RandomParticipationSGD, clip: float | None) -> float:
    """Check the clip of a round from the server: it is None unless the plan lets the clip move.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the plan cannot lead to this clip.
    """
    if plan.adaptive_clipping is not None:
        if clip is None:
            raise InvalidValueError(
                "clip must be the clip of the round, from the server (Server.clip), under a plan "
                "with adaptive_clipping, got None"
            )
        return plan.adaptive_clipping._checked(clip, plan.clip)
    if clip is not None and clip != plan.clip:
        raise _arguments.invalid(f"clip must be None or {plan.clip:g}, the clip of the plan", clip)
    return plan.clip


def clipped_rows(
    plan: RandomParticipationSGD, gradients: Any, examples: Sequence[int], structure: Structure
) -> list[Array]:
    """Check gradients, and return a row for each element or client that is clipped as a whole."""
    counts = [count for count in examples if count > 0]
    any_number = plan.unit == "client" and len(counts) == 1
    parts = _parts_of(gradients, None if any_number else sum(counts), structure)
    if plan.unit == "element":
        return parts
    return _means(parts, [parts[0].shape[0]] if any_number else counts)


def check_trial(gradients: Any, examples: int | None, structure: Structure) -> None:
    """Check gradients that were computed before anything is spent.

    Parameters
    ----------
    gradients
        The result of a function of gradients, for elements that are public or stay with the caller.
    examples
        The expected number of gradients; None for any number above 0.
    structure
        The form of the model's parameters.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the gradients have a wrong shape or dtype, or none of them is finite.
    """
    parts = _parts_of(gradients, examples, structure)
    if not finite_rows(parts).any():
        raise InvalidValueError(
            "gradients must be finite numbers, got NaN or infinity in the gradient of every trial "
            "element: nothing was spent. Look for a logarithm or a division of 0 in the loss, or "
            "for data that are NaN"
        )


def first_usable(found: Iterable[tuple[Any, int | None]], structure: Structure) -> Any:
    """Return the first gradients with a finite one, or zeros if there are none.

    Parameters
    ----------
    found
        Gradients, and how many they should be, as for :func:`check_trial`.
    structure
        The form of the model's parameters.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        The first error of :func:`check_trial`, if all gradients have one.
    """
    wrong: InvalidValueError | None = None
    for gradients, examples in found:
        try:
            check_trial(gradients, examples, structure)
        except InvalidValueError as error:
            wrong = wrong or error
        else:
            return gradients
    if wrong is not None:
        raise wrong
    return np.zeros((1, structure.total))


def _parts_of(gradients: Any, examples: int | None, structure: Structure) -> list[Array]:
    parts = example_parts(gradients, structure)
    if examples is not None and parts[0].shape[0] != examples:
        raise InvalidValueError(
            f"gradients must hold one gradient for each of the {examples} elements, got "
            f"{parts[0].shape[0]} (neither their mean, nor a change by local_steps, unless the "
            "plan has unit='client')"
        )
    if parts[0].shape[0] == 0:
        raise InvalidValueError("gradients must hold at least one gradient, got none")
    return parts


def _means(parts: list[Array], counts: Sequence[int]) -> list[Array]:
    """Return the mean of each client's rows, computed from these rows alone."""
    ends = np.cumsum(counts).tolist()
    rows = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):
        return [np.stack([part[row].mean(axis=0, dtype=float) for row in rows]) for part in parts]


def finite_rows(parts: list[Array]) -> Truths:
    """Return for each example whether all numbers of its gradient are finite."""
    found: Truths = np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in parts])
    return found


def _clipped_sum(plan: RandomParticipationSGD, parts: list[Array], clip: float) -> Array:
    grid = plan._grid_at(clip)
    total: Array
    if grid is not None:
        total = _core.clip_to_grid(parts, clip, grid.step)
    else:
        total = _core.clip_and_sum(parts, clip)
    if plan._votes is None:
        return total
    return np.append(total, np.array(plan._votes.count(parts, clip)).astype(total.dtype))


def structure_of(parameters: Any) -> Structure:
    """Return the structure of a model, from a tree of its parameters or from their number."""
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
    """Return a function that computes the gradient of each element alone, in a batch of one.

    In a larger batch, another element that is added or left out may change the bits of an element's
    gradient: matrices are then multiplied in other blocks. Then one element changes the sum by more
    than its own gradient. :class:`~turnout.federated.grid.Grid` and the accounting assume that it
    does not. In a batch of one it cannot. Batches of one give up the speed of larger ones;
    ``RandomParticipationSGD(batch_slack=...)`` covers the changes in a batch by noise instead.

    Parameters
    ----------
    gradients
        A function whose last argument is the indices of elements, as
        :meth:`turnout.federated.Client.answer` and :class:`~turnout.federated.InProcessEngine` call
        it. It must not keep anything from one call to the next.

    Returns
    -------
    callable
        A function with the same arguments that computes the same gradients one by one. An argument
        before the elements with one number for each of them (the clients of ``batched=True``) is
        split in the same way.

    Raises
    ------
    InvalidTypeError
        If ``gradients`` is not a function.

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
    """Return whether an argument has a whole number for each element."""
    return (
        isinstance(argument, np.ndarray)
        and argument.dtype.kind in "iu"
        and argument.shape == (count,)
    )
