"""The laws of the reports of every oracle, in exact fractions, from the thresholds of its kernel.

Nothing is taken from formulas of the library but the thresholds, the reports that exist, and which
answers they support.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import pkgutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

import turnout as tn
from turnout.frequency import oracles
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.longitudinal import Memoized
from turnout.frequency.oracle import FrequencyOracle

for _module in pkgutil.iter_modules(oracles.__path__, oracles.__name__ + "."):
    importlib.import_module(_module.name)

#: For each answer the probability of each report.
Laws = list[dict[Any, Fraction]]

WORD = 2**64
SYMMETRIC, OPTIMIZED = "symmetric_unary_encoding", "optimized_unary_encoding"


@functools.cache
def bounds(x: float) -> tuple[Fraction, Fraction]:
    """Rationals around e^x: partial sums at x / 2^j < 1/2 and squarings, in units of 2^-400."""
    exact, halvings = Fraction(x), 0
    while exact >= Fraction(1, 2):
        exact, halvings = exact / 2, halvings + 1
    low = term = 1 << 400
    for index in range(1, 81):
        term = term * exact.numerator // (exact.denominator * index)
        low += term
    # Each of the terms is too small by less than two units; those left out are below one unit.
    high = low + 200
    for _ in range(halvings):
        low, high = low * low >> 400, (high * high >> 400) + 1
    return Fraction(low, 1 << 400), Fraction(high, 1 << 400)


def rows(size: int) -> list[int]:
    return list(range(2**size))


def supported(oracle: FrequencyOracle, reports: Any) -> list[set[int]]:
    """Which answers reports support, from the kernel."""
    bits = oracle._kernel.supports(reports)
    size = oracle.domain.size
    return [{code for code in range(size) if int(row[0]) >> code & 1} for row in bits]


def bit_laws(size: int, one: Fraction, zero: Fraction, own: list[int]) -> Laws:
    """Independent bits: that at ``own[x]`` is one with probability ``one``, others ``zero``."""
    laws: Laws = []
    for place in own:
        chances = [one if bit == place else zero for bit in range(size)]
        laws.append(
            {
                row: math.prod(
                    (c if row >> bit & 1 else 1 - c for bit, c in enumerate(chances)),
                    start=Fraction(1),
                )
                for row in rows(size)
            }
        )
    return laws


def direct(oracle: Any) -> Laws:
    own, other = oracle._core.words
    size = oracle.domain.size
    accepted = own + (size - 1) * other  # other words are drawn again
    assert accepted <= WORD
    return [{y: Fraction(own if y == x else other, accepted) for y in range(size)}
            for x in range(size)]  # fmt: skip


def unary(oracle: Any) -> Laws:
    own, other = oracle._core.words
    size = oracle.domain.size
    return bit_laws(size, Fraction(own, WORD), Fraction(other, WORD), list(range(size)))


def subset(oracle: Any) -> Laws:
    size, members = oracle.domain.size, oracle.subset_size
    own = Fraction(oracle._core.own_words, WORD)
    inside, outside = math.comb(size - 1, members - 1), math.comb(size - 1, members)
    sets = [row for row in rows(size) if row.bit_count() == members]
    return [{row: own / inside if row >> x & 1 else (1 - own) / outside for row in sets}
            for x in range(size)]  # fmt: skip


def hadamard(oracle: Any) -> Laws:
    """By what the kernel does: a uniform report, flipped at the pivot if in the wrong half."""
    keep, lie = oracle._core.words
    count = oracle._report_count
    laws: Laws = []
    for x in range(1, oracle.domain.size + 1):
        law = dict.fromkeys(range(count), Fraction(0))
        for y, (odd, words) in itertools.product(range(count), [(0, keep), (1, lie)]):
            wrong = (x & y).bit_count() % 2 != odd
            law[y ^ (x & -x) if wrong else y] += Fraction(words, (keep + lie) * count)
        laws.append(law)
    return laws


def projective(oracle: Any) -> Laws:
    own, other = oracle._core.words
    points = np.arange(oracle._report_count, dtype=oracle.report_dtype)
    reached = supported(oracle, points)
    laws: Laws = []
    for x in range(oracle.domain.size):
        words = [own if x in codes else other for codes in reached]
        laws.append({y: Fraction(word, sum(words)) for y, word in enumerate(words)})
        assert sum(words) <= WORD
    return laws


def buckets_of(oracle: Any, functions: int, width: int, one_hot: Callable[[int, int], Any]) -> Any:
    """For each function the buckets of the answers, from reports that hold one bucket each."""
    table = []
    for function in range(functions):
        reports = np.array([one_hot(function, bucket) for bucket in range(width)])
        reached = supported(oracle, reports.astype(oracle.report_dtype))
        # Every answer is in one bucket.
        assert Counter(code for codes in reached for code in codes) == Counter(
            range(oracle.domain.size)
        )
        table.append([next(b for b in range(width) if x in reached[b])
                      for x in range(oracle.domain.size)])  # fmt: skip
    return table


def pooled(oracle: Any) -> Laws:
    own, other = oracle._core.words
    g, m = oracle.buckets, oracle.hashes
    table = buckets_of(oracle, m, g, lambda function, bucket: function * g + bucket)
    total = m * (own + (g - 1) * other)
    return [
        {f * g + b: Fraction(own if table[f][x] == b else other, total)
         for f in range(m) for b in range(g)}
        for x in range(oracle.domain.size)
    ]  # fmt: skip


def sketch(oracle: Any) -> Laws:
    flip = Fraction(oracle._core.flip_words, WORD)
    m, w = oracle.hashes, oracle.width
    table = buckets_of(oracle, m, w, lambda function, bucket: (function, 1 << bucket))
    laws: Laws = [{} for _ in range(oracle.domain.size)]
    for function in range(m):
        for law, bits in zip(laws, bit_laws(w, 1 - flip, flip, table[function]), strict=True):
            law |= {(function, row): chance / m for row, chance in bits.items()}
    return laws


def entries(oracle: Any) -> Laws:
    own, other = oracle._core.words
    m, w = oracle.hashes, oracle.width
    reports = np.arange(2 * m * w, dtype=np.uint32)
    reached = supported(oracle, reports)
    return [
        {y: Fraction(own if x in codes else other, (own + other) * m * w)
         for y, codes in enumerate(reached)}
        for x in range(oracle.domain.size)
    ]  # fmt: skip


def memoized(oracle: Any) -> Laws:
    stages = oracle._core.words
    size = oracle.domain.size
    if oracle.permanent == "direct_encoding":
        first, second = (
            [[Fraction(own if x == y else other, own + (size - 1) * other) for y in range(size)]
             for x in range(size)]
            for own, other in stages
        )  # fmt: skip
        return [{y: sum((first[x][z] * second[z][y] for z in range(size)), Fraction(0))
                 for y in range(size)} for x in range(size)]  # fmt: skip
    (one, zero), (kept, lie) = [[Fraction(w, WORD) for w in words] for words in stages]
    # Bit by bit: those of a permanent answer are independent, and so are those of a report of it.
    through = [chance * kept + (1 - chance) * lie for chance in (one, zero)]
    return bit_laws(size, through[0], through[1], list(range(size)))


def padded(oracle: Any) -> Laws:
    inner = laws_of(oracle.oracle)
    size, share = len(inner), Fraction(oracle.own_probability)
    return [
        {y: share * law[y] + (1 - share) / size * sum(each[y] for each in inner) for y in law}
        for law in inner
    ]


LAWS: dict[str, Callable[[Any], Laws]] = {
    "direct_encoding": direct,
    SYMMETRIC: unary,
    OPTIMIZED: unary,
    "threshold_histogram_encoding": unary,
    "subset_selection": subset,
    "hadamard_response": hadamard,
    "projective_geometry_response": projective,
    "binary_local_hashing": pooled,
    "optimized_local_hashing": pooled,
    "count_mean_sketch": sketch,
    "hadamard_count_mean_sketch": entries,
    "memoized": memoized,
    "padded": padded,
}


def laws_of(oracle: FrequencyOracle) -> Laws:
    return LAWS[oracle.name](oracle)


Make = Callable[[float, int], FrequencyOracle]
Test = TypeVar("Test", bound=Callable[..., None])


def _chain(permanent: str, instantaneous: str) -> Make:
    def make(epsilon: float, size: int) -> FrequencyOracle:
        return Memoized(
            epsilon,
            size,
            first_epsilon=0.4 * epsilon,
            permanent=permanent,
            instantaneous=instantaneous,
        )

    return make


def _padded(inner: Make) -> Make:
    return lambda epsilon, size: PaddedOracle(
        epsilon, size, oracle=inner(epsilon, size), own_probability=0.3
    )


#: Oracles whose reports can be listed.
MAKE: dict[str, Make] = {
    "direct": tn.DirectEncoding,
    "symmetric": tn.SymmetricUnaryEncoding,
    "optimized": tn.OptimizedUnaryEncoding,
    "threshold": tn.ThresholdHistogramEncoding,
    "subset": tn.SubsetSelection,
    "subset of one": lambda epsilon, size: tn.SubsetSelection(epsilon, size, subset_size=1),
    "subset of all but one": lambda epsilon, size: tn.SubsetSelection(
        epsilon, size, subset_size=size - 1
    ),
    "hadamard": tn.HadamardResponse,
    "projective": lambda epsilon, size: tn.ProjectiveGeometryResponse(epsilon, size, field_size=3),
    "projective of two": lambda epsilon, size: tn.ProjectiveGeometryResponse(
        epsilon, size, field_size=2
    ),
    "binary pool": lambda epsilon, size: tn.BinaryLocalHashing(epsilon, size, hashes=5),
    "pool": lambda epsilon, size: tn.OptimizedLocalHashing(epsilon, size, buckets=3, hashes=4),
    "pool of one": lambda epsilon, size: tn.OptimizedLocalHashing(
        epsilon, size, buckets=50, hashes=1
    ),
    "sketch": lambda epsilon, size: tn.CountMeanSketch(epsilon, size, hashes=3, width=5),
    "narrow sketch": lambda epsilon, size: tn.CountMeanSketch(epsilon, size, hashes=4, width=2),
    "entries": lambda epsilon, size: tn.HadamardCountMeanSketch(epsilon, size, hashes=3, width=4),
    "entries of one": lambda epsilon, size: tn.HadamardCountMeanSketch(
        epsilon, size, hashes=1, width=64
    ),
    "memoized direct": _chain("direct_encoding", "direct_encoding"),
    "memoized symmetric": _chain(SYMMETRIC, SYMMETRIC),
    "memoized mixed": _chain(OPTIMIZED, SYMMETRIC),
    "padded direct": _padded(tn.DirectEncoding),
    "padded unary": _padded(tn.OptimizedUnaryEncoding),
    "padded entries": _padded(
        lambda epsilon, size: tn.HadamardCountMeanSketch(epsilon, size, hashes=3, width=4)
    ),
}


def array_of(oracle: FrequencyOracle, reports: list[Any]) -> Any:
    array = np.array(reports, dtype=oracle.report_dtype)
    return array.reshape(len(reports), *oracle.report_shape)
