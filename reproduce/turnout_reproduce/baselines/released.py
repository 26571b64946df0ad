"""A density that is released once, and drawn from as often as one likes.

What the baselines share: a public box, integer statistics of one person's records in it, weights
made of the noisy statistics, and draws from a mixture with those weights. Only the noisy statistics
depend on the records, so everything made of them is post-processing and costs nothing more.
"""

from __future__ import annotations

import abc
import math
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats, Integers
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.projection import simplex
from turnout.samplers._arguments import random_state_of
from turnout.samplers.base import PointSampler
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.reference import Uniform, box

UNITS = ("dataset", "record")

#: Numbers held at a time where points meet components.
_AT_ONCE = 2**21


class Box(Uniform):
    """A public box: an interval for each feature, and the uniform distribution on it.

    Parameters
    ----------
    bounds
        One pair ``(low, high)`` for all features, or one pair for each.
    dimensions
        The number of features.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the bounds are not such pairs of finite numbers with ``low < high``.

    Examples
    --------
    >>> Box((0.0, 2.0), 1).cells(np.array([[0.0], [1.1], [2.0]]), (4,))
    array([[0],
           [2],
           [3]])
    """

    def __init__(self, bounds: Any, dimensions: int) -> None:
        super().__init__(*box(bounds, dimensions))
        self.widths = self.high - self.low

    def check(self, records: Floats) -> None:
        """Refuse records outside the box."""
        outside = (records < self.low) | (records > self.high)
        if outside.any():
            row, column = (int(place) for place in np.argwhere(outside)[0])
            raise InvalidValueError(
                f"X[{row}, {column}] must be within the public bounds [{self.low[column]:g}, "
                f"{self.high[column]:g}]"
            )

    def to_unit(self, points: Floats) -> Floats:
        """Map points of the box to the unit cube."""
        return np.asarray(np.clip((points - self.low) / self.widths, 0.0, 1.0))

    def cells(self, points: Floats, shape: tuple[int, ...]) -> Integers:
        """Give the cell of a regular grid that each point is in, one index for each feature."""
        sizes = np.array(shape)
        places = np.floor(self.to_unit(points) * sizes).astype(np.int64)
        return np.asarray(np.minimum(places, sizes - 1))

    def counts(self, records: Floats, shape: tuple[int, ...]) -> Integers:
        """Count the records in each cell of a regular grid, in C order."""
        flat = np.ravel_multi_index(tuple(self.cells(records, shape).T), shape)
        return np.bincount(flat, minlength=math.prod(shape)).astype(np.int64)


