"""Which prefixes stand out of the noise, and how frequent a value must be to be among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from turnout._types import Integers
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.models import ScoreMoments

#: How many standard deviations more rivals than expected may stand above a level.
_LUCK = 3.0


@dataclass(frozen=True)
class Bar:
    """What the estimate of a prefix must exceed in a round, and how it varies.

    Attributes
    ----------
    level
        The frequency above which a prefix is kept.
    noise
        The variance of an estimate of frequency zero.
    growth
        What is added to the variance for each unit of frequency, at most.
    """

    level: float
    noise: float
    growth: float

    def passes(self, frequency: float) -> float:
        """Give how likely a prefix of this frequency is kept, by the normal law."""
        from scipy import special  # noqa: PLC0415

        spread = np.sqrt(self.noise + self.growth * frequency)
        return float(special.ndtr((frequency - self.level) / spread))


def growth_of(scores: ScoreMoments) -> float:
    """Give what a unit of frequency adds to the variance of one report's estimate, at most.

    That who is in the group is itself drawn is counted: ``f (1 - f)`` is at most ``f``.
    """
    own, other = scores.own_variance, scores.other_variance
    return max((own - other) / scores.difference**2, 0.0) + 1.0


def noise_level(scores: ScoreMoments, reports: float, candidates: int, error: float) -> float:
    """Find what the estimates of no candidates that nobody holds exceed, but with this chance."""
    from scipy import special  # noqa: PLC0415

    if scores.is_pure:
        count = _fewest(max(1, round(reports)), scores.other, error / candidates)
        return ((count - 0.5) / reports - scores.other) / scores.difference
    deviation = np.sqrt(scores.other_variance / reports) / scores.difference
    return float(-special.ndtri(error / candidates) * deviation)


def most_rivals(level: float, noise: float, growth: float, candidates: int) -> float:
    """Bound how many candidates exceed a level, however the values are spread.

    So many as have the share ``g`` are at most ``1 / g``, and each exceeds the level with some
    probability: the worst ``g`` counts, those that nobody holds come on top, and three standard
    deviations more.
    """
    from scipy import special  # noqa: PLC0415

    shares = np.geomspace(1.0 / candidates, 1.0, 400)
    spread = np.sqrt(noise + growth * shares)
    rivals = float((special.ndtr((shares - level) / spread) / shares).max())
    rivals += candidates * float(special.ndtr(-level / np.sqrt(noise)))
    return min(rivals + _LUCK * float(np.sqrt(rivals)), float(candidates))


def crowd_level(noise: float, growth: float, candidates: int, keep: int) -> float:
    """Find a level that fewer than ``keep`` rivals exceed, however the values are spread."""
    if candidates <= keep:
        return 0.0
    low, high = 0.0, 1.0 + 10.0 * float(np.sqrt(noise + growth))
    for _ in range(60):
        middle = (low + high) / 2
        crowded = most_rivals(middle, noise, growth, candidates) + 1 > keep
        low, high = (middle, high) if crowded else (low, middle)
    return high


def detectable(bars: Sequence[Bar], power: float) -> float:
    """Find the smallest frequency whose prefixes pass all rounds with this probability.

    Infinite if none does.
    """
    target = log(power)

    def chance(frequency: float) -> float:
        with np.errstate(divide="ignore"):
            return float(sum(np.log(bar.passes(frequency)) for bar in bars))

    low = 0.0
    high = 1.0 + max(bar.level for bar in bars) + 10 * max(bar.growth for bar in bars)
    while chance(high) < target:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= target else (middle, high)
    return high


def outstanding(estimate: FrequencyEstimate, error: float) -> tuple[Integers, float]:
    """Choose the candidates above their noise, and say above which frequency they are.

    The last code is "other". The chance that one is chosen that nobody holds is at most ``error``:
    by the binomial law where supporting reports are such a count, else by the normal law or
    Student's.
    """
    from scipy import special  # noqa: PLC0415

    estimation = estimate.estimation
    frequencies = estimate.frequencies[:-1]
    tail = error / frequencies.size
    model, statistic = estimation.model, estimation.statistic
    if model is not None and statistic is not None and model.trials is not None:
        count = _fewest(model.trials, model.a / model.trials, tail)
        level = float(model.frequency(np.array(count - 0.5)))
    elif model is not None:
        level = -float(special.ndtri(tail)) * float(np.sqrt(model.variance(np.array(0.0))))
    else:
        degrees = estimation.degrees
        z = -float(special.ndtri(tail) if degrees is None else special.stdtrit(degrees, tail))
        errors = np.sqrt(estimation.variances[:-1])
        above = (frequencies > z * errors) & (frequencies > 0.0)
        return np.flatnonzero(above).astype(np.int64), z * float(np.median(errors))
    return np.flatnonzero(frequencies > level).astype(np.int64), level


def _fewest(trials: int, chance: float, tail: float) -> int:
    """Find the least count that is reached with probability ``tail`` at most."""
    from scipy import special  # noqa: PLC0415

    low, high = 0, trials + 1
    while high - low > 1:
        middle = (low + high) // 2
        # The chance of so many or more.
        if special.bdtrc(middle - 1, trials, chance) <= tail:
            high = middle
        else:
            low = middle
    return high
