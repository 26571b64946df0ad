"""Project densities onto the relative mollifier, a band around a reference."""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_up
from turnout._types import Floats
from turnout.errors import InvalidValueError
from turnout.samplers.adapters import LogDensity, as_reference, log_density_of
from turnout.samplers.base import usable_epsilon
from turnout.samplers.drawing import log_ratios, resampling, usable_proposals
from turnout.samplers.finite_law import clipped, positive_probabilities, probabilities_of
from turnout.samplers.normalizer import LogNormalizer, log_normalizer
from turnout.samplers.reference import Reference

#: Points on which the constant of a projection is solved for.
_POINTS = 2**16

#: The weight of a proposal under the reference, as in the core.
_UNIT = 2**32


class RelativeMollifier:
    """The set of densities Q with ``|log Q/Q0| <= epsilon / 2`` everywhere, for a reference Q0.

    Any rule that turns a person's whole data set into *one draw* from a member is
    epsilon-locally differentially private for that data set, since any two members differ by a
    factor of at most e^epsilon. The set is convex.

    Parameters
    ----------
    reference
        The public reference Q0: anything that :func:`as_reference` takes; or, on a finite domain,
        one positive probability for each value.
    epsilon
        Privacy of one draw: above 0, at most 42.
    dimensions
        The number of coordinates of points; needed only if ``reference`` does not say it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    References
    ----------
    Husain, Balle, Cranko, Nock, "Local differential privacy for sampling" (AISTATS 2020), equations
    (5), (6) and (8).

    Examples
    --------
    >>> from scipy import stats
    >>> from turnout.samplers import StandardNormal
    >>> mollifier = RelativeMollifier(StandardNormal(1), epsilon=1.0)
    >>> projection = mollifier.project(stats.norm(1.0, 0.5))
    >>> projection.sample(seed=1).shape
    (1, 1)
    >>> mollifier._admits(-0.25, 0.25), mollifier._admits(-0.3, 0.25)
    (True, False)
    >>> RelativeMollifier([0.25, 0.25, 0.5], epsilon=1.0).project([0.9, 0.1, 0.0]).round(4)
    array([0.4122, 0.2846, 0.3033])
    """

    def __init__(self, reference: Any = None, epsilon: float = 1.0, dimensions: int = 1) -> None:
        self.epsilon = usable_epsilon(epsilon)
        if isinstance(reference, (list, tuple, np.ndarray)):
            self.reference: Reference | Floats = positive_probabilities(reference)
            return
        size = _arguments.integer("dimensions", dimensions, least=1)
        if isinstance(reference, Reference):
            size = reference.dimensions
        self.reference = as_reference(reference, size)

    @property
    def _half_width(self) -> float:
        """The largest ``|log Q/Q0|`` of a member: ``epsilon / 2``."""
        return self.epsilon / 2.0

    def certificate(self, least: float, most: float) -> float:
        """Return a proven bound of ``|log Q/Q0|`` for Q proportional to Q0 times ``exp(score)``.

        The normaliser lies in the range of ``exp(score)`` too, so the bound is the width of the
        range, rounded up: no integral has to be known.

        Parameters
        ----------
        least, most
            Bounds of the score that hold everywhere.

        Returns
        -------
        float
            The bound, in nats.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the bounds are not finite or not in order.
        """
        low = _arguments.number("least", least)
        high = _arguments.number("most", most)
        if not -math.inf < low <= high < math.inf:
            raise InvalidValueError(
                f"least and most must be finite and in order, got {low} and {high}"
            )
        return rounded_up(Fraction(high) - Fraction(low))

    def _admits(self, least: float, most: float) -> bool:
        """Return whether any score in that range gives a member, as :meth:`certificate` proves."""
        return self.certificate(least, most) <= self._half_width

    def project(self, density: Any, *, seed: int | None = 0) -> Projection | Floats:
        """Find the member closest to a density by equation (8).

        ``Q(x) = min(max(Q0(x) e^(-epsilon/2), P(x) / C), Q0(x) e^(epsilon/2))`` minimises KL(P, Q)
        over the mollifier. Where P has no density at all, Q keeps what is left, in proportion to
        Q0.

        Parameters
        ----------
        density
            A function that returns log-densities at points, or an object with ``log_density``,
            ``score_samples`` or ``logpdf``; on a finite domain probabilities. It may lack a
            constant factor.
        seed
            Seeds the points on which C is computed; they do not matter for privacy.

        Returns
        -------
        Projection or numpy.ndarray
            The density, with draws from it; on a finite domain the probabilities, in closed form.

        Raises
        ------
        InvalidTypeError
            If ``density`` is not one of these.
        """
        if not isinstance(self.reference, Reference):
            given = probabilities_of("density", density, self.reference.size)
            half = math.exp(self._half_width)
            return clipped(given, self.reference / half, self.reference * half)
        found, checked = log_density_of("density", density), _arguments.seed(seed)
        return Projection(self.reference, found, self.epsilon, seed=checked)

    def __repr__(self) -> str:
        return f"RelativeMollifier({self.reference!r}, epsilon={self.epsilon!r})"


