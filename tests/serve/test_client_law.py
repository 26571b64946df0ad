"""Of many messages that the client makes, estimates and intervals are as right as they say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.serve.clients import KEY, needs_node, run, text_of

import turnout as tn
from turnout.frequency.attributes import PaddedOracle

pytestmark = needs_node

RATE = 0.8
#: So many take part that 10^5 messages are made.
PEOPLE = 125_000
TRUTH = np.array([0.5, 0.2, 0.15, 0.1, 0.05, 0.0])
COUNTS = np.rint(TRUTH * PEOPLE).astype(int)
LEVEL = 1 - 1e-6


def messages(oracle: Any, people: list[list[Any]], folder: Path) -> tuple[tn.Plan, list[str]]:
    plan = tn.Plan(oracle, tn.Bernoulli(RATE))
    job = {"plan": text_of(plan, folder), "key": KEY.public_key, "people": people, "seed": "8"}
    [result] = run([job])
    return plan, result["messages"]


@pytest.mark.parametrize(
    "oracle",
    [
        tn.DirectEncoding(1.0, 6),
        tn.OptimizedUnaryEncoding(1.0, 6),
        tn.OptimizedLocalHashing(1.0, 6),
        tn.SubsetSelection(1.0, 6),
        tn.HadamardResponse(1.0, 6),
        tn.CountMeanSketch(2.0, 6),
        PaddedOracle(2.0, 6, oracle=tn.DirectEncoding(2.0, 6), own_probability=0.5),
    ],
    ids=lambda oracle: oracle.name,
)
def test_shares_of_many_messages_are_the_truth(
    oracle: Any, tmp_path: Path, statistical: ModuleType
) -> None:
    people = [[code, int(count)] for code, count in enumerate(COUNTS)]
    plan, made = messages(oracle, people, tmp_path)
    statistical.check_share([len(made)], PEOPLE, RATE, RATE)
    assert len(made) > 99_000
    estimate = oracle.tally(plan.gather(made, PEOPLE)).estimate()
    assert estimate.interval(1 - 1e-6 / 6).contains(TRUTH).all()
    # It could tell: another order of the answers is not within.
    assert not estimate.interval(1 - 1e-6 / 6).contains(TRUTH[::-1]).all()


def test_intervals_of_many_collections_cover_as_they_say(
    tmp_path: Path, statistical: ModuleType
) -> None:
    oracle = tn.DirectEncoding(1.0, 6)
    collections, each = 250, 500
    people = [
        [code, int(share * each)] for _ in range(collections) for code, share in enumerate(TRUTH)
    ]
    plan, made = messages(oracle, people, tmp_path)
    # The streams go on from one collection to the next, and so does this draw of who is in which.
    sizes = np.random.default_rng(1).permutation(len(made)) % collections
    covered = np.zeros(6, dtype=int)
    for number in range(collections):
        mine = [made[place] for place in np.flatnonzero(sizes == number)]
        found = oracle.tally(plan.gather(mine, each)).estimate().interval(0.9)
        covered += found.contains(TRUTH)
    # Of collections of 400 messages the normal law is off by a hair.
    statistical.check_share(covered, collections, 0.88, 0.93)


def test_numbers_of_many_messages_are_the_truth(tmp_path: Path) -> None:
    quarter = PEOPLE // 4
    # In the middle of bins of half a unit.
    people = [[2.25, quarter], [7.25, 2 * quarter], [9.75, PEOPLE - 3 * quarter]]
    mean = sum(value * count for value, count in people) / PEOPLE
    for oracle in (tn.mean.Duchi(1.0, (0, 10)), tn.mean.Hybrid(2.0, (0, 10))):
        plan, made = messages(oracle, people, tmp_path)
        found = oracle.tally(plan.gather(made, PEOPLE)).estimate().interval(LEVEL)
        assert found.low < mean < found.high < found.low + 0.5
    wave = tn.SquareWave(2.0, (0, 10), bins=20)
    plan, made = messages(wave, people, tmp_path)
    estimate = wave.tally(plan.gather(made, PEOPLE)).estimate()
    low, high = estimate.mean_interval(LEVEL)
    assert low < mean < high < low + 0.5
    assert set(np.argsort(estimate.frequencies)[-3:]) <= {3, 4, 5, 13, 14, 15, 18, 19}


def test_trees_of_many_messages_are_the_truth(tmp_path: Path) -> None:
    tree = tn.HierarchicalCollection(2.0, 16, fanout=4)
    people = [[code, PEOPLE // 16] for code in range(8)] + [[12, PEOPLE - PEOPLE // 16 * 8]]
    plan, made = messages(tree, people, tmp_path)
    found = tree.tally(plan.gather(made, PEOPLE)).estimate()
    low, high = found.range(0, 8).interval(LEVEL)
    assert low < 0.5 < high < low + 0.1
    low, high = found.range(8, 11).interval(LEVEL)
    assert low < 0 < high < low + 0.1
