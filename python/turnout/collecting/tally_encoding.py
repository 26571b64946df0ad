r"""The bytes of a tally.

Version 1, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 54 41 4C 4C 59 0D 0A`` (``\\x89TALLY\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``nodes``, ``received``, ``design``
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

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from turnout._documents import parsed
from turnout.collecting.plan import Plan
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, InvalidTypeError, TurnoutError, UnsupportedVersionError

T = TypeVar("T")

#: All tallies have this version; a new one of any gets a number of its own.
VERSION = 1

_PREFIX = struct.Struct("<8sII")
_DIGEST = 32

MAGIC = b"\x89TALLY\r\n"


def pack(magic: bytes, header: dict[str, Any], arrays: Iterable[bytes]) -> bytes:
    r"""Put a header and arrays into a container.

    Examples
    --------
    >>> data = pack(b"\x89TALLY\r\n", {"nodes": 3}, [b"abc"])
    >>> unpack(data, b"\x89TALLY\r\n", "tally", lambda header, arrays: (header, arrays))
    ({'nodes': 3}, b'abc')
    """
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
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
    except (
        TurnoutError,
        ValueError,
        OverflowError,
        TypeError,
        KeyError,
        RecursionError,
    ) as error:
        raise CorruptDataError(f"not a {what} of turnout: {error}") from error


def encode(tally: Any, sums: bytes) -> bytes:
    """Write a tally with the bytes of its sums.

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
    return pack(MAGIC, header, [sums])


def decode(data: object, made: Callable[..., Any]) -> Any:
    """Read a tally; ``made`` makes it of plan, sums, reports, nodes and design.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no tally.
    """

    def read(header: Any, sums: bytes) -> Any:
        if set(header) != {"plan", "nodes", "received", "design"}:
            raise CorruptDataError("not a tally of turnout: its header has other entries")
        plan = Plan.from_dict(header["plan"])
        design = None if header["design"] is None else DesignSums.from_dict(header["design"])
        return made(plan, sums, header["received"], header["nodes"], design)

    return unpack(data, MAGIC, "tally", read)
