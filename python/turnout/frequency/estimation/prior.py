"""Priors of frequencies, learned from all estimates at once and weighed by their evidence.

``k`` estimates ``z_i`` with standard errors ``s_i`` are ``k`` draws from normal laws around
frequencies, which are themselves draws from an unknown law. The nonparametric maximum-likelihood
prior (Kiefer and Wolfowitz 1956) has as few atoms as the data need, and mistakes noise for
structure if there are few answers. Here its path, from one atom on (Lindsay 1983), competes with
smooth priors. Each has a score, an approximation of the logarithm of its evidence. The posterior
means are averaged with weights in proportion to the evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from turnout._types import Floats

#: Shapes of gamma laws: from nearly all mass at zero to nearly all answers alike.
_SHAPES = np.array([0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 6.0, 12.0, 30.0])
#: Exponents of power laws, cut at the largest estimate.
_EXPONENTS = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
#: Of laws of which only some answers have anything: one in so many, and the shapes of their part.
_TIMES = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
_FEW_SHAPES = np.array([4.0, 60.0])
#: What the flat prior, which learns nothing, has in advance, for one answer: a k-th of it for k.
#: Both numbers are chosen by simulation, so that the error never exceeds that of projections.
_CAUTION = 25.0
#: What each atom more costs beside its place and weight, for one answer: by k^2 less for k.
_ATOM_COST = 900.0
_STEPS, _MORE_STEPS = 15, 40
#: Atoms, of a path over few answers and over many.
_FEW_ATOMS, _MANY_ATOMS, _MANY = 6, 12, 1000
#: With many answers any shape is tried, for so much evidence and the logarithm of their number.
_SHAPE_STEPS, _SHAPE_COST = 60, 15.0
#: A path ends when its score has fallen so far below its best.
_HOPELESS = 12.0
#: Smooth priors are summed at places so many standard errors apart: a sum over a normal density
#: errs by exp(-2 pi^2 / 0.7^2), which is nothing.
_SPACING = 0.7
_TINY = 1e-200


@dataclass(frozen=True)
class Cells:
    """Estimates that are close to each other, counted.

    Attributes
    ----------
    values, errors
        The mean estimate of each cell, and its standard error.
    counts
        The number of answers in each cell.
    mean
        The mean frequency of all of them.
    """

    values: Floats
    errors: Floats
    counts: Floats
    mean: float

    @property
    def size(self) -> float:
        """The number of answers."""
        return float(self.counts.sum())

    @property
    def largest(self) -> float:
        """The largest estimate, or one standard error."""
        return max(float(self.values.max()), float(np.median(self.errors)))

    def likelihood(self, places: Floats) -> Floats:
        """Return the likelihood of each cell under a frequency at each place."""
        scaled = (self.values[:, None] - places) / self.errors[:, None]
        density = np.exp(-0.5 * scaled * scaled)
        result: Floats = density / (self.errors[:, None] * math.sqrt(2 * math.pi)) + _TINY
        return result


@dataclass(frozen=True)
class Explanation:
    """The posterior of the estimates under one prior.

    Attributes
    ----------
    name
        The name of the prior.
    score
        An approximation of the logarithm of its evidence.
    means, variances
        The posterior mean and variance of each cell.
    handicap
        The part of the score that is not evidence, but caution if there are few answers.
    """

    name: str
    score: float
    means: Floats
    variances: Floats
    handicap: float = 0.0


def flat(cells: Cells, projected: Floats) -> Explanation:
    """Explain by any frequency from zero to the largest estimate, all equally likely.

    It learns nothing from other answers. The projection onto the simplex, with its mean in each
    cell, replaces its posterior means.
    """
    from scipy import special  # noqa: PLC0415

    largest, errors = cells.largest, cells.errors
    inside = special.ndtr(cells.values / errors) - special.ndtr((cells.values - largest) / errors)
    evidence = float(cells.counts @ np.log(np.maximum(inside, _TINY) / largest))
    advance = _CAUTION / cells.size
    return Explanation("none", evidence + advance, projected, errors**2, advance)


def explanations(cells: Cells) -> list[Explanation]:
    """Explain the estimates by priors that are learned from them."""
    spacing = _SPACING * float(np.median(cells.errors))
    steps = np.arange(-5, 7)
    near = np.unique(np.floor(cells.values / spacing)[:, None] + steps)
    places: Floats = np.concatenate([[0.0], near[near > 0]]) * spacing
    likelihood = cells.likelihood(places)
    result = []
    best, start = -math.inf, np.ones(places.size)
    for name, (masses, moments) in (
        ("gamma", _gamma_masses(cells, places, spacing)),
        ("power", _power_masses(cells, places, spacing)),
        ("few", _few_masses(cells, places, spacing)),
    ):
        marginal = likelihood @ masses.T + _TINY
        centres = np.clip(moments / masses, 0.0, places + spacing / 2)
        means = (likelihood @ (masses * centres).T) / marginal
        squares = (likelihood @ (masses * centres * centres).T) / marginal
        scores = cells.counts @ np.log(marginal) - math.log(len(masses))
        spread = np.maximum(squares - means * means, 0.0)
        result += [
            Explanation(name, float(score), means[:, place], spread[:, place])
            for place, score in enumerate(scores)
        ]
        if scores.max() > best:
            best, start = float(scores.max()), masses[int(np.argmax(scores))]
    if cells.size >= _MANY:
        result.append(_any_shape(cells, places, likelihood, start))
    return result + atoms(cells, places, likelihood)


def _any_shape(cells: Cells, places: Floats, likelihood: Floats, start: Floats) -> Explanation:
    """Explain by any prior near a smooth one: some steps of expectation and maximisation."""
    masses = start / start.sum()
    for _ in range(_SHAPE_STEPS):
        masses = masses * ((cells.counts / (likelihood @ masses)) @ likelihood) / cells.size
    marginal = likelihood @ masses
    means = likelihood @ (masses * places) / marginal
    spread = np.maximum(likelihood @ (masses * places**2) / marginal - means**2, 0.0)
    cost = _SHAPE_COST * math.log(cells.size)
    return Explanation("any shape", float(cells.counts @ np.log(marginal)) - cost, means, spread)


def _gamma_law(shapes: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the masses of gamma laws of scale one between bounds, and those of one shape more."""
    from scipy import special  # noqa: PLC0415

    mass = special.gammainc(shapes, high) - special.gammainc(shapes, low)
    whole = special.gammaln(shapes + 1.0)
    ends = np.exp(special.xlogy(shapes, np.stack([low, high])) - np.stack([low, high]) - whole)
    return mass, mass - (ends[1] - ends[0])


