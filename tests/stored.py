"""Stored tallies with another header: as somebody makes one who can compute a checksum."""

import hashlib
import json
import struct
from typing import Any


def header_of(data: bytes) -> dict[str, Any]:
    """The header of a stored tally."""
    (length,) = struct.unpack_from("<I", data, 12)
    header: dict[str, Any] = json.loads(data[16 : 16 + length])
    return header


def with_header(data: bytes, header: Any) -> bytes:
    """A stored tally with the same sums and another header."""
    (length,) = struct.unpack_from("<I", data, 12)
    text = json.dumps(header).encode()
    body = data[:12] + struct.pack("<I", len(text)) + text + data[16 + length : -32]
    return body + hashlib.sha256(body).digest()
