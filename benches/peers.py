"""The published packages that turnout is measured against, called as their authors do.

Both take one value at a time, so the calls stand in a list comprehension, and values travel as
plain Python integers: with both packages that is faster than iterating over a NumPy array.
Neither knows partial participation; :meth:`Peer.collect` selects the participants around them.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One package: its name on the index, its client step and its server step."""

    name: str
    randomize: Callable[[list[int]], list[int]]
    tally: Callable[[list[int]], object]

    def collect(self, values: list[int], rate: float) -> object:
        """Select the participants, randomize their values and tally the reports."""
        if rate < 1.0:
            uniform = random.random
            values = [value for value in values if uniform() < rate]
        return self.tally(self.randomize(values))


def same(value: int) -> int:
    """Return a code as it is: pure-ldp's own mapping expects labels that start at 1."""
    return value


def pure_ldp(epsilon: float, k: int) -> Peer:
    """Return pure-ldp's ``DEClient`` and ``DEServer``.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    direct = importlib.import_module("pure_ldp.frequency_oracles.direct_encoding")
    client = direct.DEClient(epsilon, k, index_mapper=same)

    def randomize(values: list[int]) -> list[int]:
        privatise = client.privatise
        return [privatise(value) for value in values]

    def tally(reports: list[int]) -> object:
        server = direct.DEServer(epsilon, k, index_mapper=same)
        server.aggregate_all(reports)
        return server.aggregated_data

    return Peer("pure-ldp", randomize, tally)


def multi_freq_ldpy(epsilon: float, k: int) -> Peer:
    """Return multi-freq-ldpy's ``GRR_Client`` and ``GRR_Aggregator_MI``.

    The client is compiled by numba; the warm-up call pays for that. The aggregator ends with the
    estimate, which costs next to nothing beside the count.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    direct = importlib.import_module("multi_freq_ldpy.pure_frequency_oracles.GRR")

    def randomize(values: list[int]) -> list[int]:
        client = direct.GRR_Client
        return [client(value, k, epsilon) for value in values]

    def tally(reports: list[int]) -> object:
        return direct.GRR_Aggregator_MI(reports, k, epsilon)

    return Peer("multi-freq-ldpy", randomize, tally)


#: Every peer by its name on the package index.
PEERS: dict[str, Callable[[float, int], Peer]] = {
    "pure-ldp": pure_ldp,
    "multi-freq-ldpy": multi_freq_ldpy,
}
