r"""The bytes of a tally, and of one by groups.

Of a tally, version 4, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 54 41 4C 4C 59 0D 0A`` (``\\x89TALLY\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``nodes``, ``received``, ``design``,
                        ``origin``, and ``left_out`` where anything is
16 + h  s               the sums of the plan's kind of question
...     32              SHA-256 of everything before
======  ==============  =========================================================================

Of frequency oracles the sums are ``8 k`` bytes: the support counts of the ``k`` answers, unsigned
64-bit (sums of scores: signed); and with personal participation ``32 (k + 1)`` more: the sums of
1/pi and of 1/pi^2, each as k + 1 pairs of low and high 64 bits, in units of 2^-32, for each code
over the reports that support it and last over all reports. Of distributions the same, with a count
for each cell.

Of means of ``d`` numbers they are ``48 d`` bytes: for each coordinate how many reports are about
it, the sum of their cells and that of the squared cells, unsigned 128-bit; and with personal
participation ``192 d`` more: for each coordinate the same three sums with the weights 1/pi, then
with 1/pi^2, unsigned 256-bit in units of 2^-32.

Of randomizers made of several (levels of a tree, attributes) the parts follow one another: of each
the number of its reports, unsigned 64-bit, and its sums.

Of a tally by groups, version 4:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 47 52 4F 55 50 0D 0A`` (``\\x89GROUP\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``names``, ``origin`` and ``groups``,
                        and ``left_out`` where anything is that is of no group
16 + h  s g             for each of the ``g`` groups its sums, as those of a tally
...     32              SHA-256 of everything before
======  ==============  =========================================================================

``left_out`` is an object with the numbers ``unanswered``, ``ungrouped``, ``duplicates``,
``refused`` and ``absent`` of :class:`turnout.LeftOut`, of which one is above 0.

``groups`` is a list, in the order of the keys, of objects with ``key``, ``nodes``, ``received``,
``design``, ``origin``, and ``left_out`` where anything of the group is. A key is a list with one
value for each name: null, a boolean, a number, a text, or ``{"date": "2026-01-31"}``, ``{"time":
"12:30:00"}``, ``{"datetime": "2026-01-31T12:30:00"}`` in the form of ISO 8601, moments with a time
zone in UTC.

``origin`` is an object with ``identities``, the list, in order, of the 16 bytes of each collection
that is counted, in hexadecimal: see :mod:`turnout.collecting.origin`. That of a tally by groups is
of all groups together, as they were counted; each group has one of its own. Where people keep
permanent answers it also has ``rounds``, an object: for each round its name, 16 bytes in
hexadecimal, and how many of the tally's nodes are of it. They add up to the nodes. That of a tally
by groups as a whole has none, and neither has that of a piece of a collection.

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from turnout import _arguments
from turnout._documents import canonical, parsed
from turnout.collecting.keys import Key, check_columns, checked_names, key_from_json, key_to_json
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import Origin
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, InvalidTypeError, TurnoutError, UnsupportedVersionError

T = TypeVar("T")

#: All tallies have this version; a new one of any gets a number of its own.
VERSION = 4

_PREFIX = struct.Struct("<8sII")
_DIGEST = 32

MAGIC = b"\x89TALLY\r\n"
GROUPS_MAGIC = b"\x89GROUP\r\n"


def pack(magic: bytes, header: dict[str, Any], arrays: Iterable[bytes]) -> bytes:
    r"""Put a header and arrays into a container.

    Examples
    --------
    >>> data = pack(b"\x89TALLY\r\n", {"nodes": 3}, [b"abc"])
    >>> unpack(data, b"\x89TALLY\r\n", "tally", lambda header, arrays: (header, arrays))
    ({'nodes': 3}, b'abc')
    """
    text = canonical(header).encode()
    body = b"".join([_PREFIX.pack(magic, VERSION, len(text)), text, *arrays])
    return body + hashlib.sha256(body).digest()


def unpack(data: object, magic: bytes, what: str, read: Callable[[Any, bytes], T]) -> T:
    """Check a container and read what is in it.

    Parameters
    ----------
    data
        The bytes.
    magic
        Those that it must begin with.
    what
        What messages call it.
    read
        Makes the result of the parsed header and the arrays; may raise what parsing raises.

    Raises
    ------
    InvalidTypeError
        If ``data`` is not bytes.
    UnsupportedVersionError
        If the container is of a version that this release does not read.
    CorruptDataError
        If it is truncated, altered, or does not hold what it should.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"data must be bytes, got {type(data).__name__}")
    given = bytes(data)
    if len(given) < _PREFIX.size or not given.startswith(magic):
        raise CorruptDataError(f"not a {what} of turnout: the first bytes are not those of one")
    _, version, length = _PREFIX.unpack_from(given)
    if version != VERSION:
        raise UnsupportedVersionError(
            f"the {what} has version {version}; this release of turnout reads {VERSION}"
        )
    body, digest = given[:-_DIGEST], given[-_DIGEST:]
    end = _PREFIX.size + length
    if len(body) < end or hashlib.sha256(body).digest() != digest:
        raise CorruptDataError(f"the {what} is truncated or was altered: its checksum does not fit")
    try:
        return read(parsed(body[_PREFIX.size : end]), body[end:])
    except CorruptDataError:
        raise
    except (TurnoutError, ValueError, OverflowError, TypeError, KeyError) as error:
        raise CorruptDataError(f"not a {what} of turnout: {error}") from error


