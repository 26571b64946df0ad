"""Figures of the sampling paper, against computations of another kind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import turnout as tn
from turnout_reproduce import Outcome, Scale, chosen, sampling


@pytest.fixture(scope="module")
def trade_off() -> Outcome:
    return chosen(["sampling/figure-3"])[0].run(Scale())


def test_the_data_are_what_the_paper_says() -> None:
    for trials, variance in ((((100, 0.5),), 25.0), (((50, 0.6), (50, 0.4)), 24.0)):
        counts = sampling._counts(trials, 3)
        values = np.arange(101)
        assert counts.sum() == 50_000
        mean = (counts * values).sum() / 50_000
        assert abs(mean - 50) < 4.9 * np.sqrt(variance / 50_000)  # alpha = 1e-6
        spread = (counts * (values - mean) ** 2).sum() / 50_000
        assert abs(spread / variance - 1) < 4.9 * np.sqrt(2 / 50_000)


@pytest.mark.everyday
def test_distances_are_those_of_normal_errors(trade_off: Outcome) -> None:
    """The mean of half the sum of 101 absolute errors, from exact variances."""
    counts = sampling._counts(((100, 0.5),), 1)
    for curve, epsilon in zip(trade_off.curves, sampling._EPSILONS, strict=True):
        oracle = tn.DirectEncoding(epsilon, 101)
        assert curve.error is not None
        for rate, distance, error in zip(curve.x, curve.y, curve.error, strict=True):
            variance = tn.estimator_variance(
                oracle, tn.Bernoulli(rate), method="c_hat", true_counts=counts
            )
            expected = np.sqrt(2 / np.pi * variance).sum() / 2 / 50_000
            # 2 % for counts that are not quite normal.
            assert abs(distance - expected) < 5.5 * error + 0.02 * expected


def test_the_reversed_theorem_is_found(trade_off: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = trade_off.findings[-1]
    assert finding.verdict == "paper is wrong"
    # From the exact formulas of both variances, in sums over nodes.
    p, q = tn.DirectEncoding(1.0, 101).support_probabilities
    counts, rate = sampling._counts(((100, 0.5),), 1).astype(float), 0.3
    var_g = var_hat = 0.0
    for held in counts:
        for r, nodes in ((p, held), (q, counts.sum() - held)):
            var_g += nodes * rate * r * (1 - rate * r)
            var_hat += nodes * (rate * (r * (1 - 2 * q) + q * q) - rate**2 * (r - q) ** 2)
    assert finding.ours == pytest.approx(var_hat / var_g, rel=1e-12)

    # If it were as the paper says the verdict would say so.
    swapped = {"g": "c_hat", "c_hat": "g"}
    true = tn.estimator_variance
    monkeypatch.setattr(
        tn,
        "estimator_variance",
        lambda oracle, who, *, method, true_counts: true(
            oracle, who, method=swapped[method], true_counts=true_counts
        ),
    )
    assert chosen(["sampling/figure-3"])[0].run(Scale()).findings[-1].verdict == "agrees"


def test_a_biased_estimator_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates = sampling._estimates

    def biased(counts, epsilon, rate, method, **options):  # type: ignore[no-untyped-def]
        assert method == "g"
        return estimates(counts, epsilon, rate, "c", **options)

    monkeypatch.setattr(sampling, "_estimates", biased)
    outcome = chosen(["sampling/figure-1"])[0].run(Scale())
    unbiased = [finding for finding in outcome.findings if "unbiased" in finding.what]
    assert {finding.verdict for finding in unbiased} == {"paper is wrong"}


def test_bars_cover_the_data_as_often_as_two_standard_deviations_do() -> None:
    outcome = chosen(["sampling/figure-1"])[0].run(Scale(full=False, seed=2))
    for panel in ("pi = 0.1", "pi = 0.9"):
        data, found = (curve for curve in outcome.curves if curve.panel == panel)
        assert found.error is not None
        inside = np.abs(np.subtract(found.y, data.y)) <= 2 * np.array(found.error)
        # 101 nearly independent trials of probability 0.954; alpha = 1e-6.
        assert inside.sum() >= stats.binom(101, 0.954).ppf(1e-6)
