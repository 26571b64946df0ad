"""Oracles that wrap another oracle, which makes their reports."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

from turnout import _arguments
from turnout._types import Array, Integers, Truths, Unsigned
from turnout.accounting.values import positive
from turnout.domain import Domain
from turnout.frequency.choice import make_oracle
from turnout.frequency.oracle import FrequencyOracle

#: What randomizes codes: ``"auto"``, the name of an oracle, a class, or one made or described.
OfCodes = FrequencyOracle | dict[str, Any] | Callable[[float, Domain], FrequencyOracle] | str


def _of_inner(name: str) -> Any:
    """Create a property that returns that of the inner oracle."""
    return property(lambda wrapped: getattr(wrapped._inner, name), doc="That of the inner oracle.")


class WrappedOracle(FrequencyOracle):
    """Base class of oracles that wrap another one, which makes their reports."""

    def __init__(
        self,
        epsilon: float,
        domain: Domain | Sequence[Hashable] | int,
        oracle: FrequencyOracle | dict[str, Any],
    ) -> None:
        inner = FrequencyOracle.from_dict(oracle) if isinstance(oracle, dict) else oracle
        oracle = _arguments.instance("oracle", inner, FrequencyOracle, "an oracle")
        super().__init__(positive("epsilon", epsilon), domain)
        if oracle.silent:
            raise _arguments.invalid("oracle must report of every node", oracle)
        self._inner: FrequencyOracle = oracle

    @property
    def oracle(self) -> FrequencyOracle:
        """The inner randomizer, which makes every report."""
        return self._inner

    realized_ratio = _of_inner("realized_ratio")
    realized_epsilon = _of_inner("realized_epsilon")
    report_bits = _of_inner("report_bits")
    report_dtype = _of_inner("report_dtype")
    report_shape = _of_inner("report_shape")
    _support_dtype = _of_inner("_support_dtype")
    _counted_by = _of_inner("_counted_by")
    _counts_of_a_report = _of_inner("_counts_of_a_report")
    _kernel = _of_inner("_kernel")

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the inner oracle cannot have made.

        Raises
        ------
        InvalidValueError
            If there is one; the error gives its position.
        """
        self._inner.check_reports(reports)

    def improbable(self, reports: Array) -> Truths:
        """Return which reports the inner oracle makes only with negligible probability."""
        return self._inner.improbable(reports)

    def _refuse_counting(self) -> None:
        """Refuse counting by a database if the inner oracle does."""
        self._inner._refuse_counting()

    def _refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that does not fit into :attr:`report_dtype`."""
        self._inner._refuse_range(reports)

    def _check_support(self, support: Unsigned, received: int) -> None:
        """Refuse support counts that reports of the inner oracle cannot have.

        Raises
        ------
        InvalidValueError
            If the counts contradict the number of reports.
        """
        self._inner._check_support(support, received)


class CodesOracle(WrappedOracle):
    """Base class of oracles that report codes through an inner oracle.

    The inner oracle knows only codes, not their meaning.

    Parameters
    ----------
    epsilon, domain
        As for every oracle.
    oracle
        The oracle that randomizes the codes: ``"auto"``, the name of an oracle, or a class; or an
        oracle with as many codes as the domain has, or its description.
    candidates
        The candidates for ``"auto"``; all by default.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the oracle has a larger epsilon or another number of codes, or does not draw fresh
        reports.
    """

    def __init__(
        self,
        epsilon: float,
        domain: Domain,
        oracle: OfCodes,
        candidates: Sequence[str] | None = None,
    ) -> None:
        codes = Domain.from_integers(domain.size)
        made = make_oracle("oracle", oracle, epsilon, codes, candidates)
        if not made.fresh or isinstance(made, WrappedOracle):
            raise _arguments.invalid("oracle must draw reports of single codes afresh", made)
        super().__init__(epsilon, domain, made)

    by_blocks = _of_inner("by_blocks")
    _two_valued = _of_inner("_two_valued")
    _score_moments = _of_inner("_score_moments")
    _pair_support = _of_inner("_pair_support")
    variation_ratio = _of_inner("variation_ratio")
    _told_apart = _of_inner("_told_apart")

    def _shared_variance(self, total: Any, squares: Any) -> Any:
        """Return the variance of a count that comes from shared hash functions."""
        return self._inner._shared_variance(total, squares)

    def _count_by_group(self, reports: Array, groups: Integers, number: int) -> Any:
        """Add up the reports of each group, as the inner oracle does."""
        return self._inner._count_by_group(reports, groups, number)

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"oracle": self._inner.to_dict()}
