"""Compute gradients of single examples with PyTorch (extra ``torch``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Array
from turnout.errors import InvalidTypeError, InvalidValueError

__all__ = ["gradients", "set_state_dict", "state_dict"]

#: Modules that normalise over the batch, unless they use statistics that are fixed.
_OVER_BATCHES = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")

#: Modules that may also gather statistics from batch to batch.
_OVER_EXAMPLES = ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")

_LOG = logging.getLogger(__name__)


def gradients(module: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the gradient of each example through a module, by ``torch.func``.

    Parameters
    ----------
    module
        A ``torch.nn.Module``, on any device. It is called with a batch of one example. Its
        trainable parameters, of float32 or float64, are neither changed nor used.
    loss
        A function of the output for such a batch and the target that returns the loss, a number.
        For example ``torch.nn.functional.cross_entropy``.

    Returns
    -------
    callable
        A function of the parameters, as :func:`state_dict` returns them, and of the inputs and
        targets of a batch: tensors or arrays with one more axis in front. Several inputs of a
        module are a tuple. It returns a dictionary with the same names, of tensors on the CPU with
        that axis in front: the form that :class:`~turnout.federated.InProcessEngine` and
        :class:`~turnout.federated.Client` take.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``module`` is not a module or ``loss`` is not a function, or no parameter requires a
        gradient, or one is of another dtype. Also if the module normalises over the batch: the
        gradient of an example would then depend on others. In eval mode, batch norm uses its
        running statistics, and is accepted.
    MissingExtraError
        If PyTorch is not installed.

    Notes
    -----
    Parameters that do not require a gradient, and buffers, come from the module. Buffers do not
    change.

    Dropout draws for each example separately, from PyTorch's generator. Do not tell anybody a seed
    of it: who knows the draws can see what noise does not cover.

    If ``vmap`` fails for a batch, each example is computed alone, which is slower. The gradient of
    an example that fails alone too (a label that does not exist, a word outside of an embedding) is
    NaN, so it counts as zero, and the others are not lost. A warning is logged. If all examples of
    a batch fail, and no gradient was computed before, the error is that of the first: then the
    module or the loss is wrong, not an example.

    An added example may change the last bits of the gradients of others: see ``batch_slack`` of
    :class:`~turnout.federated.RandomParticipationSGD` and :func:`~turnout.federated.one_at_a_time`.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> import turnout as tn
    >>> module = torch.nn.Linear(64, 10)  # doctest: +SKIP
    >>> per_example = tn.federated.torch.gradients(
    ...     module, torch.nn.functional.cross_entropy
    ... )  # doctest: +SKIP
    >>> found = per_example(
    ...     tn.federated.torch.state_dict(module), torch.zeros(5, 64), torch.arange(5)
    ... )  # doctest: +SKIP
    >>> tuple(found["weight"].shape)  # doctest: +SKIP
    (5, 10, 64)
    """
    torch = _torch()
    _check_module(torch, module)
    if not callable(loss):
        raise _arguments.mistyped("loss must be a function of output and target", loss)
    _refuse_statistics(torch, module)
    device = next(iter(_accepted(torch, module).values())).device

    def one(parameters: Any, example: Any, target: Any) -> Any:
        # Copies of the buffers: what one example writes to them must not reach another.
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        inputs = tuple(part[None] for part in example)
        output = torch.func.functional_call(module, {**buffers, **parameters}, inputs)
        return loss(output, target[None])

    alone = torch.func.grad(one)
    # Of dropout every example has its own draw.
    several = torch.func.vmap(alone, in_dims=(None, 0, 0), randomness="different")
    succeeded = False

    def per_example(parameters: Mapping[str, Any], inputs: Any, targets: Any) -> Any:
        nonlocal succeeded
        _refuse_statistics(torch, module)
        given = {name: value.to(device) for name, value in _tensors(torch, parameters).items()}
        _check_names(module, given)
        parts = inputs if isinstance(inputs, tuple) else (inputs,)
        *examples, target = (_tensor(torch, part).to(device) for part in (*parts, targets))
        count = _count(examples, target)
        try:
            found = several(given, tuple(examples), target)
        except Exception as error:
            rows = (
                (tuple(example[row] for example in examples), target[row]) for row in range(count)
            )
            lost = {name: torch.full_like(value, torch.nan) for name, value in given.items()}
            found = _each(
                torch, lambda row: alone(given, *row), rows, lost, error=error, succeeded=succeeded
            )
        # From now on a batch that fails as a whole has wrong examples: the loss is right.
        succeeded = True
        return {name: value.cpu() for name, value in found.items()}

    return per_example


def _each(
    torch: Any,
    alone: Callable[[Any], Any],
    rows: Any,
    lost: dict[str, Any],
    *,
    error: Exception,
    succeeded: bool,
) -> Any:
    """Compute the gradient of each example alone; that of one that fails is ``lost``."""
    found: list[dict[str, Any]] = []
    failed: list[Exception] = []
    for row in rows:
        try:
            found.append({name: _dense(value) for name, value in alone(row).items()})
        except Exception as reason:
            found.append(lost)
            failed.append(reason)
    if len(failed) == len(found) and not (found and succeeded):
        raise (failed[0] if failed else error) from None
    # Not what the error says, which may show an answer.
    if failed:
        kind = type(failed[0]).__name__
        _LOG.warning("gradients of examples cannot be computed (%s): they count as zero", kind)
    else:
        kind = type(error).__name__
        _LOG.warning("vmap fails (%s): each example is computed alone, more slowly", kind)
    return {name: torch.stack([each[name] for each in found]) for name in lost}


