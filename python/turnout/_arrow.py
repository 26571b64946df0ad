"""Arrow's arrays of numbers and NumPy's, one on the memory of the other.

Arrow's own conversions import pandas where it is installed: that alone takes more time and memory
than to randomize a million answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout._extras import require
from turnout._types import Array


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
