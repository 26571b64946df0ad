"""Estimates from sums with noise hold the truth, by the exact law and by simulation."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import turnout as tn
from turnout.accounting import NoisySums
from turnout.distributed import JanusTask, VerifiedAggregation
from turnout.distributed.noise import NOISES
from turnout.distributed.noised import noised_estimation, noised_means
from turnout.errors import ImplausibleSumsError, InvalidTypeError, InvalidValueError

ALPHA = 1e-6


def law_of(noise: str, parameter: float, pieces: int, reach: int) -> Any:
    """The masses of the noise from -reach to reach, from their definition."""
    places = np.arange(-reach, reach + 1)
    one = np.exp(
        -np.abs(places) / parameter if noise == "discrete_laplace" else -(places**2) / 2 / parameter
    )
    one /= one.sum()
    total = one
    for _ in range(pieces - 1):
        total = np.convolve(total, one)
    middle = total.size // 2
    return total[middle - reach : middle + reach + 1]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(
    "case",
    [("discrete_laplace", 2.0, 2, 0.5, 60), ("discrete_laplace", 0.3, 2, 0.1, 200),
     ("discrete_gaussian", 9.0, 3, 0.25, 120), ("discrete_laplace", 20.0, 2, 0.9, 50),
     ("discrete_gaussian", 4.0, 1, 1.0, 30), ("discrete_laplace", 2.0, 2, 1.0, 30)],
)  # fmt: skip
def test_intervals_hold_the_truth_by_the_exact_law_whatever_the_counts(
    case: tuple[str, float, int, float, int], level: float
) -> None:
    noise, parameter, pieces, rate, received = case
    reach = 900 if noise == "discrete_laplace" else 120
    masses = law_of(noise, parameter, pieces, reach)
    law = NOISES[noise](parameter, 1, pieces)
    sums = np.arange(-reach, received + reach + 1)
    found = noised_estimation(sums, received, law, rate)
    assert found.limits is not None
    low, high = found.limits(level)
    for held in (0, 1, 2, received // 3, received - 1, received):
        counts = stats.binom.pmf(np.arange(received + 1), held, rate)
        seen = np.convolve(counts, masses)
        # Limits are numbers of people over all of them.
        inside = (low * received <= held + 1e-9) & (held - 1e-9 <= high * received)
        assert seen[inside].sum() >= level - 1e-9
        mean = float((seen * found.frequencies).sum())
        assert mean == pytest.approx(held / received, abs=1e-9)
        assert found.model is not None
        variance = float(found.model.variance(np.array([held / received]))[0])
        exact = float((seen * found.frequencies**2).sum()) - mean**2
        assert variance == pytest.approx(exact, rel=1e-6)


def test_intervals_are_hardly_wider_than_normal_ones_where_there_are_many_people() -> None:
    sums = np.array([5000, 9000, 21_000])
    for parameter, rate in itertools.product((30.0, 3000.0), (0.3, 0.7)):
        law = NOISES["discrete_gaussian"](parameter, 1, 2)
        found = noised_estimation(sums, 100_000, law, rate)
        assert found.limits is not None
        low, high = found.limits(0.95)
        ratio = (high - low) / (2 * 1.96 * np.sqrt(found.variances))
        assert ((ratio > 0.99) & (ratio < 1.06)).all(), ratio


def test_many_sums_and_wide_noise_put_into_cells_are_wider_and_not_narrower() -> None:
    law, rng = NOISES["discrete_laplace"](400.0, 1, 2), np.random.default_rng(5)
    one = noised_estimation(np.array([2500]), 10_000, law, 0.5)
    many = noised_estimation(np.append(2500, rng.integers(0, 10_000, 3000)), 10_000, law, 0.5)
    assert one.limits is not None
    assert many.limits is not None
    (low, high), (lows, highs) = one.limits(0.95), many.limits(0.95)
    assert lows[0] <= low[0] < high[0] <= highs[0]
    assert highs[0] - lows[0] < 1.2 * (high[0] - low[0])
    wide = noised_estimation(np.array([2500]), 10_000, NOISES["discrete_laplace"](9e5, 1, 2), 0.5)
    assert wide.limits is not None
    assert wide.limits(0.95)[1] - wide.limits(0.95)[0] == 1.0


def laplace(rng: np.random.Generator, scale: float, size: tuple[int, ...]) -> Any:
    """A discrete Laplace variable is a difference of two geometric ones."""
    ratio = -np.expm1(-1.0 / scale)
    return rng.geometric(ratio, size) - rng.geometric(ratio, size)


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_simulated_rounds_hold_the_truth_as_often_as_they_promise(rate: float) -> None:
    rng, trials = np.random.default_rng(34), 4000
    held, received, level = np.array([400, 90, 10, 0]), 500, 0.95
    law = NOISES["discrete_laplace"](4.0, 1, 2)
    counts = rng.binomial(held, rate, (trials, 4))
    counts += sum(laplace(rng, 4.0, counts.shape) for _ in range(2))
    found = noised_estimation(counts.ravel(), received, law, rate)
    assert found.limits is not None
    low, high = (limit.reshape(counts.shape) * received for limit in found.limits(level))
    hits = ((low <= held + 1e-9) & (held - 1e-9 <= high)).sum(axis=0)
    least = stats.binom.ppf(ALPHA / hits.size, trials, level)
    # A level of 94 % would be found out: the test is no formality.
    assert stats.binom.cdf(least - 1, trials, 0.9) > 0.999
    assert (hits >= least).all(), hits


@pytest.mark.parametrize(
    ("participation", "noise"),
    [
        (1.0, "discrete_laplace"),
        pytest.param(0.3, "discrete_gaussian", marks=pytest.mark.slow),
    ],
)
def test_votes_with_proofs_hold_the_truth_as_often_as_they_promise(
    participation: float, noise: str
) -> None:
    """Rounds by law: the noise of both aggregators and unseen participation are in the interval."""
    held, trials = [250, 40, 8, 2], 800
    mechanism = VerifiedAggregation(
        4, 300, epsilon=1.0, delta=3e-3, participation=participation, noise=noise
    )
    sums = np.array([mechanism.simulate(held, seed).sums for seed in range(trials)])
    # The intervals of all rounds at once.
    limits = mechanism._estimate_sums(sums.ravel(), 300).limits
    assert limits is not None
    low, high = (300 * limit.reshape(sums.shape) for limit in limits(0.95))
    hits = ((low <= np.add(held, 1e-9)) & (np.subtract(held, 1e-9) <= high)).sum(axis=0)
    assert (hits >= stats.binom.ppf(ALPHA / 4, trials, 0.95)).all(), hits
    assert (hits <= stats.binom.ppf(1 - ALPHA / 4, trials, 0.985)).all(), hits


def test_means_hold_the_truth_by_the_exact_law() -> None:
    law = NOISES["discrete_laplace"](20.0, 1, 2)
    masses, reach = law_of("discrete_laplace", 20.0, 2, 1200), 1200
    truth = 4120
    found = noised_means(truth + np.arange(-reach, reach + 1), 100, law, 120)
    assert found.limits is not None
    low, high = found.limits(0.95)
    inside = (low * 100 <= truth + 1e-9) & (truth - 1e-9 <= high * 100)
    assert 0.95 <= masses[inside].sum() < 0.96
    assert found.variances[0] == pytest.approx(law.variance / 100**2)


@pytest.mark.parametrize("scale", [2e5, 1e6])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
def test_intervals_of_wide_laplace_noise_are_no_wider_than_they_have_to_be(
    scale: float, level: float
) -> None:
    """Two continuous Laplace variables pass t with the probability (1 + t / 2b) e^(-t / b)."""
    half = NOISES["discrete_laplace"](scale, 1, 2).half_width(level)
    exact = optimize.brentq(
        lambda t: (1 + t / 2 / scale) * np.exp(-t / scale) - (1 - level), 0, 40 * scale
    )
    assert exact * (1 - 1e-5) <= half <= exact * (1 + 1e-3)
    alone = NOISES["discrete_laplace"](scale, 1, 1).half_width(level)
    assert -np.expm1(-(alone + 2) / scale) >= level
    assert alone <= -np.log1p(-level) * scale * (1 + 1e-3)


# Results of Janus


@pytest.mark.parametrize("aggregators", [1, 2])
def test_results_of_janus_hold_the_truth_as_often_as_they_promise(aggregators: int) -> None:
    """Noise of the scale sensitivity / epsilon by each aggregator, drawn another way."""
    rng, trials, held = np.random.default_rng(8), 700, np.array([40, 25, 5, 0])
    task = JanusTask(0.8, ["a", "b", "c", "d"], aggregators)
    hits = np.zeros(4, np.int64)
    for _ in range(trials):
        noise = sum(laplace(rng, 2 / 0.8, (4,)) for _ in range(aggregators))
        limits = task.estimate(held + noise, reports=70).interval(0.95)
        hits += limits.contains(held / 70)
    assert (hits >= stats.binom.ppf(ALPHA / 4, trials, 0.95)).all(), hits
    assert (hits <= stats.binom.ppf(1 - ALPHA / 4, trials, 0.99)).all(), hits


def test_the_guarantee_is_that_of_the_noise_of_one_aggregator() -> None:
    histogram = JanusTask(1.5, 10).guarantee
    assert histogram.mechanism.epsilon(0.0) == pytest.approx(1.5, rel=1e-12)
    assert histogram.mechanism.epsilon(0.0, "add_or_remove") == pytest.approx(0.75, rel=1e-12)
    sums = JanusTask(0.5, tn.Bounds(0, 2**4 - 1, dimensions=6)).guarantee
    for adjacency in ("replace", "add", "remove"):
        every = sums.mechanism.compose(6, adjacency)
        assert every.epsilon(0.0) == pytest.approx(0.5, rel=1e-12)
    assert "at least one of the 2 aggregators" in str(sums)
    # 5 has three bits, and the noise is that of 7.
    less = JanusTask(1.4, tn.Bounds(0, 5, dimensions=2)).guarantee.mechanism
    assert less.compose(2).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)


def recorded() -> list[tuple[str, int, int, float, dict[int, int]]]:
    """What prio drew: type, largest number, length, epsilon, and how often each value came."""
    rows = []
    text = (Path(__file__).parent / "prio_noise.tsv").read_text(encoding="utf-8")
    for line in text.splitlines()[2:]:
        kind, largest, length, epsilon, upward, downward = line.split("\t")
        seen = {value: int(many) for value, many in enumerate(upward.split())}
        seen |= {-1 - place: int(many) for place, many in enumerate(downward.split())}
        rows.append((kind, int(largest), int(length), float(epsilon), seen))
    return rows


@pytest.mark.parametrize("row", recorded(), ids=lambda row: "-".join(map(str, row[:4])))
def test_values_that_prio_drew_have_the_law_of_the_task(
    row: tuple[str, int, int, float, dict[int, int]],
) -> None:
    kind, largest, length, epsilon, seen = row
    domain: Any = length if kind == "histogram" else tn.Bounds(0, largest, dimensions=length)
    mechanism = JanusTask(epsilon, domain).guarantee.mechanism
    assert isinstance(mechanism, NoisySums)
    scale = mechanism.parameter
    total, reach = sum(seen.values()), max(map(abs, seen))
    masses = law_of("discrete_laplace", scale, 1, reach + 2000)
    common = total * masses > 20
    counts = np.array([seen.get(x, 0) for x in range(-reach - 2000, reach + 2001)])
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(total * masses[common], total * masses[~common].sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, observed.size - 1) > ALPHA
    # A scale that is off by 3 % would be found out.
    other = law_of("discrete_laplace", 1.03 * scale, 1, reach + 2000)
    expected = np.append(total * other[common], total * other[~common].sum())
    statistic = float(((observed - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, observed.size - 1) < ALPHA


def test_negative_sums_are_read_from_both_fields() -> None:
    task = JanusTask(1.0, 4)
    plain = task.estimate([60, 41, -3, 2], reports=100).frequencies
    for order in (18446744069414584321, 340282366920938462946865773367900766209):
        assert (task.estimate([60, 41, order - 3, 2], reports=100).frequencies == plain).all()


def test_numbers_of_janus_are_means() -> None:
    task = JanusTask(1.0, tn.Bounds(0, 7, dimensions=2))
    estimate = task.estimate([350, 900], reports=200)
    assert isinstance(estimate, tn.mean.MeanEstimate)
    assert list(np.atleast_1d(estimate.mean)) == [1.75, 4.5]
    low, high = estimate.interval(0.95).low, estimate.interval(0.95).high
    # Two aggregators, a scale of 14: the interval of 95 % is about as wide as a normal one.
    half = 1.96 * np.sqrt(2 * 2 * 14.0**2) / 200
    assert np.asarray(high - low) == pytest.approx(2 * half, rel=0.06)
    assert [record["mean"] for record in estimate.to_records()] == [1.75, 4.5]


def test_results_that_cannot_be_are_refused() -> None:
    task = JanusTask(1.0, 3)
    for sums, reports in (([500, 300, 200], 700), ([-80, 60, 20], 10), ([90, 5, 5], 10)):
        with pytest.raises(ImplausibleSumsError, match="Check that reports, epsilon and domain"):
            task.estimate(sums, reports)
    for wrong in ([1, 2], [1, 2, 2**60]):
        with pytest.raises(InvalidValueError, match="sums"):
            task.estimate(wrong, 10)
    with pytest.raises(InvalidTypeError, match="sums"):
        task.estimate([1, 2, 2.5], 10)
    for arguments in ((0.0, 3), (1.0, tn.Bounds(1, 7)), (1.0, tn.Bounds(0, 0.5)), (1.0, 3, 0)):
        with pytest.raises(InvalidValueError, match=r"epsilon|domain|aggregators"):
            JanusTask(*arguments)
