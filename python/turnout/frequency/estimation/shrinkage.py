"""Estimates drawn towards each other: empirical Bayes over the answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from turnout.frequency.estimation.prior import Cells, explanations, flat, nothing
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
#: The largest estimates stand apart where there is such a gap below them, in standard errors.
_GAP = 4.0
#: What it costs, as evidence, that the others' share was found from the estimates.
_COST = 1.0
#: That share is at least such a part of its standard error, or of all of theirs.
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
        ``"nothing"``: answers below a gap have nothing at all;
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
    known = _explained(values, errors, projected, learned, rest)
    rare = _below_a_gap(values, errors, learned)
    return known if rare is None else _averaged(known, rare, projected)


def _explained(
    values: Floats,
    errors: Floats,
    projected: Floats,
    among: npt.NDArray[np.bool_],
    share: float | None = None,
) -> Posterior:
    """Average what priors make of some of the answers, by their evidence.

    Whether they have any share is another question where the share is not given, but theirs.
    """
    total = share
    if total is None:
        doubt = float(np.sqrt((errors[among] ** 2).sum()))
        total = max(float(values[among].sum()), _LEAST * doubt)
    cells, place = _cells(values, errors, among, total)
    found = [flat(cells), *explanations(cells)]
    scores = np.array([explanation.score for explanation in found])
    handicaps = np.array([explanation.handicap for explanation in found])
    evidence = float(np.logaddexp.reduce(scores - handicaps))
    if share is None:
        # Against all others together, by the evidence alone.
        ahead = float(np.logaddexp.reduce(scores)) - evidence
        found.append(nothing(cells, _COST))
        scores = np.append(scores, found[-1].score + ahead)
        evidence = float(np.logaddexp(evidence, found[-1].score))
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    used = [pair for pair in zip(weights[1:], found[1:], strict=True) if pair[0] > 1e-6]
    means = np.zeros(cells.values.size)
    squares = np.zeros(cells.values.size)
    slopes = np.zeros(cells.values.size)
    for weight, explanation in used:
        means += weight * explanation.means
        squares += weight * (explanation.variances + explanation.means**2)
        # Tweedie: a posterior mean grows with the estimate by the ratio of the variances.
        slopes += weight * explanation.variances / cells.errors**2
    counted = place >= 0
    inside = np.flatnonzero(counted)
    at = place[inside]
    every, spread = values.copy(), errors**2
    plain = float(weights[0])
    off = values[inside] - cells.values[at]
    own = projected[inside]
    every[inside] = means[at] + slopes[at] * off + plain * own
    second = squares[at] + plain * (errors[inside] ** 2 + own**2)
    spread[inside] = np.maximum(second - every[inside] ** 2, 0.0)
    kinds: dict[str, float] = {}
    for weight, explanation in zip(weights.tolist(), found, strict=True):
        kinds[explanation.name] = kinds.get(explanation.name, 0.0) + weight
    return Posterior(values, errors, among, counted, every, spread, kinds, evidence)


def _below_a_gap(
    values: Floats, errors: Floats, learned: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_] | None:
    """Find the answers below the widest gap between the largest estimates; None if there is none.

    At most half of the answers are above it.
    """
    places = np.flatnonzero(learned)
    order = places[np.argsort(-values[places], kind="stable")]
    most = order.size // 2
    if most == 0:
        return None
    gaps = values[order[:most]] - values[order[1 : most + 1]]
    gaps /= np.hypot(errors[order[:most]], errors[order[1 : most + 1]])
    widest = int(np.argmax(gaps))
    if gaps[widest] < _GAP:
        return None
    below = learned.copy()
    below[order[: widest + 1]] = False
    return below


def _averaged(whole: Posterior, rare: npt.NDArray[np.bool_], projected: Floats) -> Posterior:
    """Average what all answers say of each other with what those below a gap say of theirs.

    Those above it could be any, and have any share: they say nothing of the others, which have
    priors of their own mean, or nothing at all.
    """
    from scipy import special  # noqa: PLC0415

    values, errors = whole.values, whole.errors
    others = _explained(values, errors, projected, rare)
    number = np.array([whole.learned.sum(), rare.sum(), whole.learned.sum() - rare.sum()])
    choices = float(special.gammaln(number + 1.0) @ [1.0, -1.0, -1.0])
    score = others.evidence - _COST - choices
    evidence = float(np.logaddexp(score, whole.evidence))
    weight = math.exp(score - evidence)
    apart = np.where(rare, others.means, values)
    means = weight * apart + (1 - weight) * whole.means
    squares = weight * (np.where(rare, others.spread, errors**2) + apart**2)
    squares += (1 - weight) * (whole.spread + whole.means**2)
    kinds = {name: (1 - weight) * part for name, part in whole.weights.items()}
    for name, part in others.weights.items():
        kinds[name] = kinds.get(name, 0.0) + weight * part
    spread = np.maximum(squares - means**2, 0.0)
    return replace(whole, means=means, spread=spread, weights=kinds, evidence=evidence)


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
