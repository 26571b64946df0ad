r"""The bytes of a tally.

Version 1, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 54 41 4C 4C 59 0D 0A`` (``\\x89TALLY\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``nodes``, ``received``, ``design``
16 + h  8 k             support counts, unsigned 64-bit; sums of scores, signed 64-bit
...     32 (k + 1)      with personal participation: the sums of 1/pi and of 1/pi^2, each as k + 1
                        pairs of low and high 64 bits, in units of 2^-32: for each code the sum
                        over the reports that support it, and last over all reports
...     32              SHA-256 of everything before
======  ==============  =========================================================================

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import CorruptDataError
from turnout.frequency.tally_container import pack, unpack

if TYPE_CHECKING:
    from turnout.frequency.tally import Tally

__all__ = ["decode", "encode"]

MAGIC = b"\x89TALLY\r\n"


def encode(tally: Tally) -> bytes:
    """Write a tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    header = {
        "plan": tally.plan.to_dict(),
        "nodes": tally.nodes,
        "received": tally.received,
        "design": None if tally.design is None else tally.design.to_dict(),
    }
    counts = tally.support.astype(tally.support.dtype.newbyteorder("<")).tobytes()
    weights = [] if tally.weights is None else [tally.weights.to_bytes()]
    return pack(MAGIC, header, [counts, *weights])


def decode(data: object) -> Tally:
    """Read a tally.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no tally.
    """
    return unpack(data, MAGIC, "tally", _read)


def _read(header: Any, arrays: bytes) -> Tally:
    from turnout.frequency.tally import Tally  # noqa: PLC0415

    if set(header) != {"plan", "nodes", "received", "design"}:
        raise CorruptDataError("not a tally of turnout: its header has other entries")
    plan = Plan.from_dict(header["plan"])
    size = plan.oracle.domain.size
    personal = header["design"] is not None
    if len(arrays) != 8 * size + (32 * (size + 1) if personal else 0):
        raise CorruptDataError(f"the counts of the tally do not fit a domain of {size} answers")
    kind = plan.oracle.support_dtype
    support = np.frombuffer(arrays, dtype=kind.newbyteorder("<"), count=size).astype(kind)
    weights = WeightedSums.from_bytes(arrays[8 * size :], size) if personal else None
    design = DesignSums.from_dict(header["design"]) if personal else None
    return Tally(plan, support, header["received"], header["nodes"], weights=weights, design=design)
