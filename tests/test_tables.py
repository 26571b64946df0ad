"""Results are tables, and answers are found by their labels."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError

VOTE = tn.DirectEncoding(2.0, ["no", "yes"])
ESTIMATE = VOTE.collect(["no"] * 900 + ["yes"] * 100, participation=0.5, seed=1).estimate()
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
    assert table.column_names[:4] == ["country", "group.count", "nodes", "received"]
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
        with pytest.raises(InvalidValueError, match="rate must be"):
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
