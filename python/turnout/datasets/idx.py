"""Files in the idx format, in which MNIST and EMNIST are published."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from turnout._files import open_regular
from turnout._types import Array
from turnout.errors import CorruptDataError

#: The third byte of a file, and how an entry is stored.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

#: The most dimensions of an array of NumPy 1.
_MOST_DIMENSIONS = 32

_GZIP = b"\x1f\x8b"

#: Deflate makes nothing more than this many times smaller.
_STRONGEST_COMPRESSION = 1040

_BLOCK = 1 << 20


def read_idx(path: str | os.PathLike[str]) -> Array:
    """Read an array from an idx file, compressed by gzip or plain.

    The file is taken only if it is one: two zero bytes, a known type, the dimensions, and exactly
    as many bytes as they need. What a header claims is compared with the size of the file before
    memory is taken for it.

    Parameters
    ----------
    path
        The file. Whether it is compressed is seen from its first bytes, not from its name.

    Returns
    -------
    numpy.ndarray
        The array, of the dimensions and the type of the file, in the byte order of the machine.

    Raises
    ------
    CorruptDataError
        If the file is no idx file, is cut off, or is longer than its header says.
    OSError
        If the file cannot be opened.

    References
    ----------
    LeCun, Cortes, Burges: The MNIST database of handwritten digits, "File formats".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 0x08, 1, 0, 0, 0, 3]) + bytes([5, 0, 4]))
    ...     read_idx(path)
    array([5, 0, 4], dtype=uint8)
    """
    place = Path(path)
    with open_regular(place) as file:
        size = os.fstat(file.fileno()).st_size
        compressed = file.read(2) == _GZIP
        file.seek(0)
        if not compressed:
            return _array(place, file, size)
        try:
            with gzip.GzipFile(fileobj=file) as content:
                return _array(place, cast("BinaryIO", content), _STRONGEST_COMPRESSION * size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorruptDataError(f"{place} is cut off or altered: {error}") from error


def _array(place: Path, file: BinaryIO, available: int) -> Array:
    """Read an array from an open file that holds at most so many bytes."""
    magic = _exactly(place, file, 4)
    if magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        raise CorruptDataError(
            f"{place} is no idx file: it starts with the bytes {magic.hex(' ')}, expected 00 00, "
            f"one of {', '.join(f'{code:02x}' for code in _TYPES)}, and the number of dimensions"
        )
    if not 1 <= magic[3] <= _MOST_DIMENSIONS:
        raise CorruptDataError(
            f"{place} claims {magic[3]} dimensions, expected 1 to {_MOST_DIMENSIONS}"
        )
    header = _exactly(place, file, 4 * magic[3])
    shape = tuple(np.frombuffer(header, ">u4").tolist())
    kind = np.dtype(_TYPES[magic[2]])
    claimed = math.prod(shape) * kind.itemsize
    if claimed > available - 4 - len(header):
        raise CorruptDataError(
            f"{place} claims {claimed} bytes of entries, in the shape {shape}, and is too small "
            "for them"
        )
    content = _exactly(place, file, claimed)
    if file.read(1):
        raise CorruptDataError(
            f"{place} is longer than its header says: {claimed} bytes of entries, in the shape "
            f"{shape}"
        )
    array = np.frombuffer(content, kind).reshape(shape)
    return array.astype(kind.newbyteorder("="), copy=False)


def _exactly(place: Path, file: BinaryIO, length: int) -> bytearray:
    """Read so many bytes; memory grows with what is there, not with what is asked for."""
    content = bytearray()
    while len(content) < length:
        block = file.read(min(_BLOCK, length - len(content)))
        if not block:
            raise CorruptDataError(
                f"{place} is cut off: {length} bytes were expected and {len(content)} were there"
            )
        content += block
    return content
