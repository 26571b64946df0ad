"""The grid of gradients and noise, which consists of whole multiples of a public step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from turnout.errors import InvalidValueError

#: The largest norm of one example in steps: sums of millions of examples stay below 2^62.
_LARGEST_RADIUS = 2.0**40


@dataclass(frozen=True)
class Grid:
    """A grid that gradients are truncated to: multiples of a step, and the noise in steps.

    The clipped gradient of every example is truncated toward zero to multiples of ``step``, which
    never makes its norm larger. So a sum of examples is a vector S of integers, and one example
    changes it by a norm of at most ``clip / step``. The noise is ``round(2^bits Z)`` with Z
    standard normal, drawn exactly. Since S holds integers, ``S + round(2^bits Z) = round(S + 2^bits
    Z)``: the result is the *rounded result of the ideal Gaussian mechanism*. Everything that is
    proven of that mechanism (under sampling, over many rounds) is true of this one, with no term
    for floating point.

    This assumes that the gradient of an example is the same, bit for bit, whichever other examples
    are computed with it. In a batch that is often false: with one row more or less, matrices are
    multiplied in other blocks. :func:`~turnout.federated.one_at_a_time` makes the assumption true,
    and ``batch_slack`` of the plan covers the changes where it is false.

    Attributes
    ----------
    clip
        The norm that gradients are clipped to.
    step
        The distance between neighbouring points; at least ``noise_multiplier * clip / 2^bits``.
    bits
        The exponent of the noise: its standard deviation is 2^bits steps.

    Examples
    --------
    >>> grid = Grid.of(clip=1.0, noise_multiplier=2.0, bits=24)
    >>> grid.step == 2.0 / 2**24, grid.radius
    (True, 8388608.0)
    """

    clip: float
    step: float
    bits: int

    @classmethod
    def of(cls, clip: float, noise_multiplier: float, bits: int) -> Grid:
        """Return the grid of a noise multiplier, with a step that makes the noise never too small.

        Raises
        ------
        InvalidValueError
            If the grid would be too fine for sums of 64 bits, or beyond floating-point range.
        """
        exact = Fraction(clip) * Fraction(noise_multiplier) / 2**bits
        try:
            step = float(exact)
        except OverflowError:
            step = math.inf
        if Fraction(step if math.isfinite(step) else 0) < exact:
            step = math.nextafter(step, math.inf)
        if not 2.0**-1000 <= step <= 2.0**1000:
            raise InvalidValueError(
                f"clip = {clip} and noise_multiplier = {noise_multiplier} give noise beyond "
                "floating-point range"
            )
        if clip / step > _LARGEST_RADIUS:
            raise InvalidValueError(
                f"noise_multiplier must be at least 2^(grid_bits - 40) = {2.0 ** (bits - 40):.3g}, "
                f"so that sums fit 64 bits, got {noise_multiplier}"
            )
        return cls(clip, step, bits)

    def check_examples(self, argument: str, examples: int) -> None:
        """Refuse so many examples of one client that their sum might not fit in 62 bits.

        Check it before anything is drawn: a sum that fails would reveal how many were sampled.

        Raises
        ------
        InvalidValueError
            If the sum might not fit. The message names the argument.
        """
        if Fraction(self.radius) * max(examples, 1) >= 2**61:
            raise InvalidValueError(
                f"{argument} must be at most {math.floor(2**61 / self.radius):,} with this grid, "
                f"so that sums fit 64 bits (take fewer grid_bits or more noise), got {examples}"
            )

    @property
    def radius(self) -> float:
        """The norm that gradients are clipped to, in steps."""
        return self.clip / self.step

    @property
    def noise_multiplier(self) -> Fraction:
        """The exact noise multiplier, which is not below the requested one."""
        return Fraction(self.step) / Fraction(self.clip) * (1 << self.bits)
