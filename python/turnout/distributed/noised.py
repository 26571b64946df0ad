"""Frequencies and means from sums with noise of a known law.

The one place for it, whoever added the noise. A person who takes part by a coin that nobody sees is
in the sums with a probability: ``sums[i] = Bin(held[i], rate) + noise``.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from turnout._binomial import at_least, first
from turnout._types import Floats, Integers, Truths
from turnout.collecting.intervals import StatisticModel
from turnout.distributed.noise import Cover, NoiseLaw
from turnout.frequency.estimation.estimators import Estimation
from turnout.mean.estimators import MeanEstimation

#: Of the part that intervals may miss, so much is left out of the law of the noise.
_LEFT_OUT = 1e-3

#: Where numbers are added up: so many cells for a standard deviation, the most cells, and the
#: chance that they may have wrong.
_CELLS, _MOST_CELLS, _WRONG = 64, 2**14, 1e-11

#: So many outcomes of the noise for all different sums together, and at least for each of them.
_OUTCOMES, _LEAST_OUTCOMES = 2**17, 33


def noised_estimation(
    sums: Integers, received: int, law: NoiseLaw, rate: float = 1.0
) -> Estimation:
    """Estimate frequencies and the law of the estimate.

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


def noised_means(
    sums: Integers,
    received: int,
    law: NoiseLaw,
    largest: int,
    *,
    low: float = 0.0,
    rate: float = 1.0,
) -> MeanEstimation:
    """Estimate means of whole numbers and the law of the estimate.

    Parameters
    ----------
    sums
        int64, one for each coordinate: of what the numbers are above the lower bound.
    received
        How many people are in the sums, whether or not they took part.
    law
        All noise that was added to each sum.
    largest
        By how much a number may be above the lower bound.
    low
        The lower bound, which people who do not take part also add.
    rate
        The probability that a person takes part; nobody sees who does.

    Returns
    -------
    MeanEstimation
        The means among these people, and limits that hold whatever the numbers. How much the coins
        move a sum depends on the squares of the numbers, which nobody knows. So variances are the
        largest that numbers with the mean can have: those of numbers at either bound.

    Examples
    --------
    >>> from turnout.distributed.noise import LaplaceLaw
    >>> law = LaplaceLaw(200.0, 1, 2)
    >>> found = noised_means(np.array([4120]), 100, law, 120)
    >>> low, high = found.limits(0.95)
    >>> found.means.round(1), low.round(1), high.round(1)
    (array([41.2]), array([33.]), array([49.4]))
    >>> found = noised_means(np.array([2060]), 100, law, 120, low=18, rate=0.5)
    >>> low, high = found.limits(0.95)
    >>> found.means.round(1), low.round(1), high.round(1)
    (array([59.2]), array([34.8]), array([88.8]))
    """
    above = sums / (received * rate)
    inside = np.clip(above, 0.0, largest)
    coins = (1.0 - rate) / rate * largest * inside / received
    variances = law.variance / (received * rate) ** 2 + coins
    # No numbers with this mean vary more than those that are all at one of the ends.
    population = variances + inside * (largest - inside) / received
    limits = functools.partial(_limits, law, low + above, received)
    if rate < 1.0:
        taking = _Taking(law, largest)
        limits = functools.partial(
            _sampled_means_limits, taking, sums, received, rate=rate, low=low
        )
    return MeanEstimation(low + above, variances, population, limits=limits)


def _limits(law: NoiseLaw, estimates: Floats, received: int, level: float) -> tuple[Floats, Floats]:
    """Return limits around the estimates that contain the noise with the probability ``level``."""
    half = law.half_width(level) / received
    return estimates - half, estimates + half


def _sampled_limits(
    law: NoiseLaw, sums: Integers, received: int, rate: float, level: float
) -> tuple[Floats, Floats]:
    """Return limits of frequencies by inverting the tails of ``Bin(held, rate) + noise``.

    They enclose all numbers ``held`` for which neither tail at the observed sum is below half of
    the error level (Clopper and Pearson 1934). With many sums or wide noise, the noise is put into
    cells, and each cell counts as its far end. This can only widen the limits.
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
    """Return the upper ends of cells of the noise, their masses, and the remaining tail.

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


