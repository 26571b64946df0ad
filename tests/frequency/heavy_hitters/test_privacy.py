"""The whole protocol is as private as one report: by enumeration of all transcripts."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import EstimatorError
from turnout.frequency.heavy_hitters import HeavyHitters, Search, SearchRound

Transcript = tuple[Any, ...]

PROTOCOL = HeavyHitters(
    1.5, bits=2, step=1, keep=1, family_wise_error=0.9, oracle=tn.DirectEncoding, confirm=True
)


def laws(current: SearchRound, values: list[int]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """All reports of some nodes, with their exact probabilities."""
    ratio, size = current.oracle.realized_ratio, current.oracle.domain.size
    own = current.domain.encode(values).tolist()
    for reports in itertools.product(range(size), repeat=len(own)):
        chance = Fraction(1)
        for code, report in zip(own, reports, strict=True):
            chance *= (ratio if code == report else 1) / (ratio + size - 1)
        yield reports, chance


def transcripts(
    search: Search, values: list[int], rounds: list[set[int]]
) -> Iterator[tuple[Transcript, Fraction]]:
    """What the server sees from here on: candidates and the reports of each node."""
    if search.finished:
        yield (search.result.values,), Fraction(1)
        return
    current = search.current
    mine = [value for value, which in zip(values, rounds, strict=True) if current.number in which]
    for reports, chance in laws(current, mine):
        seen = (current.candidates, reports)
        after = copy.deepcopy(search)
        tally = current.tally(tn.Reports(current, tn.Everyone(), np.array(reports), len(mine)))
        try:
            after.close(tally)
        except EstimatorError:
            yield seen, chance
            continue
        for rest, later in transcripts(after, values, rounds):
            yield (*seen, *rest), chance * later


def law(values: list[int], rounds: list[set[int]]) -> dict[Transcript, Fraction]:
    total: dict[Transcript, Fraction] = {}
    for transcript, chance in transcripts(PROTOCOL.rounds(), values, rounds):
        total[transcript] = total.get(transcript, Fraction(0)) + chance
    assert sum(total.values()) == 1
    return total


def largest_ratio(rounds: list[set[int]], others: list[int]) -> Fraction:
    """Over all two values of the first node, given which rounds each node answers."""
    by_value = [law([value, *others], rounds) for value in range(4)]
    return max(
        one[transcript] / other[transcript]
        for one, other in itertools.permutations(by_value, 2)
        for transcript in one
    )


@pytest.mark.parametrize("others", [[0], [2, 3]])
def test_no_transcript_tells_more_than_one_report(others: list[int]) -> None:
    ratios = []
    for groups in itertools.product(range(PROTOCOL.groups), repeat=1 + len(others)):
        if max(groups[1:]) == 2 and groups[0] == 2:
            continue  # the confirming round is never reached: nothing is reported
        ratio = largest_ratio([{group} for group in groups], others)
        ratios.append(ratio)
    bound = tn.DirectEncoding(1.5, 3).realized_ratio
    # Oracles over other numbers of candidates have thresholds that are rounded differently.
    assert float(max(ratios)) == pytest.approx(float(bound), rel=1e-15)
    assert max(ratios) <= max(tn.DirectEncoding(1.5, size).realized_ratio for size in (2, 3))


def test_answering_two_rounds_would_tell_more() -> None:
    bound = tn.DirectEncoding(1.5, 3).realized_ratio
    assert float(largest_ratio([{0, 1}, {0}], [2])) == pytest.approx(float(bound**2))


def test_groups_do_not_depend_on_values_and_are_alike(statistical: Any) -> None:
    protocol = HeavyHitters(1.0, bits=32)
    groups = protocol.rounds().assign(200_000, seed=1)
    statistical.check_law(np.bincount(groups), [1 / protocol.groups] * protocol.groups)


def test_what_a_node_pays_is_recorded() -> None:
    found = HeavyHitters(3.0, bits=8).collect(np.repeat([7, 200], 2000), seed=1)
    assert 2.9 < found.realized_epsilon <= 3.0
    assert all(record.realized_epsilon <= 3.0 for record in found.rounds)
