"""Estimated distributions: against other computations, and by simulation."""

from __future__ import annotations

import pickle
from types import ModuleType

import numpy as np
import pytest
from scipy import optimize

import turnout as tn
from turnout.distribution import DistributionEstimate, DistributionTally
from turnout.distribution.law import TOLERANCE, WaveLaw, solved
from turnout.errors import InvalidValueError


def population(name: str, bins: int) -> np.ndarray:
    x = (np.arange(bins) + 0.5) / bins
    shares = {
        "bell": np.exp(-(((x - 0.4) / 0.12) ** 2) / 2),
        "two": np.exp(-(((x - 0.2) / 0.05) ** 2) / 2) + np.exp(-(((x - 0.8) / 0.1) ** 2) / 2),
        "uniform": np.ones(bins),
        "spikes": np.where(np.arange(bins) % 7 == 3, 1.0, 0.02),
        "one": 1.0 * (np.arange(bins) == bins // 3),
        "end": 1.0 * (np.arange(bins) == bins - 1),
    }[name]
    return shares / shares.sum()


POPULATIONS = ("bell", "two", "uniform", "spikes", "one", "end")


def drawn(wave: tn.SquareWave, shares: np.ndarray, nodes: int, seed: int) -> DistributionTally:
    """A tally of nodes drawn from a population: its law is one multinomial draw of the cells."""
    counts = np.random.default_rng(seed).multinomial(nodes, wave._law.matrix() @ shares)
    return DistributionTally(tn.Plan(wave, tn.Everyone()), counts, nodes, nodes)


def test_simulated_tallies_have_the_law_of_collected_ones(statistical: ModuleType) -> None:
    wave = tn.SquareWave(1.0, (0, 1), 12)
    shares = population("two", 12)
    held = np.repeat(wave.domain._middles, np.round(shares * 600_000).astype(int))
    actual = np.bincount(wave._core.bins(held), minlength=12) / held.size
    counts = wave.collect(held, seed=3).cells
    statistical.check_law(counts, wave._law.matrix() @ actual)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_likeliest_distribution_is_that_of_a_general_optimiser(
    epsilon: float, name: str
) -> None:
    wave = tn.SquareWave(epsilon, (0, 1), 10)
    matrix, shares = wave._law.matrix(), population(name, 10)
    tally = drawn(wave, shares, 20_000, 5)
    counts = tally.cells.astype(np.float64)
    found = tally.estimate("ml")
    assert found.converged
    value = float(counts @ np.log(matrix @ found.frequencies))
    # By softmax, from another start, with a gradient of its own.
    start = np.linspace(0.0, 1.0, 10)
    fine = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-6}

    def loss(logits: np.ndarray) -> tuple[float, np.ndarray]:
        f = np.exp(logits - logits.max())
        f /= f.sum()
        cells = matrix @ f
        slope = matrix.T @ (counts / cells)
        return -float(counts @ np.log(cells)), -f * (slope - slope @ f)

    other = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=fine)
    assert -other.fun <= value + TOLERANCE
    assert value <= -other.fun + 0.05
    # The certificate: by concavity nothing is likelier by more than the tolerance.
    slope = matrix.T @ (counts / (matrix @ found.frequencies))
    assert slope.max() - counts.sum() <= TOLERANCE * (1 + 1e-6)


def test_many_bins_and_large_counts_converge() -> None:
    for epsilon, bins, nodes in ((0.1, 300, 10**9), (1.0, 512, 10**6), (5.0, 200, 10**12)):
        wave = tn.SquareWave(epsilon, (0, 1), bins)
        for name in ("two", "one", "spikes"):
            counts = wave._law.cell_shares(population(name, bins)) * nodes
            found = solved(wave._law, np.round(counts), "ml")
            assert found.converged, (epsilon, bins, name)
            assert abs(found.frequencies.sum() - 1) < 1e-12
            assert (found.frequencies >= 0).all()


