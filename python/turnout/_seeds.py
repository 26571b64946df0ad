"""Seeds for the parts of a seeded computation."""

from __future__ import annotations

import hashlib

from turnout.errors import InvalidTypeError

__all__ = ["derived"]


def derived(seed: object, *path: int) -> int | None:
    """Give a seed of its own to each part of a seeded computation; None stays None.

    Examples
    --------
    >>> derived(None, 1) is None, derived(5, 1) == derived(5, 1), derived(5, 1) == derived(5, 2)
    (True, True, False)
    """
    if seed is None:
        return None
    # Whatever is no integer may have the same text for every key.
    if not isinstance(seed, int):
        raise InvalidTypeError(f"seed must be an integer, got {seed!r}")
    # Not NumPy's SeedSequence, in which zeros at the end of a path make no difference.
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