def _gamma_masses(cells: Cells, places: Floats, spacing: float) -> tuple[Floats, Floats]:
    """Return the masses and first moments of gamma laws around each place.

    Frequencies from a symmetric Dirichlet law are nearly such.
    """
    low, high = np.maximum(places - spacing / 2, 0.0), places + spacing / 2
    scales = (_SHAPES / cells.mean)[:, None]
    masses, more = _gamma_law(_SHAPES[:, None], low * scales, high * scales)
    return np.maximum(masses, _TINY), cells.mean * np.maximum(more, _TINY)


def _few_masses(cells: Cells, places: Floats, spacing: float) -> tuple[Floats, Floats]:
    """Return the masses and first moments of laws of which only some answers have anything.

    These have gamma laws, whose mean makes that of all answers right.
    """
    low, high = np.maximum(places - spacing / 2, 0.0), places + spacing / 2
    times, shapes = (each.ravel()[:, None] for each in np.meshgrid(_TIMES, _FEW_SHAPES))
    scales = shapes / (cells.mean * times)
    masses, more = _gamma_law(shapes, low * scales, high * scales)
    masses, moments = masses / times, cells.mean * more
    masses[:, 0] += 1.0 - 1.0 / times[:, 0]
    return np.maximum(masses, _TINY), np.maximum(moments, _TINY)


def _power(exponent: float, ratio: Floats) -> Floats:
    """Integrate ``(1 + x)^-exponent`` from zero to a ratio."""
    if exponent == 1.0:
        return np.log1p(ratio)
    result: Floats = np.expm1((1.0 - exponent) * np.log1p(ratio)) / (1.0 - exponent)
    return result


