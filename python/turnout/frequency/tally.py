"""Tallies: the sufficient statistics of the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Participation

__all__ = ["Tally"]


class Tally:
    """How many reports support each answer, and how many nodes there are.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The oracle and the participation.
    support
        The number of reports that support each answer: one uint64 for each code. Where reports
        hold scores (:class:`turnout.SummationHistogramEncoding`), their sums.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        Sums of inverse probabilities, if every node has its own.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> monday, tuesday = oracle.collect(["no"] * 60), oracle.collect(["yes"] * 40)
    >>> (monday + tuesday).received
    100
    >>> tn.Tally.from_bytes(monday.to_bytes()) == monday
    True
    """

    __slots__ = ("_design", "_nodes", "_plan", "_received", "_support", "_weights")

    def __init__(
        self,
        plan: Plan,
        support: npt.ArrayLike,
        received: int,
        nodes: int,
        *,
        weights: WeightedSums | None = None,
        design: DesignSums | None = None,
    ) -> None:
        self._plan: Plan[FrequencyOracle] = _arguments.instance("plan", plan, Plan, "a Plan")
        size = plan.oracle.domain.size
        taken = _arguments.counts if plan.oracle.support_dtype.kind == "u" else _arguments.scores
        self._support: npt.NDArray[Any] = taken("support", support, size)
        self._support.flags.writeable = False
        self._nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
        self._received = _arguments.integer("received", received, least=0, most=self._nodes)
        plan.oracle.check_support(self._support, self._received)
        if plan.participation.uniform_rate == 1.0 and self._received != self._nodes:
            raise InvalidValueError(
                f"received must equal nodes = {self._nodes} when everyone takes part, "
                f"got {self._received}"
            )
        if weights is not None:
            _arguments.instance("weights", weights, WeightedSums, "a WeightedSums object")
        if design is not None:
            _arguments.instance("design", design, DesignSums, "a DesignSums object")
        personal = plan.participation.uniform_rate is None
        if (weights is not None) != personal or (design is not None) != personal:
            raise InvalidValueError(
                "weights and design must be given for personal participation, and only then"
            )
        if weights is not None and weights.size != size:
            raise InvalidValueError(
                f"weights must have {size} codes as the domain has, got {weights.size}"
            )
        if weights is not None and design is not None:
            weights.check_support(self._support, self._received)
            design.check_nodes(self._nodes)
        self._weights = weights
        self._design = design

    @property
    def plan(self) -> Plan[FrequencyOracle]:
        """The oracle and the participation."""
        return self._plan

    @property
    def oracle(self) -> FrequencyOracle:
        """The randomizer."""
        return self._plan.oracle

    @property
    def domain(self) -> Domain:
        """The answers."""
        return self._plan.oracle.domain

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self._plan.participation

    @property
    def support(self) -> npt.NDArray[Any]:
        """The number of reports that support each answer, uint64; read-only.

        Where reports hold scores, their sums, int64.
        """
        return self._support

    @property
    def received(self) -> int:
        """The number of reports."""
        return self._received

    @property
    def nodes(self) -> int:
        """The number of nodes, reporting or not."""
        return self._nodes

    @property
    def weights(self) -> WeightedSums | None:
        """Sums of inverse probabilities over the reports, or None if all nodes share one rate."""
        return self._weights

    @property
    def design(self) -> DesignSums | None:
        """Sums of probabilities over all nodes, or None if all nodes share one rate."""
        return self._design

    def merge(self, other: Tally) -> Tally:
        """Add the tally of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A tally under the same plan.

        Returns
        -------
        Tally
            The tally of the nodes of both.

        Raises
        ------
        PlanMismatchError
            If the plans differ.
        InvalidValueError
            If there are 2^64 nodes or more.
        InvalidTypeError
            If ``other`` is not a tally.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(1.0, 3)
        >>> oracle.collect([0, 1]).merge(oracle.collect([2])).nodes
        3
        """
        _arguments.instance("other", other, Tally, "a Tally")
        self._plan.check_same(other._plan, "other")
        nodes = self._nodes + other._nodes
        if nodes >= 2**64:
            raise InvalidValueError(f"the nodes of both must be fewer than 2^64, got {nodes}")
        weights, design = self._weights, self._design
        if other._weights is not None and other._design is not None:
            weights = other._weights if weights is None else weights + other._weights
            design = other._design if design is None else design + other._design
        return Tally(
            self._plan,
            self._support + other._support,
            self._received + other._received,
            nodes,
            weights=weights,
            design=design,
        )

    def __add__(self, other: object) -> Tally:
        """Merge two tallies."""
        return self.merge(other) if isinstance(other, Tally) else NotImplemented

    def __radd__(self, other: object) -> Tally:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare plans and all counts, exactly."""
        if not isinstance(other, Tally):
            return NotImplemented
        return (
            self._plan == other._plan
            and (self._received, self._nodes) == (other._received, other._nodes)
            and np.array_equal(self._support, other._support)
            and self._weights == other._weights
            and self._design == other._design
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle what the constructor takes; the copy is read-only too."""
        made = (self._plan, self._support, self._received, self._nodes)
        return _rebuild, (*made, self._weights, self._design)

    def __hash__(self) -> int:
        """Hash of the plan and the counts."""
        return hash((self._plan, self._received, self._nodes, self._support.tobytes()))

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        return (
            f"Tally({self._received} reports of {self._nodes} nodes, {self.oracle!r}, "
            f"{self.participation!r})"
        )

    def estimate(self, method: str = "hajek") -> FrequencyEstimate:
        """Estimate the frequencies of the answers.

        Parameters
        ----------
        method
            ``"hajek"`` (default): ratio estimator with a bias of the order of one over the rate,
            in nodes; in practice the smallest variance of those that are right for every
            participation.
            ``"horvitz_thompson"``: unbiased for every participation (with personal probabilities
            it needs a report). ``"g"``,
            ``"c_hat"``: unbiased for a common rate. ``"T"``: unbiased if participation does not
            depend on the values. ``"c"``: the estimator without participation, biased unless
            everyone takes part; kept to show that.

        Returns
        -------
        FrequencyEstimate
            Frequencies and counts with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If the method does not apply to this participation or to an empty tally, with the
            reason.

        Examples
        --------
        >>> import turnout as tn
        >>> oracle = tn.DirectEncoding(2.0, tn.Domain(["no", "yes"]))
        >>> tally = oracle.collect(["no"] * 3000 + ["yes"] * 1000, seed=1)
        >>> tally.estimate().frequencies.round(1)
        array([0.7, 0.3])
        """
        estimator = ESTIMATORS[_arguments.choice("method", method, tuple(ESTIMATORS))]
        return FrequencyEstimate.from_tally(self, estimator)

    def to_bytes(self) -> bytes:
        """Write the tally: see :mod:`turnout.frequency.tally_encoding` for the layout.

        Returns
        -------
        bytes
            A versioned encoding with a checksum.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written.
        """
        from turnout.frequency import tally_encoding  # noqa: PLC0415

        return tally_encoding.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Tally:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes of one tally.

        Returns
        -------
        Tally
            An equal tally.

        Raises
        ------
        UnsupportedVersionError
            If they are of a version that this release does not read.
        CorruptDataError
            If they are truncated, altered, or no tally.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        from turnout.frequency import tally_encoding  # noqa: PLC0415

        return tally_encoding.decode(data)


def _rebuild(
    plan: Plan, support: npt.NDArray[np.uint64], received: int, nodes: int, *personal: Any
) -> Tally:
    weights, design = personal
    return Tally(plan, support, received, nodes, weights=weights, design=design)
