"""The jobs of the other frequency oracles, and who does each of them.

``epsilon`` 1; 100 codes, 1,000 for the tally of local hashing, a million for the sketches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

import oracle_reference as reference
from jobs import Job, Layout, Target
from measurement import Contender
from oracle_peers import OraclePeer

EPSILON = 1.0
DOMAIN_SIZE = 100
HASHED_DOMAIN_SIZE = 1000
LARGE_DOMAIN_SIZE = 10**6
NODES = 10**6
HASHED_NODES = 10**5
PLAIN_NODES = 4 * 10**5
PEER_NODES = 10**4
SLOW_NODES = 10**3

LAYOUT = Layout(
    columns=("turnout", "NumPy", "NumPy, tuned", "pure-ldp", "multi-freq-ldpy"),
    ratios={"NumPy": "ratio to NumPy", "NumPy, tuned": "to tuned"},
)
TITLE = f"Other frequency oracles, epsilon {EPSILON:g}, reports per second"
NOTES = [
    f"turnout: {NODES:,} reports a call, and {HASHED_NODES:,} in the tally of local hashing.",
    f"pure-ldp and multi-freq-ldpy: {PEER_NODES:,} reports a call, and {SLOW_NODES:,} where they "
    "are slow.",
    f"NumPy: arrays of {PLAIN_NODES:,} reports. NumPy, tuned: blocks that fit in the cache.",
]


def build(turnout: ModuleType | None, peers: dict[str, OraclePeer]) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peers
        The peers that are installed, by name.
    """
    codes = np.random.default_rng(0).integers(0, DOMAIN_SIZE, NODES).astype(np.uint8)
    bench = _Bench(turnout, peers, codes)
    return [
        bench.randomize("OptimizedUnaryEncoding", reference.unary, "unary", 20.0),
        bench.unary_tally(),
        bench.randomize("SubsetSelection", reference.subsets, "subsets", 20.0),
        bench.randomize("HadamardResponse", reference.hadamard, None, 4.0),
        bench.randomize("ProjectiveGeometryResponse", None, None, None),
        bench.hashing_randomize(),
        bench.hashing_tally(),
        *(bench.collect(name) for name in ("HadamardResponse", "ProjectiveGeometryResponse")),
        *(
            bench.collect(name, LARGE_DOMAIN_SIZE)
            for name in ("CountMeanSketch", "HadamardCountMeanSketch")
        ),
    ]


