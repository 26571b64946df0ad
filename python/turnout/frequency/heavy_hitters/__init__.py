"""Frequent values of a huge domain: 64-bit numbers, words, addresses.

:class:`HeavyHitters` finds them prefix by prefix; each node reports once.
"""

from turnout.frequency.heavy_hitters.prefixes import SearchRound
from turnout.frequency.heavy_hitters.protocol import HeavyHitters, Search
from turnout.frequency.heavy_hitters.result import HeavyHitterResult, RoundRecord

__all__ = [
    "HeavyHitterResult",
    "HeavyHitters",
    "RoundRecord",
    "Search",
    "SearchRound",
]
