"""Kernel density with noise from a reproducing-kernel space, as a baseline."""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_up
from turnout._types import Floats, Integers
from turnout.errors import InvalidValueError
from turnout_reproduce.baselines.released import ReleasedSampler, relative_bandwidth

#: Cells for each feature, by the number of features, and the most cells in all.
_DEFAULT_GRID = {1: 512, 2: 40}
_MOST_CELLS = 4096

#: The most eigenvectors that are kept, those of the largest eigenvalues.
_RANK = 512

#: Directions of less of the largest eigenvalue than this are left out.
_NEGLIGIBLE = 1e-6

#: The largest noise that is aimed at: the core's discrete Gaussian has at most 1e5.
_AIM = 6e4
_FINEST, _COARSEST = 2**20, 4
_LARGEST_VARIANCE = 1e10

_WIDEST = 0.25

#: The relative error of each of the terms of a bound of delta, with room to spare.
_ROUNDING = 2.0**-48


@dataclass(eq=False, repr=False)
class PrivateKernelDensity(ReleasedSampler):
    """Release a kernel density estimate with Gaussian-process noise, and draw from it.

    A Gaussian kernel density estimate, as a function, changes by little in the norm of the kernel's
    own Hilbert space when the data change; noise from the Gaussian process whose covariance is the
    kernel makes it (epsilon, delta)-differentially private: Hall, Rinaldo, Wasserman (2013),
    section 4. Here the function is taken on a public grid of cells, its coordinates in the
    eigenvectors of the kernel matrix are rounded to integers, and the noise is exact.

    It is a *baseline*. With ``unit="dataset"``, the protection that the mollified samplers give
    (they have delta = 0), the noise does not fall with the number of records, and little of the
    data is left below an epsilon of about 10. Unlike with them, one release pays for any number of
    draws.

    Parameters
    ----------
    epsilon, delta
        What all draws together cost. Delta is a probability with which the protection may fail.
    bounds
        The public box: one pair ``(low, high)`` for all features or a pair for each. They must not
        depend on the data. Records outside are refused. There are at most two features.
    bandwidth
        The standard deviation of the kernel in units of the data, one for all features or one for
        each. It is public; by default the widths of the box times ``0.12 s^(-1 / (1 + d))``, from
        one cell to a quarter of the box, with ``s`` the largest value of the kernel in units of the
        noise.
    grid
        The number of cells for each feature, at most 4096 cells in all; by default 512 for one
        feature and 40 for two.
    unit
        What is protected: ``"dataset"``, all records of the person and their number, or
        ``"record"``, one record that is replaced by another, the number being public.
    uniform_weight
        The share of the uniform distribution that is mixed in, by default ``1 / (1 + s)``. It keeps
        the density away from zero where there is little but noise.
    random_state
        A seed of the noise, for tests and simulations only: whoever knows it can take the noise
        away.

    Attributes
    ----------
    weights_
        The released weights of the cells, float64 of shape (cells,), in C order over features. Who
        hands them out has spent epsilon and delta, as the first draw does.
    rank_
        The number of eigenvectors.
    squared_sensitivity_
        A bound of the squared L2 distance between the integer coordinates of two neighbouring data
        sets.
    variance_
        The parameter sigma^2 of the discrete Gaussian noise on each coordinate.
    realized_epsilon_
        The epsilon asked for; the bound of delta at it is at most delta.
    n_features_in_
        The number of features.
    budget_
        What the release costs; the first call of ``sample`` spends it, or that of another budget.

    Notes
    -----
    The coordinates of the kernel function of each cell stand in a public table of integers. For
    ``"record"`` the statistics are sums of its rows, and their sensitivity is the largest distance
    of two rows, computed exactly: in units of the kernel's largest value it is about
    ``sqrt(2 (1 - k(a, b))) <= sqrt(2)``. For ``"dataset"`` they are means of its rows, rounded: any
    two means are at most that far apart, and the rounding adds at most the root of the rank.
    Independent discrete Gaussian noise of parameter sigma^2 then gives rho-zCDP with ``rho =
    squared_sensitivity_ / (2 sigma^2)``: Canonne, Kamath, Steinke (2020), theorem 14; their
    corollary 13 turns it into epsilon and delta, rounded to the safe side. Everything else is
    post-processing. The release takes place in ``fit``, and the fitted object holds nothing else of
    the data.

    At least one record is needed, and an error for a record outside the bounds is seen by the
    person alone: neither is hidden by noise.

    References
    ----------
    Hall, Rinaldo, Wasserman, "Differential Privacy for Functions and Functional Data" (JMLR 2013).
    Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020).

    Examples
    --------
    >>> records = np.linspace(0.2, 0.4, 1000)[:, None]
    >>> sampler = PrivateKernelDensity(
    ...     epsilon=1.0, bounds=(0.0, 1.0), unit="record", random_state=1
    ... ).fit(records)
    >>> sampler.sample(1000, seed=2).shape
    (1000, 1)
    >>> sampler.budget_.spent, sampler.budget_.spent_delta
    (1.0, 1e-06)
    >>> bool(sampler.score(records) > 1.0)  # the uniform distribution has zero
    True
    """

    noise: ClassVar[str] = "discrete Gaussian"

    _: KW_ONLY
    delta: float = 1e-6
    bandwidth: Any = None
    grid: int | None = None

    _grid_: tuple[int, ...] = field(init=False)
    _rank_: int = field(init=False)
    _squared_sensitivity_: int = field(init=False)
    _variance_: float = field(init=False)

    def _release(self, records: Floats, seed: int | None) -> tuple[Floats, float]:
        count, dimensions = records.shape
        self._grid_ = self._cells(dimensions)
        rho = self._rho()
        whole = self.unit == "dataset"
        # The largest value of the kernel over the noise on it, whose variance is that of a
        # coordinate.
        strength = math.sqrt(rho) * (1 if whole else count)
        widths = self._widths(strength, dimensions)
        unit = min(_FINEST, int(_AIM * math.sqrt(rho)))
        too_small = InvalidValueError(
            f"epsilon must be larger at delta = {self.delta!r}: the noise would be larger than "
            f"can be drawn, got {self.epsilon!r}"
        )
        if unit < _COARSEST:
            raise too_small
        features, table, squared_distance = _tables(self._grid_, tuple(widths.tolist()), unit)
        self._rank_ = table.shape[1]
        self._squared_sensitivity_ = (
            _after_rounding(squared_distance, self._rank_) if whole else squared_distance
        )
        self._variance_ = rounded_up(Fraction(self._squared_sensitivity_) / (2 * Fraction(rho)))
        if self._variance_ > _LARGEST_VARIANCE:
            raise too_small
        self._realized_epsilon_ = float(self.epsilon)
        noisy = self._statistics(records, table) + _core.discrete_gaussian(
            self._variance_, self._rank_, seed
        )
        values = features @ (noisy / float(unit if whole else unit * count))
        # Values of the kernel with maximum one become masses of cells.
        spacing = np.prod(1.0 / np.array(self._grid_) / (widths * math.sqrt(2.0 * math.pi)))
        return values * float(spacing), strength

    def _statistics(self, records: Floats, table: Integers) -> Integers:
        """Give the sums of the rows of the records, or their means rounded to integers."""
        sums = self._box.counts(records, self._grid_) @ table
        if self.unit == "record":
            return sums
        # The nearest integers, exactly.
        count = len(records)
        return (2 * sums + count) // (2 * count)

    def _rho(self) -> float:
        delta = _arguments.number("delta", self.delta)
        if not 1e-100 <= delta < 1.0:
            raise _arguments.invalid(
                "delta must be a number of at least 1e-100 and below 1", self.delta
            )
        return largest_rho(float(self.epsilon), delta)

    def _cells(self, dimensions: int) -> tuple[int, ...]:
        if dimensions not in _DEFAULT_GRID:
            raise InvalidValueError(
                f"X must have at most 2 features for {type(self).__name__}, got {dimensions}"
            )
        if self.grid is None:
            return (_DEFAULT_GRID[dimensions],) * dimensions
        most = math.isqrt(_MOST_CELLS) if dimensions == 2 else _MOST_CELLS
        return (_arguments.integer("grid", self.grid, least=2, most=most),) * dimensions

    def _widths(self, strength: float, dimensions: int) -> Floats:
        if self.bandwidth is not None:
            return relative_bandwidth(self.bandwidth, self._box)
        width = 0.12 * strength ** (-1.0 / (1 + dimensions))
        narrowest = 1.0 / np.array(self._grid_)
        return np.asarray(np.clip(np.full(dimensions, width), narrowest, _WIDEST))

    def _default_share(self, strength: float) -> float:
        return 1.0 / (1.0 + strength)

    def _place(self, components: Integers, words: Floats) -> Floats:
        indices = np.stack(np.unravel_index(components, self._grid_), axis=1)
        return np.asarray((indices + words) / np.array(self._grid_))

    def _unit_log_density(self, positions: Floats) -> Floats:
        sizes = np.array(self._grid_)
        indices = np.minimum((positions * sizes).astype(np.int64), sizes - 1)
        flat = np.ravel_multi_index(tuple(indices.T), self._grid_)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._weights_[flat]) + np.log(sizes).sum())


