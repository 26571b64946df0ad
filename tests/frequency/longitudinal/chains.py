"""Permanent answers of every kind, and secrets of their clients."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from turnout.frequency.longitudinal import Memoized

SYMMETRIC, OPTIMIZED = "symmetric_unary_encoding", "optimized_unary_encoding"

#: Permanent answer and reports: L-GRR, L-SUE, L-OUE, L-OSUE, L-SOUE.
CHAINS = {
    "L-GRR": ("direct_encoding", "direct_encoding"),
    "L-SUE": (SYMMETRIC, SYMMETRIC),
    "L-OUE": (OPTIMIZED, OPTIMIZED),
    "L-OSUE": (OPTIMIZED, SYMMETRIC),
    "L-SOUE": (SYMMETRIC, OPTIMIZED),
}


def chain(name: str, lifetime: float = 3.0, first: float = 1.0, size: int = 4) -> Memoized:
    permanent, instantaneous = CHAINS[name]
    return Memoized(
        lifetime, size, first_epsilon=first, permanent=permanent, instantaneous=instantaneous
    )


def secrets(nodes: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (nodes, 32), np.uint8)
