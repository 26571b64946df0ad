"""Tallies that are one count for each of so many answers, or for each cell of a grid."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from turnout import _arguments
from turnout._types import Array
from turnout.collecting.plan import Plan
from turnout.collecting.sums import WeightedSums
from turnout.collecting.tally import BaseTally


class CountedTally(BaseTally):
    """Counts of reports, and their sums of inverse probabilities if every node has its own."""

    __slots__ = ()

    #: What is counted, for messages.
    _entries_name: ClassVar[str] = "codes as the domain has"

    @classmethod
    @abstractmethod
    def _entries(cls, plan: Plan) -> int:
        """Tell how many counts there are under a plan."""

    @classmethod
    def _entry_type(cls, plan: Plan) -> np.dtype[Any]:
        """Tell of which type they are: 64 bits, signed where reports hold scores."""
        return np.dtype(np.uint64)

    def _taken_sums(self, sums: Any) -> Array:
        signed = self._entry_type(self._plan).kind == "i"
        taken = _arguments.scores if signed else _arguments.counts
        counts: Array = taken(self._sums_name, sums, self._entries(self._plan))
        counts.flags.writeable = False
        return counts

    def _taken_weights(self, weights: Any) -> WeightedSums:
        kept: WeightedSums = _arguments.instance(
            "weights", weights, WeightedSums, "a WeightedSums object"
        )
        size = self._entries(self._plan)
        if kept.size != size:
            raise _arguments.invalid(f"weights must have {size} {self._entries_name}", kept.size)
        return kept

    def _check_weights(self) -> None:
        self._weights.check_support(self._sums, self._received)

    def _added(self, other: Any) -> tuple[Any, Any]:
        weights = None if self._weights is None else self._weights + other.counts.weights
        return self._sums + other.counts.sums, weights

    def _exact(self) -> tuple[Any, ...]:
        return self._sums.tobytes(), self._weights

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        size = cls._entries(plan)
        counts = np.zeros(size, cls._entry_type(plan))
        if plan.participation.uniform_rate is not None:
            return counts, None
        zeros = np.zeros((size + 1, 2), np.uint64)
        return counts, WeightedSums(zeros, zeros)

    @classmethod
    def bytes_of_sums(cls, plan: Plan) -> int:
        """Tell how many bytes the counts of a tally take up."""
        size = cls._entries(plan)
        return 8 * size + (32 * (size + 1) if plan.participation.uniform_rate is None else 0)

    def sums_to_bytes(self) -> bytes:
        """Write counts and weights: see :mod:`turnout.collecting.tally_encoding`."""
        counts: bytes = self._sums.astype(self._sums.dtype.newbyteorder("<")).tobytes()
        return counts if self._weights is None else counts + self._weights.to_bytes()

    @classmethod
    def _from_arrays(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        size, kind = cls._entries(plan), cls._entry_type(plan)
        counts = np.frombuffer(data, kind.newbyteorder("<"), size).astype(kind)
        if plan.participation.uniform_rate is not None:
            return counts, None
        return counts, WeightedSums.from_bytes(data[8 * size :], size)

    @property
    def weights(self) -> WeightedSums | None:
        """Sums of inverse probabilities over the reports, or None if all nodes share one rate."""
        weights: WeightedSums | None = self._weights
        return weights
