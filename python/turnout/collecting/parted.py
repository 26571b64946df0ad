"""Randomizers composed of several, one for each part of a question, and their tallies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from turnout import _arguments, _core
from turnout._seeds import derived
from turnout._types import Array, Floats, Integers, Truths
from turnout._values import settle
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import Counts, Drawn, Noise, common_rate
from turnout.collecting.tally import BaseTally
from turnout.errors import CodeOutsideDomainError, InvalidValueError
from turnout.participation import Bernoulli, Everyone, Participation, Personalized

#: Bytes of the number of reports of a part.
_WIDE = 8


class PartedTally(BaseTally):
    """The tally of a composite randomizer: the tallies of all parts, and the number of nodes.

    Parameters
    ----------
    plan
        The randomizer and the participation.
    sums
        The sums of each part, as its own tally takes them, and the number of its reports.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        The weighted sums of each part, if every node has its own probability.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.
    """

    #: The tally of each part: of all nodes, at its rate.
    parts: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check the fields, and build the tallies of the parts."""
        super().__post_init__()
        oracle, made = self.oracle, []
        for number, part in enumerate(oracle.parts):
            counts, here = self.sums[number]
            tally = part.tally_type(
                _part_plan(self.plan, number),
                counts,
                here,
                self.nodes,
                weights=None if self.weights is None else self.weights[number],
                design=self.design and self.design.scaled(oracle._shares()[number]),
                left_out=self.left_out,
                origin=self.origin,
            )
            made.append(tally)
        settle(self, parts=tuple(made))

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
        numbers = [received for _, received in self.sums]
        if self.oracle._choice is None:
            fits = set(numbers) == {self.received}
            how = f"as many reports of each part as there are, {self.received}"
        else:
            fits = sum(numbers) == self.received
            how = f"reports of the parts that add up to {self.received}"
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
        """Leave the check to the tallies of the parts."""

    @property
    def _lacks_answers(self) -> bool:
        return not all(part.received for part in self.parts)

    def _added(self, other: PartedTally) -> tuple[Any, Any]:
        both = [one.merge(two) for one, two in zip(self.parts, other.parts, strict=True)]
        return _together(both, self.weights is not None)

    def _exact(self) -> tuple[Any, ...]:
        return (self.parts,)

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        empty = [
            part.tally_type.empty(_part_plan(plan, number))
            for number, part in enumerate(plan.oracle.parts)
        ]
        return _together(empty, plan.participation.uniform_rate is None)

    @classmethod
    def _bytes_of_sums(cls, plan: Plan) -> int:
        """Return the number of bytes of the sums of all parts."""
        return sum(
            _WIDE + part.tally_type._bytes_of_sums(_part_plan(plan, number))
            for number, part in enumerate(plan.oracle.parts)
        )

    def _sums_to_bytes(self) -> bytes:
        """Write the parts: see :mod:`turnout.collecting.tally_encoding`."""
        return b"".join(
            part.received.to_bytes(_WIDE, "little") + part._sums_to_bytes() for part in self.parts
        )

    @classmethod
    def _sums_of_bytes(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        """Read the sums of all parts."""
        read, start = [], 0
        for number, part in enumerate(plan.oracle.parts):
            part_plan = _part_plan(plan, number)
            received = int.from_bytes(data[start : start + _WIDE], "little")
            start += _WIDE
            end = start + part.tally_type._bytes_of_sums(part_plan)
            sums, weights = part.tally_type._sums_of_bytes(part_plan, data[start:end])
            read.append(Counts(sums, received, weights))
            start = end
        return _together(read, plan.participation.uniform_rate is None)


def _part_plan(plan: Plan, part: int) -> Plan:
    oracle = plan.oracle
    return Plan(oracle.parts[part], oracle._part_participation(part, plan.participation))


def _together(counts: Sequence[Counts | BaseTally], personal: bool) -> tuple[Any, Any]:
    sums = tuple((each.sums, each.received) for each in counts)
    return sums, tuple(each.weights for each in counts) if personal else None


class PartReports(NamedTuple):
    """Reports of one part.

    Attributes
    ----------
    part
        The index of the part.
    rows
        The participating nodes that sent them; None for all.
    reports
        The reports of the part's randomizer, one for each of these nodes.
    """

    part: int
    rows: Integers | None
    reports: Array


class PartedKind(Kind[PartedTally]):
    """Base class of composite randomizers: a node reports one of the parts, or all parts.

    A report is a row of unsigned integers. If a node draws one part, independently of its answer,
    the row begins with the index of the part. The report of the part's randomizer follows, then
    zeros up to the width of the widest part. If it reports all parts, the row is their
    concatenation.
    """

    @property
    def fresh(self) -> bool:
        """Whether reports of all parts in several rounds are independent."""
        return all(part.fresh for part in self.parts)

    @property
    def realized_ratio(self) -> Fraction:
        """The exact largest likelihood ratio of the parts, for a node that reports one part."""
        return max(part.realized_ratio for part in self.parts)

    @property
    def realized_epsilon(self) -> float:
        """The largest realized epsilon of the parts, rounded up; never above :attr:`epsilon`."""
        return max(part.realized_epsilon for part in self.parts)

    @property
    @abstractmethod
    def parts(self) -> tuple[Kind[Any], ...]:
        """The randomizers of the parts."""

    @property
    @abstractmethod
    def _choice(self) -> tuple[int, ...] | None:
        """The weights with which a node draws its part; None if it reports all parts."""

    @abstractmethod
    def _answers_of(self, answers: Array, part: int) -> Array:
        """Return the answers to one part, from encoded answers."""

    def _shares(self) -> tuple[Fraction, ...]:
        """Return the probability that a participating node reports each part."""
        if self._choice is None:
            return (Fraction(1),) * len(self.parts)
        total = sum(self._choice)
        return tuple(Fraction(weight, total) for weight in self._choice)

    def _part_participation(self, part: int, participation: Participation) -> Participation:
        """Return the participation of one part under the plan.

        Raises
        ------
        InvalidValueError
            If the rate becomes too small.
        """
        share, rate = self._shares()[part], participation.uniform_rate
        if share == 1 or rate is None:
            return participation._in_plan()
        return Bernoulli(float(Fraction(rate) * share))

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers of a report: the widest of the parts, unsigned.

        If a row begins with the index of the part, the type is wide enough for it too.
        """
        width = max(part.report_dtype.itemsize for part in self.parts)
        number = 0 if self._choice is None else len(self.parts) - 1
        return np.dtype(f"u{max(width, np.min_scalar_type(number).itemsize)}")

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The width of the row."""
        widths = [_width(part) for part in self.parts]
        return (sum(widths) if self._choice is None else 1 + max(widths),)

    @property
    def report_bits(self) -> int:
        """The size of the largest report in bits."""
        sizes = [part.report_bits for part in self.parts]
        return sum(sizes) if self._choice is None else (len(sizes) - 1).bit_length() + max(sizes)

    def _draw_parts(self, answers: Array, noise: Noise) -> Iterator[PartReports]:
        """Randomize the answers of participating nodes, part by part."""
        chosen = None
        if self._choice is not None:
            weights = np.array(self._choice, np.uint64)
            chosen = _core.choose_weighted(weights, len(answers), derived(noise, 0))
        for number, part in enumerate(self.parts):
            rows = None if chosen is None else np.flatnonzero(chosen == number)
            own = self._answers_of(answers if rows is None else answers[rows], number)
            drawn = part.draw_reports(own, Everyone(), derived(noise, 1, number))
            yield PartReports(number, rows, drawn.reports)

    def _taking_part(
        self, answers: Array, participation: Participation, noise: Noise
    ) -> tuple[Integers, Floats | None]:
        """Draw the nodes that take part, and return their probabilities."""
        self._domain._check_codes("values", answers)
        if not isinstance(participation, Personalized):
            return _core.participants(len(answers), common_rate(participation), noise), None
        probabilities = participation.probabilities
        if probabilities.size != len(answers):
            raise InvalidValueError(
                f"participation must have one probability for each of the {len(answers)} values, "
                f"got {probabilities.size}"
            )
        least = float(min(self._shares()))
        if probabilities.size and probabilities.min() * least < Personalized.minimum:
            raise InvalidValueError(
                "participation must have probabilities of at least 2^-30 when they are multiplied "
                f"by {least:g}, how likely a part is drawn, got {participation!r}"
            )
        positions = _core.participants(probabilities.size, probabilities, noise)
        return positions, probabilities[positions]

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize the parts: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        positions, probabilities = self._taking_part(answers, participation, noise)
        rows = np.zeros((positions.size, *self.report_shape), self.report_dtype)
        for part, who, reports in self._draw_parts(answers[positions], noise):
            where, start = slice(None) if who is None else who, self._start(part)
            words = _unsigned(reports)
            rows[where, start : start + words.shape[1]] = words
            if who is not None:
                rows[where, 0] = part
        return Drawn(rows, probabilities)

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and add up: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        positions, probabilities = self._taking_part(answers, participation, noise)
        pieces = self._draw_parts(answers[positions], noise)
        return self._added_up(pieces, positions.size, probabilities)

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Add up the parts: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        return self._added_up(self._reports_of_parts(reports), len(reports), probabilities)

    def _added_up(
        self, pieces: Iterator[PartReports], received: int, probabilities: Array | None
    ) -> Counts:
        shares, counts = self._shares(), []
        for part, rows, reports in pieces:
            own = None
            if probabilities is not None:
                own = probabilities if rows is None else probabilities[rows]
                own = own * float(shares[part])
            counts.append(self.parts[part].count_reports(reports, own))
        weights = None if probabilities is None else tuple(each.weights for each in counts)
        return Counts(tuple((each.sums, each.received) for each in counts), received, weights)

    def _start(self, part: int) -> int:
        """Return the offset of a part in a row."""
        if self._choice is not None:
            return 1
        return sum(_width(each) for each in self.parts[:part])

    def _reports_of_parts(self, reports: Array) -> Iterator[PartReports]:
        """Split accepted reports into their parts; see :meth:`check_reports`."""
        for number, part in enumerate(self.parts):
            rows = None if self._choice is None else np.flatnonzero(reports[:, 0] == number)
            start = self._start(number)
            words = reports[:, start : start + _width(part)]
            if rows is not None:
                words = words[rows]
            narrow = np.ascontiguousarray(words, f"u{part.report_dtype.itemsize}")
            own = narrow.view(part.report_dtype).reshape(len(words), *part.report_shape)
            yield PartReports(number, rows, own)

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that no part can have made.

        Raises
        ------
        CodeOutsideDomainError
            If a part does not exist, or an integer is not one of its reports.
        InvalidValueError
            If the part's randomizer cannot have made the report.
        """
        if self._choice is not None and reports.size:
            wrong = np.flatnonzero(reports[:, 0] >= len(self.parts))
            if wrong.size:
                raise CodeOutsideDomainError(
                    f"codes[{wrong[0]}, 0] must be the number of a part from 0 to "
                    f"{len(self.parts) - 1}"
                )
        for number, rows, own in self._reports_of_parts(reports):
            given = reports if rows is None else reports[rows]
            start, words = self._start(number), _unsigned(own)
            end = start + words.shape[1]
            # What does not fit into the part's type, and what stands behind it.
            wrong = (given[:, start:end] != words).any(axis=1)
            if self._choice is not None:
                wrong = wrong | (given[:, end:] != 0).any(axis=1)
            if wrong.any():
                place = int(np.flatnonzero(wrong)[0])
                raise CodeOutsideDomainError(
                    f"codes[{place if rows is None else rows[place]}] must be a report of "
                    f"{self.parts[number]!r} and zeros"
                )
            try:
                self.parts[number].check_reports(own)
            except InvalidValueError as error:
                raise type(error)(f"reports of part {number}: {error}") from error

    def improbable(self, reports: Array) -> Truths:
        """Return which reports have an improbable part."""
        found = np.zeros(len(reports), np.bool_)
        for number, rows, own in self._reports_of_parts(reports):
            found[slice(None) if rows is None else rows] |= self.parts[number].improbable(own)
        return found


def _width(part: Kind[Any]) -> int:
    return part.report_shape[0] if part.report_shape else 1


def _unsigned(reports: Array) -> Array:
    """Return reports as rows of unsigned integers of the same size."""
    plain = np.ascontiguousarray(reports).view(f"u{reports.dtype.itemsize}")
    return plain.reshape(len(reports), reports.shape[1] if reports.ndim > 1 else 1)
