"""Estimates drawn towards each other: empirical Bayes over the answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from turnout.frequency.estimation.prior import Cells, explanations, flat
from turnout.frequency.estimation.projection import simplex

__all__ = ["Posterior", "Shrinkage", "finished", "posterior", "shrunk"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

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


@dataclass(frozen=True)
class Shrinkage:
    """How estimates were drawn towards each other.

    Attributes
    ----------
    weights
        The share of each kind of prior in the result, the largest first: ``"gamma"``, ``"power"``
        and ``"few"`` laws (of which only some answers have anything), ``"one atom"`` (all answers
        equally frequent), ``"2 atoms"`` and so on, and ``"none"``: the projection onto the simplex,
        which learns nothing from other answers;
        ``"other groups"``: what groups say of each other, where that was asked for.
    moved
        By how many standard errors the answer that moved most was moved.
    cautions
        Where the result may mislead, in sentences.
    """

    weights: dict[str, float]
    moved: float
    cautions: tuple[str, ...]


@dataclass(frozen=True)
class Posterior:
    """What is known of each frequency, before they are made a distribution.

    Attributes
    ----------
    values, errors
        The estimates and their standard errors, errors in common taken out.
    learned
        Which answers are so little known that others can say something of them.
    counted
        Which answers the evidence is of.
    means, spread
        The posterior means and variances.
    weights
        The share of each kind of prior in them.
    evidence
        An approximation of the logarithm of the evidence for the priors together.
    """

    values: Floats
    errors: Floats
    learned: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]
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
        The distribution, and how it came about.

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
    """Give more weight to priors under which there is much to gain, or to lose to the projection.

    Where the estimates do not tell between priors, the mean of the squared errors would be least by
    the posterior weights, and far above the projection's where few answers have all. What is least
    here is the mean of ``log(r + r_0) + B r^(p + 1) / (p + 1)``, ``r`` being the squared error
    expected under a prior over that of the projection; beyond a ratio its slope grows no further.
    To halve the error is worth as much wherever it is halved: a mean of ``r`` would give up most of
    a large gain for a little of a small one.

    Parameters
    ----------
    weights
        Of each prior by its evidence.
    away
        Its posterior means less the projection, a row for each prior.
    spread
        Its posterior variances.
    counts
        How many answers each column is.
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
    """Make a distribution of posterior means, and say how it came about."""
    if not known.learned.any():
        return known.means, Shrinkage(known.weights, 0.0, ())
    means, errors, spread = known.means, known.errors, known.spread
    # A sum that is off by more than what is not known of it says that the priors do not fit: that
    # is nothing that those known worst have to bear alone.
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


def _cells(
    values: Floats, errors: Floats, learned: npt.NDArray[np.bool_], share: float
) -> tuple[Cells, Codes]:
    """Count answers with nearly the same estimate and error; where each is, -1 for nowhere.

    Of too many cells those of the largest estimates are left out: so far apart, answers say nothing
    of each other.
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


def _mean(values: Floats, among: npt.NDArray[np.bool_], place: Codes, share: float) -> float:
    """Give the mean frequency of the answers in cells, of all whose total is known."""
    inside = place >= 0
    rest = share - float(np.maximum(values[among & ~inside], 0.0).sum())
    return max(rest, _LEAST * share) / float(inside.sum())


def _to_one(means: Floats, variances: Floats) -> Floats:
    """Find the distribution nearest to means, each distance measured by its standard deviation.

    Whoever is known well moves little to make the sum one.
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
    """Say where the result may mislead."""
    said = []
    if size < _FEW:
        said.append(
            f"{size} answers say little of each other: the result is near the projection, and what "
            "it gains is less sure than with tens of answers"
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
