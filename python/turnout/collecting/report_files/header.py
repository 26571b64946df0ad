"""The header of a report file: what its schema metadata says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from turnout import _arguments
from turnout._documents import check_version, parsed
from turnout._seal import SEAL_MARKER
from turnout.collecting.keys import Key, checked_names, key_from_json, key_to_json
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, TurnoutError

METADATA_KEY: Final = "turnout"
CHECKSUM_KEY: Final = "turnout.checksum"

#: Columns that no group may be called.
OWN_COLUMNS: Final = ("report", "probability", "pseudonym")

_FORMAT_NAME: Final = "turnout-reports"
_VERSION: Final = 2
_ID: Final = re.compile("[0-9a-f]{32}")


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

    def to_dict(self) -> dict[str, Any]:
        """Describe the groups in terms of JSON."""
        described: dict[str, Any] = {
            "names": list(self.names),
            "keys": list(map(key_to_json, self.keys)),
            "nodes": list(self.nodes),
        }
        if self.designs is not None:
            described["designs"] = [design.to_dict() for design in self.designs]
        if any(self.unanswered):
            described["unanswered"] = list(self.unanswered)
        return described

    @classmethod
    def from_dict(cls, described: Any, nodes: int, own: bool, left_out: LeftOut) -> Groups:
        """Rebuild the groups of ``nodes`` nodes; ``own`` if each has its own probability.

        Raises
        ------
        CorruptDataError
            If they are no groups, or not of so many nodes, or of rows without an answer.
        """
        flags = {"designs": own, "unanswered": left_out.unanswered > 0}
        wanted = {name for name, there in flags.items() if there}
        match described:
            case {
                "names": list(names),
                "keys": list(keys),
                "nodes": list(counts),
                **rest,
            } if rest.keys() == wanted:
                made = cls(
                    checked_names(names),
                    tuple(key_from_json(key, len(names)) for key in keys),
                    tuple(_count(count) for count in counts),
                    _designs(rest.get("designs")) if own else None,
                    _counts(rest.get("unanswered", [])),
                )
                each: list[Collection[Any]] = [made.keys, made.nodes, set(made.keys)]
                each += [getattr(made, name) for name in sorted(wanted)]
                fits = sum(made.nodes) == nodes and sum(made.unanswered) == left_out.unanswered
                if len(set(map(len, each))) == 1 and fits:
                    return made
        raise CorruptDataError(f"not the groups of {nodes} nodes: {_arguments.shown(described)}")


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

    @classmethod
    def from_dict(cls, described: Any) -> PartFacts:
        """Rebuild the facts from their JSON.

        Raises
        ------
        CorruptDataError
            If they are none.
        """
        match described:
            case {"job": str(job), "number": number, **rest} if not rest:
                return cls(job, _count(number))
        raise CorruptDataError(f"not the job and number of a part: {_arguments.shown(described)}")


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
        if self.id is not None or self.part is None:
            return self.id or ""
        part = f"{self.part.job}/{self.part.number}"
        return hashlib.sha256(part.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the file, in order."""
        own = ["probability"] if self.plan.participation.uniform_rate is None else []
        grouped = list(self.groups.names) if self.groups is not None else []
        return ["report", *own, *grouped, *(["pseudonym"] if self.pseudonyms else [])]

    def to_text(self) -> str:
        """Write the header as JSON in which nothing looks like a checksum."""
        header: dict[str, Any] = {
            "format": _FORMAT_NAME,
            "version": _VERSION,
            "plan": self.plan.to_dict(),
            "nodes": self.nodes,
            "reports": self.reports,
        }
        optional = {
            "design": self.design and self.design.to_dict(),
            "pseudonyms": self.pseudonyms or None,
            "groups": self.groups and self.groups.to_dict(),
            "part": self.part and asdict(self.part),
            "id": self.id,
            "left_out": self.left_out.to_dict() if self.left_out else None,
        }
        header |= {name: value for name, value in optional.items() if value is not None}
        text = json.dumps(header, ensure_ascii=True, separators=(",", ":"))
        # Only the checksum itself may look like one. "t" and "-" never end or begin an escape.
        return text.replace(SEAL_MARKER, SEAL_MARKER.replace("-", "\\u002d"))

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
        header = _object(text)
        plan = Plan.from_dict(header["plan"])
        own = plan.participation.uniform_rate is None
        nodes = header["nodes"]
        groups = header.get("groups")
        left_out = LeftOut.from_dict(header["left_out"]) if "left_out" in header else NOTHING
        pseudonyms = header.get("pseudonyms", False)
        if not isinstance(pseudonyms, bool):
            raise CorruptDataError(f"'pseudonyms' is {pseudonyms!r}, not true or false")
        try:
            return cls(
                plan,
                nodes,
                header["reports"],
                DesignSums.from_dict(header.get("design")) if own else None,
                None if groups is None else Groups.from_dict(groups, nodes, own, left_out),
                pseudonyms,
                None if header.get("part") is None else PartFacts.from_dict(header["part"]),
                _id(header.get("id"), part=header.get("part") is not None),
                left_out,
            )
        except CorruptDataError:
            raise
        except TurnoutError as error:
            raise CorruptDataError(str(error)) from error


def _object(text: bytes | None) -> dict[str, Any]:
    if text is None:
        raise CorruptDataError(f"the schema metadata has no key {METADATA_KEY!r}")
    try:
        header = parsed(text)
    except ValueError as error:
        raise CorruptDataError("the schema metadata is not JSON") from error
    if (
        not isinstance(header, dict)
        or "version" not in header
        or header.get("format") != _FORMAT_NAME
    ):
        raise CorruptDataError(f"the schema metadata is not of {_FORMAT_NAME!r}")
    check_version("report file", header, _FORMAT_NAME, _VERSION)
    for key in ("nodes", "reports"):
        if type(header.get(key)) is not int or header[key] < 0:
            raise CorruptDataError(f"{key!r} is {header.get(key)!r}, not a non-negative integer")
    if not isinstance(header.get("plan"), dict):
        raise CorruptDataError("there is no plan in the schema metadata")
    return header


def _id(value: Any, *, part: bool) -> str | None:
    if part and value is None:
        return None
    if part or not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise CorruptDataError(f"'id' is {_arguments.shown(value)}, not that of a file")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise CorruptDataError(f"{_arguments.shown(value)} is not a non-negative integer")
    return value


def _counts(described: Any) -> tuple[int, ...]:
    if not isinstance(described, list):
        raise CorruptDataError(f"not the numbers of groups: {_arguments.shown(described)}")
    return tuple(map(_count, described))


def _designs(described: Any) -> tuple[DesignSums, ...]:
    if not isinstance(described, list):
        raise CorruptDataError(f"not the sums of groups: {_arguments.shown(described)}")
    return tuple(map(DesignSums.from_dict, described))
