"""Reports that honest nodes hardly ever send: none is missed of the kind, and none is slandered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
from turnout import metrics
from turnout.frequency import improbable
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.choice import registered
from turnout.frequency.improbable import NEGLIGIBLE, rows_of_bits, rows_of_noise


def packed(bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows of bits as oracles write them."""
    wide = np.zeros((len(bits), -(-bits.shape[1] // 64) * 64), np.uint8)
    wide[:, : bits.shape[1]] = bits
    rows: np.ndarray[Any, Any] = np.packbits(wide, axis=1, bitorder="little").view("<u8")
    return rows.astype(np.uint64)


@pytest.mark.parametrize("size", [2, 3, 64, 65, 300, 2000])
@pytest.mark.parametrize("own", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("other", [1e-9, 0.01, 0.27, 0.5])
def test_the_chance_of_too_many_or_too_few_ones_is_negligible(
    size: int, own: float, other: float
) -> None:
    rows = packed(np.tri(size + 1, size, -1, dtype=np.uint8))
    found = rows_of_bits(rows, size, other)
    others = stats.binom.pmf(np.arange(size), size - 1, other)
    law = np.convolve(others, [1 - own, own])
    assert law[found].sum() <= NEGLIGIBLE
    # The rest is one stretch of numbers of ones, and no much larger one is likely either.
    kept = np.flatnonzero(~found)
    assert kept.size == kept[-1] - kept[0] + 1
    if found.any():
        inner = kept[2:-2] if kept.size > 4 else kept
        assert law[[inner[0], inner[-1]]].max() >= NEGLIGIBLE / 1e6


@pytest.mark.parametrize(("entries", "rate"), [(2, 0.5), (40, 0.5), (40, 3.0), (300, 1.0)])
def test_the_chance_of_too_much_or_too_little_noise_is_negligible(
    entries: int, rate: float
) -> None:
    # The law of the sum of |x|, entry by entry; sums of positive numbers lose no small chances.
    reach = int(120 / rate)
    one = np.exp(-rate * np.arange(reach))
    one[1:] *= 2
    one /= one[0] + one[1:].sum()
    law = np.ones(1)
    for _ in range(entries):
        law = np.convolve(law, one)
    sums = np.arange(len(law))
    rows = np.zeros((len(law), entries), np.int32)
    rows[:, 0] = sums
    found = rows_of_noise(rows, rate)
    # An answer moves the sum by one at most, in either direction.
    for shift in (-1, 0, 1):
        moved = np.clip(sums + shift, 0, len(law) - 1)
        assert law[found[moved]].sum() <= NEGLIGIBLE
    kept = np.flatnonzero(~found)
    assert kept.size == kept[-1] - kept[0] + 1
    assert law[kept[-1] :].sum() >= NEGLIGIBLE / 1e9
    if kept[0] > 0:
        assert law[: kept[0] + 1].sum() >= NEGLIGIBLE / 1e9


def oracles() -> dict[str, tn.FrequencyOracle]:
    plain = {name: found(1.0, 200) for name, found in registered().items()}
    return {
        **plain,
        "memoized": tn.Memoized(tn.DirectEncoding(4.0, 200), first_epsilon=1.0),
        "memoized rows": tn.Memoized(tn.OptimizedUnaryEncoding(4.0, 200), first_epsilon=1.0),
        "padded": PaddedOracle(
            1.0, 200, oracle=tn.OptimizedUnaryEncoding(1.0, 200), own_probability=0.25
        ),
    }


@pytest.mark.parametrize("name", oracles())
def test_no_report_of_an_honest_node_is_found(name: str) -> None:
    oracle = oracles()[name]
    reports = oracle.randomize(np.arange(4000) % 200).codes
    assert not oracle.improbable(reports).any()
    assert oracle.improbable(reports[:0]).shape == (0,)


def bad_rows(name: str) -> np.ndarray[Any, Any]:
    if name == "summation_histogram_encoding":
        return np.array([[2**31 - 1] * 200, [-(2**31)] + [0] * 199, [0] * 200], np.int32)
    if name == "count_mean_sketch":
        width = oracles()[name].width  # type: ignore[attr-defined]
        bits = packed(np.repeat([[1], [0]], width, axis=1).astype(np.uint8))
        return np.concatenate([np.zeros((2, 1), np.uint64), bits], axis=1)
    return packed(np.repeat([[1], [0]], 200, axis=1).astype(np.uint8))


@pytest.mark.parametrize(
    "name",
    [
        "symmetric_unary_encoding",
        "optimized_unary_encoding",
        "threshold_histogram_encoding",
        "memoized rows",
        "padded",
        "count_mean_sketch",
        "summation_histogram_encoding",
    ],
)
def test_reports_with_everything_or_nothing_set_are_found(name: str) -> None:
    oracle = oracles()[name]
    rows = bad_rows(name)
    oracle.check_reports(rows)
    assert oracle.improbable(rows).all()


def test_numpy_before_2_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(1).integers(0, 2**63, (500, 3), np.uint64) >> np.uint64(5)
    expected = [sum(int(word).bit_count() for word in row) for row in rows]
    assert improbable._ones(rows).tolist() == expected
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    monkeypatch.setattr(improbable, "_CHUNK", 100)
    assert improbable._ones(rows).tolist() == expected
    assert improbable._ones(rows[:, 1:]).tolist() != expected


def test_gathering_says_how_many_there_were(caplog: pytest.LogCaptureFixture) -> None:
    plan = tn.Plan(tn.OptimizedUnaryEncoding(1.0, 200), tn.Everyone())
    honest = [plan.report(code) or b"" for code in range(50)]
    full = "ff" * 25 + "00" * 7
    liars = [(plan.report(0) or b"") for _ in range(3)]
    lies = [each[: each.rindex(b":")] + f':"{full}"}}'.encode() for each in liars]
    seen: list[tuple[str, dict[str, float]]] = []
    stop = metrics.subscribe(lambda event, values: seen.append((event, values)))
    try:
        gathered = plan.gather([*honest, *lies], on_bad="count")
        plan.gather([*honest, *lies])
    finally:
        stop()
    # They are valid, and count.
    assert (gathered.improbable, gathered.refused, len(gathered.reports)) == (3, 0, 53)
    assert seen == [("reports_improbable", {"reports": 3})] * 2
    assert "reports that honest nodes hardly ever send: 3" in caplog.text
    assert plan.gather(honest, on_bad="count").improbable == 0


def test_the_largest_numbers_are_no_trouble() -> None:
    assert rows_of_bits(np.full((1, 2**14), 2**64 - 1, np.uint64), 2**20, 1e-6).all()
    for rate in (1e-6, 21.0):
        worst = np.full((1, 5000), -(2**31), np.int32)
        assert rows_of_noise(worst, rate).all()
        assert math.isfinite(float(improbable._log_moment(np.array([rate / 64]), rate)[0]))
