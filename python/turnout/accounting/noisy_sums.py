"""Sums of people's values with integer noise, where nobody sees who takes part."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import ClassVar, TypeAlias

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.calibration import calibrate
from turnout.accounting.composition import WORST
from turnout.accounting.integer_noise import discrete_gaussian_variance, noise_table
from turnout.accounting.loss_grid import EXACT, Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.shifted_gaussian import ShiftedGaussian
from turnout.accounting.values import Asked, Divergence, Reached, positive_up_to, surely
from turnout.errors import InvalidValueError

Row: TypeAlias = tuple[float, float, float]

#: The words for the noise.
ADDED_NOISES = ("discrete_laplace", "discrete_gaussian")

#: The largest scale of Laplace noise.
_LARGEST_SCALE = 1e12

#: The largest variance of a discrete Gaussian: by the kernel of the core, and where a table of its
#: law is made, of one sum and of two.
_LARGEST_VARIANCE, _LARGEST_ALONE, _LARGEST_PAIR = 1e12, 1e9, 1e8

#: The largest number that a person may give.
_LARGEST_NUMBER = 2**53

#: The unit of rounding.
_UNIT = 2.0**-53

#: Sixty digits: a difference of two numbers near one that are floats apart has more than forty.
_DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])

#: Beyond it an epsilon is taken for this one, which loses as little: its power is a number.
_FARTHEST = Decimal(10) ** 17


@dataclasses.dataclass(frozen=True)
class NoisySums(Mechanism):
    """Publish sums of people's values with integer noise, where nobody sees who takes part.

    Every person takes part with probability ``rate``, unseen: anyone who does not take part sends
    zeros that look like any other message. Independent noise is added to every sum. If several
    parties each add such noise, this is the guarantee as long as one of them is honest, whatever
    the others disclose of their noise.

    Parameters
    ----------
    noise
        ``"discrete_laplace"`` or ``"discrete_gaussian"``.
    parameter
        The parameter of the noise that one honest party adds to every sum, from 1e-100: the scale b
        of discrete Laplace noise, whose ``P[x]`` is proportional to ``exp(-|x| / b)``, up to 1e12;
        or the ``sigma^2`` of a discrete Gaussian, whose ``P[x]`` is proportional to ``exp(-x^2 / (2
        sigma^2))``, up to 1e12, for numbers 1e9, and for votes with a ``rate`` below 1 up to 1e8.
    rate
        The probability that a person takes part, in [0, 1].
    largest
        None if a person gives a vote: one item, or no item; each item has its own sum. Otherwise a
        person gives one whole number, from 0 to this one, and there is one sum.
    none_counted
        Whether "no vote" has its own sum, with noise like the others. People who do not take part
        are counted there, unseen among people who vote for nothing.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    P is the law of the noise, ``P_1`` the same law shifted up by one vote, p the rate and ``alpha =
    e^epsilon``. ``"remove"`` compares ``(1 - p) P + p P_1`` with P, and ``"add"`` the reverse. With
    D the divergence if everyone takes part, their deltas are ``p D(1 + (alpha - 1) / p)`` and ``w
    D(alpha p / w)``, where ``w = 1 - alpha (1 - p)``. So noise with a loss of at most epsilon has a
    loss of ``log(1 + p (e^epsilon - 1))`` if a vote is removed, and a smaller one if a vote is
    added: ``-log(1 + p (e^-epsilon - 1))``.

    ``"replace"`` moves a vote from one item to another. The laws of the two sums are
    ``(1 - p) P x P + p P_1 x P`` and ``(1 - p) P x P + p P x P_1``, and delta is summed over the
    outcomes of both. With discrete Laplace noise the largest loss is the sum of those of removing
    and of adding. A replaced number is easiest to detect if it is the largest one instead of 0.
    Absent people also give 0, so delta is that of ``"remove"``.

    If "no vote" is counted, removing a vote changes two sums: D is that of a replaced vote if
    everyone takes part, and all else is as above. A vote is replaced by another vote or by no vote.
    The latter is easiest to detect, so delta is that of ``"remove"``: moving from one item to
    another has no larger delta for any noise, by the joint convexity of the divergence (Balle,
    Barthe and Gaboardi 2018).

    A row of numbers, one for each of several sums, at ``rate=1`` equals as many releases of one
    number (:meth:`compose`).

    Examples
    --------
    >>> everyone = NoisySums("discrete_laplace", 2.0)
    >>> everyone.epsilon(0.0), everyone.epsilon(0.0, "add_or_remove")
    (1.0, 0.5)
    >>> some = NoisySums("discrete_laplace", 2.0, rate=0.1)
    >>> round(some.epsilon(0.0), 4), round(some.epsilon(0.0, "remove"), 4)
    (0.103, 0.0629)
    >>> ages = NoisySums("discrete_laplace", 120.0, largest=120)
    >>> ages.epsilon(0.0)
    1.0
    >>> counted = some.replace(none_counted=True)
    >>> round(counted.epsilon(0.0), 4)
    0.1586
    """

    noise: str
    parameter: float
    rate: float = 1.0
    largest: int | None = None
    none_counted: bool = False

    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    _calibrated: ClassVar[dict[str, bool]] = {"parameter": True, "rate": False}

    def __post_init__(self) -> None:
        super().__post_init__()
        _arguments.choice("noise", self.noise, ADDED_NOISES)
        if self.largest is not None:
            most = _arguments.integer("largest", self.largest, least=1, most=_LARGEST_NUMBER)
            settle(self, largest=most)
        _arguments.instance("none_counted", self.none_counted, bool, "a bool")
        if self.none_counted and self.largest is not None:
            raise InvalidValueError(
                f"none_counted must be False for numbers, with largest={self.largest}: who gives "
                "nothing gives the number 0"
            )
        parameter = positive_up_to("parameter", self.parameter, self._largest_noise)
        settle(self, parameter=parameter)

    @classmethod
    def _smallest(
        cls,
        epsilon: float,
        delta: float,
        rate: float = 1.0,
        largest: int | None = None,
        *,
        none_counted: bool = False,
        adjacency: str | None = None,
    ) -> NoisySums:
        """Return the noise with the smaller variance that reaches a target.

        Examples
        --------
        >>> NoisySums._smallest(1.0, 1e-6).noise, NoisySums._smallest(0.1, 1e-2).noise
        ('discrete_laplace', 'discrete_gaussian')
        """
        found: list[NoisySums] = []
        for noise in ADDED_NOISES[: 1 if delta == 0.0 else 2]:
            mechanism = cls(noise, 1.0, rate, largest, none_counted)
            # What needs no delta is not worse with one: at least as much is reached.
            try:
                value = calibrate(mechanism, "parameter", epsilon, delta, adjacency=adjacency)
            except InvalidValueError:
                if noise == ADDED_NOISES[-1] and found:
                    continue
                raise
            found.append(mechanism.replace(parameter=value))
        return min(found, key=lambda each: each._variance)

    @property
    def _largest_noise(self) -> float:  # type: ignore[override]
        """The largest parameter."""
        if self._laplace:
            return _LARGEST_SCALE
        if self.largest is not None and self.largest > 1:
            return _LARGEST_ALONE
        single = self.rate == 1.0 or self.largest or self.none_counted
        return _LARGEST_VARIANCE if single else _LARGEST_PAIR

    @property
    def _variance(self) -> float:
        """The variance of one noise in one sum."""
        if self._laplace:
            # Squared piece by piece: of little noise, the square itself is beyond floating point.
            half = math.sinh(min(0.5 / self.parameter, 700.0))
            return 0.5 / half / half
        return discrete_gaussian_variance(self.parameter)

    @property
    def _laplace(self) -> bool:
        return self.noise == ADDED_NOISES[0]

    @property
    def _shift(self) -> int:
        return self.largest or 1

    @property
    def _lattice(self) -> float | None:
        """The number of which all privacy losses are multiples if everyone takes part."""
        if self.rate < 1.0:
            return None
        return (1.0 if self._laplace else 0.5 * self._shift) / self.parameter

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return Asked(lambda direction: self._tail(direction, epsilon))

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        if self.rate == 0.0:
            return Divergence(*np.zeros((3, epsilon.size)))
        if direction == "replace" and (self.largest is not None or self.none_counted):
            direction = "remove"
        if self._laplace:
            law = _Laplace(self.parameter, self._shift, self.rate, none_counted=self.none_counted)
            rows = [law.divergence(direction, float(point)) for point in epsilon]
            return Divergence(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)
        if direction == "replace":
            if self.rate == 1.0:
                return self._kernel(epsilon, 0)
            return _gaussian(self.parameter, 1).moved(epsilon, self.rate)
        return _mixed(self._single, direction, epsilon, self.rate)

    def _single(self, epsilon: Floats) -> Divergence:
        """Evaluate one vote more, or the largest number instead of 0, if everyone takes part."""
        if self.none_counted:
            return self._kernel(epsilon, 0)
        if self._shift == 1:
            return self._kernel(epsilon, 3)
        return _gaussian(self.parameter, self._shift).divergence(epsilon)

    def _kernel(self, epsilon: Floats, start: int) -> Divergence:
        table = noise_table("summed_discrete_gaussian", self.parameter)
        return Divergence(*table.profile(epsilon).T[start : start + 3])

    def _reached(self) -> tuple[Real, ...]:
        """Return the mechanism itself, or the two ends of a value: either may be replaced."""
        if (self.largest is None and not self.none_counted) or self.rate in (0.0, 1.0):
            return (self,)
        return (_Ends(self),)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return delta itself, which is always reached in one release."""
        return surely(float(self.delta(epsilon, word)), EXACT, WORST)


