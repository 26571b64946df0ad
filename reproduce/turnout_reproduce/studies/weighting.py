"""A study of weighted, unweighted and consistent-privacy aggregation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.weighting.weights import (
    combined_variance,
    consistent_privacy,
    positive,
    sampling_variance,
    weights,
    whole,
)
from turnout_reproduce.curves import Curve
from turnout_reproduce.studies.study import Picture, Study

#: The settings of the fair paper's Table 2, and the errors that it prints for uniform data.
PRINTED = {
    "s1": ((0.1, 0.4, 0.7, 1.0), 1.124e-3, 3.757e-3),
    "s2": ((0.1, 0.1, 0.8, 1.0), 1.253e-3, 4.885e-3),
    "s3": ((0.1, 0.1, 0.1, 1.0), 9.52e-4, 7.999e-3),
    "s4": ((0.1, 0.8, 0.7, 1.0), 9.61e-4, 3.233e-3),
}


@dataclass(frozen=True)
class WeightingRecord:
    """The result of one way to aggregate.

    Attributes
    ----------
    method
        ``"inverse_variance"`` and ``"numerical"``: the paper's two solutions, with the variances of
        the mechanism. ``"population"``: inverse variances that count the draw of the users too, as
        :func:`combine` has them. ``"unweighted"``, and ``"consistent"``: with the smallest epsilon
        for all.
    weights
        Of a user of each group, adding up to one.
    trace
        The summed variance over items that comes from the mechanism: the paper's error.
    population_trace
        With the variance of which users were drawn from the population.
    simulated, simulated_error
        The mean squared distance to the population's frequencies over the repeats, and its standard
        error; None without repeats.
    """

    method: str
    weights: tuple[float, ...]
    trace: float
    population_trace: float
    simulated: float | None = None
    simulated_error: float | None = None


def compare_weightings(
    epsilons: npt.ArrayLike,
    sizes: npt.ArrayLike,
    *,
    variance: Callable[[Floats], npt.ArrayLike] | None = None,
    frequencies: npt.ArrayLike | None = None,
    repeats: int = 0,
    seed: int | None = None,
) -> Study[WeightingRecord]:
    """Compare the errors of weighted, unweighted and consistent-privacy aggregation.

    Parameters
    ----------
    epsilons, sizes
        The privacy level and the number of users of each group.
    variance
        Gives the variance of what one user says, summed over items, for each epsilon. By default
        that of the fair paper's sampling: :func:`sampling_variance`.
    frequencies
        Of the items in the population: by default 30 equal ones, as in the paper.
    repeats
        How many times the sampling is simulated, from 2; 0 for not at all.
    seed
        Makes the simulation reproducible.

    Returns
    -------
    Study
        A :class:`WeightingRecord` for each way to aggregate; ``settings`` has ``epsilons`` and
        ``sizes``. The picture shows the weights.

    Raises
    ------
    InvalidValueError
        If a number is out of range, lengths differ, the frequencies do not add up to one, or a
        simulation is asked for with another variance than that of sampling.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> study = compare_weightings([0.1, 0.4, 0.7, 1.0], [250] * 4)
    >>> print(study.table())
    method            weights                          trace  population trace
    inverse_variance  0.03159 0.1477 0.3045 0.5162  0.001202          0.002678
    numerical         0.03159 0.1477 0.3045 0.5162  0.001202          0.002678
    population        0.06017 0.2101 0.3227 0.407   0.001293          0.002521
    unweighted        0.25 0.25 0.25 0.25           0.003277          0.004244
    consistent        0.25 0.25 0.25 0.25           0.009508           0.01047
    """
    levels = positive("epsilons", epsilons, finite=True)
    users = whole("sizes", sizes, levels.size)
    repeats = _arguments.integer("repeats", repeats, least=0, most=1_000_000)
    if repeats and variance is not None:
        raise InvalidValueError(f"repeats must be 0 with a variance of your own, got {repeats}")
    if repeats == 1:
        raise InvalidValueError("repeats must be 0 or at least 2, got 1")
    generator = np.random.default_rng(_arguments.seed(seed))
    given = np.full(30, 1 / 30) if frequencies is None else _distribution(frequencies)
    law = sampling_variance if variance is None else variance
    spread = positive("variance(epsilons)", law(levels), finite=True)
    if spread.size != levels.size:
        raise InvalidValueError(
            f"variance must give one number for each of the {levels.size} groups, got {spread.size}"
        )
    smallest = np.full(levels.size, consistent_privacy(levels))
    records = []
    # A user drawn from the population adds the variance of his indicators.
    drawn = float(1 - (given**2).sum())
    strict = positive("variance(epsilons)", law(smallest), finite=True)
    for method, own, noise, chosen in (
        ("inverse_variance", levels, spread, weights(spread, users)),
        ("numerical", levels, spread, weights(spread, users, method="numerical")),
        ("population", levels, spread, weights(spread + drawn, users)),
        ("unweighted", levels, spread, weights(spread, users, method="unweighted")),
        ("consistent", smallest, strict, weights(strict, users, method="unweighted")),
    ):
        simulated: tuple[float, ...] = ()
        if repeats:
            totals = _simulate(own, users, chosen, given=given, draws=(repeats, generator))
            errors = ((totals - given) ** 2).sum(axis=1)
            simulated = float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(repeats))
        records.append(
            WeightingRecord(
                method,
                tuple(chosen.tolist()),
                combined_variance(chosen, noise, users),
                combined_variance(chosen, noise + drawn, users),
                *simulated,
            )
        )
    epsilons_kept = tuple(levels.tolist())
    curves = tuple(Curve(row.method, epsilons_kept, row.weights) for row in records)
    picture = Picture(curves, "ε of the group", "weight of a user")
    studied = {"epsilons": epsilons_kept, "sizes": tuple(int(size) for size in users)}
    return Study(tuple(records), studied, picture)


def _simulate(
    levels: Floats,
    users: Floats,
    chosen: Floats,
    *,
    given: Floats,
    draws: tuple[int, np.random.Generator],
) -> Floats:
    """Draw users, sample them, aggregate."""
    repeats, generator = draws
    rates = -np.expm1(-levels)
    total = np.zeros((repeats, given.size))
    for rate, size, weight in zip(rates, users, chosen, strict=True):
        held = generator.multinomial(int(size), given, size=repeats)
        total += weight * generator.binomial(held, rate) / rate
    result: Floats = total / (users * chosen).sum()
    return result


def _distribution(frequencies: Any) -> Floats:
    array = _arguments.vector("frequencies", frequencies, "one frequency for each item")
    given = array.astype(np.float64)
    if given.size == 0 or not ((given >= 0) & np.isfinite(given)).all():
        raise _arguments.invalid("frequencies must be non-negative numbers", frequencies)
    if abs(given.sum() - 1) > 1e-9:
        raise InvalidValueError(f"frequencies must add up to 1, got {given.sum()}")
    result: Floats = given / given.sum()
    return result
