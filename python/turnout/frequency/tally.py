"""Tallies: the sufficient statistics of the estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.collecting.tally import BaseTally
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    pass

__all__ = ["Tally"]


class Tally(BaseTally):
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

    __slots__ = ()

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
        super().__init__(plan, support, received, nodes, weights=weights, design=design)

    def _taken_sums(self, sums: Any) -> npt.NDArray[Any]:
        oracle = self._plan.oracle
        taken = _arguments.counts if oracle.support_dtype.kind == "u" else _arguments.scores
        support: npt.NDArray[Any] = taken("support", sums, oracle.domain.size)
        support.flags.writeable = False
        return support

    def _check_sums(self) -> None:
        self._plan.oracle.check_support(self._sums, self._received)

    def _taken_weights(self, weights: Any) -> WeightedSums:
        kept: WeightedSums = _arguments.instance(
            "weights", weights, WeightedSums, "a WeightedSums object"
        )
        size = self.domain.size
        if kept.size != size:
            raise InvalidValueError(
                f"weights must have {size} codes as the domain has, got {kept.size}"
            )
        return kept

    def _check_weights(self) -> None:
        self._weights.check_support(self._sums, self._received)

    def _added(self, other: Tally) -> tuple[Any, Any]:
        weights = None if self._weights is None else self._weights + other._weights
        return self._sums + other._sums, weights

    def _exact(self) -> tuple[Any, ...]:
        return self._sums.tobytes(), self._weights

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        size = plan.oracle.domain.size
        support = np.zeros(size, plan.oracle.support_dtype)
        if plan.participation.uniform_rate is not None:
            return support, None
        zeros = np.zeros((size + 1, 2), np.uint64)
        return support, WeightedSums(zeros, zeros)

    @classmethod
    def bytes_of_sums(cls, plan: Plan) -> int:
        """Tell how many bytes the counts of a tally take up."""
        size: int = plan.oracle.domain.size
        return 8 * size + (32 * (size + 1) if plan.participation.uniform_rate is None else 0)

    def sums_to_bytes(self) -> bytes:
        """Write support and weights: see :mod:`turnout.collecting.tally_encoding`."""
        counts: bytes = self._sums.astype(self._sums.dtype.newbyteorder("<")).tobytes()
        return counts if self._weights is None else counts + self._weights.to_bytes()

    @classmethod
    def _from_arrays(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        size, kind = plan.oracle.domain.size, plan.oracle.support_dtype
        support = np.frombuffer(data, kind.newbyteorder("<"), size).astype(kind)
        if plan.participation.uniform_rate is not None:
            return support, None
        return support, WeightedSums.from_bytes(data[8 * size :], size)

    @property
    def domain(self) -> Domain:
        """The answers."""
        domain: Domain = self._plan.oracle.domain
        return domain

    @property
    def support(self) -> npt.NDArray[Any]:
        """The number of reports that support each answer, uint64; read-only.

        Where reports hold scores, their sums, int64.
        """
        support: npt.NDArray[Any] = self._sums
        return support

    @property
    def weights(self) -> WeightedSums | None:
        """Sums of inverse probabilities over the reports, or None if all nodes share one rate."""
        weights: WeightedSums | None = self._weights
        return weights

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
