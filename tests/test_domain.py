"""Domains: labels to codes and back, from every kind of column."""

from __future__ import annotations

import enum
import json
import os
import subprocess
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import (
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
)

LABELS = ["a", "b", "c"]
VALUES = ["c", "a", "b", "a"]
CODES = [2, 0, 1, 0]


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


INTEGER_TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def test_decode_is_the_inverse_of_encode_for_codes_of_every_type() -> None:
    domain = tn.Domain(LABELS)
    assert domain.decode(domain.encode(VALUES)) == VALUES
    for kind in INTEGER_TYPES:
        assert domain.decode(np.array(CODES, dtype=">" + kind)) == VALUES
    assert domain.decode([]) == []
    assert tn.Domain.from_integers(5).decode([4, 0]) == [4, 0]
    assert type(tn.Domain.from_integers(5).decode(np.array([4]))[0]) is int


def test_decode_names_the_first_code_outside_and_how_many() -> None:
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[1\] is not .*0 to 2 \(2 such"):
        tn.Domain(LABELS).decode([0, 3, -1])


ATOMS = st.one_of(
    st.text(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
ANY_LABEL = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
ANY_LABELS = st.lists(ANY_LABEL, min_size=2, max_size=12, unique=True)


@settings(max_examples=200, deadline=None)
@given(labels=ANY_LABELS, data=st.data())
def test_any_labels_come_back_from_their_codes_and_from_json(
    labels: list[Hashable], data: st.DataObject
) -> None:
    domain = tn.Domain(labels)
    values = data.draw(st.lists(st.sampled_from(labels)))
    codes = domain.encode(values)
    assert codes.tolist() == [labels.index(value) for value in values]
    assert domain.decode(codes) == values
    rebuilt = tn.Domain.from_dict(json.loads(json.dumps(domain.to_dict())))
    assert rebuilt == domain
    assert hash(rebuilt) == hash(domain)
    assert rebuilt.fingerprint == domain.fingerprint
    assert rebuilt.encode(values).tolist() == codes.tolist()


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.one_of(st.text(max_size=3), st.none()), min_size=1, max_size=30))
def test_all_libraries_agree_on_the_codes_of_any_text(values: list[str | None]) -> None:
    domain = tn.Domain([*dict.fromkeys(values), "a label of four"])
    expected = domain.encode(values).tolist()
    columns = [
        np.array(values, dtype=object),
        pd.Series(values, dtype=object),
        pd.Series(values, dtype="string"),
        pd.Categorical(values),
        pl.Series(values, dtype=pl.String),
        pl.Series(values, dtype=pl.Categorical),
        pa.array(values, pa.string()),
        pa.array(values, pa.string()).dictionary_encode(),
    ]
    assert [domain.encode(column).tolist() for column in columns] == [expected] * len(columns)


def test_domains_of_values_are_sorted_if_they_can_be() -> None:
    assert tn.Domain.from_values(["b", "a", "b"]).labels == ("a", "b")
    assert tn.Domain.from_values(np.array([3, 1, 2, 3], dtype=np.int8)) == tn.Domain([1, 2, 3])
    assert tn.Domain.from_values(pd.Series(["b", "a"], dtype="category")).labels == ("a", "b")
    assert tn.Domain.from_values(pa.chunked_array([["b"], ["a", "b"]])).labels == ("a", "b")
    assert tn.Domain.from_values(["NaN", "a"]).labels == ("NaN", "a")
    assert tn.Domain.from_values([1, 0]) == tn.Domain.from_integers(2)


def test_domains_of_values_that_cannot_be_sorted_keep_the_order_of_appearance() -> None:
    assert tn.Domain.from_values([2, 3, 1, "x", 3]).labels == (2, 3, 1, "x")
    assert tn.Domain.from_values(["x", 3, 2, 1]).labels == ("x", 3, 2, 1)


@pytest.mark.parametrize("values", [[], ["a"], ["a", "a"]])
def test_domains_of_values_need_two_different_ones(values: list[str]) -> None:
    with pytest.raises(InvalidValueError, match="labels must be at least 2"):
        tn.Domain.from_values(values)


FINGERPRINTS = {
    "text": (
        ["never", "once", "often"],
        "0a3279f412c380c8467a76e0fca9970c30181f0f0da8603c896d251282488767",
    ),
    "types": (
        ["ü", 1, 2.5, None, ("a", (True,))],
        "c67af450658482f87747de483597d5a21277f07f2f74525823ea2c2fac00f8ad",
    ),
    "integers": (
        range(100),
        "f29ea1c02d50508553609c0f0f23922c0fcd8ce43611f8805467f0098f1921bc",
    ),
}


@pytest.mark.parametrize(("labels", "expected"), FINGERPRINTS.values(), ids=FINGERPRINTS.keys())
def test_the_fingerprint_never_changes(labels: Any, expected: str) -> None:
    domain = tn.Domain(labels)
    assert domain.fingerprint == expected


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_the_fingerprint_is_the_same_in_every_process(hash_seed: str) -> None:
    program = (
        "import turnout as tn\n"
        "print(tn.Domain(['never', 'once', 'often']).fingerprint)\n"
        "print(tn.Domain(['ü', 1, 2.5, None, ('a', (True,))]).fingerprint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.stdout.split() == [FINGERPRINTS["text"][1], FINGERPRINTS["types"][1]]


DIFFERENT: list[list[Hashable]] = [
    [0, 1],
    [1, 0],
    [0, 1, 2],
    [0.0, 1.0],
    [False, True],
    [0, 1.0],
    ["0", "1"],
    [None, 1],
    ["a", "b"],
    ["b", "a"],
    ["a", "b", "c"],
    ["a", None],
    ["a", "None"],
    ["a", ("b",)],
    ["a", ("b", 1)],
    ["a", ("b", 1.0)],
    ["a", ("b", True)],
    ["a", (("b", 1),)],
    ["a", (("b", 1.0),)],
]


@pytest.mark.parametrize("first", DIFFERENT, ids=str)
def test_domains_are_equal_only_if_labels_types_and_order_are(first: list[Hashable]) -> None:
    same = [tn.Domain(other) == tn.Domain(first) for other in DIFFERENT]
    assert same == [other is first for other in DIFFERENT]
    prints = [tn.Domain(other).fingerprint == tn.Domain(first).fingerprint for other in DIFFERENT]
    assert prints == same


def test_equal_domains_have_equal_hashes_and_fingerprints() -> None:
    pairs: list[tuple[tn.Domain, tn.Domain]] = [
        (tn.Domain([0, 1, 2]), tn.Domain.from_integers(3)),
        (tn.Domain(["a", "b"]), tn.Domain(iter(["a", "b"]))),
        (tn.Domain([0.0, "b"]), tn.Domain([-0.0, "b"])),
        (tn.Domain({"a": 1, "b": 2}), tn.Domain(("a", "b"))),
    ]
    for one, other in pairs:
        assert one == other
        assert hash(one) == hash(other)
        assert one.fingerprint == other.fingerprint
    assert tn.Domain(["a", "b"]) != ["a", "b"]


@pytest.mark.parametrize("label", [b"x", frozenset({1}), Colour.RED, float("inf"), 1 + 2j])
def test_labels_that_json_cannot_hold_work_in_memory_and_are_refused_in_files(
    label: Hashable,
) -> None:
    domain = tn.Domain(["a", ("pair", label)])
    assert domain.encode([("pair", label)]).tolist() == [1]
    for describe in (domain.to_dict, lambda: domain.fingerprint):
        with pytest.raises(InvalidTypeError, match="cannot be written to a file"):
            describe()


def test_integers_too_long_to_show_are_labels_and_are_refused_in_files() -> None:
    domain = tn.Domain([0, 10**5000])
    assert domain.encode([10**5000, 0]).tolist() == [1, 0]
    assert tn.Domain.from_dict(tn.Domain([0, 10**600]).to_dict()) == tn.Domain([0, 10**600])
    with pytest.raises(InvalidTypeError, match="cannot be written to a file"):
        domain.to_dict()
    with pytest.raises(InvalidValueError, match=r"labels\[1\] = .* equals labels\[0\]"):
        tn.Domain([10**5000, 10**5000])


def nested(depth: int) -> Any:
    label: Any = "x"
    for _ in range(depth):
        label = {"tuple": [label]}
    return label


def deep_list(depth: int) -> Any:
    inner: Any = []
    for _ in range(depth):
        inner = [inner]
    return inner


DESCRIPTIONS = {
    "nothing": None,
    "a list": [],
    "empty": {},
    "unknown entry": {"names": ["a", "b"]},
    "two entries": {"integers": 3, "labels": ["a", "b"]},
    "text for labels": {"labels": "ab"},
    "one label": {"labels": ["a"]},
    "duplicates": {"labels": ["a", "a"]},
    "equal numbers": {"labels": [1, 1.0]},
    "nan": {"labels": [float("nan"), 1]},
    "infinity": {"labels": [float("inf"), 1]},
    "a list as label": {"labels": [["a"], "b"]},
    "a mapping as label": {"labels": [{"pair": []}, "b"]},
    "a tuple with more": {"labels": [{"tuple": [], "x": 1}, "b"]},
    "a tuple of text": {"labels": [{"tuple": "ab"}, "b"]},
    "bytes": {"labels": [b"a", "b"]},
    "one integer": {"integers": 1},
    "true": {"integers": True},
    "float": {"integers": 3.0},
    "text": {"integers": "3"},
    "negative": {"integers": -5},
    "too many": {"integers": 2**32},
    "far too many": {"integers": 10**5000},
    "deep tuples": {"labels": [nested(3000), "b"]},
    "deep lists": {"labels": [deep_list(3000), "b"]},
    "deep": deep_list(3000),
}


@pytest.mark.parametrize("description", DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_anything_else_is_not_the_description_of_a_domain(description: Any) -> None:
    with pytest.raises(CorruptDataError, match=r"not (the description of a domain|a label)"):
        tn.Domain.from_dict(description)


def test_labels_may_be_nested_only_as_deep_as_files_can_say() -> None:
    label: Any = "x"
    for _ in range(8):
        label = (label,)
    domain = tn.Domain([label, "b"])
    assert tn.Domain.from_dict(domain.to_dict()) == domain
    deeper = (label,)
    for depth in (0, 1_000_000):
        for _ in range(depth):
            deeper = (deeper,)
        with pytest.raises(InvalidValueError, match=r"labels\[0\] must not be nested more than 8"):
            tn.Domain([deeper, "b"])
    with pytest.raises(CorruptDataError, match="not a label"):
        tn.Domain.from_dict({"labels": [nested(9), "b"]})


def test_a_domain_shows_how_it_is_made() -> None:
    assert repr(tn.Domain(["a", 1])) == "Domain(['a', 1])"
    assert repr(tn.Domain("abcdefg"[i] for i in range(7))) == (
        "Domain(['a', 'b', 'c', 'd', 'e', ...])"
    )
    assert repr(tn.Domain([0, 1, 2])) == "Domain.from_integers(3)"


def test_a_domain_cannot_be_changed() -> None:
    domain = tn.Domain(["a", "b"])
    for name in ("size", "labels", "fingerprint", "anything"):
        with pytest.raises(AttributeError):
            setattr(domain, name, 3)