@dataclass(eq=False, repr=False)
class Projection:
    """A density clipped into a band around a reference, made by :meth:`RelativeMollifier.project`.

    Attributes
    ----------
    reference
        The reference Q0.
    target
        Returns the log-density P that is clipped, up to a constant.
    epsilon
        Privacy of one draw.
    base
        The least Q/Q0; None for the mollifier's.
    seed
        Seeds the points on which the constant is computed.
    log_limits
        The logarithms of the lower and upper limit of Q/Q0.
    """

    reference: Reference
    target: LogDensity
    epsilon: float
    _: KW_ONLY
    base: float | None = None
    seed: int | None = 0
    _log_limits: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        lower, upper = self._band().limits(_UNIT)
        self._log_limits = math.log(lower / _UNIT), math.log(upper / _UNIT)

    @functools.cached_property
    def _solved(self) -> tuple[float, float, float]:
        """The logarithm of C, and the log ratios at zero and at infinite density."""
        spread = self.reference._draw_spread(_POINTS, seed=self.seed)
        ratios = log_ratios(self.reference, self.target, spread)
        reference = np.full(_POINTS, _UNIT, np.uint64)
        weights, log_constant = self._band().weights(ratios, reference)
        least, most = self._log_limits
        # Zero density gets what is left over, usually the least weight; infinite density as much as
        # there is, usually the largest.
        empty, infinite = np.isneginf(ratios), np.isposinf(ratios)
        if empty.any():
            least = math.log(float(weights[empty].astype(np.float64).mean()) / _UNIT)
        if infinite.any():
            most = math.log(float(weights[infinite].astype(np.float64).mean()) / _UNIT)
        return log_constant, least, most

    @property
    def _log_constant(self) -> float:
        """The logarithm of C, computed on 65,536 points spread evenly under the reference."""
        return self._solved[0]

    def _band(self) -> _core.SamplerBand:
        return _core.SamplerBand(self.epsilon, self.base)

    def _log_ratio(self, at: Floats) -> Floats:
        """Return log Q/Q0 at points of shape (n, d): always within ``log_limits``."""
        log_constant, empty, infinite = self._solved
        ratios = log_ratios(self.reference, self.target, at)
        with np.errstate(invalid="ignore", over="ignore"):
            clipped = np.clip(ratios - log_constant, *self._log_limits)
        inner = np.where(np.isneginf(ratios), empty, clipped)
        return np.where(np.isposinf(ratios), infinite, inner)

    def log_density(self, at: Floats) -> Floats:
        """Return log Q at points of shape (n, d), in nats."""
        result: Floats = self.reference.log_density(at) + self._log_ratio(at)
        return result

    def _log_normalizer(
        self, *, points: int = 2**17, confidence: float = 1.0 - 1e-9, seed: int | None = None
    ) -> LogNormalizer:
        """Integrate the density: zero up to the error of ``_log_constant``, with proven bounds.

        Parameters
        ----------
        points, confidence, seed
            As for :func:`log_normalizer`.

        Returns
        -------
        LogNormalizer
            The logarithm of the integral.
        """
        low, high = self._log_limits
        return log_normalizer(
            self._log_ratio,
            self.reference,
            least=low,
            most=high,
            points=points,
            confidence=confidence,
            seed=seed,
        )

    def sample(
        self, n_samples: int = 1, *, proposals: int | None = None, seed: int | None = None
    ) -> Floats:
        """Draw by mollified resampling; every draw costs epsilon, but no budget counts it here.

        Parameters
        ----------
        n_samples
            The number of draws.
        proposals
            How many proposals a draw sees; chosen by epsilon if None.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            float64 of shape (n_samples, d).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        count = _arguments.integer("n_samples", n_samples, least=1)
        return self._drawn(count, proposals, _arguments.seed(seed))

    def _drawn(self, count: int, proposals: int | None, seed: Any) -> Floats:
        """Draw points; ``seed`` may be streams."""
        return resampling(
            self.reference,
            self.target,
            band=self._band(),
            proposals=usable_proposals(proposals, self.epsilon),
            count=count,
            seed=seed,
        )
