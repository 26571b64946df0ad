"""Cumulative shares, ranges, quantiles and means of answers with an order."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import turnout as tn
from turnout.errors import (
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)
from turnout.frequency.choice import registered
from turnout.frequency.ordered import LinearEstimate, isotonic, ordered

HELD = np.array([50, 200, 400, 250, 80, 20])
TRUTH = HELD / HELD.sum()
AGES = tn.Domain([15, 25, 35, 45, 55, 65])


def estimates(method: str, repeats: int = 2000, rate: float = 0.6) -> list[Any]:
    oracle = tn.DirectEncoding(1.5, AGES)
    return [
        ordered(oracle.simulate(HELD, participation=tn.Bernoulli(rate), seed=seed).estimate(method))
        for seed in range(repeats)
    ]


@pytest.mark.parametrize("method", ["hajek", "c_hat", "g"])
def test_sums_are_unbiased_with_the_standard_errors_that_they_claim(
    method: str, statistical: ModuleType
) -> None:
    found = estimates(method)
    cumulative = np.array([one.cumulative[:-1] for one in found])
    statistical.check_mean(cumulative, np.cumsum(TRUTH)[:-1])
    errors = np.array([one.cumulative_standard_errors[:-1] for one in found[:300]])
    statistical.check_variance(cumulative, (errors**2).mean(axis=0), slack=0.02)
    means = np.array([one.mean().value for one in found])
    statistical.check_mean(means, float(np.array(AGES.labels, dtype=float) @ TRUTH))
    claimed = np.mean([one.mean().standard_error ** 2 for one in found[:300]])
    statistical.check_variance(means, claimed, slack=0.02)
    shares = np.array([one.range(25, 45).value for one in found])
    claimed = np.mean([one.range(25, 45).standard_error ** 2 for one in found[:300]])
    statistical.check_variance(shares, claimed, slack=0.02)


def test_errors_that_leave_out_the_covariances_would_be_found(statistical: ModuleType) -> None:
    """The neighbouring mistake: variances of single answers added up."""
    found = estimates("hajek")
    cumulative = np.array([one.cumulative[2] for one in found])
    naive = np.mean([(one._estimate.standard_errors[:3] ** 2).sum() for one in found[:300]])
    with pytest.raises(AssertionError, match="variance"):
        statistical.check_variance(cumulative, naive, slack=0.02)


def test_intervals_cover_as_often_as_they_say(statistical: ModuleType) -> None:
    found = estimates("hajek")
    truth = TRUTH[1:4].sum()
    intervals = np.array([one.range(25, 45).interval(0.9) for one in found])
    covered = int(((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])).sum())
    statistical.check_share(covered, len(found), 0.89, 0.91)
    quantiles = [one.quantile(0.5, level=0.9) for one in found]
    # The cumulative shares are .05, .25, .65, ...: the median is 35.
    covered = sum(one.low <= 35 <= one.high for one in quantiles)  # type: ignore[operator]
    statistical.check_share(covered, len(found), 0.89, 1.0)
    assert all(one.low <= one.label <= one.high for one in quantiles)  # type: ignore[operator]


def test_quantile_limits_are_neither_wider_nor_narrower_than_tests_of_every_answer() -> None:
    oracle = tn.DirectEncoding(2.0, 40)
    for seed in range(10):
        found = ordered(oracle.simulate([50] * 40, seed=seed))
        quantile = found.quantile(0.3, level=0.95)
        z = 1.959963984540054
        upper = found.cumulative + z * found.cumulative_standard_errors
        lower = found.cumulative - z * found.cumulative_standard_errors
        kept = [
            code
            for code in range(40)
            if (code == 39 or upper[code] >= 0.3) and (code == 0 or lower[code - 1] < 0.3)
        ]
        assert quantile.low <= min(kept)  # type: ignore[operator]
        assert quantile.high >= max(kept)  # type: ignore[operator]
        assert quantile.low in (min(kept), quantile.label)
        assert quantile.high in (max(kept), quantile.label)


def test_everything_is_a_share_of_one() -> None:
    estimate = tn.DirectEncoding(1.0, AGES).simulate(HELD, seed=1).estimate("g")
    found = ordered(estimate)
    assert found.frequencies.sum() == pytest.approx(1.0, abs=1e-12)
    whole = found.range(15, 65)
    assert whole.value == pytest.approx(1.0, abs=1e-12)
    assert whole.standard_error == 0.0
    assert found.cumulative_standard_errors[-1] == 0.0
    shift = found.frequencies - estimate.frequencies
    np.testing.assert_allclose(shift, shift[0], atol=1e-12)
    # A mean moves with its numbers, error and all.
    one, other = found.mean(), found.mean(np.array(AGES.labels, dtype=float) + 1e4)
    assert other.value == pytest.approx(one.value + 1e4)
    assert other.standard_error == pytest.approx(one.standard_error)


def test_the_monotone_shares_are_the_nearest_ones() -> None:
    generator = np.random.default_rng(3)
    for size in (2, 5, 8):
        values = generator.normal(size=size).cumsum() / 3
        found = optimize.minimize(
            lambda x, values=values: ((x - values) ** 2).sum(),
            np.sort(values),
            constraints=[{"type": "ineq", "fun": np.diff}],
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(isotonic(values), found.x, atol=1e-5)
    rising = np.array([0.1, 0.2, 0.2, 0.7])
    np.testing.assert_array_equal(isotonic(rising), rising)
    noisy = ordered(tn.DirectEncoding(0.2, 30).simulate([10] * 30, seed=1))
    assert (np.diff(noisy.cumulative) < 0).any()
    assert (np.diff(noisy.monotone) >= 0).all()
    assert noisy.monotone.min() >= 0.0
    assert noisy.monotone[-1] == 1.0


def test_a_projected_estimate_is_taken_before_its_projection() -> None:
    estimate = tn.DirectEncoding(0.5, 5).simulate([100, 0, 0, 0, 0], seed=1).estimate()
    projected = ordered(estimate.project("simplex"))
    np.testing.assert_array_equal(projected.frequencies, ordered(estimate).frequencies)


def test_what_has_no_order_or_no_answer_is_refused() -> None:
    found = ordered(tn.DirectEncoding(1.0, tn.Domain(["a", "b", "c"])).simulate([5, 5, 5], seed=1))
    assert found.range("a", "b").standard_error > 0
    with pytest.raises(UnknownLabelError, match="low must be a label"):
        found.range("d", "b")
    with pytest.raises(UnknownLabelError, match="high must be a label"):
        found.range("a", 7)
    with pytest.raises(InvalidValueError, match="must not come before"):
        found.range("c", "a")
    with pytest.raises(InvalidTypeError, match="labels of the domain are not numbers"):
        found.mean()
    with pytest.raises(InvalidValueError, match="coefficients"):
        found.mean([1.0, 2.0])
    for probability in (0.0, 1.0, 1.5):
        with pytest.raises(InvalidValueError, match="probability must be"):
            found.quantile(probability)
    with pytest.raises(InvalidValueError, match="level must be"):
        LinearEstimate(0.5, 0.1).interval(1.0)
    with pytest.raises(InvalidTypeError, match="source must be Reports, a Tally"):
        ordered([0.5, 0.5])  # type: ignore[arg-type]
    personal = tn.DirectEncoding(1.0, 2).collect(
        [0, 1] * 50, participation=tn.Personalized([0.5] * 100), seed=1
    )
    with pytest.raises(EstimatorError, match="one participation rate"):
        ordered(personal)


ORACLES = [pytest.param(kind, id=name) for name, kind in registered().items()]


@pytest.mark.parametrize("kind", ORACLES)
def test_reports_of_any_oracle_give_the_errors_of_repeated_collections(
    kind: type[tn.FrequencyOracle], statistical: ModuleType
) -> None:
    oracle = kind(1.5, 12)
    held = np.array([0, 10, 30, 60, 100, 80, 60, 30, 20, 10, 0, 0])
    values = np.repeat(np.arange(12), held)
    truth = held[3:7].sum() / held.sum()
    shares = [
        ordered(oracle.randomize(values, participation=tn.Bernoulli(0.5), seed=seed)).range(3, 6)
        for seed in range(1000)
    ]
    statistical.check_mean([share.value for share in shares], truth, slack=1e-3)
    claimed = np.mean([share.standard_error**2 for share in shares])
    # Estimated from the same reports, and the more precise the more of them there are.
    statistical.check_variance([share.value for share in shares], claimed, slack=0.03)


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_tally_gives_the_same_errors_as_its_reports(
    kind: type[tn.FrequencyOracle], epsilon: float
) -> None:
    oracle = kind(epsilon, 20)
    values = np.random.default_rng(5).binomial(19, 0.3, size=200_000)
    reports = oracle.randomize(values, participation=tn.Bernoulli(0.5), seed=1)
    by_reports = ordered(reports)
    try:
        by_tally = ordered(oracle.tally(reports))
    except EstimatorError as error:
        assert "pass the reports" in str(error)  # noqa: PT017
        return
    np.testing.assert_allclose(by_tally.frequencies, by_reports.frequencies, atol=1e-12)
    # The relative error of a variance from 100,000 reports is a few thousandths.
    for low, high in [(0, 9), (3, 3), (4, 7), (10, 19)]:
        one, other = by_tally.range(low, high), by_reports.range(low, high)
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.01)
    assert by_tally.mean().standard_error == pytest.approx(
        by_reports.mean().standard_error, rel=0.01
    )


def test_reports_of_nodes_with_probabilities_of_their_own_have_ordered_answers(
    statistical: ModuleType,
) -> None:
    oracle = tn.DirectEncoding(2.0, 5)
    values = np.repeat(np.arange(5), [100, 300, 300, 200, 100])
    taking_part = tn.Personalized(np.where(values < 2, 0.9, 0.3))
    shares = [
        ordered(oracle.randomize(values, participation=taking_part, seed=seed)).range(1, 2)
        for seed in range(2000)
    ]
    statistical.check_mean([share.value for share in shares], 0.6, slack=2e-3)
    claimed = np.mean([share.standard_error**2 for share in shares])
    statistical.check_variance([share.value for share in shares], claimed, slack=0.03)
    single = oracle.randomize([1], seed=1)
    with pytest.raises(EstimatorError, match="at least two reports"):
        ordered(single)
    assert "1000 nodes" in repr(ordered(oracle.randomize(values, seed=1)))


def test_errors_of_cumulative_shares_are_computed_once() -> None:
    found = ordered(tn.DirectEncoding(2.0, 6).randomize(list(range(6)) * 50, seed=1))
    assert found.cumulative_standard_errors is found.cumulative_standard_errors
    assert not found.cumulative_standard_errors.flags.writeable


@pytest.mark.parametrize("name", ["direct_encoding", "summation_histogram_encoding"])
def test_combinations_are_known_as_well_as_by_the_oracle_that_reports_them(name: str) -> None:
    table = tn.JointTable(2.0, {"a": 2, "b": 2}, oracle=name)
    reports = table.randomize({"a": [0, 1] * 500, "b": [0, 0, 0, 1] * 250}, seed=1)
    inner = tn.Reports(table.oracle, tn.Everyone(), reports.codes, reports.nodes)
    found, expected = ordered(reports), ordered(inner)
    np.testing.assert_array_equal(
        found.cumulative_standard_errors, expected.cumulative_standard_errors
    )
