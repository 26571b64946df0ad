"""Estimate or bound the mean of all people's distributions from draws of finite samplers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._drawing import ESTIMATE, finish, name_answers, new_axes
from turnout._tables import WithIntervals, records_of
from turnout._types import Array, Axes, Floats, Truths
from turnout.collecting.intervals import StatisticModel
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.models import ScoreMoments, support_model
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.samplers.base import PrivateSampler
from turnout.samplers.finite import LawSampler, RandomizedResponseSampler, band_of
from turnout.samplers.finite_law import codes_of, domain_of
from turnout.samplers.hull import concave
from turnout.samplers.pictures import DRAWS


@dataclass(frozen=True)
class PopulationPlan:
    """A description of how one draw of each user was made, for estimates.

    Attributes
    ----------
    domain
        The answers.
    epsilon
        What a draw cost.
    users
        How many users there are.
    """

    domain: Domain
    epsilon: float
    users: int


def shares_of_draws(plan: PopulationPlan, codes: Array) -> FrequencyEstimate:
    """Estimate the mean law of the draws, Qbar, by the shares of the draws.

    The standard errors are those of a multinomial law. If the users are fixed and their laws
    differ, the variance is smaller by the variance of their laws: then the errors are upper bounds.
    """
    return _estimate(plan, codes, _binomial(plan.users, 1.0, 0.0), "draws")


def debiased(
    plan: PopulationPlan, codes: Array, p: float, q: float, *, one_value: bool
) -> FrequencyEstimate:
    """Estimate the mean of the users' own distributions, where a draw depends linearly on them.

    A draw is ``x`` with probability ``q + (p - q) P(x)``.

    Parameters
    ----------
    plan
        The domain, epsilon and the number of users.
    codes
        One draw of each user.
    p, q
        The probabilities of a draw that is the user's value, and of any other one.
    one_value
        Whether every user holds one value. Then only the perturbation is random, and the variance
        is that of direct encoding. Otherwise a user's draw also varies with the user's own
        distribution. That raises the variance by up to ``f (1 - f) / users``, which is attained if
        all users have the same distribution.
    """
    if not p > q:
        raise EstimatorError(
            "these draws contain no information: every answer is equally likely for every user"
        )
    if one_value:
        return _estimate(
            plan, codes, support_model(plan.users, 1.0, ScoreMoments.pure(p, q)), "one_value"
        )
    return _estimate(plan, codes, _binomial(plan.users, p, q), "debiased")


def _binomial(users: int, p: float, q: float) -> StatisticModel:
    """Model a count of successes with mean n (q + d f) and at most the binomial variance."""
    d = p - q
    return StatisticModel(
        a=users * q,
        b=users * d,
        v0=users * q * (1 - q),
        v1=users * d * (1 - 2 * q),
        v2=-users * d * d,
        trials=users,
    )


def _estimate(
    plan: PopulationPlan, codes: Array, model: StatisticModel, method: str
) -> FrequencyEstimate:
    counts = np.bincount(codes, minlength=plan.domain.size).astype(np.float64)
    frequencies = model.frequency(counts)
    variances = model.variance(np.clip(frequencies, 0.0, 1.0))
    estimation = Estimation(frequencies, variances, model, counts)
    return FrequencyEstimate._from_estimation(plan, method, plan.users, plan.users, estimation)


@dataclass(frozen=True)
class IdentifiedBounds:
    """The bounds between which the mean of all users' distributions must be.

    Attributes
    ----------
    low, high
        float64, one for each answer.
    level
        The confidence with which all of them hold at once; None if the mean law of the draws was
        taken as known.
    """

    low: Floats
    high: Floats
    level: float | None

    def contains(self, truth: npt.ArrayLike) -> Truths:
        """Return for each of some frequencies whether the bounds enclose it.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If there is not one finite number for each answer.
        """
        given = _arguments.frequencies("truth", truth, self.low.size)
        return (self.low <= given) & (given <= self.high)


class IdentifiedSet:
    r"""What the mean law of draws of clipped samplers says about the users' own distributions.

    A user with distribution P draws from ``Q(x) = clip(P(x)/C, low(x), high(x))``, where C makes
    the probabilities add up to one; if P has so few answers that no C can, those answers are at
    their upper limits and the others share what is left. The minimax sampler and the projection
    onto a relative mollifier are such samplers.

    Two users with P = (1, 0) and two with P = (1/2, 1/2) may give the same mean law of draws as
    four with something in between, while their own means differ: no function of the draws is
    unbiased for the mean P. Given the mean Q(x), all that is known of the mean P(x) is that
    ``(Pbar(x), Qbar(x))`` lies in the convex hull of the pairs ``(P(x), Q(x))`` over all P.

    Parameters
    ----------
    low, high
        The limits of the probabilities of a draw: float64, one for each answer.

    Raises
    ------
    InvalidValueError
        If a lower limit is not above 0, or above the upper one, or no distribution is between them.

    Notes
    -----
    Write l, h for the limits of x, A and B for the sums of the others' limits and g for the least
    ``high - low`` of the others. All the rest of P can be put where it is lost to a limit, or where
    nothing of it is lost, and Q(x) is between these cases.

    *At least*: ``Q(x) <= max(v, min(P(x), h))`` with ``v = max(l, 1 - A - g)``, since the others
    take less than their part of P only if one is at its upper limit (then they take at least
    A + g) or all are at their lower ones (then x is at h). The hull's lower edge is 0 up to v, and
    the line from (v, 0) to (h, h) from there.

    *At most*: ``P(x) = Q(x) / (Q(x) + z)``, where z, the rest of P in units of C, is at least what
    it takes to bring the others to ``1 - Q(x)``: j of them at their upper limits and one between.
    The hull's upper edge is the concave polygon through these points and (h, 1). It is sharp where
    the others have equal limits; otherwise z is bounded from below as if cells could be filled in
    part at the best rate, and the bound holds and need not be sharp.

    For the minimax sampler on k answers, with ``t = (Qbar - q)/(p - q)`` the value that de-biases
    randomized response: ``p t <= Pbar <= t + (1 - t)/(e^eps + 1)``.

    Examples
    --------
    >>> import math
    >>> p, q = math.e / (math.e + 2), 1 / (math.e + 2)
    >>> bounds = IdentifiedSet([q] * 3, [p] * 3).bounds([0.4, 0.3, 0.3])
    >>> bounds.low.round(3), bounds.high.round(3)
    (array([0.298, 0.139, 0.139]), array([0.646, 0.446, 0.446]))
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        size = np.size(low)
        self.low = _arguments.frequencies("low", low, size)
        self.high = _arguments.frequencies("high", high, size)
        if size < 2:
            raise InvalidValueError(f"low must have a limit for at least 2 answers, got {size}")
        if not ((self.low > 0) & (self.low <= self.high)).all():
            raise InvalidValueError("low and high must satisfy 0 < low <= high everywhere")
        below, above = float(self.low.sum()), float(self.high.sum())
        if below > 1 + 1e-9 or above < 1 - 1e-9:
            raise InvalidValueError(
                f"low and high must enclose a distribution: they add up to {below:g} and {above:g}"
            )
        # What the others' limits leave: an upper limit beyond it is never reached.
        most = np.minimum(self.high, 1.0 - below + self.low)
        self.low = np.maximum(self.low, 1.0 - above + self.high)
        self.high = np.maximum(most, self.low)
        self._lower = [self._lower_edge(place) for place in range(size)]
        self._upper = [self._upper_edge(place) for place in range(size)]

    def bounds(self, mean: npt.ArrayLike) -> IdentifiedBounds:
        """Bound the mean of the users' distributions, given the mean law of their draws.

        Parameters
        ----------
        mean
            The mean probability of each answer in a draw. Values outside the limits, which no users
            can have, are moved to the limits.

        Returns
        -------
        IdentifiedBounds
            Bounds of each answer by itself: sharp given the mean law of that answer alone, if the
            other answers have equal limits.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If there is not one finite number for each answer.
        """
        given = _arguments.frequencies("mean", mean, self.low.size)
        return IdentifiedBounds(self._at(self._lower, given), self._at(self._upper, given), None)

    def envelope(self, low: Floats, high: Floats, level: float) -> IdentifiedBounds:
        """Bound the mean of the users' distributions, given limits of the mean law."""
        return IdentifiedBounds(self._at(self._lower, low), self._at(self._upper, high), level)

    @staticmethod
    def _at(edges: Sequence[tuple[Floats, Floats]], given: Floats) -> Floats:
        # Both edges increase: values beyond their ends are moved to the ends.
        return np.array([np.interp(v, *edge) for v, edge in zip(given, edges, strict=True)])

    def _others(self, place: int) -> tuple[float, float, Floats, Floats]:
        low, high = np.delete(self.low, place), np.delete(self.high, place)
        return float(self.low[place]), float(self.high[place]), low, high

    def _lower_edge(self, place: int) -> tuple[Floats, Floats]:
        low, high, rest_low, rest_high = self._others(place)
        lost = 1.0 - float(rest_low.sum()) - float((rest_high - rest_low).min())
        start = min(high, max(low, lost))
        if high - start <= 1e-12:
            return np.array([low, high]), np.zeros(2)
        return np.array([start, high]), np.array([0.0, high])

    def _upper_edge(self, place: int) -> tuple[Floats, Floats]:
        low, high, rest_low, rest_high = self._others(place)
        least = max(low, 1.0 - float(rest_high.sum()))
        base = float(rest_low.sum())
        if np.ptp(rest_low) <= 1e-9 * rest_low[0] and np.ptp(rest_high) <= 1e-9 * rest_high[0]:
            gap = float((rest_high - rest_low).min())
            full, empty = float(rest_high.min()), float(rest_low.min())
            filled = np.arange(rest_low.size + 1)
            places = 1.0 - base - filled * gap
            needed = filled * full
            inside = (places > least) & (places < high)
            # Between two of these points P/Q is constant: the polygon turns at them alone.
            gain = max(1.0 - least - base, 0.0)
            whole = min(int(gain / gap + 1e-9), rest_low.size) if gap > 0 else 0
            more = gain - whole * gap
            last = whole * full + (more + empty if more > 1e-12 else 0.0)
            values = np.append(places[inside], least)
            parts = values / (values + np.append(needed[inside], last))
        else:
            rate = float((1.0 - rest_low / rest_high).max())
            gain = max(1.0 - least - base, 0.0)
            values = np.array([least])
            parts = values / (values + (gain / rate if rate > 0 else 0.0))
        order = np.argsort(values)
        values, parts = values[order], parts[order]
        if high - least <= 1e-12:
            return np.array([least, high]), np.ones(2)
        return concave(np.append(values, high), np.append(parts, 1.0))


