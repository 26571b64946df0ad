"""How close one distribution is to another: likelihood and divergences.

Distributions are given as arrays of probabilities (finite domains) or as log-densities on the line
or in the plane: a callable of points of shape (n, d), or an object with ``score_samples`` (a fitted
sampler, a scikit-learn density), ``log_density`` or ``logpdf`` (scipy's frozen distributions).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers.base import points
from turnout.samplers.study.quadrature import integrate

LogDensity = Callable[[Floats], Floats]

_TOLERANCE = 1e-7
_EVALUATIONS = 2_000_000


@dataclass(frozen=True)
class MeanLoss:
    """A mean over records.

    Attributes
    ----------
    value
        The mean, in nats; infinite if a record has density zero.
    standard_error
        Of the mean, for independent records; NaN for one record or an infinite mean.
    records
        How many there were.
    """

    value: float
    standard_error: float
    records: int

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Divergence:
    """A divergence between two distributions.

    Attributes
    ----------
    value
        The divergence; Kullback-Leibler's is infinite where the other has no mass.
    error
        Zero for finite domains. For densities an estimate of the absolute error of the integral
        over the box, with what the mass outside of it could add for the bounded divergences. It is
        larger than what was asked for where the number of evaluations did not suffice.
    masses
        The masses of both inside of the box. Kullback-Leibler's divergence says nothing about what
        is outside: take a box that holds all of the first distribution.
    """

    value: float
    error: float
    masses: tuple[float, float]

    def __float__(self) -> float:
        return self.value


def log_density(argument: str, given: Any) -> LogDensity:
    """Return a function that gives checked log-densities at points of shape (n, d).

    Raises
    ------
    InvalidTypeError
        If ``given`` is nothing that has a log-density.
    """
    function = next(
        (
            getattr(given, name)
            for name in ("score_samples", "log_density", "logpdf")
            if callable(getattr(given, name, None))
        ),
        given,
    )
    if not callable(function) or isinstance(given, type):
        raise InvalidTypeError(
            f"{argument} must be a callable of points, or an object with score_samples, "
            f"log_density or logpdf, got {_arguments.shown(given)}"
        )

    def checked(where: Floats) -> Floats:
        values = np.asarray(function(where), dtype=np.float64)
        if values.size != len(where):
            raise InvalidValueError(
                f"{argument} must give one log-density for each of {len(where)} points, got shape "
                f"{values.shape}"
            )
        values = values.reshape(len(where))
        wrong = np.isnan(values) | (values == np.inf)
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise InvalidValueError(
                f"{argument} must give log-densities below infinity, got {values[place]} at "
                f"{where[place]}"
            )
        return values

    return checked


def box(bounds: Any) -> tuple[Floats, Floats]:
    """Check the bounds of a box of one or two dimensions: one pair (low, high) for each.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are no such pairs.
    """
    expected = "a pair (low, high), or one for each of two dimensions"
    try:
        array = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _arguments.mistyped(f"bounds must be {expected}", bounds) from error
    if array.shape == (2,):
        array = array[None, :]
    if array.shape not in ((1, 2), (2, 2)):
        raise _arguments.invalid(f"bounds must be {expected}", bounds)
    if not (np.isfinite(array).all() and (array[:, 0] < array[:, 1]).all()):
        raise _arguments.invalid("bounds must be finite with low below high", bounds)
    return array[:, 0], array[:, 1]


def negative_log_likelihood(log_q: Any, samples: Any) -> MeanLoss:
    """Mean of -log q over records: the cross-entropy, if they come from the true distribution.

    Parameters
    ----------
    log_q
        A density, as the module says.
    samples
        Records of shape (n_records, n_features).

    Returns
    -------
    MeanLoss
        The mean in nats and its standard error; infinite if a record has density zero.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the density or the records cannot be used.

    Examples
    --------
    >>> from scipy import stats
    >>> round(negative_log_likelihood(stats.norm(), [[0.0], [1.0]]).value, 4)
    1.1689
    """
    records = points("samples", samples)
    losses = -log_density("log_q", log_q)(records)
    value = float(losses.mean())
    error = math.nan
    if losses.size > 1 and math.isfinite(value):
        error = float(losses.std(ddof=1) / math.sqrt(losses.size))
    return MeanLoss(value, error, losses.size)


def kl_divergence(
    p: Any,
    q: Any,
    *,
    bounds: Any = None,
    tolerance: float = _TOLERANCE,
    max_evaluations: int = _EVALUATIONS,
) -> Divergence:
    """Kullback-Leibler divergence of p from q: the integral of p log(p/q), in nats.

    Parameters
    ----------
    p, q
        Two arrays of probabilities, or two densities, as the module says.
    bounds
        For densities: the pair (low, high), or two of them in the plane, over which to integrate.
    tolerance
        For densities: the absolute error to reach, by the estimate of an embedded rule.
    max_evaluations
        About how many points may be spent on it.

    Returns
    -------
    Divergence
        Infinite where q is zero and p is not.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> kl_divergence([0.5, 0.5], [0.5, 0.5]).value, kl_divergence([0.5, 0.5], [1.0, 0.0]).value
    (0.0, inf)
    >>> from scipy import stats
    >>> round(kl_divergence(stats.norm(), stats.norm(1.0), bounds=(-9, 9)).value, 6)
    0.5
    """
    return _divergence(p, q, _kl_terms, bounds, (tolerance, max_evaluations))


def total_variation(
    p: Any,
    q: Any,
    *,
    bounds: Any = None,
    tolerance: float = _TOLERANCE,
    max_evaluations: int = _EVALUATIONS,
) -> Divergence:
    """Total variation distance: half the integral of ``|p - q|``.

    Parameters
    ----------
    p, q, bounds, tolerance, max_evaluations
        As for :func:`kl_divergence`.

    Returns
    -------
    Divergence
        Between 0 and 1.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> total_variation([0.5, 0.5], [0.75, 0.25]).value
    0.25
    """
    result = _divergence(p, q, _tv_terms, bounds, (tolerance, max_evaluations))
    # What is outside adds between nothing and half of both masses there.
    outside = sum(max(0.0, 1.0 - mass) for mass in result.masses) / 2
    return Divergence(result.value, result.error + outside, result.masses)


def hellinger(
    p: Any,
    q: Any,
    *,
    bounds: Any = None,
    tolerance: float = _TOLERANCE,
    max_evaluations: int = _EVALUATIONS,
) -> Divergence:
    """Hellinger distance: the root of half the integral of (sqrt p - sqrt q)^2.

    Its square is one minus the integral of sqrt(p q).

    Parameters
    ----------
    p, q, bounds, tolerance, max_evaluations
        As for :func:`kl_divergence`; the tolerance is that of the square.

    Returns
    -------
    Divergence
        Between 0 and 1.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> hellinger([1.0, 0.0], [0.0, 1.0]).value
    1.0
    """
    square = _divergence(p, q, _hellinger_terms, bounds, (tolerance, max_evaluations))
    outside = sum(max(0.0, 1.0 - mass) for mass in square.masses) / 2
    value = math.sqrt(max(square.value, 0.0))
    most = math.sqrt(max(square.value, 0.0) + square.error + outside)
    least = math.sqrt(max(square.value - square.error, 0.0))
    return Divergence(value, max(most - value, value - least), square.masses)


def is_array(value: Any) -> bool:
    """Tell rows of numbers from a law."""
    return isinstance(value, (list, tuple, np.ndarray)) or (
        hasattr(value, "__array__") and not hasattr(value, "score_samples")
    )


def distributions(p: Any, q: Any) -> tuple[Floats, Floats]:
    """Check two arrays of probabilities over the same domain."""
    sides = []
    for name, given in (("p", p), ("q", q)):
        array = _arguments.vector(name, given, "a sequence of probabilities").astype(np.float64)
        if array.size == 0 or not (np.isfinite(array) & (array >= 0)).all():
            raise _arguments.invalid(f"{name} must hold probabilities of at least 0", given)
        if abs(array.sum() - 1.0) > 1e-9:
            raise InvalidValueError(f"{name} must add up to 1, got {array.sum():.12g}")
        sides.append(array)
    if sides[0].size != sides[1].size:
        raise InvalidValueError(
            f"p and q must be of one domain, got {sides[0].size} and {sides[1].size} probabilities"
        )
    return sides[0], sides[1]


def _kl_terms(logs_p: Floats, logs_q: Floats) -> Floats:
    terms = np.zeros_like(logs_p)
    held = logs_p > -np.inf
    ratio = logs_p[held] - logs_q[held]
    mass = np.exp(logs_p[held])
    # A density that underflows has no mass.
    terms[held] = np.where(mass > 0.0, mass * np.where(mass > 0.0, ratio, 0.0), 0.0)
    return terms


def _tv_terms(logs_p: Floats, logs_q: Floats) -> Floats:
    terms: Floats = 0.5 * np.abs(np.exp(logs_p) - np.exp(logs_q))
    return terms


def _hellinger_terms(logs_p: Floats, logs_q: Floats) -> Floats:
    terms: Floats = 0.5 * (np.exp(0.5 * logs_p) - np.exp(0.5 * logs_q)) ** 2
    return terms


def _divergence(
    p: Any,
    q: Any,
    terms: Callable[[Floats, Floats], Floats],
    bounds: Any,
    effort: tuple[float, int],
) -> Divergence:
    if is_array(p) or is_array(q):
        if bounds is not None:
            raise InvalidValueError("bounds belong to densities: leave them out for probabilities")
        with np.errstate(divide="ignore"):
            logs = [np.log(side) for side in distributions(p, q)]
        return Divergence(float(terms(*logs).sum()), 0.0, (1.0, 1.0))
    if bounds is None:
        raise InvalidValueError("bounds must be given for densities, got None")
    log_p, log_q = log_density("p", p), log_density("q", q)
    tolerance = _arguments.number("tolerance", effort[0])
    if not 0.0 < tolerance < math.inf:
        raise InvalidValueError(f"tolerance must be a finite number above 0, got {tolerance}")
    evaluations = _arguments.integer("max_evaluations", effort[1], least=1)

    def values(where: Floats) -> Floats:
        sides = log_p(where), log_q(where)
        return np.column_stack([terms(*sides), np.exp(sides[0]), np.exp(sides[1])])

    low, high = box(bounds)
    found = integrate(values, low, high, tolerance=tolerance, evaluations=evaluations)
    value, mass_p, mass_q = found.values.tolist()
    error = float(found.errors[0]) if math.isfinite(value) else 0.0
    return Divergence(value, error, (mass_p, mass_q))
