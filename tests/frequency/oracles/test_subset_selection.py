"""Subset selection: the guarantee as exact fractions, the law of sets, tallies and estimates."""

from __future__ import annotations

import itertools
import math
import pickle
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.subset_selection import SubsetSelection

CHUNK = 2**16

EPSILONS = [1e-6, 1e-3, 0.1, 0.5, math.log(2), 1.0, 1.7, 2.0, 3.0, 5.0, 10.0, 20.0, 33.3, 42.0]


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x: its value to 80 digits, the last of which may be rounded up."""
    return Fraction(Context(prec=80).exp(Decimal(x))) * (1 - Fraction(1, 10**78))


def as_bits(rows: npt.NDArray[Any], size: int) -> npt.NDArray[np.uint8]:
    """Unpack reports: one row of zeros and ones for each."""
    rows = np.ascontiguousarray(rows, dtype="<u8")
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, :size]


def own_probability(oracle: SubsetSelection) -> Fraction:
    return Fraction(oracle._core.own_words, 2**64)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_set_is_more_than_e_to_the_epsilon_times_as_likely_under_another_answer(
    epsilon: float,
) -> None:
    for size, members in ((2, None), (5, None), (5, 3), (6, 1), (6, 5)):
        oracle = SubsetSelection(epsilon, size, subset_size=members)
        p, d = own_probability(oracle), oracle.subset_size
        sets = list(itertools.combinations(range(size), d))
        with_own, without = math.comb(size - 1, d - 1), math.comb(size - 1, d)
        ratios = []
        for answers in sets:
            masses = [p / with_own if x in answers else (1 - p) / without for x in range(size)]
            ratios.append(max(masses) / min(masses))
        assert set(ratios) == {oracle.realized_ratio}
        assert 1 < oracle.realized_ratio <= exponential_below(epsilon)
        assert oracle.realized_ratio <= exponential_below(oracle.realized_epsilon)
        assert oracle.realized_epsilon <= epsilon
        slack = 1e-8 if epsilon <= 20 else 0.5
        assert oracle.realized_epsilon >= epsilon - slack
        q = sum(p / with_own if 0 in s else (1 - p) / without for s in sets if 1 in s)
        assert [float(p), float(q)] == pytest.approx(oracle.support_probabilities, rel=1e-14)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("size", [2, 3, 10, 100, 1000])
def test_probabilities_and_sizes_are_those_of_the_published_formulas(
    epsilon: float, size: int
) -> None:
    oracle = SubsetSelection(epsilon, size)
    d = oracle.subset_size
    assert abs(d - max(1.0, size / (math.exp(epsilon) + 1))) <= 1
    p, q = oracle.support_probabilities
    weight = d * math.exp(epsilon)
    assert math.isclose(p, weight / (weight + size - d), rel_tol=1e-9)
    tolerance = 1e-8 if epsilon <= 20 else 0.1
    without = (size - d) / (weight + size - d)
    expected = (p * (d - 1) + without * d) / (size - 1)
    assert math.isclose(q, expected, rel_tol=tolerance)

    def variance(members: int) -> float:
        weight = members * math.exp(epsilon)
        p = weight / (weight + size - members)
        q = (p * (members - 1) + (1 - p) * members) / (size - 1)
        return q * (1 - q) / (p - q) ** 2

    if 1e-3 < epsilon <= 20:
        best = min(range(1, size), key=variance)
        assert variance(d) <= variance(best) * (1 + 1e-9)
    direct = tn.DirectEncoding(epsilon, size).support_probabilities
    single = SubsetSelection(epsilon, size, subset_size=1)
    assert single.support_probabilities == pytest.approx(direct, rel=tolerance)


@pytest.mark.parametrize(("size", "members"), [(3, 1), (3, 2), (5, 2), (5, 3)])
def test_every_set_has_its_probability(size: int, members: int, statistical: ModuleType) -> None:
    oracle = SubsetSelection(1.2, size, subset_size=members)
    p, _ = oracle.support_probabilities
    for answer in range(size):
        reports = oracle.randomize(np.full(300_000, answer), seed=answer)
        observed = np.bincount(reports.codes[:, 0].astype(np.int64), minlength=2**size)
        masses = np.zeros(2**size)
        for answers in itertools.combinations(range(size), members):
            own = answer in answers
            number = math.comb(size - 1, members - 1 if own else members)
            masses[sum(1 << x for x in answers)] = (p if own else 1 - p) / number
        statistical.check_law(observed, masses)


def ways(nodes: int) -> list[tn.Participation]:
    rates = np.random.default_rng(5).uniform(0.01, 1.0, nodes)
    return [tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)]


@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
@pytest.mark.parametrize(("nodes", "size"), [(0, 3), (1, 64), (300, 65), (CHUNK + 7, 100)])
def test_a_tally_counts_members_and_collecting_is_the_same_in_one_pass(
    way: int, nodes: int, size: int
) -> None:
    oracle = SubsetSelection(1.0, size)
    values = np.random.default_rng(nodes).integers(0, size, nodes)
    who = ways(nodes)[way]
    reports = oracle.randomize(values, participation=who, seed=7)
    tally = oracle.tally(reports)
    assert tally == oracle.collect(values, participation=who, seed=7)
    assert reports == oracle.randomize(values, participation=who, seed=7)
    if nodes > 1:
        assert reports != oracle.randomize(values, participation=who, seed=8)
    bits = as_bits(reports.codes, size)
    assert (bits.sum(axis=1) == oracle.subset_size).all()
    assert tally.support.tolist() == bits.sum(axis=0, dtype=np.int64).tolist()
    assert np.array_equal(oracle._kernel.supports(reports.codes), reports.codes)
    if reports.probabilities is not None:
        units = np.rint(2**32 / reports.probabilities).astype(np.int64)
        assert tally.weights is not None
        expected = (bits.T * units).sum(axis=1) / 2**32
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-15)
        assert math.isclose(tally.weights.total_inverse, units.sum() / 2**32, rel_tol=1e-15)


def test_estimates_are_unbiased_with_the_predicted_variance(statistical: ModuleType) -> None:
    oracle = SubsetSelection(1.0, 7)
    counts = np.array([600, 250, 100, 50, 0, 0, 0])
    values = np.repeat(np.arange(7), counts)
    for who, method in itertools.product([tn.Everyone(), tn.Bernoulli(0.4)], ["g", "c_hat"]):
        variance = tn.estimator_variance(oracle, who, method=method, true_counts=counts)
        for draw, population in ((oracle.simulate, counts), (oracle.collect, values)):
            tallies = (draw(population, participation=who, seed=seed) for seed in range(3000))
            estimates = [tally.estimate(method=method).counts for tally in tallies]
            statistical.check_mean(estimates, counts)
            statistical.check_variance(estimates, variance)


def test_personal_participation_is_estimated_without_bias(statistical: ModuleType) -> None:
    oracle = SubsetSelection(1.5, 6)
    values = np.repeat(np.arange(6), [200, 100, 50, 30, 20, 0])
    # Those who hold a late answer take part more often.
    who = tn.Personalized(0.2 + 0.15 * values)
    variance = tn.estimator_variance(oracle, who, method="horvitz_thompson", values=values)
    draws = (oracle.collect(values, participation=who, seed=seed) for seed in range(4000))
    estimates = [tally.estimate(method="horvitz_thompson").counts for tally in draws]
    statistical.check_mean(estimates, np.bincount(values, minlength=6))
    statistical.check_variance(estimates, variance)


def test_the_size_of_a_report_is_that_of_the_number_of_a_set() -> None:
    for size in (2, 3, 7, 64, 100, 1000):
        for members in sorted({1, 2, size // 2, size - 1} & set(range(1, size))):
            oracle = SubsetSelection(1.0, size, subset_size=members)
            sets = math.comb(size, members)
            assert 2**oracle.report_bits >= sets
            assert oracle.report_bits == 0 or 2 ** (oracle.report_bits - 1) < sets
    # By logarithms, against the exact number.
    for size, members in ((4096, 1101), (4097, 1102), (20_000, 1), (2**14, 1), (20_000, 7000)):
        oracle = SubsetSelection(1.0, size, subset_size=members)
        assert oracle.report_bits == (math.comb(size, members) - 1).bit_length()


def test_an_oracle_describes_itself_and_files_hold_its_reports(tmp_path: Path) -> None:
    oracle = SubsetSelection(1.25, tn.Domain(["a", "b", "c", "d", "e"]), subset_size=3)
    for copy in (pickle.loads(pickle.dumps(oracle)), FrequencyOracle.from_dict(oracle.to_dict())):
        assert copy == oracle
        assert isinstance(copy, SubsetSelection)
        assert copy.subset_size == 3
        assert hash(copy) == hash(oracle)
    assert oracle != SubsetSelection(1.25, oracle.domain, subset_size=2)
    assert oracle != tn.DirectEncoding(1.25, oracle.domain)
    default = SubsetSelection(1.0, 100)
    assert default == SubsetSelection(1.0, 100, subset_size=27)
    assert repr(default).endswith("subset_size=27)")
    for who in ways(100):
        reports = oracle.randomize(["a", "c"] * 50, participation=who, seed=1)
        for suffix in ("parquet", "arrow"):
            write_reports(reports, tmp_path / f"reports.{suffix}")
            assert read_reports(tmp_path / f"reports.{suffix}") == reports
    description = oracle.to_dict()
    for wrong in ({"subset_size": 5}, {"subset_size": None}, {"subset_size": "3"}, {"size": 3}):
        with pytest.raises(CorruptDataError):
            FrequencyOracle.from_dict({**description, **wrong})
    variation = oracle.variation_ratio
    p = own_probability(oracle)
    # The distance of the reports of two answers, over all sets.
    sets = list(itertools.combinations(range(5), 3))
    law = [[p / 6 if x in s else (1 - p) / 4 for s in sets] for x in (0, 1)]
    distance = sum(abs(one - other) for one, other in zip(*law, strict=True)) / 2
    assert distance <= variation.total_variation <= distance * (1 + Fraction(1, 10**11))


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="domain must have at most 1048576 answers"):
        SubsetSelection(1.0, 2**20 + 1)
    for size in (0, 10, -1):
        with pytest.raises(InvalidValueError, match="subset_size must be an integer from 1 to 9"):
            SubsetSelection(1.0, 10, subset_size=size)
    mistyped: list[Any] = [True, 2.5, "3"]
    for value in mistyped:
        with pytest.raises(InvalidTypeError, match="subset_size must be"):
            SubsetSelection(1.0, 10, subset_size=value)
    for epsilon in (0.0, -1.0, math.nan, math.inf, 42.1):
        with pytest.raises(InvalidValueError, match="epsilon must be"):
            SubsetSelection(epsilon, 10)
    for epsilon in (1e-12, 5e-324):
        with pytest.raises(InvalidValueError, match="too small for a domain of 10 codes"):
            SubsetSelection(epsilon, 10)
    oracle = SubsetSelection(1.0, 70, subset_size=2)

    def given_reports(codes: Any) -> tn.Reports:
        return tn.Reports(oracle, tn.Bernoulli(0.5), codes, nodes=10)

    assert len(given_reports([[3, 0], [1, 32]])) == 2
    for wrong in ([0, 0], [1, 0], [7, 0], [1, 64], [1, 3]):
        with pytest.raises(InvalidValueError, match=r"reports\[1\] .* 2 of the first 70 bits"):
            given_reports([[1, 1], wrong])
    for shape in ([1, 2], [[1], [2]], [[1, 1, 0]]):
        with pytest.raises((InvalidTypeError, InvalidValueError)):
            given_reports(shape)


def test_sets_of_one_answer_hide_among_others_like_direct_encoding() -> None:
    one = tn.SubsetSelection(3.0, 20)
    assert one.subset_size == 1
    shuffled = tn.accounting.Shuffled(one, 10_000).epsilon(1e-6)
    direct = tn.accounting.Shuffled(tn.DirectEncoding(3.0, 20), 10_000).epsilon(1e-6)
    assert shuffled == pytest.approx(direct, rel=1e-6)
    # As of every pure oracle it would be nearly twice as much.
    larger = tn.accounting.Shuffled(tn.SubsetSelection(3.0, 20, subset_size=2), 10_000)
    assert larger.epsilon(1e-6) > 1.5 * shuffled
