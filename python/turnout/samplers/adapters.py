"""Make references of mixtures, scipy's frozen distributions and scikit-learn's estimators."""

from __future__ import annotations

import copy
import inspect
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats, Truths
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers.base import PrivateSampler
from turnout.samplers.reference import Normal, Reference, StandardNormal, shares_of

LogDensity = Callable[[Floats], Floats]

#: Points drawn to see whether an object draws from what it is given.
_TRIAL = 64

_EXPECTED = (
    "a reference of turnout.samplers, a frozen distribution of scipy.stats, a fitted density of "
    "scikit-learn, or any object with log_density(points) and draw(count, seed=)"
)


def as_reference(value: Any, dimensions: int | None = None) -> Reference:
    """Convert a distribution or a fitted density estimator into a reference.

    Parameters
    ----------
    value
        None (standard normal), a :class:`Reference`, a frozen distribution of :mod:`scipy.stats`
        (univariate for one dimension), a fitted :class:`sklearn.mixture.GaussianMixture` or
        :class:`sklearn.neighbors.KernelDensity` of *public* data, or any object with methods
        ``log_density(points)`` (or ``score_samples``, ``logpdf``) and ``draw(count, seed=)`` (or
        ``sample``, ``rvs``).
    dimensions
        The number of coordinates that it must have. With None, the object says it; your own objects
        do so by an attribute ``dimensions``. If ``value`` is None too, the reference is one
        standard normal number.

    Returns
    -------
    Reference
        The reference.

    Raises
    ------
    InvalidTypeError
        If ``value`` is not one of these.
    InvalidValueError
        If its number of coordinates is not ``dimensions``, or neither of them says what it is.

    Notes
    -----
    Normal distributions, their mixtures and univariate distributions with an inverse distribution
    function are drawn from cryptographic randomness. Other objects draw with their own code. For
    every call they get a NumPy generator with a fresh 256-bit seed from the operating system, or a
    fresh integer of 63 bits if they take ``seed``. Their proposals stay secret as long as nobody
    can continue such a generator's output from a single draw. The object is copied, so fitting it
    again later changes nothing.

    Examples
    --------
    >>> from scipy import stats
    >>> as_reference(stats.gamma(2.0))
    as_reference(gamma(2.0))
    >>> as_reference(stats.gamma(2.0)).dimensions
    1
    """
    if value is None:
        return StandardNormal(1 if dimensions is None else dimensions)
    own = isinstance(value, Reference)
    result = copy.deepcopy(value) if own else _converted(value, dimensions)
    if dimensions is not None and result.dimensions != dimensions:
        raise InvalidValueError(
            f"reference must have the dimension of the data, {dimensions}, got "
            f"{result.dimensions}: "
            f"{_arguments.shown(value)}"
        )
    return result


def _converted(value: Any, dimensions: int | None) -> Reference:
    if isinstance(value, PrivateSampler):
        raise _arguments.mistyped(
            "reference must be public: a fitted sampler knows a person's data", value
        )
    if isinstance(value, type):
        raise InvalidTypeError(f"reference must be {_EXPECTED}, got a class: {value.__name__}")
    if hasattr(value, "get_params") and not _fitted(value):
        raise _arguments.invalid("reference must be fitted on public data first", value)
    if hasattr(value, "means_") and hasattr(value, "covariance_type"):
        return _gaussian_mixture(value)
    if hasattr(value, "ppf") and hasattr(value, "logpdf"):
        return _Univariate(value)
    if hasattr(value, "logpdf") and hasattr(value, "cov_object"):
        return Normal(np.atleast_1d(value.mean), np.atleast_2d(value.cov))
    densities = [
        name for name in ("log_density", "score_samples", "logpdf") if hasattr(value, name)
    ]
    draws = [name for name in ("draw", "sample", "rvs") if hasattr(value, name)]
    if not densities or not draws:
        raise _arguments.mistyped(f"reference must be {_EXPECTED}", value)
    size = getattr(value, "dimensions", getattr(value, "n_features_in_", dimensions))
    if size is None:
        # What frozen multivariate distributions of scipy call it.
        size = getattr(value, "dim", None)
    if not isinstance(size, (int, np.integer)):
        raise InvalidValueError(
            "dimensions must be given for a reference that does not say its own: "
            f"{_arguments.shown(value)}"
        )
    return _Foreign(value, densities[0], draws[0], int(size))


def _named(value: Any) -> str:
    """Describe a foreign distribution by its name and parameters, or by its kind."""
    name = getattr(getattr(value, "dist", None), "name", None)
    if isinstance(name, str):
        given = [_arguments.shown(entry) for entry in getattr(value, "args", ())]
        named = getattr(value, "kwds", {}).items()
        given += [f"{key}={_arguments.shown(entry)}" for key, entry in named]
        return f"as_reference({name}({', '.join(given)}))"
    text = _arguments.shown(value)
    # An address says nothing to anybody.
    bare = text.startswith("<") and " object at 0x" in text
    return f"as_reference({type(value).__name__ if bare else text})"


