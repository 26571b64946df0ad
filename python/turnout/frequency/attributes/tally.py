"""Tallies of several attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnout import _arguments
from turnout import participation as participations
from turnout.collecting.tally_container import pack, unpack
from turnout.errors import (
    CorruptDataError,
)
from turnout.frequency.attributes.base import Attributes
from turnout.frequency.attributes.description import read_description
from turnout.frequency.attributes.reports import checked_pieces
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.tally import Tally
from turnout.participation import Participation

__all__ = ["AttributeTally"]

_MAGIC = b"\x89ATTRS\r\n"


class AttributeTally(Mapping[str, Tally]):
    """How many reports support each answer of each attribute: a mapping from names to tallies.

    Tallies of different nodes under the same collection and participation add up, in any order.

    Parameters
    ----------
    collection
        What made the reports.
    participation
        How nodes took part.
    tallies
        For each attribute its tally.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an attribute is missing, or the numbers contradict each other.
    PlanMismatchError
        If the tally of an attribute was made under another plan.

    Examples
    --------
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"a": 2, "b": 3})
    >>> monday = one.collect({"a": [0] * 60, "b": [1] * 60})
    >>> tuesday = one.collect({"a": [1] * 40, "b": [2] * 40})
    >>> (monday + tuesday).nodes
    100
    >>> AttributeTally.from_bytes(monday.to_bytes()) == monday
    True
    """

    __slots__ = ("_collection", "_participation", "_tallies")

    def __init__(
        self,
        collection: Attributes,
        participation: Participation,
        tallies: Mapping[str, Tally],
    ) -> None:
        self._tallies: dict[str, Tally] = checked_pieces(
            collection, participation, tallies, "tallies", Tally
        )
        self._collection = collection
        self._participation = participation.in_plan()

    @property
    def collection(self) -> Attributes:
        """What made the reports."""
        return self._collection

    @property
    def participation(self) -> Participation:
        """How nodes took part; of personal probabilities only that they are personal."""
        return self._participation

    @property
    def nodes(self) -> int:
        """How many nodes there are, reporting or not."""
        return next(iter(self._tallies.values())).nodes

    def estimate(self, method: str = "hajek") -> dict[str, FrequencyEstimate]:
        """Estimate the frequencies of the answers of each attribute.

        Parameters
        ----------
        method
            The estimator, as in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        dict
            For each attribute its frequencies among all nodes, with standard errors and intervals.

        Raises
        ------
        InvalidValueError
            If there is no such method.
        EstimatorError
            If the method does not apply, or an attribute has no report.
        """
        return {name: tally.estimate(method) for name, tally in self._tallies.items()}

    def merge(self, other: AttributeTally) -> AttributeTally:
        """Add the tally of other nodes; also written ``+``.

        Parameters
        ----------
        other
            A tally under the same collection and participation.

        Returns
        -------
        AttributeTally
            The tally of all nodes.

        Raises
        ------
        PlanMismatchError
            If the collections or participations differ.
        InvalidTypeError
            If ``other`` is no such tally.
        """
        _arguments.instance("other", other, AttributeTally, "an AttributeTally")
        self._collection.check_same(other.collection, "other")
        merged = {name: tally.merge(other[name]) for name, tally in self._tallies.items()}
        return AttributeTally(self._collection, self._participation, merged)

    def __add__(self, other: object) -> AttributeTally:
        """Merge two tallies."""
        return self.merge(other) if isinstance(other, AttributeTally) else NotImplemented

    def __radd__(self, other: object) -> AttributeTally:
        """Let ``sum`` start at zero."""
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __getitem__(self, name: str) -> Tally:
        """Return the tally of one attribute."""
        return self._tallies[name]

    def __iter__(self) -> Iterator[str]:
        """List the names of the attributes."""
        return iter(self._tallies)

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self._tallies)

    def __eq__(self, other: object) -> bool:
        """Compare collections and all counts, exactly."""
        if not isinstance(other, AttributeTally):
            return NotImplemented
        return (
            self._collection == other._collection
            and self._participation == other._participation
            and self._tallies == other._tallies
        )

    def __hash__(self) -> int:
        """Hash of the collection and the counts."""
        return hash((self._collection, tuple(self._tallies.items())))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle what the constructor takes."""
        return type(self), (self._collection, self._participation, self._tallies)

    def __repr__(self) -> str:
        """Show how many reports there are of each attribute."""
        numbers = ", ".join(f"{name}: {each.received}" for name, each in self._tallies.items())
        return f"AttributeTally({numbers} reports of {self.nodes} nodes)"

    def to_bytes(self) -> bytes:
        r"""Write the tally.

        Little-endian: the magic ``\x89ATTRS\r\n``, the version 1 and the length of the header, each
        in 4 bytes; the header, canonical JSON with ``collection``, ``participation`` and
        ``lengths``; the tallies of the attributes in their order, each as
        :meth:`turnout.Tally.to_bytes` writes it, of those lengths; the SHA-256 of all before.

        Returns
        -------
        bytes
            A versioned encoding with a checksum.

        Raises
        ------
        InvalidTypeError
            If a label of a domain cannot be written.
        """
        pieces = [tally.to_bytes() for tally in self._tallies.values()]
        header = {
            "collection": self._collection.to_dict(),
            "participation": self._participation.to_dict(),
            "lengths": [len(piece) for piece in pieces],
        }
        return pack(_MAGIC, header, pieces)

    @classmethod
    def from_bytes(cls, data: bytes) -> AttributeTally:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes of one tally of attributes.

        Returns
        -------
        AttributeTally
            An equal tally.

        Raises
        ------
        UnsupportedVersionError
            If they are of a version that this release does not read.
        CorruptDataError
            If they are truncated, altered, or no such tally.
        InvalidTypeError
            If ``data`` is not bytes.
        """
        return unpack(data, _MAGIC, "tally of attributes", cls._read)

    @classmethod
    def _read(cls, header: Any, pieces: bytes) -> AttributeTally:
        if set(header) != {"collection", "participation", "lengths"}:
            raise CorruptDataError("not a tally of attributes: its header has other entries")
        collection = read_description(header["collection"])
        taking_part = participations.from_dict(header["participation"])
        lengths = header["lengths"]
        if len(lengths) != len(collection.oracles) or sum(lengths) != len(pieces):
            raise CorruptDataError("not a tally of attributes: lengths do not fit")
        tallies, start = {}, 0
        for name, length in zip(collection.oracles, lengths, strict=True):
            tallies[name] = Tally.from_bytes(pieces[start : start + length])
            start += length
        return cls(collection, taking_part, tallies)
