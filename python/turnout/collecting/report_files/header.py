"""The header of a report file: what its schema metadata says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, Final

from turnout import _core
from turnout._documents import canonical, parsed
from turnout.collecting.keys import Key, checked_names, key_from_json, key_to_json
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError

METADATA_KEY: Final = "turnout"
CHECKSUM_KEY: Final = "turnout.checksum"

#: Columns that no group may be called.
OWN_COLUMNS: Final = ("report", "probability", "pseudonym")


@dataclass(frozen=True)
class Groups:
    """The groups of the nodes of a file.

    Attributes
    ----------
    names
        The columns that hold the groups.
    keys
        For each group its values, one for each name.
    nodes
        For each group its nodes, reporting or not.
    designs
        For each group the sums of its nodes' probabilities; None unless each node has its own.
    unanswered
        For each group its rows without an answer, which are left out; none if there are none.
    """

    names: tuple[str, ...]
    keys: tuple[Key, ...]
    nodes: tuple[int, ...]
    designs: tuple[DesignSums, ...] | None = None
    unanswered: tuple[int, ...] = ()

    def left_out(self) -> Iterator[LeftOut]:
        """List what is left out of each group."""
        return map(LeftOut, self.unanswered or (0,) * len(self.keys))


@dataclass(frozen=True)
class PartFacts:
    """Which part of which job a file is.

    Attributes
    ----------
    job
        The name of the job, which is random.
    number
        Which part of the job it is.
    """

    job: str
    number: int


@dataclass(frozen=True)
class Header:
    """What a report file says about its reports.

    Attributes
    ----------
    plan
        The oracle and the participation.
    nodes
        The number of nodes, reporting or not.
    reports
        The number of reports.
    design
        Sums of the probabilities of all nodes; None unless each has its own.
    groups
        The groups of the nodes; None if they have none.
    pseudonyms
        Whether each report has a pseudonym.
    part
        Which part of which job it is, of a file that is one.
    id
        128 random bits in hexadecimal, by which a copy of the file is known to be one, since small
        files can hold the same reports by chance. None in a part, which the job and its number
        name: whoever makes it again makes the same bytes.
    left_out
        How many rows or messages do not count, and are in none of these numbers.
    """

    plan: Plan
    nodes: int
    reports: int
    design: DesignSums | None = None
    groups: Groups | None = None
    pseudonyms: bool = False
    part: PartFacts | None = None
    id: str | None = None
    left_out: LeftOut = NOTHING

    @property
    def of_no_group(self) -> LeftOut:
        """What is left out and of no group."""
        return self.left_out if self.groups is None else replace(self.left_out, unanswered=0)

    @property
    def identity(self) -> str:
        """What tells the file from all others, and not from its copies."""
        return self._written.identity.hex()

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the file, in order."""
        own = ["probability"] if self.plan.participation.uniform_rate is None else []
        grouped = list(self.groups.names) if self.groups is not None else []
        return ["report", *own, *grouped, *(["pseudonym"] if self.pseudonyms else [])]

    @cached_property
    def _written(self) -> _core.ReportHeader:
        part = (self.part.job, self.part.number) if self.part is not None else None
        return _core.ReportHeader(
            self.plan._described,
            self.nodes,
            self.reports,
            None if self.design is None else astuple(self.design),
            None if self.groups is None else _described(self.groups),
            self.pseudonyms,
            part or bytes.fromhex(self.id or ""),
            astuple(self.left_out),
        )

    def to_text(self) -> str:
        """Write the header as JSON in which nothing looks like a checksum.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written.
        InvalidValueError
            If a label is no Unicode text, or the numbers contradict one another.
        """
        return self._written.text

    @classmethod
    def from_text(cls, text: bytes | None) -> Header:
        """Read a header, checking every rule but those of the rows.

        Raises
        ------
        UnsupportedVersionError
            If it is of a version that this release does not read.
        CorruptDataError
            If it is none.
        """
        if text is None:
            raise CorruptDataError(f"the schema metadata has no key {METADATA_KEY!r}")
        try:
            found = _core.ReportHeader.read(text.decode())
        except UnicodeDecodeError as error:
            raise CorruptDataError("the schema metadata is not UTF-8") from error
        return cls(
            Plan._of(found.plan),
            found.nodes,
            found.reports,
            found.design and DesignSums(*found.design),
            found.groups and _rebuilt(*found.groups),
            found.pseudonyms,
            found.part and PartFacts(*found.part),
            None if found.part else found.identity.hex(),
            LeftOut(*found.left_out),
        )


def _described(groups: Groups) -> Any:
    """Give groups as the core takes them."""
    sums: tuple[DesignSums | None, ...] = groups.designs or (None,) * len(groups.keys)
    designs = [one and astuple(one) for one in sums]
    unanswered = groups.unanswered or (0,) * len(groups.keys)
    keys = [canonical(key_to_json(key)) for key in groups.keys]
    each = zip(keys, groups.nodes, designs, unanswered, strict=True)
    return list(groups.names), list(each)


def _rebuilt(names: list[str], groups: list[tuple[str, int, Any, int]]) -> Groups:
    """Take groups as the core gives them."""
    keys = tuple(key_from_json(parsed(key), len(names)) for key, *_ in groups)
    # What the core tells apart can be equal here: 1 and True.
    if len(set(keys)) < len(keys):
        raise CorruptDataError("the metadata names a group twice")
    designs = tuple(DesignSums(*design) for _, _, design, _ in groups if design is not None)
    unanswered = tuple(number for *_, number in groups)
    return Groups(
        checked_names(names),
        keys,
        tuple(nodes for _, nodes, *_ in groups),
        designs or None,
        unanswered if any(unanswered) else (),
    )
