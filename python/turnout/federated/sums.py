"""Sums of clipped gradients, under a plan."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array
from turnout.errors import InvalidValueError
from turnout.federated.plan import TrainingPlan
from turnout.federated.trees import Structure, example_parts, flatten

_MOST_PARAMETERS = 2**40

_LOG = logging.getLogger(__name__)


def zeros(plan: TrainingPlan, parameters: int) -> Array:
    """Give the sum of no gradients."""
    return np.zeros(parameters, np.int64 if plan.grid is not None else np.float64)


def add_gradients(plan: TrainingPlan, gradients: Any, examples: int, structure: Structure) -> Array:
    """Clip each example's gradient, add all up: in steps of the grid if there is one.

    Under a plan with noise an example whose gradient is not finite counts as zero. Were it refused,
    the error or the missing update would show that the example is there, which no noise hides.

    Parameters
    ----------
    plan
        The public parameters.
    gradients
        One gradient for each example, see :meth:`turnout.federated.Client.update`.
    examples
        How many there must be.
    structure
        The form of the model's parameters.

    Returns
    -------
    numpy.ndarray
        int64 in steps of the grid, or float64; one number for each parameter.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If gradients have another shape or dtype; without noise also if they are not finite.
    """
    if examples == 0:
        return zeros(plan, structure.total)
    parts = example_parts(gradients, structure)
    if parts[0].shape[0] != examples:
        raise InvalidValueError(
            f"gradients must hold one gradient for each of the {examples} sampled elements, got "
            f"{parts[0].shape[0]}"
        )
    try:
        return _clipped_sum(plan, parts)
    except InvalidValueError:
        finite = np.logical_and.reduce([np.isfinite(part).all(axis=1) for part in parts])
        if plan.mechanism is None or finite.all():
            raise
    _LOG.warning("gradients of sampled elements are not finite: they count as zero")
    return _clipped_sum(plan, [part[finite] for part in parts])


def _clipped_sum(plan: TrainingPlan, parts: list[Array]) -> Array:
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
