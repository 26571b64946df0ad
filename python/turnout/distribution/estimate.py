"""Estimated distributions of a number, with valid intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._tables import WithSimultaneous, records_of
from turnout._types import Axes, Floats
from turnout.collecting.estimate import BaseEstimate
from turnout.collecting.intervals import (
    BaseInterval,
    checked_level,
    critical_value,
    normal_interval,
)
from turnout.distribution.law import BinnedBounds
from turnout.distribution.pictures import draw_bins

#: The quantiles that a summary has by itself.
SHARES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class DistributionInterval(BaseInterval):
    """Lower and upper limits of the share of each bin.

    Attributes
    ----------
    low, high
        float64, one for each bin. The limits are not cut to [0, 1].
    level
        The requested confidence level.
    method
        ``"unbiased"``: around an estimate that does not use neighbouring bins.
    simultaneous
        None if the level holds for each bin separately; ``"bonferroni"`` or ``"sidak"`` if it holds
        for all simultaneously.
    edges
        The edges of the bins, one more than there are bins.
    """

    low: Floats
    high: Floats
    edges: Floats = field(repr=False)

    _columns = ("from", "to", "low", "high")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each bin, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with the edges ``from`` and ``to``, and the limits ``low`` and ``high``.
        """
        return records_of(self._columns, self.edges[:-1], self.edges[1:], self.low, self.high)


