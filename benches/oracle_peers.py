"""The other oracles of the published packages, called as their authors do."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any


@dataclass(frozen=True)
class OraclePeer:
    """One package: its client step and its server step for the oracles that it has, by name."""

    name: str
    randomize: dict[str, Callable[[list[int], int, float], Any]]
    tally: dict[str, Callable[[Any, int, float], Any]]


def pure_ldp() -> OraclePeer:
    """Return pure-ldp's unary encoding, local hashing, and Hadamard response.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    unary = importlib.import_module("pure_ldp.frequency_oracles.unary_encoding")
    hashing = importlib.import_module("pure_ldp.frequency_oracles.local_hashing")

    def same(value: int) -> int:
        return value  # the package's own mapping expects labels that start at 1

    def run(client: Callable[..., Any], values: list[int], k: int, epsilon: float) -> Any:
        privatise = client(epsilon, k, index_mapper=same).privatise
        return [privatise(value) for value in values]

    def count(server: Callable[..., Any], reports: Any, k: int, epsilon: float) -> Any:
        made = server(epsilon, k, index_mapper=same)
        made.aggregate_all(reports)
        return made.aggregated_data

    return OraclePeer(
        "pure-ldp",
        {
            "unary": partial(run, partial(unary.UEClient, use_oue=True)),
            "hashing": partial(run, partial(hashing.LHClient, use_olh=True)),
        },
        {"hashing": partial(count, partial(hashing.LHServer, use_olh=True))},
    )


def multi_freq_ldpy() -> OraclePeer:
    """Return multi-freq-ldpy's unary encoding, subset selection, and local hashing.

    Raises
    ------
    ImportError
        If the package, or one that it needs, is not installed.
    """
    package = "multi_freq_ldpy.pure_frequency_oracles"
    unary = importlib.import_module(f"{package}.UE")
    subsets = importlib.import_module(f"{package}.SS")
    hashing = importlib.import_module(f"{package}.LH")

    def run_unary(values: list[int], k: int, epsilon: float) -> Any:
        return [unary.UE_Client(value, k, epsilon, optimal=True) for value in values]

    def run_subsets(values: list[int], k: int, epsilon: float) -> Any:
        return [subsets.SS_Client(value, k, epsilon) for value in values]

    def run_hashing(values: list[int], k: int, epsilon: float) -> Any:
        return [hashing.LH_Client(value, k, epsilon, optimal=True) for value in values]

    def count_hashing(reports: Any, k: int, epsilon: float) -> Any:
        return hashing.LH_Aggregator_MI(reports, k, epsilon, optimal=True)

    return OraclePeer(
        "multi-freq-ldpy",
        {"unary": run_unary, "subsets": run_subsets, "hashing": run_hashing},
        {"hashing": count_hashing},
    )


PEERS: dict[str, Callable[[], OraclePeer]] = {
    "pure-ldp": pure_ldp,
    "multi-freq-ldpy": multi_freq_ldpy,
}


def load() -> tuple[dict[str, OraclePeer], dict[str, str]]:
    """Return the peers that are installed, and why the others are not to be had."""
    peers, problems = {}, {}
    for name, make in PEERS.items():
        try:
            peers[name] = make()
        except ImportError as error:
            problems[name] = f"not installed: {error}"
        except Exception as error:  # a broken peer must not end the comparison
            problems[name] = f"failed: {type(error).__name__}: {error}"
    return peers, problems
