"""Seeds and uniform numbers for proposals."""

from __future__ import annotations

import secrets

import numpy as np

from turnout import _core
from turnout._types import Floats


def uniforms(count: int, seed: int | None) -> Floats:
    """Give uniform numbers in (0, 1), of 52 bits, from the core's cryptographic streams."""
    return _core.uniforms(count, seed)


def derived(seed: int | None, *path: int) -> int | None:
    """Give a seed of its own to each part of a seeded computation; None stays None."""
    if seed is None:
        return None
    return int(np.random.SeedSequence([seed, *path]).generate_state(1, np.uint64)[0])


def generator(seed: int | None) -> np.random.Generator:
    """Give a NumPy generator, seeded with 256 bits of the operating system if there is no seed."""
    return np.random.Generator(np.random.Philox(secrets.randbits(256) if seed is None else seed))
