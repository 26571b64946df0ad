"""How close one distribution is to another: likelihood, divergences and mode coverage.

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
from turnout.accounting.values import positive
from turnout.errors import InvalidValueError
from turnout.samplers._arguments import points
from turnout.samplers.adapters import log_density_of
from turnout.samplers.reference import box
from turnout_reproduce.measures.quadrature import integrate

_TOLERANCE = 1e-7
_EVALUATIONS = 2_000_000

#: Cells to the side of the box in which level sets are found, where there are no draws.
_LATTICE = {1: 1 << 16, 2: 512}


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
    losses = -log_density_of("log_q", log_q, finite=True)(records)
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


def _is_array(value: Any) -> bool:
    """Tell rows of numbers from a law."""
    return isinstance(value, (list, tuple, np.ndarray)) or (
        hasattr(value, "__array__") and not hasattr(value, "score_samples")
    )


def _distributions(p: Any, q: Any) -> tuple[Floats, Floats]:
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
    if _is_array(p) or _is_array(q):
        if bounds is not None:
            raise InvalidValueError("bounds belong to densities: leave them out for probabilities")
        with np.errstate(divide="ignore"):
            logs = [np.log(side) for side in _distributions(p, q)]
        return Divergence(float(terms(*logs).sum()), 0.0, (1.0, 1.0))
    if bounds is None:
        raise InvalidValueError("bounds must be given for densities, got None")
    log_p, log_q = log_density_of("p", p, finite=True), log_density_of("q", q, finite=True)
    tolerance = positive("tolerance", effort[0])
    evaluations = _arguments.integer("max_evaluations", effort[1], least=1)

    def values(where: Floats) -> Floats:
        sides = log_p(where), log_q(where)
        return np.column_stack([terms(*sides), np.exp(sides[0]), np.exp(sides[1])])

    low, high = box(bounds)
    found = integrate(values, low, high, tolerance=tolerance, evaluations=evaluations)
    value, mass_p, mass_q = found.values.tolist()
    error = float(found.errors[0]) if math.isfinite(value) else 0.0
    return Divergence(value, error, (mass_p, mass_q))


@dataclass(frozen=True)
class Coverage:
    """How much of a distribution lies where another one has most of its mass.

    Attributes
    ----------
    value
        The mass of the first distribution on the densest part of the second that holds the level.
    standard_error
        From samples: of the samples of the first distribution, and of the threshold if it comes
        from draws of the second. Zero where both were computed.
    threshold
        The log-density (log-probability) from which a point belongs to the densest part.
    level
        The mass of the densest part that was asked for.
    """

    value: float
    standard_error: float
    threshold: float
    level: float

    def __float__(self) -> float:
        return self.value


def mode_coverage(
    p: Any,
    q: Any,
    *,
    level: float = 0.95,
    draws: Any = None,
    bounds: Any = None,
    cells: int | None = None,
) -> Coverage:
    """Mass of p where q is densest: with t such that Q(log q > t) >= level, P(log q > t).

    A value far below the level tells that q misses modes of p. A value near it tells little by
    itself: a wide q covers everything.

    Parameters
    ----------
    p
        Records of p of shape (n_records, n_features), or a density; for a finite domain an array
        of probabilities.
    q
        A density, as this module says; for a finite domain an array of
        probabilities.
    level
        The mass of q's densest part.
    draws
        Draws of q, from which the threshold is taken. Without them it is computed over ``bounds``.
    bounds
        The box, in one or two dimensions: needed where p is a density, or there are no draws.
    cells
        The number of cells to the side of the box: 65,536 on the line and 512 in the plane by
        default.

    Returns
    -------
    Coverage
        With standard errors where samples come in.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Notes
    -----
    With draws the densest part is that of the fewest points with the largest density that make up
    the level, ties included, so that it never has less than the level. The error of its threshold
    is taken from how the coverage changes when the level moves by its own standard error. Without
    draws the level set is found on the midpoints of the cells.

    Examples
    --------
    >>> mode_coverage([0.5, 0.5, 0.0], [0.8, 0.1, 0.1], level=0.7).value
    0.5
    >>> from scipy import stats
    >>> round(mode_coverage(stats.norm(0, 2), stats.norm(), bounds=(-20, 20)).value, 3)
    0.673
    """
    level = _arguments.confidence("level", level)
    if _is_array(q):
        return _finite_coverage(*_distributions(p, q), level)
    log_q = log_density_of("q", q, finite=True)
    lattice = None if bounds is None else _lattice(*box(bounds), cells)
    if lattice is None and (draws is None or not _is_array(p)):
        raise InvalidValueError("bounds must be given where p is a density or q has no draws")
    of_q = None if lattice is None else log_q(lattice[0])
    if draws is not None:
        own = log_q(points("draws", draws))
        weights = np.full(own.size, 1.0 / own.size)
        spread = math.sqrt(level * (1 - level) / own.size)
    else:
        assert lattice is not None
        assert of_q is not None
        own, spread = of_q, 0.0
        weights = np.exp(own) * lattice[1]
        _check_mass("q", float(weights.sum()), level)
    if _is_array(p):
        reached = log_q(points("p", p))
        masses = np.full(reached.size, 1.0 / reached.size)
    else:
        assert lattice is not None
        assert of_q is not None
        reached = of_q
        masses = np.exp(log_density_of("p", p, finite=True)(lattice[0])) * lattice[1]
    threshold = _threshold(own, weights, level)
    value = float(masses[reached >= threshold].sum())
    square = value * (1 - value) / reached.size if _is_array(p) else 0.0
    if spread:
        sides = [
            float(masses[reached >= _threshold(own, weights, side)].sum())
            for side in (max(level - spread, 0.0), min(level + spread, 1.0))
        ]
        square += ((sides[1] - sides[0]) / 2) ** 2
    return Coverage(min(value, 1.0), math.sqrt(max(square, 0.0)), threshold, level)


def _threshold(values: Floats, weights: Floats, level: float) -> float:
    """Find the largest value such that those from it on have at least a share of the weights."""
    order = np.argsort(-values, kind="stable")
    held = np.cumsum(weights[order])
    place = int(np.searchsorted(held, level * held[-1] * (1 - 1e-12)))
    return float(values[order[min(place, values.size - 1)]])


def _finite_coverage(p: Floats, q: Floats, level: float) -> Coverage:
    with np.errstate(divide="ignore"):
        logs = np.log(q)
    threshold = _threshold(logs, q, level)
    # Probabilities that differ by rounding alone belong together.
    inside = (logs >= threshold) | (np.abs(q - math.exp(threshold)) <= 1e-12)
    return Coverage(min(float(p[inside].sum()), 1.0), 0.0, threshold, level)


def _lattice(low: Floats, high: Floats, cells: int | None) -> tuple[Floats, float]:
    """Give the midpoints of equal cells, and the volume of a cell."""
    count = _LATTICE[low.size]
    if cells is not None:
        count = _arguments.integer("cells", cells, least=2, most=2 ** (24 // low.size))
    sides = (high - low) / count
    axes = [start + side * (np.arange(count) + 0.5) for start, side in zip(low, sides, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, low.size)
    return grid, float(np.prod(sides))


def _check_mass(argument: str, mass: float, level: float) -> None:
    if mass < level:
        raise InvalidValueError(
            f"bounds must hold a mass of at least level = {level:g} of {argument}, got {mass:.4g}"
        )
