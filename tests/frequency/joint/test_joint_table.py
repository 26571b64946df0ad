"""Several questions in one report: joint tables, marginals, and shares of one given another."""

from __future__ import annotations

import itertools
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import turnout as tn
from turnout.cli.tables import csv_of
from turnout.collecting.tally import read_tally
from turnout.errors import (
    CorruptDataError,
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.joint import JointEstimate, JointTally, ProductDomain
from turnout.frequency.joint.conditional import Cells

COLUMNS = {"sex": ["f", "m"], "vote": ["no", "maybe", "yes"]}
TABLE = np.array([[200, 150, 250], [250, 100, 50]])
#: What is refused by chance in a test: nothing in a million runs.
ALPHA = 1e-6


def people(table: npt.NDArray[np.int64]) -> dict[str, list[str]]:
    cells = list(itertools.product(*COLUMNS.values()))
    rows = [cell for cell, count in zip(cells, table.ravel().tolist(), strict=True)
            for _ in range(count)]  # fmt: skip
    return dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def test_the_answers_of_a_table_of_tuples_and_of_mappings_are_the_same_codes() -> None:
    domain = ProductDomain(COLUMNS)
    table = {"vote": ["yes", "no", "maybe"], "sex": ["m", "m", "f"], "other": [1, 2, 3]}
    rows = list(zip(table["sex"], table["vote"], strict=True))
    named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    frames = [table, rows, named]
    for library in ("pandas", "polars", "pyarrow"):
        module = pytest.importorskip(library)
        frames.append(module.table(table) if library == "pyarrow" else module.DataFrame(table))
    for frame in frames:
        assert domain.encode(frame).tolist() == [5, 3, 1]
    assert domain.decode([5, 3, 1]) == rows
    assert ProductDomain.from_dict(domain.to_dict()) == domain
    assert domain != ProductDomain(dict(reversed(COLUMNS.items())))
    assert domain != tn.Domain(domain.labels)


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["a", "b"], InvalidTypeError, "columns must be a mapping"),
        ({"a": 2}, InvalidValueError, "at least 2 questions, got 1"),
        ({"a": 2, 3: 2}, InvalidTypeError, "text for names, got 3"),
        ({"a": 2000, "b": 2000}, InvalidValueError, r"got 2,000 x 2,000 = 4,000,000: ask for"),
        ({"a": 2, "b": ["x"]}, InvalidValueError, "at least 2"),
    ],
)
def test_questions_that_make_no_table_are_refused(
    columns: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tn.JointTable(1.0, columns)


def test_other_oracles_answers_and_descriptions_are_refused() -> None:
    joint = tn.JointTable(1.0, COLUMNS)
    with pytest.raises(UnknownLabelError, match=r"table\['vote'\]"):
        joint.randomize({"sex": ["f"], "vote": ["never"]})
    with pytest.raises(InvalidValueError, match="column 'vote'"):
        joint.randomize({"sex": ["f"]})
    with pytest.raises(InvalidValueError, match="must have an answer to 'vote', as each entry has"):
        joint.randomize([{"sex": "f"}])
    with pytest.raises(InvalidValueError, match="at most the epsilon 1"):
        tn.JointTable(1.0, COLUMNS, oracle=tn.DirectEncoding(2.0, 6))
    for epsilon in (float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidValueError, match="epsilon must be a finite number above 0"):
            tn.JointTable(epsilon, COLUMNS, oracle=tn.DirectEncoding(0.5, 6))
    with pytest.raises(InvalidValueError, match="afresh"):
        tn.JointTable(
            1.0, COLUMNS, oracle=tn.Memoized(tn.DirectEncoding(1.0, 6), first_epsilon=0.5)
        )
    # Some of its reports are made up, of which the table would know nothing.
    with pytest.raises(InvalidValueError, match="afresh"):
        tn.JointTable(
            1.0,
            COLUMNS,
            oracle=PaddedOracle(1.0, 6, oracle=tn.DirectEncoding(1.0, 6), own_probability=0.5),
        )
    for wrong in ({"columns": 3}, {"columns": [{"name": "a", "domain": {"integers": 2}}] * 2}):
        with pytest.raises(CorruptDataError, match="domain of columns"):
            ProductDomain.from_dict(wrong)


def test_it_is_the_oracle_of_the_combinations_and_nothing_else() -> None:
    joint = tn.JointTable(1.0, COLUMNS, oracle="subset_selection")
    inner = tn.SubsetSelection(1.0, 6)
    codes = joint.domain.encode(people(TABLE))
    assert joint.realized_ratio == inner.realized_ratio
    reports = joint.randomize(people(TABLE), participation=0.5, seed=3)
    assert (reports.codes == inner.randomize(codes, participation=0.5, seed=3).codes).all()
    tally = joint.tally(reports)
    assert isinstance(tally, JointTally)
    assert read_tally(tally.to_bytes()) == tally
    estimate = tally.estimate()
    plain = inner.collect(codes, participation=0.5, seed=3).estimate()
    assert isinstance(estimate, JointEstimate)
    assert repr(estimate).startswith("JointEstimate('hajek', {('f', 'no'): ")
    np.testing.assert_array_equal(estimate.frequencies, plain.frequencies)
    np.testing.assert_array_equal(estimate.interval().low, plain.interval().low)
    assert isinstance(estimate.shrink(), JointEstimate)
    assert estimate.project("simplex").table.sum() == pytest.approx(1.0)
    # What is chosen by itself has known covariances, and the smallest variance of these.
    assert type(tn.JointTable(1.0, COLUMNS).oracle) is tn.DirectEncoding
    assert type(tn.JointTable(1.0, {"a": 10, "b": 10}).oracle) is tn.SubsetSelection


@pytest.mark.parametrize(
    "name", ["direct_encoding", "subset_selection", "optimized_unary_encoding", "hadamard_response"]
)
def test_variances_of_sums_and_ratios_are_those_of_the_whole_matrix(name: str) -> None:
    shape = (2, 3, 4)
    joint = tn.JointTable(1.0, dict(zip("abc", shape, strict=True)), oracle=name)
    counts = np.random.default_rng(1).integers(50, 500, 24)
    estimate = joint.simulate(counts, participation=tn.Bernoulli(0.6), seed=1).estimate()
    matrix = estimate.covariance.matrix()
    cells = np.arange(24).reshape(shape)
    for kept in ((0,), (2, 0), (1, 2), (2, 1, 0)):
        rest = tuple(axis for axis in range(3) if axis not in kept)
        sums = np.transpose(cells, (*kept, *rest)).reshape(
            int(np.prod([shape[axis] for axis in kept])), -1
        )
        rows = np.zeros((len(sums), 24))
        np.put_along_axis(rows, sums, 1.0, axis=1)
        inner = shape[kept[-1]]
        large = np.repeat(rows.reshape(-1, inner, 24).sum(axis=1), inner, axis=0)
        found = Cells(estimate.covariance, shape, kept).with_those_among(inner)
        expected = [
            (a @ matrix * b).sum(axis=1) for a, b in ((rows, rows), (large, large), (rows, large))
        ]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-14)
    marginal = estimate.marginal("c", "a")
    assert marginal.table.shape == (4, 2)
    np.testing.assert_allclose(marginal.table, estimate.table.sum(axis=1).T, rtol=1e-12)


