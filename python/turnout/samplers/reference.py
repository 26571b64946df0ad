"""Define public reference distributions, which proposals are drawn from."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._types import Floats, Truths
from turnout.errors import InvalidValueError
from turnout.samplers._arguments import points

#: What the parameters of references must be.
_NUMBERS = "an array of real numbers"

_LOG_TWO_PI = math.log(2.0 * math.pi)

#: Fractional parts of multiples of powers of 1/g_d spread evenly over the d-dimensional cube, where
#: g_d solves x^(d+1) = x + 1: the golden ratio for d = 1.
_ITERATIONS = 64


class Reference(abc.ABC):
    """A public distribution Q0 over points, from which proposals are drawn.

    It must not depend on anybody's private data. Subclasses say how uniform numbers become points,
    so that every proposal is made from cryptographic randomness.

    Attributes
    ----------
    dimensions
        The number of coordinates of a point.
    words
        How many uniform numbers make a point.
    """

    dimensions: int
    words: int

    @abc.abstractmethod
    def log_density(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, dimensions), in nats."""

    @abc.abstractmethod
    def transform(self, uniforms: Floats) -> Floats:
        """Turn uniform numbers in (0, 1), of shape (n, words), into points."""

    def _covers(self, points: Floats) -> Truths:
        """Return which points of shape (n, dimensions) are in the support or on its border.

        Unless a subclass says otherwise, these are the points where the density is not zero.

        Returns
        -------
        numpy.ndarray
            bool of shape (n,).

        Examples
        --------
        >>> Uniform(17.0, 90.0)._covers(np.array([[17.0], [95.0]]))
        array([ True, False])
        """
        with np.errstate(all="ignore"):
            return ~np.isneginf(self.log_density(points))

    def draw(self, count: int, *, seed: int | None = None) -> Floats:
        """Draw independent points.

        Parameters
        ----------
        count
            The number of points.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            float64 of shape (count, dimensions).
        """
        flat = _core.uniforms(count * self.words, seed)
        return self.transform(flat.reshape(count, self.words))

    def _draw_spread(self, count: int, *, seed: int | None = None) -> Floats:
        """Draw points that each follow the distribution and together cover it evenly.

        They come from a lattice of uniform numbers under one random shift. Every point by itself is
        distributed as from :meth:`draw`, but the points are not independent.

        Parameters
        ----------
        count
            The number of points.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            float64 of shape (count, dimensions).
        """
        shift = _core.uniforms(self.words, seed)
        lattice = np.arange(count)[:, None] * _steps(self.words, count)[None, :]
        shifted = (lattice + shift) % 1.0
        return self.transform(np.clip(shifted, 2.0**-54, 1.0 - 2.0**-53))


def _steps(words: int, count: int) -> Floats:
    if words == 1:
        return np.array([1.0 / count])
    root = 1.5
    for _ in range(_ITERATIONS):
        root = (1.0 + root) ** (1.0 / (words + 1))
    return np.array([root**-power for power in range(1, words + 1)])


class Normal(Reference):
    """A normal distribution.

    Parameters
    ----------
    mean
        Its mean, of shape (d,).
    covariance
        Its covariance, positive definite of shape (d, d); or variances of shape (d,).

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the arguments are not finite numbers of these shapes or the covariance is not positive
        definite.

    Examples
    --------
    >>> import numpy as np
    >>> reference = Normal([170.0, 70.0], [[100.0, 50.0], [50.0, 150.0]])
    >>> reference.draw(3, seed=1).shape
    (3, 2)
    >>> np.round(reference.log_density(np.array([[170.0, 70.0]])), 3)
    array([-6.555])
    """

    def __init__(self, mean: Any, covariance: Any) -> None:
        self.mean = _point("mean", mean)
        self.dimensions = self.words = self.mean.size
        given = _arguments.as_array("covariance", covariance, _NUMBERS)
        matrix = np.diag(given) if given.ndim == 1 else np.atleast_2d(given)
        self.covariance = points("covariance", matrix).copy()
        if self.covariance.shape != (self.dimensions, self.dimensions):
            raise InvalidValueError(
                f"covariance must have the shape ({self.dimensions}, {self.dimensions}) of the "
                f"mean, got {self.covariance.shape}"
            )
        if not np.allclose(self.covariance, self.covariance.T, rtol=1e-9, atol=0.0):
            raise InvalidValueError("covariance must be symmetric")
        try:
            self._root = np.linalg.cholesky(self.covariance)
        except np.linalg.LinAlgError as error:
            raise InvalidValueError("covariance must be positive definite") from error
        self._whitening = np.linalg.inv(self._root).T
        self._log_scale = float(np.log(np.diag(self._root)).sum())

    def log_density(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, d)."""
        whitened = (points - self.mean) @ self._whitening
        squares = np.einsum("ij,ij->i", whitened, whitened)
        result: Floats = -0.5 * (squares + self.dimensions * _LOG_TWO_PI) - self._log_scale
        return result

    def transform(self, uniforms: Floats) -> Floats:
        """Turn uniform numbers of shape (n, d) into points."""
        from scipy.special import ndtri  # noqa: PLC0415 (slow to import)

        result: Floats = self.mean + ndtri(uniforms) @ self._root.T
        return result

    def __repr__(self) -> str:
        return f"Normal({self.mean.tolist()}, {self.covariance.tolist()})"


class StandardNormal(Normal):
    """The standard normal distribution in d dimensions: the default reference.

    Parameters
    ----------
    dimensions
        The number of coordinates.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``dimensions`` is not a positive integer.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(StandardNormal(1).log_density(np.zeros((1, 1))), 4)
    array([-0.9189])
    """

    def __init__(self, dimensions: int = 1) -> None:
        size = _arguments.integer("dimensions", dimensions, least=1)
        super().__init__(np.zeros(size), np.ones(size))

    def log_density(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, d)."""
        # Nothing to whiten: a product with a matrix takes long where there are many coordinates.
        squares = np.einsum("ij,ij->i", points, points)
        result: Floats = -0.5 * (squares + self.dimensions * _LOG_TWO_PI)
        return result

    def __repr__(self) -> str:
        return f"StandardNormal({self.dimensions})"


