"""Variation ratios: how well a pure local randomizer hides among other reports."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import NamedTuple

from turnout import _arguments
from turnout._documents import MOST_DIGITS
from turnout._values import settle
from turnout.errors import InvalidValueError


class ToldApart(NamedTuple):
    """The probabilities that a report is in a set that supports one of two answers.

    An adversary who sees shuffled reports can count this set. If ``third`` is known, there is a
    second set for the other answer, with the probabilities exchanged.
    """

    #: Of a report of the answer that the set speaks for.
    own: float
    #: Of a report of the other answer.
    other: float
    #: Of a report of a third answer, in either of the two sets.
    third: float | None = None


@dataclasses.dataclass(frozen=True)
class VariationRatio:
    """The numbers of a local randomizer that determine the privacy of its shuffled reports.

    Let ``a = total_variation / (ratio - 1)``. A report of the first answer is in some set of
    outputs with probability ``ratio * a``, a report of the second answer with probability ``a``.
    For a second set it is the reverse; elsewhere the two laws agree. A report of any third answer
    is in either set, with the same law in it, with probability at least ``ratio * a /
    blanket_ratio``.

    Parameters
    ----------
    ratio
        The largest likelihood ratio of a report under two answers, ``e^epsilon``; above 1.
    total_variation
        The largest total variation distance of the reports of two answers, above 0 and at most
        ``(ratio - 1) / (ratio + 1)``.
    blanket_ratio
        The largest likelihood ratio of a report under one of the two answers and a third, from 1 to
        ``ratio``.
    blanket
        The mass of the common part of the laws of all answers, including the two sets. It applies
        if outside of the two sets a report has the common law (as in direct encoding). None if it
        is not known: then such reports are assumed to hide nothing.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    The first three are those of Wang, Peng, Li, Xu, Wu, Yang, "Privacy Amplification via Shuffling:
    Unified, Simplified, and Tightened" (2024); the fourth is the privacy blanket of Balle, Bell,
    Gascón, Nissim (2019). Rational numbers are kept exactly.

    Examples
    --------
    >>> coin = VariationRatio(ratio=3.0, total_variation=0.5, blanket_ratio=3.0)
    >>> coin.ratio, coin.total_variation
    (Fraction(3, 1), Fraction(1, 2))
    """

    ratio: Fraction | float
    total_variation: Fraction | float
    blanket_ratio: Fraction | float
    blanket: Fraction | float | None = None

    def __post_init__(self) -> None:
        for name in ("ratio", "total_variation", "blanket_ratio"):
            settle(self, **{name: _fraction(name, getattr(self, name))})
        ratio, distance, blanket = self._exact()
        if ratio <= 1:
            raise InvalidValueError(f"ratio must be above 1, got {float(ratio)}")
        most = (ratio - 1) / (ratio + 1)
        if not 0 < distance <= most * (1 + Fraction(1, 10**12)):
            raise InvalidValueError(
                "total_variation must be above 0 and at most (ratio - 1) / (ratio + 1) = "
                f"{float(most)}, got {float(distance)}"
            )
        if not 1 <= blanket <= ratio:
            raise InvalidValueError(
                f"blanket_ratio must be from 1 to ratio = {float(ratio)}, got {float(blanket)}"
            )
        if self.blanket is not None:
            mass = _fraction("blanket", self.blanket)
            settle(self, blanket=mass)
            if not 2 * self._common <= mass <= 1:
                raise InvalidValueError(
                    f"blanket must be from {float(2 * self._common)} (its two sets) to 1, got "
                    f"{float(mass)}"
                )

    @classmethod
    def _of_any(cls, ratio: Fraction | float) -> VariationRatio:
        """Return the worst case of all randomizers of a likelihood ratio: the "clones" reduction.

        Parameters
        ----------
        ratio
            The largest likelihood ratio, ``e^epsilon``; above 1.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``ratio`` is of the wrong type or not above 1.
        """
        exact = _fraction("ratio", ratio)
        if exact <= 1:
            raise InvalidValueError(f"ratio must be above 1, got {float(exact)}")
        return cls(exact, (exact - 1) / (exact + 1), exact)

    def _exact(self) -> tuple[Fraction, Fraction, Fraction]:
        return Fraction(self.ratio), Fraction(self.total_variation), Fraction(self.blanket_ratio)

    @property
    def _own(self) -> Fraction:
        """The probability that a report is in the set that supports its answer."""
        ratio, distance, _ = self._exact()
        return ratio * distance / (ratio - 1)

    @property
    def _other(self) -> Fraction:
        """The probability that a report is in the set that supports the other answer."""
        ratio, distance, _ = self._exact()
        return distance / (ratio - 1)

    @property
    def _common(self) -> Fraction:
        """The least probability that a report of a third answer is in each of the two sets."""
        return min(self._own / Fraction(self.blanket_ratio), Fraction(1, 2))


def difference_up(own: float, other: float) -> Fraction:
    """Subtract two probabilities that have small rounding errors, and round up.

    The probabilities are exact to a few units in the last place. At a small epsilon they differ
    only in their last digits. More variation hides less, so their rounding errors are added.

    Examples
    --------
    >>> difference_up(0.75, 0.25) > Fraction(1, 2)
    True
    """
    slack = Fraction(1, 2**48)
    return Fraction(own) * (1 + slack) - Fraction(other) * (1 - slack)


def _fraction(argument: str, value: object) -> Fraction:
    # Also of a fraction: what does not fit a float cannot be shown, nor accounted for.
    number = _arguments.number(argument, value)
    if not math.isfinite(number):
        raise InvalidValueError(f"{argument} must be finite, got {number}")
    exact = Fraction(value) if isinstance(value, (Fraction, int)) else Fraction(number)
    if max(abs(exact.numerator), exact.denominator) >= 10**MOST_DIGITS:
        raise InvalidValueError(
            f"{argument} must be a fraction of at most {MOST_DIGITS} digits, got {number} with more"
        )
    return exact