def test_fieller_limits_are_the_ratios_that_a_test_does_not_refuse() -> None:
    joint = tn.JointTable(2.0, COLUMNS)
    estimate = joint.simulate(TABLE.ravel() * 5, seed=4).estimate()
    shares = estimate.conditional("vote", given="sex")
    limits = shares.interval(0.9)
    matrix, f, z = estimate.covariance.matrix(), estimate.frequencies, stats.norm.ppf(0.95)
    for row, column in itertools.product(range(2), range(3)):
        for ratio in (limits.low[row, column], limits.high[row, column]):
            weights = np.zeros((2, 3))
            weights[row] -= ratio
            weights[row, column] += 1.0
            w = weights.ravel()
            assert (w @ f) ** 2 == pytest.approx(z**2 * (w @ matrix @ w), rel=1e-8)
    # The delta method is the same where much is known.
    error = (limits.high - limits.low) / 2 / z
    many = joint.simulate(TABLE.ravel() * 5000, seed=4).estimate().conditional("vote", given="sex")
    error = (many.interval(0.9).high - many.interval(0.9).low) / 2 / z
    np.testing.assert_allclose(many.standard_errors, error, rtol=1e-2)


@pytest.mark.parametrize(("epsilon", "rate"), [(0.5, 1.0), (3.0, 0.3)])
def test_intervals_of_marginals_and_of_conditional_shares_cover(
    epsilon: float, rate: float
) -> None:
    joint = tn.JointTable(epsilon, COLUMNS)
    truth = TABLE / TABLE.sum(axis=1, keepdims=True)
    runs, low = 400, 0.95
    covered = np.zeros((2, 3))
    marginal = np.zeros(3)
    for seed in range(runs):
        tally = joint.simulate(TABLE.ravel() * 10, participation=tn.Bernoulli(rate), seed=seed)
        estimate = tally.estimate()
        covered += estimate.conditional("vote", given="sex").interval().contains(truth)
        marginal += estimate.marginal("vote").interval().contains(TABLE.sum(axis=0) / TABLE.sum())
    for count in (*covered.ravel(), *marginal):
        assert stats.binom.cdf(count, runs, low) > ALPHA, count / runs
    # Not by being as wide as can be: limits of ratios that ignore what both have in common are.
    assert covered.mean() < 0.985 * runs


