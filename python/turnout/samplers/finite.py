"""Draw one of finitely many values privately."""

from __future__ import annotations

import abc
import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _core
from turnout._seeds import derived
from turnout._types import Array, Floats, Integers, Unsigned
from turnout.domain import Domain
from turnout.samplers.base import RatioSampler
from turnout.samplers.finite_law import (
    UNIT,
    FiniteLaw,
    clipped,
    codes_of,
    divergence_of_point,
    domain_of,
    positive_probabilities,
    probabilities_of,
    values_of,
    worst_of_equals,
)


@dataclass(eq=False, repr=False)
class FiniteSampler(RatioSampler):
    """A sampler of one of finitely many values.

    Attributes
    ----------
    domain_
        The values.
    probabilities_
        The law of one draw.
    """

    epsilon: float = 1.0
    domain_size: int | None = None
    _: KW_ONLY
    domain: Any = None

    _domain_: Domain = field(init=False)
    probabilities_: Floats = field(init=False)

    def _read(self, X: Any) -> tuple[Domain, Integers]:
        domain = domain_of(self.domain_size, self.domain)
        return domain, np.bincount(codes_of(domain, X), minlength=domain.size)

    def _learn(self, data: tuple[Domain, Integers]) -> None:
        self._domain_, counts = data
        self._fit_counts(counts)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability of one draw at given values.

        Parameters
        ----------
        X
            Values of the domain.

        Returns
        -------
        numpy.ndarray
            Natural logarithms, float64 of shape (n_values,).

        Raises
        ------
        NotFittedError
            If the sampler is not fitted.
        UnknownLabelError, CodeOutsideDomainError
            If a value is not in the domain.
        InvalidValueError
            If there is no value.
        """
        self._check_fitted()
        result: Floats = np.log(self.probabilities_)[codes_of(self._domain_, X)]
        return result

    @abc.abstractmethod
    def project(self, p: Any) -> Floats:
        """Return the law of one draw for a person whose values have a given distribution."""

    @abc.abstractmethod
    def worst_case(self, divergence: str = "kl") -> float:
        """Return the largest divergence from a person's distribution to the law of one draw."""

    @abc.abstractmethod
    def _fit_counts(self, counts: Integers) -> None:
        """Fit the sampler on how often each code occurs."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class LawSampler(FiniteSampler):
    """A sampler whose law is the projection of a person's distribution into a band."""

    _weights_: Unsigned

    @abc.abstractmethod
    def _band(self) -> tuple[Floats, Floats]:
        """Return the least and the largest probability of each value."""

    @abc.abstractmethod
    def _law(self) -> FiniteLaw:
        """Return the band in integers."""

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw and the realised reference."""
        self._check_fitted()
        return self._fitted_law.certificate

    def _ratio(self) -> Fraction:
        return self._law().realized_ratio

    def project(self, p: Any) -> Floats:
        """Project a distribution into the band, in closed form.

        Parameters
        ----------
        p
            One probability for each value.

        Returns
        -------
        numpy.ndarray
            The law in the band with the least KL divergence from ``p``: float64 of shape (k,).
            Values without mass get what is left over, usually the least probability. The law of a
            draw agrees with it up to the rounding to integers.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``p`` cannot be used.
        """
        low, high = self._band()
        return clipped(probabilities_of("p", p, low.size), low, high)

    def _fit_counts(self, counts: Integers) -> None:
        self._fitted_law = self._law()
        self._fitted_ratio = self._fitted_law.realized_ratio
        self._weights_ = self._fitted_law.weights(counts)
        self.probabilities_ = self._weights_ / float(self._fitted_law.total)

    def _draw(self, count: int, seed: int | None) -> Array:
        return values_of(self._domain_, _core.choose_weighted(self._weights_, count, seed))


def band_of(sampler: LawSampler) -> tuple[Floats, Floats]:
    """Return the least and the largest probability of each value in a draw."""
    return sampler._band()


@dataclass(eq=False, repr=False)
class FiniteMollifier(LawSampler):
    """A sampler that projects a person's values onto the mollifier and draws one value.

    The mollifier is the set of laws Q with ``|log Q/Q0| <= epsilon / 2`` for a public reference Q0.
    The law of a draw is the member closest to the distribution P of the person's values:
    ``Q = min(max(Q0 e^(-epsilon/2), P / C), Q0 e^(epsilon/2))``, realised in integers.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain_size
        The number of values, which are then the codes 0 .. domain_size - 1: from 2 to 2^24.
    reference
        The public reference: one positive probability for each value; uniform if None. It must not
        depend on the person's data.
    domain
        The values, if they are not codes: a :class:`turnout.Domain` or a list of labels. They are
        public, and must not be derived from the person's values.

    Attributes
    ----------
    domain_
        The values.
    probabilities_
        The law of one draw, which is private like the whole fitted sampler.
    weights_
        The same as integers, which draws are made with.
    certificate_
        A proven bound of ``|log Q/Q0|``, at most ``epsilon / 2``. Q0 is the reference as realised
        in whole numbers out of 2^61. Its relative difference from the given probabilities is less
        than 2^-21.
    budget_
        The budget that pays for draws if you give no other; it allows one draw.

    References
    ----------
    Husain, Balle, Cranko, Nock, "Local differential privacy for sampling" (AISTATS 2020), equation
    (8).

    Examples
    --------
    >>> sampler = FiniteMollifier(epsilon=1.0, domain_size=4)
    >>> sampler.project([0.7, 0.3, 0.0, 0.0]).round(4)
    array([0.4122, 0.2846, 0.1516, 0.1516])
    >>> sampler.fit([0, 0, 1, 0, 1]).sample(1).shape
    (1,)
    >>> round(sampler.worst_case("kl"), 4)
    0.8863
    """

    _: KW_ONLY
    reference: Any = None

    def _band(self) -> tuple[Floats, Floats]:
        """Return the least and the largest probability of each value."""
        reference = self._reference()
        half = math.exp(0.5 * self._check_epsilon())
        return reference / half, reference * half

    def worst_case(self, divergence: str = "kl") -> float:
        """Return the largest divergence from any distribution to its projection.

        The divergence is convex in the distribution. So the worst distribution is certain of the
        rarest value of the reference.

        Parameters
        ----------
        divergence
            ``"kl"`` for D(P, Q) in nats, ``"tv"`` for half the sum of ``|P - Q|``, ``"hellinger"``
            for the *squared* Hellinger distance, one minus the sum of ``sqrt(P Q)``.

        Returns
        -------
        float
            The largest divergence over all distributions of the person's values.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``divergence`` cannot be used.
        """
        least = float(self._reference().min())
        half = math.exp(0.5 * self._check_epsilon())
        others = (1.0 - least) / half
        return divergence_of_point(
            divergence, min(least * half, 1.0 - others), max(1.0 - least * half, others)
        )

    def _reference(self) -> Floats:
        size = domain_of(self.domain_size, self.domain).size
        if self.reference is None:
            return np.full(size, 1.0 / size)
        return positive_probabilities(self.reference, size)

    def _law(self) -> FiniteLaw:
        epsilon = self._check_epsilon()
        reference = self._reference()
        if self.reference is None:
            weights = np.full(reference.size, UNIT // reference.size, np.uint64)
        else:
            weights = np.maximum(np.rint(reference * UNIT), 1.0).astype(np.uint64)
        return FiniteLaw(epsilon, weights)


class RandomizedResponseSampler(FiniteSampler):
    """A sampler that reports one of the person's own values by k-ary randomized response.

    A value is chosen uniformly among the person's own, and kept with probability
    ``e^epsilon / (e^epsilon + k - 1)``; otherwise each other value is equally likely. It is a
    baseline: even a person with different values gets the noise that hides a single value.
    :class:`MinimaxSampler` costs the same, is never worse in the worst case, and adapts to the
    whole distribution.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain_size
        The number of values, which are then the codes 0 .. domain_size - 1: from 2 to 2^24.
    domain
        The values, if they are not codes: a :class:`turnout.Domain` or a list of labels. They are
        public, and must not be derived from the person's values.

    Attributes
    ----------
    domain_
        The values.
    probabilities_
        The law of one draw, which is private like the whole fitted sampler.
    budget_
        The budget that pays for draws if you give no other; it allows one draw.

    Examples
    --------
    >>> sampler = RandomizedResponseSampler(epsilon=1.0, domain_size=4)
    >>> sampler.project([0.5, 0.5, 0.0, 0.0]).round(4)
    array([0.3251, 0.3251, 0.1749, 0.1749])
    >>> sampler.fit([0, 1, 1, 0]).sample(1).shape
    (1,)
    """

    def _ratio(self) -> Fraction:
        own, other = self._encoding().words
        return Fraction(own, other)

    def project(self, p: Any) -> Floats:
        """Return the law of one draw, which is linear in the distribution of the person's values.

        Parameters
        ----------
        p
            One probability for each value.

        Returns
        -------
        numpy.ndarray
            float64 of shape (k,).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``p`` cannot be used.
        """
        size = domain_of(self.domain_size, self.domain).size
        own, other = self._encoding().support_probabilities
        result: Floats = other + (own - other) * probabilities_of("p", p, size)
        return result

    def worst_case(self, divergence: str = "kl") -> float:
        """Return the largest divergence from any distribution to the law of one draw.

        The law is linear in the distribution and the divergence is convex. So the worst case is a
        person who is certain of one value.

        Parameters
        ----------
        divergence
            ``"kl"``, ``"tv"`` or ``"hellinger"`` (squared), as for
            :meth:`FiniteMollifier.worst_case`.

        Returns
        -------
        float
            The largest divergence over all distributions of the person's values.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``divergence`` cannot be used.
        """
        size = domain_of(self.domain_size, self.domain).size
        return worst_of_equals(divergence, self._check_epsilon(), size)

    def _encoding(self) -> _core.DirectEncoding:
        size = domain_of(self.domain_size, self.domain).size
        return _core.DirectEncoding(self._check_epsilon(), size)

    def _fit_counts(self, counts: Integers) -> None:
        self._fitted_ratio = self._ratio()
        self._counts: Unsigned = counts.astype(np.uint64)
        self.probabilities_ = self.project(counts / counts.sum())

    def _draw(self, count: int, seed: int | None) -> Array:
        own = _core.choose_weighted(self._counts, count, derived(seed, 1))
        kernel = _core.DirectEncoding(self._epsilon_, self._domain_.size)
        reports, _ = kernel.randomize(own, 1.0, derived(seed, 2))
        return values_of(self._domain_, reports.astype(np.int64))