def test_smoothing_is_the_published_step_from_256_bins_on() -> None:
    # Li et al.: expectation, maximisation, average (1, 2, 1) / 4, until the log-likelihood changes
    # by less than a thousandth: with the whole matrix, written out.
    for bins, aside in ((256, 0.25), (300, 0.25), (64, 0.25 / 16), (16, 0.25 / 256)):
        wave = tn.SquareWave(1.0, (0, 1), bins)
        tally = drawn(wave, population("bell", bins), 3000, 1)
        matrix, counts = wave._law.matrix(), tally.cells.astype(np.float64)
        average = np.zeros((bins, bins))
        for j in range(bins):
            for neighbour in (j - 1, j + 1):
                average[min(max(neighbour, 0), bins - 1), j] += aside
            average[j, j] += 1 - 2 * aside
        f, before = np.full(bins, 1 / bins), -np.inf
        while True:
            cells = matrix @ f
            value = counts @ np.log(cells)
            if abs(value - before) < 1e-3:
                break
            before = value
            f = f * (matrix.T @ (counts / cells))
            f = average @ (f / f.sum())
        found = tally.estimate("ems")
        assert found.converged
        np.testing.assert_allclose(found.frequencies, f, rtol=1e-6, atol=1e-12)


def test_unbiased_shares_and_their_covariances_are_those_of_plain_least_squares() -> None:
    for epsilon, name in ((0.7, "one"), (3.0, "bell"), (6.0, "spikes")):
        wave = tn.SquareWave(epsilon, (0, 4), 12)
        matrix = wave._law.matrix()
        for who in (tn.Everyone(), tn.Personalized(np.linspace(0.2, 1, 5000))):
            shares = population(name, 12)
            values = np.random.default_rng(2).choice(wave.domain._middles, 5000, p=shares)
            tally = wave.collect(values, participation=who, seed=1)
            estimate = tally.estimate("ml")
            cells = matrix @ estimate.frequencies
            # Rows scaled to one variance, then solved by singular values.
            scaled = 1 / np.sqrt(cells)
            solve = np.linalg.pinv(matrix * scaled[:, None]) * scaled
            if tally.weights is None:
                shares = tally.cells / tally.received
                plain = np.diag(cells) - np.outer(cells, cells)
                around = solve @ plain @ solve.T / tally.received
            else:
                shares = tally.weights.inverse / tally.weights.total_inverse
                # Of a ratio: each report's weight and its distance from the estimate.
                apart = solve - (solve @ shares)[:, None]
                squares = tally.weights.inverse_squared / tally.weights.total_inverse**2
                around = np.einsum("ic,jc,c->ij", apart, apart, squares)
            np.testing.assert_allclose(estimate.unbiased, solve @ shares, atol=1e-9)
            errors = np.sqrt(np.diag(around))
            np.testing.assert_allclose(estimate.standard_errors, errors, rtol=1e-7)
            sums = np.cumsum(np.cumsum(around, 0), 1).diagonal()
            # The last sum is one, without error.
            np.testing.assert_allclose(
                estimate.cumulative_standard_errors[:-1], np.sqrt(sums[:-1]), rtol=1e-6
            )
            assert estimate.cumulative_standard_errors[-1] < 1e-6
            middles = wave.domain._middles
            expected = float(np.sqrt(middles @ around @ middles))
            assert estimate.mean_standard_error == pytest.approx(expected, rel=1e-7)


