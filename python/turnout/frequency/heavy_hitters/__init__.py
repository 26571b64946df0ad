"""Frequent values of a domain that is far too large to count: 64-bit numbers, words, addresses.

:class:`HeavyHitters` finds them prefix by prefix; each node reports once.
"""

from turnout.frequency.heavy_hitters.prefixes import PrefixDomain, Round
from turnout.frequency.heavy_hitters.protocol import HeavyHitters, Search
from turnout.frequency.heavy_hitters.result import HeavyHitterResult, RoundRecord
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues

__all__ = [
    "HeavyHitterResult",
    "HeavyHitters",
    "IntegerValues",
    "PrefixDomain",
    "Round",
    "RoundRecord",
    "Search",
    "TextValues",
]
