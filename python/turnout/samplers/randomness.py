"""Uniform numbers for proposals."""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

__all__ = ["generator", "uniforms"]


def uniforms(count: int, seed: int | None) -> npt.NDArray[np.float64]:
    """Give uniform numbers in (0, 1)."""
    return generator(seed).random(count) + 2.0**-54


def generator(seed: int | None) -> np.random.Generator:
    """Give a NumPy generator, seeded by the operating system unless there is a seed."""
    return np.random.Generator(np.random.Philox(secrets.randbits(256) if seed is None else seed))