def test_where_reports_say_next_to_nothing_intervals_are_wide_and_not_wrong() -> None:
    for epsilon in (1e-8, 1e-4, 0.01, 20.0, 42.0):
        for bins in (2, 50):
            wave = tn.SquareWave(epsilon, (0, 1), bins)
            tally = wave.collect(np.linspace(0, 1, 2000), seed=1)
            for method in ("ems", "ml"):
                estimate = tally.estimate(method)
                size = np.abs(estimate.unbiased).max()
                assert abs(estimate.unbiased.sum() - 1.0) < 1e-9 * (1 + size)
                low, high = estimate.mean_interval(1 - 1e-6)
                assert low < 0.5 < high
                # In the limit the information is that of reports with weights of 1 + epsilon.
                assert estimate.mean_standard_error * epsilon > 0.01 or epsilon > 1


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_intervals_cover_whatever_the_population(
    name: str, epsilon: float, statistical: ModuleType
) -> None:
    bins, runs, level = 16, 300, 0.9
    wave = tn.SquareWave(epsilon, (0.0, 8.0), bins)
    shares = population(name, bins)
    truth = float(shares @ wave.domain._middles)
    first = int(np.searchsorted(np.cumsum(shares), 0.5 - 1e-12))
    shown = np.zeros(bins, int)
    means = medians = 0
    unbiased = []
    for seed in range(runs):
        estimate = drawn(wave, shares, 4000, seed).estimate("ml")
        shown += estimate.interval(level).contains(shares)
        low, high = estimate.mean_interval(level)
        means += low <= truth <= high
        median = estimate.quantile(0.5, level)
        # The median is somewhere in its bin.
        medians += median.low <= wave.domain.edges[first] and (
            wave.domain.edges[first + 1] <= median.high
        )
        unbiased.append(estimate.unbiased)
    # Of 16 bins at once: alpha is that of one check over all.
    statistical.check_share(shown, runs, 0.86, 0.94)
    statistical.check_share(np.array([means]), runs, 0.87, 0.93)
    statistical.check_share(np.array([medians]), runs, 0.89, 1.0)
    statistical.check_mean(np.array(unbiased), shares, slack=2e-4)


@pytest.mark.everyday
def test_personal_probabilities_that_depend_on_the_number_are_no_harm(
    statistical: ModuleType,
) -> None:
    wave, runs, nodes = tn.SquareWave(2.0, (0, 10), 10), 250, 3000
    values = np.sort(np.random.default_rng(1).beta(2, 3, nodes)) * 10
    who = tn.Personalized(np.linspace(0.15, 0.9, nodes))
    shares = np.bincount(wave._core.bins(values), minlength=10) / nodes
    truth = float(shares @ wave.domain._middles)
    shown, means, found = np.zeros(10, int), 0, []
    for seed in range(runs):
        estimate = wave.collect(values, participation=who, seed=seed).estimate()
        shown += estimate.interval(0.9).contains(shares)
        low, high = estimate.mean_interval(0.9)
        means += low <= truth <= high
        found.append(estimate.unbiased)
    statistical.check_share(np.append(shown, means), runs, 0.86, 0.97)
    statistical.check_mean(np.array(found), shares, slack=3e-3)


def test_both_methods_find_the_distribution() -> None:
    for name, method, most in (
        ("bell", "ems", 0.01),
        ("two", "ems", 0.015),
        ("spikes", "ml", 0.015),
        ("one", "ml", 0.003),
        ("end", "ml", 0.003),
    ):
        wave, shares = tn.SquareWave(2.0, (0, 1), 64), population(name, 64)
        found = drawn(wave, shares, 200_000, 2).estimate(method)
        distance = np.abs(np.cumsum(found.frequencies - shares)).mean()
        assert distance < most, (name, method, distance)


def test_quantiles_are_within_their_bins_and_in_order() -> None:
    wave = tn.SquareWave(3.0, (10.0, 20.0), 20)
    estimate = wave.collect(np.linspace(12, 15, 60_000), seed=1).estimate()
    values = [estimate.quantile(share) for share in (0.001, 0.25, 0.5, 0.75, 0.999)]
    assert [q.value for q in values] == sorted(q.value for q in values)
    for q in values:
        assert 10 <= q.low <= q.value <= q.high <= 20
    assert estimate.quantile(0.5).value == pytest.approx(13.5, abs=0.3)
    assert estimate.quantile(0.5, 0.99).low <= estimate.quantile(0.5, 0.9).low
    # In a single bin, spread evenly.
    sure = tn.SquareWave(30.0, (0, 4), 4).collect([1.5] * 1000, seed=1).estimate("ml")
    assert sure.quantile(0.25).value == pytest.approx(1.25, abs=1e-3)
    assert (sure.quantile(0.25).low, sure.quantile(0.25).high) == (1.0, 2.0)
    for wrong in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidValueError, match="probability"):
            sure.quantile(wrong)


