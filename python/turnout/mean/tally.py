"""Tallies of reports about numbers: the sufficient statistics of the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from turnout import _arguments
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import EstimatorError, InvalidValueError
from turnout.mean.estimate import MeanEstimate
from turnout.mean.estimators import ESTIMATORS

Rows = tuple[tuple[int, ...], ...]

#: Bytes of a sum, and of a weighted one.
_PLAIN: Final = 16
_WIDE: Final = 32


class MeanTally(BaseTally):
    """Exact sums of the reported cells, and the number of nodes.

    Tallies of different nodes under the same plan add up, in any order, to the tally of all nodes.

    Parameters
    ----------
    plan
        The mechanism and the participation.
    sums
        The moments, three whole numbers for every coordinate: the number of its reports, the sum of
        their cells, and the sum of the squared cells.
    received
        The number of reports.
    nodes
        The number of nodes, reporting or not.
    weights
        Six whole numbers for every coordinate, if every node has its own probability: the sums of
        ``1/pi``, of ``1/pi`` times the cell, of ``1/pi`` times the squared cell, and the same three
        with ``1/pi^2``, all in units of 2^-32.
    design
        Sums of probabilities over all nodes, if every node has its own.

    Raises
    ------
    InvalidValueError
        If the numbers contradict each other.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.mean.Duchi(1.0)
    >>> monday, tuesday = mechanism.collect([0.5] * 60), mechanism.collect([0.25] * 40)
    >>> (monday + tuesday).received
    100
    >>> tn.mean.MeanTally.from_bytes(monday.to_bytes()) == monday
    True
    """

    told: ClassVar[str] = "means"

    def _taken_sums(self, sums: Any) -> Rows:
        return _rows("moments", sums, self.domain.dimensions, 3)

    def _check_sums(self) -> None:
        last, sampled = self.oracle.cells - 1, self.oracle._sampled
        for j, row in enumerate(self.sums):
            if not _are_moments(row, self.received, last):
                raise _arguments.invalid(
                    f"moments[{j}] must be those of at most {self.received} cells from 0 to {last}",
                    row,
                )
        total = sum(row[0] for row in self.sums)
        if total != self.received * sampled:
            raise InvalidValueError(
                f"moments must be of {sampled} cells for each of the {self.received} reports, got "
                f"{total} cells"
            )

    def _taken_weights(self, weights: Any) -> Rows:
        return _rows("weights", weights, self.domain.dimensions, 6)

    def _check_weights(self) -> None:
        for j, (row, plain) in enumerate(zip(self.weights, self.sums, strict=True)):
            inverse, squared = row[:3], row[3:]
            # A probability is at least 2^-30, and a weight at least 1.
            fits = (
                _are_moments(inverse, plain[0] << 62, self.oracle.cells - 1)
                and _are_moments(squared, plain[0] << 92, self.oracle.cells - 1)
                and all(one << 32 <= other for one, other in zip(plain, inverse, strict=True))
                and all(one <= other for one, other in zip(inverse, squared, strict=True))
            )
            if not fits:
                raise InvalidValueError(
                    f"weights[{j}] must be sums over {plain[0]} reports with weights of at least 1 "
                    f"and at most 2^30, got {_arguments.shown(row)}"
                )

    def _added(self, other: MeanTally) -> tuple[Any, Any]:
        weights = None if self.weights is None else _added(self.weights, other.weights)
        return _added(self.sums, other.sums), weights

    def _exact(self) -> tuple[Any, ...]:
        return self.sums, self.weights

    @classmethod
    def _none(cls, plan: Plan) -> tuple[Any, Any]:
        size = plan.domain.dimensions
        personal = plan.participation.uniform_rate is None
        return ((0,) * 3,) * size, ((0,) * 6,) * size if personal else None

    @classmethod
    def _bytes_of_sums(cls, plan: Plan) -> int:
        """Return the number of bytes of a tally's sums."""
        size: int = plan.domain.dimensions
        return size * (3 * _PLAIN + (6 * _WIDE if plan.participation.uniform_rate is None else 0))

    def _sums_to_bytes(self) -> bytes:
        """Write moments and weights: see :mod:`turnout.collecting.tally_encoding`."""
        plain = [number.to_bytes(_PLAIN, "little") for row in self.sums for number in row]
        wide = [number.to_bytes(_WIDE, "little") for row in self.weights or () for number in row]
        return b"".join(plain + wide)

    @classmethod
    def _sums_of_bytes(cls, plan: Plan, data: bytes) -> tuple[Any, Any]:
        """Read moments and weights."""
        end = plan.domain.dimensions * 3 * _PLAIN
        plain, wide = _numbers(data[:end], _PLAIN, 3), _numbers(data[end:], _WIDE, 6)
        return plain, wide if plan.participation.uniform_rate is None else None

    @property
    def _lacks_answers(self) -> bool:
        return any(row[0] == 0 for row in self.sums)

    def estimate(self, method: str = "hajek") -> MeanEstimate:
        """Estimate the mean over all nodes.

        Parameters
        ----------
        method
            ``"hajek"`` (default): ratio estimator, whose bias vanishes as reports grow.
            ``"horvitz_thompson"``: unbiased for every participation.

        Returns
        -------
        MeanEstimate
            The mean with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If the method does not exist.
        EstimatorError
            If there are no nodes, or a coordinate that needs reports has none.

        Examples
        --------
        >>> import turnout as tn
        >>> mechanism = tn.mean.Piecewise(5.0, bounds=(0.0, 10.0))
        >>> round(mechanism.collect([2.0, 4.0] * 10_000, seed=1).estimate().mean)
        3
        """
        estimator = ESTIMATORS[_arguments.choice("method", method, tuple(ESTIMATORS))]
        if self.nodes == 0:
            raise EstimatorError("cannot estimate: the tally has no nodes")
        known = self.plan, method, self.nodes, self.received
        return MeanEstimate(*known, estimator(self), left_out=self.left_out)


def _rows(argument: str, rows: Any, size: int, width: int) -> tuple[tuple[int, ...], ...]:
    expected = f"{width} non-negative whole numbers for each of the {size} coordinates"
    try:
        kept = tuple(tuple(row) for row in rows)
    except TypeError as error:
        raise _arguments.mistyped(f"{argument} must be {expected}", rows) from error
    if len(kept) != size or any(len(row) != width for row in kept):
        raise _arguments.invalid(f"{argument} must be {expected}", rows)
    return tuple(
        tuple(_arguments.integer(f"{argument}[{j}]", number, least=0) for number in row)
        for j, row in enumerate(kept)
    )


def _are_moments(sums: Sequence[int], most: int, last: int) -> bool:
    """Return whether sums of weights, weighted cells and squares are consistent."""
    zero, first, second = sums
    fits = zero <= most and first <= zero * last and second <= first * last
    return fits and first * first <= zero * second and first <= second


def _added(
    one: tuple[tuple[int, ...], ...], other: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(a + b for a, b in zip(*pair, strict=True)) for pair in zip(one, other, strict=True)
    )


def _numbers(data: bytes, width: int, row: int) -> list[list[int]]:
    """Read rows of whole numbers of a given width in bytes."""
    numbers = [
        int.from_bytes(data[start : start + width], "little")
        for start in range(0, len(data), width)
    ]
    return [numbers[start : start + row] for start in range(0, len(numbers), row)]
