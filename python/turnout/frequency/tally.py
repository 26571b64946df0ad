"""Tallies: the sufficient statistics of the estimators."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array
from turnout.collecting.counted import CountedTally
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.domain import Domain
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import ESTIMATORS


class Tally(CountedTally):
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

    _sums_name: ClassVar[str] = "support"

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

    @classmethod
    def _entries(cls, plan: Plan) -> int:
        size: int = plan.oracle.domain.size
        return size

    @classmethod
    def _entry_type(cls, plan: Plan) -> np.dtype[Any]:
        kind: np.dtype[Any] = plan.oracle.support_dtype
        return kind

    def _check_sums(self) -> None:
        self._plan.oracle.check_support(self._sums, self._received)

    @property
    def domain(self) -> Domain:
        """The answers."""
        domain: Domain = self._plan.oracle.domain
        return domain

    @property
    def support(self) -> Array:
        """The number of reports that support each answer, uint64; read-only.

        Where reports hold scores, their sums, int64.
        """
        support: Array = self._sums
        return support

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
