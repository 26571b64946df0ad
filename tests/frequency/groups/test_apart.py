"""Estimates of groups that were made each by itself hold together as those of one tally do."""

from __future__ import annotations

import math

import pytest

import turnout as tn
from turnout.collecting.groups.apart import EstimatesOfGroups
from turnout.collecting.keys import Key
from turnout.errors import InvalidValueError

ORACLE = tn.DirectEncoding(2.0, ["no", "maybe", "yes"])
TALLIES: dict[Key, tn.Tally] = {
    ("A",): ORACLE.simulate([300, 200, 500], seed=1),
    ("B",): ORACLE.simulate([0, 0, 0]),
    ("C",): ORACLE.simulate([100, 800, 100], seed=2),
}
REASON = "the group has no nodes"


def apart() -> EstimatesOfGroups[tn.FrequencyEstimate]:
    unknown = {**dict.fromkeys(("count", "frequency", "standard_error"), math.nan)}
    rows = [
        {"label": label, **unknown, "low": None, "high": None} for label in ORACLE.domain.labels
    ]
    estimates = {key: tally.estimate() for key, tally in TALLIES.items() if tally.nodes}
    return EstimatesOfGroups(["place"], TALLIES, estimates, rows, reasons={("B",): REASON})


@pytest.mark.parametrize("simultaneous", [None, "bonferroni", "sidak"])
@pytest.mark.parametrize("over", ["labels", "groups", "all"])
def test_intervals_are_those_of_a_grouped_tally(simultaneous: str | None, over: str) -> None:
    expected = tn.GroupedTally(["place"], TALLIES).estimate()
    found = apart().to_records(0.9, simultaneous=simultaneous, over=over)
    records = expected.to_records(0.9, simultaneous=simultaneous, over=over)
    assert [list(row) for row in found] == [list(row) for row in records]
    assert repr(found) == repr(records)  # nan equals nan as text


def test_a_group_without_an_estimate_says_why() -> None:
    estimates = apart()
    assert list(estimates) == [("A",), ("C",)]
    assert len(estimates.to_records(top=1)) == 1 + 3 + 1
    with pytest.raises(InvalidValueError, match=REASON):
        estimates["B"]
    with pytest.raises(InvalidValueError, match="there is no such group"):
        estimates["D"]
    with pytest.raises(InvalidValueError, match="over must be one of"):
        estimates.to_records(over="people")
