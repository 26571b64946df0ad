"""Integer noise on counts: discrete Laplace, discrete Gaussian and its sums, and Skellam."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import Divergence, positive_up_to

_LARGEST_PIECES = 10_000_000
_LARGEST_VARIANCE = 1e12


@functools.lru_cache(maxsize=64)
def noise_table(kind: str, scale: float, pieces: int = 1) -> _core.IntegerNoise:
    """Return the core's law of a noise, which is cached."""
    return _core.IntegerNoise(kind, scale, pieces)


def discrete_gaussian_variance(parameter: float) -> float:
    """Compute the variance of a discrete Gaussian of the parameter sigma^2."""
    # By Poisson summation both agree within 1e-30 for all others.
    if parameter >= 4.0:
        return parameter
    squares = np.arange(1.0, 128.0) ** 2
    weights = np.exp(-squares / (2.0 * parameter))
    return float(2.0 * (squares @ weights) / (1.0 + 2.0 * weights.sum()))


class _IntegerNoise(Mechanism):
    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    _largest_noise: ClassVar[float] = 1e6
    #: The word of the core for this noise, and the name of its one parameter.
    _kind: ClassVar[str]
    _parameter: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        given = getattr(self, self._parameter)
        settle(
            self, **{self._parameter: positive_up_to(self._parameter, given, self._largest_noise)}
        )

    @property
    def _kernel(self) -> _core.IntegerNoise:
        return noise_table(self._kind, getattr(self, self._parameter))

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        columns = self._kernel.profile(epsilon).T
        one = Divergence(*columns[3:])
        # The noise is symmetric: one more and one less are the same.
        return {"replace": Divergence(*columns[:3]), "remove": one, "add": one}


@dataclasses.dataclass(frozen=True)
class DiscreteLaplaceNoise(_IntegerNoise):
    """Add independent discrete Laplace noise to every count.

    ``P[x]`` is proportional to ``exp(-|x| / scale)``. With ``"replace"`` one person moves from one
    count to another, so two counts change by one, and delta is zero from ``epsilon = 2 / scale``
    on. With ``"add"`` and ``"remove"`` one count changes by one.

    Parameters
    ----------
    scale
        The scale b, from 1e-100 to 1e6.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the parameter is of the wrong type or out of range.

    Notes
    -----
    Ghosh, Roughgarden, Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms" (2012).

    Examples
    --------
    >>> DiscreteLaplaceNoise(scale=2.0).epsilon(0.0)
    1.0
    """

    scale: float

    _kind: ClassVar[str] = "discrete_laplace"
    _calibrated: ClassVar[dict[str, bool]] = {"scale": True}

    @property
    def _lattice(self) -> float:
        """The number of which all privacy losses are multiples."""
        return 1.0 / self.scale


@dataclasses.dataclass(frozen=True)
class DiscreteGaussianNoise(_IntegerNoise):
    """Add independent discrete Gaussian noise to every count.

    ``P[x]`` is proportional to ``exp(-x^2 / (2 scale^2))``. With ``"replace"`` two counts change by
    one, with ``"add"`` and ``"remove"`` one count does.

    Parameters
    ----------
    scale
        The parameter sigma, from 1e-100 to 1e6; close to the standard deviation unless it is small.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the parameter is of the wrong type or out of range.

    Notes
    -----
    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020).

    Examples
    --------
    >>> noise = DiscreteGaussianNoise(scale=27.8**0.5)
    >>> round(noise.epsilon(1e-5), 2)
    1.0
    """

    scale: float

    _kind: ClassVar[str] = "discrete_gaussian"
    _calibrated: ClassVar[dict[str, bool]] = {"scale": True}

    @property
    def _lattice(self) -> float:
        """The number of which all privacy losses are multiples."""
        return 0.5 / self.scale**2


@dataclasses.dataclass(frozen=True)
class SkellamNoise(_IntegerNoise):
    """Add independent Skellam noise to every count: the difference of two Poisson variables.

    With ``"replace"`` two counts change by one, with ``"add"`` and ``"remove"`` one count does.

    Parameters
    ----------
    mean
        The mean mu of each of the two Poisson variables, from 1e-100 to 1e10; the variance of the
        noise is ``2 mu``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the parameter is of the wrong type or out of range.

    Notes
    -----
    Agarwal, Kairouz, Liu, "The Skellam Mechanism for Differentially Private Federated Learning"
    (2021); delta here is exact and not their bound of the Renyi divergence.

    Examples
    --------
    >>> round(SkellamNoise(mean=26.3 / 2).epsilon(1e-5), 2)
    1.0
    """

    mean: float

    _kind: ClassVar[str] = "skellam"
    _parameter: ClassVar[str] = "mean"
    _largest_noise: ClassVar[float] = 1e10
    _calibrated: ClassVar[dict[str, bool]] = {"mean": True}


@dataclasses.dataclass(frozen=True)
class SummedDiscreteGaussianNoise(_IntegerNoise):
    """Add to every count a sum of independent discrete Gaussians, one from each of many people.

    The sum is not a discrete Gaussian: a small piece is mostly -1, 0 or 1, and the sum is close to
    Skellam noise. The law of the sum is computed, so with many pieces each may be very small. With
    ``"replace"`` two counts change by one, with ``"add"`` and ``"remove"`` one count does.

    Parameters
    ----------
    variance
        The parameter ``sigma^2`` of each piece, whose ``P[x]`` is proportional to
        ``exp(-x^2 / (2 variance))``; from 1e-100 to 1e12 over the number of pieces.
    pieces
        The number of pieces that are added to every count, from 1 to 10^7. If people collude or
        drop out, count only the remaining ones.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with
    Secure Aggregation" (2021), bound the distance to one discrete Gaussian by
    ``10 sum_k exp(-2 pi^2 variance k / (k + 1))``, which is useless for pieces below 1/2. Here
    delta is that of the sum itself. For a standard deviation of the sum above 16 and pieces below
    16, the table of its law ends nine standard deviations from zero. The mass beyond, below 1e-17,
    is added to delta.

    Examples
    --------
    >>> noise = SummedDiscreteGaussianNoise(variance=0.1163, pieces=1000)
    >>> round(noise.epsilon(1e-5), 2)
    1.0
    """

    variance: float
    pieces: int

    _kind: ClassVar[str] = "summed_discrete_gaussian"
    _parameter: ClassVar[str] = "variance"
    _calibrated: ClassVar[dict[str, bool]] = {"variance": True}

    def __post_init__(self) -> None:
        settle(
            self,
            pieces=_arguments.integer("pieces", self.pieces, least=1, most=_LARGEST_PIECES),
        )
        super().__post_init__()

    @property
    def _largest_noise(self) -> float:  # type: ignore[override]
        """The largest variance of a piece."""
        # The core looks at the product, which a rounding must not lift.
        return _LARGEST_VARIANCE / self.pieces * (1.0 - 2.0**-52)

    @property
    def _piece_variance(self) -> float:
        """The variance of one piece, which is below the parameter, and far below a small one."""
        return discrete_gaussian_variance(self.variance)

    @property
    def _total_variance(self) -> float:
        """The variance of the sum."""
        return self.pieces * self._piece_variance

    @property
    def _kernel(self) -> _core.IntegerNoise:
        return noise_table(self._kind, self.variance, self.pieces)