def _dense(value: Any) -> Any:
    return value.to_dense() if value.is_sparse else value


def _count(examples: list[Any], target: Any) -> int:
    """Return the number of examples of a batch, the same in all of its tensors."""
    shapes = [tuple(part.shape) for part in (*examples, target)]
    sizes = {shape[:1] for shape in shapes}
    if len(sizes) != 1 or () in sizes:
        raise InvalidValueError(
            "inputs and targets must have the same number of examples in front (pass several "
            f"inputs as a tuple), got the shapes {shapes}"
        )
    return int(shapes[0][0])


def state_dict(module: Any) -> dict[str, Array]:
    """Return the trainable parameters of a module as arrays: a model to start from.

    Parameters
    ----------
    module
        A ``torch.nn.Module``.

    Returns
    -------
    dict
        A copy of each parameter that requires a gradient, by its name in the module's
        ``state_dict()``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``module`` is not a module, no parameter requires a gradient, or one that does is not of
        float32 or float64.
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = _torch()
    _check_module(torch, module)
    return {
        name: np.array(value.detach().cpu().numpy())
        for name, value in _accepted(torch, module).items()
    }


def set_state_dict(module: Any, parameters: Mapping[str, Any]) -> None:
    """Put a trained model into a module.

    Parameters
    ----------
    module
        The ``torch.nn.Module`` that :func:`state_dict` was called with, or another with the same
        parameters.
    parameters
        The model, such as :meth:`turnout.federated.InProcessEngine.run` returns it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``module`` is not a module, or names or shapes are not those of its parameters. Nothing
        changes.
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = _torch()
    _check_module(torch, module)
    given = _tensors(torch, parameters)
    _check_names(module, given)
    with torch.no_grad():
        for name, value in _trained(module).items():
            value.copy_(given[name])


def _torch() -> Any:
    return require("torch", "torch")


def _tensors(torch: Any, parameters: Any) -> dict[str, Any]:
    expected = "a dictionary of arrays by name, as turnout.federated.torch.state_dict gives it"
    _arguments.instance("parameters", parameters, Mapping, expected, private=True)
    return {name: _tensor(torch, value) for name, value in parameters.items()}


def _tensor(torch: Any, value: Any) -> Any:
    """Convert an array to a tensor, without a copy if both are writable."""
    if isinstance(value, Mapping):
        raise InvalidTypeError(
            "inputs and targets must be tensors or arrays, got a dictionary: pass several inputs "
            "as a tuple, in the order in which the module takes them"
        )
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()
    return torch.as_tensor(value)


def _check_module(torch: Any, module: Any) -> None:
    _arguments.instance("module", module, torch.nn.Module, "a torch.nn.Module")


def _refuse_statistics(torch: Any, module: Any) -> None:
    """Refuse modules in which the result for an example depends on others."""
    over_batches, over_examples = (
        tuple(getattr(torch.nn, name) for name in names)
        for names in (_OVER_BATCHES, _OVER_EXAMPLES)
    )
    for name, part in module.named_modules():
        gathers = isinstance(part, over_examples) and part.training and part.track_running_stats
        uses = isinstance(part, over_batches) and (part.training or part.running_mean is None)
        if gathers or uses:
            raise InvalidValueError(
                "module must not normalise over the batch, since the gradient of an example would "
                "depend on others (take GroupNorm, or call eval() on this part if it has running "
                f"statistics to use), got {type(part).__name__} at {name!r}"
            )


def _accepted(torch: Any, module: Any) -> dict[str, Any]:
    """Return the parameters that require a gradient, of which there must be some."""
    trained = _trained(module)
    if not trained:
        raise InvalidValueError("module must have a parameter that requires a gradient, got none")
    for name, value in trained.items():
        if value.dtype not in (torch.float32, torch.float64):
            raise InvalidTypeError(
                "module must have trainable parameters of float32 or float64, got "
                f"{str(value.dtype).removeprefix('torch.')} at {name!r}: call float() on the "
                "module (torch.autocast still computes in shorter numbers)"
            )
    return trained


def _trained(module: Any) -> dict[str, Any]:
    """Return the parameters that require a gradient, shared ones under their first name."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _check_names(module: Any, given: Mapping[str, Any]) -> None:
    """Refuse parameters that do not match those of the module."""
    expected = {name: tuple(value.shape) for name, value in _trained(module).items()}
    found = {name: tuple(value.shape) for name, value in given.items()}
    if found != expected:
        differ = sorted(
            name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)
        )
        raise InvalidValueError(
            "parameters must have the names and shapes of the module's parameters that require a "
            f"gradient (as turnout.federated.torch.state_dict gives them); {differ[0]!r} must be "
            f"{expected.get(differ[0], 'left out')}, got {found.get(differ[0], 'nothing')}"
        )
