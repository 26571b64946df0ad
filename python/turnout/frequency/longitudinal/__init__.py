"""Repeated collections: permanent answers behind instantaneous ones, as in RAPPOR."""

from turnout.frequency.longitudinal.client import MemoizedClient
from turnout.frequency.longitudinal.memoized import (
    Memoized,
    permanent_variance,
    rounds_variance,
)

__all__ = [
    "Memoized",
    "MemoizedClient",
    "permanent_variance",
    "rounds_variance",
]
