"""Direct encoding: the guarantee as exact fractions, reports, seeds, inputs, and their law."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import InvalidValueError

#: Streams are split into chunks of this many nodes.
CHUNK = 2**16

LARGEST_EPSILON = 42.0

EPSILONS = [
    *(10.0**power for power in range(-6, 1)),
    *(0.25, 0.5, math.log(2), math.log(3), 1.1, 2.0, 2.5, 3.0, math.log(100), 5.0, 7.7, 10.0),
    *(13.3, 17.0, 20.0, 25.5, 30.0, 36.6, 40.0, math.nextafter(LARGEST_EPSILON, 0)),
    LARGEST_EPSILON,
]
SIZES = [
    *range(2, 18),
    *(2**power + shift for power in range(5, 20) for shift in (-1, 0, 1)),
    *(100, 1000, 10_007, 99_991, 3 * 2**18, 2**20 - 1, 2**20),
]


def exponential_below(x: float) -> Fraction:
    """A lower bound of e^x, less than 2^-250 below it: the series, every term rounded down."""
    scale = 1 << 400
    numerator, denominator = x.as_integer_ratio()
    term = total = scale
    index = 0
    while term:
        index += 1
        term = term * numerator // (denominator * index)
        total += term
    return Fraction(total, scale)


def test_the_lower_bound_of_the_exponential_is_one() -> None:
    assert exponential_below(0.0) == 1
    assert float(exponential_below(1.0)) == math.e
    # e^-1 from its alternating series, whose partial sums of odd order are below and even above.
    series = [Fraction((-1) ** n, math.factorial(n)) for n in range(101)]
    assert 1 - Fraction(1, 2**200) < exponential_below(1.0) * sum(series) < 1 + Fraction(1, 2**200)
    for x in (1e-6, 0.3, 7.7, 42.0):
        assert math.isclose(exponential_below(x), math.exp(x), rel_tol=1e-14)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_likelihood_ratio_is_at_most_e_to_the_epsilon_and_within_1e_9_of_it(
    epsilon: float,
) -> None:
    bound = exponential_below(epsilon)
    nearly = bound * (1 - Fraction(1, 10**9))
    for size in SIZES:
        ratio = tn.DirectEncoding(epsilon, size).realized_ratio
        assert isinstance(ratio, Fraction)
        assert 1 < ratio <= bound, size
        assert ratio >= nearly, size


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_realized_epsilon_covers_the_ratio_and_is_at_most_what_was_asked_for(
    epsilon: float,
) -> None:
    for size in SIZES:
        oracle = tn.DirectEncoding(epsilon, size)
        assert oracle.epsilon == epsilon
        assert 0 < oracle.realized_epsilon <= epsilon, size
        assert exponential_below(oracle.realized_epsilon) >= oracle.realized_ratio, size
        assert oracle.realized_epsilon >= epsilon - 1.1e-9, size


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_support_probabilities_are_those_of_the_realized_ratio(epsilon: float) -> None:
    for size in SIZES:
        oracle = tn.DirectEncoding(epsilon, size)
        p, q = oracle.support_probabilities
        total = oracle.realized_ratio + size - 1
        assert 0 < q < p <= 1, size
        assert math.isclose(p, oracle.realized_ratio / total, rel_tol=1e-15), size
        assert math.isclose(q, 1 / total, rel_tol=1e-15), size
        assert math.isclose(p, math.exp(epsilon) / (math.exp(epsilon) + size - 1), rel_tol=1e-8)


def test_epsilon_is_accepted_up_to_its_maximum_and_not_above() -> None:
    assert tn.DirectEncoding(LARGEST_EPSILON, 2**20).realized_epsilon > LARGEST_EPSILON - 1e-8
    with pytest.raises(InvalidValueError, match=r"epsilon must be .* at most 42, got 42"):
        tn.DirectEncoding(math.nextafter(LARGEST_EPSILON, math.inf), 2)


def test_an_epsilon_that_words_cannot_realize_is_refused() -> None:
    for epsilon in (1e-19, 5e-324):
        with pytest.raises(InvalidValueError, match="too small for a domain of 1000 codes"):
            tn.DirectEncoding(epsilon, 1000)


@pytest.mark.parametrize(
    ("size", "bits", "dtype"),
    [
        (2, 1, "u1"),
        (3, 2, "u1"),
        (4, 2, "u1"),
        (5, 3, "u1"),
        (128, 7, "u1"),
        (256, 8, "u1"),
        (257, 9, "u2"),
        (2**16, 16, "u2"),
        (2**16 + 1, 17, "u4"),
        (2**20, 20, "u4"),
        (2**32 - 1, 32, "u4"),
    ],
)
def test_reports_are_as_small_as_the_domain_allows(size: int, bits: int, dtype: str) -> None:
    oracle = tn.DirectEncoding(30.0, size)
    assert oracle.report_bits == bits
    reports = oracle.randomize(np.array([0, size - 1, 1], dtype=np.int64))
    assert reports.codes.dtype == np.dtype(dtype)
    # At such an epsilon every report is the truth, but for a chance of k e^-30 < 0.001.
    assert reports.codes.tolist() == [0, size - 1, 1]


def values_of(size: int, nodes: int, dtype: str = "i8", seed: int = 0) -> npt.NDArray[Any]:
    return np.random.default_rng(seed).integers(0, size, nodes).astype(dtype)


def rates_of(nodes: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed + 1000).uniform(0.01, 1.0, nodes)


def ways(nodes: int, rate: float = 0.3) -> list[tn.Participation]:
    return [tn.Everyone(), tn.Bernoulli(rate), tn.Personalized(rates_of(nodes))]


@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
@pytest.mark.parametrize("nodes", [0, 1, 257, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_the_same_seed_gives_the_same_answer_and_another_seed_another(way: int, nodes: int) -> None:
    oracle = tn.DirectEncoding(1.0, 1000)
    values, who = values_of(1000, nodes), ways(nodes)[way]
    first = oracle.randomize(values, participation=who, seed=7)
    assert oracle.randomize(values, participation=who, seed=7) == first
    assert oracle.collect(values, participation=who, seed=7) == oracle.tally(first)
    if nodes > 1:
        assert oracle.randomize(values, participation=who, seed=8) != first
        assert oracle.collect(values, participation=who, seed=8) != oracle.tally(first)


@pytest.mark.parametrize("seed", [0, 1, 2**63, 2**64 - 1, np.uint8(3), np.int64(5)])
def test_every_integer_below_two_to_the_64_is_a_seed(seed: Any) -> None:
    oracle = tn.DirectEncoding(1.0, 10)
    values = values_of(10, 1000)
    assert oracle.randomize(values, seed=seed) == oracle.randomize(values, seed=int(seed))
    assert oracle.randomize(values, seed=seed) != oracle.randomize(values, seed=int(seed) ^ 1)


@settings(max_examples=150, deadline=None)
@given(
    nodes=st.integers(0, 3000),
    size=st.sampled_from([2, 3, 17, 256, 257, 65_536, 65_537, 2**20]),
    epsilon=st.floats(0.01, 42),
    dtype=st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f8", ">i4"]),
    seed=st.integers(0, 2**64 - 1),
    who=st.one_of(
        st.just(tn.Everyone()),
        st.floats(0, 1, exclude_min=True).map(tn.Bernoulli),
        st.just(None),
    ),
    smallest=st.floats(2.0**-30, 1),
)
def test_collecting_equals_randomizing_and_tallying(
    *,
    nodes: int,
    size: int,
    epsilon: float,
    dtype: str,
    seed: int,
    who: tn.Participation | None,
    smallest: float,
) -> None:
    oracle = tn.DirectEncoding(epsilon, size)
    values = values_of(min(size, 128), nodes, dtype, seed % 1000)
    if who is None:
        rates = np.random.default_rng(seed % 997).uniform(smallest, 1.0, nodes)
        who = tn.Personalized(rates)
    reports = oracle.randomize(values, participation=who, seed=seed)
    tally = oracle.tally(reports)
    assert oracle.collect(values, participation=who, seed=seed) == tally
    assert tally.nodes == reports.nodes == nodes
    assert tally.received == len(reports) <= nodes
    assert tally.support.tolist() == np.bincount(reports.codes, minlength=size).tolist()
    if reports.probabilities is not None:
        assert tally.weights is not None
        expected = np.bincount(reports.codes, 1 / reports.probabilities, minlength=size)
        np.testing.assert_allclose(tally.weights.inverse, expected, rtol=1e-6)


@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
def test_collecting_equals_randomizing_and_tallying_over_many_chunks(way: int) -> None:
    nodes = 5 * CHUNK + 11
    oracle = tn.DirectEncoding(0.5, 300)
    values, who = values_of(300, nodes, "u2"), ways(nodes)[way]
    reports = oracle.randomize(values, participation=who, seed=3)
    assert oracle.collect(values, participation=who, seed=3) == oracle.tally(reports)


DIGESTS = """
import dataclasses
import hashlib
import numpy as np
import turnout as tn
from turnout.collecting.origin import Origin

