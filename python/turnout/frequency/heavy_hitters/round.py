"""One round: the candidates that the server publishes, and what a node reports about them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._documents import parsed
from turnout.collecting.kind import randomized
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, UnsupportedVersionError
from turnout.frequency.heavy_hitters.values import Rows, Values, keys, values_from_dict
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict
from turnout.frequency.tally import Tally
from turnout.participation import Participation, taking_part_in

__all__ = ["OTHER", "Round", "candidate_domain"]

#: The label of every value that has none of the prefixes.
OTHER = "other"


class Round:
    """The candidates of one round: public, and all that a node needs to report.

    Made by :meth:`Search.current`, or from the JSON text that a server publishes. A report says
    which of the candidate prefixes the node's value has, or that it has none, through the oracle.
    **A node answers one round**, that of its group: a second report would spend epsilon again.

    Parameters
    ----------
    values
        The kind of values.
    number
        Which round this is, counted from 0.
    bits
        How many bits the prefixes have.
    oracle
        The randomizer; the labels of its domain are the prefixes as texts of 0 and 1, and at last
        ``"other"``.

    Raises
    ------
    CorruptDataError
        If the labels are not of that form.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.
    """

    __slots__ = ("_bits", "_keys", "_number", "_oracle", "_order", "_rows", "_values")

    def __init__(self, values: Values, number: int, bits: int, oracle: FrequencyOracle) -> None:
        self._values = _arguments.instance("values", values, Values, "a kind of values")
        self._number = _arguments.integer("number", number, least=0)
        self._bits = _arguments.integer("bits", bits, least=1, most=values.bits)
        self._oracle = _arguments.instance("oracle", oracle, FrequencyOracle, "an oracle")
        self._rows = _rows(oracle.domain, self._bits, values.bits)
        found = keys(self._rows, self._bits)
        self._order = np.argsort(found, kind="stable")
        self._keys = found[self._order]

    @property
    def values(self) -> Values:
        """The kind of values."""
        return self._values

    @property
    def number(self) -> int:
        """Which round this is, counted from 0: the group of nodes that answers it."""
        return self._number

    @property
    def bits(self) -> int:
        """How many bits the prefixes have."""
        return self._bits

    @property
    def oracle(self) -> FrequencyOracle:
        """The randomizer, over the candidates and ``"other"``; a report costs its epsilon."""
        return self._oracle

    @property
    def candidates(self) -> tuple[str, ...]:
        """The prefixes, shown as text, in the order of their codes."""
        return tuple(self._values.shown(row, self._bits) for row in self._rows)

    @property
    def rows(self) -> Rows:
        """The prefixes as rows of bits."""
        return self._rows

    def codes(self, values: Any) -> npt.NDArray[np.int64]:
        """Find the candidate of each value; the last code for those that have none.

        Parameters
        ----------
        values
            One value for each node.

        Returns
        -------
        numpy.ndarray
            int64 codes of the oracle's domain.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a value is not of the kind.
        """
        return self._row_codes(self._values.encode(values))

    def _row_codes(self, rows: Rows) -> npt.NDArray[np.int64]:
        wanted = keys(rows, self._bits)
        place = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        return np.where(self._keys[place] == wanted, self._order[place], self._keys.size).astype(
            np.int64
        )

    def randomize(
        self,
        values: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> Reports:
        """Randomize what the nodes of this round's group say.

        Parameters
        ----------
        values
            One value for each node of the group.
        participation
            Who of the group takes part; everyone by default.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        Reports
            The reports, under the plan of this round.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a value is not of the kind, or an argument is of the wrong type or out of range.

        Examples
        --------
        >>> from turnout.frequency.heavy_hitters import HeavyHitters
        >>> first = HeavyHitters(1.0, bits=16).rounds().current
        >>> len(first.randomize([0xABCD, 17], seed=1))
        2
        """
        return self.randomize_rows(self._values.encode(values), participation, seed)

    def randomize_rows(
        self, rows: Rows, participation: Participation | float | None, seed: int | None
    ) -> Reports:
        """Randomize values that are encoded."""
        taking_part = taking_part_in(participation)
        checked_seed = _arguments.seed(seed)
        codes = self._row_codes(rows)
        return randomized(self._oracle, codes, taking_part, checked_seed)

    def tally(self, reports: Reports) -> Tally:
        """Count the reports of this round; tallies of the same round add up.

        Raises
        ------
        PlanMismatchError
            If the reports are of another round.
        InvalidTypeError
            If ``reports`` is no :class:`turnout.Reports`.
        """
        return self._oracle.tally(reports)

    def check_tally(self, tally: Tally) -> None:
        """Refuse the tally of another round.

        Raises
        ------
        PlanMismatchError
            If it is one.
        InvalidTypeError
            If ``tally`` is no :class:`turnout.Tally`.
        """
        _arguments.instance("tally", tally, Tally, "a Tally")
        Plan(self._oracle, tally.participation).check_same(tally.plan, "tally")

    def to_json(self) -> str:
        """Describe the round as canonical JSON: what a server publishes.

        Returns
        -------
        str
            The same text for equal rounds.
        """
        description = {
            "format": "turnout-prefixes",
            "version": 1,
            "values": self._values.to_dict(),
            "number": self._number,
            "bits": self._bits,
            "oracle": self._oracle.to_dict(),
        }
        return json.dumps(description, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Round:
        """Rebuild a round from :meth:`to_json`.

        A client that must not spend more than some epsilon checks ``round.oracle.epsilon``.

        Raises
        ------
        UnsupportedVersionError
            If it is of a version that this release does not read.
        CorruptDataError
            If it is no round.
        InvalidTypeError
            If ``text`` is no text.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise InvalidTypeError(f"text must be JSON text, got {_arguments.shown(text)}")
        try:
            description = parsed(text)
        except (ValueError, RecursionError) as error:
            raise CorruptDataError(f"not a round of prefixes: {error}") from error
        match description:
            case {"format": "turnout-prefixes", "version": version} if version != 1:
                raise UnsupportedVersionError(
                    f"the round has version {_arguments.shown(version)}; this release of turnout "
                    "reads 1"
                )
            case {
                "format": "turnout-prefixes",
                "version": 1,
                "values": values,
                "number": int(number),
                "bits": int(bits),
                "oracle": oracle,
                **rest,
            } if not rest:
                kind = values_from_dict(values)
                randomizer = oracle_from_dict(oracle)
                if number >= 0 and 1 <= bits <= kind.bits:
                    return cls(kind, number, bits, randomizer)
        raise CorruptDataError(f"not a round of prefixes: {_arguments.shown(description)}")

    def __eq__(self, other: object) -> bool:
        """Compare kind, number, bits and oracle."""
        if not isinstance(other, Round):
            return NotImplemented
        return (self._values, self._number, self._bits, self._oracle) == (
            other._values,
            other._number,
            other._bits,
            other._oracle,
        )

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((self._values, self._number, self._bits, self._oracle))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle what the constructor takes."""
        return type(self), (self._values, self._number, self._bits, self._oracle)

    def __repr__(self) -> str:
        """Show the number, the prefixes and the oracle's class."""
        return (
            f"Round({self._number}, {len(self._rows)} prefixes of {self._bits} bits, "
            f"{type(self._oracle).__name__} at epsilon {self._oracle.epsilon:g})"
        )


def candidate_domain(rows: Rows, bits: int) -> Domain:
    """Make the domain of candidates: their bits as text, and ``"other"``."""
    known = np.unpackbits(rows, axis=1)[:, :bits]
    return Domain([*("".join(map(str, row)) for row in known.tolist()), OTHER])


def _rows(domain: Domain, bits: int, most: int) -> Rows:
    *prefixes, last = domain.labels
    if last != OTHER:
        raise CorruptDataError(f"not a round of prefixes: the last label is {last!r}")
    known = np.zeros((len(prefixes), 8 * ((most + 7) // 8)), dtype=np.uint8)
    for position, prefix in enumerate(prefixes):
        if not isinstance(prefix, str) or len(prefix) != bits or set(prefix) - {"0", "1"}:
            raise CorruptDataError(
                f"not a round of prefixes: {_arguments.shown(prefix)} is not {bits} bits"
            )
        known[position, :bits] = np.frombuffer(prefix.encode(), np.uint8) - ord("0")
    return np.packbits(known, axis=1)
