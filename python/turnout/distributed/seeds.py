"""Seeds for the steps of a seeded round."""

from __future__ import annotations

import hashlib


def step_seed(seed: int | None, *names: object) -> int | None:
    """Derive the seed of one step; None stays None."""
    if seed is None:
        return None
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
