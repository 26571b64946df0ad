"""Estimate the mean law of all users' draws of points, from one draw of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._drawing import ESTIMATE, TRUTH, new_axes
from turnout._types import Array, Axes, Floats
from turnout.collecting.intervals import StatisticModel, critical_value, exact_interval
from turnout.errors import EstimatorError
from turnout.samplers._arguments import points
from turnout.samplers.adapters import as_reference, log_density_of
from turnout.samplers.base import PrivateSampler
from turnout.samplers.minimax import MinimaxSampler
from turnout.samplers.pictures import (
    DRAWS,
    POINTS,
    Band,
    draw_reference,
    frame,
    interval_of,
    plot_heatmap,
)
from turnout.samplers.reference import Uniform

#: Points that are spread evenly under the reference, for edges and masses of cells.
_SPREAD = 1 << 18

#: How often the outermost cells are halved.
_TAILS = 4

#: Up to so many draws are shown as points on a map.
_FEW_DRAWS = 500


@dataclass(frozen=True, eq=False)
class DensityInterval:
    """Lower and upper limits of a density.

    Attributes
    ----------
    low, high
        float64, one for each point.
    level
        The confidence level asked for.
    """

    low: Floats
    high: Floats
    level: float


class PopulationEstimate:
    r"""A density estimate of the mean law of all users' draws.

    The draws of n users are a sample of the mixture ``Qbar = mean of Q_u`` (the users' laws, each
    used once). Every ``Q_u`` is within the band ``[Q0 e^low, Q0 e^high]`` around the public
    reference, so ``Qbar`` is too. The estimate is clipped to the band: nothing that the draws could
    say is outside.

    **What it cannot tell.** The mean ``Pbar`` of the users' own distributions is known only through
    the projection of each of them: the parts of Pbar beyond the band (narrow modes, empty regions)
    are cut, and more users do not bring them back. Where the band cuts nobody's distribution, Pbar
    and Qbar agree. The draws alone cannot tell which parts those are. Standard errors and intervals
    are for Qbar.

    Parameters
    ----------
    draws
        One draw of each user, of shape (n_users, d) with d = 1 or 2.
    reference
        The public reference Q0: anything that :func:`as_reference` takes.
    band
        The pair (low, high) of limits of ``log Q/Q0``; infinite for samplers without a band.
    epsilon
        What a draw cost, for titles.

    Attributes
    ----------
    users
        How many draws there are.

    Raises
    ------
    EstimatorError
        If there are more than two dimensions.
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Notes
    -----
    The estimate has the shares of draws in cells between quantiles of Q0 (equally far apart, but
    closer in the tails, except for a :class:`Uniform`), and Q0's own shape within a cell. Intervals
    are Clopper and Pearson's for the mean of ``Qbar/Q0`` over each cell, for all cells at once.

    Edges of cells are quantiles of the reference, never of the draws; the masses of cells are
    computed on 2^18 points that are spread evenly under the reference, to about 1e-5 (to about 1e-3
    for references that draw with code of their own). Clopper and Pearson's limits hold for users
    with different laws too: Hoeffding (1956).

    Examples
    --------
    >>> from turnout.samplers import StandardNormal
    >>> reference = StandardNormal(1)
    >>> estimate = PopulationEstimate(reference.draw(1000, seed=1), reference, (-0.5, 0.5))
    >>> interval = estimate.interval([[0.3]])
    >>> bool(interval.low[0] < 0.381 < interval.high[0])
    True
    """

    def __init__(
        self,
        draws: Any,
        reference: Any,
        band: tuple[float, float],
        *,
        epsilon: float | None = None,
    ) -> None:
        self.draws = points("draws", draws)
        self.users, dimensions = self.draws.shape
        if dimensions > 2:
            raise EstimatorError(
                f"draws of {dimensions} dimensions have no density estimate here: take one or two "
                "of their columns, with the reference of these columns"
            )
        low, high = (_arguments.number("band", side) for side in band)
        if not low <= 0.0 <= high:
            raise _arguments.invalid("band must enclose 0", band)
        self.reference = as_reference(reference, dimensions)
        self.band = (low, high)
        self.epsilon = epsilon
        self._make_cells()

    def density(self, at: Any) -> Floats:
        """Estimate the density of a draw of a random user.

        Parameters
        ----------
        at
            Points of shape (n_points, d).

        Returns
        -------
        numpy.ndarray
            float64, one for each point, within the band. It need not integrate to one: the cut
            changes the mass a little.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the points cannot be used.
        """
        where = points("at", at, columns=self.reference.dimensions)
        ratio = self._counts / self.users / self._masses
        return self._base(where) * self._clipped(ratio)[self._cells(where)]

    def standard_errors(self, at: Any) -> Floats:
        """Return the standard errors of the density before it is cut to the band.

        Parameters
        ----------
        at
            Points of shape (n_points, d).

        Returns
        -------
        numpy.ndarray
            float64, one for each point.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the points cannot be used.
        """
        where = points("at", at, columns=self.reference.dimensions)
        share = self._counts / self.users
        errors = np.sqrt(share * (1 - share) / self.users) / self._masses
        result: Floats = self._base(where) * errors[self._cells(where)]
        return result

    def interval(self, at: Any, level: float = 0.95) -> DensityInterval:
        """Return confidence intervals of the density, cut to the band.

        Parameters
        ----------
        at
            Points of shape (n_points, d).
        level
            The confidence level, for all cells at once.

        Returns
        -------
        DensityInterval
            Lower and upper limits.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument cannot be used.
        """
        level = _arguments.confidence("level", level)
        where = points("at", at, columns=self.reference.dimensions)
        base, cells = self._base(where), self._cells(where)
        low, high = (base * self._clipped(limits)[cells] for limits in self._cell_limits(level))
        return DensityInterval(low, high, level)

    def log_density(self, at: Floats) -> Floats:
        """Return the logarithm of :meth:`density`, as other densities do."""
        with np.errstate(divide="ignore"):
            result: Floats = np.log(self.density(at))
        return result

    def plot(self, truth: Any = None, *, bounds: Any = None, ax: Axes | None = None) -> Any:
        """Plot the estimate; on the line, with its interval and the band.

        Parameters
        ----------
        truth
            The log-density of the mean of the users' own distributions, if known: a callable or an
            object with ``log_density``, ``score_samples`` or ``logpdf``.
        bounds
            Where to plot; around the draws by default.
        ax
            Matplotlib axes to draw on (on the line); new ones by default.

        Returns
        -------
        matplotlib.axes.Axes or list
            The axes, with labels and a legend.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        paid = "" if self.epsilon is None else f", ε = {self.epsilon:g} each"
        if self.reference.dimensions == 2:
            return self._map(truth, bounds, ax, paid)
        low, high = interval_of(bounds, None, self.draws[:, 0])
        known = None if truth is None else log_density_of("truth", truth, finite=True)
        x = np.linspace(low, high, POINTS)
        at = x[:, None]
        axes, found = new_axes(ax), self.interval(at)
        reference, curve = self._base(at), self.density(at)
        bounded = np.isfinite(self.band).all()
        band = Band(*self.band, "band that no mean law leaves") if bounded else None
        draw_reference(axes, x, reference, band)
        label = "95% interval, all cells at once"
        limits = found.low, found.high
        axes.fill_between(
            x, *limits, color=ESTIMATE, alpha=0.25, linewidth=0.0, label=label, zorder=2
        )
        axes.plot(x, curve, color=ESTIMATE, linewidth=1.8, label="mean law of the draws", zorder=4)
        if known is not None:
            own = np.exp(known(at))
            axes.plot(x, own, color=TRUTH, linewidth=1.4, label="mean of the users' own", zorder=3)
        title = f"one draw of each of {self.users:,} users{paid}"
        frame(axes, (low, high), curve, reference, title)
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * float(found.high.max())))
        return axes

    def _map(self, truth: Any, bounds: Any, ax: Any, paid: str) -> list[Axes]:
        sides = bounds
        if sides is None:
            sides = [interval_of(None, None, column) for column in self.draws.T]
        maps = plot_heatmap(self.log_density, truth, bounds=sides, ax=ax)
        maps[0].set_title(f"mean law of the draws of {self.users:,} users{paid}", fontsize=10)
        if self.users <= _FEW_DRAWS:
            # So few draws say more than any estimate of where they come from.
            x, y = self.draws.T
            maps[0].scatter(x, y, s=14, color=DRAWS, edgecolors="white", linewidths=0.5)
            # The map's own limits: a draw far away stretches nothing.
            maps[0].set(xlim=sides[0], ylim=sides[1])
        if truth is not None:
            maps[1].set_title("mean of the users' own distributions", fontsize=10)
        return maps

    def __repr__(self) -> str:
        low, high = self.band
        return (
            f"PopulationEstimate({self.users} users, {self.reference!r}, "
            f"band=({low:.3g}, {high:.3g}))"
        )

    def _base(self, where: Floats) -> Floats:
        result: Floats = np.exp(self.reference.log_density(where))
        return result

    def _clipped(self, ratio: Floats) -> Floats:
        return np.clip(ratio, math.exp(self.band[0]), math.exp(self.band[1]))

    def _make_cells(self) -> None:
        dimensions = self.reference.dimensions
        # Rice's rule on the line; in the plane as many to the side that cells hold as many draws.
        each = 2.0 * self.users ** (1 / 3) if dimensions == 1 else 1.3 * self.users**0.25
        count = max(2, min(round(each), {1: 200, 2: 40}[dimensions]))
        spread = self.reference._draw_spread(_SPREAD, seed=0)
        inner = np.arange(1, count) / count
        if not isinstance(self.reference, Uniform):
            # Beyond, where draws may be many times as likely as under the reference, ever smaller
            # ones. A box has no tails: narrow cells at its ends would hold a draw or none.
            tails = inner[0] / 2.0 ** np.arange(1, _TAILS + 1)
            inner = np.concatenate([tails[::-1], inner, 1.0 - tails])
        self._edges = [np.unique(np.quantile(column, inner)) for column in spread.T]
        self._shape = tuple(edge.size + 1 for edge in self._edges)
        size = math.prod(self._shape)
        masses = np.bincount(self._cells(spread), minlength=size) / len(spread)
        self._counts = np.bincount(self._cells(self.draws), minlength=size).astype(np.float64)
        # A cell where not one of the spread points lies has at most about this mass.
        self._masses = np.maximum(masses, 1.0 / len(spread))

    def _cells(self, where: Floats) -> npt.NDArray[np.intp]:
        places = [
            np.searchsorted(edge, column, side="right")
            for edge, column in zip(self._edges, where.T, strict=True)
        ]
        result: npt.NDArray[np.intp] = np.ravel_multi_index(tuple(places), self._shape)
        return result

    def _cell_limits(self, level: float) -> tuple[Floats, Floats]:
        counts = self._counts
        model = StatisticModel(a=0.0, b=self.users, v0=0.0, v1=0.0, trials=self.users)
        z = critical_value(level, counts.size, "bonferroni")
        low, high = exact_interval(model, counts, z)
        return low / self._masses, high / self._masses


def estimate_of_points(sampler: PrivateSampler, draws: Array) -> PopulationEstimate:
    """Estimate the mean law of draws of a sampler of points.

    Raises
    ------
    EstimatorError
        If the sampler has no reference.
    """
    given: Any = sampler
    if not hasattr(sampler, "reference"):
        raise EstimatorError(
            f"{type(sampler).__name__} has no public reference that its draws are close to: its "
            "draws are a sample of the mean law, for any density estimate"
        )
    reference = as_reference(given.reference, draws.shape[1])
    half = sampler.epsilon / 2.0
    band = -half, half
    if isinstance(sampler, MinimaxSampler):
        band = sampler._log_limits
    return PopulationEstimate(draws, reference, band, epsilon=sampler.epsilon)
