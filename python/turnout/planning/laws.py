"""The moments of one report about an answer, and the law of the errors of many reports."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle

#: The targets in words.
WORDS = {
    "rmse": "root mean squared error of a frequency",
    "max_error": "largest error of a frequency",
    "total_variation": "expected total variation distance",
}

#: More different frequencies are put together: rare ones in groups, each at its mean.
_GROUPS = 2048

#: Answers beside the most uncertain ones are taken as independent of each other.
_LINKED = 32


@dataclass(frozen=True)
class ReportLaw:
    """Moments of ``z = (s - q*) / (p* - q*)``, the estimate of an indicator from one report.

    ``s`` is 1 if the report supports the answer, else 0 (for a histogram of scores: the score).

    Attributes
    ----------
    own, other
        The variance of z for the node's own answer, where its mean is 1, and for another answer,
        where its mean is 0.
    own_third, other_third
        The third central moments.
    exclusive
        Whether z has a constant sum over answers.
    shared
        A function that gives the variance of a count from shared hash functions. It takes the sum
        of the counts of the other answers, and the sum of their squares. None if no functions are
        shared.
    """

    own: float
    other: float
    own_third: float
    other_third: float
    exclusive: bool
    shared: Callable[[Any, Any], Any] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, oracle: FrequencyOracle) -> ReportLaw:
        """Compute the moments from an oracle's realised probabilities."""
        scores = oracle._score_moments
        p, q, d = scores.own, scores.other, scores.difference
        own, other = scores.own_variance / d**2, scores.other_variance / d**2
        # Scores that are sums of much noise have hardly any skewness.
        thirds = (0.0, 0.0)
        if scores.is_pure:
            thirds = own * (1.0 - 2.0 * p) / d, other * (1.0 - 2.0 * q) / d
        exclusive = oracle._supports_equally_many
        return cls(own, other, *thirds, exclusive=exclusive, shared=oracle._shared_variance)

    def total(self, size: int) -> float:
        """Return the mean of the sum of ``z^2`` over ``size`` answers.

        ``[p (1 - 2q) + q^2 + (k - 1) q (1 - q)] / (p - q)^2`` for a pure protocol.
        """
        return 1.0 + self.own + (size - 1) * self.other


