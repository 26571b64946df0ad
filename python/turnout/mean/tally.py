"""Tallies of reports about numbers: the sufficient statistics of the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout import _arguments
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.mean.estimate import MeanEstimate
from turnout.mean.estimators import ESTIMATORS
from turnout.mean.law import MeanLaw
from turnout.mean.plan import MeanPlan
from turnout.participation import Participation

__all__ = ["MeanTally"]


class MeanTally:
    """Exact sums of the reported cells, and how many nodes there are.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The mechanism and the participation.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    moments
        For every coordinate three whole numbers: how many reports are about it, the sum of their
        cells, the sum of the squares.
    weighted
        For every coordinate six whole numbers, if every node has its own probability: the sums of
        ``1/pi``, of ``1/pi`` times the cell, of ``1/pi`` times the squared cell, and the same three
        with ``1/pi^2``, all in units of 2^-32.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.mean.Duchi(1.0)
    >>> monday, tuesday = mechanism.collect([0.5] * 60), mechanism.collect([0.25] * 40)
    >>> (monday + tuesday).received
    100
    """

    __slots__ = ("_moments", "_nodes", "_plan", "_received", "_weighted")

    def __init__(
        self,
        plan: MeanPlan,
        received: int,
        nodes: int,
        moments: Sequence[Sequence[int]],
        *,
        weighted: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._plan = _arguments.instance("plan", plan, MeanPlan, "a MeanPlan")
        self._nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
        self._received = _arguments.integer("received", received, least=0, most=self._nodes)
        if plan.participation.uniform_rate == 1.0 and self._received != self._nodes:
            raise InvalidValueError(
                f"received must equal nodes = {self._nodes} when everyone takes part, "
                f"got {self._received}"
            )
        self._moments = _rows("moments", moments, plan.dimensions, 3)
        _check_moments(self._moments, self._received, plan.mechanism)
        if (weighted is not None) != (plan.participation.uniform_rate is None):
            raise InvalidValueError(
                "weighted must be given for personal participation, and only then"
            )
        self._weighted = None
        if weighted is not None:
            self._weighted = _rows("weighted", weighted, plan.dimensions, 6)
            for j, (row, (seen, _, _)) in enumerate(
                zip(self._weighted, self._moments, strict=True)
            ):
                if row[0] < seen << 32 or row[3] < seen << 32 or (seen == 0 and any(row)):
                    raise InvalidValueError(
                        f"weighted[{j}] must be sums over {seen} reports with weights of at least "
                        f"1, got {_arguments.shown(row)}"
                    )

    @property
    def plan(self) -> MeanPlan:
        """The mechanism and the participation."""
        return self._plan

    @property
    def mechanism(self) -> MeanLaw:
        """The randomizer."""
        return self._plan.mechanism

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self._plan.participation

    @property
    def received(self) -> int:
        """The number of reports."""
        return self._received

    @property
    def nodes(self) -> int:
        """The number of nodes, reporting or not."""
        return self._nodes

    @property
    def moments(self) -> tuple[tuple[int, ...], ...]:
        """For every coordinate: reports, sum of cells, sum of squared cells; exact."""
        return self._moments

    @property
    def weighted(self) -> tuple[tuple[int, ...], ...] | None:
        """The six weighted sums of every coordinate, or None if all nodes share one rate."""
        return self._weighted

    def merge(self, other: MeanTally) -> MeanTally:
        """Add the tally of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A tally under the same plan.

        Returns
        -------
        MeanTally
            The tally of the nodes of both.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If there are 2^64 nodes or more.
        InvalidTypeError
            If ``other`` is not a tally.
        """
        _arguments.instance("other", other, MeanTally, "a MeanTally")
        self._plan.check_same(other._plan, "other")
        weighted = None
        if self._weighted is not None and other._weighted is not None:
            weighted = _added(self._weighted, other._weighted)
        return MeanTally(
            self._plan,
            self._received + other._received,
            self._nodes + other._nodes,
            _added(self._moments, other._moments),
            weighted=weighted,
        )

    def __add__(self, other: object) -> MeanTally:
        """Merge two tallies."""
        return self.merge(other) if isinstance(other, MeanTally) else NotImplemented

    def __radd__(self, other: object) -> MeanTally:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare plans and all sums, exactly."""
        if not isinstance(other, MeanTally):
            return NotImplemented
        return self._plan == other._plan and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        """Hash of the plan and the sums."""
        return hash((self._plan, self._numbers()))

    def _numbers(self) -> tuple[Any, ...]:
        return self._received, self._nodes, self._moments, self._weighted

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the constructor takes."""
        return _rebuild, (self._plan, *self._numbers())

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        return (
            f"MeanTally({self._received} reports of {self._nodes} nodes, {self.mechanism!r}, "
            f"{self.participation!r})"
        )

    def estimate(self, method: str = "hajek") -> MeanEstimate:
        """Estimate the mean over all nodes.

        Parameters
        ----------
        method
            ``"hajek"`` (default): ratio estimator, whose bias vanishes as reports grow.
            ``"horvitz_thompson"``: unbiased for every participation.

        Returns
        -------
        MeanEstimate
            The mean with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If there are no nodes, or reports of a coordinate are needed and none were received.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.mean.Piecewise(5.0, bounds=(0.0, 10.0))
        >>> round(mechanism.collect([2.0, 4.0] * 10_000, seed=1).estimate().mean)
        3
        """
        estimator = ESTIMATORS[_arguments.choice("method", method, tuple(ESTIMATORS))]
        return MeanEstimate.from_tally(self, method, estimator)


def _rows(argument: str, rows: Any, size: int, width: int) -> tuple[tuple[int, ...], ...]:
    expected = f"{width} non-negative whole numbers for each of the {size} coordinates"
    try:
        kept = tuple(tuple(row) for row in rows)
    except TypeError as error:
        raise InvalidTypeError(
            f"{argument} must be {expected}, got {_arguments.shown(rows)}"
        ) from error
    if len(kept) != size or any(len(row) != width for row in kept):
        raise InvalidValueError(f"{argument} must be {expected}, got {_arguments.shown(rows)}")
    return tuple(
        tuple(_arguments.integer(f"{argument}[{j}]", number, least=0) for number in row)
        for j, row in enumerate(kept)
    )


def _check_moments(moments: tuple[tuple[int, ...], ...], received: int, mechanism: MeanLaw) -> None:
    last = mechanism.cells - 1
    for j, (seen, first, second) in enumerate(moments):
        fits = seen <= received and first <= seen * last and second <= first * last
        if not (fits and first * first <= seen * second and first <= second):
            raise InvalidValueError(
                f"moments[{j}] must be those of at most {received} cells from 0 to {last}, got "
                f"{_arguments.shown((seen, first, second))}"
            )
    total = sum(row[0] for row in moments)
    if total != received * mechanism.sampled:
        raise InvalidValueError(
            f"moments must be of {mechanism.sampled} cells for each of the {received} reports, got "
            f"{total} cells"
        )


def _added(
    one: tuple[tuple[int, ...], ...], other: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(a + b for a, b in zip(*pair, strict=True)) for pair in zip(one, other, strict=True)
    )


def _rebuild(plan: MeanPlan, received: int, nodes: int, moments: Any, weighted: Any) -> MeanTally:
    return MeanTally(plan, received, nodes, moments, weighted=weighted)
