"""Gradients of single examples with PyTorch (extra ``torch``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Array
from turnout.errors import InvalidValueError

__all__ = ["gradients", "set_state_dict", "state_dict"]

#: Modules whose result for an example depends on the others of its batch.
_OVER_BATCHES = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


def gradients(module: Any, loss: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the gradient of each example through a module, by ``torch.func``.

    Parameters
    ----------
    module
        A ``torch.nn.Module``. It is called with a batch of one example; its parameters are not
        changed and are not those that are used.
    loss
        Takes the output for such a batch and the target, and gives the loss, a number:
        ``torch.nn.functional.cross_entropy``, for example.

    Returns
    -------
    callable
        Takes parameters, as :func:`state_dict` gives them, and the inputs and targets of a batch,
        tensors or arrays with one more axis in front. It gives a dictionary
        with the same names, of tensors with that axis in front: what
        :class:`~turnout.federated.InProcessEngine` and :class:`~turnout.federated.Client` take.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``module`` is no module, ``loss`` is no function, or the module normalises over the
        batch, so that the gradient of an example would depend on others.
    MissingExtraError
        If PyTorch is not installed.

    Notes
    -----
    Parameters that do not require a gradient, and buffers, are those of the module. Dropout draws
    for each example by itself.

    An example that is added may change the last bits of the gradients of others: see
    ``batch_slack`` of :class:`~turnout.federated.RandomParticipationSGD` and
    :func:`~turnout.federated.one_at_a_time`.

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
    over_batches = tuple(getattr(torch.nn, name) for name in _OVER_BATCHES)
    for name, part in module.named_modules():
        if isinstance(part, over_batches):
            raise InvalidValueError(
                "module must not normalise over the batch, since the gradient of an example would "
                f"depend on others (take GroupNorm), got {type(part).__name__} at {name!r}"
            )

    def one(parameters: Any, example: Any, target: Any) -> Any:
        output = torch.func.functional_call(module, parameters, (example[None],))
        return loss(output, target[None])

    # Of dropout every example has its own draw.
    several = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0), randomness="different")

    def per_example(parameters: Mapping[str, Any], inputs: Any, targets: Any) -> Any:
        given = {name: _tensor(torch, value) for name, value in parameters.items()}
        _check_names(module, given)
        return several(given, _tensor(torch, inputs), _tensor(torch, targets))

    return per_example


def state_dict(module: Any) -> dict[str, Array]:
    """Give the parameters of a module that are trained, as arrays: a model to start from.

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
    InvalidTypeError
        If ``module`` is no module.
    MissingExtraError
        If PyTorch is not installed.
    """
    _check_module(_torch(), module)
    return {
        name: np.array(value.detach().cpu().numpy()) for name, value in _trained(module).items()
    }


def set_state_dict(module: Any, parameters: Mapping[str, Any]) -> None:
    """Put a trained model into a module.

    Parameters
    ----------
    module
        The ``torch.nn.Module`` that :func:`state_dict` was called with, or another of its kind.
    parameters
        The model, such as :meth:`turnout.federated.InProcessEngine.run` gives it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``module`` is no module, or names or shapes are not those of its parameters. Nothing has
        changed.
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = _torch()
    _check_module(torch, module)
    given = {name: _tensor(torch, value) for name, value in parameters.items()}
    _check_names(module, given)
    with torch.no_grad():
        for name, value in _trained(module).items():
            value.copy_(given[name])


def _torch() -> Any:
    return require("torch", "torch")


def _tensor(torch: Any, value: Any) -> Any:
    """Make a tensor of an array, without a copy where both may be written to."""
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        value = value.copy()
    return torch.as_tensor(value)


def _check_module(torch: Any, module: Any) -> None:
    _arguments.instance("module", module, torch.nn.Module, "a torch.nn.Module")


def _trained(module: Any) -> dict[str, Any]:
    """Give the parameters that require a gradient; of shared ones the first name."""
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _check_names(module: Any, given: Mapping[str, Any]) -> None:
    """Refuse parameters that are not those of the module."""
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