@dataclasses.dataclass(frozen=True)
class _Ends:
    """Data of a person with 0 or no vote, and with the largest number or a vote instead."""

    mechanism: NoisySums

    #: The largest instead of 0 is told by more than 0 instead of the largest.
    replaced: ClassVar[tuple[str, str]] = ("remove", "add")
    attains: ClassVar[tuple[str, ...]] = ("remove", "add")

    @property
    def name(self) -> str:
        """The data in words."""
        if self.mechanism.none_counted:
            return "a person who votes or does not"
        return "a person who gives the largest number or 0"

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        return self.mechanism._tail(direction, epsilon)


@functools.lru_cache(maxsize=8)
def _gaussian(variance: float, shift: int) -> ShiftedGaussian:
    return ShiftedGaussian(variance, shift)


class _Laplace:
    """Closed forms for discrete Laplace noise, evaluated to sixty digits and rounded up."""

    def __init__(self, scale: float, shift: int, rate: float, *, none_counted: bool) -> None:
        self._none_counted = none_counted
        self._each = _DIGITS.divide(Decimal(1), Decimal(scale))
        self._shift = shift
        self._rate = Decimal(rate)
        self._ratio = self._power(1)

    def _power(self, count: Decimal | int) -> Decimal:
        """Return ``e^(-count / scale)``."""
        return _DIGITS.exp(_DIGITS.multiply(self._each, Decimal(-count)))

    def divergence(self, direction: str, epsilon: float) -> Row:
        """Return bounds of the divergence: delta, and both masses."""
        loss = Decimal(epsilon)
        parts = 2 if direction == "replace" or self._none_counted else self._shift
        if loss >= _DIGITS.multiply(self._each, Decimal(parts)):
            return 0.0, 0.0, 0.0
        loss = min(loss, _FARTHEST)
        alpha = _DIGITS.exp(loss)
        masses: tuple[Decimal, Decimal] | None
        if self._none_counted:
            masses = self._counted(direction)
        elif direction == "replace":
            masses = self._moved()
        else:
            masses = self._shifted(direction, alpha, loss)
        if masses is None:
            return 0.0, 0.0, 0.0
        first, second = masses
        delta = _DIGITS.subtract(first, _DIGITS.multiply(alpha, second))
        if delta <= 0:
            return 0.0, 0.0, 0.0
        return min(1.0, math.nextafter(float(delta), 2.0)), float(first), float(second)

    def _moved(self) -> tuple[Decimal, Decimal]:
        """Return the masses of more in one sum and less in the other, the outcomes with a loss."""
        stay, ratio, context = self._stay, self._ratio, _DIGITS
        whole = context.power(context.add(Decimal(1), ratio), 2)
        first = context.fma(ratio, stay, self._rate)
        second = context.multiply(ratio, context.fma(ratio, self._rate, stay))
        return context.divide(first, whole), context.divide(second, whole)

    def _counted(self, direction: str) -> tuple[Decimal, Decimal]:
        """Return the masses of more in one sum and less in the other, if "no vote" has a sum."""
        context, near = _DIGITS, self._power(2)
        whole = context.power(context.add(Decimal(1), self._ratio), 2)
        if direction == "remove":
            # Few have so many of an item, and so few of no vote, without the vote.
            first, second = context.fma(near, self._stay, self._rate), near
        else:
            first, second = Decimal(1), context.fma(near, self._rate, self._stay)
        return context.divide(first, whole), context.divide(second, whole)

    @property
    def _stay(self) -> Decimal:
        return _DIGITS.subtract(Decimal(1), self._rate)

    def _shifted(
        self, direction: str, alpha: Decimal, loss: Decimal
    ) -> tuple[Decimal, Decimal] | None:
        """Return the masses of the event under both laws; None if there is no event."""
        context, rate, stay = _DIGITS, self._rate, self._stay
        if rate != 1:
            # What the shifted noise alone has to lose, for the mixture to lose so much.
            if direction == "remove":
                need = context.add(
                    Decimal(1), context.divide(context.subtract(alpha, Decimal(1)), rate)
                )
            else:
                weight = context.subtract(Decimal(1), context.multiply(alpha, stay))
                if weight <= 0:
                    return None
                need = context.divide(context.multiply(alpha, rate), weight)
            loss = context.ln(need)
        # The noise x loses (2 x - shift) / scale, between both ends.
        middle = context.add(context.divide(loss, self._each), Decimal(self._shift))
        start = int(context.divide(middle, Decimal(2)).to_integral_value("ROUND_FLOOR")) + 1
        if start > self._shift:
            return None
        whole = context.add(Decimal(1), self._ratio)
        near = context.divide(self._power(start), whole)
        missed = context.divide(self._power(self._shift - start + 1), whole)
        far = context.subtract(Decimal(1), missed)
        mixed = context.add(context.multiply(rate, far), context.multiply(stay, near))
        if direction == "remove":
            return mixed, near
        other = context.add(context.multiply(rate, near), context.multiply(stay, far))
        return far, other


