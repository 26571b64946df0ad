"""Estimators of a mean from a tally.

Everything is computed on the scale of [-1, 1]. ``t_j`` is the value of node ``j``, and ``y`` the
unbiased estimate of a reported cell, with ``E[y^2] = a + c t^2`` (:class:`SecondMoment`). A
coordinate is reported with probability ``pi_j' = pi_j k / d``: the node takes part, and the
coordinate is one of the ``k`` of ``d`` that the report is about. So every coordinate is a problem
of one dimension.

Variances. Suppose that ``M`` of ``n`` nodes report the coordinate (a simple random sample if ``pi``
is common). The Hajek estimator, their mean, has the variance ``(a + (c - 1) Q) / M + (1 / M - 1 /
n) S^2`` with ``Q`` the mean of ``t^2`` and ``S^2 = n (Q - mean^2) / (n - 1)``. Horvitz-Thompson has
``sum_j [(a + c t_j^2) / pi_j' - t_j^2] / n^2``. ``Q`` is estimated from the squares of the reports
if they are informative. For Duchi's mechanism they are constant, and the variance falls with ``Q``.
Then the least ``Q`` that the mean allows is used. Standard errors are then too large rather than
too small, by a variance of at most ``S^2 / n``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.intervals import StatisticModel, mean_inverse
from turnout.collecting.randomizer import rates_of
from turnout.collecting.tally import BaseTally, nothing_received
from turnout.errors import EstimatorError, InvalidValueError
from turnout.mean.law import MeanLaw
from turnout.participation import Participation


@dataclass(frozen=True)
class MeanEstimation:
    """Estimated means of all coordinates with their variances, in the unit of the values.

    Attributes
    ----------
    means
        The estimates.
    variances
        The variances about the mean of the nodes, whose values are fixed.
    population_variances
        The variances about the mean of a population from which the nodes are drawn.
    degrees
        The degrees of freedom of each coordinate, if the variances come from the reports.
    model, statistic
        The model and the statistic of the mean's position between the bounds, from 0 to 1, if a
        score interval exists.
    limits
        A function from a level to limits of the means, if the law of the error is known. Each limit
        covers with at least that level.
    """

    means: Floats
    variances: Floats
    population_variances: Floats
    degrees: Floats | None = None
    model: StatisticModel | None = None
    statistic: Floats | None = None
    limits: Callable[[float], tuple[Floats, Floats]] | None = None


Estimator = Callable[[BaseTally], MeanEstimation]


def hajek(tally: BaseTally) -> MeanEstimation:
    """Compute the weighted mean of the reports about each coordinate.

    Raises
    ------
    EstimatorError
        If a coordinate has no reports.
    """
    if any(row[0] == 0 for row in tally.sums):
        coordinate = next(j for j, row in enumerate(tally.sums) if row[0] == 0)
        raise nothing_received(f" about coordinate {coordinate}" if tally.received else "")
    if tally.weights is not None:
        return _hajek_personal(tally)
    if tally.oracle.cells == 2 and tally.oracle._sampled == tally.oracle.dimensions:
        return _hajek_bits(tally)
    moment, n = tally.oracle._second_moment, tally.nodes
    constant = moment.constant + moment.rounding
    seen, first, second = _centred(tally.oracle, tally.sums)
    mean = first / seen
    square = _square(tally, mean, second / seen)
    spread = np.maximum(square - mean**2, 0.0)
    perturbation = (constant + moment.excess * square) / seen
    sampling = (1 / seen - 1 / n) * n / (n - 1) if n > 1 else np.zeros_like(seen)
    # E[spread] falls short of the truth by the variance of the mean, which is solved for.
    with np.errstate(divide="ignore"):
        variance = (perturbation + sampling * spread) / np.maximum(1 - sampling, 0.0)
        population = (perturbation + spread / seen) / (1 - 1 / seen)
    return _scaled(tally, mean, variance, population, degrees=seen - 1)


def _hajek_bits(tally: BaseTally) -> MeanEstimation:
    """Compute Hajek's estimator for reports of one of two cells and a common rate.

    The number of upper cells among ``S`` reports is less spread than a binomial number with the
    same mean. It is binomial if the nodes are drawn from a population.
    """
    reports = tally.received
    exact = 1 / tally.oracle._scale
    gain, low, high = float(exact), float((1 - exact) / 2), float((1 + exact) / 2)
    model = StatisticModel(
        a=reports * low,
        b=reports * gain,
        v0=reports * low * high,
        v1=reports * gain**2,
        v2=-reports * gain**2,
        trials=reports,
    )
    statistic = np.array([float(row[1]) for row in tally.sums])
    places = model.frequency(statistic)
    variance = 4 * model.variance(np.clip(places, 0.0, 1.0))
    scaled = _scaled(tally, 2 * places - 1, variance, variance)
    return replace(scaled, model=model, statistic=statistic)


def _hajek_personal(tally: BaseTally) -> MeanEstimation:
    """Compute Hajek's estimator with a rate for each node: the linearised ratio."""
    moment, n = tally.oracle._second_moment, tally.nodes
    constant = moment.constant + moment.rounding
    (zero, first, second), (zeros, firsts, seconds) = _weighted(tally)
    mean = first / zero
    square = _square(tally, mean, second / zero)
    # As many reports of equal weight as these are worth (Kish); one is taken by the estimate.
    degrees = zero**2 / zeros - 1.0
    residuals = seconds - 2 * mean * firsts + mean**2 * zeros
    # Not below what the mechanism alone gives, however alike the reports happen to be: the least
    # E[(y - mean)^2] of any value.
    inside = np.clip(np.abs(mean), 0.0, 1.0)
    gap = -2 * inside + inside**2 if moment.slope == 0 else inside**2 * moment.excess / moment.slope
    least = zeros * (constant + gap)
    few = degrees < 1e-9
    share = (degrees + 1.0) / np.where(few, 1.0, degrees)
    population = np.where(few, np.inf, np.maximum(residuals * share, least) / zero**2)
    spread = np.maximum(square - mean**2, 0.0)
    return _scaled(
        tally,
        mean,
        np.maximum(population - spread / n, 0.0),
        population,
        degrees=np.where(few, 1.0, degrees),
    )


