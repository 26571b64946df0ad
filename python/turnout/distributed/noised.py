"""Frequencies and means from sums to which noise of a known law was added.

The one place for it, whoever added the noise. A person who takes part by a coin that nobody sees is
in the sums with a probability: ``sums[i] = Bin(held[i], rate) + noise``.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from turnout._binomial import at_least, first
from turnout._types import Floats, Integers
from turnout.collecting.intervals import StatisticModel
from turnout.distributed.noise import NoiseLaw
from turnout.frequency.estimation.estimators import Estimation
from turnout.mean.estimators import MeanEstimation

#: Of the part that intervals may miss, so much is left out of the law of the noise.
_LEFT_OUT = 1e-3

#: So many outcomes of the noise for all different sums together, and at least for each of them.
_OUTCOMES, _LEAST_OUTCOMES = 2**17, 33


def noised_estimation(
    sums: Integers, received: int, law: NoiseLaw, rate: float = 1.0
) -> Estimation:
    """Estimate frequencies, with their law.

    Parameters
    ----------
    sums
        int64, one for each item.
    received
        How many people are in the sums, whether or not they took part.
    law
        All noise that was added to each sum.
    rate
        The probability that a person takes part; nobody sees who does.

    Returns
    -------
    Estimation
        The frequencies among these people, and limits that hold whatever the counts.

    Examples
    --------
    >>> from turnout.distributed.noise import LaplaceLaw
    >>> law = LaplaceLaw(2.0, required=1, contributors=2)
    >>> found = noised_estimation(np.array([52, 3, -4]), 200, law, rate=0.5)
    >>> found.frequencies
    array([ 0.52,  0.03, -0.04])
    >>> low, high = found.limits(0.95)
    >>> low.round(2), high.round(2)
    (array([0.4, 0. , 0. ]), array([0.66, 0.12, 0.05]))
    """
    model = StatisticModel(
        a=0.0, b=received * rate, v0=law.variance, v1=received * rate * (1.0 - rate)
    )
    statistic = sums.astype(np.float64)
    frequencies = model.frequency(statistic)
    variances = model.variance(np.clip(frequencies, 0.0, 1.0))
    limits = functools.partial(_limits, law, frequencies, received)
    if rate < 1.0:
        limits = functools.partial(_sampled_limits, law, sums, received, rate)
    return Estimation(frequencies, variances, model, statistic, limits=limits)


def noised_means(sums: Integers, received: int, law: NoiseLaw, largest: float) -> MeanEstimation:
    """Estimate means of numbers from 0 to a largest one, with their law; everybody takes part.

    Parameters
    ----------
    sums
        int64, one for each coordinate.
    received
        How many people are in the sums.
    law
        All noise that was added to each sum.
    largest
        The largest number that a person may give.

    Examples
    --------
    >>> from turnout.distributed.noise import LaplaceLaw
    >>> found = noised_means(np.array([4120]), 100, LaplaceLaw(200.0, 1, 2), 120)
    >>> low, high = found.limits(0.95)
    >>> found.means.round(1), low.round(1), high.round(1)
    (array([41.2]), array([33.]), array([49.4]))
    """
    means = sums / received
    variances = np.full(means.shape, law.variance / received**2)
    inside = np.clip(means, 0.0, largest)
    # No numbers with this mean vary more than those that are all at one of the ends.
    population = variances + inside * (largest - inside) / received
    limits = functools.partial(_limits, law, means, received)
    return MeanEstimation(means, variances, population, limits=limits)


def _limits(law: NoiseLaw, estimates: Floats, received: int, level: float) -> tuple[Floats, Floats]:
    """Give limits as far from the estimates as the noise reaches with the probability ``level``."""
    half = law.half_width(level) / received
    return estimates - half, estimates + half


def _sampled_limits(
    law: NoiseLaw, sums: Integers, received: int, rate: float, level: float
) -> tuple[Floats, Floats]:
    """Give limits of the frequencies, by inversion of the tails of ``Bin(held, rate) + noise``.

    All numbers ``held`` for which neither tail at the sum that was seen is below half of what may
    be missed (Clopper and Pearson 1934). Where there are many sums, or the noise is wide, it is put
    into cells, of which each counts as its far end: limits are wider by that, never too narrow.
    """
    seen, places = np.unique(sums, return_inverse=True)
    ends, masses, tail = _cells(law, (1.0 - level) / 2.0, seen.size)

    def more(held: Integers, least: Integers) -> Floats:
        """Bound ``P[Bin(held, rate) + noise >= least]`` from above."""
        beyond = at_least(held[:, None], least[:, None] - ends[None, :], rate)
        result: Floats = beyond @ masses
        return result

    def less(held: Integers, most: Integers) -> Floats:
        """Bound ``P[Bin(held, rate) + noise <= most]`` from above."""
        beyond = at_least(held[:, None], most[:, None] + 1 + ends[None, :], rate)
        result: Floats = (1.0 - beyond) @ masses
        return result

    low = first(lambda held: more(held, seen) >= tail, seen.size, received)
    beyond = first(lambda held: less(held, seen) < tail, seen.size, received)
    low, high = np.minimum(low, received), np.maximum(beyond - 1, 0)
    return low[places] / received, high[places] / received


def _cells(law: NoiseLaw, tail: float, sums: int) -> tuple[Integers, Floats, float]:
    """Give the upper ends of cells of the noise, their masses, and what is left of a tail.

    The noise is symmetric: the lower ends are these with the other sign.
    """
    known = law._masses()
    if known is None:
        # Half of the tail for the noise, which then is as far as it may be.
        return np.array([int(law.half_width(1.0 - tail))]), np.ones(1), 0.5 * tail
    masses, error = known
    left_out = _LEFT_OUT * tail
    reach = min(int(law.half_width(1.0 - 2.0 * left_out)), masses.size - 1)
    masses = np.concatenate([masses[reach:0:-1], masses[: reach + 1]])
    width = math.ceil(masses.size / max(_OUTCOMES // sums, _LEAST_OUTCOMES))
    starts = np.arange(0, masses.size, width)
    ends = np.minimum(starts + width - 1, masses.size - 1) - reach
    return ends, np.maximum(np.add.reduceat(masses, starts), 0.0), tail - 2.0 * left_out - error