@functools.lru_cache(maxsize=4)
def _tables(
    grid: tuple[int, ...], widths: tuple[float, ...], unit: int
) -> tuple[Floats, Integers, int]:
    """Give the coordinates of the kernel function of each cell, also as integers times a unit.

    The last is the largest squared distance of two rows of these integers.
    """
    features = _features(grid, widths)
    table = np.rint(features * unit).astype(np.int64)
    features.flags.writeable = table.flags.writeable = False
    return features, table, _squared_distance(table)


def _features(grid: tuple[int, ...], widths: tuple[float, ...]) -> Floats:
    """Give the coordinates of the kernel function of each cell: the kernel is F F^T.

    The kernel matrix of a regular grid is the Kronecker product of those of its axes.
    """
    features, values = np.ones((1, 1)), np.ones(1)
    for size, width in zip(grid, widths, strict=True):
        centres = (np.arange(size) + 0.5) / size
        kernel = np.exp(-0.5 * ((centres[:, None] - centres) / width) ** 2)
        found, vectors = np.linalg.eigh(kernel)
        found = np.maximum(found, 0.0)
        features = np.kron(features, vectors * np.sqrt(found))
        values = np.kron(values, found)
        kept = np.argsort(-values, kind="stable")[:_RANK]
        kept = kept[values[kept] > _NEGLIGIBLE * values.max()]
        features, values = features[:, kept], values[kept]
    return features


