r"""The bytes of a grouped tally.

Version 1, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 47 52 4F 55 50 0D 0A`` (``\\x89GROUP\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``names`` and ``groups``
16 + h  8 k g           for each of the ``g`` groups the support counts of the ``k`` answers,
                        unsigned 64-bit; sums of scores, signed 64-bit
...     32 (k + 1) g    with personal participation: for each group the sums of 1/pi and of 1/pi^2,
                        as in :mod:`turnout.frequency.tally_encoding`
...     32              SHA-256 of everything before
======  ==============  =========================================================================

``groups`` is a list, in the order of the keys, of objects with ``key``, ``nodes``, ``received`` and
``design``. A key is a list with one value for each name: null, a boolean, a number, a text, or
``{"date": "2026-01-31"}``, ``{"time": "12:30:00"}``, ``{"datetime": "2026-01-31T12:30:00"}`` in the
form of ISO 8601, moments with a time zone in UTC.

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout.collecting import keys
from turnout.collecting.keys import Key
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import CorruptDataError
from turnout.frequency.groups.tally import GroupedTally
from turnout.frequency.tally import Tally
from turnout.frequency.tally_container import pack, unpack

__all__ = ["MAGIC", "decode", "encode"]

MAGIC = b"\x89GROUP\r\n"


def encode(grouped: GroupedTally) -> bytes:
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
    kind = grouped.oracle.support_dtype.newbyteorder("<")
    arrays = [tally.support.astype(kind).tobytes() for tally in grouped.values()]
    arrays += [tally.weights.to_bytes() for tally in grouped.values() if tally.weights is not None]
    return pack(MAGIC, header, arrays)


def decode(data: object) -> GroupedTally:
    """Read a grouped tally.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no grouped tally.
    """
    return unpack(data, MAGIC, "grouped tally", _read)


def _read(header: Any, arrays: bytes) -> GroupedTally:
    if not isinstance(header, dict) or set(header) != {"plan", "names", "groups"}:
        raise CorruptDataError("not a grouped tally of turnout: its header has other entries")
    plan = Plan.from_dict(header["plan"])
    described = header["groups"]
    if not isinstance(described, list) or not isinstance(header["names"], list):
        raise CorruptDataError("not a grouped tally of turnout: names and groups must be lists")
    names = keys.checked_names(header["names"])
    size, number = plan.oracle.domain.size, len(described)
    personal = plan.participation.uniform_rate is None
    if len(arrays) != number * (8 * size + (32 * (size + 1) if personal else 0)):
        raise CorruptDataError(
            f"the counts of the grouped tally do not fit {number} groups of {size} answers"
        )
    kind = plan.oracle.support_dtype
    support = np.frombuffer(arrays, kind.newbyteorder("<"), number * size).astype(kind)
    weights = arrays[8 * size * number :]
    length = 32 * (size + 1)
    tallies: dict[Key, Tally] = {}
    for place, group in enumerate(described):
        key = _key(group, len(names))
        if key in tallies:
            raise CorruptDataError(f"the grouped tally has the key {group['key']} twice")
        row = support[place * size : (place + 1) * size].copy()
        sums = weights[place * length : (place + 1) * length]
        tallies[key] = Tally(
            plan,
            row,
            group["received"],
            group["nodes"],
            weights=WeightedSums.from_bytes(sums, size) if personal else None,
            design=DesignSums.from_dict(group["design"]) if group["design"] is not None else None,
        )
    made = GroupedTally(names, tallies, plan=plan)
    if list(made) != list(tallies):
        raise CorruptDataError("the groups of the grouped tally are not in order")
    return made


def _key(group: Any, size: int) -> Key:
    if not isinstance(group, dict) or set(group) != {"key", "nodes", "received", "design"}:
        raise CorruptDataError("a group of the grouped tally has other entries")
    parts = group["key"]
    if not isinstance(parts, list) or len(parts) != size:
        raise CorruptDataError(f"a key of the grouped tally must have {size} values")
    return tuple(keys.from_json(part) for part in parts)