@dataclass(frozen=True)
class DistributionQuantile:
    """An estimated quantile: the number up to which a share of the nodes lies.

    Attributes
    ----------
    probability
        The share.
    value
        The estimate, interpolated as if all numbers of a bin were spread evenly.
    low, high
        Edges of bins that contain the true quantile between them, with (asymptotically) at least
        the level.
    level
        The confidence level.
    """

    probability: float
    value: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class DistributionEstimate(WithSimultaneous, BaseEstimate[BinnedBounds]):
    """The distribution over all nodes: shares of the bins, quantiles and the mean.

    :meth:`turnout.distribution.DistributionTally.estimate` returns it. The shares are a
    distribution, and therefore biased: towards neighbours by smoothing, and away from zero for
    empty bins. Intervals are computed around an unbiased estimate from the same counts, which is
    far noisier. They are valid for every distribution. The shares can lie outside of them where
    smoothing is wrong.

    Attributes
    ----------
    plan
        The mechanism and the participation.
    method
        ``"ems"`` or ``"ml"``.
    nodes, received
        The numbers of nodes and of reports.
    frequencies
        The estimated share of each bin: non-negative, adding up to one; read-only.
    steps, converged
        The number of steps, and whether the method's stopping rule was met.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> hours = np.random.default_rng(1).normal(7.4, 1.2, 40_000).clip(0, 24)
    >>> estimate = tn.SquareWave(2.0, (0, 24), bins=48).collect(hours, seed=1).estimate()
    >>> round(estimate.mean), round(estimate.quantile(0.5).value)
    (7, 7)
    >>> low, high = estimate.mean_interval(0.999)
    >>> bool(low < hours.mean() < high)
    True
    """

    frequencies: Floats = field(repr=False)
    steps: int
    converged: bool
    #: The share of the reports in each cell, and the sums of their squared weights if they differ.
    _cells: tuple[Floats, Floats | None] = field(init=False)

    _columns = ("from", "to", "frequency", "standard_error", "low", "high")

    @property
    def edges(self) -> Floats:
        """The edges of the bins, one more than there are bins."""
        return self.domain.edges

    @property
    def cumulative(self) -> Floats:
        """The estimated share of the nodes up to the upper edge of each bin."""
        return np.minimum(np.cumsum(self.frequencies), 1.0)

    @cached_property
    def _unbiased(self) -> tuple[Floats, Floats]:
        """Compute unbiased shares of the bins, with their covariances.

        It uses least squares with the best weights for the estimated probabilities of the cells.
        Asymptotically no unbiased estimate has a smaller variance. It is unbiased with any weights.
        The covariances are those of nodes drawn from a population; for the given nodes they are a
        little too large.

        With ``K_ij`` the sum of ``1 / p`` over the cells in the windows of bins i and j, and ``M``
        its inverse on the vectors that add up to zero, ``M W^T diag(1 / p) (c - floor) / extra`` is
        added to the multiple of ``K^-1 1`` that adds up to one. The covariance is ``M / (n
        extra^2)``.
        """
        law = self.plan.oracle._law
        floor, extra = law.levels
        cells = law.cell_shares(self.frequencies)
        received, squares = self._cells
        inverse = np.linalg.inv(law.overlaps(1.0 / cells))
        inverse = (inverse + inverse.T) / 2
        level = inverse.sum(axis=0)
        level /= level.sum()
        inner = inverse - np.outer(inverse.sum(axis=0), level)
        shares = level + inner @ law.window_sums((received - floor) / cells) / extra
        if squares is None:
            return shares, inner / extra**2 / self.received
        near = (law.matrix() > floor) / cells[:, None]
        weights = inner @ near.T / extra
        weights -= (weights @ received)[:, None]
        return shares, (weights * squares) @ weights.T

    @property
    def unbiased(self) -> Floats:
        """An unbiased, far noisier estimate of the shares; it adds up to one, some are negative."""
        return self._unbiased[0].copy()

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of :attr:`unbiased`, on which :meth:`interval` builds."""
        return np.sqrt(np.maximum(np.diag(self._unbiased[1]), 0.0))

    def interval(
        self, level: float = 0.95, *, method: str = "auto", simultaneous: str | None = None
    ) -> DistributionInterval:
        """Return confidence intervals of the shares of the bins.

        They are around :attr:`unbiased`, since no interval around a smoothed estimate covers for
        every distribution. They are wide: reports say little about the share of a single bin.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        method
            ``"auto"`` or ``"unbiased"``, which are the same.
        simultaneous
            None: the level holds for each bin separately. ``"bonferroni"`` or ``"sidak"``: it holds
            for all bins simultaneously.

        Returns
        -------
        DistributionInterval
            Lower and upper limits, not cut to [0, 1].

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.SquareWave(3.0, (0, 10), bins=10).collect([2.5] * 4000, seed=1)
        >>> bool(tally.estimate().interval(0.999).contains([0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).all())
        True
        """
        level = checked_level(level, simultaneous)
        _arguments.choice("method", method, ("auto", "unbiased"))
        z = critical_value(level, self.domain.size, simultaneous)
        low, high = normal_interval(self._unbiased[0], self.standard_errors, z)
        return DistributionInterval(low, high, level, "unbiased", simultaneous, self.edges)

    @property
    def mean(self) -> float:
        """The mean of the estimated distribution over the middles of the bins.

        It differs from the mean of the numbers by at most half a bin, and by far less if numbers
        are spread over many bins. If you need only the mean, :class:`turnout.mean.Hybrid` estimates
        it better.
        """
        return float(self.frequencies @ self.domain._middles)

    @property
    def mean_standard_error(self) -> float:
        """The standard error of the unbiased mean, on which :meth:`mean_interval` builds."""
        middles = self.domain._middles - self.domain._middle
        return float(np.sqrt(max(float(middles @ self._unbiased[1] @ middles), 0.0)))

    def mean_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the mean over the middles of the bins.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        tuple of float
            The lower and the upper limit, around the mean of :attr:`unbiased`.

        Raises
        ------
        InvalidValueError
            If the level is not between 0 and 1.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.SquareWave(2.0, (0, 10), bins=10).collect([3.5, 6.5] * 5000, seed=1)
        >>> low, high = tally.estimate().mean_interval(0.999)
        >>> low < 5 < high
        True
        """
        z = critical_value(_arguments.confidence("level", level), 1, None)
        middle = float(self._unbiased[0] @ self.domain._middles)
        return middle - z * self.mean_standard_error, middle + z * self.mean_standard_error

    @cached_property
    def cumulative_standard_errors(self) -> Floats:
        """The standard errors of the cumulative sums of :attr:`unbiased`; read-only."""
        sums = np.cumsum(np.cumsum(self._unbiased[1], axis=0), axis=1)
        errors: Floats = np.sqrt(np.maximum(np.diag(sums), 0.0))
        errors.flags.writeable = False
        return errors

    def quantile(self, probability: float, level: float = 0.95) -> DistributionQuantile:
        """Estimate a quantile: the number up to which a share of the nodes lies.

        The limits invert one-sided tests of the cumulative shares at the edges of the bins. Each
        limit misses with probability (1 - level) / 2, as far as cumulative shares are normal. The
        position of the quantile within its bin is not known.

        Parameters
        ----------
        probability
            The share, in (0, 1).
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        DistributionQuantile
            The estimate, and limits that are edges of bins.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is not between 0 and 1.

        Examples
        --------
        >>> import turnout as tn
        >>> wave = tn.SquareWave(3.0, (0, 10), bins=10)
        >>> median = wave.collect([1.5, 2.5, 7.5] * 9000, seed=1).estimate("ml").quantile(0.5)
        >>> median.low <= 2.5 <= median.high
        True
        """
        probability = _arguments.confidence("probability", probability)
        level = _arguments.confidence("level", level)
        reach = critical_value(level, 1, None) * self.cumulative_standard_errors
        cumulative, last = np.cumsum(self._unbiased[0]), self.domain.size - 1
        above = np.flatnonzero(cumulative + reach >= probability)
        below = np.flatnonzero(cumulative[:-1] - reach[:-1] < probability)
        first = int(above[0]) if above.size else last
        final = int(below[-1]) + 1 if below.size else 0
        value, edges = self._crossing(probability), self.edges
        low, high = float(edges[first]), float(edges[final + 1])
        return DistributionQuantile(probability, value, min(low, value), max(high, value), level)

    def _crossing(self, probability: float) -> float:
        """Return where the estimated cumulative shares, linear within bins, reach a share."""
        sums = self.cumulative
        place = min(int(np.searchsorted(sums, probability)), self.domain.size - 1)
        before = float(sums[place - 1]) if place else 0.0
        inside = float(self.frequencies[place])
        part = (probability - before) / inside if inside > 0 else 0.0
        return float(self.edges[place] + min(max(part, 0.0), 1.0) * self.domain.width)

    def summary(
        self, level: float = 0.95, probabilities: Sequence[float] = SHARES
    ) -> list[dict[str, Any]]:
        """List the mean and quantiles with separate intervals.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        probabilities
            The probabilities of the quantiles.

        Returns
        -------
        list of dict
            Dictionaries with ``statistic`` (``"mean"`` or ``"quantile"``), ``probability`` (None
            for the mean), ``value``, ``low`` and ``high``.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is not between 0 and 1.

        Examples
        --------
        >>> import turnout as tn
        >>> tally = tn.SquareWave(3.0, (0, 10), bins=10).collect([3.5, 6.5] * 5000, seed=1)
        >>> [row["statistic"] for row in tally.estimate().summary(probabilities=[0.5])]
        ['mean', 'quantile']
        """
        low, high = self.mean_interval(level)
        head = {"statistic": "mean", "probability": None, "value": self.mean}
        rows: list[dict[str, Any]] = [{**head, "low": low, "high": high}]
        names = ("probability", "value", "low", "high")
        for probability in probabilities:
            found = self.quantile(probability, level)
            rows.append({"statistic": "quantile", **{name: getattr(found, name) for name in names}})
        return rows

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each bin, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        list of dict
            Dictionaries with the edges ``from`` and ``to``, ``frequency``, the ``standard_error``
            of the unbiased estimate, and the limits ``low`` and ``high`` around that estimate.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.

        Examples
        --------
        >>> import turnout as tn
        >>> estimate = tn.SquareWave(3.0, (0, 1), bins=4).collect([0.5] * 100, seed=1).estimate()
        >>> list(estimate.to_records()[0])
        ['from', 'to', 'frequency', 'standard_error', 'low', 'high']
        """
        limits = self.interval(level, simultaneous=simultaneous)
        numbers = (self.frequencies, self.standard_errors, limits.low, limits.high)
        return records_of(self._columns, self.edges[:-1], self.edges[1:], *numbers)

    def plot(
        self,
        truth: npt.ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        level: float = 0.95,
    ) -> Axes:
        """Draw the shares of the bins, and the median with its interval.

        Parameters
        ----------
        truth
            The true shares of the bins, if they are known.
        ax
            Matplotlib axes to draw on; new ones by default.
        level
            The confidence level of the interval of the median.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidValueError
            If an argument is none of the allowed values, or there is not one true share for each
            bin.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.SquareWave(1.0, (0, 1)).collect([0.5] * 100, seed=1).estimate().plot().get_ylabel()
        'share of a bin'
        """
        return draw_bins(self, truth, ax, level)

    def __repr__(self) -> str:
        """Show the quartiles and the number of reports."""
        shown = ", ".join(f"{self._crossing(share):.4g}" for share in (0.25, 0.5, 0.75))
        return (
            f"DistributionEstimate({self.method!r}, {self.domain.size} bins, quartiles {shown}, "
            f"{self.received} reports of {self.nodes} nodes)"
        )