def _squared_distance(table: Integers) -> int:
    """Give the largest squared distance of two rows, and so of two means of rows.

    All numbers here are integers below 2^53, so floating-point sums of products are exact.
    """
    rows = table.astype(np.float64)
    squares = (rows * rows).sum(axis=1)
    largest = 0.0
    for start in range(0, len(rows), 512):
        block = slice(start, start + 512)
        gaps = squares[block, None] + squares - 2.0 * (rows[block] @ rows.T)
        largest = max(largest, float(gaps.max()))
    return int(largest)


def _after_rounding(squared_distance: int, coordinates: int) -> int:
    """Bound the squared distance of two means that are rounded to the nearest integers.

    Two roundings move each coordinate of the difference by at most one.
    """
    return (_root_up(squared_distance) + _root_up(coordinates)) ** 2


def _root_up(value: int) -> int:
    root = math.isqrt(value)
    return root if root * root == value else root + 1


# Zero-concentrated differential privacy: what it says about epsilon and delta


def log_delta(rho: float, epsilon: float) -> float:
    """Bound the logarithm of delta of a rho-zCDP mechanism, rounding included.

    For every order ``alpha > 1``, with ``t = alpha - 1``, delta is at most ``exp(t (alpha rho -
    epsilon)) / t * (1 - 1 / alpha)^alpha``: corollary 13 of Canonne, Kamath, Steinke, "The Discrete
    Gaussian for Differential Privacy" (2020). Any order gives a bound, so the search for the best
    need not be exact; the errors of the terms are added.

    Parameters
    ----------
    rho
        The parameter, above 0.
    epsilon
        The epsilon, above 0.

    Returns
    -------
    float
        An upper bound of the natural logarithm of delta, at most 0.

    Examples
    --------
    >>> log_delta(0.01, 1.0) < -20.0
    True
    """
    # The derivative by alpha is increasing: (2 alpha - 1) rho - epsilon + log(1 - 1 / alpha).
    low, high = -120.0, math.log1p(epsilon / rho + 1.0 / math.sqrt(rho)) + 1.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        t = math.exp(middle)
        if (2.0 * t + 1.0) * rho - epsilon - math.log1p(1.0 / t) > 0.0:
            high = middle
        else:
            low = middle
    t = math.exp(high)
    terms = (t * (1.0 + t) * rho, -t * epsilon, t * math.log(t), -(1.0 + t) * math.log1p(t))
    return min(0.0, math.fsum(terms) + _ROUNDING * math.fsum(abs(term) for term in terms))


@functools.lru_cache(maxsize=64)
def largest_rho(epsilon: float, delta: float) -> float:
    """Find a parameter of zCDP that gives (epsilon, delta), and hardly any larger one does.

    Parameters
    ----------
    epsilon
        The epsilon, above 0.
    delta
        The delta, above 0 and below 1.

    Returns
    -------
    float
        The parameter: every smaller one gives (epsilon, delta) too.

    Examples
    --------
    >>> round(largest_rho(1.0, 1e-6), 4)
    0.0244
    """
    # A bound of the logarithm itself is compared, and exp and log are not exact.
    goal = math.log(delta) * (1.0 + _ROUNDING) - _ROUNDING
    low, high = -200.0, math.log(epsilon) + 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        if log_delta(math.exp(middle), epsilon) <= goal:
            low = middle
        else:
            high = middle
    return math.exp(low)
