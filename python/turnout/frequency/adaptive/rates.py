"""Participation rates that are larger for rare answers, and what two rounds cost with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._rounding import rounded_up
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.projection import PROJECTIONS


def rates_for_rare(
    frequencies: Any, *, rate: float, low: float, high: float, power: float = 1.0
) -> Floats:
    """Give each answer a rate in inverse proportion to its frequency, within limits.

    ``pi_x = clip(s / f_x^power, low, high)`` with the ``s`` for which ``sum f_x pi_x = rate``, so
    that the expected share of nodes that report is ``rate`` if the frequencies are true.

    Parameters
    ----------
    frequencies
        One estimated frequency for each answer; made a distribution by ``"norm_sub"``.
    rate
        The share of nodes that shall report, from ``low`` to ``high``.
    low, high
        The limits of the rates, in (0, 1].
    power
        How strongly the rates follow the frequencies: 1 for inverse proportion, 0 for one rate.

    Returns
    -------
    numpy.ndarray
        One rate for each answer, float64.

    Raises
    ------
    InvalidValueError
        If the limits or the rate are not in order, or the power is negative.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> rates_for_rare([0.8, 0.16, 0.04], rate=0.1, low=0.05, high=0.5).round(4)
    array([0.05, 0.25, 0.5 ])
    """
    least = _arguments.probability("low", low)
    most = _arguments.probability("high", high)
    target = _arguments.probability("rate", rate)
    if not least <= target <= most:
        raise InvalidValueError(
            f"rate must be from low = {least} to high = {most}, got {target}: no rates within "
            "these limits have that mean"
        )
    exponent = _arguments.number("power", power)
    if not 0.0 <= exponent < np.inf:
        raise InvalidValueError(f"power must be at least 0 and finite, got {exponent}")
    given = np.asarray(frequencies, dtype=np.float64)
    given = _arguments.frequencies("frequencies", frequencies, given.size)
    shares = PROJECTIONS["norm_sub"](given)
    if exponent == 0.0:
        return np.full(shares.size, target)
    # In logarithms, from the rarest answer on: s / f^power overflows for frequencies near 0.
    with np.errstate(divide="ignore"):
        weights = -exponent * np.log(shares)
    some = np.isfinite(weights)
    start = np.log(least) - weights[some].max() - 1.0
    stop = np.log(most) - weights[some].min() + 1.0

    def rates(shift: float) -> Floats:
        clipped = np.clip(weights + shift, np.log(least), np.log(most))
        result: Floats = np.clip(np.exp(clipped), least, most)
        return result

    for _ in range(100):
        middle = 0.5 * (start + stop)
        if float(shares @ rates(middle)) < target:
            start = middle
        else:
            stop = middle
    return rates(start)


@dataclass(frozen=True)
class Spending:
    """The budget that two rounds really spend, in nats; every number is rounded up.

    Attributes
    ----------
    first
        The realised epsilon of a report of the first round.
    randomizer
        The realised epsilon of the oracle of the second round.
    report
        The largest log-likelihood ratio of a report of the second round: for visible participation
        ``randomizer + ln(max pi / min pi)``.
    silence
        The same of sending nothing: ``ln((1 - min pi) / (1 - max pi))``; 0 if everyone sends.
    once
        Whether a node reports in one round at most.
    """

    first: float
    randomizer: float
    report: float
    silence: float
    once: bool

    @property
    def second(self) -> float:
        """What the second round spends: the larger of :attr:`report` and :attr:`silence`."""
        return max(self.report, self.silence)

    @property
    def total(self) -> float:
        """The larger of the rounds if a node reports in one of them at most, else their sum."""
        if self.once:
            return max(self.first, self.second)
        return rounded_up(Fraction(self.first) + Fraction(self.second))

    def __str__(self) -> str:
        """Say how the total comes about."""
        rule = "the larger, as nobody reports twice" if self.once else "the sum, of the same people"
        return (
            f"{self.total:.6g}: {self.first:.6g} in the first round and {self.second:.6g} in the "
            f"second (a report {self.report:.6g}, of which the randomizer {self.randomizer:.6g}; "
            f"silence {self.silence:.6g}); {rule}"
        )


def second_round_ratios(ratio: Fraction, rates: npt.ArrayLike) -> tuple[Fraction, Fraction]:
    """Compute the likelihood ratios of what a node lets see in the second round, exactly.

    Parameters
    ----------
    ratio
        The largest likelihood ratio of a report of the randomizer under two answers.
    rates
        The probability of taking part for each answer, in (0, 1].

    Returns
    -------
    tuple of Fraction
        The largest ratio of a report, and of silence.

    Raises
    ------
    InvalidValueError
        If some answers are always reported and others are not: then silence excludes the former,
        and no epsilon bounds that.

    Notes
    -----
    A report y has probability ``pi_x P(y | x)``, silence ``1 - pi_x``. The largest ratios
    are ``(max pi / min pi) ratio`` and ``(1 - min pi) / (1 - max pi)``; either may be the larger.

    Examples
    --------
    >>> report, silence = second_round_ratios(Fraction(3), [0.25, 0.5])
    >>> report, silence
    (Fraction(6, 1), Fraction(3, 2))
    """
    array = np.asarray(rates, dtype=np.float64)
    least, most = Fraction(float(array.min())), Fraction(float(array.max()))
    if most == 1 and least < 1:
        raise InvalidValueError(
            f"rates must all be below 1, got {float(least)} and 1.0 "
            "beside each other: who stays silent cannot hold the answer with rate 1"
        )
    silence = Fraction(1) if most == least else (1 - least) / (1 - most)
    return most / least * ratio, silence
