"""Seeds for the parts of a computation."""

from __future__ import annotations

import hashlib
from typing import overload

from turnout._core import NoiseStreams
from turnout.errors import InvalidTypeError


@overload
def derived(seed: NoiseStreams, *path: int) -> NoiseStreams: ...
@overload
def derived(seed: int | None, *path: int) -> int | None: ...
@overload
def derived(seed: int | NoiseStreams | None, *path: int) -> int | NoiseStreams | None: ...
def derived(seed: object, *path: int) -> int | NoiseStreams | None:
    """Derive a separate seed, or streams, for a part of a computation; None stays None.

    Examples
    --------
    >>> derived(None, 1) is None, derived(5, 1) == derived(5, 1), derived(5, 1) == derived(5, 2)
    (True, True, False)
    """
    if seed is None:
        return None
    if isinstance(seed, NoiseStreams):
        return seed.part(_number("/".join(map(str, path))))
    # Whatever is no integer may have the same text for every key.
    if not isinstance(seed, int):
        raise InvalidTypeError(f"seed must be an integer, got {seed!r}")
    # Not NumPy's SeedSequence, in which zeros at the end of a path make no difference.
    return _number("/".join(map(str, (seed, *path))))


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
