"""Estimates by groups: tables, empty groups, intervals that hold together, differences."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.groups import GroupedEstimate, GroupedTally

ALPHA = 1e-6
DOMAIN = tn.Domain(["no", "maybe", "yes"])
ORACLE = tn.OptimizedUnaryEncoding(2.0, DOMAIN)
RATE = tn.Bernoulli(0.4)


def tally(counts: list[int], seed: int = 1) -> tn.Tally:
    return ORACLE.simulate(counts, participation=RATE, seed=seed)


@pytest.fixture
def grouped() -> GroupedTally:
    return GroupedTally(
        ["country", "version"],
        {
            ("DE", 1): tally([900, 50, 50], 1),
            ("DE", 2): tally([400, 300, 300], 2),
            ("FR", 1): tally([0, 0, 0]),
            ("NL", 1): ORACLE.collect([], participation=RATE),
        },
    )


def test_each_group_is_estimated_as_by_itself(grouped: GroupedTally) -> None:
    for method in ("hajek", "g", "c_hat", "horvitz_thompson", "T"):
        estimate = grouped.estimate(method)
        for place, key in enumerate([("DE", 1), ("DE", 2)]):
            alone = grouped[key].estimate(method)
            assert np.array_equal(estimate[key].frequencies, alone.frequencies)
            assert np.array_equal(estimate.frequencies[place], alone.frequencies)
            assert np.array_equal(estimate.standard_errors[place], alone.standard_errors)
            assert np.array_equal(estimate.counts[place], alone.counts)
            interval = estimate.interval(0.9)
            assert np.allclose(interval.low[place], alone.interval(0.9).low, rtol=1e-12)
            assert np.allclose(interval.high[place], alone.interval(0.9).high, rtol=1e-12)
        assert np.array_equal(
            estimate.total.frequencies, grouped.total.estimate(method).frequencies
        )


def test_groups_without_reports_are_nan_with_a_reason(grouped: GroupedTally) -> None:
    estimate = grouped.estimate()
    assert dict(estimate.reasons) == {
        ("FR", 1): "the group has no nodes",
        ("NL", 1): "the group has no nodes",
    }
    assert np.isnan(estimate.frequencies[2:]).all()
    assert np.isnan(estimate.interval(simultaneous="sidak").low[2:]).all()
    with pytest.raises(EstimatorError, match=r"\('FR', 1\).*no nodes"):
        estimate["FR", 1]
    with pytest.raises(KeyError):
        estimate["IT", 1]
    records = estimate.to_records()
    assert len(records) == 12
    assert records[0]["group"] == {"country": "DE", "version": 1}
    assert records[0]["reason"] is None
    last = records[-1]
    assert (last["label"], last["low"], last["high"]) == ("yes", None, None)
    assert math.isnan(last["frequency"])
    assert last["reason"] == "the group has no nodes"


def test_a_group_whose_nodes_all_stayed_silent() -> None:
    oracle = tn.DirectEncoding(1.0, 2)
    rare = tn.Bernoulli(1e-12)
    empty = oracle.collect([0, 1], participation=rare, seed=1)
    grouped = GroupedTally(["g"], {"a": empty})
    assert grouped.estimate().reasons["a",] == "the group has no reports"
    # An estimator that needs no report estimates from none.
    assert grouped.estimate("c_hat").frequencies.tolist() == [[0.0, 0.0]]


def test_a_method_that_does_not_apply_is_an_error() -> None:
    oracle = tn.DirectEncoding(1.0, 2)
    part = tn.Personalized([0.5] * 100)
    grouped = GroupedTally(["g"], {"a": oracle.collect([0] * 100, participation=part, seed=1)})
    with pytest.raises(EstimatorError, match="one participation rate"):
        grouped.estimate("g")
    with pytest.raises(InvalidValueError, match="method"):
        grouped.estimate("best")
    assert grouped.estimate().frequencies.shape == (1, 2)


def test_a_biased_estimator_has_no_intervals(grouped: GroupedTally) -> None:
    estimate = grouped.estimate("c")
    with pytest.raises(EstimatorError, match="no interval"):
        estimate.interval()
    assert estimate.to_records()[0]["low"] is None
    with pytest.raises(EstimatorError, match="no interval"):
        estimate.compare(("DE", 1), ("DE", 2))


def test_projection_changes_the_frequencies_and_nothing_else(grouped: GroupedTally) -> None:
    estimate = grouped.estimate()
    projected = estimate.project("simplex")
    assert projected.postprocessing == "simplex"
    assert np.allclose(projected.frequencies[:2].sum(axis=1), 1.0)
    assert np.array_equal(projected.standard_errors, estimate.standard_errors, equal_nan=True)
    assert np.array_equal(projected.interval().low, estimate.interval().low, equal_nan=True)
    for comparison in (estimate.compare(("DE", 1), ("DE", 2)),):
        other = projected.compare(("DE", 1), ("DE", 2))
        assert np.array_equal(other.differences, comparison.differences)
    with pytest.raises(InvalidValueError, match="method must be one of"):
        estimate.project("round")


def test_the_table_goes_into_arrow(grouped: GroupedTally) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = grouped.estimate().to_arrow(0.9, simultaneous="bonferroni", over="groups")
    assert table.column_names == [
        "country", "version", "nodes", "received", "left_out", "label", "count", "frequency",
        "standard_error", "low", "high", "reason",
    ]  # fmt: skip
    assert table.schema.field("version").type == pyarrow.int64()
    assert table.num_rows == 12
    assert table.column("frequency").null_count == 6
    records = grouped.estimate().to_records(0.9, simultaneous="bonferroni", over="groups")
    assert table.column("low").to_pylist() == [record["low"] for record in records]
    clash = GroupedTally(["label"], {"x": tally([1, 2, 3])}).estimate().to_arrow()
    assert clash.column_names[0] == "group.label"
    pairs = tn.DirectEncoding(1.0, tn.Domain([("a", 1), ("b", 2)]))
    tallies = {number: pairs.simulate([1, 2], seed=1) for number in (None, 2**80)}
    odd = GroupedTally(["number"], tallies).estimate().to_arrow()
    assert odd.column("label").to_pylist() == ["('a', 1)", "('b', 2)"] * 2
    assert odd.column("number").to_pylist() == [None, None, str(2**80), str(2**80)]


@pytest.mark.parametrize("simultaneous", ["bonferroni", "sidak"])
@pytest.mark.parametrize(("over", "number"), [("labels", 3), ("groups", 2), ("all", 6)])
def test_the_level_of_each_interval(
    grouped: GroupedTally, simultaneous: str, over: str, number: int
) -> None:
    # Two of the four groups have estimates; the others cannot miss.
    each = 1 - 0.1 / number if simultaneous == "bonferroni" else 0.9 ** (1 / number)
    estimate = grouped.estimate()
    together = estimate.interval(0.9, simultaneous=simultaneous, over=over)
    alone = estimate.interval(each)
    assert np.allclose(together.low, alone.low, rtol=1e-9, equal_nan=True)
    assert np.allclose(together.high, alone.high, rtol=1e-9, equal_nan=True)
    assert (together.level, together.simultaneous, together.over) == (0.9, simultaneous, over)
    normal = estimate.interval(0.9, simultaneous=simultaneous, over=over, method="normal")
    z = stats.norm.ppf(0.5 + each / 2)
    expected = estimate.frequencies - z * estimate.standard_errors
    assert np.allclose(normal.low, expected, rtol=1e-9, equal_nan=True)


def test_simultaneous_intervals_hold_together() -> None:
    """All intervals cover together as often as the level says, and not if it is each's own."""
    counts = np.array([[600, 300, 100], [2000, 1500, 1500], [50, 400, 50], [3000, 0, 1000]])
    truth = counts / counts.sum(axis=1, keepdims=True)
    repeats, level = 800, 0.9
    held = {"all": 0, "labels": 0, "groups": 0, "each": 0}
    for repeat in range(repeats):
        tallies = {
            group: tally(row.tolist(), 10 * repeat + group) for group, row in enumerate(counts)
        }
        estimate = GroupedTally(["g"], tallies).estimate()
        for over in held:
            chosen: dict[str, Any] = {"simultaneous": "sidak", "over": over}
            limits = estimate.interval(level, **({} if over == "each" else chosen))
            inside = (limits.low <= truth) & (truth <= limits.high)
            held[over] += {
                "all": inside.all(),
                "each": inside.all(),
                "labels": inside[0].all(),
                "groups": inside[:, 0].all(),
            }[over]
    least = stats.binom.ppf(ALPHA, repeats, level)
    assert min(held["all"], held["labels"], held["groups"]) >= least
    # The check would see intervals that do not hold together.
    assert held["each"] < least


