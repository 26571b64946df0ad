"""Count-mean sketches: the guarantee, laws of reports, tallies, their error, and bad input."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.frequency.oracles.pools import with_functions

import turnout as tn
from turnout import FrequencyOracle
from turnout.collecting import report_files
from turnout.errors import InvalidTypeError, InvalidValueError, PlanMismatchError

EPSILONS = [1e-4, 0.1, 1.0, 2.0, 5.0, 10.0, 20.0, 42.0]

KINDS: dict[str, Callable[..., Any]] = {
    "plain": tn.CountMeanSketch,
    "hadamard": tn.HadamardCountMeanSketch,
}

kinds = pytest.mark.parametrize("kind", KINDS)


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x, less than 2^-250 below it: the series, every term rounded down."""
    numerator, denominator = x.as_integer_ratio()
    term = total = 1 << 400
    index = 0
    while term:
        index += 1
        term = term * numerator // (denominator * index)
        total += term
    return Fraction(total, 1 << 400)


def supports_of(oracle: Any, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which answers each report supports, as truth values."""
    bits = oracle._kernel.supports(reports).view(np.uint8)
    rows = np.unpackbits(bits, axis=1, bitorder="little")[:, : oracle.domain.size]
    return rows.astype(bool)


def buckets_of(oracle: tn.CountMeanSketch) -> npt.NDArray[np.int64]:
    """The bucket of every answer under every function, read off reports of single bits."""
    found = np.full((oracle.hashes, oracle.domain.size), -1)
    for function, bucket in itertools.product(range(oracle.hashes), range(oracle.width)):
        report = np.zeros((1, oracle.report_shape[0]), dtype=np.uint64)
        report[0, 0] = function
        report[0, 1 + bucket // 64] = 1 << (bucket % 64)
        found[function, supports_of(oracle, report)[0]] = bucket
    assert (found >= 0).all()
    return found


@pytest.mark.parametrize("epsilon", EPSILONS)
@kinds
def test_the_likelihood_ratio_is_at_most_e_to_the_epsilon(kind: str, epsilon: float) -> None:
    oracle = KINDS[kind](epsilon, 300)
    assert isinstance(oracle.realized_ratio, Fraction)
    bound = exponential_below(epsilon)
    assert 1 < oracle.realized_ratio <= bound
    assert oracle.realized_ratio >= bound * (1 - Fraction(1, 10**8))
    assert epsilon * (1 - 1e-7) <= oracle.realized_epsilon <= epsilon
    assert exponential_below(oracle.realized_epsilon) >= oracle.realized_ratio


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("width", [2, 64, 1024])
def test_the_support_probabilities_are_those_of_bits_and_collisions(
    epsilon: float, width: int
) -> None:
    modulus = 2**31 - 1
    sizes = [-(-(j + 1) * modulus // width) + (-j * modulus // width) for j in range(width)]
    assert sum(sizes) == modulus
    collision = sum(Fraction(size, modulus) ** 2 for size in sizes)
    plain = tn.CountMeanSketch(epsilon, 300, width=width)
    keep = Fraction(math.exp(epsilon / 2)) / (1 + Fraction(math.exp(epsilon / 2)))
    p, q = plain.support_probabilities
    assert plain._collisions(2) == collision
    assert math.isclose(p, keep, rel_tol=1e-9)
    assert math.isclose(q, collision * keep + (1 - collision) * (1 - keep), rel_tol=1e-8)
    hadamard = tn.HadamardCountMeanSketch(epsilon, 300, width=width)
    keep = Fraction(math.exp(epsilon)) / (1 + Fraction(math.exp(epsilon)))
    p, q = hadamard.support_probabilities
    assert math.isclose(p, keep, rel_tol=1e-9)
    assert math.isclose(q, collision * keep + (1 - collision) / 2, rel_tol=1e-9)


def test_the_default_width_is_the_least_with_which_collisions_cost_little() -> None:
    for epsilon in (0.5, 4.0, 6.0, 8.0, 9.0):
        oracle = tn.CountMeanSketch(epsilon, 10)

        def cost(width: int, epsilon: float = epsilon) -> float:
            one = tn.CountMeanSketch(epsilon, 10, hashes=1, width=width)
            p, q = one.support_probabilities
            least = 1 - p
            return q * (1 - q) / (p - q) ** 2 / (least * (1 - least) / (p - least) ** 2)

        assert oracle.hashes == 1024
        assert oracle.width == 4096 or cost(oracle.width) <= 1.05
        assert oracle.width == 256 or cost(oracle.width // 2) > 1.05
    assert tn.HadamardCountMeanSketch(1.0, 10).width == 256


@pytest.mark.parametrize("width", [2, 3])
def test_every_row_has_its_exact_probability(width: int, statistical: ModuleType) -> None:
    oracle = tn.CountMeanSketch(1.0, 5, hashes=3, width=width)
    rows = [(j, bits) for j in range(3) for bits in range(2**width)]
    supports = supports_of(oracle, np.array(rows, dtype=np.uint64))
    buckets = buckets_of(oracle)
    # ((1 - f) / f)^2 is the ratio: f is a rational number.
    root = Fraction(
        math.isqrt(oracle.realized_ratio.numerator), math.isqrt(oracle.realized_ratio.denominator)
    )
    flip = 1 / (1 + root)
    assert ((1 - flip) / flip) ** 2 == oracle.realized_ratio
    laws = []
    for answer in range(5):
        law = []
        for j, bits in rows:
            wrong = (bits ^ (1 << int(buckets[j, answer]))).bit_count()
            law.append(flip**wrong * (1 - flip) ** (width - wrong) / 3)
        assert sum(law) == 1
        laws.append(law)
        reports = oracle.randomize(np.full(100_000, answer), seed=answer).codes
        assert reports.shape == (100_000, 2)
        cells = (reports[:, 0] * 2**width + reports[:, 1]).astype(np.int64)
        found = np.bincount(cells, minlength=len(rows))
        statistical.check_law(found, [float(mass) for mass in law])
    for one, other in itertools.permutations(range(5), 2):
        ratios = {a / b for a, b in zip(laws[one], laws[other], strict=True)}
        assert max(ratios) <= oracle.realized_ratio
        distance = sum(max(a - b, Fraction(0)) for a, b in zip(laws[one], laws[other], strict=True))
        assert distance <= oracle.variation_ratio.total_variation
        # The likelihood takes two values for each report.
        for row, (a, b) in enumerate(zip(laws[one], laws[other], strict=True)):
            exponent = int(supports[row, one]) - int(supports[row, other])
            assert a / b == oracle.realized_ratio**exponent


def test_every_entry_has_its_exact_probability(statistical: ModuleType) -> None:
    oracle = tn.HadamardCountMeanSketch(1.0, 5, hashes=3, width=4)
    supports = supports_of(oracle, np.arange(24, dtype=np.uint32))
    # Of the two entries of a row one supports an answer; all support in row 0.
    pairs = supports.reshape(12, 2, 5)
    assert (pairs.sum(axis=1) == 1).all()
    assert pairs[::4, 0].all()
    ratio = oracle.realized_ratio
    own, other = ratio / (1 + ratio) / 12, 1 / (1 + ratio) / 12
    for answer in range(5):
        law = [own if supported else other for supported in supports[:, answer]]
        assert sum(law) == 1
        reports = oracle.randomize(np.full(100_000, answer), seed=answer).codes
        assert reports.dtype == np.uint32
        found = np.bincount(reports, minlength=24)
        statistical.check_law(found, [float(mass) for mass in law])
    for one, two in itertools.permutations(range(5), 2):
        distance = (own - other) * int((supports[:, one] & ~supports[:, two]).sum())
        assert distance <= oracle.variation_ratio.total_variation


def test_both_sketches_have_the_same_functions() -> None:
    plain = tn.CountMeanSketch(1.0, 50, hashes=6, width=8)
    hadamard = tn.HadamardCountMeanSketch(1.0, 50, hashes=6, width=8)
    entries = supports_of(hadamard, np.arange(96, dtype=np.uint32)).reshape(6, 8, 2, 50)
    for function, row in itertools.product(range(6), range(8)):
        odd = [(int(bucket) & row).bit_count() % 2 for bucket in buckets_of(plain)[function]]
        assert entries[function, row, 1].tolist() == [bool(parity) for parity in odd]


@kinds
@pytest.mark.parametrize("width", [4, 64, 256])
@pytest.mark.parametrize("way", [0, 1, 2])
def test_collecting_equals_randomizing_and_tallying(kind: str, width: int, way: int) -> None:
    nodes, size = 70_000, 40
    oracle = KINDS[kind](1.0, size, hashes=16, width=width)
    values = np.random.default_rng(1).integers(0, size, nodes)
    rates = np.random.default_rng(2).uniform(0.1, 1.0, nodes)
    who = [tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(rates)][way]
    reports = oracle.randomize(values, participation=who, seed=5)
    tally = oracle.tally(reports)
    assert oracle.collect(values, participation=who, seed=5) == tally
    assert oracle.collect(values, participation=who, seed=6) != tally
    supports = supports_of(oracle, reports.codes)
    assert tally.support.tolist() == supports.sum(axis=0).tolist()
    if reports.probabilities is not None:
        assert tally.weights is not None
        expected = (supports / reports.probabilities[:, None]).sum(axis=0)
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-6)


@kinds
def test_tallies_add_up_and_everything_survives_a_copy(kind: str, tmp_path: Path) -> None:
    oracle = KINDS[kind](1.0, 30, hashes=8, width=128)
    values = np.arange(600) % 30
    one, other = oracle.collect(values, seed=1), oracle.collect(values, seed=2)
    assert (one + other).support.tolist() == (one.support + other.support).tolist()
    assert tn.Tally.from_bytes(one.to_bytes()) == one
    assert pickle.loads(pickle.dumps(oracle)) == oracle
    assert FrequencyOracle.from_dict(json.loads(json.dumps(oracle.to_dict()))) == oracle
    assert KINDS[kind](1.0, 30) == KINDS[kind](1.0, 30, hashes=1024, width=256)
    for changed in ({"hashes": 9}, {"width": 64}):
        different = KINDS[kind](1.0, 30, **{"hashes": 8, "width": 128, **changed})
        with pytest.raises(PlanMismatchError):
            one.merge(different.collect([1]))
    reports = oracle.randomize(values, seed=4)
    report_files.write_reports(reports, tmp_path / "reports.parquet")
    assert report_files.read_reports(tmp_path / "reports.parquet") == reports


@kinds
@pytest.mark.parametrize(("rate", "held"), [(0.6, [9, 3, 0, 1]), (1.0, [30, 0, 30, 0])])
def test_over_functions_and_reports_estimates_are_unbiased_with_the_variance_of_both(
    kind: str, rate: float, held: list[int], statistical: ModuleType
) -> None:
    who = tn.Bernoulli(rate)
    runs = [with_functions(KINDS[kind](3.0, 4, hashes=2, width=4), seed) for seed in range(12_000)]
    values = np.repeat(np.arange(4), held)
    found = [
        oracle.collect(values, participation=who, seed=seed).estimate("c_hat").counts
        for seed, oracle in enumerate(runs)
    ]
    extra = runs[0].pool_variance(held)
    total = tn.estimator_variance(runs[0], who, method="c_hat", true_counts=held)
    noise = total - extra
    assert extra.max() > 0.1 * noise.max()
    statistical.check_mean(found, held)
    statistical.check_variance(found, total)


@kinds
def test_the_error_of_the_functions_stays_however_many_reports(
    kind: str, statistical: ModuleType
) -> None:
    held = [10**9, 0, 10**9, 0, 10**9, 10**8]
    runs = [with_functions(KINDS[kind](1.0, 6, hashes=20, width=8), seed) for seed in range(4000)]
    found = [oracle.simulate(held, seed=0).estimate("g").counts for oracle in runs]
    extra = runs[0].pool_variance(held)
    total = tn.estimator_variance(runs[0], tn.Everyone(), method="g", true_counts=held)
    noise = total - extra
    assert (noise < 1e-5 * extra).all()
    statistical.check_mean(found, held)
    statistical.check_variance(found, total)


@kinds
def test_intervals_cover_over_the_functions_too(kind: str) -> None:
    # So many nodes that the functions are all the error: intervals of reports alone are useless.
    held = [10**9, 0, 10**9, 0, 10**9, 10**8]
    truth = np.array(held) / sum(held)
    runs = [with_functions(KINDS[kind](1.0, 6, hashes=64, width=8), seed) for seed in range(1500)]
    estimates = [oracle.simulate(held, seed=0).estimate() for oracle in runs]
    covered = np.mean([estimate.interval(0.95).contains(truth) for estimate in estimates], axis=0)
    # Six standard deviations below the level.
    assert (covered > 0.95 - 6 * np.sqrt(0.05 * 0.95 / 1500)).all(), covered
    alone = [estimate.interval(0.95).high - estimate.interval(0.95).low for estimate in estimates]
    assert np.mean(alone) > 1e-3


@kinds
def test_simulated_counts_have_the_law_of_collected_ones(
    kind: str, statistical: ModuleType
) -> None:
    oracle = KINDS[kind](2.0, 3, hashes=2, width=2)
    values, who = [0] * 15 + [1] * 5, tn.Bernoulli(0.7)
    seeds = range(8000)
    one = [oracle.collect(values, participation=who, seed=seed) for seed in seeds]
    other = [oracle.simulate([15, 5, 0], participation=who, seed=seed) for seed in seeds]
    for answer in range(3):
        # Jointly with the next answer: the simulation is exact for all counts together.
        first, second = (
            [
                441 * int(tally.support[answer])
                + 21 * int(tally.support[(answer + 1) % 3])
                + tally.received
                for tally in tallies
            ]
            for tallies in (one, other)
        )
        statistical.check_same_law(first, second)


@kinds
def test_a_domain_of_a_million_answers_is_tallied(kind: str) -> None:
    size = 1_000_000
    oracle = KINDS[kind](4.0, size, hashes=64)
    estimate = oracle.collect(np.full(20_000, size - 1), seed=1).estimate()
    assert int(estimate.counts.argmax()) == size - 1
    assert abs(estimate.frequencies[-1] - 1) < 6 * estimate.standard_errors[-1]
    held = np.zeros(size, dtype=np.uint64)
    held[[3, size - 1]] = 10**11
    counts = oracle.simulate(held, seed=2).estimate().counts
    assert sorted(np.argsort(counts)[-2:].tolist()) == [3, size - 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hashes": 0}, "hashes must be an integer from 1 to 1048576, got 0"),
        ({"hashes": 2**20 + 1}, "hashes must be an integer from 1 to"),
        ({"hashes": 2**20, "width": 512}, "hashes must be few enough"),
        ({"width": 1}, "width must be an integer from 2 to 65536, got 1"),
        ({"width": 2**17}, "width must be an integer from 2 to"),
        ({"domain": 2**31}, "from 2 to 2147483647, got 2147483648"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.inf}, "epsilon must be"),
        ({"epsilon": 1e-12}, "too small"),
    ],
)
@kinds
def test_bad_values_are_refused(kind: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        KINDS[kind](**{"epsilon": 1.0, "domain": 10, **arguments})


@pytest.mark.parametrize("name", ["hashes", "width"])
@pytest.mark.parametrize("value", [2.5, "3", True])
@kinds
def test_bad_types_are_refused(kind: str, name: str, value: Any) -> None:
    with pytest.raises(InvalidTypeError, match=f"{name} must be"):
        KINDS[kind](1.0, 10, **{name: value})


def test_the_order_of_a_hadamard_matrix_is_a_power_of_two() -> None:
    with pytest.raises(InvalidValueError, match="width must be a power of two"):
        tn.HadamardCountMeanSketch(1.0, 10, width=100)
    assert tn.CountMeanSketch(1.0, 10, width=100).report_shape == (3,)


def test_reports_that_the_oracle_cannot_make_are_refused() -> None:
    plain = tn.CountMeanSketch(1.0, 10, hashes=4, width=70)
    for bad in ([4, 0, 0], [0, 0, 64]):
        rows = np.array([[3, 2**64 - 1, 63], bad], dtype=np.uint64)
        with pytest.raises(InvalidValueError, match=r"reports\[1\] is not a report of this oracle"):
            tn.Reports(plain, tn.Everyone(), rows, 2)
    with pytest.raises((InvalidTypeError, InvalidValueError)):
        tn.Reports(plain, tn.Everyone(), np.zeros((2, 2), dtype=np.uint64), 2)
    hadamard = tn.HadamardCountMeanSketch(1.0, 10, hashes=4, width=64)
    with pytest.raises(InvalidValueError, match=r"reports\[1\] is not a report of this oracle"):
        tn.Reports(hadamard, tn.Everyone(), np.array([511, 512], dtype=np.uint32), 2)
