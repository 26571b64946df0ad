"""The kinds of noise that parties add piece by piece: how each is drawn, and what it adds up to."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from turnout import _core
from turnout._types import Integers
from turnout.accounting import DiscreteLaplaceNoise, SkellamNoise, SummedDiscreteGaussianNoise
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.noise import GaussianLaw, LaplaceLaw, NoiseLaw, SkellamLaw
from turnout.distributed.seeds import step_seed
from turnout.errors import InvalidValueError

#: How many numbers are drawn at a time.
_BLOCK = 10_000_000


class Noise(abc.ABC):
    """One kind of noise, split into pieces of which ``required`` are enough to protect.

    A parameter is that of :class:`turnout.distributed.NoisyAggregation`.
    """

    #: The name of the parameter in the accounting.
    parameter: ClassVar[str]

    #: Whether a delta of 0 can be reached.
    pure: ClassVar[bool] = False

    @abc.abstractmethod
    def accounting(self, parameter: float, required: int) -> Mechanism:
        """Give the privacy accounting of the required pieces."""

    @abc.abstractmethod
    def law(self, parameter: float, required: int, pieces: int) -> NoiseLaw:
        """Give the law of the sum of some pieces."""

    @abc.abstractmethod
    def least(self, required: int) -> float:
        """Give the least parameter whose pieces can be drawn."""

    @abc.abstractmethod
    def piece(self, parameter: float, required: int, items: int, seed: int | None) -> Integers:
        """Draw one piece for each of some items."""

    @abc.abstractmethod
    def total(
        self, parameter: float, required: int, pieces: int, items: int, seed: int | None
    ) -> Integers:
        """Draw the sum of some pieces, no fewer than the required ones, for each of some items."""

    def of_piece(self, parameter: float, required: int) -> float:
        """Give the parameter that the sampler of one piece takes."""
        return parameter

    @abc.abstractmethod
    def _draw(self, parameter: float, items: int, seed: int | None) -> Integers:
        """Draw from the law by itself."""

    def check(self, parameter: float, required: int) -> None:
        """Let the sampler refuse a piece that it cannot draw, before anything is promised."""
        piece = self.of_piece(parameter, required)
        try:
            self._draw(piece, 0, None)
        except InvalidValueError as error:
            raise InvalidValueError(
                f"parameter must be one whose pieces can be drawn, got pieces with {piece}: {error}"
            ) from error


class _DiscreteLaplace(Noise):
    """Pieces are differences of negative binomial variables with fractional shape."""

    parameter = "scale"
    pure = True

    def accounting(self, parameter: float, required: int) -> Mechanism:
        return DiscreteLaplaceNoise(parameter)

    def law(self, parameter: float, required: int, pieces: int) -> NoiseLaw:
        return LaplaceLaw(parameter, required, pieces)

    def least(self, required: int) -> float:
        return 0.02

    def piece(self, parameter: float, required: int, items: int, seed: int | None) -> Integers:
        return _core.discrete_laplace_piece(parameter, required, items, seed)

    def total(
        self, parameter: float, required: int, pieces: int, items: int, seed: int | None
    ) -> Integers:
        # The required pieces are exactly one discrete Laplace variable; the margin is left over.
        total = self._draw(parameter, items, step_seed(seed, "noise"))
        for piece in range(pieces - required):
            total = total + self.piece(parameter, required, items, step_seed(seed, "noise", piece))
        return total

    def _draw(self, parameter: float, items: int, seed: int | None) -> Integers:
        return _core.discrete_laplace(parameter, items, seed)


class _DiscreteGaussian(Noise):
    """Pieces are discrete Gaussians; their sum is not one."""

    parameter = "variance"

    def accounting(self, parameter: float, required: int) -> Mechanism:
        return SummedDiscreteGaussianNoise(parameter, required)

    def law(self, parameter: float, required: int, pieces: int) -> NoiseLaw:
        return GaussianLaw(parameter, pieces)

    def least(self, required: int) -> float:
        return 1e-3

    def piece(self, parameter: float, required: int, items: int, seed: int | None) -> Integers:
        return self._draw(parameter, items, seed)

    def total(
        self, parameter: float, required: int, pieces: int, items: int, seed: int | None
    ) -> Integers:
        total = np.zeros(items, np.int64)
        step = max(1, _BLOCK // items)
        for start in range(0, pieces, step):
            count = min(step, pieces - start)
            drawn = self._draw(parameter, count * items, step_seed(seed, "noise", start))
            total += drawn.reshape(count, items).sum(axis=0)
        return total

    def _draw(self, parameter: float, items: int, seed: int | None) -> Integers:
        return _core.discrete_gaussian(parameter, items, seed)


class _Skellam(Noise):
    """Pieces are Skellam, and so is their sum."""

    parameter = "mean"

    def accounting(self, parameter: float, required: int) -> Mechanism:
        return SkellamNoise(parameter)

    def law(self, parameter: float, required: int, pieces: int) -> NoiseLaw:
        return SkellamLaw(self.of_piece(parameter, required), pieces)

    def least(self, required: int) -> float:
        return required * 1e-12

    def piece(self, parameter: float, required: int, items: int, seed: int | None) -> Integers:
        return self._draw(self.of_piece(parameter, required), items, seed)

    def total(
        self, parameter: float, required: int, pieces: int, items: int, seed: int | None
    ) -> Integers:
        mean = pieces * self.of_piece(parameter, required)
        return self._draw(mean, items, step_seed(seed, "noise"))

    def of_piece(self, parameter: float, required: int) -> float:
        return _core.divide_up(parameter, required)

    def _draw(self, parameter: float, items: int, seed: int | None) -> Integers:
        return _core.skellam(parameter, items, seed)


#: The kinds of noise by their names.
NOISES: Mapping[str, Noise] = MappingProxyType(
    {
        "discrete_laplace": _DiscreteLaplace(),
        "discrete_gaussian": _DiscreteGaussian(),
        "skellam": _Skellam(),
    }
)
