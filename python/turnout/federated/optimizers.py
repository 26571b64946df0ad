"""What a server makes of a gradient: a step of the parameters, at a rate that a schedule gives.

Whatever an optimizer does with a private gradient is post-processing and costs no privacy.
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

    Derive a frozen dataclass from it to have another one: it needs :meth:`__call__`, and
    :meth:`to_dict` takes its fields if they are numbers, texts or schedules.

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
        """Give the learning rate of a round, which counts from 0."""

    def to_dict(self) -> dict[str, Any]:
        """Describe the schedule in terms of JSON."""
        return described("schedule", self)


@dataclass(frozen=True)
class CosineDecay(Schedule):
    """A rate that falls along half a wave of a cosine (Loshchilov, Hutter, "SGDR", 2017).

    Parameters
    ----------
    initial
        The rate of round 0, finite and above 0.
    rounds
        In how many rounds it falls, at least 1.
    final
        The rate from there on, from 0 to ``initial``.

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
        """Give the learning rate of a round, which counts from 0."""
        if round >= self.rounds:
            return self.final
        share = 0.5 * (1.0 + math.cos(math.pi * round / self.rounds))
        return self.final + (self.initial - self.final) * share


@dataclass(frozen=True)
class Warmup(Schedule):
    """A rate that rises evenly for some rounds, and then follows another schedule.

    Parameters
    ----------
    rounds
        In how many rounds it rises, at least 1: round k has ``(k + 1) / (rounds + 1)`` of the rate
        that ``then`` has in its round 0.
    then
        The schedule after that, which counts its rounds from 0; or a number, for a rate that stays.

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
        """Give the learning rate of a round, which counts from 0."""
        if round < self.rounds:
            return rate_of(self.then, 0) * (round + 1) / (self.rounds + 1)
        return rate_of(self.then, round - self.rounds)


class Optimizer(abc.ABC):
    """What makes a step of a gradient.

    Derive from it to have another one. An optimizer holds its public parameters and nothing else:
    what changes from round to round is its *state*, a list of arrays that the server keeps, writes
    to checkpoints bit for bit, and hands back. Methods must be pure: they change none of their
    arguments and give the same result for the same ones.

    Examples
    --------
    Steps whose size does not depend on that of the gradient (Bernstein and others, "signSGD",
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
        refuse_misfits(parameters, gradient, state, [parameters.shape] * (self.momentum > 0.0))
        rate = rate_of(self.learning_rate, round)
        if self.momentum == 0.0:
            return parameters - rate * gradient, []
        velocity = self.momentum * state[0] + gradient
        direction = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameters - rate * direction, [velocity]

    def to_dict(self) -> dict[str, Any]:
        """Describe the optimizer in terms of JSON."""
        return described("optimizer", self)


def checked_rate(rate: Any, argument: str = "learning_rate") -> float | Schedule:
    """Check a learning rate: a number above 0, or a schedule.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is neither.
    """
    expected = "a number or a schedule such as CosineDecay(0.1, 1000)"
    _arguments.instance(argument, rate, (SupportsFloat, Schedule), expected)
    return rate if isinstance(rate, Schedule) else positive(argument, rate)


def rate_of(rate: float | Schedule, round: int) -> float:  # noqa: A002
    """Give the learning rate of a round.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a schedule gives no finite number of at least 0, or the round is no number of a round.
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
    """Refuse a gradient that has another shape than the model, and state of other shapes.

    Raises
    ------
    InvalidValueError
        If a shape is another one; the message names all.
    """
    shapes = [part.shape for part in state]
    if gradient.shape != parameters.shape or shapes != expected:
        raise InvalidValueError(
            f"gradient must have the shape of parameters, {parameters.shape}, and state arrays of "
            f"the shapes {expected}, got {gradient.shape} and {shapes}"
        )


def described(word: str, made: Any) -> dict[str, Any]:
    """Describe a frozen dataclass in terms of JSON: its type under a word, and its fields."""
    members: dict[str, Any] = {word: type(made).__name__}
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        members[field.name] = value.to_dict() if isinstance(value, Schedule) else value
    return members
