"""Oracles whose reports are rows of bits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.oracle import FrequencyOracle

__all__ = ["BitRowOracle"]

#: A report of so many bits has 128 KiB.
LARGEST_DOMAIN = 2**20


class BitRowOracle(FrequencyOracle):
    """Base class of the oracles whose report is one bit for each answer.

    A report is a row of ``ceil(k / 64)`` unsigned 64-bit integers: answer ``i`` in bit ``i % 64``
    of integer ``i // 64``, unused bits zero.
    """

    def __init__(self, epsilon: float, domain: Domain | Sequence[Hashable] | int) -> None:
        super().__init__(epsilon, domain)
        if self._domain.size > LARGEST_DOMAIN:
            raise InvalidValueError(
                f"domain must have at most {LARGEST_DOMAIN} answers for {type(self).__name__}, "
                f"whose reports have a bit for each, got {self._domain.size}"
            )

    counted_by = "bits"

    @property
    def counts_of_a_report(self) -> int | None:
        """None: a report adds to any number of counts."""
        return None

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of: uint64, 64 bits in each."""
        return np.dtype(np.uint64)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``(ceil(k / 64),)``."""
        return (-(-self._domain.size // 64),)