def test_differences_of_groups() -> None:
    grouped = GroupedTally(
        ["g"], {"a": tally([90_000, 5000, 5000], 1), "b": tally([50_000, 40_000, 10_000], 2)}
    )
    estimate = grouped.estimate()
    compared = estimate.compare("a", "b", level=0.9)
    one, other = estimate["a"], estimate["b"]
    assert np.array_equal(compared.differences, one.frequencies - other.frequencies)
    variance = one.standard_errors**2 + other.standard_errors**2
    assert np.allclose(compared.standard_errors**2, variance)
    # With many reports the limits are those of the normal law.
    z = stats.norm.ppf(0.95)
    assert np.allclose(compared.low, compared.differences - z * np.sqrt(variance), atol=2e-4)
    assert np.allclose(compared.high, compared.differences + z * np.sqrt(variance), atol=2e-4)
    assert compared.distinct.tolist() == [True, True, True]
    wide = estimate.compare("a", "b", level=0.9, simultaneous="bonferroni")
    assert (wide.low < compared.low).all()
    assert (wide.high > compared.high).all()
    back = estimate.compare("b", "a", level=0.9)
    assert np.allclose(back.low, -compared.high)
    assert [row["label"] for row in compared.to_records()] == ["no", "maybe", "yes"]
    assert "3 of 3 answers differ" in repr(compared)
    with pytest.raises(InvalidValueError, match="another group"):
        estimate.compare("a", ("a",))
    with pytest.raises(KeyError):
        estimate.compare("a", "c")


