"""Oracles whose reports are rows of bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout.frequency.oracle import FrequencyOracle


class BitRowOracle(FrequencyOracle):
    """Base class of the oracles whose report is one bit for each answer.

    A report is a row of ``ceil(k / 64)`` unsigned 64-bit integers: answer ``i`` in bit ``i % 64``
    of integer ``i // 64``, unused bits zero.
    """

    each_answer = "a bit"
    counted_by = "bits"

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of: uint64, 64 bits in each."""
        return np.dtype(np.uint64)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``(ceil(k / 64),)``."""
        return (-(-self._domain.size // 64),)
