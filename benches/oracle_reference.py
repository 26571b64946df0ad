"""The other frequency oracles in NumPy: the programs that turnout is measured against.

With NumPy's default generator and on one thread, in the two tiers of ``reference.py``: *plain* is
for whole arrays, *tuned* for blocks of nodes that stay in the processor's cache (``block`` random
numbers at a time). Random numbers are 53-bit doubles, as there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer[Any]]

#: Random numbers a block: 2 MiB of doubles.
BLOCK = 1 << 18

#: The Mersenne prime of the hash functions of local hashing.
PRIME = (1 << 31) - 1


def unary(
    codes: Codes, k: int, epsilon: float, rng: np.random.Generator, block: int | None = None
) -> npt.NDArray[np.uint8]:
    """Optimized unary encoding: one comparison for every bit, then the own bits; packed."""
    other = 1.0 / (math.exp(epsilon) + 1.0)
    out = np.empty((codes.size, -(-k // 8)), dtype=np.uint8)
    rows = codes.size if block is None else max(block // k, 1)
    for start in range(0, codes.size, rows):
        some = codes[start : start + rows]
        bits = rng.random((some.size, k)) < other
        bits[np.arange(some.size), some] = rng.random(some.size) < 0.5
        out[start : start + rows] = np.packbits(bits, axis=1, bitorder="little")
    return out


def unary_tally(reports: npt.NDArray[np.uint8], k: int) -> npt.NDArray[np.int64]:
    """Unpack the bits and add up the columns."""
    total = np.zeros(k, dtype=np.int64)
    rows = max(8 * BLOCK // k, 1)
    for start in range(0, len(reports), rows):
        bits = np.unpackbits(reports[start : start + rows], axis=1, count=k, bitorder="little")
        total += bits.sum(axis=0, dtype=np.int64)
    return total


def subset_size(k: int, epsilon: float) -> int:
    """Return the size of the subsets."""
    return max(round(k / (math.exp(epsilon) + 1.0)), 1)


def subsets(
    codes: Codes, k: int, epsilon: float, rng: np.random.Generator, block: int | None = None
) -> Codes:
    """Subset selection: the smallest of random keys, the own key first or last; sorted."""
    size = subset_size(k, epsilon)
    ratio = math.exp(epsilon)
    own = size * ratio / (size * ratio + k - size)
    out = np.empty((codes.size, size), dtype=np.uint8 if k <= 256 else np.uint32)
    rows = codes.size if block is None else max(block // k, 1)
    for start in range(0, codes.size, rows):
        some = codes[start : start + rows]
        keys = rng.random((some.size, k))
        chosen = rng.random(some.size) < own
        keys[np.arange(some.size), some] = np.where(chosen, -1.0, 2.0)
        out[start : start + rows] = np.argpartition(keys, size - 1, axis=1)[:, :size]
    return out


def hadamard(
    codes: Codes, k: int, epsilon: float, rng: np.random.Generator, block: int | None = None
) -> Codes:
    """Hadamard response: a uniform row, one bit of which is flipped to get the wanted parity."""
    rows = 1 << k.bit_length()
    agree = math.exp(epsilon) / (math.exp(epsilon) + 1.0)
    out = np.empty(codes.size, dtype=np.uint8 if rows <= 256 else np.uint32)
    step = codes.size if block is None else block
    for start in range(0, codes.size, step):
        masks = codes[start : start + step].astype(np.uint32) + np.uint32(1)
        drawn = rng.integers(0, rows, masks.size, dtype=np.uint32)
        odd = np.bitwise_count(masks & drawn) & 1
        wrong = odd == (rng.random(masks.size) < agree)
        lowest = masks & (~masks + np.uint32(1))
        out[start : start + step] = np.where(wrong, drawn ^ lowest, drawn)
    return out


def hash_parameters(
    nodes: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the two numbers of a hash function for each node."""
    first = rng.integers(0, PRIME, nodes, dtype=np.uint64)
    return first, rng.integers(0, PRIME, nodes, dtype=np.uint64)


def local_hashing(
    codes: Codes, buckets: int, epsilon: float, rng: np.random.Generator
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Optimized local hashing: a hash function, and the own bucket by direct encoding."""
    first, second = hash_parameters(codes.size, rng)
    hashed = (first * codes.astype(np.uint64) + second) % np.uint64(PRIME)
    own = (hashed * np.uint64(buckets) // np.uint64(PRIME)).astype(np.uint8)
    ratio = math.exp(epsilon)
    keep = (ratio - 1.0) / (ratio + buckets - 1.0)
    replaced = rng.integers(0, buckets, codes.size, dtype=np.uint8)
    return first, second, np.where(rng.random(codes.size) < keep, own, replaced)


def local_hashing_tally(
    first: npt.NDArray[np.uint64],
    second: npt.NDArray[np.uint64],
    reported: npt.NDArray[np.uint8],
    k: int,
    buckets: int,
) -> npt.NDArray[np.int64]:
    """Hash the whole domain for every report; count where the bucket is the reported one."""
    total = np.zeros(k, dtype=np.int64)
    domain = np.arange(k, dtype=np.uint64)
    rows = max(BLOCK // k, 1)
    for start in range(0, first.size, rows):
        block = slice(start, start + rows)
        hashed = first[block, None] * domain
        hashed += second[block, None]
        hashed %= np.uint64(PRIME)
        hashed *= np.uint64(buckets)
        hashed //= np.uint64(PRIME)
        total += (hashed == reported[block, None]).sum(axis=0)
    return total
