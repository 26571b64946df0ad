"""MBDE computed without chance: a Bayes-optimal weak learner on the mixture on the line."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from turnout._types import Floats
from turnout.samplers.boosting import boosting_weights
from turnout.samplers.mollifier import Projection
from turnout.samplers.reference import StandardNormal
from turnout.samplers.study.targets import seed_mixture
from turnout.samplers.weak_learner import LOG_TWO, clipped

#: Midpoints of cells on [-9, 9]: the narrowest mode has 36 cells to a standard deviation.
_CELLS: Final = 2**16
_REACH: Final = 9.0


@dataclass(frozen=True)
class Line:
    """The mixture P and the reference Q0 = N(0, 1) on midpoints of cells.

    Attributes
    ----------
    points
        The midpoints, of shape (n, 1).
    log_ratio
        log P/Q0.
    p, q
        The masses of the cells.
    """

    points: Floats
    log_ratio: Floats
    p: Floats
    q: Floats


@dataclass(frozen=True)
class ExactBoosting:
    """What each round did; arrays over rounds.

    Attributes
    ----------
    weights
        theta_t.
    edges
        gamma_P and gamma_Q of the rounds, of shape (rounds, 2).
    gains
        Delta(Q_t) = KL(P, Q0) - KL(P, Q_t).
    reach
        The largest ``|log Q_t/Q0|``.
    masses
        The masses of the cells after the last round.
    """

    weights: Floats
    edges: Floats
    gains: Floats
    reach: Floats
    masses: Floats


@functools.cache
def line() -> Line:
    """Evaluate the mixture and the reference."""
    side = 2.0 * _REACH / _CELLS
    points: Floats = -_REACH + side * (np.arange(_CELLS, dtype=np.float64) + 0.5)[:, None]
    log_p = seed_mixture().log_density(points)
    log_q = StandardNormal(1).log_density(points)
    return Line(points, log_p - log_q, np.exp(log_p) * side, np.exp(log_q) * side)


def boosted(epsilon: float, rounds: int, on: Line | None = None) -> ExactBoosting:
    """Run Algorithm 1 with the clipped log-odds of the best classifier of P from Q_t.

    Parameters
    ----------
    epsilon
        Privacy of one draw.
    rounds
        How many.
    on
        Where; the seed mixture on the line by default.

    Returns
    -------
    ExactBoosting
        The rounds.
    """
    on = line() if on is None else on
    score = np.zeros(on.p.size)
    normalizer = 0.0
    edges, gains, reach = [], [], []
    weights = boosting_weights(epsilon, rounds)
    for weight in weights:
        learner = clipped(on.log_ratio - score + normalizer)
        before = on.q * np.exp(score - normalizer)
        edges.append((float(on.p @ learner) / LOG_TWO, -float(before @ learner) / LOG_TWO))
        score = score + weight * learner
        normalizer = float(np.log(on.q @ np.exp(score)))
        gains.append(float(on.p @ score) - normalizer)
        reach.append(float(np.abs(score - normalizer).max()))
    return ExactBoosting(
        np.array(weights),
        np.array(edges),
        np.array(gains),
        np.array(reach),
        on.q * np.exp(score - normalizer),
    )


def floor_gain(epsilon: float) -> float:
    """Compute Delta of the projection of P: no member of the mollifier has a larger one."""
    on = line()
    ratio = Projection(StandardNormal(1), seed_mixture().log_density, epsilon).log_ratio(on.points)
    # The constant of the projection is solved for on fewer points: what it misses is taken out.
    return float(on.p @ ratio - np.log(on.q @ np.exp(ratio)))
