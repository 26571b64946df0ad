"""The joint law of simulated tallies: all counts together, and the number of reports.

Laws of small populations are convolved from the law of one report, in exact fractions; those of
large ones are compared in their means and covariances.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.frequency.oracles.laws import MAKE, array_of, laws_of, supported

import turnout as tn

#: The number of reports, and how many of them support each answer.
Totals = tuple[int, ...]

SIMULATED = {name: make for name, make in MAKE.items() if not make(1.0, 3).no_simulation_because}


def node_laws(oracle: Any, rate: Fraction) -> list[dict[Totals, Fraction]]:
    """For each answer the law of what a node that holds it adds to a tally."""
    size = oracle.domain.size
    laws = []
    for law in laws_of(oracle):
        reached = supported(oracle, array_of(oracle, list(law)))
        added = {(0,) * (size + 1): 1 - rate}
        for codes, chance in zip(reached, law.values(), strict=True):
            row = (1, *(int(code in codes) for code in range(size)))
            added[row] = added.get(row, Fraction(0)) + rate * chance
        laws.append(added)
    return laws


def tally_law(oracle: Any, held: list[int], rate: Fraction) -> dict[Totals, Fraction]:
    """The law of a whole tally, in whole multiples of one fraction until it is done."""
    laws = node_laws(oracle, rate)
    unit = math.lcm(*(chance.denominator for added in laws for chance in added.values()))
    total = {(0,) * (oracle.domain.size + 1): 1}
    for added, nodes in zip(laws, held, strict=True):
        parts = {row: int(chance * unit) for row, chance in added.items()}
        for _ in range(nodes):
            longer: dict[Totals, int] = {}
            for sums, ways in total.items():
                for row, more in parts.items():
                    key = tuple(map(operator.add, sums, row))
                    longer[key] = longer.get(key, 0) + ways * more
            total = longer
    law = {sums: Fraction(ways, unit ** sum(held)) for sums, ways in total.items()}
    assert sum(law.values()) == 1
    return law


def drawn(oracle: Any, held: Any, rate: Fraction, runs: int) -> list[Totals]:
    """What simulated tallies say."""
    who = tn.Bernoulli(float(rate)) if rate < 1 else tn.Everyone()
    tallies = (oracle.simulate(held, participation=who, seed=seed) for seed in range(runs))
    return [(tally.received, *tally.support.tolist()) for tally in tallies]


def check_tallies(
    oracle: Any, held: list[int], rate: Fraction, runs: int, statistical: ModuleType
) -> None:
    law = tally_law(oracle, held, rate)
    seen = Counter(drawn(oracle, held, rate, runs))
    assert seen.keys() <= {totals for totals, chance in law.items() if chance > 0}
    statistical.check_law([seen[totals] for totals in law], [float(c) for c in law.values()])


@pytest.mark.parametrize("name", SIMULATED)
def test_tallies_of_a_few_nodes_have_their_joint_law(name: str, statistical: ModuleType) -> None:
    check_tallies(MAKE[name](1.0, 3), [2, 1, 0], Fraction(3, 4), 4000, statistical)


@pytest.mark.parametrize(
    ("size", "members"), [(k, d) for k in range(2, 7) for d in range(1, k)] + [(7, 3), (8, 4)]
)
def test_sets_of_few_nodes_have_their_joint_law(
    size: int, members: int, statistical: ModuleType
) -> None:
    # Who holds an answer of which part of the domain: nobody, somebody alone, two together.
    oracle = tn.SubsetSelection(1.0, size, subset_size=members)
    for held in ([0] * (size - 2) + [1, 2], [1] + [0] * (size - 2) + [1]):
        check_tallies(oracle, held, Fraction(1), 4000, statistical)


@pytest.mark.parametrize("members", [1, 2])
def test_sets_of_many_nodes_have_their_joint_law(members: int, statistical: ModuleType) -> None:
    # Enough for them to be drawn together, by binomials.
    oracle = tn.SubsetSelection(0.7, 3, subset_size=members)
    check_tallies(oracle, [20, 9, 31], Fraction(1), 20_000, statistical)


@pytest.mark.parametrize("name", SIMULATED)
def test_tallies_of_many_nodes_have_their_means_and_covariances(
    name: str, statistical: ModuleType
) -> None:
    oracle, rate = MAKE[name](1.0, 5), Fraction(3, 4)
    held = [600_000, 250_000, 0, 149_999, 1]
    mean, covariance = np.zeros(6), np.zeros((6, 6))
    for added, nodes in zip(node_laws(oracle, rate), held, strict=True):
        rows = np.array(list(added), dtype=float)
        chances = np.array([float(chance) for chance in added.values()])
        centre = chances @ rows
        mean += nodes * centre
        covariance += nodes * ((chances[:, None] * (rows - centre)).T @ (rows - centre))
    totals = drawn(oracle, held, rate, 3000)
    statistical.check_mean(totals, mean)
    statistical.check_covariance(totals, covariance)


@pytest.mark.parametrize(("size", "members"), [(40, None), (37, 30), (64, 2)])
def test_sets_of_a_trillion_nodes_have_their_covariances(
    size: int, members: int | None, statistical: ModuleType
) -> None:
    oracle = tn.SubsetSelection(1.0, size, subset_size=members)
    d, (p, q) = oracle.subset_size, oracle.support_probabilities
    held = np.array([(7 * code + 3) % 11 * 2 * 10**10 for code in range(size)], dtype=np.uint64)
    own, others = p * (d - 1) / (size - 1), (d - 1) / (size - 1) / (size - 2)
    neither = p * (d - 2) * others + (1 - p) * d * others
    nodes = held.astype(float)
    rest = nodes.sum() - nodes[:, None] - nodes
    covariance = (nodes[:, None] + nodes) * (own - p * q) + rest * (neither - q * q)
    np.fill_diagonal(covariance, nodes * p * (1 - p) + (nodes.sum() - nodes) * q * (1 - q))
    # A sum over all answers does not vary.
    assert abs(covariance.sum()) < 1e-9 * np.trace(covariance)
    supports = np.array([totals[1:] for totals in drawn(oracle, held, Fraction(1), 3000)])
    assert (supports.sum(axis=1) == d * int(held.sum())).all()
    mean = nodes * p + (nodes.sum() - nodes) * q
    scale = math.sqrt(nodes.sum())
    statistical.check_mean((supports - mean) / scale, np.zeros(size))
    statistical.check_covariance((supports - mean) / scale, covariance / nodes.sum())


@pytest.mark.parametrize("size", [2, 3, 63, 64, 65, 300])
@pytest.mark.parametrize("rate", [1e-9, 0.3, 1.0])
def test_the_counts_of_sets_add_up(size: int, rate: float) -> None:
    for members in sorted({1, size // 2, size - 1}):
        oracle = tn.SubsetSelection(1.0, size, subset_size=members)
        for nodes in (0, 1, 10, 10**4, 10**12, 2**63 // size):
            tally = oracle.simulate([nodes] * size, participation=rate, seed=nodes)
            assert int(tally.support.sum()) == members * tally.received % 2**64
            assert int(tally.support.max()) <= tally.received <= nodes * size
            assert rate < 1 or tally.received == nodes * size