@dataclass(frozen=True, eq=False)
class Population:
    """The assumed frequencies, with equal ones merged.

    Attributes
    ----------
    nodes, size
        The numbers of nodes and of answers.
    values, weights
        The distinct frequencies, ascending, and the number of answers with each.
    squares
        The sum of the squares of all frequencies.
    """

    nodes: int
    size: int
    values: Floats
    weights: Floats
    squares: float

    def __eq__(self, other: object) -> bool:
        """Compare the nodes and all frequencies."""
        if not isinstance(other, Population):
            return NotImplemented
        sizes = (self.nodes, self.size) == (other.nodes, other.size)
        return sizes and all(
            np.array_equal(mine, its)
            for mine, its in ((self.values, other.values), (self.weights, other.weights))
        )

    def __hash__(self) -> int:
        """Hash sums that equal populations share."""
        return hash((self.nodes, self.size, self.squares))

    @classmethod
    def of(cls, nodes: int, size: int, frequencies: Any = None) -> Population:
        """Check frequencies; None means equal ones.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one for each answer, one is negative, or they do not add up to one.
        """
        if frequencies is None:
            return cls(nodes, size, np.array([1.0 / size]), np.array([float(size)]), 1.0 / size)
        array = _arguments.frequencies("frequencies", frequencies, size)
        _arguments.refuse_entries("frequencies", array, array < 0.0, "at least 0")
        total = math.fsum(array)
        if abs(total - 1.0) > 1e-6:
            raise InvalidValueError(f"frequencies must add up to one, got a sum of {total}")
        array = array / total
        values, counts = np.unique(array, return_counts=True)
        squares = float(values**2 @ counts)
        if values.size > _GROUPS:
            # The most common answers stay by themselves: the largest errors are theirs.
            ranked = np.sort(array)
            groups = np.array_split(ranked[: -(_GROUPS // 2)], _GROUPS // 2)
            groups += np.array_split(ranked[-(_GROUPS // 2) :], _GROUPS // 2)
            values = np.array([group.mean() for group in groups])
            counts = np.array([group.size for group in groups])
        return cls(nodes, size, values, counts.astype(np.float64), squares)

    def least_rate(self) -> float:
        """Return the smallest rate of a plan: 25 expected reports, so that some arrive."""
        return min(1.0, 25.0 / self.nodes)


@dataclass(frozen=True)
class Spread:
    """The law of the errors of the frequencies that ``"hajek"`` estimates.

    Given the number of reports S, the reporting nodes are a simple random sample. Perturbation adds
    exactly ``(f own + (1 - f) other) E[1/S]`` to the variance, the choice of nodes exactly ``f (1 -
    f) (n E[1/S] - 1) / (n - 1)``. Hash functions that all reports share add a variance that more
    reports do not reduce. Normal laws with these variances give the expected total variation. For
    the largest error the third moments are used too.

    Attributes
    ----------
    law, population
        The law of one report, and the assumed frequencies.
    inverse
        ``E[1/S]``, given that there is a report: without reports nothing is estimated.
    """

    law: ReportLaw
    population: Population
    inverse: float

    @property
    def _sampling(self) -> float:
        n = self.population.nodes
        return max(0.0, (n * self.inverse - 1.0) / (n - 1)) if n > 1 else 0.0

    @property
    def variances(self) -> Floats:
        """The variance of the estimate at each of the population's values."""
        return self._variances(self.population.values)

    def _variances(self, f: Floats) -> Floats:
        law, chosen = self.law, f * (1.0 - f)
        perturbed = law.other + f * (law.own - law.other)
        return np.asarray(self.inverse * perturbed + self._sampling * chosen + self._shared(f))

    def _shared(self, f: Floats) -> Floats:
        """Return the variance from shared hash functions, which more reports do not reduce."""
        n, shared = float(self.population.nodes), self.law.shared
        if shared is None:
            return np.zeros_like(f)
        others = np.maximum(self.population.squares - f * f, 0.0)
        return np.asarray(shared((1.0 - f) * n, others * n * n) / (n * n))

    def rmse(self) -> float:
        """Return the exact root of the mean variance over answers."""
        law, size = self.law, self.population.size
        perturbed = law.own + (size - 1) * law.other
        chosen = 1.0 - self.population.squares
        shared = float(self.population.weights @ self._shared(self.population.values))
        return math.sqrt((self.inverse * perturbed + self._sampling * chosen + shared) / size)

    def total_variation(self) -> float:
        """Return the mean of half the sum of the absolute errors, for normal laws."""
        deviations = np.sqrt(self.variances)
        return float(self.population.weights @ deviations) / math.sqrt(2.0 * math.pi)

    def max_error(self, confidence: float) -> float:
        """Return what the largest error does not exceed with probability ``confidence``.

        It uses the product of the probabilities of single answers (Sidak). For each edge of the
        spanning tree of the strongest correlations among the most uncertain answers, it multiplies
        by the ratio of the joint probability to the product. The result is exact for two answers
        with normal errors, and for independent ones. Each answer's law is a shifted gamma law with
        the first three moments of its error.
        """
        from scipy.optimize import brentq  # noqa: PLC0415

        deviations = np.sqrt(self.variances)
        largest = float(deviations.max())
        if largest == 0.0:
            return 0.0
        shapes = self._shapes(deviations)
        edges = self._edges()
        aim = math.log(confidence)

        def excess(multiple: float) -> float:
            limits = multiple * largest / np.maximum(deviations, largest * 1e-12)
            inside = np.log1p(-np.minimum(_outside(limits, shapes), math.nextafter(1.0, 0.0)))
            total = float(self.population.weights @ inside)
            for one, two, correlation in edges:
                total += _link(multiple * largest / one, multiple * largest / two, correlation)
            return max(total, -1e3) - aim

        return largest * float(brentq(excess, 1e-9, 1e3, xtol=1e-9, rtol=1e-9))

    def value(self, target: str, confidence: float) -> float:
        """Return the error of a target."""
        if target == "rmse":
            return self.rmse()
        if target == "total_variation":
            return self.total_variation()
        return self.max_error(confidence)

    def _shapes(self, deviations: Floats) -> Floats:
        """Return the shapes of gamma laws: 4 over the squared skewness, else infinite."""
        law, f, a, b = self.law, self.population.values, self.inverse, self._sampling
        third = a * a * (f * law.own_third + (1.0 - f) * law.other_third)
        third += 3.0 * a * b * f * (1.0 - f) * (law.own - law.other)
        third += b * (a - 2.0 / self.population.nodes) * f * (1 - f) * (1 - 2 * f)
        skewness = np.abs(third) / np.maximum(deviations, 1e-300) ** 3
        return np.asarray(4.0 / np.maximum(skewness, 1e-5) ** 2)

    def _edges(self) -> list[tuple[float, float, float]]:
        """Return the tree of the strongest correlations: pairs of deviations with correlations."""
        order = np.argsort(-self.variances)
        weights = self.population.weights[order].astype(np.int64)
        f = np.repeat(self.population.values[order], np.minimum(weights, _LINKED))[:_LINKED]
        deviations = np.sqrt(self._variances(f))
        covariance = np.zeros((f.size, f.size))
        size = self.population.size
        if self.law.exclusive:
            # Given the node: its own answer against any other, and two others.
            with_own = self.law.own / (size - 1)
            others = (self.law.other - with_own) / (size - 2) if size > 2 else 0.0
            pairs = f[:, None] + f[None, :]
            covariance -= self.inverse * (pairs * with_own + np.maximum(1.0 - pairs, 0.0) * others)
        covariance -= self._sampling * f[:, None] * f[None, :]
        scale = np.maximum(deviations, 1e-300)
        strength = np.clip(covariance / (scale[:, None] * scale[None, :]), -1.0, 1.0)
        np.fill_diagonal(strength, 0.0)
        if f.size < 2 or np.abs(strength).max() < 0.1:
            return []
        best, parent = np.abs(strength[0]), np.zeros(f.size, dtype=np.int64)
        best[0] = -1.0
        edges = []
        for _ in range(f.size - 1):
            node = int(best.argmax())
            correlation = float(strength[node, parent[node]])
            if abs(correlation) >= 0.1:
                edges.append((deviations[node], deviations[parent[node]], correlation))
            best[node] = -1.0
            closer = (np.abs(strength[node]) > best) & (best >= 0.0)
            best[closer], parent[closer] = np.abs(strength[node])[closer], node
        return edges


def _outside(limits: Floats, shapes: Floats) -> Floats:
    """Return the probability that standardised shifted gamma laws exceed limits, on both sides."""
    from scipy import special  # noqa: PLC0415

    reach = np.minimum(limits, 1e6) * np.sqrt(shapes)
    above = special.gammaincc(shapes, shapes + reach)
    below = special.gammainc(shapes, np.maximum(shapes - reach, 0.0))
    plain = 2.0 * special.ndtr(-limits)
    return np.asarray(np.where(shapes > 1e9, plain, above + below))


def _link(one: float, two: float, correlation: float) -> float:
    """Return the logarithm of P(both inside) / (P(one) P(two)) of two normal laws."""
    from scipy import special  # noqa: PLC0415

    alone = [float(special.erf(limit / math.sqrt(2.0))) for limit in (one, two)]
    if min(alone) <= 1e-12:
        return 0.0
    rest = math.sqrt(max(0.0, 1.0 - correlation * correlation))
    if rest < 1e-3:
        return -math.log(max(alone))
    nodes, weights = _quadrature()
    reach = min(one, 9.0)
    points = reach * nodes
    density = np.exp(-(points**2) / 2.0) / math.sqrt(2.0 * math.pi)
    inside = special.ndtr((two - correlation * points) / rest) - special.ndtr(
        (-two - correlation * points) / rest
    )
    both = float(reach * (weights * density) @ inside)
    return math.log(max(both, 1e-300)) - math.log(alone[0]) - math.log(alone[1])


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return the points and weights of Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(96)
    return nodes, weights
