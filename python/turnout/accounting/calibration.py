"""Calibration of parameters to a target, rounded to the safe side."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

from turnout import _arguments
from turnout._search import WIDTH, least_at_most
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import WHOLE, nonnegative, unit_interval
from turnout.errors import InvalidValueError

#: The relative width of the last bracket where each try composes many rounds.
_WIDTH_COMPOSED = 1e-6

#: The names that a parameter of noise has.
_NOISE = ("noise_multiplier", "scale", "mean", "variance", "parameter")

#: How often a rate is halved at most.
_RAREST = 1000.0

#: The smallest noise that is tried.
_LEAST_NOISE = 2.0**-40


def calibrate(
    mechanism: Mechanism,
    parameter: str,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    adjacency: str | None = None,
) -> float | int:
    """Find the value of one parameter at which a mechanism just reaches a target.

    It is the least noise, the smallest floor or number of nodes, the largest rate, local size or
    number of rounds. The value is at the safe end of the search's last bracket, and is checked once
    more.

    Parameters
    ----------
    mechanism
        The mechanism; its own value of the parameter does not matter.
    parameter
        One of ``mechanism._calibrated``, or ``"rounds"``.
    epsilon
        The target, finite and at least 0.
    delta
        The target, in [0, 1].
    rounds
        The number of times that the mechanism is used; ignored if it is calibrated.
    adjacency
        The neighbouring data sets; the mechanism's default if None.

    Returns
    -------
    float or int
        The value; an int for numbers of rounds, people, records and slots. Its relative distance
        from the best value is at most 1e-12 for one round, and at most 1e-6 for more.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range, the mechanism does not have the parameter, or no value
        reaches the target.

    Examples
    --------
    >>> from turnout.accounting import CountSampling, RandomParticipation
    >>> round(calibrate(CountSampling(rate=0.5, floor=100), "rate", epsilon=1.0, delta=1e-5), 3)
    0.743
    >>> training = RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=2.0)
    >>> calibrate(training, "rounds", epsilon=0.1, delta=1e-5) > 10
    True
    """
    _arguments.instance("mechanism", mechanism, Mechanism, "a mechanism of turnout.accounting")
    known = (*mechanism._calibrated, "rounds")
    _arguments.choice("parameter", parameter, known)
    target_epsilon = float(nonnegative("epsilon", _arguments.number("epsilon", epsilon)))
    target = float(unit_interval("delta", _arguments.number("delta", delta)))
    times = _arguments.integer("rounds", rounds, least=1, most=WHOLE["rounds"][1])
    word = mechanism._adjacency_of(adjacency)

    def spent(value: Any) -> float:
        if parameter == "rounds":
            return mechanism.compose(value, word).delta(target_epsilon)
        changed = mechanism.replace(**{parameter: value})
        if times == 1:
            return changed.delta(target_epsilon, word)
        return changed.compose(times, word).delta(target_epsilon)

    protects = parameter != "rounds" and mechanism._calibrated[parameter]
    width = WIDTH if times == 1 else _WIDTH_COMPOSED
    found: float | int | None
    if parameter in WHOLE:
        least = 1 if parameter in ("rounds", "nodes", "threshold", "slots") else 0
        between = mechanism._whole_range(parameter) or (least, WHOLE[parameter][1])
        found = _whole(spent, target, *between, protects)
    elif parameter in _NOISE:
        most = mechanism._largest_noise
        found = least_at_most(spent, target, least=_LEAST_NOISE, most=most, width=width)
    elif spent(1.0) <= target:
        found = 1.0
    else:
        # Small rates are found as exactly as large ones by their logarithms.
        halvings = least_at_most(
            lambda times: spent(0.5**times), target, most=_RAREST, width=width / _RAREST
        )
        found = 0.5**halvings or None
    if found is None or math.isinf(found) or spent(found) > target:
        raise InvalidValueError(
            f"no {parameter} reaches epsilon = {target_epsilon} at delta = {target} with "
            f"{mechanism!r}" + (f" over {times} rounds" if times > 1 else "")
        )
    return found


def calibrate_noise(
    mechanism: Mechanism,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    *,
    adjacency: str | None = None,
) -> float:
    """Find the least noise at which a mechanism reaches a target.

    Parameters
    ----------
    mechanism
        A mechanism with noise; its own noise does not matter.
    epsilon, delta, rounds, adjacency
        As for :func:`calibrate`.

    Returns
    -------
    float
        The noise multiplier, scale or mean, rounded up.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range, the mechanism has no noise, or no noise reaches the target.

    Examples
    --------
    >>> from turnout.accounting import RandomParticipation
    >>> training = RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=1.0)
    >>> round(calibrate_noise(training, epsilon=0.015, delta=1e-6), 5)
    2.37328
    """
    _arguments.instance("mechanism", mechanism, Mechanism, "a mechanism of turnout.accounting")
    for parameter in _NOISE:
        if parameter in mechanism._calibrated:
            return float(
                calibrate(mechanism, parameter, epsilon, delta, rounds, adjacency=adjacency)
            )
    raise _arguments.mistyped("mechanism must have noise to calibrate", mechanism)


def _whole(
    spent: Callable[[int], float], target: float, least: int, most: int, protects: bool
) -> int | None:
    def good(value: int) -> bool:
        return spent(value) <= target

    first = least
    if protects and good(first):
        return first
    if not protects and not good(first):
        return None
    # From here on `first` is on one side and `other` on the other.
    step = max(1, first)
    other = first + step
    while good(min(other, most)) != protects:
        if other >= most:
            return None if protects else most
        first, step = other, 2 * step
        other += step
    other = min(other, most)
    between = range(first + 1, other)
    last = first + bisect.bisect_left(between, True, key=lambda value: good(value) == protects)
    return last + 1 if protects else last