class Uniform(Reference):
    """The uniform distribution on a box.

    For records of integers from a to b, use ``Uniform(a - 0.5, b + 0.5)`` and round the draws:
    every integer then has a cell of length one. With ``Uniform(a, b)``, each end has only half a
    cell.

    Parameters
    ----------
    low, high
        The corners of the box, of shape (d,); numbers are read as one dimension.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the arguments are not finite numbers, differ in shape, or ``low`` is not below ``high``.

    Examples
    --------
    >>> import numpy as np
    >>> ages = Uniform(17.0, 90.0)
    >>> ages.log_density(np.array([[30.0], [95.0]]))
    array([-4.29045944,        -inf])
    """

    def __init__(self, low: Any, high: Any) -> None:
        self.low = _point("low", low)
        self.high = _point("high", high)
        if self.low.shape != self.high.shape:
            raise InvalidValueError(
                f"low and high must have the same shape, got {self.low.shape} and {self.high.shape}"
            )
        with np.errstate(over="ignore"):
            finite = bool(np.isfinite(self.high - self.low).all())
        if not (self.low < self.high).all() or not finite:
            raise InvalidValueError(
                "low must be below high in every coordinate and their difference finite, got "
                f"low = {self.low.tolist()}, high = {self.high.tolist()}"
            )
        self.dimensions = self.words = self.low.size
        self._level = -float(np.log(self.high - self.low).sum())

    def log_density(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, d)."""
        inside = ((points >= self.low) & (points <= self.high)).all(axis=1)
        return np.where(inside, self._level, -np.inf)

    def transform(self, uniforms: Floats) -> Floats:
        """Turn uniform numbers of shape (n, d) into points."""
        result: Floats = np.clip(self.low + uniforms * (self.high - self.low), self.low, self.high)
        return result

    def __repr__(self) -> str:
        return f"Uniform({self.low.tolist()}, {self.high.tolist()})"


def box(bounds: Any, dimensions: int | None = None) -> tuple[Floats, Floats]:
    """Return the low and high sides of a public box: from one pair for all features, or one each.

    Parameters
    ----------
    bounds
        The pairs.
    dimensions
        How many features there are; None for as many as there are pairs, one or two.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are not such pairs.
    """
    expected = "a pair (low, high), or one for each of two dimensions"
    if dimensions is not None:
        expected = f"a pair (low, high), or {dimensions} pairs: one for each feature"
    pairs = _arguments.as_array("bounds", bounds, expected)
    if pairs.dtype.kind not in "iuf":
        raise _arguments.mistyped(f"bounds must be {expected}", bounds)
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (dimensions or 1, 1))
    if pairs.shape not in [
        (count, 2) for count in ((1, 2) if dimensions is None else (dimensions,))
    ]:
        raise InvalidValueError(
            f"bounds must be {expected}, got {_arguments.shown(bounds)} of shape {pairs.shape}"
        )
    low, high = pairs.T.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        widths = high - low
    if not (np.isfinite(widths) & (widths > 0.0)).all():
        raise _arguments.invalid("bounds must be finite with low < high for each feature", bounds)
    return low, high


def check_support(name: str, records: Floats, reference: Reference) -> None:
    """Refuse records outside the support of a reference: no draw could be there.

    Raises
    ------
    InvalidValueError
        If there are any; the message says how many, and which is the first.
    """
    outside = np.flatnonzero(~reference._covers(records))
    if outside.size:
        first = int(outside[0])
        raise InvalidValueError(
            f"{name} must be within the support of the reference, {_arguments.shown(reference)}: "
            f"{outside.size:,} of {len(records):,} records are outside, the first is "
            f"{name}[{first}]. Take a reference that covers all that a record can be, whatever the "
            "data"
        )


def shares_of(weights: Any, count: int) -> Floats:
    """Divide weights by their sum: one for each part, non-negative, and not all zero."""
    expected = f"{count} non-negative numbers with a positive sum, one for each part"
    given = _arguments.vector("weights", weights, expected).astype(np.float64)
    usable = given.size == count > 0 and bool(np.isfinite(given).all() and (given >= 0.0).all())
    if not usable or not given.max() > 0.0:
        raise _arguments.invalid(f"weights must be {expected}", weights)
    # Relative to the largest, so that no sum overflows.
    relative = given / given.max()
    result: Floats = relative / relative.sum()
    return result


def _point(argument: str, value: Any) -> Floats:
    array = _arguments.as_array(argument, value, _NUMBERS)
    result: Floats = points(argument, np.atleast_2d(array))[0].copy()
    return result
