"""Arrays of any library as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array
from turnout.errors import InvalidTypeError

#: What parameters and gradients may consist of.
DTYPES = ("float32", "float64")
_KINDS = tuple(np.dtype(name) for name in DTYPES)

#: Device types of DLPack whose memory NumPy can read: that of the CPU, pinned or managed.
_READABLE = (1, 3, 11, 13)

_TO_THE_CPU = (
    "bring it to the CPU first, with .detach().cpu() in PyTorch, jax.device_get(...) in JAX or "
    ".get() in CuPy"
)


def as_array(name: str, value: Any) -> Array:
    """Read an array of any library as NumPy's, without a copy where that is possible.

    Parameters
    ----------
    name
        What messages call it.
    value
        A NumPy array, an array in the memory of the CPU that has ``__dlpack__``, or whatever
        ``numpy.asarray`` takes.

    Returns
    -------
    numpy.ndarray
        Of float32 or float64. It may share memory with ``value`` and may be read-only.

    Raises
    ------
    InvalidTypeError
        If it is no array of float32 or float64, lies in the memory of another device, or belongs
        to a graph of automatic differentiation. The message says what to do.

    Examples
    --------
    >>> import numpy as np
    >>> as_array("weights", [1.0, 2.0])
    array([1., 2.])
    >>> as_array("weights", np.ones(2, np.float16))
    Traceback (most recent call last):
        ...
    turnout.errors.InvalidTypeError: weights must hold float32 or float64, got float16
    """
    array = value
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidTypeError(f"{name} must be an array without a mask, got a masked one")
    if not isinstance(value, np.ndarray):
        if _flag(value, "requires_grad"):
            raise InvalidTypeError(
                f"{name} must not require a gradient: pass it through .detach() first (and .cpu() "
                "if it is on a GPU)"
            )
        array = (
            _exchanged(name, value) if hasattr(type(value), "__dlpack__") else _read(name, value)
        )
    dtype = array.dtype.newbyteorder("=")
    if dtype not in _KINDS:
        got = _arguments.shown(value) if array.dtype.hasobject else array.dtype
        raise InvalidTypeError(f"{name} must hold float32 or float64, got {got}")
    return np.asarray(array, dtype=dtype)


def _exchanged(name: str, value: Any) -> Array:
    """Read an array through DLPack, or as NumPy can where DLPack cannot."""
    try:
        device = int(value.__dlpack_device__()[0])
    except Exception as error:
        # A tracer of JAX, or an object that only looks like an array.
        raise InvalidTypeError(
            f"{name} must be an array that holds numbers, got {_arguments.shown(value)}, which "
            f"gives none: {_arguments.shown(error)}"
        ) from error
    if device not in _READABLE:
        raise InvalidTypeError(
            f"{name} must be in the memory of the CPU, got {_arguments.shown(value)}: {_TO_THE_CPU}"
        )
    try:
        return np.from_dlpack(value)
    except Exception:
        # A dtype that NumPy lacks, or an array in several pieces.
        return _read(name, value)


def _read(name: str, value: Any) -> Array:
    try:
        array = np.asarray(value)
    except Exception as error:
        kind = getattr(value, "dtype", type(value).__name__)
        raise InvalidTypeError(
            f"{name} must be an array of float32 or float64, got {_arguments.shown(kind)}, which "
            "NumPy cannot read (it has no bfloat16: convert to float32 first)"
        ) from error
    return array


def _flag(value: Any, attribute: str) -> bool:
    try:
        return getattr(value, attribute, False) is True
    except Exception:
        return False
