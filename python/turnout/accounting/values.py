"""The values of mechanisms: numbers, divergences, outcomes, adjacencies."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats, Truths
from turnout.errors import InvalidValueError

#: The directions that an adjacency consists of; each is a pair of laws and its reverse.
_DIRECTIONS = {
    "remove": (("remove", "add"),),
    "add": (("add", "remove"),),
    "add_or_remove": (("remove", "add"), ("add", "remove")),
    "replace": (("replace", "replace"),),
}


class Bracket(tuple[float, float]):
    """A lower and an upper value, and the data that reach the lower one.

    It is a pair, which you can unpack.

    Examples
    --------
    >>> low, high = Bracket(0.1, 0.2, "a client")
    >>> low, high
    (0.1, 0.2)
    """

    #: In words, the data whose loss is at least the lower value; empty where none is known.
    reached: str
    #: Whether the upper value is that of what is named, but for rounding and the grid.
    exact: bool

    def __new__(cls, low: float, high: float, reached: str = "", exact: bool = False) -> Bracket:
        """Create the pair with its other values."""
        bounds = super().__new__(cls, (low, high))
        bounds.reached, bounds.exact = reached, exact
        return bounds

    def __getnewargs__(self) -> tuple[float, float, str, bool]:
        """Return the arguments of the constructor, for pickles."""
        return self[0], self[1], self.reached, self.exact

    @property
    def low(self) -> float:
        """The lower value, which some data reach."""
        return self[0]

    @property
    def high(self) -> float:
        """The upper value, which is guaranteed."""
        return self[1]


class Reached(NamedTuple):
    """A lower value, the data that reach it, and whether it is exact up to rounding."""

    value: float
    name: str
    exact: bool


#: Deltas below this are no longer known to so many digits.
_RAREST = 1e-290


def surely(upper: float, slack: float, name: str) -> Reached:
    """Return the lower value of an upper one that exceeds the exact one by at most a slack."""
    if 0.0 < upper < _RAREST:
        return Reached(0.0, "", False)
    return Reached(upper * (1.0 - slack), name, True)


class Divergence(NamedTuple):
    """The hockey-stick divergence of a pair of laws at some epsilons."""

    #: Upper bounds of delta.
    delta: Floats
    #: The probability under the first law that the privacy loss exceeds epsilon.
    first: Floats
    #: The same under the second law.
    second: Floats


def smaller(one: Divergence, two: Divergence) -> Divergence:
    """Return the smaller delta at each epsilon, with its masses."""
    return _picked(one.delta < two.delta, one, two)


def larger(one: Divergence, two: Divergence) -> Divergence:
    """Return the larger delta at each epsilon, with its masses."""
    return _picked(two.delta > one.delta, two, one)


def _picked(better: Truths, new: Divergence, known: Divergence) -> Divergence:
    return Divergence(
        *(np.where(better, one, other) for one, other in zip(new, known, strict=True))
    )


class Asked(dict[str, Divergence]):
    """Divergences that are computed on demand.

    Examples
    --------
    >>> Asked(lambda direction: Divergence(*np.ones((3, 1))))["add"].delta
    array([1.])
    """

    def __init__(self, tail: Callable[[str], Divergence]) -> None:
        super().__init__()
        self._tail = tail

    def __missing__(self, direction: str) -> Divergence:
        return self._tail(direction)


def divergences(columns: Floats, *ways: str) -> dict[str, Divergence]:
    """Split the result of the core: three columns for each direction."""
    found = [*columns.T]
    return {way: Divergence(*found[3 * at : 3 * at + 3]) for at, way in enumerate(ways)}


class Outcomes(NamedTuple):
    """Outcomes by descending privacy loss, with the masses of both laws up to each."""

    loss: Floats
    first: Floats
    second: Floats

    def beyond(self, epsilon: Floats) -> tuple[Floats, Floats]:
        """Return the masses under both laws of the outcomes with a larger loss."""
        count = np.searchsorted(-self.loss, -epsilon, side="left")
        return self.first[count], self.second[count]

    def _tail(self, epsilon: Floats, slack: float, least: float = 0.0) -> Divergence:
        """Bound the divergence from below: subtract what rounding may have added to the first law.

        A slack is relative to the mass of the event; ``least`` is subtracted from delta itself.
        """
        one, other = self.beyond(epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            paid = np.where(other > 0.0, np.exp(epsilon) * other, 0.0)
        return Divergence(np.clip(one * (1.0 - slack) - paid - least, 0.0, 1.0), one, other)


def by_loss(one: Floats, two: Floats) -> Outcomes:
    """Sort outcomes by their loss, from their masses under both laws.

    Examples
    --------
    >>> seen = by_loss(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    >>> seen._tail(np.zeros(1), 0.0).delta
    array([0.25])
    """
    seen = one > 0.0
    one, two = one[seen], two[seen]
    with np.errstate(divide="ignore"):
        loss = np.log(one) - np.log(two)
    order = np.argsort(-loss, kind="stable")
    first, second = (np.append(0.0, np.cumsum(masses[order])) for masses in (one, two))
    return Outcomes(loss[order], first, second)


def directions(word: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of directions of an adjacency."""
    return _DIRECTIONS[word]


def positive(argument: str, value: object) -> float:
    """Return a finite number above 0."""
    result = _arguments.number(argument, value)
    if not 0.0 < result < math.inf:
        raise _arguments.invalid(f"{argument} must be a finite number above 0", value)
    return result


def positive_up_to(argument: str, value: object, largest: float) -> float:
    """Return a number from 1e-100 to a largest value."""
    result = _arguments.number(argument, value)
    if not 1e-100 <= result <= largest:
        raise _arguments.invalid(f"{argument} must be from 1e-100 to {largest:g}", value)
    return result


def rate(argument: str, value: object) -> float:
    """Return a probability that may be zero."""
    result = _arguments.number(argument, value)
    if not 0.0 <= result <= 1.0:
        raise _arguments.invalid(f"{argument} must be a probability in [0, 1]", value)
    return result


def numbers(argument: str, value: npt.ArrayLike) -> Floats:
    """Return an array of numbers of any shape, as float64."""
    if not isinstance(value, (np.ndarray, list, tuple)):
        return np.asarray(_arguments.number(argument, value))
    try:
        array = np.asarray(value)
    except Exception as error:
        raise _arguments.mistyped(
            f"{argument} must be a number or an array of numbers", value
        ) from error
    if array.dtype.kind not in "iuf":
        raise _arguments.mistyped(f"{argument} must be a number or an array of numbers", value)
    return array.astype(np.float64)


def nonnegative(argument: str, value: npt.ArrayLike) -> Floats:
    """Return finite numbers of at least 0."""
    return _checked(argument, numbers(argument, value), sys.float_info.max, "finite")


def unit_interval(argument: str, value: npt.ArrayLike) -> Floats:
    """Return numbers in [0, 1]."""
    return _checked(argument, numbers(argument, value), 1.0, "at most 1")


def target_delta(value: Any, people: int = 1) -> float:
    """Return a delta that a release may aim at: at least 0, and below one over the people.

    Examples
    --------
    >>> target_delta(1e-6, 1000)
    1e-06
    """
    delta = _arguments.number("delta", value)
    if not 0.0 <= delta < 1.0:
        raise _arguments.invalid("delta must be a number of at least 0 and below 1", value)
    if delta * people >= 1.0:
        raise InvalidValueError(
            f"delta must be below 1 over the number of people, {1 / people:.3g}, got {delta!r}: "
            "publishing one person's answer meets such a delta. Pass a much smaller one, such as "
            f"{people**-2:.0e}"
        )
    return delta


#: Parameters that are whole numbers, with the least and the largest of each.
WHOLE = {
    "local_size": (0, 10**10), "floor": (0, 10_000_000), "dummies": (0, 10_000_000),
    "nodes": (1, 10**10), "rounds": (1, 10**9), "threshold": (1, 100_000), "slots": (1, 10**6),
    "batches": (1, 10**6), "batch_size": (1, 10**10), "records": (2, 10**10),
}  # fmt: skip

#: The largest number of rounds.
MOST_ROUNDS = WHOLE["rounds"][1]

_CHECKS = {
    "client_rate": rate, "sample_rate": rate, "rate": rate, "noise_multiplier": positive,
}  # fmt: skip


def checked(name: str, value: Any) -> Any:
    """Check a parameter of a mechanism by its name; return unknown ones unchanged.

    Examples
    --------
    >>> checked("noise_multiplier", 1), checked("floor", 3)
    (1.0, 3)
    """
    if name in WHOLE:
        least, most = WHOLE[name]
        return _arguments.integer(name, value, least=least, most=most)
    check = _CHECKS.get(name)
    return value if check is None else check(name, value)


def _checked(argument: str, array: Floats, most: float, expected: str) -> Floats:
    if array.ndim == 0:
        # NumPy would take as long for a single number as the core for a whole round.
        wrong = [] if 0.0 <= array.item() <= most else [array.item()]
    else:
        wrong = array[~((array >= 0.0) & (array <= most))].tolist()
    if wrong:
        raise InvalidValueError(
            f"{argument} must be a number of at least 0 and {expected}, got {wrong[0]}"
        )
    return array


def shaped(values: Floats, like: Floats) -> Floats | float:
    """Return values in the shape of an argument; a float for a scalar."""
    return float(values[0]) if like.ndim == 0 else values.reshape(like.shape)
