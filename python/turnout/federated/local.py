"""Make several steps on a client in one round: federated averaging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError
from turnout.federated.trees import example_parts, flatten, vector


def local_steps(
    gradients: Callable[..., Any],
    learning_rate: float,
    *,
    epochs: int = 1,
    batch_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that makes several steps on each client: federated averaging.

    Pass the result to an engine in place of ``gradients``, under a plan with ``unit="client"``. The
    update of a client is the total of its steps. It is clipped as a whole, so its steps cost no
    more than one. The update stands in for a gradient. ``SGD(1.0)`` on the server moves the model
    by the mean of the clients' moves (McMahan and others, 2017); any other optimizer works too
    (Reddi and others, 2021).

    Parameters
    ----------
    gradients
        ``gradients(parameters, ..., elements)`` returns a gradient for each of these elements, as
        for :class:`~turnout.federated.InProcessEngine`. A step follows their mean.
    learning_rate
        The rate of the client's steps, finite and above 0.
    epochs
        The number of passes of a client through the elements that it sampled.
    batch_size
        The number of elements in a step, in their order; all of them if None.

    Returns
    -------
    callable
        A function of the same arguments that returns the model at the start minus that at the end,
        as one row.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Under a plan with noise, a client whose steps lead to numbers that are not finite counts as
    zero.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
    >>> data = np.random.default_rng(0).normal(0.3, 0.1, size=(500, 8))
    >>> plan = RandomParticipationSGD(
    ...     0.5, 1.0, clip=0.5, epsilon=1.0, delta=1e-5, rounds=20, unit="client", seed=1
    ... )
    >>> gradients = lambda mean, client, elements: mean - data[client, elements][:, None]
    >>> engine = InProcessEngine(
    ...     plan,
    ...     np.zeros(1),
    ...     local_steps(gradients, 0.2, epochs=2, batch_size=4),
    ...     sizes=8,
    ...     clients=500,
    ...     optimizer=SGD(1.0),
    ... )
    >>> bool(abs(engine.run(20)[0] - 0.3) < 0.05)
    True
    """
    if not callable(gradients):
        raise _arguments.mistyped("gradients must be a function", gradients)
    rate = positive("learning_rate", learning_rate)
    times = _arguments.integer("epochs", epochs, least=1, most=10**6)
    if batch_size is not None:
        batch_size = _arguments.integer("batch_size", batch_size, least=1)

    def moved(parameters: Any, *others: Any) -> Floats:
        *between, elements = others
        if any(isinstance(each, np.ndarray) for each in between):
            raise InvalidValueError(
                "batched must be False with local_steps, which trains one client at a time"
            )
        structure = flatten(parameters)[1]
        start = vector(parameters)
        model = start
        size = batch_size or max(len(elements), 1)
        # What is not finite is the caller's to see: clipping counts it as zero.
        with np.errstate(all="ignore"):
            for first in list(range(0, len(elements), size)) * times:
                batch = elements[first : first + size]
                found = gradients(structure.from_vector(model), *between, batch)
                parts = example_parts(found, structure)
                if parts[0].shape[0] != len(batch):
                    raise InvalidValueError(
                        f"gradients must hold one gradient for each of the {len(batch)} elements "
                        f"of a step, got {parts[0].shape[0]}"
                    )
                mean = np.concatenate([part.mean(axis=0, dtype=float) for part in parts])
                model = model - rate * mean
            return (start - model)[None, :]

    return moved
