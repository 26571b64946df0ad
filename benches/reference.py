"""Direct encoding in NumPy: the programs that turnout is measured against.

Direct encoding keeps a code with probability ``p - q`` and otherwise replaces it by a uniform code
of the whole domain, so that the true code is reported with probability ``p`` and each other one
with probability ``q`` (``p / q = exp(epsilon)``).

Two tiers, both with NumPy's default generator and both on one thread:

* **plain**: whole arrays, a decision and a replacement drawn for every node. This is what the
  column "NumPy" is, and what the targets are ratios to.
* **tuned**: one number for both, random gaps between the rare nodes in place of a draw a node, and
  blocks that stay in the processor's cache. This is what an expert gets from NumPy after some work.

Random numbers are 53-bit doubles throughout. Single precision would be up to 15 % faster, but its
24 bits move the realised epsilon by about 1e-5, so it is not the same mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer[Any]]
Counts = npt.NDArray[np.int64]


class Randomizer(Protocol):
    """A program that randomizes every code it is given."""

    def __call__(self, codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
        """Return one report for each code."""
        ...


class Selector(Protocol):
    """A program that selects the participants."""

    def __call__(self, codes: Codes, rate: float, rng: np.random.Generator) -> Codes:
        """Return the participants' codes, in their order."""
        ...


#: Nodes a block: 2 MiB of int64 codes.
BLOCK = 1 << 18


def keep_probability(epsilon: float, domain_size: int) -> float:
    """Return ``p - q``, the probability that a code is kept instead of being drawn anew."""
    ratio = math.exp(epsilon)
    return (ratio - 1.0) / (ratio + domain_size - 1.0)


# Randomize ----------------------------------------------------------------------------------------