@dataclass(eq=False, repr=False)
class ReleasedSampler(PointSampler):
    """A sampler that releases a noisy density once, in ``fit``; the first call of ``sample`` pays.

    Attributes
    ----------
    weights_
        The weights of the mixture that is drawn from: the release. They are at least 0 and sum to
        one.
    realized_epsilon_
        The epsilon of the release, at most the one asked for.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    bounds: Any
    unit: str = "dataset"
    uniform_weight: float | None = None
    random_state: int | None = None

    _weights_: Floats = field(init=False)
    _realized_epsilon_: float = field(init=False)
    _delta_: float = field(init=False)
    _unit_: str = field(init=False)

    #: What one release costs beside epsilon.
    delta = 0.0

    _seeds_noise = True

    #: What the noise is called in the guarantee.
    noise: ClassVar[str]

    def guarantee(self) -> str:
        """Say in a sentence what the draws protect.

        Returns
        -------
        str
            The sentence.

        Raises
        ------
        NotFittedError
            If the sampler was not fitted.
        """
        self._check_fitted()
        level = f"{self._realized_epsilon_!r}"
        if self._delta_:
            level = f"({level}, {self._delta_!r})"
        who = (
            "whatever all records of the person and their number are"
            if self._unit_ == "dataset"
            else "for one record replaced by another; the number of records is taken as public"
        )
        return (
            f"All draws together are {level}-differentially private, {who}: they are made of one "
            f"release with {self.noise} noise."
        )

    def _fit(self, records: Floats) -> None:
        self._paid = False
        _arguments.choice("unit", self.unit, UNITS)
        public = Box(self.bounds, records.shape[1])
        public.check(records)
        self._box = public
        seed = random_state_of(self.random_state)
        noisy, strength = self._release(records, seed)
        self._delta_, self._unit_ = float(self.delta), self.unit
        share = self._share(strength)
        nearest = simplex(noisy)
        self._weights_ = (1.0 - share) * (nearest / nearest.sum()) + share / noisy.size

    @abc.abstractmethod
    def _release(self, records: Floats, seed: int | None) -> tuple[Floats, float]:
        """Give noisy weights, which may be negative, and the signal in units of the noise."""

    @abc.abstractmethod
    def _default_share(self, strength: float) -> float:
        """Give the share of the uniform distribution for a signal in units of the noise."""

    @abc.abstractmethod
    def _place(self, components: Integers, words: Floats) -> Floats:
        """Turn components and uniform numbers into points of the unit cube."""

    def _share(self, strength: float) -> float:
        if self.uniform_weight is None:
            return self._default_share(strength)
        share = _arguments.number("uniform_weight", self.uniform_weight)
        if not 0.0 <= share <= 1.0:
            raise _arguments.invalid(
                "uniform_weight must be a number from 0 to 1", self.uniform_weight
            )
        return share

    def _grant(self) -> PrivacyBudget:
        return PrivacyBudget(self._epsilon_, self._delta_, unit=self._unit_)

    def _pay(self, purse: PrivacyBudget, count: int) -> None:
        del count
        if not self._paid:
            purse.spend(self._epsilon_, self._delta_)
            self._paid = True

    def _draw(self, count: int, seed: int | None) -> Floats:
        words = _core.uniforms(count * (1 + self.n_features_in_), seed).reshape(count, -1)
        words = np.clip(words, 2.0**-54, 1.0 - 2.0**-53)
        total = np.cumsum(self._weights_)
        found = np.searchsorted(total, words[:, 0] * total[-1], side="right")
        components = np.minimum(found, self._weights_.size - 1).astype(np.int64)
        return self._box.transform(self._place(components, words[:, 1:]))

    def _log_density(self, records: Floats) -> Floats:
        result = self._box.log_density(records)
        inside = np.flatnonzero(np.isfinite(result))
        step = max(1, _AT_ONCE // self._weights_.size)
        for start in range(0, inside.size, step):
            rows = inside[start : start + step]
            result[rows] += self._unit_log_density(self._box.to_unit(records[rows]))
        return result

    @abc.abstractmethod
    def _unit_log_density(self, positions: Floats) -> Floats:
        """Give the log-density at points of the unit cube."""


def spread(weights: Floats, total: int) -> Integers:
    """Round rows of shares to integers of at least zero with exactly the sum ``total``.

    The running sums are rounded, so every entry is off by at most one. Whatever the shares are, the
    sum is exact, and with it the sensitivity.

    Parameters
    ----------
    weights
        Shares of shape (..., n) that sum to one along the last axis.
    total
        The sum of every row of the result.

    Returns
    -------
    numpy.ndarray
        int64 of the same shape.

    Examples
    --------
    >>> spread(np.array([0.25, 0.25, 0.5]), 10)
    array([2, 3, 5])
    """
    sums = np.clip(np.rint(np.cumsum(weights, axis=-1) * total), 0.0, total).astype(np.int64)
    sums = np.maximum.accumulate(sums, axis=-1)
    sums[..., -1] = total
    return np.diff(sums, axis=-1, prepend=np.int64(0))


def relative_bandwidth(bandwidth: Any, public: Box) -> Floats:
    """Give bandwidths as parts of the widths of a box, one for each feature."""
    dimensions = public.widths.size
    try:
        values = [_arguments.number("bandwidth", bandwidth)] * dimensions
    except TypeError:
        expected = f"a number or one for each of the {dimensions} features"
        values = [
            _arguments.number("bandwidth", entry)
            for entry in _arguments.items("bandwidth", bandwidth, expected)
        ]
    relative = np.array(values) / public.widths if len(values) == dimensions else np.zeros(1)
    if not ((relative > 1e-9) & (relative < 1e9)).all():
        raise InvalidValueError(
            f"bandwidth must be a number above 0 or one for each of the {dimensions} features, "
            f"within 1e-9 and 1e9 of the widths of the bounds, got {_arguments.shown(bandwidth)}"
        )
    return relative
