"""Shuffled reports: against rationals, and against the real thing enumerated and simulated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
import turnout.accounting as ta
from turnout.accounting.variation import ToldApart
from turnout.errors import InvalidTypeError

EPSILONS = (0.05, 0.3, 0.8)


def response(oracle: tn.DirectEncoding, shuffling: ModuleType, rate: float = 1.0) -> Any:
    """Return the oracle's law in rationals; its probabilities add up to one exactly."""
    size = oracle.domain.size
    change = Fraction(oracle.support_probabilities[1])
    return shuffling.Response(size, 1 - (size - 1) * change, change, Fraction(rate))


@pytest.mark.parametrize(
    ("size", "nodes"), [(2, 1), (2, 3), (2, 6), (3, 1), (3, 2), (3, 4), (3, 5), (4, 3), (5, 3)]
)
def test_delta_is_above_that_of_all_data_and_not_above_known_bounds(
    size: int, nodes: int, shuffling: ModuleType
) -> None:
    for local in (0.5, 1.5, 4.0):
        oracle = tn.DirectEncoding(local, size)
        law = response(oracle, shuffling)
        for epsilon in EPSILONS:
            worst = shuffling.worst_shuffled_delta(epsilon, nodes, law)
            found = ta.Shuffled(oracle, nodes).delta(epsilon)
            assert Fraction(found) >= worst * (1 - Fraction(1, 10**12))
            assert found <= law.known_bound(epsilon, nodes) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("size", "nodes"), [(2, 2), (2, 4), (3, 2), (3, 4), (4, 3)])
def test_hidden_participation_is_counted_and_stays_above_all_data(
    size: int, nodes: int, shuffling: ModuleType
) -> None:
    for local in (0.5, 1.5, 4.0):
        oracle = tn.DirectEncoding(local, size)
        for rate in (0.25, 0.9):
            shuffled = ta.Shuffled(oracle, nodes, participation=tn.Bernoulli(rate))
            law = response(oracle, shuffling, rate)
            for epsilon in EPSILONS:
                worst = shuffling.worst_shuffled_delta(epsilon, nodes, law)
                found = shuffled.delta(epsilon)
                assert Fraction(found) >= worst * (1 - Fraction(1, 10**12))
                assert found <= law.known_bound(epsilon, nodes) * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("size", "nodes"), [(2, 3), (2, 6), (3, 4), (4, 4)])
def test_the_lower_delta_is_below_that_of_the_worst_data(
    size: int, nodes: int, shuffling: ModuleType
) -> None:
    oracle = tn.DirectEncoding(1.0, size)
    shuffled = ta.Shuffled(oracle, nodes)
    for epsilon in EPSILONS:
        worst = shuffling.worst_shuffled_delta(epsilon, nodes, response(oracle, shuffling))
        lower = shuffled.lower_delta(epsilon)
        assert 0 <= lower <= float(worst) * (1 + 1e-9)
        assert lower <= shuffled.delta(epsilon)


