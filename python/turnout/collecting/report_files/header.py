"""The header of a report file, in its schema metadata."""

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
        The key of each group: one value for each name.
    nodes
        The number of nodes of each group, reporting or not.
    designs
        The sums of the probabilities of each group's nodes; None unless each node has its own.
    unanswered
        The number of rows without an answer of each group, which are left out; empty if there are
        none.
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
    """The job and the part that a file belongs to.

    Attributes
    ----------
    job
        The name of the job, which is random.
    number
        The number of the part.
    """

    job: str
    number: int


@dataclass(frozen=True)
class Header:
    """The facts in a report file about its reports.

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
        The job and the part, if the file is part of a job.
    id
        128 random bits in hexadecimal, which identify copies of the file, since small files can
        hold the same reports by chance. None in a part, which the job and its number identify:
        making it again gives the same bytes.
    left_out
        The rows or messages that do not count, and are in none of these numbers.
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
        """The rows that are left out and belong to no group."""
        return self.left_out if self.groups is None else replace(self.left_out, unanswered=0)

    @property
    def identity(self) -> str:
        """The identity of the file, which its copies share."""
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
            If a label is not Unicode text, or the numbers contradict one another.
        """
        return self._written.text

    @classmethod
    def from_text(cls, text: bytes | None) -> Header:
        """Read a header, and check every rule except those of the rows.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read its version.
        CorruptDataError
            If it is not a valid header.
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
    """Return groups as the core takes them."""
    sums: tuple[DesignSums | None, ...] = groups.designs or (None,) * len(groups.keys)
    designs = [one and astuple(one) for one in sums]
    unanswered = groups.unanswered or (0,) * len(groups.keys)
    keys = [canonical(key_to_json(key)) for key in groups.keys]
    each = zip(keys, groups.nodes, designs, unanswered, strict=True)
    return list(groups.names), list(each)


def _rebuilt(names: list[str], groups: list[tuple[str, int, Any, int]]) -> Groups:
    """Return groups from what the core gives."""
    keys = tuple(key_from_json(parsed(key), len(names)) for key, *_ in groups)
    # What the core tells apart can be equal here: 1 and True.
    if len(set(keys)) < len(keys):
        raise CorruptDataError("the metadata has a duplicate group")
    designs = tuple(DesignSums(*design) for _, _, design, _ in groups if design is not None)
    unanswered = tuple(number for *_, number in groups)
    return Groups(
        checked_names(names),
        keys,
        tuple(nodes for _, nodes, *_ in groups),
        designs or None,
        unanswered if any(unanswered) else (),
    )