def _fitted(value: Any) -> bool:
    """Return whether an estimator has attributes that only ``fit`` sets."""
    return any(name.endswith("_") and not name.startswith("_") for name in vars(value))


def _gaussian_mixture(value: Any) -> Mixture:
    means = np.asarray(value.means_)
    size = means.shape[1]
    kind = value.covariance_type
    given = np.asarray(value.covariances_)
    if kind == "tied":
        covariances = [given] * len(means)
    elif kind == "spherical":
        covariances = [np.full(size, variance) for variance in given]
    else:
        covariances = list(given)
    normals = [Normal(mean, matrix) for mean, matrix in zip(means, covariances, strict=True)]
    return Mixture(normals, np.asarray(value.weights_))


class Mixture(Reference):
    """A mixture of references.

    Parameters
    ----------
    components
        References with the same number of coordinates: anything that :func:`as_reference` takes and
        that is drawn from uniform numbers.
    weights
        Their probabilities, non-negative; they are divided by their sum. Equal if None.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are no components, if their dimensions differ, or if ``weights`` is not one
        non-negative number for each component, with a positive sum.

    Examples
    --------
    >>> from turnout.samplers import Uniform
    >>> modes = Mixture([Normal([-2.0], [1.0]), Normal([2.0], [1.0])], [0.3, 0.7])
    >>> modes.dimensions
    1
    >>> from scipy import stats
    >>> Mixture([stats.gamma(2.0), Uniform(0.0, 50.0)], [3, 1])
    Mixture([as_reference(gamma(2.0)), Uniform([0.0], [50.0])], [0.75, 0.25])
    """

    def __init__(self, components: Sequence[Any], weights: Any = None) -> None:
        expected = "a sequence of references"
        given = _arguments.items("components", components, expected)
        self.components: list[Reference] = [
            _component(position, component) for position, component in enumerate(given)
        ]
        if not self.components:
            raise InvalidValueError("components must have at least one reference, got none")
        dimensions = sorted({component.dimensions for component in self.components})
        if len(dimensions) != 1:
            raise InvalidValueError(
                f"components must have one and the same dimension, got {dimensions}"
            )
        count = len(self.components)
        self.weights = shares_of(np.ones(count) if weights is None else weights, count)
        self.dimensions = dimensions[0]
        self.words = 1 + max(component.words for component in self.components)

    def log_density(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, d)."""
        total = np.full(len(points), -np.inf)
        for component, weight in zip(self.components, self.weights, strict=True):
            if weight > 0.0:
                total = np.logaddexp(total, math.log(weight) + component.log_density(points))
        return total

    def _covers(self, points: Floats) -> Truths:
        """Return which points are in the support of a component with a positive weight."""
        parts = zip(self.components, self.weights, strict=True)
        covered = [part._covers(points) for part, weight in parts if weight > 0.0]
        return np.asarray(np.any(covered, axis=0))

    def transform(self, uniforms: Floats) -> Floats:
        """Turn uniform numbers into points; the first number of a row chooses the component."""
        edges = np.cumsum(self.weights)[:-1]
        chosen = np.searchsorted(edges, uniforms[:, 0], side="right")
        result = np.empty((len(uniforms), self.dimensions))
        for index, component in enumerate(self.components):
            rows = chosen == index
            if rows.any():
                words = np.ascontiguousarray(uniforms[rows, 1 : 1 + component.words])
                result[rows] = component.transform(words)
        return result

    def __repr__(self) -> str:
        return f"Mixture({self.components!r}, {self.weights.tolist()})"


def _component(position: int, value: Any) -> Reference:
    name = f"components[{position}]"
    if value is None:
        raise InvalidTypeError(f"{name} must be a reference, got None")
    try:
        component = value if isinstance(value, Reference) else as_reference(value)
    except (InvalidTypeError, InvalidValueError) as error:
        text = str(error)
        ours = text.startswith("reference ")
        raise type(error)(
            text.replace("reference", name, 1) if ours else f"{name}: {text}"
        ) from error
    if component.words < 1:
        raise InvalidValueError(
            f"{name} must be drawn from uniform numbers, but this one draws with its "
            f"own code: {_arguments.shown(value)}"
        )
    return component


class _Univariate(Reference):
    """A distribution of one number with an inverse distribution function."""

    def __init__(self, frozen: Any) -> None:
        # A copy, here and below: an object that is fitted again must not change the reference.
        self._frozen = copy.deepcopy(frozen)
        self.dimensions = self.words = 1
        if np.shape(frozen.ppf(0.5)) != ():
            raise InvalidValueError(
                "reference must be one distribution, got several in an array: "
                f"{_arguments.shown(frozen)}"
            )

    def log_density(self, points: Floats) -> Floats:
        return np.asarray(self._frozen.logpdf(points[:, 0]), np.float64)

    def _covers(self, points: Floats) -> Truths:
        if not hasattr(self._frozen, "support"):
            return super()._covers(points)
        # A density may be zero at the border: that of gamma(2.0) at 0 is.
        low, high = self._frozen.support()
        return np.asarray((points[:, 0] >= low) & (points[:, 0] <= high))

    def transform(self, uniforms: Floats) -> Floats:
        return np.asarray(self._frozen.ppf(uniforms), np.float64).reshape(-1, 1)

    def __repr__(self) -> str:
        return _named(self._frozen)


class _Foreign(Reference):
    """A distribution that draws with its own code."""

    def __init__(self, value: Any, density: str, draw: str, dimensions: int) -> None:
        self._value = copy.deepcopy(value)
        self._density = getattr(self._value, density)
        self._draw = getattr(self._value, draw)
        self.dimensions = dimensions
        self.words = 0
        taken = inspect.signature(self._draw).parameters
        sources = [name for name in ("seed", "random_state", "rng") if name in taken]
        if not sources:
            raise InvalidTypeError(
                f"reference must draw from randomness that it is given: {draw} of "
                f"{_arguments.shown(value)} takes neither seed nor random_state nor rng"
            )
        self._source = sources[0]
        first, again, other = (self.draw(_TRIAL, seed=seed) for seed in (1, 1, 2))
        if not np.array_equal(first, again) or np.array_equal(first, other):
            raise InvalidValueError(
                f"reference must draw from the randomness that it is given, and from nothing else: "
                f"{draw} of {_arguments.shown(value)} does not"
            )

    def _random(self, seed: int | None) -> Any:
        if self._source == "seed":
            return secrets.randbits(63) if seed is None else seed
        if self._source == "rng":
            return _generator(seed)
        # scikit-learn knows no generators.
        legacy: Any = np.random.RandomState
        return legacy(_generator(seed).integers(0, 2**32, 32, np.uint32))

    def log_density(self, points: Floats) -> Floats:
        return np.asarray(self._density(points), np.float64).reshape(-1)

    def transform(self, uniforms: Floats) -> Floats:
        raise NotImplementedError("this reference draws with its own code")

    def draw(self, count: int, *, seed: int | None = None) -> Floats:
        drawn = self._draw(count, **{self._source: self._random(seed)})
        result = np.asarray(drawn, np.float64).reshape(-1, self.dimensions)
        if len(result) != count:
            raise InvalidValueError(
                f"reference must draw {count} points when asked to, got {len(result)}: "
                f"{_arguments.shown(self._value)}"
            )
        # A copy: the object may keep what it returned.
        return np.array(result, order="C")

    def _draw_spread(self, count: int, *, seed: int | None = None) -> Floats:
        return self.draw(count, seed=seed)

    def __repr__(self) -> str:
        return _named(self._value)


def log_density_of(argument: str, value: Any, *, finite: bool = False) -> LogDensity:
    """Return a function that gives one log-density for each point of an array of shape (n, d).

    Parameters
    ----------
    argument, value
        A function of points, or an object with ``log_density``, ``score_samples`` or ``logpdf``.
    finite
        Whether densities must be finite numbers, so that NaN and infinity are refused.

    Raises
    ------
    InvalidTypeError
        If it is not such a function or object.
    """
    methods = (getattr(value, name, None) for name in ("log_density", "score_samples", "logpdf"))
    function: Any = next(filter(callable, methods), value)
    if not callable(function) or isinstance(value, type):
        raise _arguments.mistyped(
            f"{argument} must be a function that gives log-densities at points, or an object with "
            "log_density, score_samples or logpdf",
            value,
        )
    return _LogDensity(argument, function, finite)


@dataclass(frozen=True)
class _LogDensity:
    """A function of points whose results are checked; it can be pickled if the function can."""

    argument: str
    function: LogDensity
    finite: bool

    def __call__(self, at: Floats) -> Floats:
        found = np.asarray(self.function(at), np.float64)
        if found.size != len(at):
            raise InvalidValueError(
                f"{self.argument} must give one log-density for each of {len(at)} points, got "
                f"shape {found.shape}"
            )
        found = found.reshape(len(at))
        wrong = np.flatnonzero(np.isnan(found) | (found == np.inf))
        if self.finite and wrong.size:
            raise InvalidValueError(
                f"{self.argument} must give log-densities below infinity, got {found[wrong[0]]} at "
                f"{at[wrong[0]]}"
            )
        return found


def _generator(seed: int | None) -> np.random.Generator:
    """Make a generator for foreign code that draws, from 256 random bits or from the seed."""
    return np.random.Generator(np.random.Philox(secrets.randbits(256) if seed is None else seed))
