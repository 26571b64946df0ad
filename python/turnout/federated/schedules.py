"""Learning rates that depend on the round."""

from __future__ import annotations

import abc
import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout._values import settle
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError

_MOST_ROUNDS = 10**9


class Schedule(abc.ABC):
    """A learning rate that depends on the round.

    Derive a frozen dataclass from it to have another one: it needs :meth:`__call__`, and
    :meth:`to_dict` takes its fields if they are numbers, texts or schedules.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from turnout.federated.optimizers import SGD
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
class Constant(Schedule):
    """The same rate in every round.

    Parameters
    ----------
    value
        A finite number above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is none.

    Examples
    --------
    >>> Constant(0.1)(1000)
    0.1
    """

    value: float

    def __post_init__(self) -> None:
        settle(self, value=positive("value", self.value))

    def __call__(self, round: int) -> float:  # noqa: A002
        """Give the learning rate of a round, which counts from 0."""
        return self.value


@dataclass(frozen=True)
class StepDecay(Schedule):
    """A rate that is multiplied by a factor after every so many rounds.

    Parameters
    ----------
    initial
        The rate of the first rounds, finite and above 0.
    every
        After how many rounds it changes, at least 1.
    factor
        By how much, above 0 and at most 1.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> schedule = StepDecay(0.4, every=10, factor=0.5)
    >>> [schedule(round) for round in (0, 9, 10, 20)]
    [0.4, 0.4, 0.2, 0.1]
    """

    initial: float
    every: int
    factor: float

    def __post_init__(self) -> None:
        initial, every = positive("initial", self.initial), _rounds("every", self.every)
        factor = _arguments.number("factor", self.factor)
        if not 0.0 < factor <= 1.0:
            raise InvalidValueError(f"factor must be above 0 and at most 1, got {factor}")
        settle(self, initial=initial, every=every, factor=factor)

    def __call__(self, round: int) -> float:  # noqa: A002
        """Give the learning rate of a round, which counts from 0."""
        return self.initial * self.factor ** (round // self.every)


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
        initial, rounds = positive("initial", self.initial), _rounds("rounds", self.rounds)
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
    """A rate that rises in equal steps to the first one of another schedule, which then begins.

    Parameters
    ----------
    rounds
        How many rounds come before the other schedule, at least 1. The first of them has the part
        1 / (rounds + 1) of its rate: none is spent on a rate of 0.
    then
        The schedule that follows.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> schedule = Warmup(3, then=StepDecay(0.4, every=10, factor=0.5))
    >>> [round(schedule(number), 2) for number in (0, 1, 2, 3, 12, 13)]
    [0.1, 0.2, 0.3, 0.4, 0.4, 0.2]
    """

    rounds: int
    then: Schedule

    def __post_init__(self) -> None:
        settle(self, rounds=_rounds("rounds", self.rounds))
        _arguments.instance("then", self.then, Schedule, "a schedule such as Constant(0.1)")

    def __call__(self, round: int) -> float:  # noqa: A002
        """Give the learning rate of a round, which counts from 0."""
        if round < self.rounds:
            return self.then(0) * (round + 1) / (self.rounds + 1)
        return self.then(round - self.rounds)


def described(word: str, made: Any) -> dict[str, Any]:
    """Describe a frozen dataclass in terms of JSON: its type under a word, and its fields.

    Examples
    --------
    >>> described("schedule", Warmup(5, Constant(0.1)))
    {'schedule': 'Warmup', 'rounds': 5, 'then': {'schedule': 'Constant', 'value': 0.1}}
    """
    members: dict[str, Any] = {word: type(made).__name__}
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        members[field.name] = value.to_dict() if isinstance(value, Schedule) else value
    return members


def _rounds(argument: str, value: object) -> int:
    return _arguments.integer(argument, value, least=1, most=_MOST_ROUNDS)


def schedule_of(argument: str, value: object) -> Schedule:
    """Return a schedule, or a constant one of a number."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, (bool, str)) or not hasattr(type(value), "__float__"):
        raise _arguments.mistyped(
            f"{argument} must be a number or a schedule such as CosineDecay(0.1, 1000)", value
        )
    return Constant(positive(argument, value))
