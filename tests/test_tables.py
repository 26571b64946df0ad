"""Results are tables, and answers are found by their labels."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import turnout as tn
from turnout.accounting import LocalSampling, PrivacyLedger, SampleAndThreshold
from turnout.distributed import recommend
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.heavy_hitters import HeavyHitters
from turnout.planning.choice import choose_oracle
from turnout.planning.participation import optimal_participation
from turnout.thresholding import ThresholdedCounts

VOTE = tn.DirectEncoding(2.0, ["no", "yes"])
ESTIMATE = VOTE.collect(["no"] * 900 + ["yes"] * 100, participation=0.5, seed=1).estimate()
WAVE = tn.SquareWave(2.0, bins=8).collect([7.0] * 300, seed=1).estimate()
MEAN = tn.mean.Duchi(2.0, dimensions=2).collect([[0.5, -0.5]] * 300, seed=1).estimate()
GROUPS = tn.GroupedTally(
    ["country", "count"],
    {
        ("DE", 1): VOTE.collect(["no"] * 500, seed=2),
        ("FR", 2): VOTE.tally_type.empty(tn.Plan(VOTE, tn.Everyone())),
    },
).estimate()


@pytest.mark.parametrize("result", [ESTIMATE, MEAN, GROUPS], ids=["shares", "means", "groups"])
def test_tables_of_every_kind_hold_the_records(result: Any) -> None:
    records = result.to_records(0.9)
    table = result.to_arrow(0.9)
    assert table.num_rows == len(records)
    assert table["low"].to_pylist() == [record["low"] for record in records]
    frame = result.to_pandas(0.9)
    assert list(frame.columns) == table.column_names
    assert frame["high"].dropna().tolist() == [each for each in table["high"].to_pylist() if each]
    assert result.to_polars(0.9).equals(pl.from_arrow(table))


def test_groups_have_columns_of_their_own() -> None:
    table = GROUPS.to_arrow()
    assert table.column_names[:5] == ["country", "group.count", "nodes", "received", "left_out"]
    assert table["count"].to_pylist()[2:] == [None, None]
    assert table["reason"].to_pylist()[::2] == [None, "the group has no nodes"]


def test_a_notebook_shows_the_first_rows_with_nothing_taken_for_markup() -> None:
    domain = [f"<b>{number}</b>" for number in range(50)]
    shown = tn.DirectEncoding(1.0, domain).simulate([10] * 50).estimate()._repr_html_()
    assert shown.count("<tr>") == 21
    assert "and 30 more rows" in shown
    assert "&lt;b&gt;0&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert "standard error" in MEAN._repr_html_()
    assert "the group has no nodes" in GROUPS._repr_html_()


def test_an_answer_is_found_by_its_label() -> None:
    yes, record = ESTIMATE["yes"], ESTIMATE.to_records()[1]
    assert {name: getattr(yes, name) for name in record} == record
    with pytest.raises(KeyError, match="perhaps"):
        ESTIMATE["perhaps"]
    biased = VOTE.simulate([10, 20], participation=0.5, seed=1).estimate("c")
    assert (biased["no"].low, biased["no"].high) == (None, None)


def test_a_number_is_the_rate_of_all() -> None:
    assert tn.Plan(VOTE, 0.25) == tn.Plan(VOTE, tn.Bernoulli(0.25))
    assert tn.Plan(VOTE, 1).participation == tn.Everyone()
    assert VOTE.simulate([5, 5], participation=1.0).received == 10
    assert VOTE.randomize(["no"] * 9, participation=0.5).participation == tn.Bernoulli(0.5)
    one = tn.SampledAttribute(1.0, {"a": ["x", "y"], "b": 3})
    tally = one.collect({"a": ["x"] * 40, "b": [1] * 40}, participation=0.5)
    assert tally["a"].participation == tn.Bernoulli(0.25)
    for wrong in (0, -0.5, 1.5, float("nan")):
        with pytest.raises(InvalidValueError, match="participation must be"):
            VOTE.randomize(["no"], participation=wrong)
    for other in (True, "half"):
        with pytest.raises(InvalidTypeError, match="participation must be a rate, Everyone"):
            VOTE.randomize(["no"], participation=other)


def test_a_list_is_a_domain() -> None:
    assert VOTE.domain == tn.Domain(["no", "yes"])
    assert tn.OptimizedUnaryEncoding(1.0, ("a", "b", "c")).domain.labels == ("a", "b", "c")
    with pytest.raises(InvalidValueError, match="labels must be different"):
        tn.DirectEncoding(1.0, ["a", "a"])
    with pytest.raises(InvalidTypeError, match="domain must be a Domain, a list of labels, or a"):
        tn.DirectEncoding(1.0, {"a", "b"})
    with pytest.raises(InvalidTypeError, match="domain must be a Domain, a list of labels, or a"):
        tn.DirectEncoding(1.0, "yes")


def test_no_column_of_the_groups_is_lost() -> None:
    mean = tn.mean.Duchi(1.0)
    names = ["mean", "group.mean", "low"]
    grouped = tn.GroupedTally(names, {("a", "b", 1): mean.collect([0.5] * 9)}).estimate()
    table = grouped.to_arrow()
    found = [table[name].to_pylist() for name in table.column_names[:3]]
    assert found == [["a"], ["b"], [1]]
    assert len(set(table.column_names)) == table.num_columns == 3 + len(grouped._columns)


def results() -> dict[str, Any]:
    """One result of every kind, with its number of rows."""
    days = tn.GroupedTally(["day"], {day: VOTE.simulate([900, 100], seed=day) for day in (2, 1)})
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    ledger.spend(LocalSampling(0.01, 1.0), rounds=5, label="night")
    recommended = recommend(1000, 30, epsilon=1.0)
    planned = tn.plan(epsilon=1.0, domain_size=4, nodes=1000, oracles="direct_encoding")
    searched = HeavyHitters(4.0, bits=8).collect([7] * 900 + [9] * 100, seed=1)
    return {
        "interval": (ESTIMATE.interval(), 2),
        "interval of means": (MEAN.interval(), 2),
        "interval of groups": (days.estimate().interval(), 4),
        "interval of bins": (WAVE.interval(), 8),
        "distribution": (WAVE, 8),
        "series": (days.estimate().series(), 4),
        "difference": (days.estimate().compare(1, 2), 2),
        "choice": (choose_oracle(1.0, 10), 12),
        "proposal": (planned, 1),
        "trade-off": (planned.tradeoff([0.5, 1.0]), 2),
        "participation": (optimal_participation([1.0, 3.0], [1.0, 2.0], 2.0, domain_size=3), 2),
        "recommendation": (recommended, 4),
        "guarantee": (recommended.best.guarantee, 4),
        "ledger": (ledger, 1),
        "heavy hitters": (searched, 2),
        "estimate of heavy hitters": (searched.estimate, 3),
        "likelihood": (tn.maximum_likelihood(VOTE.randomize(["no", "yes"] * 50, seed=1)), 2),
        "release": (ThresholdedCounts(SampleAndThreshold(0.25, 20), {"often": 240}), 1),
    }


def test_every_result_is_a_table() -> None:
    for name, (result, rows) in results().items():
        table = result.to_arrow()
        assert table.num_rows == len(result.to_records()) == rows, name
        assert result.to_pandas().shape == result.to_polars().shape == table.shape, name
        shown = result._repr_html_()
        assert shown.startswith("<table>"), name
        assert shown.count("<tr>") == rows + 1, name
        assert shown.index("</caption>") < 1000, name


def test_intervals_print_their_limits() -> None:
    shown = repr(ESTIMATE.interval())
    no, yes = ESTIMATE["no"], ESTIMATE["yes"]
    limits = f"'no': {no.low:.4g} to {no.high:.4g}, 'yes': {yes.low:.4g} to {yes.high:.4g}"
    assert shown == f"Interval({{{limits}}}, level=0.95, 'score')"
    many = repr(tn.DirectEncoding(1.0, 50).simulate([20] * 50, seed=1).estimate().interval())
    assert many.count(" to ") == 6
    assert "... 50 answers" in many


def test_intervals_of_groups_print_the_first_limits() -> None:
    interval = GROUPS.interval(simultaneous="sidak")
    limits = ", ".join(
        f"'{label}': {low:.4g} to {high:.4g}"
        for label, low, high in zip(["no", "yes"], interval.low[0], interval.high[0], strict=True)
    )
    start = f"GroupedInterval({{'DE, 1': {{{limits}}}, 'FR, 2': {{}}}}"
    assert repr(interval) == f"{start}, level=0.95, simultaneous='sidak', over='all')"
    many = tn.GroupedTally(["day"], {day: VOTE.simulate([9, 9], seed=day) for day in range(5)})
    assert "... 5 groups" in repr(many.estimate().interval())


def test_heavy_hitters_are_told_by_their_values() -> None:
    found = HeavyHitters(6.0, length=5).collect(["other"] * 5000 + ["no"] * 4000, seed=1)
    assert found.values == ("other", "no")
    assert set(found.estimate.domain.labels) >= {"other", "no", "(other)"}
    assert found.estimate["no"].frequency == found.frequencies[1]