def _power_masses(cells: Cells, places: Floats, spacing: float) -> tuple[Floats, Floats]:
    """Return the masses and first moments of power laws of the right mean around each place."""
    largest = cells.largest
    scales = np.geomspace(spacing / 20, 50 * largest, 80)
    low = np.clip(places - spacing / 2, 0.0, largest)
    high = np.clip(places + spacing / 2, 0.0, largest)
    masses = np.empty((_EXPONENTS.size, places.size))
    moments = np.empty_like(masses)
    for place, exponent in enumerate(_EXPONENTS.tolist()):
        ratios = largest / scales
        means = scales * (_power(exponent - 1.0, ratios) / _power(exponent, ratios) - 1.0)
        scale = float(np.exp(np.interp(cells.mean, means, np.log(scales))))
        whole = _power(exponent, np.array(largest / scale))
        ends = np.array([low, high]) / scale
        own = _power(exponent, ends)
        # x (1 + x)^-b is (1 + x)^(1 - b) less (1 + x)^-b.
        first = _power(exponent - 1.0, ends) - own
        masses[place] = (own[1] - own[0]) / whole
        moments[place] = scale * (first[1] - first[0]) / whole
    return np.maximum(masses, _TINY), np.maximum(moments, _TINY)


def atoms(cells: Cells, places: Floats, likelihood: Floats) -> list[Explanation]:
    """Explain by priors of one atom, two, and so on towards the maximum of the likelihood.

    A new atom is placed where it raises the likelihood fastest. The score is Laplace's
    approximation. Positions are uniform up to the largest estimate, with a precision that comes
    from the answers near them. The weights are those of answers assigned to the atoms at random.
    """
    from scipy import special  # noqa: PLC0415

    values, counts = cells.values, cells.counts
    precisions = counts / cells.errors**2
    ratios, inverse = values / cells.errors, 1.0 / cells.errors
    kept = np.stack([counts, precisions, precisions * values], axis=1)
    size, largest = cells.size, cells.largest
    where, weights = np.array([cells.mean]), np.ones(1)
    most, steps = (_FEW_ATOMS, _STEPS) if size < _MANY else (_MANY_ATOMS, _MORE_STEPS)
    result: list[Explanation] = []
    best = -math.inf
    for number in range(1, most + 1):
        if number > 1:
            gradient = (counts / (cells.likelihood(where) @ weights)) @ likelihood
            where = np.append(where, places[int(np.argmax(gradient))])
            weights = np.append(weights * 0.9, 0.1)
            for _ in range(steps):
                # A row for each atom; what all of a cell have in common does not matter.
                shares = ratios - where[:, None] * inverse
                shares *= shares
                shares *= -0.5
                np.exp(shares, out=shares)
                shares *= weights[:, None]
                shares += _TINY
                shares /= shares.sum(axis=0)
                sums = shares @ kept
                weights = sums[:, 0] / size
                where = np.maximum(sums[:, 2] / sums[:, 1], 0.0)
        shares = cells.likelihood(where) * weights
        marginal = shares.sum(axis=1)
        shares /= marginal[:, None]
        score = float(counts @ np.log(marginal))
        held, known = counts @ shares, precisions @ shares
        if number > 1:
            if held.min() < 0.5:
                break
            doubt = np.log(np.minimum(np.sqrt(2 * np.pi / known) / largest, 1.0))
            # The mean of all frequencies is known: one place costs nothing.
            score += float(doubt.sum()) - 0.5 * math.log(2 * np.pi / known.sum() / largest**2)
            score += float(special.gammaln(held + 1).sum() - held @ np.log(held / size))
            score += 2 * math.lgamma(number) + math.log(number) - math.lgamma(size + number)
        handicap = -_ATOM_COST / size**2 * (number - 1)
        score += handicap
        means = shares @ where
        spread = np.maximum(shares @ where**2 - means**2, 0.0)
        result.append(Explanation(_atoms_name(number), score, means, spread, handicap))
        best = max(best, score)
        if score < best - _HOPELESS:
            break
    return result


def _atoms_name(number: int) -> str:
    return "one atom" if number == 1 else f"{number} atoms"