@dataclass(frozen=True, eq=False)
class FinitePopulationEstimate(WithIntervals):
    """An estimate from one draw of each user, if draws are not linear in users' distributions.

    No unbiased estimate of the mean of the users' distributions exists. Let P mix two distributions
    evenly: a user with P draws from the projection of P, while two users with one distribution each
    draw from the mean of two projections. The mean of the users' distributions is the same, but the
    law of the draws is not, since the projection is not linear.

    Attributes
    ----------
    mixture
        The mean law of the draws, with standard errors and intervals.
    identified_set
        What the mean law says about the users' distributions.
    """

    mixture: FrequencyEstimate
    identified_set: IdentifiedSet

    _columns = ("label", "frequency", "low", "high")

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self.mixture.domain

    @property
    def users(self) -> int:
        """How many users there are, with one draw each."""
        return self.mixture.nodes

    def bounds(self, level: float | None = 0.95) -> IdentifiedBounds:
        """Bound the mean of the users' distributions.

        Parameters
        ----------
        level
            The confidence with which all bounds hold at once. The bounds of the mean law are
            Clopper and Pearson's, by Bonferroni's inequality. None takes the shares of the draws as
            the law.

        Returns
        -------
        IdentifiedBounds
            Lower and upper bounds for each answer. More users make the bounds tighter only up to
            those of the known mean law.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``level`` is not a confidence level.
        """
        if level is None:
            return self.identified_set.bounds(self.mixture.frequencies)
        interval = self.mixture.interval(level, method="exact", simultaneous="bonferroni")
        return self.identified_set.envelope(interval.low, interval.high, level)

    def plot(self, truth: Any = None, *, ax: Axes | None = None, level: float = 0.95) -> Axes:
        """Plot the bounds of every answer, and the shares of the draws.

        Parameters
        ----------
        truth
            The mean of the users' distributions, if known.
        ax
            Matplotlib axes to draw on; new ones by default.
        level
            As for :meth:`bounds`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        size = self.domain.size
        known = None if truth is None else _arguments.frequencies("truth", truth, size)
        axes = new_axes(ax, width=max(7.0, min(14.0, 4.0 + 0.35 * size)))
        positions = np.arange(size)
        name_answers(axes, positions, self.domain.labels)
        if known is not None:
            axes.bar(positions, known, width=0.75, color="#c9ced6", label="truth", zorder=1)
        wide = f"bounds of the users' mean, {100 * level:.4g} % (all at once)"
        for bounds, label, thick, alpha in (
            (self.bounds(level), wide, 4.0, 0.3),
            (self.bounds(None), "the same, were the law of the draws known", 8.0, 0.7),
        ):
            look: dict[str, Any] = {"color": ESTIMATE, "linewidth": thick, "alpha": alpha}
            axes.vlines(positions, bounds.low, bounds.high, label=label, zorder=2, **look)
        shares = self.mixture.frequencies
        axes.plot(
            positions, shares, "D", color=DRAWS, markersize=5, label="share of the draws", zorder=3
        )
        axes.set_xlabel("answer")
        axes.set_ylabel("mean probability over users")
        axes.set_ylim(bottom=0.0)
        epsilon = self.mixture.plan.epsilon
        title = f"one draw of each of {self.users:,} users, ε = {epsilon:g} each"
        finish(axes, title, legend="above")
        return axes

    def to_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """List one dictionary for each answer, for tables and programs.

        Parameters
        ----------
        level
            As for :meth:`bounds`.

        Returns
        -------
        list of dict
            With ``label``, ``frequency`` (in the mean law of the draws), and ``low`` and ``high``,
            the bounds of the mean of the users' distributions.
        """
        bounds = self.bounds(level)
        numbers = (self.mixture.frequencies, bounds.low, bounds.high)
        return records_of(self._columns, self.domain.labels, *numbers)

    def __repr__(self) -> str:
        return f"FinitePopulationEstimate({self.users} users, {self.domain.size} answers)"


def estimate_of_answers(
    sampler: PrivateSampler, draws: Array, *, one_value: bool
) -> FrequencyEstimate | FinitePopulationEstimate:
    """Estimate what can be known of the users' distributions from one answer of each.

    Raises
    ------
    EstimatorError
        If it is not known how draws depend on the users' distributions.
    """
    if not isinstance(sampler, (LawSampler, RandomizedResponseSampler)):
        raise EstimatorError(
            f"no estimate is known for one answer of {type(sampler).__name__}: use the shares of "
            "its draws"
        )
    domain = domain_of(sampler.domain_size, sampler.domain)
    plan = PopulationPlan(domain, sampler.epsilon, len(draws))
    codes = codes_of(domain, draws)
    if isinstance(sampler, RandomizedResponseSampler):
        p, q = DirectEncoding(sampler.epsilon, domain).support_probabilities
        return debiased(plan, codes, p, q, one_value=one_value)
    size = domain.size
    limits = IdentifiedSet(*band_of(sampler))
    if not one_value:
        return FinitePopulationEstimate(shares_of_draws(plan, codes), limits)
    p = float(limits.high[0])
    if np.ptp(limits.high) > 1e-9 * p:
        raise EstimatorError("de-biasing one value of each user needs a uniform reference")
    return debiased(plan, codes, p, (1.0 - p) / (size - 1), one_value=True)
