"""What the mechanisms for means have in common."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from turnout._types import Array, Floats
from turnout.bounds import Bounds
from turnout.collecting.drawing import Counts, Drawn, Noise
from turnout.collecting.kind import Kind
from turnout.collecting.taking_part import rates_of
from turnout.errors import CodeOutsideDomainError, InvalidValueError
from turnout.mean.groups import GroupedMeanEstimate
from turnout.mean.law import MeanLaw
from turnout.mean.tally import MeanTally
from turnout.participation import Participation


class MeanMechanism(MeanLaw, Kind[MeanTally]):
    """Base class of the local randomizers of numbers.

    Reports are cells of an integer grid, never floating-point numbers, whose digits would leak: of
    one number one cell, of several a row of cells; where a report is about some of the coordinates
    only, the row begins with their places, ascending.
    """

    tally_type = MeanTally
    no_simulation_because = "a report depends on the number itself"
    domain_type = Bounds

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The type of the integers that a report is made of: the narrowest that holds them."""
        most = max(self.cells, self.dimensions if self._places else 0)
        return np.dtype(np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32)

    @property
    def report_shape(self) -> tuple[int, ...]:
        """The shape of a report: ``()`` for one number, ``(width,)`` for a row."""
        return () if self.dimensions == 1 else (self._places + self.sampled,)

    @property
    def _places(self) -> int:
        """How many entries of a row are the coordinates that it is about."""
        return self.sampled if self.sampled < self.dimensions else 0

    def draw_reports(self, answers: Array, participation: Participation, noise: Noise) -> Drawn:
        """Randomize numbers: see :meth:`turnout.collecting.kind.Kind.draw_reports`."""
        rates = rates_of(participation)
        coordinates, cells, probabilities = self._core.randomize(answers.ravel(), rates, noise)
        if self.report_shape:
            cells = cells.reshape(-1, self.sampled)
            if coordinates is not None:
                cells = np.hstack([coordinates.reshape(-1, self.sampled), cells])
        return Drawn(np.ascontiguousarray(cells, self.report_dtype), probabilities)

    def count_reports(self, reports: Array, probabilities: Array | None = None) -> Counts:
        """Add up cells and squares: see :meth:`turnout.collecting.kind.Kind.count_reports`."""
        coordinates, cells = self._parts(reports)
        places = None if coordinates is None else coordinates.astype(np.uint16).ravel()
        return _counts(self._core.tally(np.ascontiguousarray(cells).ravel(), places, probabilities))

    def draw_counts(self, answers: Array, participation: Participation, noise: Noise) -> Counts:
        """Randomize and add up: see :meth:`turnout.collecting.kind.Kind.draw_counts`."""
        return _counts(self._core.collect(answers.ravel(), rates_of(participation), noise))

    def estimate_groups(self, grouped: Any, method: str) -> GroupedMeanEstimate:
        """Estimate the mean in each group of a grouped tally."""
        return GroupedMeanEstimate(grouped, method)

    def check_reports(self, reports: Array) -> None:
        """Refuse reports that the mechanism cannot have made.

        Raises
        ------
        CodeOutsideDomainError
            If a cell is none of the grid, or a coordinate none of the numbers.
        InvalidValueError
            If the coordinates of a report are not ascending.
        """
        coordinates, cells = self._parts(reports)
        _check_below("cell", cells, self.cells, self._places)
        if coordinates is not None:
            _check_below("coordinate", coordinates, self.dimensions, 0)
            unsorted = (np.diff(coordinates.astype(np.int64), axis=1) <= 0).any(axis=1)
            if unsorted.any():
                row = int(np.flatnonzero(unsorted)[0])
                raise InvalidValueError(
                    f"the coordinates of codes[{row}] must be ascending, got "
                    f"{coordinates[row].tolist()}"
                )

    def _parts(self, reports: Array) -> tuple[Array | None, Array]:
        """Tell the coordinates of reports, where they have some, from the cells."""
        if not self._places:
            return None, reports
        return reports[:, : self._places], reports[:, self._places :]

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        return cls(epsilon, (domain.low, domain.high), domain.dimensions, **parameters)

    def __repr__(self) -> str:
        """Show the constructor."""
        more = f", dimensions={self.dimensions}" if self.dimensions > 1 else ""
        return f"{type(self).__name__}(epsilon={self.epsilon!r}, bounds={self.bounds!r}{more})"


class GridMechanism(MeanMechanism):
    """Base class of those that report a cell of each of some coordinates, chosen at random."""

    @property
    def realized_ratio(self) -> Fraction:
        """The largest likelihood ratio of a report under two values, exactly; at most e^eps."""
        return Fraction(*self._core.ratio) ** self.sampled

    @property
    def report_bits(self) -> int:
        """The size of a report in bits: a cell, and which it is, for each sampled coordinate."""
        place = (self.dimensions - 1).bit_length() if self.sampled < self.dimensions else 0
        return self.sampled * ((self.cells - 1).bit_length() + place)

    def _uneven(self, positions: Array, cells: int) -> Floats:
        """Say how much is rounded where a position is a place among so many cells."""
        rest = np.modf((positions + 1) / 2 * cells)[0]
        result: Floats = 4 * rest * (1 - rest)
        return result


def _counts(sums: Any) -> Counts:
    received, moments, weighted = sums
    if weighted is not None:
        weighted = [[low + (high << 64) for low, high in row] for row in weighted]
    return Counts(moments, received, weighted)


def _check_below(what: str, numbers: Array, size: int, start: int) -> None:
    wrong = numbers >= size
    if wrong.any():
        place = np.argwhere(wrong)[0]
        position = [int(place[0]), *(int(index) + start for index in place[1:])]
        raise CodeOutsideDomainError(
            f"codes[{', '.join(map(str, position))}] must be a {what} from 0 to {size - 1}, got "
            f"{numbers[tuple(place)]}"
        )