def test_where_nobody_is_known_to_be_a_share_is_anything() -> None:
    joint = tn.JointTable(1.0, COLUMNS)
    nobody = np.array([[300, 300, 400], [0, 0, 0]])
    shares = joint.simulate(nobody.ravel(), seed=2).estimate().conditional("vote", given="sex")
    limits = shares.interval()
    assert (limits.low[1] == 0.0).all()
    assert (limits.high[1] == 1.0).all()
    table = shares.to_pandas()
    assert list(table.columns) == ["sex", "label", "share", "standard_error", "low", "high"]
    assert len(table) == 6
    assert "Fieller" not in repr(shares)
    with pytest.raises(KeyError):
        shares["f"]
    with pytest.raises(KeyError):
        shares["f", "never"]


def test_questions_that_are_not_there_or_twice_are_refused() -> None:
    estimate = tn.JointTable(1.0, {**COLUMNS, "age": 4}).simulate([10] * 24, seed=1).estimate()
    assert estimate.conditional("vote", given=("age", "sex")).shares.shape == (8, 3)
    assert estimate.conditional("vote", given=("age", "sex")).groups[1] == (0, "m")
    for call, message in (
        (estimate.marginal, "marginal must name a question"),
        (lambda: estimate.marginal("height"), "marginal must be one of"),
        (lambda: estimate.marginal("sex", "sex"), "different questions"),
        (lambda: estimate.marginal("sex", "vote", "age"), "leave out a question"),
        (lambda: estimate.conditional("sex", given="sex"), "a question that is not in given"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            call()
    rates = tn.Personalized(np.full(600 + 400, 0.5))
    personal = tn.JointTable(1.0, COLUMNS).collect(people(TABLE), participation=rates, seed=1)
    with pytest.raises(EstimatorError, match="one participation rate for all nodes"):
        personal.estimate().marginal("sex")


def test_groups_have_joint_tables_of_their_own() -> None:
    joint = tn.JointTable(2.0, COLUMNS)
    days = {day: joint.simulate(TABLE.ravel() * day, seed=day) for day in (1, 2)}
    grouped = tn.GroupedTally(["day"], days).estimate()
    expected = days[2].estimate().conditional("vote", given="sex")
    np.testing.assert_array_equal(
        grouped[2].conditional("vote", given="sex").shares, expected.shares
    )
    assert isinstance(grouped.total, JointEstimate)


def test_pictures_show_the_table_and_the_shares() -> None:
    estimate = tn.JointTable(2.0, COLUMNS).simulate(TABLE.ravel(), seed=1).estimate()
    axes = estimate.plot()
    assert len(axes.texts) == 6
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("vote", "sex")
    shares = estimate.conditional("vote", given="sex").plot(level=0.9)
    assert [text.get_text() for text in shares.get_legend().get_texts()] == ["f", "m"]
    assert shares.get_title(loc="left") == "vote by sex, 90 % intervals"
    title = estimate.plot(level=0.999, simultaneous="sidak").get_title(loc="left")
    assert title == f"{TABLE.sum():,} people answered, 99.9 % intervals (all at once)"
    assert estimate.plot(truth=TABLE.ravel() / TABLE.sum()).get_ylabel() == "share of all people"


def test_shares_outside_of_0_and_1_are_in_the_picture() -> None:
    joint = tn.JointTable(0.5, COLUMNS)
    shares = joint.simulate(TABLE.ravel(), seed=11).estimate().conditional("vote", given="sex")
    low, high = shares.plot().get_ylim()
    assert shares.shares.min() < 0
    assert low < shares.shares.min()
    assert high > shares.shares.max()


def test_tables_have_a_column_for_each_question_and_csv_files_hold_them() -> None:
    joint = tn.JointTable(3.0, {"vote": ["no", "yes"], "low": [1, "old", 3]})
    one, same = (joint.simulate([200, 300, 100, 400, 500, 600], seed=1) for _ in range(2))
    grouped = tn.GroupedTally(["vote"], {"N": one, "S": same}).estimate()
    for result, names in (
        (one.estimate(), ["vote", "label.low"]),
        (grouped, ["vote", "nodes", "received", "left_out", "label.vote", "label.low"]),
        (grouped.compare("N", "S"), ["vote", "label.low"]),
    ):
        table, records = result.to_arrow(), result.to_records()
        assert table.column_names[: len(names)] == names
        cells = list(zip(*(table[name].to_pylist() for name in names[-2:]), strict=True))
        assert cells == [(vote, str(age)) for vote, age in (row["label"] for row in records)]
        assert table["low"].to_pylist() == [row["low"] for row in records]
        assert csv_of(table).count(b"\n") == len(records) + 1
        assert list(result.to_pandas().columns) == table.column_names
    assert one.estimate().interval().to_arrow()["label"].to_pylist()[0] == "('no', 1)"
    pairs = tn.DirectEncoding(2.0, [("a", 1), ("b", 2)]).simulate([5, 6])
    assert pairs.estimate().to_arrow()["label"].to_pylist() == ["('a', 1)", "('b', 2)"]


def test_what_a_marginal_table_says_is_what_the_whole_table_says() -> None:
    joint = tn.JointTable(2.0, {"a": 2, "b": 3, "c": 4})
    whole = joint.simulate(list(range(100, 124)), seed=1).estimate()
    part = whole.marginal("c", "a")
    assert isinstance(part, JointEstimate)
    one, other = part.marginal("c"), whole.marginal("c")
    assert one.to_records() == other.to_records()
    shares, expected = (each.conditional("c", given="a") for each in (part, whole))
    assert shares.to_records() == expected.to_records()
    assert part.clip_intervals().marginal("a").clipped
    with pytest.raises(InvalidValueError, match="marginal must be one of 'c', 'a', got 'b'"):
        part.marginal("b")
    with pytest.raises(InvalidValueError, match="given must be one of"):
        part.conditional("c", given="b")


def test_a_small_plan_of_many_combinations_makes_no_label(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who reads what comes from elsewhere spends no more than its size asks for."""

    def refuse(_: Any) -> Any:
        raise AssertionError("labels were made")

    columns = {f"question {place}": 2**10 for place in range(2)}
    plan = tn.Plan(tn.JointTable(1.0, columns), 1.0)
    monkeypatch.setattr("turnout.products._Combinations.__iter__", refuse)
    text = plan.to_json()
    assert len(text) < 500
    tracemalloc.start()
    try:
        assert tn.Plan.from_json(text) == plan
        # A domain of as many combinations that stand there takes 200 MB.
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    plan.write(tmp_path / "plan.json")
    assert tn.Plan.read(tmp_path / "plan.json").fingerprint == plan.fingerprint
    answer = dict.fromkeys(columns, 7)
    message = tn.Plan.from_json(text).report(answer)
    assert message is not None
    collector = tn.Collector(plan)
    assert collector.accept(message).outcome == "accepted"
    collector.ask(1)
    tally = collector.tally()
    assert read_tally(tally.to_bytes()) == tally
    assert plan.domain.encode([tuple(answer.values())]) == [7 * 2**10 + 7]
    with pytest.raises(CorruptDataError, match="1,048,576"):
        ProductDomain.from_dict(
            {"columns": [{"name": name, "domain": {"integers": 2**31}} for name in "abc"]}
        )


@given(
    st.tuples(
        st.one_of(
            st.sampled_from(["a", "b", None, True, 1, 1.0, 2, np.int64(1), np.bool_(1), 1.5]),
            st.floats(),
        ),
        st.one_of(
            st.integers(-1, 6), st.booleans(), st.floats(-1, 6), st.integers(0, 5).map(np.uint8),
            st.integers(-1, 6).map(Decimal), st.none(), st.just("3"),
        ),
        st.sampled_from(["x", ("x", 1), ("x", True)]),
    ).flatmap(lambda label: st.sampled_from([label, label[:2], (*label, 1), label[0]]))
)  # fmt: skip
def test_codes_of_combinations_are_those_of_a_domain_that_lists_them(label: Any) -> None:
    domain = ProductDomain({"a": ["a", 1, None, "b"], "b": 5, "c": ["x", ("x", 1)]})
    listed = tn.Domain(domain.labels)
    assert listed.find(label) == domain.find(label)
    assert domain.labels is domain.labels
    assert [domain.find(each) for each in domain.labels] == list(range(domain.size))
    assert domain.decode(range(domain.size)) == list(listed.labels)