def _mixed(
    single: Callable[[Floats], Divergence], direction: str, epsilon: Floats, rate: float
) -> Divergence:
    """Bound the divergence between a law and its mixture with a shifted one, or the reverse.

    Epsilons of the shift alone are rounded down, weights up: both make delta larger.
    """
    if rate == 1.0:
        return single(epsilon)
    if direction == "remove":
        with np.errstate(divide="ignore"):
            odds = epsilon + np.log(-np.expm1(-epsilon)) - math.log(rate)
        size = np.where(np.isfinite(odds), np.abs(odds), 0.0) + epsilon - math.log(rate)
        need = np.logaddexp(0.0, odds)
        known = single(np.maximum(need - 8.0 * _UNIT * (2.0 + size) * np.minimum(need, 1.0), 0.0))
        first = rate * known.first + (1.0 - rate) * known.second
        return Divergence(_up(rate * known.delta), first, known.second)
    gain = (1.0 - rate) * np.expm1(np.minimum(epsilon, 700.0))
    weight = rate - gain + 4.0 * _UNIT * (rate + gain)
    some = weight > 0.0
    share = np.where(some, weight, rate) / rate
    need = (epsilon - np.log(share)) * (1.0 - 8.0 * _UNIT) - 8.0 * _UNIT * np.abs(np.log(share))
    known = single(np.maximum(np.where(some, need, 0.0), 0.0))
    second = (1.0 - rate) * known.first + rate * known.second
    columns = _up(np.where(some, weight, 0.0) * known.delta), known.first, second
    return Divergence(*(np.where(some, column, 0.0) for column in columns))


def _up(delta: Floats) -> Floats:
    return np.minimum(
        1.0, np.where(delta > 0.0, np.nextafter(delta * (1.0 + 4.0 * _UNIT), 2.0), 0.0)
    )