def horvitz_thompson(tally: BaseTally) -> MeanEstimation:
    """Compute the sum of the inversely weighted reports, divided by the number of nodes.

    Raises
    ------
    EstimatorError
        With personal probabilities, if there are no reports.
    """
    moment, n = tally.oracle._second_moment, tally.nodes
    constant = moment.constant + moment.rounding
    rate = tally.participation.uniform_rate
    if rate is None:
        if any(row[0] == 0 for row in tally.sums):
            raise EstimatorError(
                '"horvitz_thompson" with personal probabilities estimates its variance from the '
                "reports, and about some coordinate none were received"
            )
        (zero, first, second), (zeros, _, seconds) = _weighted(tally)
        mean = first / n
        square = _square(tally, mean, second / zero)
        # Unbiased; and not below what the mechanism alone gives, whatever the values.
        total = seconds / n
        least = (constant if moment.slope else 0.0) * zeros / n
    else:
        share = rate * tally.oracle._sampled / tally.oracle.dimensions
        seen, first, second = _centred(tally.oracle, tally.sums)
        mean = first / (n * share)
        average = np.where(seen > 0, second / np.maximum(seen, 1.0), np.inf)
        square = _square(tally, mean, average)
        total = (constant + moment.slope * square) / share
        least = np.zeros_like(mean)
    inside = np.clip(mean, -1.0, 1.0) ** 2
    variance = np.maximum(total - np.maximum(square, inside), least) / n
    return _scaled(tally, mean, variance, np.maximum(total - inside, least) / n)


def _square(tally: BaseTally, mean: Floats, second: Floats) -> Floats:
    """Estimate the mean of ``t^2``, or return the least value that the mean allows."""
    moment = tally.oracle._second_moment
    square: Floats = np.clip(mean, -1.0, 1.0) ** 2
    if moment.slope != 0.0:
        square = np.clip((second - moment.constant) / moment.slope, 0.0, 1.0)
    return square


def _weighted(tally: BaseTally) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """Add up powers of the reports with weights ``1/pi'`` and ``1/pi'^2``."""
    rows = tally.weights or ()
    share = tally.oracle.dimensions / tally.oracle._sampled
    unit = 2.0**-32
    inverse = _centred(tally.oracle, [row[:3] for row in rows])
    squared = _centred(tally.oracle, [row[3:] for row in rows])
    return (
        tuple(share * unit * part for part in inverse),
        tuple(share**2 * unit * part for part in squared),
    )


def _centred(law: MeanLaw, rows: Sequence[Sequence[int]]) -> tuple[Floats, ...]:
    """Convert sums over cells to sums of powers of the corresponding estimates.

    The centre is subtracted exactly, in integers.
    """
    last, scale = law.cells - 1, float(law._scale)
    zero = np.array([float(row[0]) for row in rows])
    first = np.array([float(2 * row[1] - last * row[0]) for row in rows])
    second = np.array(
        [float(4 * row[2] - 4 * last * row[1] + last * last * row[0]) for row in rows]
    )
    return zero, scale * first, scale**2 * second


def _scaled(
    tally: BaseTally,
    mean: Floats,
    variance: Floats,
    population: Floats,
    *,
    degrees: Floats | None = None,
) -> MeanEstimation:
    """Convert the estimation to the unit of the values."""
    domain = tally.oracle.domain
    half = domain._half
    return MeanEstimation(
        domain._middle + half * mean, half**2 * variance, half**2 * population, degrees
    )


#: All estimators by name.
ESTIMATORS: dict[str, Estimator] = {"hajek": hajek, "horvitz_thompson": horvitz_thompson}


def mean_variances(
    mechanism: MeanLaw, participation: Participation, method: str, values: npt.ArrayLike
) -> float | Floats:
    """Compute the exact variance of the mean of given values.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        As :func:`turnout.estimator_variance`.
    """
    _arguments.choice("method", method, tuple(ESTIMATORS))
    array = mechanism.domain.encode(values)
    nodes = len(array)
    if nodes == 0:
        raise InvalidValueError("expected at least one node")
    positions = mechanism._positions(array.reshape(nodes, -1))
    rates = np.asarray(rates_of(participation))
    if rates.ndim and rates.size != nodes:
        raise InvalidValueError(
            f"probabilities and values must have the same length, got {rates.size} and {nodes}"
        )
    share = (rates * mechanism._sampled / mechanism.dimensions).reshape(-1, 1)
    mean = positions.mean(axis=0)
    if method == "horvitz_thompson":
        variance = mechanism._noise(positions, share).sum(axis=0) / nodes**2
    elif participation.uniform_rate is not None:
        inverse = mean_inverse(nodes, float(share[0, 0]))
        perturbation = mechanism._noise(positions, 1.0).mean(axis=0)
        spread = ((positions - mean) ** 2).mean(axis=0)
        sampling = (nodes * inverse - 1) / (nodes - 1) if nodes > 1 else 0.0
        variance = perturbation * inverse + spread * sampling
    else:
        about = (mechanism._noise(positions, 1.0) + (positions - mean) ** 2) / share
        variance = (about - (positions - mean) ** 2).sum(axis=0) / nodes**2
    scaled: Floats = variance * mechanism.domain._half**2
    return float(scaled[0]) if mechanism.dimensions == 1 else scaled
