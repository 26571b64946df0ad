"""What is kept, what is promised to be found, and what is said where memory is bounded."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.frequency.heavy_hitters import HeavyHitters
from turnout.frequency.heavy_hitters.result import _fewest, crowd_level

NODES = 30_000
PROTOCOL = HeavyHitters(4.0, bits=12, step=4, keep=64, oracle=tn.OptimizedUnaryEncoding)
HEAVY = 0b101010_101010


def rivals(kind: str, share: float, seed: int) -> npt.NDArray[np.uint64]:
    """Values with one that has the share, among others that crowd its prefixes out."""
    generator = np.random.default_rng(seed)
    held = int(np.ceil(share * NODES))
    rest = NODES - held
    if kind == "as many rivals as can be":
        # Each nearly as frequent, under prefixes of their own.
        number = int(1.05 / share)
        others = generator.permutation(2**9)[:number][generator.integers(0, number, rest)] * 8 + 1
    elif kind == "crowded prefixes":
        # Of few first bits and many rare values.
        others = generator.integers(0, 40, rest) * 64 + generator.integers(0, 64, rest)
    else:
        others = generator.integers(0, 2**12, rest)
    return np.concatenate([np.full(held, HEAVY), others]).astype(np.uint64)


@pytest.mark.parametrize("kind", ["as many rivals as can be", "crowded prefixes", "no others"])
def test_the_detectable_frequency_is_found_whoever_the_others_are(
    kind: str, statistical: ModuleType
) -> None:
    tight = HeavyHitters(4.0, bits=12, step=4, keep=16, oracle=tn.OptimizedUnaryEncoding)
    share, runs = tight.detectable_frequency(NODES, power=0.8), 40
    assert 1 / 16 < share < 0.2
    hits = sum(
        HEAVY in tight.collect(rivals(kind, share, run), seed=run).values for run in range(runs)
    )
    statistical.check_share(hits, runs, 0.75, 1.0)


def test_values_that_nobody_holds_are_found_as_rarely_as_is_said(statistical: ModuleType) -> None:
    protocol = HeavyHitters(
        3.0, bits=8, step=3, confirm=False, family_wise_error=0.3, oracle=tn.DirectEncoding
    )
    runs, false = 300, 0
    values = np.repeat([3, 200], 400)
    for run in range(runs):
        found = protocol.collect(values, seed=run)
        false += not set(found.values) <= {3, 200}
    statistical.check_share(false, runs, 0.0, 0.3)
    assert false > 0


def test_where_the_bound_cut_is_said_and_what_is_still_found() -> None:
    narrow = HeavyHitters(4.0, bits=12, step=4, keep=8, oracle=tn.OptimizedUnaryEncoding)
    values = rivals("crowded prefixes", 0.1, 1)
    cut, whole = narrow.collect(values, seed=1), PROTOCOL.collect(values, seed=1)
    assert cut.cut == sum(record.cut for record in cut.rounds) > 0
    assert whole.cut == 0
    assert f"{cut.cut} prefixes cut" in repr(cut)
    assert "cut" not in repr(whole)
    assert cut.detectable_frequency() > whole.detectable_frequency()
    assert cut.detectable_frequency(0.99) > cut.detectable_frequency(0.5)
    assert narrow.detectable_frequency(NODES) > 1 / 8


def test_the_least_count_is_that_of_the_exact_tail() -> None:
    for trials, chance, tail in ((20, Fraction(1, 7), 1e-3), (300, Fraction(1, 50), 1e-6)):
        count = _fewest(trials, float(chance), tail)

        def reached(
            least: int, trials: int = trials, chance: Fraction = chance
        ) -> Fraction:  # the chance of so many or more
            return sum(
                (
                    comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
                    for k in range(least, trials + 1)
                ),
                Fraction(0),
            )

        assert reached(count) <= tail < reached(count - 1)


def test_fewer_rivals_than_are_kept_exceed_the_level_of_a_crowd() -> None:
    generator = np.random.default_rng(1)
    noise, growth, candidates, keep = 1e-5, 1e-5, 2000, 30
    level = crowd_level(noise, growth, candidates, keep)
    assert 1 / keep - 0.02 < level < 1 / keep + 0.05
    for number in (5, 20, 25, 30, 40, 60, 100, 400, 2000):
        shares = np.zeros(candidates)
        shares[:number] = 1 / number
        estimates = generator.normal(shares, np.sqrt(noise + growth * shares), (200, candidates))
        assert ((estimates > level).sum(axis=1) < keep).mean() > 0.98, number
    assert crowd_level(noise, growth, keep, keep) == 0.0
