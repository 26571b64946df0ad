r"""The bytes of a grouped tally.

Version 1, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 47 52 4F 55 50 0D 0A`` (``\\x89GROUP\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``names`` and ``groups``
16 + h  s g             for each of the ``g`` groups its sums, as in
                        :mod:`turnout.collecting.tally_encoding`
...     32              SHA-256 of everything before
======  ==============  =========================================================================

``groups`` is a list, in the order of the keys, of objects with ``key``, ``nodes``, ``received`` and
``design``. A key is a list with one value for each name: null, a boolean, a number, a text, or
``{"date": "2026-01-31"}``, ``{"time": "12:30:00"}``, ``{"datetime": "2026-01-31T12:30:00"}`` in the
form of ISO 8601, moments with a time zone in UTC.

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout.collecting import keys
from turnout.collecting.keys import Key
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import tally_of
from turnout.collecting.tally_encoding import pack, unpack
from turnout.errors import CorruptDataError

MAGIC = b"\x89GROUP\r\n"


def pack_groups(grouped: Any) -> bytes:
    """Write a grouped tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    groups = [
        {
            "key": [keys.to_json(part) for part in key],
            "nodes": tally.nodes,
            "received": tally.received,
            "design": None if tally.design is None else tally.design.to_dict(),
        }
        for key, tally in grouped.items()
    ]
    header = {"plan": grouped.plan.to_dict(), "names": list(grouped.names), "groups": groups}
    return pack(MAGIC, header, [tally.sums_to_bytes() for tally in grouped.values()])


def unpack_groups(data: object) -> tuple[list[str], Mapping[Key, Any], Plan]:
    """Read a grouped tally: the names of its columns, the tally of each key, and the plan.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no grouped tally.
    """
    return unpack(data, MAGIC, "grouped tally", _read)


def _read(header: Any, arrays: bytes) -> tuple[list[str], Mapping[Key, Any], Plan]:
    if not isinstance(header, dict) or set(header) != {"plan", "names", "groups"}:
        raise CorruptDataError("not a grouped tally of turnout: its header has other entries")
    plan = Plan.from_dict(header["plan"])
    described = header["groups"]
    if not isinstance(described, list) or not isinstance(header["names"], list):
        raise CorruptDataError("not a grouped tally of turnout: names and groups must be lists")
    names = keys.checked_names(header["names"])
    length = plan.oracle.tally_type.bytes_of_sums(plan)
    if len(arrays) != len(described) * length:
        raise CorruptDataError(
            f"the sums of the grouped tally do not fit {len(described)} groups of {plan.domain!r}"
        )
    tallies: dict[Key, Any] = {}
    for place, group in enumerate(described):
        key = _key(group, len(names))
        if key in tallies:
            raise CorruptDataError(f"the grouped tally has the key {group['key']} twice")
        sums = arrays[place * length : (place + 1) * length]
        design = None if group["design"] is None else DesignSums.from_dict(group["design"])
        tallies[key] = tally_of(plan, sums, group["received"], group["nodes"], design)
    keys.check_columns(names, tallies)
    return list(names), tallies, plan


def _key(group: Any, size: int) -> Key:
    if not isinstance(group, dict) or set(group) != {"key", "nodes", "received", "design"}:
        raise CorruptDataError("a group of the grouped tally has other entries")
    parts = group["key"]
    if not isinstance(parts, list) or len(parts) != size:
        raise CorruptDataError(f"a key of the grouped tally must have {size} values")
    return tuple(keys.from_json(part) for part in parts)
