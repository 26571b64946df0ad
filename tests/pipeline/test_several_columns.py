"""Several columns of the same people: what is missing in each, and which rows count."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, UnknownLabelError
from turnout.pipeline.in_memory import read_columns

ROWS = pa.table(
    {
        "vote": ["yes", None, "no", "NA", "no"],
        "age": [30.0, 40.0, None, 50.0, 20.0],
        "year": [1, 2, 2, None, 1],
        "g": ["a", "b", "a", "a", None],
    }
)
DOMAINS: dict[str, Any] = {
    "vote": tn.Domain(["no", "yes", "none"]),
    "age": tn.Bounds(0, 100),
    "year": tn.Domain([1, 2]),
}


def read(missing: Any, **options: Any) -> Any:
    return read_columns(tn.pipeline.scan(ROWS, list(DOMAINS), missing=missing, **options), DOMAINS)


def test_each_column_has_a_rule_and_a_row_is_left_out_as_a_whole() -> None:
    found = read({"vote": "none", "age": 7, "year": "drop"})
    assert found.left_out.people == 1
    assert [codes.tolist() for codes in found.codes] == [
        [1, 2, 0, 0], [30.0, 40.0, 7.0, 20.0], [0, 1, 1, 0]
    ]  # fmt: skip
    assert read({"vote": "drop", None: "drop"}).left_out.people == read("drop").left_out.people == 3
    assert read({None: "drop", "age": 1}).left_out.people == 2
    # Who has no group is left out where anything is, and else refused unless a group is stated.
    found = read({None: "drop", "vote": "none", "age": 7}, group_by="g")
    assert (found.left_out.people, found.keys, found.groups.tolist()) == (
        2,
        (("a",), ("b",)),
        [0, 1, 0],
    )
    found = read({"vote": "none", "age": 7, "year": 1, "g": "c"}, group_by="g")
    assert (found.left_out.people, found.keys[-1], found.groups.tolist()) == (
        0,
        ("c",),
        [0, 1, 0, 0, 2],
    )
    with pytest.raises(InvalidValueError, match="1 row has no group"):
        read({"vote": "none", "age": 7, "year": 1}, group_by="g")
    whole = tn.pipeline.scan(ROWS.slice(4), ["vote", "year"], group_by="g", missing={"vote": "no"})
    domains = {name: DOMAINS[name] for name in whole.asked}
    with pytest.raises(InvalidValueError, match=r"1 row has no group in 'g' \(row 1\)"):
        read_columns(whole, domains)


def test_every_kind_of_several_questions_takes_the_same_rules() -> None:
    table = ROWS.select(["vote", "year"])
    answers = tn.pipeline.scan(table, ["vote", "year"], missing={"vote": "none", "year": "drop"})
    domains = answers.domains()
    assert {name: each.labels for name, each in domains.items()} == {
        "vote": ("no", "yes", "none"), "year": (1, 2),
    }  # fmt: skip
    kept = {"vote": ["yes", "none", "no", "no"], "year": [1, 2, 2, 1]}
    for kind in (tn.JointTable, tn.SampledAttribute, tn.SplitBudget):
        oracle = kind(1.0, domains)
        [block] = answers._all_blocks(oracle.domain)
        encoder = answers._encoder(oracle.domain)
        for one in (encoder, pickle.loads(pickle.dumps(encoder))):
            codes = one(block).codes
            assert np.array_equal(codes, oracle.domain.to_codes(kept))
        assert oracle.collect(answers, seed=1).nodes == 4


def test_rules_that_say_nothing_or_too_much_are_refused() -> None:
    scan = tn.pipeline.scan
    with pytest.raises(
        InvalidValueError, match="missing names 'sex', which is not among the columns"
    ):
        scan(ROWS, ["vote", "age"], missing={"sex": "drop"})
    with pytest.raises(InvalidTypeError, match=r"missing must be None, 'drop' or a label"):
        scan(ROWS, ["vote", "age"], missing={"vote": ["drop"]})
    with pytest.raises(UnknownLabelError, match="column 'year': missing must be a label of the d"):
        read({None: "drop", "year": 3})
    with pytest.raises(InvalidValueError, match="column 'age': 1 of 5 answers are missing"):
        read({"vote": "none"})
    both = scan(ROWS, ["vote", "year"], missing="none")
    with pytest.raises(InvalidValueError, match="column 'vote': missing must be a label of the d"):
        both.domains()
    for method in (both.domain, both.distinct):
        with pytest.raises(InvalidValueError, match=f"{method.__name__} applies to one column"):
            method()
    assert scan(ROWS, "vote", missing={None: "none"})._rules == {"vote": "none"}
    shown = scan(ROWS, ["vote", "year"], missing={None: "drop", "year": (1, 2)}).describe()
    assert shown["missing"] == {"vote": "drop", "year": "(1, 2)"}


def test_a_second_row_of_a_person_is_left_out_of_several_columns() -> None:
    table = ROWS.append_column("who", pa.array([1, 2, 1, 3, 2]))
    answers = tn.pipeline.scan(
        table, ["vote", "year"], missing={"vote": "none", "year": "drop"},
        id_column="who", duplicates="first",
    )  # fmt: skip
    domains = {name: DOMAINS[name] for name in answers.asked}
    found = read_columns(answers, domains)
    assert [codes.tolist() for codes in found.codes] == [[1, 2], [0, 1]]
    assert found.left_out.people == 1
