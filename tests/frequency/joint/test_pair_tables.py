"""Joint tables of every two of several questions, of one pair from each person."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import turnout as tn
from turnout import _kinds
from turnout.collecting.groups.counting import tally_by_group
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.frequency.joint import PairEstimate, PairTally

COLUMNS = {"sex": ["f", "m"], "age": 4, "vote": ["no", "maybe", "yes"]}
ALPHA = 1e-6


def people(number: int) -> dict[str, Any]:
    place = np.arange(number)
    return {
        "sex": np.array(["f", "m"])[place % 2],
        "age": place // 2 % 4,
        "vote": np.array(["no", "maybe", "yes"])[(place * place) % 3],
    }


def test_without_noise_each_table_counts_the_people_who_drew_it() -> None:
    pairs = tn.PairTables(40.0, COLUMNS, oracle=tn.DirectEncoding)
    table = people(900)
    reports = pairs.randomize(table, seed=4)
    tally = pairs.tally(reports)
    assert isinstance(tally, PairTally)
    codes = dict(zip(COLUMNS, pairs.domain.encode(table).T, strict=True))
    drawn = reports.codes[:, 0]
    for number, (name, two) in enumerate(pairs.pairs.items()):
        who = drawn == number
        expected = np.zeros([pairs.columns[each].size for each in two])
        np.add.at(expected, tuple(codes[each][who] for each in two), 1)
        assert (tally[name].support == expected.ravel()).all(), name
        assert abs(who.sum() - 300) < 5 * np.sqrt(200)
    assert tally.received == 900


def test_the_best_estimate_of_a_question_has_the_errors_that_it_states() -> None:
    # Without noise the tables that have a question are disjoint samples of two thirds of all:
    # errors taken for independent would have twice the variance.
    size = 600
    for epsilon, groups in ((1.0, 150), (30.0, 360)):
        pairs = tn.PairTables(epsilon, COLUMNS, oracle=tn.DirectEncoding)
        table = people(groups * size)
        table = {name: np.tile(column[:size], groups) for name, column in table.items()}
        index = np.repeat(np.arange(groups), size)
        reports = pairs.randomize(table, seed=1)
        grouped = tally_by_group(reports, index, np.full(groups, size), names="g",
                                 keys=list(range(groups)))  # fmt: skip
        found = [tally.estimate().marginal("vote") for tally in grouped.values()]
        codes = pairs.domain.encode(table)[:size, 2]
        truth = np.bincount(codes, minlength=3) / size
        scores = np.array(
            [(one.frequencies - truth)[:2] / one.standard_errors[:2] for one in found]
        )
        # Shares of two answers and one constraint: each square is one of a standard normal law.
        total = (scores[:, 0] ** 2).sum()
        low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], groups)
        assert low < total < high, epsilon
        held = sum(bool(one.interval(0.9).contains(truth)[0]) for one in found)
        assert stats.binom.cdf(held, groups, 0.88) > ALPHA


def test_tables_are_made_to_agree_by_the_smallest_change() -> None:
    pairs = tn.PairTables(1.0, COLUMNS)
    estimate = pairs.collect(people(3000), seed=2).estimate()
    made = estimate.consistent()
    assert isinstance(made, PairEstimate)
    assert made.postprocessing == "consistent"
    shares = {name: estimate.marginal(name).frequencies for name in COLUMNS}
    shares = {name: each + (1 - each.sum()) / each.size for name, each in shares.items()}
    for first, second in itertools.combinations(COLUMNS, 2):
        rows, columns = shares[first].size, shares[second].size
        sums = np.vstack(
            [np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]
        )
        wanted = np.concatenate([shares[first], shares[second]])
        before = estimate[first, second].frequencies
        nearest = before + np.linalg.pinv(sums) @ (wanted - sums @ before)
        assert made[second, first].frequencies == pytest.approx(nearest, abs=1e-12)
        limits = made[first, second].interval()
        assert (limits.low == estimate[first, second].interval().low).all()


def test_shares_of_one_answer_given_another_are_those_of_the_table_of_both() -> None:
    pairs = tn.PairTables(4.0, COLUMNS)
    tally = pairs.collect(people(6000), participation=0.5, seed=3)
    estimate = tally.estimate()
    for of, given in (("vote", "sex"), ("sex", "vote")):
        shares = estimate.conditional(of, given=given)
        alone = tally["sex × vote"].estimate().conditional(of, given=given)
        np.testing.assert_array_equal(shares.shares, alone.shares)
    with pytest.raises(InvalidValueError, match="not in given"):
        estimate.conditional("sex", given="sex")
    with pytest.raises(InvalidValueError, match="given must be one of"):
        estimate.conditional("sex", given="colour")
    with pytest.raises(InvalidValueError, match="name must be one of"):
        estimate.marginal("sex × vote")
    with pytest.raises(KeyError):
        estimate["sex", "sex"]


def test_a_tally_by_group_lists_the_cells_of_each_table() -> None:
    pairs = tn.PairTables(1.0, COLUMNS)
    tallies = {day: pairs.collect(people(300), seed=day) for day in (1, 2)}
    estimate = tn.GroupedTally(["day"], {**tallies, 3: pairs.tally_type.empty(tallies[1].plan)})
    records = estimate.estimate().to_records()
    assert len(records) == 3 * (8 + 6 + 12)
    assert {record["attribute"] for record in records} == set(pairs.pairs)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": 2, "b": 3}, "at least 3 questions, got 2: a turnout.JointTable"),
        ({"a": 2000, "b": 2000, "c": 2}, "at most 1,048,576 cells together, got 4,008,000"),
        ({"a": 2, "b × c": 2, "a × b": 2, "c": 2}, "names whose pairs differ"),
    ],
)
def test_columns_without_tables_of_two_are_refused(columns: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        tn.PairTables(1.0, columns)


def test_a_description_of_other_tables_is_refused() -> None:
    right = tn.PairTables(1.0, COLUMNS).to_dict()
    assert _kinds.from_dict(right) == tn.PairTables(1.0, COLUMNS)
    oracles = right["oracle"]
    many = {"columns": [{"name": str(each), "domain": {"integers": 1000}} for each in range(40)]}
    for wrong in (
        {**right, "oracle": oracles[:2]},
        {**right, "oracle": oracles[::-1]},
        {**right, "oracle": [3, 3, 3]},
        {**right, "more": 1},
        {**right, "domain": many, "oracle": oracles * 260},
    ):
        with pytest.raises(CorruptDataError):
            _kinds.from_dict(wrong)