class _Bench:
    """Makes jobs of the packages at hand."""

    def __init__(
        self,
        turnout: ModuleType | None,
        peers: dict[str, OraclePeer],
        codes: npt.NDArray[np.uint8],
    ) -> None:
        self.turnout, self.peers, self.codes = turnout, peers, codes
        self.rng = np.random.default_rng(1)

    def oracle(self, name: str, k: int = DOMAIN_SIZE) -> Any:
        return getattr(self.turnout, name)(EPSILON, k)

    def randomize(
        self,
        name: str,
        program: Callable[..., Any] | None,
        peer_step: str | None,
        ratio: float | None,
    ) -> Job:
        contenders = []
        if self.turnout is not None:
            call = partial(self.oracle(name).randomize, self.codes)
            contenders.append(Contender("turnout", "randomize", NODES, call, _of_length(NODES)))
        if program is not None:
            short = self.codes[:PLAIN_NODES]
            call = partial(program, short, DOMAIN_SIZE, EPSILON, self.rng)
            accept = _of_length(PLAIN_NODES)
            contenders.append(Contender("NumPy", "whole arrays", PLAIN_NODES, call, accept))
            call = partial(call, block=reference.BLOCK)
            contenders.append(Contender("NumPy, tuned", "blocks", PLAIN_NODES, call, accept))
        if peer_step is not None:
            contenders += self._peers(peer_step, DOMAIN_SIZE)
        present = {contender.column for contender in contenders}
        nobody = frozenset(set(LAYOUT.columns[1:]) - present)
        name = f"{_words(name)}, k={DOMAIN_SIZE}, randomize"
        return Job(name, contenders, Target(ratio=ratio), nobody=nobody)

    def _peers(self, step: str, k: int) -> list[Contender]:
        values = np.random.default_rng(2).integers(0, k, PEER_NODES).tolist()
        return [
            Contender(
                name,
                "documented calls",
                PEER_NODES,
                partial(peer.randomize[step], values, k, EPSILON),
                _of_length(PEER_NODES),
            )
            for name, peer in self.peers.items()
            if step in peer.randomize
        ]

    def unary_tally(self) -> Job:
        packed = reference.unary(self.codes, DOMAIN_SIZE, EPSILON, self.rng)
        contenders = []
        if self.turnout is not None:
            oracle = self.oracle("OptimizedUnaryEncoding")
            reports = oracle.randomize(self.codes)
            call: Callable[[], object] = partial(oracle.tally, reports)
            contenders.append(Contender("turnout", "tally", NODES, call, _is_tally))
        call = partial(reference.unary_tally, packed, DOMAIN_SIZE)
        accept = _of_length(DOMAIN_SIZE)
        contenders.append(Contender("NumPy", "unpackbits, sum", NODES, call, accept))
        nobody = frozenset({"NumPy, tuned", "pure-ldp", "multi-freq-ldpy"})
        name = f"optimized unary encoding, k={DOMAIN_SIZE}, tally"
        return Job(name, contenders, nobody=nobody)

    def hashing_randomize(self) -> Job:
        buckets = round(math.exp(EPSILON)) + 1
        contenders = []
        if self.turnout is not None:
            call = partial(self.oracle("OptimizedLocalHashing").randomize, self.codes)
            contenders.append(Contender("turnout", "randomize", NODES, call, _of_length(NODES)))
        call = partial(reference.local_hashing, self.codes, buckets, EPSILON, self.rng)
        contenders.append(
            Contender("NumPy", "vectorised", NODES, call, lambda made: len(made) == 3)
        )
        contenders += self._peers("hashing", DOMAIN_SIZE)
        nobody = frozenset({"NumPy, tuned"})
        name = f"optimized local hashing, k={DOMAIN_SIZE}, randomize"
        return Job(name, contenders, nobody=nobody)

    def hashing_tally(self) -> Job:
        k, buckets = HASHED_DOMAIN_SIZE, round(math.exp(EPSILON)) + 1
        codes = np.random.default_rng(3).integers(0, k, HASHED_NODES)
        contenders = []
        if self.turnout is not None:
            oracle = self.oracle("OptimizedLocalHashing", k)
            call: Callable[[], object] = partial(oracle.tally, oracle.randomize(codes))
            contenders.append(Contender("turnout", "tally", HASHED_NODES, call, _is_tally))
        made = reference.local_hashing(codes, buckets, EPSILON, self.rng)
        short = tuple(part[:PEER_NODES] for part in made)
        call = partial(reference.local_hashing_tally, *short, k, buckets)
        contenders.append(Contender("NumPy", "vectorised", PEER_NODES, call, _of_length(k)))
        for name, peer in self.peers.items():
            reports = peer.randomize["hashing"](codes[:SLOW_NODES].tolist(), k, EPSILON)
            call = partial(peer.tally["hashing"], reports, k, EPSILON)
            accept = _of_length(k)
            contenders.append(Contender(name, "documented calls", SLOW_NODES, call, accept))
        name = f"optimized local hashing, k={k}, tally"
        nobody = frozenset({"NumPy, tuned"})
        return Job(name, contenders, Target(ratio=20.0), nobody=nobody)

    def collect(self, name: str, k: int = DOMAIN_SIZE) -> Job:
        contenders = []
        if self.turnout is not None:
            codes = self.codes if k == DOMAIN_SIZE else self.rng.integers(0, k, NODES)
            call = partial(self.oracle(name, k).collect, codes)
            contenders.append(Contender("turnout", "collect", NODES, call, _is_tally))
        nobody = frozenset(LAYOUT.columns[1:])
        return Job(f"{_words(name)}, k={k:,}, collect", contenders, nobody=nobody)


def _words(name: str) -> str:
    """Write a class name in words."""
    text = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return text.strip()


def _of_length(length: int) -> Callable[[Any], bool]:
    return lambda made: len(made) == length


def _is_tally(made: Any) -> bool:
    return bool(made.received == made.nodes)