nodes, size = 700_001, 500
random = np.random.default_rng(1)
values = random.integers(0, size, nodes).astype(np.uint16)
oracle = tn.DirectEncoding(1.0, size)
def written(tally):  # all but the identity of the collection, which no seed decides
    return dataclasses.replace(tally, origin=Origin.named("the same")).to_bytes()
for who in (tn.Everyone(), tn.Bernoulli(0.01), tn.Bernoulli(0.6), tn.Personalized(
    random.uniform(0.001, 1.0, nodes)
)):
    reports = oracle.randomize(values, participation=who, seed=11)
    digest = hashlib.sha256(reports.codes.tobytes())
    if reports.probabilities is not None:
        digest.update(reports.probabilities.tobytes())
    digest.update(written(oracle.tally(reports)))
    digest.update(written(oracle.collect(values, participation=who, seed=11)))
    print(digest.hexdigest())
counts = np.bincount(values, minlength=size)
print(hashlib.sha256(written(oracle.simulate(counts, seed=11))).hexdigest())
"""


def digests(threads: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
    )
    return done.stdout.split()


def test_the_number_of_threads_does_not_change_the_answer() -> None:
    one = digests(1)
    assert len(set(one)) == 5
    assert digests(8) == one
    assert digests(3) == one


def test_a_simulation_of_several_streams_has_the_means_and_variances_of_one() -> None:
    # The codes of one stream are 2,048. At alpha = 1e-6: 4.9 standard deviations, of a mean of
    # squares of 5,000 scores and of their sums over halves of the domain.
    counts = np.where(np.arange(5000) % 2048 < 1000, 10**8, 3 * 10**8)
    oracle, rate = tn.DirectEncoding(4.0, 5000), 0.3
    own, other = (rate * probability for probability in oracle.support_probabilities)
    tally = oracle.simulate(counts, participation=tn.Bernoulli(rate), seed=3)
    rest = counts.sum() - counts
    mean = counts * own + rest * other
    variance = counts * own * (1 - own) + rest * other * (1 - other)
    scores = (tally.support - mean) / np.sqrt(variance)
    assert abs((scores**2).mean() - 1) < 4.9 * np.sqrt(2 / 5000)
    assert all(abs(part.sum()) < 4.9 * np.sqrt(2500) for part in (scores[:2500], scores[2500:]))
    everyone = oracle.simulate(counts, seed=3)
    assert everyone.received == everyone.support.sum() == counts.sum()


GOLDEN = "dcfc70121ce03e9ac5c247f1b0819dfd5b4b897d802617c9f096fa6caedd6bee"


def test_a_seed_keeps_its_meaning() -> None:
    # Studies name their seeds: that a release draws other numbers must be a decision.
    oracle = tn.DirectEncoding(1.0, 100)
    values = np.arange(1000) % 100
    digest = hashlib.sha256()
    for who in (tn.Everyone(), tn.Bernoulli(0.3), tn.Personalized(np.linspace(0.1, 1.0, 1000))):
        digest.update(oracle.randomize(values, participation=who, seed=42).codes.tobytes())
    digest.update(oracle.simulate([50] * 100, seed=42).support.astype("<u8").tobytes())
    assert digest.hexdigest() == GOLDEN


def test_without_a_seed_every_call_draws_fresh_noise() -> None:
    oracle = tn.DirectEncoding(0.5, 1000)
    values = values_of(1000, 5000)
    for who in ways(5000):
        drawn = [oracle.randomize(values, participation=who).codes.tobytes() for _ in range(4)]
        assert len(set(drawn)) == 4
        tallies = [oracle.collect(values, participation=who).support.tobytes() for _ in range(4)]
        assert len(set(tallies)) == 4
    simulated = [oracle.simulate([5] * 1000).support.tobytes() for _ in range(4)]
    assert len(set(simulated)) == 4


def test_equal_parameters_make_oracles_that_give_the_same_answers() -> None:
    values = values_of(50, 2000)
    one, other = tn.DirectEncoding(1, 50), tn.DirectEncoding(1.0, tn.Domain(range(50)))
    assert one == other
    assert hash(one) == hash(other)
    assert one.randomize(values, seed=1) == other.randomize(values, seed=1)
    assert one != tn.DirectEncoding(1.0, 51)
    assert one != tn.DirectEncoding(1.0000001, 50)
    assert one != "direct_encoding"
    assert repr(one) == "DirectEncoding(epsilon=1.0, domain=Domain.from_integers(50))"


@pytest.mark.parametrize("size", [2, 3, 10, 300])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_reports_have_the_law_of_direct_encoding(
    statistical: ModuleType, epsilon: float, size: int
) -> None:
    oracle = tn.DirectEncoding(epsilon, size)
    p, q = oracle.support_probabilities
    for held in {0, size // 2, size - 1}:
        values = np.full(300_000, held)
        expected = np.full(size, q)
        expected[held] = p
        reports = oracle.randomize(values, seed=5)
        statistical.check_law(np.bincount(reports.codes, minlength=size), expected)


def test_reports_of_neighbours_are_independent(statistical: ModuleType) -> None:
    # Pairs of neighbouring reports, and of reports one chunk apart, have the product law.
    oracle = tn.DirectEncoding(1.0, 5)
    p, q = oracle.support_probabilities
    single = np.array([p, q, q, q, q])
    codes = oracle.randomize(np.zeros(8 * CHUNK, np.uint8), seed=6).codes.astype(np.int64)
    for distance in (1, 2, 256, CHUNK):
        pairs = codes[:-distance] * 5 + codes[distance:]
        statistical.check_law(np.bincount(pairs, minlength=25), np.outer(single, single).ravel())


def taking_part(nodes: int, who: tn.Participation, seed: int) -> npt.NDArray[np.int64]:
    """Which nodes report: each holds a code of its own, and at this epsilon reports keep it."""
    oracle = tn.DirectEncoding(LARGEST_EPSILON, nodes)
    return oracle.randomize(np.arange(nodes), participation=who, seed=seed).codes.astype(np.int64)


def test_reports_come_in_the_order_of_the_nodes() -> None:
    for who in ways(200_000):
        codes = taking_part(200_000, who, seed=2)
        assert (np.diff(codes) > 0).all()
    assert taking_part(200_000, tn.Everyone(), seed=2).size == 200_000


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_nodes_take_part_independently_at_the_common_rate(
    statistical: ModuleType, rate: float
) -> None:
    nodes = 3 * CHUNK
    codes = taking_part(nodes, tn.Bernoulli(rate), seed=4)
    statistical.check_share(codes.size, nodes, rate, rate)
    # Gaps between participants are geometric if each node decides for itself.
    gaps = np.minimum(np.diff(codes), 2000)
    law = rate * (1 - rate) ** np.arange(2000)
    law[-1] = 1 - law[:-1].sum()
    statistical.check_law(np.bincount(gaps - 1, minlength=2000), law)


def test_nodes_take_part_at_rates_of_their_own(statistical: ModuleType) -> None:
    nodes = 4 * CHUNK
    levels = np.array([2.0**-30, 0.01, 0.25, 0.5, 0.99, 1.0])
    group = values_of(levels.size, nodes, seed=9)
    who = tn.Personalized(levels[group])
    reports = tn.DirectEncoding(LARGEST_EPSILON, nodes).randomize(
        np.arange(nodes), participation=who, seed=9
    )
    assert reports.probabilities is not None
    np.testing.assert_array_equal(reports.probabilities, levels[group[reports.codes]])
    for code, level in enumerate(levels):
        received = int((group[reports.codes] == code).sum())
        statistical.check_share(received, int((group == code).sum()), level, level)


def test_who_takes_part_does_not_depend_on_what_is_held() -> None:
    oracle = tn.DirectEncoding(1.0, 4)
    nodes = 100_000
    for who in (tn.Bernoulli(0.2), tn.Personalized(rates_of(nodes))):
        received = {
            len(oracle.randomize(np.full(nodes, held), participation=who, seed=3))
            for held in range(4)
        }
        assert len(received) == 1


LAYOUTS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "contiguous": lambda array: array,
    "every third": lambda array: np.repeat(array, 3)[::3],
    "reversed": lambda array: np.ascontiguousarray(array[::-1])[::-1],
    "a column": lambda array: np.stack([array, array], axis=1)[:, 1],
    "unaligned": lambda array: np.frombuffer(b"x" + array.tobytes(), array.dtype, offset=1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", ">i8"])
def test_the_answer_depends_on_the_values_alone_not_on_their_array(dtype: str, layout: str) -> None:
    oracle = tn.DirectEncoding(1.0, 100)
    values = values_of(100, 5000)
    rates = rates_of(5000)
    array = LAYOUTS[layout](values.astype(dtype))
    probabilities = LAYOUTS[layout](rates)
    for who, same in (
        (tn.Everyone(), tn.Everyone()),
        (tn.Personalized(probabilities), tn.Personalized(rates)),
    ):
        expected = oracle.randomize(values, participation=same, seed=1)
        assert oracle.randomize(array, participation=who, seed=1) == expected
        assert oracle.collect(array, participation=who, seed=1) == oracle.tally(expected)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i8"])
def test_inputs_may_be_read_only_and_are_never_changed(dtype: str) -> None:
    oracle = tn.DirectEncoding(1.0, 100)
    values = values_of(100, 3 * CHUNK, dtype)
    rates = rates_of(values.size)
    before = values.copy(), rates.copy()
    values.flags.writeable = rates.flags.writeable = False
    for who in (tn.Everyone(), tn.Bernoulli(0.5), tn.Personalized(rates)):
        oracle.randomize(values, participation=who)
        oracle.collect(values, participation=who)
    writable = values.copy()
    oracle.randomize(writable)
    for array, old in ((values, before[0]), (rates, before[1]), (writable, before[0])):
        np.testing.assert_array_equal(array, old)
        assert array.dtype == old.dtype
    assert writable.flags.writeable


@pytest.mark.parametrize("way", [0, 1, 2], ids=["everyone", "bernoulli", "personalized"])
def test_nobody_gives_an_empty_answer(way: int) -> None:
    oracle = tn.DirectEncoding(1.0, tn.Domain(["a", "b"]))
    columns: list[Any] = [[], np.array([]), np.array([], dtype="U1")]
    for values in columns:
        reports = oracle.randomize(values, participation=ways(0)[way])
        assert len(reports) == reports.nodes == 0
        tally = oracle.collect(values, participation=ways(0)[way])
        assert tally == oracle.tally(reports)
        assert tally.support.tolist() == [0, 0]


def test_labels_and_their_codes_give_the_same_reports() -> None:
    labels = ["never", "once", "often"]
    codes = values_of(3, 1000)
    named = tn.DirectEncoding(1.0, tn.Domain(labels))
    numbered = tn.DirectEncoding(1.0, 3)
    reports = named.randomize([labels[code] for code in codes], seed=1)
    np.testing.assert_array_equal(reports.codes, numbered.randomize(codes, seed=1).codes)


def test_values_outside_are_refused_whether_their_node_takes_part_or_not() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    values = np.zeros(100_000, np.uint8)
    values[99_999] = 3
    for who in (tn.Bernoulli(1e-9), tn.Personalized(np.full(100_000, 2.0**-30))):
        for call in (oracle.randomize, oracle.collect):
            with pytest.raises(InvalidValueError, match=r"values\[99999\] is not a code"):
                call(values, participation=who, seed=1)


def test_a_simulation_has_as_many_nodes_as_the_counts_and_needs_no_values() -> None:
    oracle = tn.DirectEncoding(1.0, 4)
    counts = [10**17, 0, 3, 2**60]
    tally = oracle.simulate(counts, participation=tn.Bernoulli(0.5), seed=1)
    assert tally.nodes == sum(counts)
    assert tally.received == sum(tally.support.tolist())
    assert abs(tally.received / tally.nodes - 0.5) < 1e-6
    assert tally == oracle.simulate(np.array(counts), participation=tn.Bernoulli(0.5), seed=1)
    full = oracle.simulate(counts, seed=1)
    assert full.received == full.nodes == sum(counts)
    p, q = oracle.support_probabilities
    share = counts[3] / sum(counts)
    assert math.isclose(
        int(full.support[3]) / full.nodes, share * p + (1 - share) * q, rel_tol=1e-6
    )
    assert oracle.simulate([0, 0, 0, 0]).nodes == 0
