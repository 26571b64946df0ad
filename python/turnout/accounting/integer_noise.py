"""Integer noise on counts: discrete Laplace, discrete Gaussian and Skellam."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _core
from turnout.accounting.mechanism import Divergence, Mechanism, positive_up_to

__all__ = ["DiscreteGaussianNoise", "DiscreteLaplaceNoise", "SkellamNoise"]

Floats = npt.NDArray[np.float64]


@functools.lru_cache(maxsize=64)
def _table(kind: str, scale: float) -> _core.IntegerNoise:
    return _core.IntegerNoise(kind, scale)


class _IntegerNoise(Mechanism):
    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    default_adjacency: ClassVar[str] = "replace"
    largest_noise: ClassVar[float] = 1e6
    #: The word of the core for this noise, and the name of its one parameter.
    kind: ClassVar[str]
    parameter: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        given = getattr(self, self.parameter)
        value = positive_up_to(self.parameter, given, self.largest_noise)
        object.__setattr__(self, self.parameter, value)

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        columns = _table(self.kind, getattr(self, self.parameter)).profile(epsilon).T
        one = Divergence(*columns[3:])
        # The noise is symmetric: one more and one less are the same.
        return {"replace": Divergence(*columns[:3]), "remove": one, "add": one}


@dataclasses.dataclass(frozen=True)
class DiscreteLaplaceNoise(_IntegerNoise):
    """Add independent discrete Laplace noise to every count.

    ``P[x]`` is proportional to ``exp(-|x| / scale)``. With ``"replace"`` one person moves from one
    count to another, so two counts change by one: delta is zero from ``epsilon = 2 / scale`` on.
    With ``"add"`` and ``"remove"`` one count changes by one.

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

    kind: ClassVar[str] = "discrete_laplace"
    calibrated: ClassVar[dict[str, bool]] = {"scale": True}

    @property
    def _lattice(self) -> float | None:
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

    kind: ClassVar[str] = "discrete_gaussian"
    calibrated: ClassVar[dict[str, bool]] = {"scale": True}

    @property
    def _lattice(self) -> float | None:
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
    (2021); delta here is exact, not their bound of the Renyi divergence.

    Examples
    --------
    >>> round(SkellamNoise(mean=26.3 / 2).epsilon(1e-5), 2)
    1.0
    """

    mean: float

    kind: ClassVar[str] = "skellam"
    parameter: ClassVar[str] = "mean"
    largest_noise: ClassVar[float] = 1e10
    calibrated: ClassVar[dict[str, bool]] = {"mean": True}
