"""Tallies of all groups in one pass equal those of each group's reports by themselves."""

from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.choice import registered
from turnout.frequency.groups import tally_by_group
from turnout.frequency.oracles import direct_encoding

KEYS = [("DE", 1), ("FR", 1), ("DE", 2), (None, 1)]
NAMES = ["country", "version"]


@pytest.mark.parametrize("name", sorted(registered()))
@pytest.mark.parametrize("personal", [False, True])
def test_each_group_is_tallied_as_by_itself(name: str, personal: bool) -> None:
    oracle = registered()[name](1.0, 5)
    rng = np.random.default_rng(7)
    values = rng.integers(0, 5, 3000)
    group = rng.choice(4, 3000, p=[0.6, 0.39, 0.01, 0.0])
    if personal:
        probabilities = rng.uniform(0.1, 1.0, 3000)
        reports = oracle.randomize(values, participation=tn.Personalized(probabilities), seed=3)
        assert reports.probabilities is not None
        # Each probability is another: it says which node a report is of.
        node = {probability: place for place, probability in enumerate(probabilities.tolist())}
        took_part = np.array([node[each] for each in reports.probabilities.tolist()])
        designs = [DesignSums.of(probabilities[group == place]) for place in range(4)]
    else:
        reports = oracle.randomize(values, participation=tn.Everyone(), seed=3)
        took_part, designs = np.arange(3000), None
    nodes = np.bincount(group, minlength=4)
    index = group[took_part]
    grouped = tally_by_group(reports, index, nodes, names=NAMES, keys=KEYS, designs=designs)
    assert grouped.names == ("country", "version")
    for place, key in enumerate(KEYS):
        mine = index == place
        alone = tn.Reports(
            oracle,
            reports.participation,
            reports.codes[mine],
            int(nodes[place]),
            probabilities=None if reports.probabilities is None else reports.probabilities[mine],
            design=None if designs is None else designs[place],
        )
        assert grouped[key] == oracle.tally(alone)
    assert grouped.total == oracle.tally(reports)


def test_many_groups_are_counted_without_a_joint_table(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = tn.DirectEncoding(1.0, 50)
    rng = np.random.default_rng(2)
    reports = oracle.randomize(rng.integers(0, 50, 500), seed=1)
    group = rng.integers(0, 100, 500)
    nodes = np.bincount(group, minlength=100)
    arguments: dict[str, Any] = {"names": "g", "keys": range(100)}
    joint = tally_by_group(reports, group, nodes, **arguments)
    monkeypatch.setattr(direct_encoding, "_CELLS", 0)
    monkeypatch.setattr(direct_encoding, "_CELLS_PER_REPORT", 0)
    assert tally_by_group(reports, group, nodes, **arguments) == joint


def test_no_reports_and_no_groups() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    none = oracle.randomize([], seed=1)
    assert len(tally_by_group(none, [], [], names="g", keys=[])) == 0
    some = oracle.randomize([0, 1], participation=tn.Bernoulli(1e-9), seed=1)
    grouped = tally_by_group(some, [], [2, 0], names="g", keys=["a", "b"])
    assert [(tally.nodes, tally.received) for tally in grouped.values()] == [(2, 0), (0, 0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"index": [0, 1]}, "one entry for each of the 3 reports"),
        ({"index": [0, 1, 2]}, r"index\[2\] must be a group from 0 to 1, got 2"),
        ({"index": [0, -1, 1]}, r"index\[1\]"),
        ({"index": [0.0, 1.0, 1.0]}, "integers"),
        ({"nodes": [1, 1]}, "add up to the 3 nodes"),
        ({"nodes": [2, 1]}, "must be an integer from 0 to 1|everyone takes part"),
        ({"nodes": [3]}, "one count for each of the 2"),
        ({"keys": ["a", "a"]}, "different"),
        ({"keys": 3}, "keys must be"),
        ({"designs": [DesignSums(0, 0)] * 2}, "designs"),
        ({"reports": 3}, "Reports object"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    reports = tn.DirectEncoding(1.0, 3).randomize([0, 1, 2], seed=1)
    arguments: dict[str, Any] = {
        "reports": reports,
        "index": [0, 1, 1],
        "nodes": [1, 2],
        "names": "g",
        "keys": ["a", "b"],
    }
    tally_by_group(**arguments)
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        tally_by_group(**{**arguments, **change})


def test_personal_participation_needs_the_sums_of_each_group() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    part = tn.Personalized([1.0, 1.0])
    reports = oracle.randomize([0, 1], participation=part, seed=1)
    for designs in (None, [DesignSums.of(part.probabilities)]):
        with pytest.raises(InvalidValueError, match="designs"):
            tally_by_group(reports, [0, 1], [1, 1], names="g", keys=["a", "b"], designs=designs)
