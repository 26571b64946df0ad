"""Releases of sampled counts above a threshold: laws, intervals, and what is refused."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
from turnout.accounting import PrivacyLedger, SampleAndThreshold
from turnout.errors import BudgetExceededError, InvalidTypeError, InvalidValueError
from turnout.thresholding import ThresholdedCount, ThresholdedCounts

ITEMS = ["tea"] * 300 + ["coffee"] * 120 + ["milk"] * 30 + ["secret"]


def test_kept_counts_have_their_law_and_those_below_the_threshold_are_not_there(
    statistical: ModuleType,
) -> None:
    rate, threshold, repeats = 0.3, 10, 2000
    found = [
        dict(zip(made.labels, made.counts.tolist(), strict=True))
        for made in (
            tn.sample_and_threshold(ITEMS, threshold=threshold, rate=rate, seed=seed)
            for seed in range(repeats)
        )
    ]
    assert all("secret" not in each for each in found)
    assert all(count >= threshold for each in found for count in each.values())
    counts = np.array([[each.get(name, 0) for name in ("tea", "coffee")] for each in found])
    statistical.check_mean(counts, [90.0, 36.0])
    statistical.check_variance(counts, [300 * 0.21, 120 * 0.21])
    published = [sum("milk" in each for each in found)]
    chance = tn.sample_and_threshold(ITEMS, threshold=10, rate=0.3).chance_of_publication(30)
    assert chance == pytest.approx(float(stats.binom.sf(9, 30, 0.3)), rel=1e-12)
    statistical.check_share(published, repeats, chance, chance)


@pytest.mark.parametrize("people", [0, 5, 30, 66, 67, 80, 400])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_hold_the_true_count_whether_it_is_published_or_not(
    people: int, level: float
) -> None:
    mechanism = SampleAndThreshold(0.3, 20)
    kept = np.arange(people + 1)
    masses = stats.binom.pmf(kept, people, 0.3)
    release = ThresholdedCounts(mechanism, {count: count for count in range(20, people + 1)})
    low, high = (np.concatenate([np.zeros(20), ends[::-1]]) for ends in release.interval(level))
    high[:20] = release.below(level)
    missed = ~((low[: people + 1] <= people) & (people <= high[: people + 1]))
    assert masses[missed].sum() <= 1.0 - level + 1e-12
    assert release.count_of("a", level) == ThresholdedCount("a", None, None, 0, int(high[0]))
    for record in release.to_records(level)[:3]:
        assert ThresholdedCount(**record) == release.count_of(record["label"], level)


def test_limits_are_the_last_counts_that_are_not_refuted() -> None:
    release = ThresholdedCounts(SampleAndThreshold(0.25, 20), {"a": 240})
    (low,), (high,) = release.interval(0.9)
    assert stats.binom.sf(239, low, 0.25) > 0.05 >= stats.binom.sf(239, low - 1, 0.25)
    assert stats.binom.cdf(240, high, 0.25) > 0.05 >= stats.binom.cdf(240, high + 1, 0.25)
    most = release.below(0.9)
    assert stats.binom.cdf(19, most, 0.25) > 0.05 >= stats.binom.cdf(19, most + 1, 0.25)
    everyone = ThresholdedCounts(SampleAndThreshold(1.0, 20), {"a": 240})
    assert everyone.count_of("a") == ThresholdedCount("a", 240, 240.0, 240, 240)
    assert everyone.below() == 19


def test_limits_do_not_cross_where_counts_are_no_longer_told_apart() -> None:
    release = ThresholdedCounts(SampleAndThreshold(1e-6, 20), {"a": 2**40, "b": 2**30})
    low, high = release.interval()
    assert low[0] == high[0] == 2**53
    assert low[1] < 2**30 * 1e6 < high[1] < 2**53


@pytest.mark.parametrize(
    "values",
    [
        [3] * 40 + [7] * 30 + [1],
        np.array([3] * 40 + [7] * 30 + [1], np.int16),
        np.array(["3"] * 40 + ["7"] * 30 + ["1"]),
        [("a", 1)] * 40 + [("b", None)] * 30 + [("c",)],
    ],
    ids=["list", "integers", "texts", "pairs"],
)
def test_items_need_not_be_listed_and_may_be_of_any_kind(values: Any) -> None:
    first, second = values[0], values[40]
    everyone = tn.sample_and_threshold(values, threshold=2, rate=1.0)
    assert everyone.labels == (first, second)
    assert everyone.counts.tolist() == [40, 30]
    one, two = (tn.sample_and_threshold(values, threshold=2, rate=0.5, seed=4) for _ in range(2))
    assert one == two
    assert json.dumps(everyone.to_records(), default=str)


def test_columns_of_arrow_and_pandas_are_taken() -> None:
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    for column in (pa.array(["a"] * 5), pa.chunked_array([["a"] * 5]), pd.Series(["a"] * 5)):
        found = tn.sample_and_threshold(column, threshold=2, rate=1.0)
        assert found.labels == ("a",)


def test_the_order_of_the_labels_says_nothing_about_the_order_of_the_answers() -> None:
    forward = tn.sample_and_threshold(["b"] * 9 + ["a"] * 9, threshold=2, rate=1.0)
    backward = tn.sample_and_threshold(["a"] * 9 + ["b"] * 9, threshold=2, rate=1.0)
    assert forward.labels == backward.labels == ("a", "b")
    assert "18" not in repr(forward)


def test_the_rate_is_the_largest_that_the_target_allows() -> None:
    release = tn.sample_and_threshold(ITEMS, threshold=20, epsilon=1.0, delta=1e-8)
    assert release.mechanism.rate == pytest.approx(0.2514, abs=5e-5)
    moved = tn.sample_and_threshold(
        ITEMS, threshold=20, epsilon=1.0, delta=1e-8, adjacency="replace"
    )
    assert moved.mechanism.rate < release.mechanism.rate
    assert moved.mechanism.delta(1.0, "replace") <= 1e-8


def test_a_ledger_pays_first_and_refuses() -> None:
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-8)
    tn.sample_and_threshold(ITEMS, threshold=20, rate=0.2, ledger=ledger)
    assert ledger.entries[0].mechanism == SampleAndThreshold(0.2, 20)
    with pytest.raises(BudgetExceededError):
        tn.sample_and_threshold(ITEMS, threshold=20, rate=0.9, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"rate": None}, InvalidValueError, "rate must be given, or epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1e-8}, InvalidValueError, "rate must be given, or epsilon"),
        ({"rate": None, "epsilon": 1.0}, InvalidValueError, "rate must be given, or epsilon"),
        ({"rate": 0.0}, InvalidValueError, "rate must be above 0"),
        ({"rate": None, "epsilon": 1.0, "delta": 1.0}, InvalidValueError, "and below 1, got 1.0"),
        ({"rate": None, "epsilon": 1.0, "delta": 0.0}, InvalidValueError, "no rate reaches"),
        ({"rate": None, "epsilon": 1.0, "delta": 1e-300}, InvalidValueError, "no rate reaches"),
        ({"rate": 1.5}, InvalidValueError, "rate must be a probability"),
        ({"threshold": 0}, InvalidValueError, "threshold must be"),
        ({"adjacency": "replace"}, InvalidValueError, "adjacency is for epsilon and delta"),
        ({"ledger": 3}, InvalidTypeError, "ledger must be a PrivacyLedger"),
        ({"values": "tea"}, InvalidTypeError, "values must be one item for each person"),
        ({"values": 7}, InvalidTypeError, "values must be one item for each person"),
        ({"values": ["tea", ["milk"]]}, InvalidTypeError, r"values\[1\] must be an item"),
        ({"values": ["tea", None]}, InvalidValueError, r"values\[1\] must be an item, got None"),
        ({"values": [0.5, float("nan")]}, InvalidValueError, r"values\[1\] must be an item"),
        ({"values": np.array([0.5, np.nan])}, InvalidValueError, r"values\[1\] must be an item"),
        ({"values": np.zeros((2, 2))}, InvalidValueError, "got an array of shape"),
        ({"seed": -1}, InvalidValueError, "seed must be"),
    ],
)
def test_bad_input_is_refused_by_name_whoever_is_kept(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    arguments = {"values": ITEMS, "threshold": 5, "rate": 1e-9, **changes}
    with pytest.raises(error, match=message):
        tn.sample_and_threshold(arguments.pop("values"), **arguments)


def test_counts_below_the_threshold_are_no_release() -> None:
    with pytest.raises(InvalidValueError, match="counts must be at least the threshold 20, got 3"):
        ThresholdedCounts(SampleAndThreshold(0.25, 20), {"a": 3})
    with pytest.raises(InvalidValueError, match="level must be"):
        ThresholdedCounts(SampleAndThreshold(0.25, 20), {}).interval(1.0)
