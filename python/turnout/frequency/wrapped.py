"""Oracles whose reports another one makes."""

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
    """Make a property that says what the inner oracle says."""
    return property(lambda wrapped: getattr(wrapped._inner, name), doc="That of the inner oracle.")


class WrappedOracle(FrequencyOracle):
    """Base class of the oracles whose reports are those of another one, which they wrap."""

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
        """The randomizer that every report comes from."""
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
            If there is one, with its position.
        """
        self._inner.check_reports(reports)

    def improbable(self, reports: Array) -> Truths:
        """Say which reports the inner oracle makes with negligible chance only."""
        return self._inner.improbable(reports)

    def _refuse_counting(self) -> None:
        """Refuse to be counted by a database, where the inner oracle does."""
        self._inner._refuse_counting()

    def _refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that :attr:`report_dtype` does not hold."""
        self._inner._refuse_range(reports)

    def _check_support(self, support: Unsigned, received: int) -> None:
        """Refuse support counts that so many reports of the inner oracle cannot have.

        Raises
        ------
        InvalidValueError
            If they contradict the number of reports.
        """
        self._inner._check_support(support, received)


class CodesOracle(WrappedOracle):
    """Base class of the oracles that report the codes of a domain of their own through another one.

    The other one knows codes alone, and nothing of what they stand for.

    Parameters
    ----------
    epsilon, domain
        As for every oracle.
    oracle
        What randomizes the codes: ``"auto"``, the name of an oracle, or a class; or an oracle of as
        many codes as the domain has, or its description.
    candidates
        What ``"auto"`` chooses from; all by default.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the oracle is of a larger epsilon or another number of codes, or draws no fresh reports.
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
        """Give what hash functions shared by all reports add to the variance of a count."""
        return self._inner._shared_variance(total, squares)

    def _count_by_group(self, reports: Array, groups: Integers, number: int) -> Any:
        """Add up the reports of each group, as the inner oracle does."""
        return self._inner._count_by_group(reports, groups, number)

    def parameters(self) -> dict[str, Any]:
        """Name what the constructor takes beyond epsilon and the domain, in terms of JSON."""
        return {"oracle": self._inner.to_dict()}