def _sampled_means_limits(
    taking: _Taking, sums: Integers, received: int, level: float, *, rate: float, low: float
) -> tuple[Floats, Floats]:
    """Return limits of means that are valid for any numbers with that mean.

    Of all numbers with one sum, those at the bounds make the sum of those that take part largest in
    the convex order (Marshall and Olkin 1979, chapter 12): it is ``largest Bin(held, rate)``, with
    as many people at the upper bound as the sum has room for. So no tail is larger than the mean of
    a convex function above its step (Bentkus 2004). The limits enclose all sums for which neither
    tail at the observed sum is below half of the error level, rounded outwards to a whole person.
    """
    tail = (1.0 - level) / 2.0

    def more(sum_: int, held: Integers) -> Truths:
        return np.array([taking.beyond(int(held[0]), rate, sum_) >= tail])

    def less(sum_: int, held: Integers) -> Truths:
        # From above: who takes part is who stays away, and the noise is symmetric.
        away = int(held[0]) * taking.largest - sum_
        return np.array([taking.beyond(int(held[0]), 1.0 - rate, away) < tail])

    ends = []
    for sum_ in map(int, sums):
        least = int(first(functools.partial(more, sum_), 1, received)[0]) - 1
        most = int(first(functools.partial(less, sum_), 1, received)[0])
        ends.append((max(least, 0), min(most, received)))
    limits = low + np.array(ends, np.float64).T * (taking.largest / received)
    return limits[0], limits[1]


@dataclasses.dataclass(frozen=True)
class _Taking:
    """The noisy sum over the participating people, if all people have the largest number."""

    law: NoiseLaw
    largest: int

    @functools.cached_property
    def _cover(self) -> Cover | None:
        return self.law._cover()

    def beyond(self, held: int, rate: float, least: int) -> float:
        """Bound ``P[sum >= least]`` for all sums that are smaller in the convex order.

        That one is ``X = largest Bin(held, rate) + noise``, put into cells of which each counts as
        its upper end; the bound is the least ``E[(X - u)_+] / (least - u)`` over the ends u.
        """
        deviation = math.sqrt(held * rate * (1.0 - rate))
        # Beyond these the binomial law has less than floating point shows.
        reach = 12.0 * deviation + 40.0
        start = max(math.floor(held * rate - reach), 0) * self.largest
        end = min(math.ceil(held * rate + reach), held) * self.largest
        step = math.sqrt((self.largest * deviation) ** 2 + self.law.variance) / _CELLS
        step = max(1.0, step, (end - start) / _MOST_CELLS)
        edges = start + step * np.arange(math.ceil((end - start) / step) + 1)
        over = at_least(held, np.floor(edges / self.largest) + 1.0, rate)
        noise, place = self._noise(step)
        masses = np.convolve(-np.diff(over, prepend=1.0), noise)
        ends = start + step * (np.arange(masses.size) + place)
        # By twofold sums: what is beyond an end, and E[(X - u)_+].
        over = np.append(np.cumsum(masses[:0:-1])[::-1], 0.0)
        excess = np.cumsum(over[::-1])[::-1] * step
        below = ends < least
        if not below.any():
            return 1.0
        return float((excess[below] / (least - ends[below])).min()) + _WRONG

    def _noise(self, step: float) -> tuple[Floats, int]:
        """Return the masses of the noise up to each multiple of a step, and the first multiple."""
        if self._cover is None:
            return np.ones(1), math.ceil(self.law.half_width(1.0 - _WRONG) / step)
        beyond, unit, beside = self._cover
        last = math.ceil((unit * (beyond.size - 1) + beside) / step)
        places = np.floor((step * np.arange(-last, last + 1) - beside) / unit).astype(np.int64)
        # By symmetry: more than -2 is what is not beyond 1.
        near = np.minimum(np.abs(places) - (places < 0), beyond.size - 1)
        over = np.where(places < 0, 1.0 - beyond[near], beyond[near])
        return -np.diff(over, prepend=1.0), -last