def encode(tally: Any) -> bytes:
    """Write a tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    header = {"plan": tally.plan.to_dict(), **_facts(tally)}
    return pack(MAGIC, header, [tally._sums_to_bytes()])


def encode_groups(grouped: Any) -> bytes:
    """Write a grouped tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    groups = [{"key": key_to_json(key), **_facts(tally)} for key, tally in grouped.items()]
    header = {"plan": grouped.plan.to_dict(), "names": list(grouped.names), "groups": groups}
    header["origin"] = grouped.origin.to_json()
    header |= _left_out(grouped.of_no_group)
    return pack(GROUPS_MAGIC, header, [tally._sums_to_bytes() for tally in grouped.values()])


def _facts(tally: Any) -> dict[str, Any]:
    """Say of a tally what is neither its plan nor its sums."""
    design = None if tally.design is None else tally.design.to_dict()
    known = {"nodes": tally.nodes, "received": tally.received, "design": design}
    known["origin"] = tally.origin.to_json()
    return known | _left_out(tally.left_out)


def _left_out(numbers: LeftOut) -> dict[str, Any]:
    return {"left_out": numbers.to_dict()} if numbers else {}


def _read_left_out(facts: dict[Any, Any]) -> LeftOut:
    """Take what is left out from what is known; no numbers are there only if there is nothing."""
    if "left_out" not in facts:
        return NOTHING
    found = LeftOut.from_dict(facts["left_out"])
    if not found:
        raise CorruptDataError("'left_out' stands there and nothing is left out")
    return found


def decode(data: object) -> Any:
    """Read a tally.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no tally.
    """

    def read(header: Any, sums: bytes) -> Any:
        match header:
            case {"plan": described, **facts}:
                return _made(Plan.from_dict(described), facts, sums)
        raise CorruptDataError("not a tally of turnout: its header has no plan")

    return unpack(data, MAGIC, "tally", read)


def decode_groups(data: object) -> tuple[tuple[str, ...], dict[Key, Any], Plan, dict[str, Any]]:
    """Read a grouped tally: its columns, the tally of each key, the plan, and what else it takes.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no grouped tally.
    """
    return unpack(data, GROUPS_MAGIC, "grouped tally", _read_groups)


def _read_groups(
    header: Any, arrays: bytes
) -> tuple[tuple[str, ...], dict[Key, Any], Plan, dict[str, Any]]:
    match header:
        case {
            "plan": described,
            "names": list(names),
            "origin": origin,
            "groups": list(groups),
            **rest,
        } if rest.keys() <= {"left_out"}:
            plan = Plan.from_dict(described)
            whole = Origin.from_json(origin)
            if whole.rounds.sizes:
                raise CorruptDataError("the origin of a grouped tally has rounds; its groups do")
            more = {"of_no_group": _read_left_out(rest), "origin": whole}
        case _:
            raise CorruptDataError("not a grouped tally of turnout: its header has other entries")
    checked = checked_names(names)
    length = plan.oracle.tally_type._bytes_of_sums(plan)
    if len(arrays) != len(groups) * length:
        raise CorruptDataError(
            f"the sums of the grouped tally do not fit {len(groups)} groups of {plan.domain!r}"
        )
    tallies: dict[Key, Any] = {}
    for place, group in enumerate(groups):
        match group:
            case {"key": described, **facts}:
                key = key_from_json(described, len(names))
            case _:
                raise CorruptDataError("a group of the grouped tally has no key")
        if key in tallies:
            raise CorruptDataError(f"the grouped tally has the key {list(key)} twice")
        tallies[key] = _made(plan, facts, arrays[place * length : (place + 1) * length])
    check_columns(checked, tallies)
    return checked, tallies, plan, more


def _made(plan: Plan, facts: dict[Any, Any], arrays: bytes) -> Any:
    """Make the tally of a plan from the bytes of its sums and what else is known of it."""
    if facts.keys() - {"left_out"} != {"nodes", "received", "design", "origin"}:
        raise CorruptDataError(
            "what is known of a tally must be its nodes, received, design, origin and perhaps "
            f"left_out, got {_arguments.shown(list(facts))}"
        )
    kind = plan.oracle.tally_type
    if len(arrays) != kind._bytes_of_sums(plan):
        raise CorruptDataError(
            f"the sums of the tally do not fit {plan.domain!r}: expected "
            f"{kind._bytes_of_sums(plan)} bytes, got {len(arrays)}"
        )
    sums, weights = kind._sums_of_bytes(plan, arrays)
    design = None if facts["design"] is None else DesignSums.from_dict(facts["design"])
    more = {"weights": weights, "design": design, "left_out": _read_left_out(facts)}
    origin = Origin.from_json(facts["origin"])
    made = kind(plan, sums, facts["received"], facts["nodes"], **more, origin=origin)
    if made.origin.rounds != origin.rounds:
        raise CorruptDataError(
            f"the rounds of the tally's origin do not fit {facts['nodes']} nodes of {plan.oracle!r}"
        )
    return made
