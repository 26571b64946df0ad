"""Distributions on few values: divergences, and projections computed another way."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

DIVERGENCES = {
    "kl": lambda p, q: float(np.sum(p[p > 0] * np.log(p[p > 0] / q[p > 0]))),
    "tv": lambda p, q: 0.5 * float(np.abs(p - q).sum()),
    "hellinger": lambda p, q: 1.0 - float(np.sqrt(p * q).sum()),
}


def exponential_below(x: float) -> Fraction:
    """A rational just below e^x."""
    return Fraction(Context(prec=80).exp(Decimal(x))) * (1 - Fraction(1, 10**70))


def bisected(p: Any, low: Any, high: Any) -> Any:
    """The clipped masses, which add up to 1, by bisection of the logarithm of their scale."""
    below, above = -650.0, 650.0
    for _ in range(400):
        middle = 0.5 * (below + above)
        if np.clip(p * math.exp(-middle), low, high).sum() > 1.0:
            below = middle
        else:
            above = middle
    return np.clip(p * math.exp(-below), low, high)


def distributions(rng: np.random.Generator, size: int, count: int) -> Any:
    """Distributions from nearly certain to nearly uniform."""
    shapes = 10.0 ** rng.uniform(-2, 1, count)
    drawn = np.array([rng.gamma(np.full(size, shape)) + 1e-200 for shape in shapes])
    return drawn / drawn.sum(axis=1, keepdims=True)
