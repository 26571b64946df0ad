"""Oracles whose reports share other functions than those of all collections: for laws over both."""

from __future__ import annotations

from typing import Any

from turnout.frequency.oracles.count_mean_sketch import _Sketch


def with_functions(oracle: Any, seed: int) -> Any:
    """Give an oracle the functions of a seed."""
    sizes = (
        (oracle.hashes, oracle.width)
        if isinstance(oracle, _Sketch)
        else (oracle.buckets, oracle.hashes)
    )
    oracle._core = type(oracle._core)(oracle.epsilon, oracle.domain.size, *sizes, seed)
    return oracle
