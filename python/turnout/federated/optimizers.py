"""Optimizers, which turn a gradient into a step, and schedules of their learning rates.

Anything that an optimizer does with a private gradient is post-processing and costs no privacy.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError


class Schedule(abc.ABC):
    """A learning rate that depends on the round.

    To write a schedule of your own, derive a frozen dataclass and define :meth:`__call__`.
    :meth:`to_dict` describes its fields if they are numbers, texts or schedules.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class InverseSquareRoot(Schedule):
    ...     initial: float
    ...
    ...     def __call__(self, round):
    ...         return self.initial / (round + 1) ** 0.5
    >>> SGD(InverseSquareRoot(0.5)).learning_rate(3)
    0.25
    """

    @abc.abstractmethod
    def __call__(self, round: int) -> float:  # noqa: A002 (the word of plans and updates)
        """Return the learning rate of a round; rounds count from 0."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the schedule."""
        return described("schedule", self)


@dataclass(frozen=True)
class CosineDecay(Schedule):
    """A learning rate that falls along half a cosine wave (Loshchilov, Hutter, "SGDR", 2017).

    Parameters
    ----------
    initial
        The rate of round 0, finite and above 0.
    rounds
        The number of rounds in which it falls, at least 1.
    final
        The rate after these rounds, from 0 to ``initial``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> schedule = CosineDecay(0.4, rounds=100)
    >>> [round(schedule(number), 4) for number in (0, 50, 75, 100, 200)]
    [0.4, 0.2, 0.0586, 0.0, 0.0]
    """

    initial: float
    rounds: int
    final: float = 0.0

    def __post_init__(self) -> None:
        initial = positive("initial", self.initial)
        rounds = _arguments.integer("rounds", self.rounds, least=1, most=10**9)
        final = _arguments.number("final", self.final)
        if not 0.0 <= final <= initial:
            raise InvalidValueError(f"final must be from 0 to initial, got {final}")
        settle(self, initial=initial, rounds=rounds, final=final)

    def __call__(self, round: int) -> float:  # noqa: A002
        """Return the learning rate of a round; rounds count from 0."""
        if round >= self.rounds:
            return self.final
        share = 0.5 * (1.0 + math.cos(math.pi * round / self.rounds))
        return self.final + (self.initial - self.final) * share


@dataclass(frozen=True)
class Warmup(Schedule):
    """A learning rate that rises evenly for some rounds and then follows another schedule.

    Parameters
    ----------
    rounds
        The number of rounds in which it rises, at least 1. Round k has ``(k + 1) / (rounds + 1)``
        of the rate that ``then`` has in its round 0.
    then
        The schedule after these rounds, which counts its own rounds from 0; or a number, for a
        constant rate.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> schedule = Warmup(3, CosineDecay(0.4, rounds=100))
    >>> [round(schedule(number), 4) for number in (0, 1, 2, 3, 53, 103)]
    [0.1, 0.2, 0.3, 0.4, 0.2, 0.0]
    """

    rounds: int
    then: float | Schedule

    def __post_init__(self) -> None:
        rounds = _arguments.integer("rounds", self.rounds, least=1, most=10**9)
        settle(self, rounds=rounds, then=checked_rate(self.then, "then"))

    def __call__(self, round: int) -> float:  # noqa: A002
        """Return the learning rate of a round; rounds count from 0."""
        if round < self.rounds:
            return rate_of(self.then, 0) * (round + 1) / (self.rounds + 1)
        return rate_of(self.then, round - self.rounds)


