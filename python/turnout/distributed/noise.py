"""Laws of noise that parties add in pieces: draws, variance, quantiles and tails.

Every contributor adds an independent integer piece to every count. The sum has a known
characteristic function, from which one Fourier transform gives its law, and a known moment
generating function, from which Chernoff's method gives tails of any size.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, TypeAlias

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats, Integers
from turnout._values import settle
from turnout.accounting import DiscreteLaplaceNoise, SkellamNoise, SummedDiscreteGaussianNoise
from turnout.accounting.integer_noise import discrete_gaussian_variance
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import positive_up_to
from turnout.distributed.aggregation import step_seed
from turnout.distributed.tails import LARGEST_TILT, chernoff

#: The longest transform.
_LONGEST = 2**22

#: The largest scale of a transform of whole discrete Laplace variables, of one; of more the root.
_WIDE = 2e4

#: What may wrap around in a transform.
_WRAPPED = 1e-14

#: The most pieces that are required, and that are in a sum.
_MOST_REQUIRED, _MOST_PIECES = 2**53, 2**60

#: The probabilities of more than 0, 1, 2, ... of a symmetric law, a unit, and a number beside it.
Cover: TypeAlias = tuple[Floats, int, int]

#: How many numbers are drawn at a time.
_BLOCK = 10_000_000


@dataclasses.dataclass(frozen=True)
class NoiseLaw(abc.ABC):
    """The law and the privacy accounting of symmetric noise in one count.

    Parameters
    ----------
    parameter
        How much noise there is, in terms of the kind; from 1e-100 to a limit of the kind.
    required
        How many pieces are enough to protect, at least 1.
    contributors
        How many pieces are added, more or fewer than that; at least 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.
    """

    #: The name of the parameter in the accounting.
    accounted: ClassVar[str]

    #: The least parameter of which pieces can be drawn, however many are required, and the largest.
    least: ClassVar[float]
    largest: ClassVar[float]

    #: Whether a delta of 0 can be reached.
    pure: ClassVar[bool] = False

    parameter: float
    required: int
    contributors: int

    def __post_init__(self) -> None:
        """Check the fields."""
        integer = _arguments.integer
        settle(
            self,
            parameter=positive_up_to(self.accounted, self.parameter, self.largest),
            required=integer("required", self.required, least=1, most=_MOST_REQUIRED),
            contributors=integer("contributors", self.contributors, least=0, most=_MOST_PIECES),
        )

    @property
    @abc.abstractmethod
    def accounting(self) -> Mechanism:
        """The privacy accounting of the required pieces."""

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance of the sum."""

    @abc.abstractmethod
    def piece(self, items: int, seed: int | None) -> Integers:
        """Draw one piece for each of some items."""

    @abc.abstractmethod
    def total(self, items: int, seed: int | None) -> Integers:
        """Draw the sum of all pieces, at least the required number, for each of some items."""

    @abc.abstractmethod
    def _exponent(self, sines: Floats, angles: Floats) -> Floats:
        """Return minus the log of the characteristic function, from ``sin(angle / 2)^2``."""

    @abc.abstractmethod
    def _log_moment(self, tilt: float) -> float:
        """Compute the logarithm of the moment generating function."""

    def _largest_tilt(self, needed: float) -> float:
        # Beyond it the moments have grown past what is needed.
        return min(LARGEST_TILT, 2.0 + 2.0 * math.log1p(4.0 * needed / self.variance))

    def tail_bound(self, probability: float) -> int:
        """Return a bound that the noise exceeds with at most some probability.

        Parameters
        ----------
        probability
            In (0, 1], for example ``2**-64``.

        Returns
        -------
        int
            A t with ``P[|noise| > t] <= probability``, by Chernoff's bound.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the probability is not a number in (0, 1].
        """
        chance = _arguments.probability("probability", probability)
        if self.variance <= 0.0:
            return 0
        largest = self._largest_tilt(math.log(2.0 / chance))
        return max(0, chernoff(self._log_moment, chance / 2.0, largest))

    def half_width(self, level: float) -> float:
        """Return the half-width of an interval around zero that contains the noise.

        Parameters
        ----------
        level
            The probability that the interval must hold, between 0 and 1.

        Returns
        -------
        float
            A whole number t with ``P[|noise| <= t] >= level``. It is the smallest one unless the
            level is within 1e-10 of that of the one below, or within 1e-9 of 1, or the noise is
            wider than some 10^5; then it can be larger, for whole discrete Laplace variables by
            some 10^-4 of it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the level is not a number between 0 and 1.
        """
        share = _arguments.confidence("level", level)
        if self.variance <= 0.0:
            return 0.0
        known = self._masses()
        if known is not None:
            law, error = known
            inside = np.cumsum(np.append(law[0], 2.0 * law[1:]))
            found = int(np.searchsorted(inside, share + error))
            if found < len(inside) and 1.0 - share > 10.0 * error:
                return float(found)
            # One less may do, and nobody looks: never too small.
            return float(self.tail_bound(math.nextafter(1.0 - share, 0.0)))
        return self._wide_half_width(share)

    def _wide_half_width(self, share: float) -> float:
        """Bound the half-width of an interval if the noise is too wide for a transform."""
        return float(self.tail_bound(math.nextafter(1.0 - share, 0.0)))

    def _cover(self) -> Cover | None:
        """Give tails of a variable C, and numbers with which the noise is at most unit C + beside.

        None where the noise is too wide for that.
        """
        known = self._masses()
        return None if known is None else (_tails(known[0]), 1, 0)

    def _masses(self) -> tuple[Floats, float] | None:
        """Return the probabilities from 0 on, and a bound of the error of their sums.

        None where the noise is too wide for a transform.
        """
        outside = self.tail_bound(_WRAPPED)
        length = 1 << (2 * outside + 2).bit_length()
        if length > _LONGEST:
            return None
        angles = np.arange(length // 2 + 1, dtype=np.float64) * (2.0 * math.pi / length)
        sines = np.asarray(np.sin(0.5 * angles) ** 2, dtype=np.float64)
        with np.errstate(under="ignore"):
            powers = np.exp(-self._exponent(sines, angles))
        law = np.fft.irfft(powers, length)[: outside + 1]
        return law, _transform_error(length, float(law[0])) + _WRAPPED


class LaplaceLaw(NoiseLaw):
    """Noise whose required pieces add up to one discrete Laplace variable.

    The parameter is the scale of the whole variable, whose ``P[x]`` is proportional to
    ``exp(-|x| / scale)``; at most 1e6. Each piece is the difference of two negative binomial
    variables of shape ``1 / required`` and ratio ``exp(-1 / scale)``.

    Examples
    --------
    >>> law = LaplaceLaw(2.0, required=100, contributors=100)
    >>> law.half_width(0.95), law.tail_bound(2**-64), round(law.variance, 2)
    (6.0, 98, 7.84)
    """

    accounted: ClassVar[str] = "scale"
    least: ClassVar[float] = 0.02
    largest: ClassVar[float] = 1e6
    pure: ClassVar[bool] = True

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of one discrete Laplace variable."""
        return DiscreteLaplaceNoise(self.parameter)

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return 0.5 * self._shape * self._odds

    @property
    def _shape(self) -> float:
        return self.contributors / self.required

    @property
    def _odds(self) -> float:
        # 4 q / (1 - q)^2 = 1 / sinh(1 / (2 scale))^2.
        return 4.0 * math.exp(-1.0 / self.parameter) / math.expm1(-1.0 / self.parameter) ** 2

    def _exponent(self, sines: Floats, angles: Floats) -> Floats:
        del angles
        return np.asarray(self._shape * np.log1p(sines * self._odds))

    def _largest_tilt(self, needed: float) -> float:
        del needed
        # Nearer to the pole the logarithm of the moment would be too inexact.
        return (1.0 - 1e-6) / self.parameter

    def _log_moment(self, tilt: float) -> float:
        # sinh(t / 2)^2 / sinh(h / 2)^2 with h = 1 / scale, for any h, is e^(t - h) times a ratio.
        away = math.exp(tilt - 1.0 / self.parameter)
        part = away * (math.expm1(-tilt) / math.expm1(-1.0 / self.parameter)) ** 2
        return -self._shape * math.log1p(-part)

    def _wide_half_width(self, share: float) -> float:
        coarse = self._coarse()
        if coarse is None:
            return super()._wide_half_width(share)
        law, step, beside = coarse
        return step * law.half_width(share) + beside

    def _cover(self) -> Cover | None:
        found, coarse = super()._cover(), self._coarse()
        if found is not None or coarse is None:
            return found
        law, step, beside = coarse
        known = law._masses()
        return None if known is None else (_tails(known[0]), step, beside)

    def _coarse(self) -> tuple[LaplaceLaw, int, int] | None:
        """Return a law on multiples of a step, the step, and how far the noise is beside at most.

        A discrete Laplace variable is the difference of two geometric variables. Each of these is
        the step times a geometric variable with the scale divided by the step, plus a rest below
        the step.
        """
        whole, rest = divmod(self.contributors, self.required)
        step = math.ceil(self.parameter * math.sqrt(whole) / _WIDE)
        if rest or step <= 1:
            return None
        scale = math.nextafter(self.parameter / step, math.inf)
        return dataclasses.replace(self, parameter=scale), step, whole * (step - 1)

    def piece(self, items: int, seed: int | None) -> Integers:
        """Draw one piece: a difference of negative binomials of fractional shape."""
        return _core.discrete_laplace_piece(self.parameter, self.required, items, seed)

    def total(self, items: int, seed: int | None) -> Integers:
        """Draw the total: exactly one discrete Laplace variable, and the pieces beyond it."""
        total = _core.discrete_laplace(self.parameter, items, step_seed(seed, "noise"))
        for piece in range(self.contributors - self.required):
            total = total + self.piece(items, step_seed(seed, "noise", piece))
        return total


class GaussianLaw(NoiseLaw):
    """Noise of discrete Gaussian pieces.

    The parameter is the ``sigma^2`` of each piece, whose ``P[x]`` is proportional to
    ``exp(-x^2 / (2 sigma^2))``; at most 1e12. The variance of a piece is below it.

    Examples
    --------
    >>> law = GaussianLaw(0.1163, required=1000, contributors=1000)
    >>> law.half_width(0.95), law.tail_bound(2**-64), round(law.variance, 2)
    (10.0, 53, 26.44)
    """

    accounted: ClassVar[str] = "variance"
    least: ClassVar[float] = 1e-3
    largest: ClassVar[float] = 1e12

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of the sum of the required pieces."""
        return SummedDiscreteGaussianNoise(self.parameter, self.required)

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return self.contributors * discrete_gaussian_variance(self.parameter)

    def _exponent(self, sines: Floats, angles: Floats) -> Floats:
        if self.parameter >= 16.0:
            # By Poisson summation, to within e^-79 of the whole.
            return np.asarray(0.5 * self.contributors * self.parameter * angles**2)
        squares = np.arange(1.0, 64.0) ** 2
        weights = np.exp(-squares / (2.0 * self.parameter))
        weights /= 1.0 + 2.0 * weights.sum()
        rest = 4.0 * weights[0] * sines
        for index, weight in enumerate(weights[1:].tolist(), start=2):
            if weight > 0.0:
                rest += 4.0 * weight * np.sin(0.5 * index * angles) ** 2
        # The characteristic function is above zero.
        return np.asarray(-self.contributors * np.log1p(-np.minimum(rest, 1.0 - 2.0**-53)))

    def _log_moment(self, tilt: float) -> float:
        bound = 0.5 * self.parameter * tilt**2
        if self.parameter < 16.0:
            # Of e^(tilt k - k^2 / (2 parameter)) the largest is at k = tilt * parameter.
            places = np.arange(1.0, tilt * self.parameter + 64.0 * (1.0 + self.parameter**0.5))
            weights = -(places**2) / (2.0 * self.parameter)
            total = 1.0 + 2.0 * float(np.exp(weights).sum())
            # e^(tilt k) - 2 + e^(-tilt k) is e^(tilt k) (1 - e^(-tilt k))^2: nothing cancels.
            powers = weights + tilt * places + 2.0 * np.log(-np.expm1(-tilt * places))
            gain = float(np.logaddexp.reduce(powers)) - math.log(total)
            bound = min(bound, float(np.logaddexp(0.0, gain)))
        return self.contributors * bound * (1.0 + 1e-12)

    def piece(self, items: int, seed: int | None) -> Integers:
        """Draw one piece for each of some items."""
        return _core.discrete_gaussian(self.parameter, items, seed)

    def total(self, items: int, seed: int | None) -> Integers:
        """Draw every piece, since the sum of discrete Gaussians is not a discrete Gaussian."""
        total = np.zeros(items, np.int64)
        step = max(1, _BLOCK // items)
        for start in range(0, self.contributors, step):
            count = min(step, self.contributors - start)
            drawn = self.piece(count * items, step_seed(seed, "noise", start))
            total += drawn.reshape(count, items).sum(axis=0)
        return total


class SkellamLaw(NoiseLaw):
    """Noise of Skellam pieces, each the difference of two Poisson variables.

    The parameter is the mean of each of the two variables of the required pieces together, at most
    1e10.

    Examples
    --------
    >>> law = SkellamLaw(13.15, required=1000, contributors=1000)
    >>> law.half_width(0.95), law.tail_bound(2**-64), round(law.variance, 2)
    (10.0, 53, 26.3)
    """

    accounted: ClassVar[str] = "mean"
    least: ClassVar[float] = 3e-3
    largest: ClassVar[float] = 1e10

    @property
    def accounting(self) -> Mechanism:
        """The privacy accounting of the sum of the required pieces, which is also Skellam."""
        return SkellamNoise(self.parameter)

    @property
    def mean(self) -> float:
        """The mean of both Poisson variables of one piece, rounded up."""
        return _core.divide_up(self.parameter, self.required)

    @property
    def variance(self) -> float:
        """The variance of the sum."""
        return 2.0 * self.mean * self.contributors

    def _exponent(self, sines: Floats, angles: Floats) -> Floats:
        del angles
        return np.asarray(2.0 * self.variance * sines)

    def _log_moment(self, tilt: float) -> float:
        return 2.0 * self.variance * math.sinh(0.5 * tilt) ** 2

    def piece(self, items: int, seed: int | None) -> Integers:
        """Draw one piece for each of some items."""
        return _core.skellam(self.mean, items, seed)

    def total(self, items: int, seed: int | None) -> Integers:
        """Draw the sum of all pieces, which is also Skellam."""
        return _core.skellam(self.contributors * self.mean, items, step_seed(seed, "noise"))


#: The kinds of noise by their names.
NOISES: Mapping[str, type[NoiseLaw]] = MappingProxyType(
    {"discrete_laplace": LaplaceLaw, "discrete_gaussian": GaussianLaw, "skellam": SkellamLaw}
)


def _tails(masses: Floats) -> Floats:
    """Return the probabilities of more than 0, 1, 2, ... of a symmetric law, from its masses."""
    inside = np.append(0.0, np.cumsum(masses[1:]))
    return np.asarray(np.maximum(0.5 - 0.5 * masses[0] - inside, 0.0))


def _transform_error(length: int, largest: float) -> float:
    """Bound the error of a sum of probabilities from a Fourier transform.

    All norms are Euclidean. The norm of the errors is at most 8 log2(length) units times the norm
    of the law, plus 32 units for the errors of the characteristic function. The norm of the law is
    below the root of its largest probability. The sum of all errors is at most the root of their
    number times their norm.
    """
    unit = 2.0**-53 * math.sqrt(length)
    return unit * (8.0 * math.log2(length) * math.sqrt(largest) + 32.0)
