"""Oracles whose reports another one makes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from turnout.domain import Domain
from turnout.frequency.kernel import Kernel
from turnout.frequency.oracle import FrequencyOracle

__all__ = ["WrappedOracle"]

Array = npt.NDArray[Any]
Counts = npt.NDArray[np.uint64]


class WrappedOracle(FrequencyOracle):
    """Base class of the oracles whose reports are those of another one, which they wrap."""

    def __init__(
        self, epsilon: float, domain: Domain | Sequence[Hashable] | int, oracle: FrequencyOracle
    ) -> None:
        super().__init__(epsilon, domain)
        self._inner = oracle

    @property
    def oracle(self) -> FrequencyOracle:
        """The randomizer that every report comes from."""
        return self._inner

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report of the inner oracle, exactly."""
        return self._inner.realized_ratio

    @property
    def realized_epsilon(self) -> float:
        """The logarithm of :attr:`realized_ratio`, rounded up; never above :attr:`epsilon`."""
        return self._inner.realized_epsilon

    @property
    def report_bits(self) -> int:
        """The size of a report in bits."""
        return self._inner.report_bits

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report."""
        return self._inner.report_dtype

    @property
    def report_shape(self) -> tuple[int, ...]:
        """``()`` if a report is one integer, else their number."""
        return self._inner.report_shape

    @property
    def support_dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The type of the support counts."""
        return self._inner.support_dtype

    @property
    def _kernel(self) -> Kernel:
        return self._inner._kernel

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the inner oracle cannot have made.

        Raises
        ------
        InvalidValueError
            If there is one, with its position.
        """
        self._inner.check_reports(reports)

    def improbable(self, reports: Array) -> npt.NDArray[np.bool_]:
        """Say which reports the inner oracle makes with negligible chance only."""
        return self._inner.improbable(reports)

    def refuse_range(self, reports: Array) -> NoReturn:
        """Refuse reports with a number that :attr:`report_dtype` does not hold."""
        self._inner.refuse_range(reports)

    def check_support(self, support: Counts, received: int) -> None:
        """Refuse support counts that so many reports of the inner oracle cannot have.

        Raises
        ------
        InvalidValueError
            If they contradict the number of reports.
        """
        self._inner.check_support(support, received)
