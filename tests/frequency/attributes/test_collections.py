"""Collections of several attributes as objects: tables, tallies, bytes, and what is refused."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout import _kinds
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnknownLabelError,
    UnsupportedVersionError,
)
from turnout.frequency.attributes import (
    AttributeTally,
    PaddedOracle,
    Questions,
    SampledAttribute,
    SplitBudget,
)

SEX = tn.Domain(["f", "m"])
DOMAINS: dict[str, tn.Domain | int] = {"sex": SEX, "age": 4}
TABLE = {"sex": ["f", "m", "m", "f"] * 50, "age": [0, 3, 1, 1] * 50}
COLLECTIONS = {
    "split": SplitBudget(2.0, DOMAINS, weights={"sex": 1, "age": 2.5}),
    "sampled": SampledAttribute(2.0, DOMAINS),
    "padded": SampledAttribute(2.0, DOMAINS, padding="fake"),
}
PARTICIPATIONS = {
    "everyone": tn.Everyone(),
    "bernoulli": tn.Bernoulli(0.5),
    "personalized": tn.Personalized(np.linspace(0.2, 1.0, 200)),
}


@pytest.mark.parametrize("taking_part", PARTICIPATIONS)
@pytest.mark.parametrize("scheme", COLLECTIONS)
def test_collecting_equals_randomizing_and_tallying(scheme: str, taking_part: str) -> None:
    collection, participation = COLLECTIONS[scheme], PARTICIPATIONS[taking_part]
    reports = collection.randomize(TABLE, participation=participation, seed=7)
    tally = collection.collect(TABLE, participation=participation, seed=7)
    assert collection.tally(reports) == tally
    assert collection.randomize(TABLE, participation=participation, seed=7) == reports
    assert collection.collect(TABLE, participation=participation, seed=8) != tally
    assert collection.collect(TABLE, participation=participation) != tally
    assert (len(tally), reports.nodes, tally.nodes) == (2, 200, 200)
    pieces = collection.by_attribute(reports)
    assert {name: piece.oracle.tally(piece) for name, piece in pieces.items()} == dict(tally)
    assert pickle.loads(pickle.dumps(reports)) == reports


@pytest.mark.parametrize("taking_part", PARTICIPATIONS)
@pytest.mark.parametrize("scheme", COLLECTIONS)
def test_tallies_survive_bytes_and_pickles(scheme: str, taking_part: str) -> None:
    tally = COLLECTIONS[scheme].collect(TABLE, participation=PARTICIPATIONS[taking_part], seed=1)
    data = tally.to_bytes()
    assert AttributeTally.from_bytes(data) == tally
    assert AttributeTally.from_bytes(data).to_bytes() == data
    assert copy.deepcopy(tally) == tally == pickle.loads(pickle.dumps(tally))
    assert hash(AttributeTally.from_bytes(data)) == hash(tally)


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(4)), scheme=st.sampled_from(sorted(COLLECTIONS)))
def test_tallies_add_up_in_any_order(order: list[int], scheme: str) -> None:
    parts = [
        COLLECTIONS[scheme].collect(TABLE, participation=tn.Bernoulli(0.5), seed=seed)
        for seed in range(4)
    ]
    assert sum(parts[place] for place in order) == (parts[0] + parts[1]) + (parts[2] + parts[3])


@pytest.mark.parametrize("scheme", COLLECTIONS)
def test_descriptions_are_read_back(scheme: str) -> None:
    collection = COLLECTIONS[scheme]
    description = json.loads(json.dumps(collection.to_dict()))
    again = _kinds.from_dict(description)
    assert again == collection == pickle.loads(pickle.dumps(collection))
    assert again.domain.fingerprint == collection.domain.fingerprint
    assert hash(again) == hash(collection)
    assert repr(again) == repr(collection)
    plans = [tn.Plan(each, tn.Everyone()) for each in COLLECTIONS.values()]
    assert len({plan.fingerprint for plan in plans}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"name": "all"},
        {"name": "split_budget"},
        {"epsilon": "1"},
        {"epsilon": float("nan")},
        {"epsilon": 10**400},
        {"domain": {"columns": []}},
        {"domain": {"columns": [{"name": "sex"}, {"name": "age"}]}},
        {"domain": Questions({"sex": SEX, "age": SEX}).to_dict()},
        {"oracle": []},
        {"weights": [1, 0]},
        {"weights": [1, True]},
        {"padding": "real"},
        {"more": 1},
    ],
)
def test_a_description_that_is_none_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptDataError):
        _kinds.from_dict(COLLECTIONS["padded"].to_dict() | change)


def test_columns_come_from_any_table() -> None:
    both = COLLECTIONS["split"]
    expected = both.collect(TABLE, seed=1)
    rows = np.array(
        list(zip(TABLE["sex"], TABLE["age"], strict=True)), dtype=[("sex", "U1"), ("age", "i8")]
    )
    wide = TABLE | {"name": ["x"] * 200}
    for table in (pd.DataFrame(wide), pl.DataFrame(wide), pa.table(wide), rows):
        assert both.collect(table, seed=1) == expected


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        ([1, 2], InvalidTypeError, "mapping from names to columns"),
        ("sex", InvalidTypeError, "mapping from names to columns"),
        (np.zeros((2, 2)), InvalidTypeError, "mapping from names to columns"),
        (7, InvalidTypeError, "mapping from names to columns"),
        ({"sex": ["f"]}, InvalidValueError, "column 'age'"),
        (pd.DataFrame({"sex": ["f"]}), InvalidValueError, "column 'age'"),
        (pl.DataFrame({"sex": ["f"]}), InvalidValueError, "column 'age'"),
        ({"sex": ["f"], "age": [1, 2]}, InvalidValueError, "same length"),
        ({"sex": ["x"], "age": [1]}, UnknownLabelError, r"table\['sex'\]: .*values\[0\]"),
        ({"sex": ["f"], "age": [4]}, CodeOutsideDomainError, r"table\['age'\]: .*0 to 3"),
        ({"sex": ["f"], "age": [np.array([1])]}, InvalidTypeError, r"table\['age'\]"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    table: Any, error: type[Exception], message: str
) -> None:
    for collection in COLLECTIONS.values():
        with pytest.raises(error, match=message):
            collection.collect(table)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0.0, DOMAINS), {}, "epsilon"),
        ((float("nan"), DOMAINS), {}, "epsilon"),
        ((float("inf"), DOMAINS), {}, "epsilon"),
        (("1", DOMAINS), {}, "epsilon"),
        ((1.0, ["a", "b"]), {}, "domains must be a mapping"),
        ((1.0, {"a": 2}), {}, "at least 2 questions"),
        ((1.0, {"a": 2, 3: 2}), {}, "text for names"),
        ((1.0, {"a": 2, "b": 1}), {}, r"domains\['b'\]"),
        ((1.0, DOMAINS), {"weights": {"sex": 1}}, "weights must have an entry for each"),
        ((1.0, DOMAINS), {"weights": {"sex": 1, "age": 0}}, r"weights\['age'\]"),
        ((1.0, DOMAINS), {"weights": {"sex": 1, "age": float("inf")}}, r"weights\['age'\]"),
        ((1.0, DOMAINS), {"weights": 3}, "weights must be a mapping"),
        ((1.0, DOMAINS), {"weights": [1]}, "weights must have an entry for each of 2"),
        ((1.0, DOMAINS), {"weights": [1, True]}, r"weights\[1\]"),
        ((1.0, DOMAINS), {"oracle": "best"}, "oracle must be one of 'auto'"),
        ((1.0, DOMAINS), {"oracle": 3}, "oracle must be"),
        ((1.0, DOMAINS), {"oracle": {"sex": tn.DirectEncoding}}, "oracle must have an entry"),
        ((1.0, DOMAINS), {"oracle": lambda *_: 3}, "must be an oracle"),
        (
            (1.0, DOMAINS),
            {"oracle": lambda epsilon, domain: tn.DirectEncoding(2 * epsilon, domain)},
            "at most the epsilon",
        ),
    ],
)
def test_bad_parameters_are_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    for cls in (SplitBudget, SampledAttribute):
        with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
            cls(*arguments, **options)


def test_other_bad_arguments_are_refused() -> None:
    both, one = COLLECTIONS["split"], COLLECTIONS["sampled"]
    with pytest.raises(InvalidValueError, match="padding must be one of None, 'fake'"):
        SampledAttribute(1.0, DOMAINS, padding="true")
    with pytest.raises(InvalidTypeError, match="participation"):
        both.collect(TABLE, participation="half")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="seed"):
        both.collect(TABLE, seed=-1)
    with pytest.raises(InvalidValueError, match="one probability for each of the 200"):
        both.collect(TABLE, participation=tn.Personalized([0.5]))
    with pytest.raises(
        InvalidValueError, match="participation must contain the probabilities, got"
    ):
        both.collect(TABLE, participation=tn.Personalized([0.5])._in_plan())
    with pytest.raises(InvalidValueError, match=r"2\^-30 when they are multiplied"):
        one.collect(TABLE, participation=tn.Personalized([2.0**-30] * 200))
    with pytest.raises(InvalidTypeError, match="Reports object"):
        both.tally(3)  # type: ignore[arg-type]
    with pytest.raises(PlanMismatchError, match="another plan"):
        both.tally(one.randomize(TABLE))
    with pytest.raises(PlanMismatchError, match="another plan"):
        both.collect(TABLE).merge(one.collect(TABLE))
    with pytest.raises(PlanMismatchError, match="participation"):
        both.collect(TABLE).merge(both.collect(TABLE, participation=tn.Bernoulli(0.5)))
    with pytest.raises(InvalidTypeError, match="AttributeTally"):
        both.collect(TABLE).merge(both.collect(TABLE)["sex"])  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="entry for each"):
        tn.estimator_variance(both, 1, true_counts={"sex": [1, 2]})
    with pytest.raises(InvalidTypeError, match="mapping"):
        tn.estimator_variance(both, 1, true_counts=[1, 2])
    with pytest.raises(InvalidValueError, match="give true_counts"):
        tn.estimator_variance(both, 1, values=TABLE)
    with pytest.raises(InvalidTypeError, match="variances that are known before"):
        tn.estimator_variance(tn.SquareWave(1.0), 1, values=[0.5])


def test_pieces_that_do_not_belong_together_are_refused() -> None:
    both, one = COLLECTIONS["split"], COLLECTIONS["sampled"]
    tally, sampled = both.collect(TABLE, seed=1), one.collect(TABLE, seed=1)
    sums = tally.sums
    with pytest.raises(InvalidValueError, match="sums must be of 2 parts, got 1"):
        AttributeTally(tally.plan, sums[:1], 200, 200)
    with pytest.raises(InvalidValueError, match="as many reports of each part as there are, 200"):
        AttributeTally(tally.plan, (sums[0], (sums[1][0], 100)), 200, 200)
    with pytest.raises(InvalidValueError, match="sums must have"):
        AttributeTally(tally.plan, (sums[0], sums[0]), 200, 200)
    with pytest.raises(InvalidValueError, match="add up to 200"):
        AttributeTally(sampled.plan, (sampled.sums[0],) * 2, 200, 200)


def test_rows_are_as_good_as_columns_and_one_person_sends_one_message() -> None:
    both = COLLECTIONS["split"]
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    assert both.collect(rows, seed=1) == both.collect(TABLE, seed=1)
    with pytest.raises(InvalidValueError, match="must have an answer to 'age', as each entry has"):
        both.collect([rows[0], {"sex": "f"}])
    plan = tn.Plan(both, tn.Everyone())
    gathered = plan.gather([plan.report(row) for row in rows[:40]])
    assert both.tally(gathered)["age"].received == 40


def test_altered_bytes_are_refused() -> None:
    data = COLLECTIONS["padded"].collect(TABLE, seed=1).to_bytes()
    for wrong in (b"", data[:-1], data[:20], data[:40] + b"x" + data[41:], data + b"x"):
        with pytest.raises(CorruptDataError):
            AttributeTally.from_bytes(wrong)
    with pytest.raises(UnsupportedVersionError, match="version 2"):
        AttributeTally.from_bytes(data[:8] + b"\x02" + data[9:])
    with pytest.raises(InvalidTypeError):
        AttributeTally.from_bytes("x")  # type: ignore[arg-type]


def test_each_attribute_can_have_its_oracle() -> None:
    for oracle in ("auto", {"sex": "auto", "age": tn.DirectEncoding}):
        collection = SplitBudget(2.0, DOMAINS, oracle=oracle)
        assert collection.collect(TABLE, seed=1).nodes == 200
        assert _kinds.from_dict(collection.to_dict()) == collection


def test_the_oracle_is_that_of_least_error_unless_another_is_named() -> None:
    for kind in (SampledAttribute, SplitBudget):
        named = kind(2.0, {"a": 2, "b": 500})
        assert named == kind(2.0, {"a": 2, "b": 500}, oracle="auto")
        assert type(named.oracles["b"]) is not tn.DirectEncoding


def test_sizes_of_messages() -> None:
    sizes = {name: each.report_bits for name, each in COLLECTIONS.items()}
    assert sizes == {"split": 3, "sampled": 3, "padded": 3}
    five = dict.fromkeys("abcde", 16)
    assert SampledAttribute(1.0, five, oracle=tn.DirectEncoding).report_bits == 3 + 4
    padded = SampledAttribute(1.0, five, oracle=tn.DirectEncoding, padding="fake")
    assert padded.report_bits == 20


def test_a_padded_oracle_is_read_back_and_refuses_other_parameters() -> None:
    inner = tn.DirectEncoding(1.0, SEX)
    padded = PaddedOracle(1.0, SEX, oracle=inner, own_probability=0.25)
    assert tn.FrequencyOracle.from_dict(json.loads(json.dumps(padded.to_dict()))) == padded
    assert pickle.loads(pickle.dumps(padded)) == padded
    assert padded.realized_ratio == inner.realized_ratio
    assert padded.variation_ratio.ratio == inner.realized_ratio
    with pytest.raises(InvalidValueError, match="epsilon and domain must be those"):
        PaddedOracle(2.0, SEX, oracle=inner, own_probability=0.5)
    with pytest.raises(InvalidValueError, match="own_probability"):
        PaddedOracle(1.0, SEX, oracle=inner, own_probability=0.0)
    with pytest.raises(InvalidTypeError, match="oracle"):
        PaddedOracle(1.0, SEX, oracle=3, own_probability=0.5)  # type: ignore[arg-type]
    codes = PaddedOracle(1.0, 3, oracle=tn.DirectEncoding(1.0, 3), own_probability=2.0**-20)
    with pytest.raises(CodeOutsideDomainError):
        codes.collect([0, 3])
