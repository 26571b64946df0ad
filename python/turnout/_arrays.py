"""Arrays from untrusted bytes: messages of nodes, files from anyone, Arrow.

``numpy.load`` trusts the bytes: it allocates the array that a header claims before it looks for the
entries, opens archives and pickles, and raises a dozen kinds of exceptions. The functions here
return an array of numbers or raise :class:`~turnout.errors.CorruptDataError`. They compare what the
bytes claim with their actual size before they allocate memory.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Array, Integers, Unsigned
from turnout.errors import CorruptDataError

#: NumPy's format, version 1.0: what ``numpy.save`` writes of any array of numbers.
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([^']{1,4})', 'fortran_order': (False|True), "
    rb"'shape': \((|\d{1,19},|\d{1,19}(?:, \d{1,19})+)\), \} *\n"
)
_LONGEST_HEADER = 10_000

#: Truth values, integers and floating-point numbers of at most 64 bits.
_DTYPES = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")

#: The most dimensions of an array of NumPy 1.
_MOST_DIMENSIONS = 32

#: The header of a member of an archive: its signature, 22 bytes that its directory repeats, and how
#: many bytes its name and its extra fields have.
_MEMBER = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\x03\x04"


def read_array(data: bytes | memoryview) -> Array:
    """Read an array that ``numpy.save`` wrote.

    Parameters
    ----------
    data
        All bytes of it, and nothing more.

    Returns
    -------
    numpy.ndarray
        A read-only array in the machine's byte order; a view of the bytes where they have this
        order.

    Raises
    ------
    CorruptDataError
        If the bytes are not such an array, or hold anything but truth values, integers and
        floating-point numbers of at most 64 bits.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.array([[1, 2]], np.int32))
    >>> read_array(file.getvalue())
    array([[1, 2]], dtype=int32)
    >>> read_array(b"PK")
    Traceback (most recent call last):
        ...
    turnout.errors.CorruptDataError: not an array in NumPy's format 1.0: it begins with b'PK'
    """
    view = memoryview(data)
    start = bytes(view[: len(_MAGIC) + 2])
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        raise CorruptDataError(f"not an array in NumPy's format 1.0: it begins with {start!r}")
    end = len(start) + int.from_bytes(start[len(_MAGIC) :], "little")
    header = bytes(view[len(start) : min(end, _LONGEST_HEADER)])
    found = _HEADER.fullmatch(header)
    if found is None or len(start) + len(header) != end:
        raise CorruptDataError(
            f"not an array of numbers in NumPy's format: its header is {_arguments.shown(header)}"
        )
    descr, fortran, lengths = (part.decode("latin-1") for part in found.groups())
    shape = [int(length) for length in lengths.split(",") if length]
    return array_of(view[end:], descr, shape, fortran=fortran == "True")


def array_of(
    data: bytes | memoryview, dtype: str, shape: Sequence[object], *, fortran: bool = False
) -> Array:
    """Build an array from the bytes of its entries.

    Parameters
    ----------
    data
        The entries, and nothing more.
    dtype, shape, fortran
        Unchecked claims about the entries: NumPy's name of the dtype, the length along each axis,
        and whether the first axis varies fastest.

    Returns
    -------
    numpy.ndarray
        As for :func:`read_array`.

    Raises
    ------
    CorruptDataError
        If the number of bytes does not fit, or the dtype is not one of numbers.

    Examples
    --------
    >>> array_of(bytes([1, 0, 2, 0]), "<u2", [2, 1]).tolist()
    [[1], [2]]
    >>> array_of(bytes(4), "<f8", [10**12])
    Traceback (most recent call last):
        ...
    turnout.errors.CorruptDataError: 4 bytes do not fit dtype '<f8' and shape [1000000000000]
    """
    axes = [length for length in shape if type(length) is int and length >= 0]
    wrong = CorruptDataError(
        f"{len(data)} bytes do not fit dtype {_arguments.shown(dtype)} and shape "
        f"{_arguments.shown(list(shape[: _MOST_DIMENSIONS + 1]))}"
    )
    if len(axes) != len(shape) or len(axes) > _MOST_DIMENSIONS or not _DTYPES.fullmatch(dtype):
        raise wrong
    kind = np.dtype(dtype)
    # NumPy counts entries without the empty axes, and needs that number to fit.
    if kind.itemsize * math.prod(length or 1 for length in axes) >= 2**63:
        raise wrong
    if len(data) != kind.itemsize * math.prod(axes):
        raise wrong
    array: Array = np.frombuffer(data, kind)
    if kind.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise wrong
    array = np.require(array.astype(kind.newbyteorder("="), copy=False), requirements="A")
    array = array.reshape(axes, order="F" if fortran else "C")
    array.flags.writeable = False
    return array


def total(numbers: Integers | Unsigned) -> int:
    """Add up at most 2^31 whole numbers of 64 bits exactly, seven times as fast as Python does.

    Examples
    --------
    >>> total(np.array([2**64 - 1, 2**64 - 1, 3], np.uint64)) - 2**65
    1
    """
    if numbers.size and int(numbers.max()) * numbers.size < 2**63 and int(numbers.min()) > -(2**32):
        return int(numbers.sum())
    # Halves, so that no sum overflows.
    return int((numbers & 0xFFFFFFFF).sum()) + (int((numbers >> 32).sum()) << 32)


def read_archive(data: bytes) -> dict[str, memoryview]:
    """Return the members of an uncompressed ZIP archive.

    Parameters
    ----------
    data
        The whole archive.

    Returns
    -------
    dict of str to memoryview
        The bytes of each member by name, in the order of the archive. They are parts of ``data``
        that do not overlap. The checksums of single members are not verified.

    Raises
    ------
    CorruptDataError
        If it is not such an archive, or its members overlap: then their sizes are not bounded by
        its own.

    Examples
    --------
    >>> import io, zipfile
    >>> file = io.BytesIO()
    >>> with zipfile.ZipFile(file, "w") as archive:
    ...     archive.writestr("one", b"1")
    ...     archive.writestr("two", b"2")
    >>> {name: bytes(member) for name, member in read_archive(file.getvalue()).items()}
    {'one': b'1', 'two': b'2'}
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members, directory = archive.infolist(), archive.start_dir
    except Exception as error:
        # Of a directory that is none, zipfile raises whatever its parts do.
        raise CorruptDataError(f"not an archive: {_arguments.shown(error)}") from error
    view, end = memoryview(data), 0
    found: dict[str, memoryview] = {}
    for member in members:
        name = member.filename
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise CorruptDataError(f"the member {_arguments.shown(name)} is compressed or secret")
        start = member.header_offset
        if not end <= start <= directory - _MEMBER.size:
            raise CorruptDataError(f"the member {_arguments.shown(name)} overlaps another")
        signature, *lengths = _MEMBER.unpack_from(data, start)
        first = start + _MEMBER.size + sum(lengths)
        end = first + member.file_size
        if signature != _SIGNATURE or end > directory or name in found:
            raise CorruptDataError(f"the member {_arguments.shown(name)} is missing or duplicated")
        found[name] = view[first:end]
    return found


# Arrow's own conversions import pandas where it is installed: that alone takes more time and memory
# than to randomize a million answers.


def to_numpy(array: Any) -> Array:
    """View a ``pyarrow.Array`` of integers or floating-point numbers without nulls.

    Examples
    --------
    >>> import pyarrow as pa
    >>> to_numpy(pa.array([7, 8, 9], pa.uint8())[1:])
    array([8, 9], dtype=uint8)
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    # A buffer may be longer than its entries, by any number of bytes.
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def from_numpy(values: Array) -> Any:
    """Make a ``pyarrow.Array`` of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from_numpy(np.array([7, 8], np.uint8)).to_pylist()
    [7, 8]
    """
    pa = require("pyarrow", "cli")
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, data])
