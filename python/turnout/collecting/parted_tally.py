"""Tallies of reports that have several parts."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.collecting.drawing import Counts
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError

#: Bytes of the number of reports of a part.
_WIDE = 8


class PartedTally(BaseTally):
    """The tallies of all parts of the reports of a plan, and how many nodes there are.

    Parameters
    ----------
    plan
        The randomizer and the participation.
    sums
        For each part its sums, as its own tally takes them, and the number of its reports.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        For each part its weighted sums, if every node has its own probability.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.
    """

    __slots__ = ("_parts",)

    def __init__(
        self,
        plan: Plan,
        sums: Any,
        received: int,
        nodes: int,
        *,
        weights: Any = None,
        design: DesignSums | None = None,
    ) -> None:
        super().__init__(plan, sums, received, nodes, weights=weights, design=design)
        oracle, made = self.oracle, []
        for number, part in enumerate(oracle.parts):
            counts, here = self._sums[number]
            tally = part.tally_type(
                _part_plan(plan, number),
                counts,
                here,
                nodes,
                weights=None if self._weights is None else self._weights[number],
                design=None if design is None else design.scaled(oracle.shares()[number]),
            )
            made.append(tally)
        self._parts: tuple[Any, ...] = tuple(made)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tally of each part: of all nodes, at its rate."""
        return self._parts

    def _taken_sums(self, sums: Any) -> tuple[tuple[Any, int], ...]:
        expected = len(self.oracle.parts)
        try:
            taken = tuple((counts, int(received)) for counts, received in sums)
        except (TypeError, ValueError) as error:
            raise _arguments.mistyped("sums must be a pair for each part", sums) from error
        if len(taken) != expected:
            raise InvalidValueError(f"sums must be of {expected} parts, got {len(taken)}")
        return taken

    def _check_sums(self) -> None:
        numbers = [received for _, received in self._sums]
        if self.oracle.choice is None:
            fits = set(numbers) == {self._received}
            how = f"as many reports of each part as there are, {self._received}"
        else:
            fits = sum(numbers) == self._received
            how = f"reports of the parts that add up to {self._received}"
        if not fits:
            raise _arguments.invalid(f"sums must have {how}", numbers)

    def _taken_weights(self, weights: Any) -> tuple[Any, ...]:
        taken = tuple(weights)
        if len(taken) != len(self.oracle.parts):
            raise InvalidValueError(
                f"weights must be of {len(self.oracle.parts)} parts, got {len(taken)}"
            )
        return taken

    def _check_weights(self) -> None:
        """Leave it to the tallies of the parts."""

    def _added(self, other: PartedTally) -> tuple[Any, Any]:
        both = [one.merge(two).counts for one, two in zip(self._parts, other._parts, strict=True)]
        return _together(both, self._weights is not None)

    def _exact(self) -> tuple[Any, ...]:
        return (self._parts,)

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        empty = [
            part.tally_type.empty(_part_plan(plan, number)).counts
            for number, part in enumerate(plan.oracle.parts)
        ]
        return _together(empty, plan.participation.uniform_rate is None)

    @classmethod
    def bytes_of_sums(cls, plan: Plan) -> int:
        """Tell how many bytes the sums of all parts take up."""
        return sum(
            _WIDE + part.tally_type.bytes_of_sums(_part_plan(plan, number))
            for number, part in enumerate(plan.oracle.parts)
        )

    def sums_to_bytes(self) -> bytes:
        """Write the parts: see :mod:`turnout.collecting.tally_encoding`."""
        return b"".join(
            part.received.to_bytes(_WIDE, "little") + part.sums_to_bytes() for part in self._parts
        )

    @classmethod
    def _from_arrays(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        read, start = [], 0
        for number, part in enumerate(plan.oracle.parts):
            part_plan = _part_plan(plan, number)
            received = int.from_bytes(data[start : start + _WIDE], "little")
            start += _WIDE
            end = start + part.tally_type.bytes_of_sums(part_plan)
            sums, weights = part.tally_type._from_arrays(part_plan, data[start:end])
            read.append(Counts(sums, received, weights))
            start = end
        return _together(read, plan.participation.uniform_rate is None)


def _part_plan(plan: Plan, part: int) -> Plan:
    oracle = plan.oracle
    return Plan(oracle.parts[part], oracle.part_participation(part, plan.participation))


def _together(counts: list[Counts], personal: bool) -> tuple[Any, Any]:
    sums = tuple((each.sums, each.received) for each in counts)
    return sums, tuple(each.weights for each in counts) if personal else None
