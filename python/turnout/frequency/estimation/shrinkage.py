"""Shrinkage of estimates towards each other: empirical Bayes over answers and groups.

The results of other groups for the same answers are one more prior of a group's frequencies,
besides those from its own answers. Each frequency is that of the others plus a deviation from a
mixture of normal laws around zero (Stephens, "False discovery rates: a new deal", 2017), cut where
the frequency would be negative. The size of deviations is learned from all groups and answers
together. Both priors are averaged by their evidence, so that a group unlike the others is not
changed by them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from turnout._types import Floats, Integers, Truths
from turnout.frequency.estimation.prior import Cells, explanations, flat
from turnout.frequency.estimation.projection import simplex

#: Up to so many answers each is a cell of its own.
_UNBINNED = 400
#: The width of a cell in standard errors: what it blurs adds a hundredth to the variance.
_CELL = 1 / 3
#: Cells of a standard error differ by so much in its logarithm.
_LEVEL = 0.15
_MOST_CELLS = 1500
#: The part of an answer's own variance that it can always move by to make the sum one.
_GIVE = 0.1
_FEW = 10
#: To be moved by more standard errors than this is said.
_FAR = 3.0
#: Standard errors that differ by more than this factor are said to.
_UNEVEN = 1.5
#: How much errors that are not below the projection's count: ``B`` and ``p``, by simulation, and
#: the ratio from which on they count no more than in proportion.
_DREAD, _POWER, _WORST = 150.0, 16, 1.1
#: The ratio below which errors are next to nothing: to halve them again is worth little.
_NOTHING = 0.01
_CAREFUL_STEPS = 30
#: The mean of the answers in cells is at least such a part of all.
_LEAST = 0.1
#: What the result calls the prior that the other groups give.
OTHERS = "other groups"

#: The variance of a deviation is the frequency divided by one of these, as of so many people asked.
_PEOPLE = np.append(np.geomspace(2.0, 2e6, 13), np.inf)
#: What is added to each frequency for that, over the number of answers: others' zeros may not be.
_ADDED = 0.1
#: Steps towards the laws of deviations, and towards the number of groups that are alike.
_STEPS = 40
#: Pseudo-observations of each size of deviation.
_CAUTION = 0.1
#: What a logarithm of the ratio of both variances counts, as evidence for the smaller.
_SURE = 6.0


@dataclass(frozen=True)
class Shrinkage:
    """A description of how estimates were shrunk towards each other.

    Attributes
    ----------
    weights
        The share of each kind of prior in the result, the largest first: ``"gamma"``, ``"power"``
        and ``"few"`` laws (of which only some answers have anything), ``"one atom"`` (all answers
        equally frequent), ``"2 atoms"`` and so on, and ``"none"``: the projection onto the simplex,
        which learns nothing from other answers;
        ``"other groups"``: the prior from other groups, if requested.
    moved
        The largest move of an answer, in standard errors.
    cautions
        Sentences about where the result may mislead.
    """

    weights: dict[str, float]
    moved: float
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Posterior:
    """The posterior of each frequency, before the frequencies become a distribution.

    Attributes
    ----------
    values, errors
        The estimates and their standard errors, without common errors.
    learned
        Which answers are so uncertain that others can inform them.
    counted
        The answers that the evidence is about.
    means, spread
        The posterior means and variances.
    weights
        The share of each kind of prior in them.
    evidence
        An approximation of the logarithm of the evidence for the priors together.
    """

    values: Floats
    errors: Floats
    learned: Truths
    counted: Truths
    means: Floats
    spread: Floats
    weights: dict[str, float]
    evidence: float


def shrunk(frequencies: Floats, variances: Floats) -> tuple[Floats, Shrinkage]:
    """Compute posterior means under priors learned from all answers, as a distribution.

    Parameters
    ----------
    frequencies
        Estimates, nearly unbiased and nearly normal.
    variances
        Their variances.

    Returns
    -------
    tuple
        The distribution, and a description of the shrinkage.

    Examples
    --------
    >>> import numpy as np
    >>> frequencies, how = shrunk(np.tile([0.009, 0.011], 50), np.full(100, 1e-4))
    >>> bool(abs(frequencies - 0.01).max() < 1e-4), max(how.weights, key=how.weights.get)
    (True, 'one atom')
    """
    return finished(posterior(frequencies, variances))


def posterior(frequencies: Floats, variances: Floats) -> Posterior:
    """Compute posterior means and variances under priors learned from all answers."""
    size, summed = frequencies.size, float(frequencies.sum())
    errors = np.sqrt(variances)
    projected = simplex(frequencies)
    values = frequencies
    if abs(summed - 1.0) > 1e-9 and errors.any():
        # Errors in common cancel: what is left of each is smaller by its share of their sum.
        values = frequencies + variances * ((1.0 - summed) / variances.sum())
        errors = errors * np.sqrt(np.maximum(1.0 - variances / variances.sum(), 0.0))
    if size == 1 or not errors.any():
        none = np.zeros(size, dtype=bool)
        return Posterior(frequencies, errors, none, none, projected, variances, {"none": 1.0}, 0.0)
    floor = 0.25 * float(np.median(errors[errors > 0]))
    learned = errors > floor
    rest = max(1.0 - float(np.maximum(values[~learned], 0.0).sum()), 1.0 / size)
    cells, place = _cells(values, errors, learned, rest)
    counted = place >= 0
    at = place[counted]
    usual = np.bincount(at, projected[counted]) / cells.counts
    found = [flat(cells, usual), *explanations(cells)]
    scores = np.array([each.score for each in found])
    evidence = float(np.logaddexp.reduce(scores - [each.handicap for each in found]))
    weights = np.exp(scores - scores.max())
    means = np.array([each.means for each in found])
    spread = np.array([each.variances for each in found])
    weights = _careful(weights / weights.sum(), means - usual, spread, cells.counts)
    centres, variances = weights @ means, weights @ spread
    # Tweedie: a posterior mean grows with the estimate by the ratio of the variances.
    slopes = variances / cells.errors**2
    variances += weights @ (means - centres) ** 2
    every, doubt = values.copy(), errors**2
    every[counted] = centres[at] + slopes[at] * (values[counted] - cells.values[at])
    doubt[counted] = variances[at]
    kinds: dict[str, float] = {}
    for weight, each in zip(weights.tolist(), found, strict=True):
        kinds[each.name] = kinds.get(each.name, 0.0) + weight
    return Posterior(values, errors, learned, counted, every, doubt, kinds, evidence)


def _careful(weights: Floats, away: Floats, spread: Floats, counts: Floats) -> Floats:
    """Weight priors by what they can gain over the projection, or lose to it.

    If the estimates do not distinguish priors, the posterior weights would minimise the mean of the
    squared errors, but far exceed the projection's error if few answers have everything. These
    weights instead minimise the mean of ``log(r + r_0) + B r^(p + 1) / (p + 1)``, where ``r`` is
    the expected squared error under a prior divided by that of the projection. Beyond a ratio the
    slope stays constant. So halving the error counts equally everywhere: a mean of ``r`` would give
    up most of a large gain for a little of a small one.

    Parameters
    ----------
    weights
        The weight of each prior by its evidence.
    away
        The posterior means minus the projection, a row for each prior.
    spread
        The posterior variances of each prior.
    counts
        The number of answers in each column.
    """
    products = (away * counts) @ away.T
    own = spread @ counts
    usual = own + np.diag(products)
    usual = np.maximum(usual, 1e-9 * usual.max() + 1e-300)
    found = weights
    for _ in range(_CAREFUL_STEPS):
        pulled = products @ found
        ratios = (own + np.diag(products) - 2 * pulled + found @ pulled) / usual
        slopes = 1 / (ratios + _NOTHING) + _DREAD * np.minimum(ratios, _WORST) ** _POWER
        wanted = weights * slopes / usual
        found = (found + wanted / wanted.sum()) / 2
    return found


def finished(known: Posterior) -> tuple[Floats, Shrinkage]:
    """Turn posterior means into a distribution, with a description of the shrinkage."""
    if not known.learned.any():
        return known.means, Shrinkage(known.weights, 0.0, ())
    means, errors, spread = known.means, known.errors, known.spread
    # If the sum is off by more than its uncertainty, the priors do not fit. Then the frequencies
    # with the largest uncertainty must not bear the whole correction.
    excess = 1.0 - float(means.sum())
    allowed = 2.0 * float(np.sqrt(spread.sum()))
    if abs(excess) > allowed:
        off_by = excess - np.copysign(allowed, excess)
        means = means + off_by * errors**2 / float(errors @ errors)
    result = _to_one(means, spread + _GIVE * errors**2)
    kinds = dict(sorted(known.weights.items(), key=lambda item: -item[1]))
    kinds = {name: round(weight, 4) for name, weight in kinds.items() if weight >= 5e-5}
    learned = known.learned
    moved = float((np.abs(result - known.values)[learned] / errors[learned]).max())
    return result, Shrinkage(kinds, moved, _cautions(result.size, errors[learned], moved))


def _cells(values: Floats, errors: Floats, learned: Truths, share: float) -> tuple[Cells, Integers]:
    """Count answers with nearly the same estimate and error, and return the cell of each, or -1.

    Of too many cells those of the largest estimates are left out: so far apart, answers do not
    inform each other.
    """
    place = np.full(values.size, -1, dtype=np.int64)
    chosen = np.flatnonzero(learned)
    if chosen.size <= _UNBINNED:
        place[chosen] = np.arange(chosen.size)
        mean = _mean(values, learned, place, share)
        cells = Cells(values[chosen], errors[chosen], np.ones(chosen.size), mean)
        return cells, place
    own, spread = values[chosen], errors[chosen]
    levels = np.round(np.log(spread / spread.min()) / _LEVEL)
    steps = np.floor(own / (_CELL * spread.min() * np.exp(_LEVEL * levels)))
    steps -= steps.min()
    order = steps * (levels.max() + 1) + levels
    _, inverse, counts = np.unique(order, return_inverse=True, return_counts=True)
    total = np.bincount(inverse, own)
    squared = np.bincount(inverse, spread**2)
    keep = np.ones(counts.size, dtype=bool)
    if counts.size > _MOST_CELLS:
        keep[np.argsort(total / counts, kind="stable")[_MOST_CELLS:]] = False
    number = np.where(keep, np.cumsum(keep) - 1, -1)
    place[chosen] = number[inverse]
    counted = counts[keep].astype(np.float64)
    mean = _mean(values, learned, place, share)
    return Cells(total[keep] / counted, np.sqrt(squared[keep] / counted), counted, mean), place


def _mean(values: Floats, among: Truths, place: Integers, share: float) -> float:
    """Return the mean frequency of the answers in cells, of all whose total is known."""
    inside = place >= 0
    rest = share - float(np.maximum(values[among & ~inside], 0.0).sum())
    return max(rest, _LEAST * share) / float(inside.sum())


def _to_one(means: Floats, variances: Floats) -> Floats:
    """Find the distribution nearest to means, each distance measured by its standard deviation.

    Precise answers move little.
    """
    # What is known exactly may move next to nothing.
    variances = np.maximum(variances, 1e-12 * variances.max())
    entering = -means / variances
    order = np.argsort(entering, kind="stable")
    shifts = (1.0 - np.cumsum(means[order])) / np.cumsum(variances[order])
    last = int(np.flatnonzero(entering[order] < shifts)[-1])
    positive = np.maximum(means + shifts[last] * variances, 0.0)
    result: Floats = positive / positive.sum()
    return result


def _cautions(size: int, errors: Floats, moved: float) -> tuple[str, ...]:
    """Write where the result may mislead."""
    said = []
    if size < _FEW:
        said.append(
            f"{size} answers reveal little about each other: the result is near the projection, "
            "and its gain is less certain than with tens of answers"
        )
    if errors.max() > _UNEVEN * errors.min():
        said.append(
            "the standard errors differ by a factor of "
            f"{errors.max() / errors.min():.2g}: if answers that are reported less are also rarer "
            "or more frequent than others, they are drawn the wrong way"
        )
    if moved > _FAR:
        said.append(
            f"one answer was moved by {moved:.1f} standard errors: the error is smaller over all "
            "answers together, not for each; an answer unlike all others may be drawn to them"
        )
    return tuple(said)


def shared(frequencies: Floats, variances: Floats) -> list[tuple[Floats, Shrinkage]]:
    """Compute posterior means of each group under its own priors and that of the other groups.

    Parameters
    ----------
    frequencies, variances
        Estimates of each group and their variances, one row for each group.

    Returns
    -------
    list of tuple
        The distribution of each group, and a description of the shrinkage.

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
    """Average a group's own posterior with that from the other groups."""
    centres, doubts = _others(frequencies, variances)
    values = np.array([known.values for known in alone])
    errors = np.array([known.errors for known in alone])
    counted = np.array([known.counted for known in alone])
    means, spread, evidence = _deviations(values, errors, counted, centres, doubts)
    gain = evidence - np.array([known.evidence for known in alone])
    doubt = np.array([known.spread.sum() for known in alone])
    # A group that is sure by itself has little to learn from others.
    gain += _SURE * np.log(np.maximum(doubt, 1e-300) / np.maximum(spread.sum(axis=1), 1e-300))
    weights = _chances(gain)
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
    """Estimate the frequencies of all groups except one, and their variances."""
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
    """Compute posterior means and variances around other groups, and the evidence of groups."""
    from scipy import special  # noqa: PLC0415

    noise = np.maximum(errors, 1e-9 * np.median(errors)) ** 2
    base = np.maximum(centres, 0.0) + _ADDED / values.shape[1]

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


def _chances(gain: Floats) -> Floats:
    """Return the probability that each group is like the others, from its evidence.

    How many groups are is learned, too: where most are, one that says little is taken for one.
    """
    from scipy import special  # noqa: PLC0415

    odds = 0.0
    for _ in range(_STEPS):
        chances = special.expit(gain + odds)
        odds = math.log((chances.sum() + 1.0) / (gain.size - chances.sum() + 1.0))
    result: Floats = special.expit(gain + odds)
    return result
