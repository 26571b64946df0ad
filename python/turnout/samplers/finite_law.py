"""Compute laws over finitely many values, in integers and in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import logarithm_up
from turnout._types import Array, Floats, Integers, Unsigned
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError

#: All probabilities are held in memory.
LARGEST_DOMAIN = 2**24

#: What the integer weights of a reference add up to, about.
UNIT = 2**61

#: Smaller probabilities of a reference would be rounded visibly to such weights.
LEAST_REFERENCE = 2.0**-40

#: Smaller probabilities are read as zero: their reciprocals leave floating-point range.
_TINY = 1e-250


def domain_of(domain_size: Any, domain: Any) -> Domain:
    """Make the domain of a sampler from whichever of its two parameters is given."""
    if domain is None and isinstance(domain_size, (Domain, list, tuple)):
        domain_size, domain = None, domain_size
    if (domain_size is None) == (domain is None):
        raise InvalidValueError(
            "exactly one of domain_size and domain must be given, got domain_size = "
            f"{_arguments.shown(domain_size)} and domain = {_arguments.shown(domain)}"
        )
    if domain is None:
        size = _arguments.integer("domain_size", domain_size, least=2, most=LARGEST_DOMAIN)
        return Domain.from_integers(size)
    try:
        made = domain if isinstance(domain, Domain) else Domain(domain)
    except (InvalidTypeError, InvalidValueError) as error:
        raise type(error)(f"domain must be a Domain or a list of labels: {error}") from error
    _arguments.integer("the size of domain", made.size, least=2, most=LARGEST_DOMAIN)
    return made


def codes_of(domain: Domain, values: Any) -> Integers:
    """Return the codes of values; there must be at least one."""
    codes = np.asarray(domain.encode(values)).astype(np.int64)
    if not codes.size:
        raise InvalidValueError("X must have at least 1 value, got none")
    return codes


def values_of(domain: Domain, codes: Integers) -> Array:
    """Return the values of codes: the codes themselves, or an array of labels."""
    if domain == Domain.from_integers(domain.size):
        return codes
    # One entry for each label, also where labels are tuples.
    return np.fromiter(domain.labels, dtype=object, count=domain.size)[codes]


def probabilities_of(argument: str, value: Any, size: int) -> Floats:
    """Check and return a distribution over the codes, whose sum must be one up to rounding."""
    shares = _arguments.frequencies(argument, value, size)
    _arguments.refuse_entries(argument, shares, shares < 0.0, "at least 0")
    total = float(shares.sum())
    if not abs(total - 1.0) <= 1e-6:
        raise InvalidValueError(f"{argument} must add up to 1, got {total}")
    normalised: Floats = shares / total
    return normalised


def positive_probabilities(value: Any, size: int | None = None) -> Floats:
    """Check and return a reference over the codes, which must make every code possible."""
    count = len(value) if size is None else size
    given = probabilities_of("reference", value, count)
    if not count or not (given >= LEAST_REFERENCE).all():
        place = int(np.flatnonzero(given < LEAST_REFERENCE)[0]) if count else 0
        raise _arguments.invalid(
            f"reference[{place}] must be at least 2^-40: every value must be possible", value
        )
    return given


def clipped(p: Floats, low: Floats, high: Floats) -> Floats:
    """Return ``clip(t p, low, high)`` for the t at which the sum is one.

    Parameters
    ----------
    p
        Not negative, with a positive entry.
    low, high
        Positive limits; the lower ones add up to at most one, the upper ones to at least one.

    Returns
    -------
    numpy.ndarray
        The limit of the clipped masses as the zeros of ``p`` go to zero: where all other entries
        are at their upper limit, these zeros share the rest in proportion to their lower limits.
    """
    some = p > _TINY
    if not some.all():
        rest = 1.0 - float(high[some].sum())
        least = float(low[~some].sum())
        if rest >= least:
            return np.where(some, high, low * (rest / least))
    mass = np.where(some, p, 0.0)
    steps = np.sort(np.concatenate([low[some] / p[some], high[some] / p[some]]))
    # The sum grows with the factor, piecewise linearly between these steps.
    first, last = 0, len(steps) - 1
    while first < last:
        middle = (first + last) // 2
        if float(np.clip(mass * steps[middle], low, high).sum()) < 1.0:
            first = middle + 1
        else:
            last = middle
    inner = 0.5 * (steps[max(first - 1, 0)] + steps[first])
    scaled = mass * inner
    active = (scaled > low) & (scaled < high)
    slope = float(mass[active].sum())
    factor = steps[first]
    if slope > 0.0:
        factor = (1.0 - float(np.clip(scaled, low, high)[~active].sum())) / slope
    result: Floats = np.clip(mass * factor, low, high)
    return result


def divergence_of_point(divergence: Any, mass: float, rest: float) -> float:
    """Return the divergence of a point mass from a law that gives its value ``mass = 1 - rest``."""
    name = _arguments.choice("divergence", divergence, ("kl", "tv", "hellinger"))
    if name == "tv":
        return rest
    if name == "hellinger":
        return rest / (1.0 + math.sqrt(mass))
    return -math.log1p(-rest) if rest < 0.5 else -math.log(mass)


def worst_of_equals(divergence: Any, epsilon: float, size: int) -> float:
    """Return the divergence of a point mass from the law that hides it among ``size`` values."""
    others = size - 1
    whole = math.exp(epsilon) + others
    return divergence_of_point(divergence, math.exp(epsilon) / whole, others / whole)


def base_of_points(epsilon: float, reference: Unsigned) -> float:
    """Choose the base that keeps one certain value most often.

    Parameters
    ----------
    epsilon
        Privacy of one draw.
    reference
        Integer weights, at least 1, of the values that people hold.

    Returns
    -------
    float
        The base, from ``e^-epsilon`` to 1, at which a draw for the value of a person is that value
        most often, on average over people whose values follow the reference. For a uniform
        reference of k values this is ``k / (e^epsilon + k - 1)``: randomized response.

    Notes
    -----
    A person whose value has probability ``r`` keeps it with probability
    ``min(b e^epsilon r, 1 - b (1 - r))`` where ``b`` is the base. The average is concave in ``b``,
    and straight between the bases ``1 / (1 + r (e^epsilon - 1))`` at which the two are equal.
    """
    shares = np.unique(reference / float(reference.sum()), return_counts=True)
    share, count = shares[0][::-1], shares[1][::-1]  # the steps ascend where the shares descend
    steps = 1.0 / (1.0 + share * math.expm1(epsilon))
    rising = np.cumsum((count * share**2)[::-1])[::-1] * math.exp(epsilon)
    falling = np.cumsum(count * share * (1.0 - share))
    # Up to a step all values from it on rise; after it they fall.
    past = np.concatenate([rising[1:], [0.0]]) - falling
    return float(steps[np.flatnonzero(past <= 0.0)[0]])


@dataclass(frozen=True)
class FiniteLaw:
    """Laws over finitely many codes whose integer weights are within a band around a reference.

    Attributes
    ----------
    epsilon
        Privacy of one draw.
    reference
        The integer weights of the reference: uint64, at least 1.
    base
        The least probability relative to the reference; None for the mollifier.
    """

    epsilon: float
    reference: Unsigned
    base: float | None = None

    @property
    def band(self) -> _core.SamplerBand:
        """The band of the core."""
        return _core.SamplerBand(self.epsilon, self.base)

    @cached_property
    def total(self) -> int:
        """The sum of the weights of every law."""
        return int(self.reference.sum())

    @cached_property
    def limits(self) -> list[tuple[int, int, int]]:
        """For each different reference weight: itself, and its limits that can be reached."""
        weights, repeats = np.unique(self.reference, return_counts=True)
        band = self.band
        each = [(weight, *band.limits(weight)) for weight in weights.tolist()]
        least = sum(low * count for (_, low, _), count in zip(each, repeats.tolist(), strict=True))
        return [(weight, low, min(high, self.total - least + low)) for weight, low, high in each]

    @cached_property
    def realized_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of a draw under two data sets, exactly."""
        return max(Fraction(high, low) for _, low, high in self.limits)

    @cached_property
    def certificate(self) -> float:
        """A proven bound of ``|log Q/Q0|``."""
        above = max(Fraction(high, weight) for weight, _, high in self.limits)
        below = max(Fraction(weight, low) for weight, low, _ in self.limits)
        return logarithm_up(max(above, below))

    def weights(self, counts: Integers) -> Unsigned:
        """Return the integer weights of a draw, given the counts of a person's values."""
        with np.errstate(divide="ignore"):
            ratios = np.log(counts / self.reference.astype(np.float64))
        return self.band.weights(ratios, self.reference)[0]
