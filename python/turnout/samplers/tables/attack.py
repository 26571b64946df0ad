"""Measure how well an attacker who knows two people's tables tells whose record was drawn."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from turnout._types import Floats, Integers
from turnout.errors import InvalidValueError
from turnout.samplers.drawing import log_ratios
from turnout.samplers.mollifier import Projection
from turnout.samplers.population.draws import PopulationDraws, grouped

#: So many people are tried at most, and the constant of a law is solved for on so many points.
_MOST: Final = 200
_POINTS: Final = 2**11

#: The weight of a point under the reference, as of projections.
_UNIT: Final = 2**32


def guesses(
    population: PopulationDraws, records: Integers, drawn: Integers, users: Any
) -> dict[str, float] | None:
    """Try the likelihood-ratio attack on each person against every other person.

    Parameters
    ----------
    population
        One draw of each person.
    records, drawn
        The codes of all real records, and of the draws.
    users
        The person that each real record belongs to.

    Returns
    -------
    dict
        The same as ``TableQuality.attack``; None for a single person.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``users`` are not the users of the draws.
    """
    names, places = grouped(users, len(records))
    if list(names) != list(population.users):
        raise InvalidValueError(
            f"users must be those of the draws, one draw each: got {len(names):,} users of the "
            f"real records and {len(population.users):,} of the draws, who are not the same"
        )
    if len(names) < 2:
        return None
    chosen = np.linspace(0, len(names) - 1, min(len(names), _MOST)).astype(np.int64)
    worker: Any = population.sampler
    worker = worker._prepared()
    points = worker._public().reference._draw_spread(_POINTS, seed=0)
    others = drawn[chosen]
    scores = np.array([_scores(worker, records[places[one]], others, points) for one in chosen])
    own = np.diagonal(scores)
    # What is as likely under both laws is a coin.
    won = (own > scores).astype(np.float64) + 0.5 * (own == scores)
    np.fill_diagonal(won, 0.0)
    right = won.sum(axis=0) / (len(chosen) - 1)
    epsilon = worker.realized_epsilon
    return {
        "right": float(right.mean()),
        "standard_error": float(right.std(ddof=1) / math.sqrt(len(chosen))),
        "people": float(len(chosen)),
        "bound": 1.0 / (1.0 + math.exp(-epsilon)),
    }


def _scores(worker: Any, own: Integers, drawn: Integers, points: Floats) -> Floats:
    """Return the log-probability of draws under a person's law, up to a part common to all."""
    one = worker.__sklearn_clone__()
    one._learn((one._public(), own, None))
    if one._law is not None:
        masses: Floats = one._log_masses(drawn)
        return masses
    law: Projection = one._projection
    band = law._band()
    # The constant of the law on fewer points than for its density: an attacker may err.
    weights = np.full(len(points), _UNIT, np.uint64)
    constant = band.weights(log_ratios(law.reference, law.target, points), weights)[1]
    ratios = log_ratios(law.reference, law.target, drawn.astype(np.float64))
    result: Floats = np.clip(ratios - constant, *law._log_limits)
    return result
