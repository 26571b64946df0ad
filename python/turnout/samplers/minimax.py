"""Private draws that are optimal in the worst case."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import logarithm_up
from turnout._types import Array, Floats, Self, Unsigned
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.samplers.adapters import as_reference
from turnout.samplers.base import RatioSampler, points, random_state_of, training_points
from turnout.samplers.budget import PrivacyBudget
from turnout.samplers.density import fitted_estimate
from turnout.samplers.drawing import automatic_proposals
from turnout.samplers.finite.law import (
    UNIT,
    FiniteLaw,
    clipped,
    codes_of,
    divergence_of_point,
    domain_of,
    probabilities_of,
    values_of,
    values_tags,
)
from turnout.samplers.mollifier import Projection, log_density_of
from turnout.samplers.reference import Reference, check_support

#: The reference weight of a proposal in the core.
_PROPOSAL = 2**32


class MinimaxSampler(RatioSampler):
    """A private draw whose largest divergence from the person's distribution is the least possible.

    *Finitely many values* (``domain_size`` or ``domain``): for values of distribution P the law of
    a draw is ``Q(x) = max(P(x) / r, 1 / (e^epsilon + k - 1))``, with the r at which it adds up to
    one. No epsilon-private sampler has a smaller worst case over all P, in KL divergence, total
    variation or Hellinger distance.

    *Points* (``reference`` h with ``lower`` and ``upper``): for densities that are between
    ``lower h`` and ``upper h``, the law is ``Q = clip(P / r, b h, b e^epsilon h)`` with
    ``b = 1 / (alpha e^epsilon + 1 - alpha)`` and ``alpha = (1 - lower) / (upper - lower)``. The
    band need not be symmetric about h as the mollifier's is. It is drawn from by mollified
    resampling: exactly private, and close to Q. The data may have any density: clipping keeps the
    guarantee of privacy, but the statement about the worst case is for the class.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain_size
        The number of values, which are then the codes 0 .. domain_size - 1: from 2 to 2^24.
    domain
        The values, where they are no codes: a :class:`turnout.Domain` or a list of labels. It is
        public, and must not be made of the person's values.
    reference
        The public reference h over points: anything that :func:`as_reference` takes. It must not
        depend on the person's data.
    lower, upper
        The class of densities over points: ``0 <= lower < 1 < upper``.
    estimator
        A density estimator of points, as for :class:`MollifiedDensity`.
    proposals
        How many proposals a draw of a point sees; chosen by epsilon if None.
    random_state
        Seeds the default estimator; draws are not affected.

    Attributes
    ----------
    domain_, probabilities_, weights_
        Of values: the domain, the law of one draw, and the same as integers.
    reference_, estimator_, projection_
        Of points: the reference, the fitted estimate and its projection.
    certificate_
        A proven bound of ``|log Q/Q0|``, where Q0 is the reference, or uniform over the values.
    budget_
        What pays for draws where no other budget is given: one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the data cannot be used: a point outside the support
        of the reference is refused.
    MissingExtraError
        From ``fit`` on points, if scikit-learn is needed and not installed.

    References
    ----------
    Park, Asoodeh, Lee, "Exactly minimax-optimal locally differentially private sampling" (NeurIPS
    2024).

    Examples
    --------
    >>> sampler = MinimaxSampler(epsilon=1.0, domain_size=10)
    >>> sampler.project([0.6, 0.4] + [0.0] * 8).round(4)
    array([0.1904, 0.1269, 0.0853, 0.0853, 0.0853, 0.0853, 0.0853, 0.0853,
           0.0853, 0.0853])
    >>> round(sampler.worst_case("kl"), 3)
    1.461
    >>> sampler.fit([3, 3, 4]).sample(1).shape
    (1,)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        domain_size: int | None = None,
        *,
        domain: Domain | None = None,
        reference: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        estimator: Any = None,
        proposals: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain_size = domain_size
        self.domain = domain
        self.reference = reference
        self.lower = lower
        self.upper = upper
        self.estimator = estimator
        self.proposals = proposals
        self.random_state = random_state

    domain_: Domain
    weights_: Unsigned
    probabilities_: Floats
    reference_: Reference
    estimator_: Any
    projection_: Projection
    n_features_in_: int

    def fit(self, X: Any, y: None = None) -> Self:
        """Fit on one person's data.

        Parameters
        ----------
        X
            The person's values, as for :meth:`turnout.Domain.encode`; or points of shape
            (n_records, n_features).
        y
            Not used; scikit-learn's convention.

        Returns
        -------
        MinimaxSampler
            The sampler itself. Each fit grants one draw anew: a second fit on the same data is a
            second release if it is drawn from.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If a value is not in the domain.
        InvalidTypeError, InvalidValueError
            If a parameter or the data cannot be used.
        MissingExtraError
            If scikit-learn is needed and not installed.
        """
        epsilon = self.check_epsilon()
        # A failed fit leaves no half-fitted sampler behind.
        if self._over_values():
            domain = self._values()
            counts = np.bincount(codes_of(domain, X), minlength=domain.size)
            vars(self).pop("budget_", None)
            law = self._law(epsilon, domain.size)
            self.domain_ = domain
            self.weights_ = law.weights(counts)
            self.probabilities_ = self.weights_ / float(law.total)
            self._certificate = law.certificate
        else:
            base = self._base(epsilon)
            records = training_points(X)
            vars(self).pop("budget_", None)
            self._fit_points(records, epsilon, base)
        self._fitted_ratio, self._fitted_limits = self._ratio(), self._limits()
        self.epsilon_ = epsilon
        self._fitted_values = self._over_values()
        self.budget_ = PrivacyBudget(epsilon)
        return self

    def _fit_points(self, records: Floats, epsilon: float, base: float) -> None:
        seen = self.proposals
        if seen is not None:
            seen = _arguments.integer("proposals", seen, least=2, most=2**30)
        self.n_features_in_ = records.shape[1]
        self.reference_ = as_reference(self.reference, records.shape[1])
        check_support("X", records, self.reference_)
        self.estimator_ = fitted_estimate(
            self.estimator, records, self.reference_, random_state_of(self.random_state)
        )
        density = log_density_of(self.estimator_)
        self.projection_ = Projection(self.reference_, density, epsilon, base=base)
        self._seen = seen or automatic_proposals(epsilon)
        low, high = _core.SamplerBand(epsilon, base).limits(_PROPOSAL)
        self._certificate = logarithm_up(max(Fraction(high, _PROPOSAL), Fraction(_PROPOSAL, low)))

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self.check_fitted()
        return self._certificate

    @property
    def log_limits(self) -> tuple[float, float]:
        """The logarithms of the limits of Q/Q0 over points: not symmetric about zero.

        Of a fitted sampler those of its draws, whatever its parameters are now.
        """
        found = self._fitted_limits if self.__sklearn_is_fitted__() else self._limits()
        if found is None:
            raise InvalidValueError(
                "log_limits are those of a sampler of points, got one of values"
            )
        return found

    def _limits(self) -> tuple[float, float] | None:
        if self._over_values():
            return None
        epsilon = self.check_epsilon()
        least = math.log(self._base(epsilon))
        return least, least + epsilon

    def _ratio(self) -> Fraction:
        epsilon = self.check_epsilon()
        if self._over_values():
            return self._law(epsilon, self._values().size).realized_ratio
        low, high = _core.SamplerBand(epsilon, self._base(epsilon)).limits(_PROPOSAL)
        return Fraction(high, low)

    def project(self, p: Any) -> Any:
        """Give the law of one draw for a person of a given distribution.

        Parameters
        ----------
        p
            Over values: one probability for each. Over points: a density as for
            :meth:`RelativeMollifier.project`.

        Returns
        -------
        numpy.ndarray or Projection
            Over values: float64 of shape (k,), in closed form; the law of a draw agrees with it but
            for the rounding to integers. Over points: the density, with draws from it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``p`` cannot be used.
        """
        epsilon = self.check_epsilon()
        if self._over_values():
            size = self._values().size
            given = probabilities_of("p", p, size)
            floor = np.full(size, 1.0 / (math.exp(epsilon) + (size - 1)))
            return clipped(given, floor, math.exp(epsilon) * floor)
        density = log_density_of(p)
        dimension = getattr(self.reference, "dimension", getattr(self, "n_features_in_", 1))
        reference = as_reference(self.reference, dimension)
        return Projection(reference, density, epsilon, base=self._base(epsilon))

    def worst_case(self, divergence: str = "kl") -> float:
        """Give the largest divergence from a distribution of the class to its projection.

        Over values a distribution that is certain of one value is worst; over points a density
        that is ``upper h`` on a set of h-probability alpha, and ``lower h`` elsewhere (h must have
        such sets, as every continuous distribution has). No private sampler has a smaller one.

        Parameters
        ----------
        divergence
            ``"kl"`` for D(P, Q) in nats, ``"tv"`` for half the sum (or integral) of ``|P - Q|``,
            ``"hellinger"`` for the *squared* Hellinger distance, one minus the sum of
            ``sqrt(P Q)``.

        Returns
        -------
        float
            The largest divergence. Zero over points if ``upper <= lower e^epsilon``: then every
            density of the class can be drawn from as it is.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``divergence`` cannot be used.
        """
        epsilon = self.check_epsilon()
        if self._over_values():
            others = self._values().size - 1
            whole = math.exp(epsilon) + others
            return divergence_of_point(divergence, math.exp(epsilon) / whole, others / whole)
        lower, upper = self._class()
        return _worst_density(divergence, epsilon, lower, upper)

    def score_samples(self, X: Any) -> Floats:
        """Give the log-probability or log-density of one draw.

        Parameters
        ----------
        X
            Values of the domain, or points of shape (n_points, n_features).

        Returns
        -------
        numpy.ndarray
            Natural logarithms, float64 of shape (n,).

        Raises
        ------
        NotFittedError
            If the sampler was not fitted.
        InvalidTypeError, InvalidValueError
            If the values or points cannot be used.
        """
        self.check_fitted()
        if self._fitted_values:
            result: Floats = np.log(self.probabilities_)[codes_of(self.domain_, X)]
            return result
        records = points("X", X)
        if records.shape[1] != self.n_features_in_:
            raise InvalidValueError(
                f"X has {records.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return self.projection_.log_density(records)

    @property
    def of_points(self) -> bool:
        """Whether the fitted sampler draws points, and not one of finitely many values."""
        return not self._fitted_values

    def _draw(self, count: int, seed: int | None) -> Array:
        if self._fitted_values:
            return values_of(self.domain_, _core.choose_weighted(self.weights_, count, seed))
        return self.projection_.sample(count, proposals=self._seen, seed=seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.domain_size is not None or self.domain is not None:
            tags.input_tags = values_tags(tags.input_tags)
        return tags

    def _over_values(self) -> bool:
        """Whether the sampler is over finitely many values, not over points."""
        over_values = self.domain_size is not None or self.domain is not None
        of_points = ("reference", "lower", "upper", "estimator", "proposals")
        given = [name for name in of_points if getattr(self, name) is not None]
        if over_values and given:
            raise InvalidValueError(
                f"{given[0]} is for samplers of points, and domain_size or domain for samplers of "
                "finitely many values: give one of the two"
            )
        if not over_values and (self.lower is None or self.upper is None):
            raise InvalidValueError(
                "lower and upper must be given for a sampler of points, domain_size or domain for "
                f"one of finitely many values, got lower = {self.lower!r}, upper = {self.upper!r}"
            )
        return over_values

    def _values(self) -> Domain:
        return domain_of(self.domain_size, self.domain)

    def _law(self, epsilon: float, size: int) -> FiniteLaw:
        reference = np.full(size, UNIT // size, np.uint64)
        base = size / (math.exp(epsilon) + (size - 1))
        return FiniteLaw(epsilon, reference, base)

    def _class(self) -> tuple[float, float]:
        lower = _arguments.number("lower", self.lower)
        upper = _arguments.number("upper", self.upper)
        if not 0.0 <= lower < 1.0:
            raise InvalidValueError(f"lower must be at least 0 and below 1, got {lower}")
        if not 1.0 < upper < math.inf:
            raise InvalidValueError(f"upper must be a finite number above 1, got {upper}")
        return lower, upper

    def _base(self, epsilon: float) -> float:
        return _base_of(epsilon, *self._class())


def _base_of(epsilon: float, lower: float, upper: float) -> float:
    """Give the least density of a draw, relative to the reference."""
    return 1.0 / (1.0 + (1.0 - lower) / (upper - lower) * math.expm1(epsilon))


def _worst_density(divergence: Any, epsilon: float, lower: float, upper: float) -> float:
    """Give the divergence of the density that is at its bounds everywhere."""
    name = _arguments.choice("divergence", divergence, ("kl", "tv", "hellinger"))
    if upper <= lower * math.exp(epsilon):
        return 0.0
    alpha = (1.0 - lower) / (upper - lower)
    least = _base_of(epsilon, lower, upper)
    most = least * math.exp(epsilon)
    if name == "tv":
        return alpha * (upper - most)
    if name == "hellinger":
        return 0.5 * (
            alpha * (math.sqrt(upper) - math.sqrt(most)) ** 2
            + (1.0 - alpha) * (math.sqrt(lower) - math.sqrt(least)) ** 2
        )
    rest = lower * math.log(lower / least) if lower > 0.0 else 0.0
    return alpha * upper * math.log(upper / most) + (1.0 - alpha) * rest