class Optimizer(abc.ABC):
    """An optimizer: a rule that turns a gradient into a step of the model.

    Derive from it to write an optimizer of your own. An optimizer holds its public parameters and
    nothing else. Everything that changes from round to round is its *state*: a list of arrays that
    the server keeps, writes to checkpoints bit for bit, and passes back. Methods must be pure: they
    do not change their arguments, and return the same result for the same arguments.

    Examples
    --------
    Make steps of the same size for every size of the gradient (Bernstein and others, "signSGD",
    2018):

    >>> import numpy as np
    >>> class SignSGD(Optimizer):
    ...     def __init__(self, learning_rate):
    ...         self.learning_rate = learning_rate
    ...
    ...     def initial_state(self, parameters):
    ...         return []
    ...
    ...     def step(self, parameters, gradient, state, round):
    ...         return parameters - self.learning_rate * np.sign(gradient), []
    ...
    ...     def to_dict(self):
    ...         return {"optimizer": "SignSGD", "learning_rate": self.learning_rate}
    >>> optimizer = SignSGD(0.1)
    >>> model, state = np.array([1.0, -1.0]), optimizer.initial_state(2)
    >>> for number in range(3):
    ...     model, state = optimizer.step(model, 2 * model, state, number)
    >>> model.round(3)
    array([ 0.7, -0.7])
    """

    @abc.abstractmethod
    def initial_state(self, parameters: int) -> list[Array]:
        """Return the state before the first round.

        Parameters
        ----------
        parameters
            The number of numbers in the model.

        Returns
        -------
        list of numpy.ndarray
            Arrays of any shapes, of integers or floating-point numbers. Empty if there is no state.
        """

    @abc.abstractmethod
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
        parameters
            The model, of shape (parameters,) and float64.
        gradient
            The estimate of the gradient of the average loss, of the same shape and dtype.
        state
            The state from the last step, or from :meth:`initial_state`.
        round
            The number of the round, from 0.

        Returns
        -------
        tuple
            The new model and the new state. They share no memory with the arguments that either
            side would change.
        """

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the optimizer.

        A training continues from a checkpoint only if its optimizer has the same description.
        """


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient descent, with or without momentum.

    With momentum m the velocity of a round is v = m v + g. The parameters move by -rate * v, or by
    -rate * (g + m v) with Nesterov momentum, as in PyTorch. The rate is not part of the velocity.

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
    >>> optimizer = SGD(0.5, momentum=0.5)
    >>> model, state = np.array([1.0]), optimizer.initial_state(1)
    >>> for number in range(2):
    ...     model, state = optimizer.step(model, np.array([1.0]), state, number)
    >>> model
    array([-0.25])
    >>> SGD(CosineDecay(0.4, rounds=100)).to_dict()["learning_rate"]
    {'schedule': 'CosineDecay', 'initial': 0.4, 'rounds': 100, 'final': 0.0}
    """

    #: The learning rate, the same in every round or a schedule.
    learning_rate: float | Schedule
    #: How much of the velocity stays.
    momentum: float = 0.0
    #: Whether the step looks ahead.
    nesterov: bool = False

    def __post_init__(self) -> None:
        rate = checked_rate(self.learning_rate)
        stays = _arguments.number("momentum", self.momentum)
        if not 0.0 <= stays < 1.0:
            raise InvalidValueError(f"momentum must be at least 0 and below 1, got {self.momentum}")
        _arguments.instance("nesterov", self.nesterov, bool, "True or False")
        if self.nesterov and stays == 0.0:
            raise InvalidValueError("nesterov must be False without momentum, got True")
        settle(self, learning_rate=rate, momentum=stays)

    def initial_state(self, parameters: int) -> list[Array]:
        """Return the velocity before the first round: zeros, or no array without momentum.

        Parameters
        ----------
        parameters
            The number of numbers in the model.

        Returns
        -------
        list of numpy.ndarray
            One array of float64, or no array.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``parameters`` is not an integer of at least 0.
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
        """Return the model and the state after a step.

        Parameters
        ----------
        parameters, gradient
            The model and its gradient, of shape (parameters,) and float64.
        state
            The state from the last step, or from :meth:`initial_state`.
        round
            The number of the round, from 0.

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
        refuse_misfits(parameters, gradient, state, [parameters.shape] * (self.momentum > 0.0))
        rate = rate_of(self.learning_rate, round)
        if self.momentum == 0.0:
            return parameters - rate * gradient, []
        velocity = self.momentum * state[0] + gradient
        direction = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameters - rate * direction, [velocity]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the optimizer."""
        return described("optimizer", self)


def checked_rate(rate: Any, argument: str = "learning_rate") -> float | Schedule:
    """Check a learning rate: a number above 0, or a schedule.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is neither of them.
    """
    expected = "a number or a schedule such as CosineDecay(0.1, 1000)"
    _arguments.instance(argument, rate, (SupportsFloat, Schedule), expected)
    return rate if isinstance(rate, Schedule) else positive(argument, rate)


def rate_of(rate: float | Schedule, round: int) -> float:  # noqa: A002
    """Return the learning rate of a round.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a schedule does not return a finite number of at least 0, or ``round`` is not the number
        of a round.
    """
    number = _arguments.integer("round", round, least=0)
    if isinstance(rate, Schedule):
        rate = _arguments.number("learning_rate", rate(number))
    if not 0.0 <= rate < math.inf:
        raise InvalidValueError(
            f"learning_rate must give finite numbers of at least 0, got {rate} in round {number}"
        )
    return rate


def refuse_misfits(
    parameters: Floats, gradient: Floats, state: Sequence[Array], expected: list[tuple[int, ...]]
) -> None:
    """Refuse a gradient or a state whose shape is not that of the model.

    Raises
    ------
    InvalidValueError
        If a shape differs; the message names all of them.
    """
    shapes = [part.shape for part in state]
    if gradient.shape != parameters.shape or shapes != expected:
        raise InvalidValueError(
            f"gradient must have the shape of parameters, {parameters.shape}, and state arrays of "
            f"the shapes {expected}, got {gradient.shape} and {shapes}"
        )


def described(word: str, made: Any) -> dict[str, Any]:
    """Return a JSON description of a frozen dataclass: its type under ``word``, and its fields."""
    members: dict[str, Any] = {word: type(made).__name__}
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        members[field.name] = value.to_dict() if isinstance(value, Schedule) else value
    return members