def test_estimates_are_tables_and_pictures() -> None:
    estimate = tn.SquareWave(2.0, (0, 8), 8).collect(np.linspace(0, 8, 4000), seed=1).estimate()
    records = estimate.to_records(0.9, simultaneous="sidak")
    assert [row["from"] for row in records] == list(range(8))
    assert estimate.to_arrow().column_names == list(records[0])
    assert estimate.interval().to_arrow().num_rows == 8
    assert [row["low"] for row in records] == estimate.interval(
        0.9, simultaneous="sidak"
    ).low.tolist()
    assert (estimate.interval(0.99).width > estimate.interval(0.9).width).all()
    assert isinstance(pickle.loads(pickle.dumps(estimate)), DistributionEstimate)
    axes = estimate.plot(np.full(8, 1 / 8))
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["estimate", "truth"]
    axes.figure.clear()
    with pytest.raises(InvalidValueError, match="one share for each of the 8 bins"):
        estimate.plot([1.0])
    with pytest.raises(InvalidValueError, match="one of 'auto', 'unbiased'"):
        estimate.interval(method="score")


def test_groups_and_series() -> None:
    wave = tn.SquareWave(3.0, (0, 10), 10)
    days = {("DE", day): wave.collect(np.full(4000, day + 1.5), seed=day) for day in (1, 2, 4)}
    days["FR", 1] = DistributionTally.empty(next(iter(days.values())).plan)
    grouped = tn.GroupedTally(["country", "day"], days)
    estimate = grouped.estimate("ml")
    assert estimate.quantiles(0.5)[:3].astype(int).tolist() == [2, 3, 5]
    assert np.isnan(estimate.means[3])
    assert estimate.frequencies.shape == (4, 10)
    assert estimate.reasons == {("FR", 1): "the group has no nodes"}
    assert len(estimate.to_records()) == 40
    assert estimate.interval(simultaneous="bonferroni").low.shape == (4, 10)
    assert grouped.estimate().method == "ems"
    assert estimate.plot(simultaneous="sidak").get_xlabel() == "number"
    series = estimate.series("day")
    assert series.times == [1, 2, 4]
    assert series._picked(estimate.quantiles(0.5), ("DE",)).astype(int).tolist() == [2, 3, 5]
    assert series.numbers(("DE",)).shape == (3, 10)
    series.plot().clear()
    with pytest.raises(InvalidValueError, match="labels must be"):
        series.plot(["0 to 1"])
    # Bins have an order of their own: all are listed.
    assert len(estimate.to_records(top=3)) == 40


def test_a_law_with_one_cell_in_the_window_is_direct_encoding() -> None:
    wave = tn.SquareWave(9.0, (0, 1), 16)
    direct = tn.DirectEncoding(9.0, 16)
    assert (wave.window, wave.cells) == (1, 16)
    assert float(wave.realized_ratio) == pytest.approx(float(direct.realized_ratio), rel=1e-9)
    tally = drawn(wave, population("bell", 16), 5000, 4)
    shares = direct.tally_from_counts(tally.cells, nodes=5000).estimate()
    estimate = tally.estimate("ml")
    np.testing.assert_allclose(estimate.unbiased, shares.frequencies, atol=1e-6)
    law = WaveLaw(16, 1, *direct._core.words) if hasattr(direct, "_core") else wave._law
    np.testing.assert_allclose(law.matrix().sum(axis=0), 1.0)
