"""Range queries by a tree of levels."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import turnout as tn
from turnout.errors import (
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnknownLabelError,
)
from turnout.frequency.ordered import HierarchicalTally, ordered
from turnout.frequency.ordered.levels import HierarchicalCollection
from turnout.frequency.ordered.tree import ConsistentTree, Tree

SHAPES = [(2, 2), (5, 4), (16, 4), (10, 3), (17, 4), (33, 2), (9, 20)]


@pytest.mark.parametrize(("size", "fanout"), SHAPES)
def test_runs_are_consecutive_and_cover_the_domain(size: int, fanout: int) -> None:
    tree = Tree(size, fanout)
    assert tree.sizes[-1] == size
    assert 2 <= tree.sizes[0] <= fanout
    codes = np.arange(size)
    for level, runs in enumerate(tree.sizes):
        run = tree.run(codes, level)
        assert set(np.diff(run)) <= {0, 1}
        assert run[0] == 0
        assert run[-1] == runs - 1
        assert np.bincount(run).max() == fanout ** (len(tree.sizes) - 1 - level)
        values = np.random.default_rng(1).normal(size=size)
        sums = [values[run == place].sum() for place in range(runs)]
        np.testing.assert_allclose(tree.sums(values, level), sums, atol=1e-12)


@pytest.mark.parametrize(("size", "fanout"), SHAPES)
def test_consistent_values_solve_the_normal_equations(size: int, fanout: int) -> None:
    tree = Tree(size, fanout)
    generator = np.random.default_rng(2)
    variances = generator.uniform(0.5, 3.0, size=len(tree.sizes))
    observed = [generator.normal(1 / runs, 0.1, size=runs) for runs in tree.sizes]
    consistent = ConsistentTree(tree, variances)
    # Minimise the weighted squares over codes that add up to one.
    normal, right = np.zeros((size + 1, size + 1)), np.zeros(size + 1)
    for level, values in enumerate(observed):
        design = np.eye(len(values))[tree.run(np.arange(size), level)].T
        normal[:size, :size] += design.T @ design / variances[level]
        right[:size] += design.T @ values / variances[level]
    normal[size, :size] = normal[:size, size] = right[size] = 1.0
    expected = np.linalg.solve(normal, right)[:size]
    np.testing.assert_allclose(consistent.leaves(observed), expected, atol=1e-11)
    rows = generator.normal(size=(3, size))
    constant = rows @ consistent.leaves([np.zeros(runs) for runs in tree.sizes])
    traced = constant + sum(
        part @ values for part, values in zip(consistent.coefficients(rows), observed, strict=True)
    )
    np.testing.assert_allclose(traced, rows @ expected, atol=1e-11)


HELD = np.array([30, 50, 120, 300, 500, 420, 250, 140, 90, 60, 20, 20])


@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_estimates_are_unbiased_with_the_errors_that_they_claim(
    rate: float, statistical: ModuleType
) -> None:
    collection = HierarchicalCollection(2.0, 12, fanout=3)
    assert [oracle.domain.size for oracle in collection.oracles] == [2, 4, 12]
    found = [
        collection.simulate(HELD, participation=tn.Bernoulli(rate), seed=seed).estimate()
        for seed in range(2000)
    ]
    truth = HELD / HELD.sum()
    statistical.check_mean([one.frequencies for one in found], truth)
    cumulative = np.array([one.cumulative[:-1] for one in found])
    errors = np.array([one.cumulative_standard_errors[:-1] for one in found[:200]])
    statistical.check_variance(cumulative, (errors**2).mean(axis=0), slack=0.02)
    shares = [one.range(2, 7) for one in found]
    claimed = np.mean([share.standard_error**2 for share in shares])
    statistical.check_variance([share.value for share in shares], claimed, slack=0.02)
    expected = truth[2:8].sum()
    limits = [share.interval(0.9) for share in shares]
    covered = sum(low <= expected <= high for low, high in limits)
    statistical.check_share(covered, len(found), 0.885, 0.915)
    whole = found[0].range(0, 11)
    assert whole.value == pytest.approx(1.0, abs=1e-12)
    assert whole.standard_error == pytest.approx(0.0, abs=1e-7)


def test_nodes_and_counts_give_one_law(statistical: ModuleType) -> None:
    collection = HierarchicalCollection(1.5, 10, fanout=3)
    counts = np.arange(10, 110, 10)
    values = np.repeat(np.arange(10), counts)
    rate = tn.Bernoulli(0.7)
    one = [collection.collect(values, participation=rate, seed=seed) for seed in range(1500)]
    other = [collection.simulate(counts, participation=rate, seed=seed) for seed in range(1500)]
    for level in range(len(collection.oracles)):
        first, second = (
            [tally.levels[level].support[-1] for tally in tallies] for tallies in (one, other)
        )
        statistical.check_same_law(first, second)
        received = [tally.levels[level].received for tally in one]
        statistical.check_mean(received, 0.7 * values.size / len(collection.oracles))


def test_a_node_reports_once_and_its_report_is_as_private_as_asked_for() -> None:
    collection = HierarchicalCollection(1.0, 100)
    values = np.arange(100).repeat(10)
    assert collection.collect(values, seed=1).received == 1000
    assert collection.realized_epsilon <= 1.0
    assert {oracle.epsilon for oracle in collection.oracles} == {1.0}


def test_long_ranges_are_better_than_those_of_all_answers_at_once() -> None:
    """Measured at uniform frequencies: for both, the standard error that holds there."""
    size, counts = 1024, [200] * 1024
    tree = HierarchicalCollection(1.0, size, oracle=tn.DirectEncoding)
    flat = ordered(tn.DirectEncoding(1.0, size).simulate(counts, seed=1))
    deep = tree.simulate(counts, seed=1).estimate()
    for low, high in [(0, 511), (100, 800), (300, 420)]:
        ratio = flat.range(low, high).standard_error / deep.range(low, high).standard_error
        assert ratio > 4
    truth = 701 / 1024
    errors = np.array(
        [
            [
                ordered(tn.DirectEncoding(1.0, size).simulate(counts, seed=seed))
                .range(100, 800)
                .value
                - truth,
                tree.simulate(counts, seed=seed).estimate().range(100, 800).value - truth,
            ]
            for seed in range(60)
        ]
    )
    flat_error, deep_error = np.sqrt((errors**2).mean(axis=0))
    assert flat_error > 5 * deep_error


def test_short_ranges_of_small_domains_are_not() -> None:
    counts = [10_000] * 8
    deep = HierarchicalCollection(3.0, 8, fanout=2, oracle=tn.DirectEncoding)
    flat = ordered(tn.DirectEncoding(3.0, 8).simulate(counts, seed=1))
    assert (
        flat.range(3, 3).standard_error
        < deep.simulate(counts, seed=1).estimate().range(3, 3).standard_error
    )


def test_tallies_add_up_and_seeds_repeat_them() -> None:
    collection = HierarchicalCollection(1.0, tn.Domain(["a", "b", "c", "d", "e"]), fanout=2)
    assert "3 levels" in repr(collection)
    one = collection.collect(["a", "b"] * 50, seed=1)
    other = collection.collect(["e"] * 70, seed=2)
    both = one + other
    assert both.nodes == 170
    assert both.received == 170
    assert both == other + one
    assert collection.collect(["a", "b"] * 50, seed=1) == one
    assert collection.collect(["a", "b"] * 50) != collection.collect(["a", "b"] * 50)
    assert collection == HierarchicalCollection(1.0, collection.domain, fanout=2)
    assert hash(collection) == hash(HierarchicalCollection(1.0, collection.domain, fanout=2))
    different = HierarchicalCollection(1.0, collection.domain, fanout=3)
    assert collection != different
    with pytest.raises(PlanMismatchError, match="other was made under another plan"):
        one + different.collect(["a"] * 9)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]
    estimate = both.estimate()
    assert estimate.quantile(0.5).label in collection.domain.labels
    assert (estimate.nodes, estimate.received) == (170, 170)
    assert "170 nodes" in repr(both)


def test_what_cannot_be_collected_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="fanout"):
        HierarchicalCollection(1.0, 8, fanout=1)
    with pytest.raises(InvalidValueError, match="oracle must be one of"):
        HierarchicalCollection(1.0, 8, oracle="best")
    with pytest.raises(InvalidTypeError, match="oracle must be"):
        HierarchicalCollection(1.0, 8, oracle=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"oracle\(epsilon, domain\) must be an oracle"):
        HierarchicalCollection(1.0, 8, oracle=lambda *_: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidValueError, match=r"the domain Domain\.from_integers\(4\)"):
        HierarchicalCollection(1.0, 16, oracle=lambda epsilon, _: tn.DirectEncoding(epsilon, 3))
    with pytest.raises(InvalidValueError, match=r"must have at most the epsilon 1\.0"):
        HierarchicalCollection(1.0, 16, oracle=lambda _, runs: tn.DirectEncoding(5.0, runs))
    with pytest.raises(InvalidValueError, match="epsilon"):
        HierarchicalCollection(-1.0, 8)
    collection = HierarchicalCollection(1.0, tn.Domain(["a", "b", "c"]), fanout=2)
    with pytest.raises(UnknownLabelError):
        collection.collect(["z"])
    with pytest.raises(InvalidValueError, match="one rate for all nodes"):
        collection.collect(["a"], participation=tn.Personalized([0.5]))
    one = collection.collect(["a"] * 40)
    sums = [(level.support, level.received) for level in one.levels]
    with pytest.raises(InvalidValueError, match="sums must be of 2 parts, got 1"):
        HierarchicalTally(one.plan, sums[:1], 40, 40)
    with pytest.raises(InvalidValueError, match="add up to 41"):
        HierarchicalTally(one.plan, sums, 41, 41)
    with pytest.raises(InvalidValueError, match="method must be one of 'hajek'"):
        one.estimate("T")
    with pytest.raises(EstimatorError, match="no reports"):
        collection.collect(["a"]).estimate()
