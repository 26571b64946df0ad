"""What a server makes of a gradient: a step of the parameters, at a rate that a schedule gives.

Whatever an optimizer does with a private gradient is post-processing and costs no privacy.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.errors import InvalidValueError
from turnout.federated.schedules import Schedule, described, schedule_of


class Optimizer(abc.ABC):
    """What makes a step of a gradient.

    Derive from it to have another one. An optimizer holds its public parameters and nothing else:
    what changes from round to round is its *state*, a list of arrays that the server keeps, writes
    to checkpoints bit for bit, and hands back. Methods must be pure: they change none of their
    arguments and give the same result for the same ones.

    Examples
    --------
    Adam (Kingma, Ba, 2015), whose denominator the noise of private gradients dominates:

    >>> import numpy as np
    >>> class Adam(Optimizer):
    ...     def __init__(self, learning_rate):
    ...         self.learning_rate = learning_rate
    ...
    ...     def initial_state(self, parameters):
    ...         return [np.zeros(parameters), np.zeros(parameters)]
    ...
    ...     def step(self, parameters, gradient, state, round):
    ...         mean = 0.9 * state[0] + 0.1 * gradient
    ...         square = 0.999 * state[1] + 0.001 * gradient**2
    ...         direction = mean / (1 - 0.9 ** (round + 1))
    ...         size = np.sqrt(square / (1 - 0.999 ** (round + 1))) + 1e-8
    ...         return parameters - self.learning_rate * direction / size, [mean, square]
    ...
    ...     def to_dict(self):
    ...         return {"optimizer": "Adam", "learning_rate": self.learning_rate}
    >>> adam = Adam(0.1)
    >>> model, state = np.array([1.0, -1.0]), adam.initial_state(2)
    >>> for number in range(3):
    ...     model, state = adam.step(model, 2 * model, state, number)
    >>> model.round(3)
    array([ 0.702, -0.702])
    """

    @abc.abstractmethod
    def initial_state(self, parameters: int) -> list[Array]:
        """Give the state before the first round.

        Parameters
        ----------
        parameters
            How many numbers the model has.

        Returns
        -------
        list of numpy.ndarray
            Of any shapes, of integers or floating-point numbers; empty if there is no state.
        """

    @abc.abstractmethod
    def step(
        self,
        parameters: Floats,
        gradient: Floats,
        state: Sequence[Array],
        round: int,  # noqa: A002
    ) -> tuple[Floats, list[Array]]:
        """Make a step.

        Parameters
        ----------
        parameters
            The model, of shape (parameters,) and float64.
        gradient
            The estimate of the gradient of the average loss, of the same shape and dtype.
        state
            What the last step gave, or :meth:`initial_state`.
        round
            The number of the round, from 0.

        Returns
        -------
        tuple
            The new model and the new state, which share no memory with the arguments that either
            side would change.
        """

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Describe the optimizer in terms of JSON.

        A checkpoint is taken up only by an optimizer with the same description.
        """


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, with or without momentum.

    With momentum m the velocity of a round is v = m v + g, and the parameters move by -rate * v, or
    by -rate * (g + m v) if it is Nesterov's, as in PyTorch. The rate is not part of the velocity.

    Parameters
    ----------
    learning_rate
        A finite number above 0, or a :class:`Schedule`.
    momentum
        At least 0 and below 1.
    nesterov
        Whether to look ahead (Nesterov 1983; Sutskever and others, 2013); needs momentum.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import CosineDecay
    >>> optimizer = SGD(0.5, momentum=0.5)
    >>> model, state = np.array([1.0]), optimizer.initial_state(1)
    >>> for number in range(2):
    ...     model, state = optimizer.step(model, np.array([1.0]), state, number)
    >>> model
    array([-0.25])
    >>> SGD(CosineDecay(0.4, rounds=100)).to_dict()["learning_rate"]
    {'schedule': 'CosineDecay', 'initial': 0.4, 'rounds': 100, 'final': 0.0}
    """

    #: The learning rate; of a number a :class:`Constant`.
    learning_rate: float | Schedule
    #: How much of the velocity stays.
    momentum: float = 0.0
    #: Whether the step looks ahead.
    nesterov: bool = False

    def __post_init__(self) -> None:
        rate = schedule_of("learning_rate", self.learning_rate)
        stays = _arguments.number("momentum", self.momentum)
        if not 0.0 <= stays < 1.0:
            raise InvalidValueError(f"momentum must be at least 0 and below 1, got {self.momentum}")
        _arguments.instance("nesterov", self.nesterov, bool, "True or False")
        if self.nesterov and stays == 0.0:
            raise InvalidValueError("nesterov must be False without momentum, got True")
        settle(self, learning_rate=rate, momentum=stays)

    def initial_state(self, parameters: int) -> list[Array]:
        """Give the velocity before the first round: zeros, or no array without momentum.

        Parameters
        ----------
        parameters
            How many numbers the model has.

        Returns
        -------
        list of numpy.ndarray
            One array of float64, or none.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``parameters`` is no integer of at least 0.
        """
        size = _arguments.integer("parameters", parameters, least=0)
        return [] if self.momentum == 0.0 else [np.zeros(size)]

    def step(
        self,
        parameters: Floats,
        gradient: Floats,
        state: Sequence[Array],
        round: int,  # noqa: A002
    ) -> tuple[Floats, list[Array]]:
        """Make a step.

        Parameters
        ----------
        parameters, gradient
            The model and its gradient, of shape (parameters,) and float64.
        state
            What the last step gave, or :meth:`initial_state`.
        round
            The number of the round, from 0.

        Returns
        -------
        tuple
            The new model and the new state, in arrays of their own.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the arrays do not fit each other, or the schedule gives no rate of at least 0.
        """
        expected = [parameters.shape] * (self.momentum > 0.0)
        if gradient.shape != parameters.shape or [part.shape for part in state] != expected:
            raise InvalidValueError(
                f"gradient and state must have the shape of parameters, {parameters.shape}, and "
                f"state {len(expected)} array(s), got {gradient.shape} and "
                f"{[part.shape for part in state]}"
            )
        number = _arguments.integer("round", round, least=0)
        schedule = schedule_of("learning_rate", self.learning_rate)
        rate = _arguments.number("learning_rate", schedule(number))
        if not 0.0 <= rate < math.inf:
            raise InvalidValueError(
                f"learning_rate must give finite numbers of at least 0, got {rate} in round "
                f"{number}"
            )
        if self.momentum == 0.0:
            return parameters - rate * gradient, []
        velocity = self.momentum * state[0] + gradient
        direction = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameters - rate * direction, [velocity]

    def to_dict(self) -> dict[str, Any]:
        """Describe the optimizer in terms of JSON."""
        return described("optimizer", self)
