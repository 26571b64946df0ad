"""Reports of several parts: rows, what is refused, streams, and jobs by groups."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout import _core
from turnout._seeds import derived
from turnout.collecting.sums import DesignSums
from turnout.errors import CodeOutsideDomainError, InvalidValueError
from turnout.frequency.attributes import PaddedOracle
from turnout.pipeline import collect, scan

TREE = tn.HierarchicalCollection(1.0, 10, fanout=3)  # levels of 2, 4 and 10 runs
PADDED = PaddedOracle(1.0, 6, oracle=tn.DirectEncoding(1.0, 6), own_probability=0.5)


def test_a_row_has_the_level_and_what_was_reported_of_it() -> None:
    reports = TREE.randomize(np.arange(10).repeat(300), seed=1)
    levels, runs = reports.codes[:, 0], reports.codes[:, 1]
    assert np.bincount(levels).min() > 800
    for level, tally in enumerate(TREE.tally(reports).levels):
        counts = np.bincount(runs[levels == level], minlength=TREE.tree.sizes[level])
        np.testing.assert_array_equal(tally.support, counts)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([3, 0], "the number of a part from 0 to 2$"),
        ([0, 2], r"reports of part 0: codes\[0\] is not"),
        ([2, 10], r"reports of part 2: codes\[0\] is not"),
    ],
)
def test_rows_that_no_node_sends_are_refused(row: list[int], says: str) -> None:
    with pytest.raises(CodeOutsideDomainError, match=says):
        tn.Reports(TREE, tn.Everyone(), [row], 1)


def test_what_stands_beside_a_part_must_be_zero() -> None:
    wide = tn.HierarchicalCollection(1.0, 100, fanout=10, oracle=tn.OptimizedUnaryEncoding)
    assert wide.report_shape == (3,)
    tn.Reports(wide, tn.Everyone(), np.array([[0, 5, 0]], np.uint64), 1)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[0\] must be a report of"):
        tn.Reports(wide, tn.Everyone(), np.array([[0, 5, 1]], np.uint64), 1)


def test_more_parts_than_a_byte_can_number_have_wider_reports() -> None:
    names = [f"a{place}" for place in range(257)]
    many = tn.SampledAttribute(1.0, dict.fromkeys(names, 2), oracle=tn.DirectEncoding)
    assert many.report_dtype == np.uint16
    table = {name: [0, 1] * 500 for name in names}
    reports = many.randomize(table, seed=1)
    assert many.tally(reports) == many.collect(table, seed=1)


def test_levels_are_drawn_alike_and_answers_do_not_matter(statistical: ModuleType) -> None:
    for answer in (0, 9):
        drawn = TREE.randomize(np.full(30_000, answer), seed=2).codes[:, 0]
        statistical.check_law(np.bincount(drawn, minlength=3), np.full(3, 1 / 3))


def test_parts_of_streams_have_streams_of_their_own() -> None:
    streams = _core.NoiseStreams(bytes(range(32)), 3)
    words = [_core.uniforms(4, derived(streams, *path)).tolist() for path in [(0,), (1,), (1, 0)]]
    assert len({tuple(each) for each in words}) == 3
    again = derived(_core.NoiseStreams(bytes(range(32)), 3), 1)
    assert _core.uniforms(4, again).tolist() == words[1]
    elsewhere = derived(_core.NoiseStreams(bytes(range(32)), 4), 1)
    assert _core.uniforms(4, elsewhere).tolist() != words[1]


@pytest.mark.parametrize("oracle", [TREE, PADDED], ids=["tree", "padded"])
def test_groups_of_a_job_hold_their_own_reports(
    oracle: tn.HierarchicalCollection | PaddedOracle,
) -> None:
    """Who takes part is drawn once, for reports and for the groups they belong to."""
    size = oracle.domain.size
    group = np.arange(6000) % 3
    # Everybody in group 0 holds the first answer, in group 2 the last one.
    answers = np.choose(group, [0, 2, size - 1])
    table = pa.table({"answer": answers, "group": group})
    data = scan(table, "answer", group_by="group")
    grouped = collect(data, oracle, participation=0.5, seed=4)
    assert [tally.nodes for tally in grouped.values()] == [2000] * 3
    found = grouped.estimate()
    assert found[0].frequencies[0] > 0.5
    assert found[2].frequencies[-1] > 0.5


def test_counts_that_contradict_each_other_are_refused() -> None:
    tally = TREE.collect([1, 2] * 50)
    sums = [(level.support, level.received) for level in tally.levels]
    with pytest.raises(InvalidValueError, match="sums must have reports of the parts that add up"):
        type(tally)(tally.plan, [*sums[:2], (sums[2][0], 0)], 100, 100)


def test_scaled_sums_are_those_of_scaled_probabilities() -> None:
    probabilities = np.array([0.5, 1.0, 0.125])
    assert DesignSums.of(probabilities).scaled(TREE._shares()[0] * 3 / 4) == DesignSums.of(
        probabilities / 4
    )
