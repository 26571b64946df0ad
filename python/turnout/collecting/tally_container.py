"""The container that the bytes of all tallies share.

A magic of 8 bytes, the version and the length of the header (4 bytes each, little-endian), the
header as canonical JSON, arrays, and the SHA-256 of everything before. The checksum finds damage;
it does not authenticate.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from turnout._documents import parsed
from turnout.errors import CorruptDataError, InvalidTypeError, TurnoutError, UnsupportedVersionError

T = TypeVar("T")

#: All tallies have this version; a new one of any gets a number of its own.
VERSION = 1

_PREFIX = struct.Struct("<8sII")
_DIGEST = 32


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
