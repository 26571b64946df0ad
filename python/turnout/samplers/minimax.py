"""Draw privately with the best worst case, and choose a sampler of values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import logarithm_up
from turnout._types import Array, Floats
from turnout.domain import Domain
from turnout.domain import domain_of as public_domain
from turnout.errors import InvalidValueError
from turnout.samplers.adapters import as_reference, log_density_of
from turnout.samplers.density import ProjectedSampler
from turnout.samplers.finite import FiniteMollifier, LawSampler
from turnout.samplers.finite_law import UNIT, FiniteLaw, domain_of, worst_of_equals
from turnout.samplers.mollifier import Projection

#: The reference weight of a proposal in the core.
_PROPOSAL: Final = 2**32

#: Nobody is asked to think of more different values than so many.
_MOST: Final = 2**16


@dataclass(eq=False, repr=False)
class MinimaxSampler(LawSampler, ProjectedSampler):
    """A sampler whose largest divergence from the person's distribution is the least possible.

    *Finitely many values* (``domain_size`` or ``domain``): for values of distribution P the law of
    a draw is ``Q(x) = max(P(x) / r, 1 / (e^epsilon + k - 1))``, with the r at which the sum is one.
    No epsilon-private sampler has a smaller worst case over all P, in KL divergence, total
    variation or Hellinger distance.

    *Points* (``reference`` h with ``low`` and ``high``): for densities that are between ``low h``
    and ``high h``, the law is ``Q = clip(P / r, b h, b e^epsilon h)`` with
    ``b = 1 / (alpha e^epsilon + 1 - alpha)`` and ``alpha = (1 - low) / (high - low)``. The band
    need not be symmetric about h as the mollifier's is. Draws are made by mollified resampling:
    they are exactly private, and their law is close to Q. The data may have any density, since
    clipping keeps the guarantee of privacy. But the statement about the worst case is for the class
    only.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain_size
        The number of values, which are then the codes 0 .. domain_size - 1: from 2 to 2^24.
    domain
        The values, if they are not codes: a :class:`turnout.Domain` or a list of labels. They are
        public, and must not be derived from the person's values.
    reference
        The public reference h over points: anything that :func:`as_reference` takes. It must not
        depend on the person's data.
    low, high
        The class of densities over points: ``0 <= low < 1 < high``.
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
        The budget that pays for draws if you give no other; it allows one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the data cannot be used. A point outside the support of the
        reference is refused.
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

    _: KW_ONLY
    low: float | None = None
    high: float | None = None

    def _read(self, X: Any) -> Any:
        if self._over_values():
            return LawSampler._read(self, X)
        # What is refused, before anything of an earlier fit is given up.
        self._base()
        return ProjectedSampler._read(self, X)

    def _learn(self, data: Any) -> None:
        self._fitted_values = self._over_values()
        (LawSampler if self._fitted_values else ProjectedSampler)._learn(self, data)

    def _fit(self, records: Floats) -> None:
        super()._fit(records)
        low, high = self._proposal_limits()
        self._fitted_ratio = Fraction(high, low)
        self._certificate = logarithm_up(max(Fraction(high, _PROPOSAL), Fraction(_PROPOSAL, low)))

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self._check_fitted()
        return super().certificate_ if self._fitted_values else self._certificate

    @property
    def _log_limits(self) -> tuple[float, float]:
        """The logarithms of the limits of Q/Q0 over points: not symmetric about zero.

        For a fitted sampler they are the limits of its draws, whatever its parameters are now.
        """
        fitted = self.__sklearn_is_fitted__()
        if self._fitted_values if fitted else self._over_values():
            raise InvalidValueError("log_limits needs a sampler of points, got a sampler of values")
        if fitted:
            return self._projection_._log_limits
        low, high = self._proposal_limits()
        return math.log(low / _PROPOSAL), math.log(high / _PROPOSAL)

    def _proposal_limits(self) -> tuple[int, int]:
        return _core.SamplerBand(self._check_epsilon(), self._base()).limits(_PROPOSAL)

    def _ratio(self) -> Fraction:
        self._check_epsilon()
        if self._over_values():
            return super()._ratio()
        low, high = self._proposal_limits()
        return Fraction(high, low)

    def project(self, p: Any) -> Any:
        """Return the law of one draw for a person with a given distribution.

        Parameters
        ----------
        p
            Over values: one probability for each. Over points: a density as for
            :meth:`RelativeMollifier.project`.

        Returns
        -------
        numpy.ndarray or Projection
            Over values: float64 of shape (k,), in closed form; the law of a draw agrees with it up
            to the rounding to integers. Over points: the density, with draws from it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``p`` cannot be used.
        """
        epsilon = self._check_epsilon()
        if self._over_values():
            return super().project(p)
        density = log_density_of("density", p)
        dimensions = getattr(self.reference, "dimensions", getattr(self, "n_features_in_", 1))
        reference = as_reference(self.reference, dimensions)
        return Projection(reference, density, epsilon, base=self._base())

    def _band(self) -> tuple[Floats, Floats]:
        """Return the least and the largest probability of each value."""
        size = domain_of(self.domain_size, self.domain).size
        floor = np.full(size, 1.0 / (math.exp(self._check_epsilon()) + (size - 1)))
        return floor, math.exp(self._check_epsilon()) * floor

    def worst_case(self, divergence: str = "kl") -> float:
        """Return the largest divergence from a distribution of the class to its projection.

        Over values, the worst distribution is certain of one value. Over points, the worst density
        is ``high h`` on a set of h-probability alpha and ``low h`` elsewhere (h must have such
        sets, as every continuous distribution has). No private sampler has a smaller worst case.

        Parameters
        ----------
        divergence
            ``"kl"`` for D(P, Q) in nats, ``"tv"`` for half the sum (or integral) of ``|P - Q|``,
            ``"hellinger"`` for the *squared* Hellinger distance, one minus the sum of
            ``sqrt(P Q)``.

        Returns
        -------
        float
            The largest divergence. Over points it is zero if ``high <= low e^epsilon``: every
            density of the class can then be drawn from as it is.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a parameter or ``divergence`` cannot be used.
        """
        epsilon = self._check_epsilon()
        if self._over_values():
            size = domain_of(self.domain_size, self.domain).size
            return worst_of_equals(divergence, epsilon, size)
        low, high = self._class()
        return _worst_density(divergence, epsilon, low, high)

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability or log-density of one draw.

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
            If the sampler is not fitted.
        InvalidTypeError, InvalidValueError
            If the values or points cannot be used.
        """
        self._check_fitted()
        kind = LawSampler if self._fitted_values else ProjectedSampler
        return kind.score_samples(self, X)

    @property
    def _of_points(self) -> bool:
        """Whether the fitted sampler draws points, not one of finitely many values."""
        return not self._fitted_values

    def _draw(self, count: int, seed: int | None) -> Array:
        kind = LawSampler if self._fitted_values else ProjectedSampler
        return kind._draw(self, count, seed)

    def __sklearn_tags__(self) -> Any:
        over_values = self.domain_size is not None or self.domain is not None
        return (LawSampler if over_values else ProjectedSampler).__sklearn_tags__(self)

    def _over_values(self) -> bool:
        """Return whether the sampler is over finitely many values, not over points."""
        over_values = self.domain_size is not None or self.domain is not None
        of_points = ("reference", "low", "high", "estimator", "proposals")
        given = [name for name in of_points if getattr(self, name) is not None]
        if over_values and given:
            raise InvalidValueError(
                f"{given[0]} is for samplers of points, and domain_size or domain for samplers of "
                "finitely many values: give one of the two"
            )
        if not over_values and (self.low is None or self.high is None):
            raise InvalidValueError(
                "low and high must be given for a sampler of points, domain_size or domain for "
                f"one of finitely many values, got low = {self.low!r}, high = {self.high!r}"
            )
        return over_values

    def _law(self) -> FiniteLaw:
        epsilon, size = self._check_epsilon(), domain_of(self.domain_size, self.domain).size
        reference = np.full(size, UNIT // size, np.uint64)
        return FiniteLaw(epsilon, reference, size / (math.exp(epsilon) + (size - 1)))

    def _class(self) -> tuple[float, float]:
        low = _arguments.number("low", self.low)
        high = _arguments.number("high", self.high)
        if not 0.0 <= low < 1.0:
            raise InvalidValueError(f"low must be at least 0 and below 1, got {low}")
        if not 1.0 < high < math.inf:
            raise InvalidValueError(f"high must be a finite number above 1, got {high}")
        return low, high

    def _base(self) -> float:
        return _base_of(self._check_epsilon(), *self._class())


def _base_of(epsilon: float, low: float, high: float) -> float:
    """Return the least density of a draw, relative to the reference."""
    return 1.0 / (1.0 + (1.0 - low) / (high - low) * math.expm1(epsilon))


def _worst_density(divergence: Any, epsilon: float, low: float, high: float) -> float:
    """Return the divergence of the density that is at its bounds everywhere."""
    name = _arguments.choice("divergence", divergence, ("kl", "tv", "hellinger"))
    if high <= low * math.exp(epsilon):
        return 0.0
    alpha = (1.0 - low) / (high - low)
    least = _base_of(epsilon, low, high)
    most = least * math.exp(epsilon)
    if name == "tv":
        return alpha * (high - most)
    if name == "hellinger":
        return 0.5 * (
            alpha * (math.sqrt(high) - math.sqrt(most)) ** 2
            + (1.0 - alpha) * (math.sqrt(low) - math.sqrt(least)) ** 2
        )
    rest = low * math.log(low / least) if low > 0.0 else 0.0
    return alpha * high * math.log(high / most) + (1.0 - alpha) * rest


def choose_sampler(
    epsilon: float,
    domain: Domain | Sequence[Hashable] | int,
    *,
    records: int | None = None,
) -> MinimaxSampler | FiniteMollifier:
    """Choose the sampler whose draws look most like the person's own values.

    For one record :class:`MinimaxSampler` is best; it is then randomized response. For many records
    and a small epsilon its draws are nearly uniform, and :class:`FiniteMollifier` keeps more of
    what the records have in common. The choice is made for a person with that many *different*
    values, each of them once. The law of a draw with the smaller total variation distance from
    these values wins.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain
        The values: a :class:`turnout.Domain`, a list of labels, or their number.
    records
        About how many records a person has, if that is publicly known; many by default. It must not
        be taken from people's data.

    Returns
    -------
    MinimaxSampler or FiniteMollifier
        Not fitted yet.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> choose_sampler(1.0, 50, records=1).__class__.__name__
    'MinimaxSampler'
    >>> sampler = choose_sampler(1.0, 50)
    >>> sampler.__class__.__name__
    'FiniteMollifier'
    >>> sampler.fit([3, 4, 3, 3, 7, 3]).sample(1).shape
    (1,)
    """
    values = public_domain("domain", domain)
    samplers: list[Any] = [
        kind(epsilon, domain=values) for kind in (MinimaxSampler, FiniteMollifier)
    ]
    if records is None:
        return samplers[1]  # type: ignore[no-any-return]
    number = _arguments.integer("records", records, least=1)
    different = min(number, values.size, _MOST)
    own = np.full(different, 1 / different)
    distances = []
    for sampler in samplers:
        law = sampler.fit(values.decode(np.arange(different))).probabilities_
        distances.append(float(np.maximum(own - law[:different], 0.0).sum()))
    place = 1 if distances[1] <= distances[0] else 0
    chosen: MinimaxSampler | FiniteMollifier = type(samplers[place])(epsilon, domain=values)
    return chosen
