"""Exact design-based variances of the estimators of a mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.statistic import mean_inverse
from turnout.collecting.taking_part import rates_of
from turnout.errors import InvalidValueError
from turnout.mean.estimators import ESTIMATORS
from turnout.mean.law import MeanLaw
from turnout.participation import Participation, stated_participation


def estimator_variance(
    mechanism: MeanLaw,
    participation: Participation | float,
    values: npt.ArrayLike,
    *,
    method: str = "hajek",
) -> float | Floats:
    """Compute the exact variance of the estimated mean of given values.

    The values are fixed; participation and perturbation are random.

    Parameters
    ----------
    mechanism
        The randomizer.
    participation
        Who takes part; a number is the rate of all.
    values
        The values of all nodes, as for :meth:`MeanMechanism.randomize`.
    method
        The estimator, as in :meth:`MeanTally.estimate`.

    Returns
    -------
    float or numpy.ndarray
        The variance, one for each coordinate. For ``"hajek"`` given that there is a report of the
        coordinate: exact for a common rate, of the linearised ratio for personal probabilities.

    Raises
    ------
    InvalidValueError
        If a value is outside the bounds, there are no nodes, or shapes do not fit.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> values = [0.2, 0.4, 0.6] * 100
    >>> round(tn.mean.estimator_variance(tn.mean.Duchi(1.0), tn.Everyone(), values) * 300, 3)
    4.496
    """
    _arguments.instance("mechanism", mechanism, MeanLaw, "a mechanism for means")
    participation = stated_participation(participation)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    array = mechanism.domain.encode(values)
    nodes = len(array)
    if nodes == 0:
        raise InvalidValueError("there must be at least one node, got none")
    positions = mechanism.positions(array.reshape(nodes, -1))
    rates = np.asarray(rates_of(participation))
    if rates.ndim and rates.size != nodes:
        raise InvalidValueError(
            f"probabilities and values must have the same length, got {rates.size} and {nodes}"
        )
    share = (rates * mechanism.sampled / mechanism.dimensions).reshape(-1, 1)
    mean = positions.mean(axis=0)
    if method == "horvitz_thompson":
        variance = mechanism.noise(positions, share).sum(axis=0) / nodes**2
    elif participation.uniform_rate is not None:
        inverse = mean_inverse(nodes, float(share[0, 0]))
        perturbation = mechanism.noise(positions, 1.0).mean(axis=0)
        spread = ((positions - mean) ** 2).mean(axis=0)
        sampling = (nodes * inverse - 1) / (nodes - 1) if nodes > 1 else 0.0
        variance = perturbation * inverse + spread * sampling
    else:
        about = (mechanism.noise(positions, 1.0) + (positions - mean) ** 2) / share
        variance = (about - (positions - mean) ** 2).sum(axis=0) / nodes**2
    scaled: Floats = variance * mechanism.domain.half**2
    return float(scaled[0]) if mechanism.dimensions == 1 else scaled
