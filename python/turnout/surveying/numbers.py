"""Mean and quantiles of a column of numbers, from one histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from turnout import _arguments
from turnout._drawing import answered, new_axes
from turnout._tables import WithIntervals
from turnout._types import Floats, Integers
from turnout.bounds import Bounds
from turnout.collecting.groups.apart import EstimatesOfGroups
from turnout.collecting.groups.tally import GroupedTally
from turnout.distribution import DistributionQuantile
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.ordered import HierarchicalCollection
from turnout.frequency.ordered.levels import HierarchicalEstimate, HierarchicalTally
from turnout.frequency.ordered.statistics import LinearEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points of a grid, of numbers that are no few whole ones.
_POINTS: Final = 64

#: Bounds that are at most so far apart have a point for each whole number.
_MOST_WHOLE: Final = 1023

#: The largest grid in which every person reports the point itself.
_FLAT: Final = 8


@dataclass(frozen=True)
class Grid:
    """Equally spaced points from the lower to the upper bound.

    Attributes
    ----------
    bounds
        The numbers that can be given.
    size
        How many points there are.
    whole
        Whether every number that is given is a point.
    """

    bounds: Bounds
    size: int
    whole: bool

    @classmethod
    def of(cls, bounds: Bounds, *, integers: bool) -> Grid:
        """Choose the grid for a column.

        Parameters
        ----------
        bounds
            The numbers that can be given.
        integers
            Whether the column has a type of integers.

        Examples
        --------
        >>> Grid.of(Bounds(0, 100), integers=False).size, Grid.of(Bounds(0, 1), integers=False).size
        (101, 64)
        """
        apart = bounds.high - bounds.low
        few = bounds.low.is_integer() and apart.is_integer() and apart <= _MOST_WHOLE
        if few and (integers or apart >= _POINTS - 1):
            return cls(bounds, int(apart) + 1, integers)
        return cls(bounds, _POINTS, whole=False)

    @property
    def step(self) -> float:
        """The distance between two points."""
        return (self.bounds.high - self.bounds.low) / (self.size - 1)

    @property
    def points(self) -> Floats:
        """The points."""
        return np.linspace(self.bounds.low, self.bounds.high, self.size)

    @property
    def domain(self) -> Domain:
        """The points as answers: whole numbers, or numbers with few digits."""
        points = self.points
        if not (points % 1).any():
            return Domain(points.astype(np.int64).tolist())
        plain = [float(f"{point:.6g}") for point in points.tolist()]
        return Domain(plain if len(set(plain)) == len(plain) else points.tolist())

    def collection(self, epsilon: float) -> HierarchicalCollection:
        """Create the histogram for a privacy parameter; its answers are the points."""
        return HierarchicalCollection(
            epsilon, self.domain, fanout=self.size if self.size <= _FLAT else 4
        )

    def codes(self, values: Floats, seed: int | None) -> Integers:
        """Move each number at random to one of the two points around it, preserving means.

        Examples
        --------
        >>> grid = Grid(Bounds(0, 2), 3, whole=False)
        >>> grid.codes(np.array([0.0, 1.0, 2.0]), 1).tolist()
        [0, 1, 2]
        >>> bool(abs(grid.codes(np.full(10_000, 0.3), 1).mean() - 0.3) < 0.02)
        True
        """
        place = np.clip((values - self.bounds.low) / self.step, 0, self.size - 1)
        below = np.floor(place)
        up = np.random.default_rng(seed).random(values.size) < place - below
        return (below + up).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class NumberEstimate(WithIntervals):
    """The mean and quantiles of a column of numbers, estimated from one histogram.

    :func:`turnout.survey` returns it. Each number was moved to one of the two grid points around
    it, at random so that the mean does not change. The point was reported through
    :class:`turnout.HierarchicalCollection`.

    Attributes
    ----------
    tally
        The tally of the reports.
    grid
        The points.
    probabilities
        The probabilities of the listed quantiles.

    Raises
    ------
    EstimatorError
        If too few people reported.
    """

    tally: HierarchicalTally
    grid: Grid
    probabilities: tuple[float, ...]

    _columns = ("statistic", "value", "standard_error", "low", "high")

    def __post_init__(self) -> None:
        """Refuse too few reports."""
        _ = self.histogram

    @cached_property
    def histogram(self) -> HierarchicalEstimate:
        """The shares of the points, with ranges and their intervals."""
        return self.tally.estimate()

    @property
    def points(self) -> Floats:
        """The points of the grid."""
        return self.grid.points

    @property
    def mean(self) -> LinearEstimate:
        """The mean, with its standard error and ``interval``."""
        return self.histogram.mean(self.grid.points)

    def quantile(self, probability: float, level: float = 0.95) -> DistributionQuantile:
        """Estimate a quantile: the number up to which a share of the people lies.

        Parameters
        ----------
        probability
            The share, between 0 and 1.
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        DistributionQuantile
            The estimate and its limits. They are one grid point wider than those of the histogram
            if numbers lie between its points.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is not between 0 and 1.
        """
        found = self.histogram.quantile(probability, level)
        codes = self.histogram.domain.encode([found.label, found.low, found.high]).tolist()
        low, high = self.grid.bounds.low, self.grid.bounds.high
        points, step = self.grid.points, self.grid.step
        if self.grid.whole:
            place, margin = points[codes[0]], 0.0
        else:
            # Up to a point lie those whose number is at most half a step beyond it, on average.
            shares = np.concatenate([[0.0], self.histogram.monotone])
            ends = np.concatenate([[low], np.clip(points + step / 2, low, high)])
            first = int(np.searchsorted(shares, found.probability))
            rise = shares[first] - shares[first - 1]
            part = (found.probability - shares[first - 1]) / rise
            place, margin = ends[first - 1] + part * (ends[first] - ends[first - 1]), step
        limits = (
            max(low, float(points[codes[1]]) - margin),
            min(high, float(points[codes[2]]) + margin),
        )
        return DistributionQuantile(found.probability, float(place), *limits, level=found.level)

    def to_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """List the mean and the quantiles.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        list of dict
            With ``statistic`` (``"mean"``, ``"median"``, ``"25 % quantile"``), ``value``,
            ``standard_error`` (None of a quantile), ``low`` and ``high``.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If the level is not between 0 and 1.
        """
        mean = self.mean
        low, high = mean.interval(level)
        rows: list[tuple[Any, ...]] = [("mean", mean.value, mean.standard_error, low, high)]
        for probability in self.probabilities:
            found = self.quantile(probability, level)
            rows.append((_named(probability), found.value, None, found.low, found.high))
        return [dict(zip(self._columns, row, strict=True)) for row in rows]

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the share of the people up to each number, with separate limits.

        Parameters
        ----------
        ax
            The axes to draw on; a new picture by default.
        level
            The confidence level, between 0 and 1.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        _arguments.confidence("level", level)
        ax = new_axes(ax)
        histogram, points = self.histogram, self.grid.points
        share = histogram.monotone
        reach = LinearEstimate(0.0, 1.0).interval(level)[1] * histogram.cumulative_standard_errors
        low, high = (np.clip(share + sign * reach, 0, 1) for sign in (-1, 1))
        ax.fill_between(points, low, high, step="post", alpha=0.25, linewidth=0)
        ax.step(points, share, where="post")
        ax.set(xlabel="number", ylabel="share of the people up to it", ylim=(0, 1))
        people = answered(self.tally.received, self.tally.nodes)
        ax.set_title(f"{people}, {100 * level:.4g} % limits", fontsize=10, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        return ax

    def __repr__(self) -> str:
        """Show the mean and the number of reports."""
        mean = self.mean
        return (
            f"NumberEstimate(mean {mean.value:.6g} ± {mean.standard_error:.2g}, "
            f"{self.tally.received} reports of {self.tally.nodes} nodes)"
        )


class NumberGroups(EstimatesOfGroups[NumberEstimate]):
    """The mean and quantiles of a column of numbers in each group.

    Parameters
    ----------
    tally
        The tally of the reports of each group.
    grid, probabilities
        As in :class:`NumberEstimate`.
    """

    def __init__(
        self,
        tally: GroupedTally[HierarchicalTally],
        grid: Grid,
        probabilities: tuple[float, ...],
    ) -> None:
        estimates, reasons = {}, {}
        for key, one in tally.items():
            try:
                estimates[key] = NumberEstimate(one, grid, probabilities)
            except EstimatorError:
                reasons[key] = "the group has too few reports"
        if not estimates:
            raise EstimatorError("cannot estimate: no group has enough reports")
        self.grid, self.probabilities = grid, probabilities
        unknown = [{**dict.fromkeys(NumberEstimate._columns), "statistic": "mean"}]
        super().__init__(tally.names, tally, estimates, unknown, reasons=reasons)

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List the mean and the quantiles of each group.

        Parameters
        ----------
        level, simultaneous, over
            As for :meth:`turnout.frequency.groups.GroupedEstimate.interval`.
        top
            None: a group has one mean, and no answers of which some are left out.

        Returns
        -------
        list of dict
            With ``group``, ``nodes``, ``received``, what :meth:`NumberEstimate.to_records` gives,
            and ``reason``: why there is no estimate, else None.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If an argument is of the wrong type, or none of the allowed values.
        """
        if top is not None:
            raise InvalidValueError(f"top is for shares of answers, got {top!r} for numbers")
        return super().to_records(level, simultaneous=simultaneous, over=over)

    def plot(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the share of the people up to each number, a line for each group.

        Parameters
        ----------
        ax, level
            As in :meth:`NumberEstimate.plot`.

        Returns
        -------
        matplotlib.axes.Axes
            The picture.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        for estimate in self._estimates.values():
            ax = estimate.plot(ax, level=level)
        assert ax is not None  # there is a group
        shown = [", ".join(map(str, key)) for key in self._estimates]
        ax.legend(ax.get_lines(), shown, frameon=False)
        title = f"{len(shown):,} groups, {100 * level:.4g} % limits"
        ax.set_title(title, fontsize=10, loc="left")
        return ax


def _named(probability: float) -> str:
    return "median" if probability == 0.5 else f"{100 * probability:.6g} % quantile"