def test_intervals_of_differences_cover() -> None:
    counts = {"a": [300, 80, 20], "b": [700, 250, 50]}
    truth = np.array(counts["a"]) / 400 - np.array(counts["b"]) / 1000
    repeats = 1500
    covered = np.zeros(3)
    for repeat in range(repeats):
        tallies = {key: tally(row, 2 * repeat + (key == "b")) for key, row in counts.items()}
        compared = GroupedTally(["g"], tallies).estimate().compare("a", "b")
        covered += (compared.low <= truth) & (truth <= compared.high)
    # A normal law of counts of some hundreds is right to about half a percent.
    assert (covered >= stats.binom.ppf(ALPHA / 6, repeats, 0.945)).all()
    assert (covered <= stats.binom.ppf(1 - ALPHA / 6, repeats, 0.955)).all()


def test_bad_arguments(grouped: GroupedTally) -> None:
    estimate = grouped.estimate()
    for wrong in ({"level": 1.0}, {"simultaneous": "scheffe"}, {"over": "days"}):
        for call in (estimate.interval, estimate.to_records, estimate.plot):
            with pytest.raises(InvalidValueError, match=next(iter(wrong))):
                call(**wrong)  # type: ignore[operator]
    assert "4 groups by country, version, 2 of them without an estimate" in repr(estimate)
    assert isinstance(estimate, GroupedEstimate)
    assert ("DE", 1) in estimate
    assert len(estimate) == 4
