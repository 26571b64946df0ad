"""The numbers of elements that clients have."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Integers
from turnout.errors import InvalidValueError

_BOUND = " = local_size, on which the accounting rests"


def sizes_of(sizes: Any, clients: int | None, bound: int | None) -> tuple[int | Integers, int]:
    """Return the checked sizes, one for all clients or one for each, and the number of clients.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are of the wrong type or out of range, or the number of clients is not known.
    """
    most = 10**10 if bound is None else bound
    if isinstance(sizes, (int, np.integer)):
        if clients is None:
            raise InvalidValueError("clients must be given where sizes is one number for all")
        count = _arguments.integer("clients", clients, least=1, most=2**40)
        if bound is not None and sizes > bound:
            raise _arguments.invalid(f"sizes must be at most {bound}{_BOUND}", sizes)
        return _arguments.integer("sizes", sizes, least=0, most=most), count
    expected = "a number of elements for each client"
    array = _arguments.vector("sizes", sizes, expected, "whole numbers", "iu")
    if array.size == 0:
        raise InvalidValueError(f"sizes must hold {expected}, got none")
    if clients is not None and clients != array.size:
        raise _arguments.invalid(
            f"clients must be {array.size}, the number of entries of sizes, or left out", clients
        )
    expected = f"from 0 to {most}{'' if bound is None else _BOUND}"
    _arguments.refuse_entries("sizes", array, (array < 0) | (array > most), expected)
    return array.astype(np.int64), int(array.size)
