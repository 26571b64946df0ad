"""Estimates of several groups, each drawn towards what the other groups say of the same answers.

What the others found is one more prior of a group's frequencies, beside those that its own answers
give: each frequency is that of the others but for a deviation from a mixture of normal laws around
zero (Stephens, "False discovery rates: a new deal", 2017), cut where the frequency would be
negative. How large deviations are is learned from all groups and answers together. Both are
averaged by their evidence, so that a group unlike the others is left to itself.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from turnout._types import Floats, Truths
from turnout.frequency.estimation.shrinkage import Posterior, Shrinkage, finished, posterior

#: What the result calls the prior that the other groups give.
OTHERS = "other groups"

#: The variance of a deviation is the frequency divided by one of these, as of so many people asked.
_PEOPLE = np.append(np.geomspace(2.0, 2e6, 13), np.inf)
#: What is added to each frequency for that, over the number of answers: others' zeros may not be.
_LEAST = 0.1
_STEPS = 40
#: Pseudo-observations of each size of deviation.
_CAUTION = 0.1
#: What a logarithm of the ratio of both variances counts, as evidence for the smaller.
_SURE = 6.0


def shared(frequencies: Floats, variances: Floats) -> list[tuple[Floats, Shrinkage]]:
    """Compute posterior means of each group under its own priors and that of the other groups.

    Parameters
    ----------
    frequencies, variances
        Estimates of each group and their variances, one row for each group.

    Returns
    -------
    list of tuple
        For each group the distribution, and how it came about.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(1)
    >>> truth, variances = np.array([0.6, 0.3, 0.1]), np.full((20, 3), 0.05**2)
    >>> estimates = generator.normal(truth, 0.05, (20, 3))
    >>> made = np.array([each for each, _ in shared(estimates, variances)])
    >>> bool(abs(made - truth).mean() < 0.4 * abs(estimates - truth).mean())
    True
    """
    alone = [posterior(*pair) for pair in zip(frequencies, variances, strict=True)]
    if len(alone) > 1 and all(known.learned.any() for known in alone):
        alone = _mixed(alone, frequencies, variances)
    return [finished(known) for known in alone]


def _mixed(alone: list[Posterior], frequencies: Floats, variances: Floats) -> list[Posterior]:
    """Average what a group says of itself with what the others say of it."""
    centres, doubts = _others(frequencies, variances)
    values = np.array([known.values for known in alone])
    errors = np.array([known.errors for known in alone])
    counted = np.array([known.counted for known in alone])
    means, spread, evidence = _deviations(values, errors, counted, centres, doubts)
    gain = evidence - np.array([known.evidence for known in alone])
    doubt = np.array([known.spread.sum() for known in alone])
    # A group that is sure by itself has little to learn from others.
    gain += _SURE * np.log(np.maximum(doubt, 1e-300) / np.maximum(spread.sum(axis=1), 1e-300))
    weights = _weights(gain)
    result = []
    for place, known in enumerate(alone):
        weight = float(weights[place])
        mean = weight * means[place] + (1 - weight) * known.means
        second = weight * (spread[place] + means[place] ** 2)
        second += (1 - weight) * (known.spread + known.means**2)
        kinds = {name: (1 - weight) * share for name, share in known.weights.items()}
        result.append(
            replace(
                known,
                means=mean,
                spread=np.maximum(second - mean**2, 0.0),
                weights={**kinds, OTHERS: weight},
            )
        )
    return result


def _others(frequencies: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Estimate the frequencies among the people of all groups but one, and how sure that is."""
    # What a group knows exactly counts for a thousand others, so that it can be taken out again.
    known = 1.0 / np.maximum(variances, 1e-3 * np.median(variances, axis=0) + 1e-300)
    pull = known * frequencies
    rest = known.sum(axis=0) - known
    pooled = (pull.sum(axis=0) - pull) / rest
    found = [posterior(*pair) for pair in zip(pooled, 1.0 / rest, strict=True)]
    return np.array([each.means for each in found]), np.array([each.spread for each in found])


def _deviations(
    values: Floats,
    errors: Floats,
    counted: Truths,
    centres: Floats,
    doubts: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Compute posterior means and variances around what others say, and the evidence of groups."""
    from scipy import special  # noqa: PLC0415

    noise = np.maximum(errors, 1e-9 * np.median(errors)) ** 2
    base = np.maximum(centres, 0.0) + _LEAST / values.shape[1]

    def around(people: float) -> tuple[Floats, Floats, Floats]:
        width = base / people + doubts + 1e-6 * noise
        whole = width + noise
        mean, deviation = (values * width + centres * noise) / whole, np.sqrt(width * noise / whole)
        ratio = mean / deviation
        inside = special.log_ndtr(ratio)
        density = -0.5 * ((values - centres) ** 2 / whole + np.log(2 * math.pi * whole))
        density += inside - special.log_ndtr(centres / np.sqrt(width))
        lift = np.exp(-0.5 * ratio**2 - inside) / math.sqrt(2 * math.pi)
        first = mean + deviation * lift
        return density, first, deviation**2 * np.maximum(1 - lift * (lift + ratio), 0.0) + first**2

    found = [around(people) for people in _PEOPLE.tolist()]
    densities = np.array([each[0] for each in found])
    top = densities.max(axis=0)
    likelihood = np.exp(densities - top)
    weights = np.full(_PEOPLE.size, 1.0 / _PEOPLE.size)
    for _ in range(_STEPS):
        marginal = np.einsum("a,agj->gj", weights, likelihood)
        held = weights * np.einsum("agj,gj->a", likelihood, counted / marginal) + _CAUTION
        weights = held / held.sum()
    marginal = np.einsum("a,agj->gj", weights, likelihood)
    shares = weights[:, None, None] * likelihood / marginal
    means = np.einsum("agj,agj->gj", shares, np.array([each[1] for each in found]))
    squares = np.einsum("agj,agj->gj", shares, np.array([each[2] for each in found]))
    evidence = ((np.log(marginal) + top) * counted).sum(axis=1)
    return means, np.maximum(squares - means**2, 0.0), evidence


def _weights(gain: Floats) -> Floats:
    """Give each group the chance that it is like the others, from the gain in its evidence.

    How many groups are is learned, too: where most are, one that says little is taken for one.
    """
    from scipy import special  # noqa: PLC0415

    odds = 0.0
    for _ in range(_STEPS):
        chances = special.expit(gain + odds)
        odds = math.log((chances.sum() + 1.0) / (gain.size - chances.sum() + 1.0))
    result: Floats = special.expit(gain + odds)
    return result
