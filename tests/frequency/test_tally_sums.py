"""Tallies add up in any order, and are equal only if every number is."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.frequency.test_tally import collected, personal_tally, plain_tally, u64

import turnout as tn
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
)

KINDS = pytest.mark.parametrize("kind", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])


@KINDS
def test_tallies_add_up_in_any_order_and_grouping(kind: int) -> None:
    parts = [collected(5, 300 * seed, kind, seed) for seed in range(4)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    for order in itertools.permutations(parts):
        assert sum(order) == total
        assert (order[0] + order[1]) + (order[2] + order[3]) == total
        assert order[0].merge(order[1].merge(order[2].merge(order[3]))) == total
        assert sum(order[1:], order[0]).to_bytes() == total.to_bytes()
    assert total.nodes == sum(part.nodes for part in parts) == 1800
    assert total.received == sum(part.received for part in parts)
    assert total.support.tolist() == np.sum([part.support for part in parts], axis=0).tolist()


def test_the_sums_of_personal_tallies_are_exact() -> None:
    nodes, size = 3000, 4
    codes = np.random.default_rng(1).integers(0, size, nodes)
    rates = np.random.default_rng(2).uniform(0.001, 1, nodes)
    oracle = tn.DirectEncoding(1.0, size)

    def reports_of(part: slice) -> tn.Reports:
        return oracle.randomize(codes[part], participation=tn.Personalized(rates[part]), seed=5)

    pieces = [reports_of(slice(start, start + 1000)) for start in range(0, nodes, 1000)]
    whole = oracle.tally(tn.Reports.concatenate(pieces))
    assert sum(oracle.tally(piece) for piece in pieces) == whole
    assert whole.design == DesignSums.of(rates)
    assert whole.weights is not None
    reported = np.concatenate([piece.codes for piece in pieces])
    own = np.concatenate(
        [piece.probabilities for piece in pieces if piece.probabilities is not None]
    )
    np.testing.assert_allclose(
        whole.weights.inverse, np.bincount(reported, 1 / own, minlength=size), rtol=1e-8
    )
    np.testing.assert_allclose(
        whole.weights.inverse_squared, np.bincount(reported, own**-2, minlength=size), rtol=1e-8
    )


def test_sums_of_weights_carry_from_the_low_to_the_high_half() -> None:
    one = WeightedSums(u64((2**64 - 1, 0), (0, 1)), u64((2**64 - 1, 7), (0, 8)))
    other = WeightedSums(u64((1, 0), (2, 0)), u64((2**64 - 1, 2), (0, 3)))
    total = one + other
    assert total == WeightedSums(u64((0, 1), (2, 1)), u64((2**64 - 2, 10), (0, 11)))
    assert total.inverse.tolist() == [2.0**32]


@KINDS
def test_adding_changes_neither_part(kind: int) -> None:
    one, other = collected(3, 100, kind, 1), collected(3, 50, kind, 2)
    before = one.to_bytes(), other.to_bytes()
    _ = one + other
    assert (one.to_bytes(), other.to_bytes()) == before
    assert not (one + other).support.flags.writeable


@KINDS
def test_the_tally_of_nobody_adds_nothing(kind: int) -> None:
    tally = collected(3, 100, kind, 1)
    assert tally + collected(3, 0, kind, 2) == tally
    assert sum([tally]) == tally


def test_tallies_under_another_plan_are_not_added() -> None:
    oracle = tn.DirectEncoding(1.0, tn.Domain(["a", "b"]))
    tally = oracle.collect(["a", "b"] * 20, participation=tn.Bernoulli(0.5), seed=1)
    others = {
        r"other was made .*: epsilon 2\.0 instead of 1\.0": tn.DirectEncoding(2.0, oracle.domain),
        r"domain .*'b', 'a'.* instead of .*'a', 'b'": tn.DirectEncoding(1.0, tn.Domain(["b", "a"])),
        r"participation Everyone\(\) instead of Bernoulli": oracle,
    }
    for message, maker in others.items():
        other = maker.collect(["a", "b"] * 20, seed=1)
        for add in (lambda other: tally + other, tally.merge, lambda other: sum([tally, other])):
            with pytest.raises(PlanMismatchError, match=message):
                add(other)


@pytest.mark.parametrize("other", [None, 1, 0.0, "tally", [1, 2], np.array([1, 2])])
def test_only_tallies_are_added(other: Any) -> None:
    tally = plain_tally()
    with pytest.raises(InvalidTypeError, match="other must be a Tally, got"):
        tally.merge(other)
    with pytest.raises(TypeError):
        tally + other
    with pytest.raises(TypeError):
        other + tally


def test_counts_that_no_longer_fit_are_refused_and_never_wrap_around() -> None:
    oracle = tn.DirectEncoding(1.0, 2)
    tally = oracle.simulate([2**63, 2**63 - 1], seed=1)
    assert tally.nodes == 2**64 - 1
    assert oracle.simulate(np.array([2**63, 2**63 - 1], dtype=np.uint64), seed=1) == tally
    with pytest.raises(InvalidValueError, match="must"):
        tally + tally


def test_equality_sees_every_number() -> None:
    plan = tn.Plan(tn.DirectEncoding(0.5, 2), tn.Personalized([]))

    def make(
        *,
        support: tuple[int, int] = (1, 2),
        nodes: int = 9,
        weight: int = 2**40,
        square: int = 2**50,
        design: int = 5 * 2**64,
        design_square: int = 2**64,
    ) -> tn.Tally:
        return tn.Tally(
            plan,
            support,
            sum(support),
            nodes,
            weights=WeightedSums(
                u64((weight, 0), (2**40, 0), (weight + 2**40, 0)),
                u64((square, 0), (2**50, 0), (square + 2**50, 0)),
            ),
            design=DesignSums(design, design_square),
        )

    changes: list[dict[str, Any]] = [
        {"support": (2, 1)},
        {"support": (1, 3)},
        {"nodes": 10},
        {"weight": 2**40 + 1},
        {"square": 2**50 + 1},
        {"design": 5 * 2**64 + 1},
        {"design_square": 2**64 + 1},
    ]
    assert make() == make()
    assert hash(make()) == hash(make())
    for change in changes:
        assert make(**change) != make()
        assert make(**change).to_bytes() != make().to_bytes()
        assert tn.Tally.from_bytes(make(**change).to_bytes()) == make(**change)
    assert make() != "tally"


def test_a_tally_cannot_be_changed() -> None:
    tally = plain_tally()
    for name in ("plan", "oracle", "support", "received", "nodes", "weights", "design", "anything"):
        with pytest.raises(AttributeError):
            setattr(tally, name, None)
    with pytest.raises(ValueError, match="read-only"):
        tally.support[0] = 1
    counts = np.array([1, 2], dtype=np.uint64)
    kept = tn.Tally(tn.Plan(tn.DirectEncoding(1.0, 2), tn.Bernoulli(0.5)), counts, 3, 5)
    counts[0] = 7
    assert kept.support.tolist() == [1, 2]
    weights = personal_tally().weights
    assert weights is not None
    for sums in (weights.inverse, weights.inverse_squared):
        with pytest.raises(ValueError, match="read-only"):
            sums[0] = 1.0


def test_a_tally_shows_what_it_holds() -> None:
    assert repr(tn.DirectEncoding(1.0, 2).simulate([2, 3], seed=1)) == (
        "Tally(5 reports of 5 nodes, DirectEncoding(epsilon=1.0, "
        "domain=Domain.from_integers(2)), Everyone())"
    )


@KINDS
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_pickles_are_equal_and_as_frozen(
    kind: int, duplicate: Callable[[Any], Any]
) -> None:
    tally = collected(4, 100, kind, 1)
    other = duplicate(tally)
    assert other == tally
    assert hash(other) == hash(tally)
    assert other.to_bytes() == tally.to_bytes()
    assert not other.support.flags.writeable
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = other + tally
    assert duplicate(tally.oracle) == tally.oracle
    assert duplicate(tally.oracle).collect([], seed=1) == tally.oracle.collect([], seed=1)


@KINDS
def test_estimates_can_be_pickled(kind: int) -> None:
    estimate = collected(4, 500, kind, 1).estimate().project("simplex")
    other = pickle.loads(pickle.dumps(estimate))
    assert other.plan == estimate.plan
    assert (other.method, other.nodes, other.received) == ("hajek", 500, estimate.received)
    assert other.postprocessing == "simplex"
    np.testing.assert_array_equal(other.frequencies, estimate.frequencies)
    np.testing.assert_array_equal(other.standard_errors, estimate.standard_errors)
    np.testing.assert_array_equal(other.interval().low, estimate.interval().low)
    assert other.to_records() == estimate.to_records()
