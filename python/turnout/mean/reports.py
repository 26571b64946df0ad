"""Reports about numbers: what the nodes that took part sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.errors import CodeOutsideDomainError, InvalidTypeError, InvalidValueError
from turnout.mean.law import MeanLaw
from turnout.mean.plan import MeanPlan
from turnout.participation import Participation, Personalized

__all__ = ["MeanReports"]


class MeanReports:
    """The reports of the nodes that took part, with the plan they were made under.

    Made by :meth:`MeanMechanism.randomize`; make one yourself for reports that arrived by another
    way.

    Parameters
    ----------
    mechanism
        The randomizer that made them.
    participation
        How the nodes took part.
    cells
        The reported cells: integers of shape ``(reports,)`` in one dimension, otherwise
        ``(reports, sampled)``.
    nodes
        How many nodes there are, reporting or not.
    coordinates
        Which coordinate each cell belongs to, of the shape of the cells and ascending in each row,
        if reports are not about all coordinates.
    probabilities
        The participation probability of each reporting node, if every node has its own.

    Raises
    ------
    CodeOutsideDomainError
        If a cell or a coordinate is none.
    InvalidValueError
        If shapes do not fit, there are more reports than nodes, or fewer under ``Everyone()``.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.mean.Duchi(1.0)
    >>> reports = tn.mean.MeanReports(mechanism, tn.Bernoulli(0.5), [0, 1, 1], nodes=7)
    >>> len(reports), mechanism.tally(reports).received
    (3, 3)
    """

    __slots__ = ("_cells", "_coordinates", "_nodes", "_plan", "_probabilities")

    def __init__(
        self,
        mechanism: MeanLaw,
        participation: Participation,
        cells: npt.ArrayLike,
        nodes: int,
        *,
        coordinates: npt.ArrayLike | None = None,
        probabilities: npt.ArrayLike | None = None,
    ) -> None:
        self._plan = MeanPlan(mechanism, participation)
        shape = mechanism.report_shape
        self._cells = _integers("cells", cells, shape, mechanism.cells, cell_type(mechanism))
        self._nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
        reports = len(self._cells)
        if reports > self._nodes or (participation.uniform_rate == 1.0 and reports < self._nodes):
            raise InvalidValueError(
                f"nodes must be at least the {reports} reports (and equal if everyone takes part), "
                f"got {self._nodes}"
            )
        self._coordinates: npt.NDArray[np.uint16] | None = None
        if (coordinates is not None) != (mechanism.sampled < mechanism.dimensions):
            raise InvalidValueError(
                "coordinates must be given if reports are not about all of them, and only then: "
                f"a report is about {mechanism.sampled} of {mechanism.dimensions}"
            )
        if coordinates is not None:
            places = _integers("coordinates", coordinates, shape, mechanism.dimensions, np.uint16)
            if places.shape != self._cells.shape:
                raise InvalidValueError(
                    f"coordinates must have the shape of the cells {self._cells.shape}, got "
                    f"{places.shape}"
                )
            unsorted = (np.diff(places.astype(np.int64), axis=1) <= 0).any(axis=1)
            if unsorted.any():
                row = int(np.flatnonzero(unsorted)[0])
                raise InvalidValueError(
                    f"coordinates[{row}] must be ascending, got {places[row].tolist()}"
                )
            self._coordinates = places
        self._probabilities: npt.NDArray[np.float64] | None = None
        if (probabilities is not None) != (participation.uniform_rate is None):
            raise InvalidValueError(
                "probabilities must be given with personal participation, and only then, got "
                f"{participation!r}"
            )
        if probabilities is not None:
            self._probabilities = Personalized(probabilities).probabilities
            if self._probabilities.size != reports:
                raise InvalidValueError(
                    f"probabilities must have one entry for each of the {reports} reports, got "
                    f"{self._probabilities.size}"
                )

    @property
    def plan(self) -> MeanPlan:
        """The mechanism and the participation."""
        return self._plan

    @property
    def mechanism(self) -> MeanLaw:
        """The randomizer that made the reports."""
        return self._plan.mechanism

    @property
    def participation(self) -> Participation:
        """How the nodes took part."""
        return self._plan.participation

    @property
    def cells(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The reported cells, in the order of the nodes; read-only."""
        return self._cells

    @property
    def coordinates(self) -> npt.NDArray[np.uint16] | None:
        """The coordinate of each cell, or None if reports are about all of them; read-only."""
        return self._coordinates

    @property
    def nodes(self) -> int:
        """How many nodes there are, reporting or not."""
        return self._nodes

    @property
    def probabilities(self) -> npt.NDArray[np.float64] | None:
        """The participation probability of each reporting node, or None if all share one rate."""
        return self._probabilities

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self._cells)

    def __eq__(self, other: object) -> bool:
        """Compare plans, cells, coordinates, nodes and probabilities."""
        if not isinstance(other, MeanReports):
            return NotImplemented
        return (
            self._plan == other._plan
            and self._nodes == other._nodes
            and np.array_equal(self._cells, other._cells)
            and _same(self._coordinates, other._coordinates)
            and _same(self._probabilities, other._probabilities)
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle what the constructor takes; the copy is read-only too."""
        made = (self.mechanism, self.participation, self._cells, self._nodes)
        return _rebuild, (*made, self._coordinates, self._probabilities)

    def __repr__(self) -> str:
        """Show how many reports there are and their plan."""
        return (
            f"MeanReports({len(self)} of {self._nodes} nodes, {self.mechanism!r}, "
            f"{self.participation!r})"
        )


def cell_type(mechanism: MeanLaw) -> type[np.unsignedinteger[Any]]:
    """Choose the narrowest unsigned type that holds the cells.

    Examples
    --------
    >>> import turnout as tn
    >>> cell_type(tn.mean.Duchi(1.0)).__name__
    'uint8'
    """
    if mechanism.cells <= 2**8:
        return np.uint8
    return np.uint16 if mechanism.cells <= 2**16 else np.uint32


def _integers(
    argument: str, values: Any, shape: tuple[int, ...], size: int, dtype: Any
) -> npt.NDArray[Any]:
    """Return integers below a size, of a shape whose first length is free; a read-only copy."""
    try:
        array = np.asarray(values)
    except Exception as error:
        # Anything can go wrong in the conversion of foreign objects.
        raise InvalidTypeError(
            f"{argument} must be an array of integers, got {_arguments.shown(values)}"
        ) from error
    if array.size == 0:
        array = np.empty((0, *shape[1:]), dtype)
    if array.dtype.kind not in "iu":
        raise InvalidTypeError(f"{argument} must hold integers, got dtype {array.dtype}")
    if array.ndim != len(shape) or array.shape[1:] != shape[1:]:
        expected = ", ".join(["reports", *map(str, shape[1:])])
        raise InvalidValueError(f"{argument} must have shape ({expected}), got {array.shape}")
    wrong = (array < 0) | (array >= size)
    if wrong.any():
        place = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise CodeOutsideDomainError(
            f"{argument}[{', '.join(map(str, place))}] must be an integer from 0 to {size - 1}, "
            f"got {array[place]}"
        )
    kept = array.astype(dtype, order="C")
    kept.flags.writeable = False
    return kept


def _same(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _rebuild(
    mechanism: MeanLaw, participation: Participation, cells: Any, nodes: int, *rest: Any
) -> MeanReports:
    coordinates, probabilities = rest
    return MeanReports(
        mechanism,
        participation,
        cells,
        nodes,
        coordinates=coordinates,
        probabilities=probabilities,
    )