def where(codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
    """Draw a decision and a replacement for every node; choose with ``np.where``."""
    replacement = rng.integers(0, k, codes.size)
    chosen = np.where(rng.random(codes.size) < keep, codes, replacement)
    return chosen.astype(codes.dtype, copy=False)


def in_place(codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
    """Draw all replacements, then write the kept codes over them."""
    out = rng.integers(0, k, codes.size).astype(codes.dtype, copy=False)
    np.copyto(out, codes, where=rng.random(codes.size) < keep)
    return out


def one_number(codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
    """Use one uniform number a node for both the decision and the replacement.

    The number is stretched to ``[0, k / (1 - keep))``: below ``k`` its integer part is the uniform
    replacement, from ``k`` on the code is kept. Reports are as narrow as the domain allows.
    """
    stretched = rng.random(codes.size)
    stretched *= k / (1.0 - keep)
    out = stretched.astype(np.min_scalar_type(k))
    np.copyto(out, codes, where=stretched >= k, casting="unsafe")
    return out


def kept_gaps(codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
    """Draw all replacements, then write the kept codes over them at random gaps.

    Reports are as narrow as the domain allows; the draws have 32 bits because one-byte draws are
    slower, conversion included.
    """
    out = rng.integers(0, k, codes.size, dtype=np.int32).astype(np.min_scalar_type(k))
    kept = gap_positions(codes.size, keep, rng)
    out[kept] = codes[kept]
    return out


def in_blocks(randomize: Randomizer) -> Randomizer:
    """Return a program that does the same a block at a time."""

    def program(codes: Codes, k: int, keep: float, rng: np.random.Generator) -> Codes:
        out = np.empty(codes.size, dtype=np.min_scalar_type(k))
        for start in range(0, codes.size, BLOCK):
            block = slice(start, start + BLOCK)
            out[block] = randomize(codes[block], k, keep, rng)
        return out

    return program


def gap_positions(nodes: int, rate: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return the positions of a Bernoulli process, at a cost in proportion to their number.

    Gaps between successes are geometric: ``1 + floor(E / -log(1 - rate))`` with ``E`` standard
    exponential (``rng.geometric`` gives the same law more slowly).
    """
    # Eight standard deviations over the mean: a second pass is next to never needed.
    expected = nodes * rate
    size = int(expected + 8.0 * math.sqrt(expected * (1.0 - rate))) + 16
    scale = -1.0 / math.log1p(-rate)
    last = -1
    parts: list[npt.NDArray[np.int64]] = []
    while last < nodes:
        exponential = rng.standard_exponential(size)
        exponential *= scale
        gaps = exponential.astype(np.int64)
        gaps += 1
        gaps[0] += last
        positions = np.cumsum(gaps, out=gaps)
        last = int(positions[-1])
        parts.append(positions)
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return found[: np.searchsorted(found, nodes)]


PLAIN_RANDOMIZERS: dict[str, Randomizer] = {
    "np.where": where,
    "in place": in_place,
}
TUNED_RANDOMIZERS: dict[str, Randomizer] = {
    "one number a node": one_number,
    "one number a node, blocks": in_blocks(one_number),
    "gaps, blocks": in_blocks(kept_gaps),
}


# Tally --------------------------------------------------------------------------------------------


def bincount(codes: Codes, k: int) -> Counts:
    """Count each code with ``np.bincount``."""
    return np.bincount(codes, minlength=k)


def bincount_in_blocks(codes: Codes, k: int) -> Counts:
    """Count each code with ``np.bincount``, a block at a time."""
    counts = np.zeros(k, dtype=np.int64)
    for start in range(0, codes.size, BLOCK):
        counts += np.bincount(codes[start : start + BLOCK], minlength=k)
    return counts


def bincount_pairs(codes: npt.NDArray[np.uint8], k: int) -> Counts:
    """Count one-byte codes two at a time: half as many increments, folded at the end."""
    even = codes.size - codes.size % 2
    pairs = codes[:even].view(np.uint16)
    table = np.zeros(1 << 16, dtype=np.int64)
    for start in range(0, pairs.size, BLOCK):
        table += np.bincount(pairs[start : start + BLOCK], minlength=1 << 16)
    square = table.reshape(256, 256)
    counts: Counts = square.sum(axis=0) + square.sum(axis=1)
    counts += np.bincount(codes[even:], minlength=256)
    return counts[:k]


# Collect ------------------------------------------------------------------------------------------


def mask(codes: Codes, rate: float, rng: np.random.Generator) -> Codes:
    """Select the participants with a boolean mask, one random number a node."""
    return codes if rate >= 1.0 else codes[rng.random(codes.size) < rate]


def positions(codes: Codes, rate: float, rng: np.random.Generator) -> Codes:
    """Select the participants by position, one random number a node."""
    return codes if rate >= 1.0 else codes[np.flatnonzero(rng.random(codes.size) < rate)]


def gaps(codes: Codes, rate: float, rng: np.random.Generator) -> Codes:
    """Select the participants by random gaps, one random number a participant."""
    return codes if rate >= 1.0 else codes[gap_positions(codes.size, rate, rng)]


def collect(
    codes: Codes,
    k: int,
    select: Callable[[Codes], Codes],
    randomize: Callable[[Codes], Codes],
    block: int | None = None,
) -> Counts:
    """Select the participants, randomize their codes and count the reports.

    ``block`` nodes are done at a time (all of them if None).
    """
    step = max(1, codes.size if block is None else block)
    counts = np.zeros(k, dtype=np.int64)
    for start in range(0, codes.size, step):
        reports = randomize(select(codes[start : start + step]))
        counts += np.bincount(reports, minlength=k)
    return counts


PLAIN_COLLECTORS: dict[str, tuple[Selector, Randomizer]] = {
    "mask, np.where": (mask, where),
    "positions, in place": (positions, in_place),
}
TUNED_COLLECTORS: dict[str, tuple[Selector, Randomizer]] = {
    "gaps, one number a participant, blocks": (gaps, one_number),
    "gaps, gaps, blocks": (gaps, kept_gaps),
}


# Simulate -----------------------------------------------------------------------------------------


def simulate(true_counts: Counts, keep: float, rate: float, rng: np.random.Generator) -> Counts:
    """Draw the support counts from their law, with no node ever drawn."""
    k = true_counts.size
    participants = rng.binomial(true_counts, rate)
    kept = rng.binomial(participants, keep)
    replaced = rng.multinomial(participants.sum() - kept.sum(), np.full(k, 1.0 / k))
    return kept + replaced


def simulate_together(
    true_counts: Counts, keep: float, rate: float, rng: np.random.Generator
) -> Counts:
    """Draw them from two counts a code: those that do not keep theirs are one binomial."""
    k, kept_rate = true_counts.size, rate * keep
    kept = rng.binomial(true_counts, kept_rate)
    others = true_counts.sum() - kept.sum()
    replaced = rng.binomial(others, rate * (1.0 - keep) / (1.0 - kept_rate))
    counts: Counts = kept + rng.multinomial(replaced, np.full(k, 1.0 / k))
    return counts
