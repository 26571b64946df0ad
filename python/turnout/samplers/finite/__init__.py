"""Private draws of one of finitely many values."""

from turnout.samplers.finite.samplers import (
    FiniteMollifier,
    FiniteSampler,
    RandomizedResponseSampler,
)

__all__ = ["FiniteMollifier", "FiniteSampler", "RandomizedResponseSampler"]
