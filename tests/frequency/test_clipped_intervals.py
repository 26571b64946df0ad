"""Intervals of shares are cut to [0, 1] on request, wherever they are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

import turnout as tn
from turnout.errors import InvalidValueError
from turnout.reporting.contents import Contents
from turnout.reporting.telling import View

ORACLE = tn.DirectEncoding(0.7, ["no", "some", "yes"])


def tally(seed: int = 1) -> tn.Tally:
    return ORACLE.simulate([0, 5, 295], seed=seed)


def limits(records: list[dict[str, Any]]) -> list[float]:
    return [record[name] for record in records for name in ("low", "high")]


def test_limits_are_cut_and_nothing_else() -> None:
    whole = tally().estimate()
    cut = whole.clip_intervals()
    before, after = whole.interval(0.99), cut.interval(0.99)
    assert before.low.min() < 0.0
    assert before.high.max() > 1.0
    assert np.array_equal(after.low, np.clip(before.low, 0, 1))
    assert np.array_equal(after.high, np.clip(before.high, 0, 1))
    assert np.array_equal(cut.frequencies, whole.frequencies)
    assert np.array_equal(cut.standard_errors, whole.standard_errors)
    for each in (cut, cut.project("simplex"), cut.shrink(), cut.project("simplex")._unprojected):
        found = limits(each.to_records(0.99))
        assert min(found) == 0.0
        assert max(found) == 1.0
        assert min(each[label].low or 0.0 for label in ORACLE.domain.labels) >= 0.0
    axes = cut.plot()
    pyplot.close(axes.figure)


def test_groups_and_series_are_cut_and_differences_are_not() -> None:
    grouped = tn.GroupedTally(["day"], {1: tally(1), 2: tally(2)}).estimate()
    cut = grouped.clip_intervals()
    for each in (cut, cut.project("simplex"), cut.shrink()):
        found = each.interval(0.99)
        low, high = (found.low, found.high) if hasattr(found, "low") else found
        assert low.min() == 0.0
        assert high.max() == 1.0
    found, series = cut.interval(0.99), cut.series()
    low, high = series._picked(found.low), series._picked(found.high)
    assert (low.min(), high.max()) == (0.0, 1.0)
    assert cut.total.clipped
    one, other = (each.compare(1, 2) for each in (grouped, cut))
    assert np.array_equal(one.low, other.low)
    assert np.array_equal(one.high, other.high)
    pair = tn.SplitBudget(1.0, {"a": ["x", "y"], "b": ["u", "v"]})
    both = pair.collect({"a": ["x"] * 90, "b": ["u"] * 90}, seed=1)
    several = tn.GroupedTally(["day"], {1: both}).estimate()
    for each in (both.estimate(), several):
        assert min(limits(each.to_records())) < 0.0
        found = limits(each.clip_intervals().to_records())
        assert (min(found), max(found)) == (0.0, 1.0)


def test_joint_tables_and_conditional_shares_are_cut() -> None:
    joint = tn.JointTable(1.0, {"a": ["x", "y"], "b": ["u", "v"]})
    whole = joint.simulate([300, 0, 0, 300], seed=1).estimate()
    cut = whole.clip_intervals()
    for one, other in (
        (whole, cut),
        (whole.conditional("b", given="a"), cut.conditional("b", given="a")),
        (whole.conditional("b", given="a"), whole.conditional("b", given="a").clip_intervals()),
    ):
        assert one.interval(0.999).low.min() < 0.0 == other.interval(0.999).low.min()
    assert cut.marginal("a").clipped


def test_heavy_hitters_are_cut() -> None:
    found = tn.HeavyHitters(4.0, bits=6, step=6).collect([3] * 990 + [9] * 10, seed=2)
    high = [each.interval(0.999).high.max() for each in (found, found.clip_intervals())]
    assert high[0] > 1.0 == high[1]


def test_surveys_are_cut() -> None:
    data = {"vote": ["yes"] * 290 + ["no"] * 10, "group": ["a", "b"] * 150, "age": [1.0] * 300}
    pa = pytest.importorskip("pyarrow")
    table = pa.table(data)
    for options in ({}, {"by": "group"}, {"by": "group", "trust": "aggregators"}):
        result = tn.survey(table, "vote", epsilon=0.3, seed=2, **options)
        found = limits(result.clip_intervals().to_records(0.999))
        assert min(found) >= 0.0
        assert max(found) <= 1.0
        assert limits(result.to_records(0.999)) != found
    numbers = tn.survey(table, "age", epsilon=1.0, bounds=(0, 9), seed=2)
    both = tn.survey(table, ["vote", "age"], epsilon=0.3, bounds={"age": (0, 9)}, seed=2)
    assert min(limits(both.clip_intervals()["vote"].to_records(0.999))) >= 0.0
    with pytest.raises(InvalidValueError, match="'age' has numbers"):
        numbers.clip_intervals()


def test_pages_are_cut(tmp_path: Path) -> None:
    grouped = tn.GroupedTally(["day"], {1: tally(1), 2: tally(2)})
    for counted in (tally(), grouped):
        contents = [
            Contents.of(counted, View("hajek", 0.99, clip=clip))
            for clip in (False, True)
        ]  # fmt: skip
        low = [each.parts[0].estimate.interval(0.99).low.min() for each in contents]
        assert low[0] < 0.0 == low[1]
