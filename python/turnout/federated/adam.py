"""Adam and AdamW, optimizers with a step size of its own for each number of the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError
from turnout.federated.optimizers import (
    Optimizer,
    Schedule,
    checked_rate,
    described,
    rate_of,
    refuse_misfits,
)


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2015), as in PyTorch.

    Running means of the gradient and of its square give the step, ``rate * mean / (sqrt(square) +
    eps)``, after the correction for their start at 0.

    Parameters
    ----------
    learning_rate
        A finite number above 0, or a :class:`Schedule`.
    beta1, beta2
        The share of the running mean of the gradient, and of its square, that stays in each round;
        at least 0 and below 1.
    eps
        A number to add to the denominator, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    The square of a private gradient includes the variance of the noise. Where the noise is larger
    than the gradient, it decides the size of the step. The size is then about the same for every
    number of the model.

    Rounds that were given up make no step and do not count in the correction.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = Adam(0.1)
    >>> model, state = np.array([1.0, -1.0]), optimizer.initial_state(2)
    >>> for number in range(3):
    ...     model, state = optimizer.step(model, 2 * model, state, number)
    >>> model.round(3)
    array([ 0.702, -0.702])
    """

    #: The learning rate, the same in every round or a schedule.
    learning_rate: float | Schedule
    #: How much of the mean of the gradient stays.
    beta1: float = 0.9
    #: How much of the mean of its square stays.
    beta2: float = 0.999
    #: What is added to the denominator.
    eps: float = 1e-8

    def __post_init__(self) -> None:
        settle(
            self,
            learning_rate=checked_rate(self.learning_rate),
            beta1=_share("beta1", self.beta1),
            beta2=_share("beta2", self.beta2),
            eps=positive("eps", self.eps),
        )

    def initial_state(self, parameters: int) -> list[Array]:
        """Return the two means before the first round, zeros, and the number of steps so far.

        Parameters
        ----------
        parameters
            The number of numbers in the model.

        Returns
        -------
        list of numpy.ndarray
            Two arrays of float64, and one of int64 that holds one number.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``parameters`` is not an integer of at least 0.
        """
        size = _arguments.integer("parameters", parameters, least=0)
        return [np.zeros(size), np.zeros(size), np.zeros(1, np.int64)]

    def step(
        self,
        parameters: Floats,
        gradient: Floats,
        state: Sequence[Array],
        round: int,  # noqa: A002
    ) -> tuple[Floats, list[Array]]:
        """Return the model and the state after a step.

        Parameters
        ----------
        parameters, gradient
            The model and its gradient, of shape (parameters,) and float64.
        state
            The state from the last step, or from :meth:`initial_state`.
        round
            The number of the round, from 0, for the schedule.

        Returns
        -------
        tuple
            The new model and the new state, in arrays of their own.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the shapes of the arrays differ, or the schedule does not return a rate of at least
            0.
        """
        refuse_misfits(parameters, gradient, state, [parameters.shape] * 2 + [(1,)])
        rate = rate_of(self.learning_rate, round)
        steps = int(state[2][0]) + 1
        mean = self.beta1 * state[0] + (1.0 - self.beta1) * gradient
        square = self.beta2 * state[1] + (1.0 - self.beta2) * gradient**2
        # 1 - beta^steps, exact where beta is near 1.
        size = np.sqrt(square / _corrected(self.beta2, steps)) + self.eps
        direction = mean / _corrected(self.beta1, steps) / size
        moved = self._decayed(parameters, rate) - rate * direction
        return moved, [mean, square, np.array([steps], np.int64)]

    def _decayed(self, parameters: Floats, rate: float) -> Floats:
        """Return the model that the step is subtracted from."""
        return parameters

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the optimizer."""
        return described("optimizer", self)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov, Hutter, 2019), as in PyTorch.

    In each round the model shrinks by ``rate * weight_decay`` of itself, in addition to the step of
    :class:`Adam`. The decay does not pass through the running means.

    Parameters
    ----------
    learning_rate, beta1, beta2, eps
        As for :class:`Adam`.
    weight_decay
        At least 0 and finite.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> optimizer = AdamW(0.1, weight_decay=0.5)
    >>> model, state = optimizer.step(np.ones(1), np.zeros(1), optimizer.initial_state(1), 0)
    >>> model
    array([0.95])
    """

    #: What share of the model a rate of 1 takes away in a round.
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        decay = _arguments.number("weight_decay", self.weight_decay)
        if not 0.0 <= decay < math.inf:
            raise _arguments.invalid("weight_decay must be finite and at least 0", decay)
        settle(self, weight_decay=decay)

    def _decayed(self, parameters: Floats, rate: float) -> Floats:
        return parameters - rate * self.weight_decay * parameters


def _share(argument: str, value: float) -> float:
    share = _arguments.number(argument, value)
    if not 0.0 <= share < 1.0:
        raise InvalidValueError(f"{argument} must be at least 0 and below 1, got {value}")
    return share


def _corrected(beta: float, steps: int) -> float:
    return 1.0 if beta == 0.0 else -math.expm1(steps * math.log(beta))
