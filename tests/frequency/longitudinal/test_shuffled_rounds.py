"""Rounds that share permanent answers do not compose; what holds for all of them together."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.accounting import Shuffled
from turnout.errors import InvalidValueError
from turnout.frequency.longitudinal import Memoized

SYMMETRIC, OPTIMIZED = "symmetric_unary_encoding", "optimized_unary_encoding"

Outcome = tuple[tuple[Any, ...], ...]


def stages(memoized: Memoized) -> tuple[list[dict[Any, float]], dict[Any, dict[Any, float]]]:
    """The laws of the permanent answers, and of a report given each of them."""
    size, words = memoized.domain.size, memoized._core.words
    if memoized.permanent == "direct_encoding":
        first, second = (
            [
                {y: (own if x == y else other) / (own + (size - 1) * other) for y in range(size)}
                for x in range(size)
            ]
            for own, other in words
        )
        return first, dict(enumerate(second))
    rows = list(itertools.product([0, 1], repeat=size))

    def of_bits(mark: tuple[int, ...], pair: tuple[int, int]) -> dict[Any, float]:
        chances = [(pair[0] if bit else pair[1]) / 2**64 for bit in mark]
        return {
            row: math.prod(c if bit else 1 - c for c, bit in zip(chances, row, strict=True))
            for row in rows
        }

    answers = [tuple(int(code == bit) for bit in range(size)) for code in range(size)]
    return [of_bits(answer, words[0]) for answer in answers], {
        row: of_bits(row, words[1]) for row in rows
    }


def laws(memoized: Memoized, rate: float) -> list[dict[Outcome, float]]:
    """For each answer the law of what one node sends in two rounds: a report or nothing."""
    first, second = stages(memoized)
    result: list[dict[Outcome, float]] = []
    for law in first:
        table: dict[Outcome, float] = defaultdict(float)
        for middle, chance in law.items():
            sent: dict[tuple[Any, ...], float] = {(y,): rate * p for y, p in second[middle].items()}
            if rate < 1.0:
                sent[()] = 1.0 - rate
            for one, other in itertools.product(sent, repeat=2):
                table[one, other] += chance * sent[one] * sent[other]
        result.append(dict(table))
    return result


def shuffled(tables: list[dict[Outcome, float]], answers: tuple[int, ...]) -> dict[Outcome, float]:
    """The law of what is seen of several nodes if every round is shuffled by itself."""
    seen: dict[Outcome, float] = {((), ()): 1.0}
    for x in answers:
        joined: dict[Outcome, float] = defaultdict(float)
        for (key, chance), (sent, more) in itertools.product(seen.items(), tables[x].items()):
            joined[tuple(tuple(sorted(a + b)) for a, b in zip(key, sent, strict=True))] += (
                chance * more
            )
        seen = dict(joined)
    return seen


def delta(one: dict[Outcome, float], other: dict[Outcome, float], epsilon: float) -> float:
    growth = math.exp(epsilon)
    return math.fsum(max(chance - growth * other[key], 0.0) for key, chance in one.items())


@pytest.mark.parametrize("rate", [1.0, 0.7])
@pytest.mark.parametrize(
    ("permanent", "instantaneous", "size"),
    [
        ("direct_encoding", "direct_encoding", 2),
        ("direct_encoding", "direct_encoding", 3),
        (SYMMETRIC, OPTIMIZED, 2),
        (OPTIMIZED, OPTIMIZED, 2),
    ],
)
def test_all_rounds_together_are_within_the_shuffled_permanent_answers(
    permanent: str, instantaneous: str, size: int, rate: float
) -> None:
    memoized = Memoized(
        2.0, size, first_epsilon=1.2, permanent=permanent, instantaneous=instantaneous
    )
    tables = laws(memoized, rate)
    levels = [0.0, 0.5, 1.0, 1.6]
    for nodes in (1, 2):
        bound = np.asarray(
            Shuffled(memoized._lifetime_variation_ratio, nodes).delta(np.array(levels))
        )
        for others in itertools.product(range(size), repeat=nodes - 1):
            whole = [shuffled(tables, (x, *others)) for x in range(size)]
            for one, other in itertools.permutations(whole, 2):
                found = [delta(one, other, level) for level in levels]
                assert (np.array(found) <= bound + 1e-12).all()


def test_two_reports_may_say_more_than_twice_what_one_does() -> None:
    # So that composing the guarantee of one round over rounds would be no bound.
    memoized = Memoized(4.0, 300, first_epsilon=1.0)
    (own, other), (kept, changed) = memoized._core.words
    rho, r, others = own / other, kept / changed, 298
    once, twice = (math.log((rho * s + others + 1) / (rho + s + others)) for s in (r, r * r))
    assert once == pytest.approx(memoized.realized_epsilon)
    assert twice > 2.8 > 2 * once
    assert twice < memoized.lifetime_epsilon
    # Two reports of the own answer are an event that tells.
    accepted = (own + 299 * other) * (kept + 299 * changed) ** 2
    mass = (own * kept**2 + 299 * other * changed**2) / accepted
    composed = Shuffled(memoized.variation_ratio, nodes=1).compose(2)
    assert composed.delta(2.1) < 1e-9 < mass * (1 - math.exp(2.1 - twice))


def test_what_would_be_composed_is_refused() -> None:
    memoized = Memoized(4.0, 300, first_epsilon=1.0)
    with pytest.raises(InvalidValueError, match="_lifetime_variation_ratio"):
        Shuffled(memoized, 1000)
    assert Shuffled(memoized._lifetime_variation_ratio, 1000).epsilon(1e-6) > 0.0


def test_the_permanent_answers_of_direct_encoding_are_those_of_the_oracle() -> None:
    memoized = Memoized(tn.DirectEncoding(3.0, 5), first_epsilon=1.0)
    expected, found = tn.DirectEncoding(3.0, 5).variation_ratio, memoized._lifetime_variation_ratio
    assert found.ratio == expected.ratio
    assert found.total_variation == expected.total_variation