@pytest.mark.parametrize("nodes", [8, 25, 60])
@pytest.mark.parametrize(("local", "size"), [(0.5, 3), (2.0, 3), (2.0, 10), (4.0, 10), (4.0, 50)])
def test_moderate_numbers_of_nodes_stay_above_many_data_sets(
    local: float, size: int, nodes: int, shuffling: ModuleType
) -> None:
    oracle = tn.DirectEncoding(local, size)
    keep, change = oracle.support_probabilities
    shuffled = ta.Shuffled(oracle, nodes)
    rest = nodes - 1
    data_sets = [
        (first, second, rest - first - second)
        for first in {0, 1, rest // 4, rest // 2, rest - 1, rest}
        for second in {0, 1, rest // 2}
        if first + second <= rest
    ]
    for share in (0.2, 0.5, 0.8):
        epsilon = share * local
        found = shuffled.delta(epsilon)
        for counts in data_sets:
            real = shuffling.data_set_delta(epsilon, counts, keep, change)
            assert real <= found * (1 + 1e-9) + 1e-15
        bound = response(oracle, shuffling).known_bound(epsilon, nodes)
        assert found <= bound * (1 + 1e-8) + 1e-14


@pytest.mark.parametrize("nodes", [1, 2, 9])
def test_any_variation_ratio_is_at_most_what_holds_for_all_randomizers(
    nodes: int, shuffling: ModuleType
) -> None:
    # Wang et al. (2023): alpha = beta / (ratio - 1), own = ratio alpha, common = 2 own / blanket.
    for ratio, variation, blanket in ((2.0, 0.25, 2.0), (3.0, 0.4, 2.5), (10.0, 0.8, 10.0)):
        other = Fraction(variation) / (Fraction(ratio) - 1)
        own = other * Fraction(ratio)
        shuffled = ta.Shuffled(ta.VariationRatio(ratio, variation, blanket), nodes)
        for epsilon in EPSILONS:
            common = min(Fraction(1), 2 * own / Fraction(blanket))
            bound = shuffling.shuffled_bound(epsilon, nodes, own, other, common)
            assert shuffled.delta(epsilon) <= float(bound) * (1 + 1e-9) + 1e-16


@pytest.mark.parametrize(("size", "nodes"), [(2, 3), (3, 2), (3, 4), (4, 3)])
def test_the_variation_ratio_of_direct_encoding_is_a_bound_for_it(
    size: int, nodes: int, shuffling: ModuleType
) -> None:
    for local in (0.5, 2.0):
        oracle = tn.DirectEncoding(local, size)
        law = response(oracle, shuffling)
        ratio = float(law.keep / law.change)
        described = ta.VariationRatio(ratio, float(law.keep - law.change), ratio)
        for epsilon in EPSILONS:
            worst = shuffling.worst_shuffled_delta(epsilon, nodes, law)
            found = ta.Shuffled(described, nodes).delta(epsilon)
            assert Fraction(found) >= worst * (1 - Fraction(1, 10**9))


def test_one_node_has_its_local_guarantee_only() -> None:
    oracle = tn.DirectEncoding(1.0, 4)
    shuffled = ta.Shuffled(oracle, 1)
    assert shuffled.delta(1.0 + 1e-9) == 0
    keep, change = oracle.support_probabilities
    for epsilon in (0.0, 0.5):
        local = keep - math.exp(epsilon) * change
        assert shuffled.delta(epsilon) == pytest.approx(local, rel=1e-11)


def test_more_nodes_are_never_worse() -> None:
    oracle = tn.DirectEncoding(2.0, 6)
    for epsilon in (0.05, 0.5):
        deltas = [ta.Shuffled(oracle, nodes).delta(epsilon) for nodes in (1, 3, 10, 100, 10_000)]
        assert all(one > two for one, two in itertools.pairwise(deltas))
    assert ta.Shuffled(oracle, 10**6).epsilon(1e-6) < ta.Shuffled(oracle, 10**4).epsilon(1e-6) < 2.0


def test_collected_reports_fall_into_the_worst_event_as_often_as_computed(
    references: ModuleType, shuffling: ModuleType, statistical: ModuleType
) -> None:
    # The library's own randomizer, run: node one holds 0 or 1, the others 2.
    oracle, nodes, runs, epsilon = tn.DirectEncoding(1.0, 3), 12, 20_000, 0.2
    law = response(oracle, shuffling)
    first, second = shuffling.shuffled_pair(nodes, law.keep, law.change, 2 * law.change)
    alpha = references.alpha_of(epsilon)
    event = {seen for seen, mass in first.items() if mass > alpha * second.get(seen, Fraction(0))}
    gap = Fraction(0)
    for value, masses, weight in ((0, first, 1), (1, second, -alpha)):
        mass = sum(masses.get(seen, Fraction(0)) for seen in event)
        gap += weight * mass
        held = np.array([value] + [2] * (nodes - 1), dtype=np.uint8)
        hits = sum(
            tuple(oracle.collect(held, seed=seed).support[:2].tolist()) in event
            for seed in range(runs)
        )
        statistical.check_share(hits, runs, float(mass), float(mass))
    assert float(gap) <= ta.Shuffled(oracle, nodes).delta(epsilon) * (1 + 1e-9)


class Coin:
    """A randomizer of one's own: it is no oracle, and says what shuffling asks."""

    name = "coin"
    domain = tn.Domain(["no", "yes"])
    fresh = True
    variation_ratio = ta.VariationRatio(3.0, 0.5, 3.0)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name}


class ToldCoin(Coin):
    """A coin that says how likely it falls on either side."""

    _told_apart = ToldApart(0.75, 0.25)


def test_whatever_says_its_variation_ratio_can_be_shuffled() -> None:
    own = ta.Shuffled(Coin(), 1000)
    assert own.delta(0.1) == ta.Shuffled(Coin.variation_ratio, 1000).delta(0.1)
    # It does not say what of its reports can be counted.
    assert own.lower_delta(0.1) == 0.0
    told = ta.Shuffled(ToldCoin(), 1000)
    assert 0.0 < told.lower_delta(0.1) <= told.delta(0.1)
    assert own.to_dict()["oracle"] == {"name": "coin"}


@pytest.mark.parametrize("oracle", [tn.DirectEncoding, Coin, "direct_encoding", 1.0, None])
def test_what_says_no_variation_ratio_is_refused(oracle: Any) -> None:
    with pytest.raises(InvalidTypeError, match="oracle must be a frequency oracle or a Variation"):
        ta.Shuffled(oracle, 1000)


class Computed(Coin):
    """A coin whose variation ratio takes long, or is something else."""

    asked: list[str]

    def __init__(self, answer: Any) -> None:
        self.asked, self._answer = [], answer

    @property
    def variation_ratio(self) -> Any:  # type: ignore[override]
        self.asked.append("variation_ratio")
        return self._answer

    @property
    def fresh(self) -> bool:  # type: ignore[override]
        self.asked.append("fresh")
        return True


def test_what_an_oracle_says_is_computed_when_it_is_needed_and_not_to_know_its_kind() -> None:
    oracle = Computed(Coin.variation_ratio)
    ta.Shuffled(oracle, 1000)
    assert oracle.asked == ["fresh", "variation_ratio"]


def test_an_oracle_whose_variation_ratio_is_none_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match=r"oracle\.variation_ratio must be a VariationRatio"):
        ta.Shuffled(Computed(3.0), 1000)


def test_no_delta_is_above_one() -> None:
    shuffled = ta.Shuffled(tn.DirectEncoding(40.0, 2), 100)
    assert 0.999 < shuffled.delta(1.0) <= 1.0


def test_where_e_to_the_epsilon_is_no_number_nothing_is_counted() -> None:
    shuffled = ta.Shuffled(tn.DirectEncoding(1.0, 2), 1000)
    assert np.asarray(shuffled.lower_delta([710.0, 1e5])).tolist() == [0.0, 0.0]
