"""Domains: labels to codes and back, from every kind of column."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Hashable
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
    UnknownLabelError,
)

LABELS = ["a", "b", "c"]
VALUES = ["c", "a", "b", "a"]
CODES = [2, 0, 1, 0]

Columns = dict[str, Callable[[], Any]]


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


def arrow_dictionary(indices: list[int | None], labels: list[Any]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(labels))


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


STRINGS: Columns = {
    "list": lambda: list(VALUES),
    "tuple": lambda: tuple(VALUES),
    "deque": lambda: collections.deque(VALUES),
    "numpy text": lambda: np.array(VALUES),
    "numpy wide text": lambda: np.array(VALUES, dtype="<U30"),
    "numpy big-endian text": lambda: np.array(VALUES).astype(">U1"),
    "numpy object": lambda: np.array(VALUES, dtype=object),
    "numpy reversed": lambda: np.array(VALUES[::-1])[::-1],
    "numpy strided": lambda: np.repeat(np.array(VALUES), 3)[::3],
    "numpy column of a table": lambda: np.array([VALUES, VALUES]).T[:, 1],
    "numpy read-only": lambda: read_only(np.array(VALUES)),
    "pandas object": lambda: pd.Series(VALUES, dtype=object),
    "pandas default": lambda: pd.Series(VALUES),
    "pandas string": lambda: pd.Series(VALUES, dtype="string"),
    "pandas arrow string": lambda: pd.Series(VALUES, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": lambda: pd.Series(VALUES, dtype="category"),
    "pandas category in another order": lambda: pd.Series(
        pd.Categorical(VALUES, categories=["b", "c", "a"])
    ),
    "pandas Categorical": lambda: pd.Categorical(VALUES),
    "pandas Index": lambda: pd.Index(VALUES),
    "pandas CategoricalIndex": lambda: pd.CategoricalIndex(VALUES),
    "pandas with another index": lambda: pd.Series(VALUES, index=[9, 9, 3, 1]),
    "pandas slice": lambda: pd.Series(["z", *VALUES, "z"])[1:5],
    "polars string": lambda: pl.Series(VALUES),
    "polars categorical": lambda: pl.Series(VALUES, dtype=pl.Categorical),
    "polars enum": lambda: pl.Series(VALUES, dtype=pl.Enum(["c", "b", "a"])),
    "polars object": lambda: pl.Series(VALUES, dtype=pl.Object),
    "polars slice": lambda: pl.Series(["z", *VALUES, "z"]).slice(1, 4),
    "polars chunked": lambda: pl.concat([pl.Series(["c", "a"]), pl.Series(["b", "a"])]),
    "arrow string": lambda: pa.array(VALUES),
    "arrow large string": lambda: pa.array(VALUES, pa.large_string()),
    "arrow slice": lambda: pa.array(["z", *VALUES, "z"]).slice(1, 4),
    "arrow chunked": lambda: pa.chunked_array([["c"], [], ["a", "b", "a"]]),
    "arrow dictionary": lambda: arrow_dictionary([0, 2, 1, 2], ["c", "b", "a"]),
    "arrow dictionary slice": lambda: arrow_dictionary([1, 0, 2, 1, 2, 0], ["c", "b", "a"]).slice(
        1, 4
    ),
    "arrow chunks with dictionaries of their own": lambda: pa.chunked_array(
        [arrow_dictionary([1, 0], ["a", "c"]), arrow_dictionary([0, 1], ["b", "a"])]
    ),
    "arrow capsule": lambda: ArrowColumn(pa.array(VALUES)),
}


class ArrowColumn:
    """A column of some library that offers the Arrow C interface and nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("make", STRINGS.values(), ids=STRINGS.keys())
def test_every_kind_of_text_column_gives_the_same_codes(make: Callable[[], Any]) -> None:
    codes = tn.Domain(LABELS).encode(make())
    assert codes.dtype == np.uint8
    assert codes.tolist() == CODES


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 brought this dtype")
def test_numpy_strings_of_variable_width_give_the_same_codes() -> None:
    column = np.array(VALUES, dtype=np.dtypes.StringDType())
    assert tn.Domain(LABELS).encode(column).tolist() == CODES


EMPTY: Columns = {
    "list": list,
    "tuple": tuple,
    "range": lambda: range(0),
    "numpy float": lambda: np.array([]),
    "numpy text": lambda: np.array([], dtype="U3"),
    "numpy object": lambda: np.array([], dtype=object),
    "numpy int": lambda: np.array([], dtype=np.int16),
    "memoryview": lambda: memoryview(b""),
    "pandas": lambda: pd.Series([], dtype=object),
    "pandas string": lambda: pd.Series([], dtype="string"),
    "pandas category": lambda: pd.Series([], dtype="category"),
    "polars": lambda: pl.Series([], dtype=pl.String),
    "polars categorical": lambda: pl.Series([], dtype=pl.Categorical),
    "arrow": lambda: pa.array([], pa.string()),
    "arrow null": lambda: pa.nulls(0),
    "arrow without chunks": lambda: pa.chunked_array([], pa.string()),
    "arrow dictionary": lambda: arrow_dictionary([], LABELS),
}


@pytest.mark.parametrize("make", EMPTY.values(), ids=EMPTY.keys())
@pytest.mark.parametrize(
    "domain", [tn.Domain(LABELS), tn.Domain.from_integers(3)], ids=["labels", "integers"]
)
def test_an_empty_column_gives_no_codes(make: Callable[[], Any], domain: tn.Domain) -> None:
    codes = domain.encode(make())
    assert codes.shape == (0,)
    assert codes.dtype.kind in "iu"
    assert len(tn.DirectEncoding(1.0, domain).randomize(make())) == 0


INTEGER_TYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOAT_TYPES = ["f2", "f4", "f8"]

NUMBERS: Columns = {
    **{
        f"numpy {order}{kind}": lambda kind=kind, order=order: np.array(  # type: ignore[misc]
            [2, 0, 1, 0], dtype=order + kind
        )
        for kind in INTEGER_TYPES + FLOAT_TYPES
        for order in "<>"
    },
    **{
        f"numpy {kind} strided": lambda kind=kind: np.array(  # type: ignore[misc]
            [2, 9, 0, 9, 1, 9, 0, 9], dtype=kind
        )[::2]
        for kind in INTEGER_TYPES
    },
    "list": lambda: [2, 0, 1, 0],
    "list of floats": lambda: [2.0, 0.0, 1.0, -0.0],
    "list of NumPy scalars": lambda: [np.int8(2), np.float32(0), np.uint64(1), np.int64(0)],
    "range": lambda: range(3),
    "bytes in a memoryview": lambda: memoryview(b"\2\0\1\0"),
    "numpy object": lambda: np.array([2, 0, 1, 0], dtype=object),
    "pandas": lambda: pd.Series([2, 0, 1, 0]),
    "pandas int8": lambda: pd.Series([2, 0, 1, 0], dtype="int8"),
    "pandas float": lambda: pd.Series([2.0, 0.0, 1.0, 0.0]),
    "pandas Int64": lambda: pd.Series([2, 0, 1, 0], dtype="Int64"),
    "pandas UInt8": lambda: pd.Series([2, 0, 1, 0], dtype="UInt8"),
    "pandas category": lambda: pd.Series([2, 0, 1, 0], dtype="category"),
    "pandas Index": lambda: pd.Index([2, 0, 1, 0]),
    "polars": lambda: pl.Series([2, 0, 1, 0]),
    "polars u8": lambda: pl.Series([2, 0, 1, 0], dtype=pl.UInt8),
    "polars float": lambda: pl.Series([2.0, 0.0, 1.0, 0.0]),
    "polars chunked": lambda: pl.concat([pl.Series([2]), pl.Series([0, 1, 0])]),
    "arrow": lambda: pa.array([2, 0, 1, 0]),
    "arrow u8": lambda: pa.array([2, 0, 1, 0], pa.uint8()),
    "arrow float": lambda: pa.array([2.0, 0.0, 1.0, 0.0]),
    "arrow chunked": lambda: pa.chunked_array([[2, 0], [1, 0]]),
    "arrow dictionary": lambda: arrow_dictionary([0, 1, 2, 1], [2, 0, 1]),
    "arrow dictionary with an unused entry": lambda: arrow_dictionary([0, 1, 2, 1], [2, 0, 1, 77]),
}


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS.keys())
def test_every_kind_of_number_column_gives_its_integers_as_codes(make: Callable[[], Any]) -> None:
    given = make()
    codes = tn.Domain.from_integers(3).encode(given)
    assert codes.dtype in (np.uint8, np.uint16, np.uint32, np.int64)
    assert codes.dtype.isnative
    assert codes.tolist() == (list(given) if isinstance(given, range) else CODES)


@pytest.mark.parametrize("make", NUMBERS.values(), ids=NUMBERS.keys())
def test_integer_labels_are_found_in_every_kind_of_number_column(make: Callable[[], Any]) -> None:
    # In this order integers are labels like any other, not their own codes.
    given = make()
    domain = tn.Domain([1, 2, 0])
    assert domain != tn.Domain.from_integers(3)
    expected = [2, 0, 1] if isinstance(given, range) else [1, 2, 0, 2]
    assert domain.encode(given).tolist() == expected


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_integer_arrays_are_not_copied(kind: str) -> None:
    array = np.array([2, 0, 1], dtype=kind)
    assert np.shares_memory(tn.Domain.from_integers(3).encode(array), array)


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_integers_that_are_no_codes_are_named_with_their_place(kind: str) -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    limits = np.iinfo(kind)
    for wrong in {int(limits.max), int(limits.min) or 3}:
        array = np.array([0, 1, wrong, wrong], dtype=kind)
        for read in (oracle.domain.encode, oracle.randomize, oracle.collect):
            with pytest.raises(CodeOutsideDomainError, match=r"values\[2\] is not .*2 such"):
                read(array)


@pytest.mark.parametrize("kind", INTEGER_TYPES)
def test_the_type_of_codes_changes_no_report(kind: str) -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    codes = np.arange(300) % 3
    assert oracle.collect(codes.astype(kind), seed=1) == oracle.collect(codes, seed=1)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_floats_that_are_not_whole_are_named_with_their_place(kind: str) -> None:
    values = np.array([1, 0, 0.5, 2, 1.5], dtype=kind)
    with pytest.raises(CodeOutsideDomainError, match=r"values\[2\] is .*whole.*2 such value"):
        tn.Domain.from_integers(3).encode(values)


@pytest.mark.parametrize("kind", ["list", "arrow", "object"])
def test_the_place_of_a_bad_value_counts_repeated_values_too(kind: str) -> None:
    values: Any = [0, 0, 0, 1.5, 1.5]
    values = {"list": list, "arrow": pa.array, "object": lambda v: np.array(v, object)}[kind](
        values
    )
    with pytest.raises(CodeOutsideDomainError, match=r"values\[3\] is not .*2 such value"):
        tn.Domain.from_integers(3).encode(values)


def test_float_labels_are_found_in_float_columns() -> None:
    domain = tn.Domain([0.5, 2.0, -1.25])
    expected = [2, 0, 1]
    for column in (
        [-1.25, 0.5, 2],
        np.array([-1.25, 0.5, 2.0], dtype=np.float32),
        pd.Series([-1.25, 0.5, 2.0]),
        pl.Series([-1.25, 0.5, 2.0]),
        pa.array([-1.25, 0.5, 2.0]),
    ):
        assert domain.encode(column).tolist() == expected


def test_boolean_labels_are_found_in_boolean_columns() -> None:
    domain = tn.Domain([True, False])
    for column in (
        [False, True, False],
        np.array([False, True, False]),
        np.array([False, True, False], dtype=object),
        pd.Series([False, True, False]),
        pd.Series([False, True, False], dtype="boolean"),
        pl.Series([False, True, False]),
        pa.array([False, True, False]),
    ):
        assert domain.encode(column).tolist() == [1, 0, 1]


def test_labels_of_many_types_share_a_domain() -> None:
    labels: list[Hashable] = [
        "text",
        b"bytes",
        7,
        2.5,
        None,
        False,
        ("a", ("b", 1)),
        frozenset({1, 2}),
        Colour.RED,
        decimal.Decimal("1.5"),
        datetime.date(2020, 1, 1),
        2**100,
        "",
        "NaN",
        "ünïcode \ud800",
    ]
    domain = tn.Domain(labels)
    assert domain.size == len(domain) == len(labels)
    assert domain.labels == tuple(labels)
    assert domain.encode(labels[::-1]).tolist() == list(range(len(labels)))[::-1]
    assert domain.decode(range(len(labels))) == labels


def test_numpy_scalars_as_labels_are_the_python_values_they_hold() -> None:
    domain = tn.Domain(np.array([10, 20], dtype=np.int16))
    assert [type(label) for label in domain.labels] == [int, int]
    assert domain == tn.Domain([10, 20])
    assert tn.Domain(np.array(["a", "b"])) == tn.Domain(["a", "b"])


def test_dates_and_bytes_are_found_in_arrays() -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]
    domain = tn.Domain(days)
    assert domain.encode(np.array(days[::-1], dtype="M8[D]")).tolist() == [1, 0]
    assert domain.encode(pa.array(days[::-1])).tolist() == [1, 0]
    assert tn.Domain([b"x", b"y"]).encode(np.array([b"y", b"x"])).tolist() == [1, 0]


MISSING: Columns = {
    "list": lambda: ["a", None],
    "numpy object": lambda: np.array(["a", None], dtype=object),
    "numpy masked": lambda: np.ma.array(["a", "a"], mask=[False, True]),
    "pandas object": lambda: pd.Series(["a", None], dtype=object),
    "pandas string": lambda: pd.Series(["a", pd.NA], dtype="string"),
    "pandas category": lambda: pd.Series(["a", None], dtype="category"),
    "polars": lambda: pl.Series(["a", None]),
    "polars categorical": lambda: pl.Series(["a", None], dtype=pl.Categorical),
    "arrow": lambda: pa.array(["a", None]),
    "arrow dictionary": lambda: arrow_dictionary([0, None], ["a"]),
    "arrow dictionary that holds a null": lambda: arrow_dictionary([0, 1], ["a", None]),
}


@pytest.mark.parametrize("make", MISSING.values(), ids=MISSING.keys())
def test_missing_values_are_refused_unless_none_is_a_label(make: Callable[[], Any]) -> None:
    with pytest.raises(UnknownLabelError, match=r"1 value\(s\).* None; expected one of 'a', 'b'"):
        tn.Domain(["a", "b"]).encode(make())
    assert tn.Domain(["a", None]).encode(make()).tolist() == [0, 1]
    with pytest.raises(InvalidValueError, match="missing"):
        tn.Domain.from_values(make())


MISSING_NUMBERS: Columns = {
    "list": lambda: [0, None],
    "numpy masked": lambda: np.ma.array([0, 1], mask=[False, True]),
    "numpy nan": lambda: np.array([0, np.nan]),
    "list nan": lambda: [0, float("nan")],
    "pandas nan": lambda: pd.Series([0, np.nan]),
    "pandas Int64": lambda: pd.Series([0, pd.NA], dtype="Int64"),
    "polars": lambda: pl.Series([0, None]),
    "arrow": lambda: pa.array([0, None]),
    "arrow dictionary": lambda: arrow_dictionary([0, None], [0]),
}


@pytest.mark.parametrize("make", MISSING_NUMBERS.values(), ids=MISSING_NUMBERS.keys())
def test_missing_numbers_are_refused_with_their_place(make: Callable[[], Any]) -> None:
    with pytest.raises(
        (InvalidTypeError, CodeOutsideDomainError), match=r"values\[1\] is .* got (None|nan)"
    ):
        tn.Domain.from_integers(3).encode(make())
    with pytest.raises(UnknownLabelError, match=r"1 value.* (None|nan);"):
        tn.Domain([1, 0]).encode(make())


def test_nan_is_counted_as_one_unknown_value_and_is_not_the_text() -> None:
    nan = float("nan")
    for column in ([nan, float("nan")], np.array([nan, nan]), pd.Series([nan, nan], dtype=object)):
        with pytest.raises(UnknownLabelError, match=r"has 2 value\(s\).* (nan|None); expected"):
            tn.Domain([1.5, "NaN", "nan"]).encode(column)


def test_unknown_labels_are_shown_only_if_ten_have_them() -> None:
    wrong = "values has {} value(s) that are not labels of the domain, {}; "
    wrong += "expected one of 'a', 'b', 'c'"
    many = ["a", *["x"] * 10, *[1] * 10, *["y"] * 9]
    for values, expected in {
        ("a", "x", "x", 1, "b", "x"): wrong.format(4, "the first at values[1]"),
        tuple(many): wrong.format(29, "among them 'x', 1"),
        tuple(["y"] * 9): wrong.format(9, "the first at values[0]"),
    }.items():
        with pytest.raises(UnknownLabelError) as caught:
            tn.Domain(LABELS).encode(list(values))
        assert str(caught.value) == expected


@pytest.mark.parametrize("wrap", [list, pa.array, pl.Series, pd.Series, pd.Categorical])
def test_the_first_offenders_are_named_and_all_are_counted(wrap: Callable[[Any], Any]) -> None:
    values = ["a", *[f"wrong {number}" for number in range(1, 8)] * 10, "wrong 8"]
    with pytest.raises(UnknownLabelError) as caught:
        tn.Domain(LABELS).encode(wrap(values))
    message = str(caught.value)
    assert "has 71 value(s)" in message
    assert "'wrong 1', 'wrong 2', 'wrong 3', 'wrong 4', 'wrong 5', ...; expected" in message
    assert "wrong 6" not in message


def test_offenders_of_all_chunks_are_counted() -> None:
    column = pa.chunked_array([["a", "b"], ["b", "x"], ["x", "y"]])
    with pytest.raises(UnknownLabelError, match=r"has 3 value\(s\).* first at values\[3\];"):
        tn.Domain(LABELS).encode(column)
    column = pa.chunked_array([["a", *"xxxxx"], ["b"], [*"xxxxx", "y"]])
    with pytest.raises(UnknownLabelError, match=r"has 11 value\(s\).*, among them 'x'; expected"):
        tn.Domain(LABELS).encode(column)


UNUSED: Columns = {
    "pandas Categorical": lambda: pd.Categorical(VALUES, categories=["z", *LABELS]),
    "pandas category": lambda: pd.Series(pd.Categorical(VALUES, categories=["z", *LABELS])),
    "polars enum": lambda: pl.Series(VALUES, dtype=pl.Enum(["z", *LABELS])),
    "arrow dictionary": lambda: arrow_dictionary([3, 1, 2, 1], ["z", *LABELS]),
    "arrow chunks": lambda: pa.chunked_array(
        [arrow_dictionary([0, 1], ["c", "a"]), arrow_dictionary([1, 2], ["z", "b", "a"])]
    ),
}


@pytest.mark.parametrize("make", UNUSED.values(), ids=UNUSED.keys())
def test_dictionary_entries_that_do_not_occur_are_no_offence(make: Callable[[], Any]) -> None:
    assert tn.Domain(LABELS).encode(make()).tolist() == CODES
    assert tn.Domain.from_values(make()) == tn.Domain(LABELS)
    reports = tn.DirectEncoding(1.0, tn.Domain(LABELS)).randomize(make())
    assert reports.nodes == len(reports) == len(VALUES)


def test_arrow_dictionaries_are_mapped_and_never_decoded() -> None:
    # Decoded, the column would take 50,000 times 16 KiB: 800 MB.
    labels = [letter * 2**14 for letter in LABELS]
    index = np.arange(50_000, dtype=np.int32) % 3
    default = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(default)
    column = pa.DictionaryArray.from_arrays(pa.array(index), pa.array(labels))
    domain = tn.Domain(labels)
    pa.set_memory_pool(counted)
    tracemalloc.start()
    try:
        for given in (column, pa.chunked_array([column, column])):
            codes = domain.encode(given)
            assert np.array_equal(codes[: index.size], index)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)
    assert counted.max_memory() < 16e6
    assert most < 16e6


def test_pandas_categories_are_mapped_and_never_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the categories were decoded")

    column = pd.Categorical(VALUES)
    series = pd.Series(column)
    for name in ("__array__", "factorize", "__iter__", "astype", "tolist"):
        monkeypatch.setattr(pd.Categorical, name, refuse)
    domain = tn.Domain(LABELS)
    assert domain.encode(column).tolist() == CODES
    assert domain.encode(series).tolist() == CODES


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(2, "u1"), (256, "u1"), (257, "u2"), (2**16, "u2"), (2**16 + 1, "u4"), (2**32 - 1, "u4")],
)
def test_codes_have_the_smallest_type_that_holds_them(size: int, dtype: str) -> None:
    assert tn.Domain.from_integers(size)._code_dtype == np.dtype(dtype)
    if size < 2**20:
        domain = tn.Domain([f"label {code}" for code in range(size)])
        codes = domain.encode([f"label {size - 1}", "label 0"])
        assert codes.dtype == domain._code_dtype == np.dtype(dtype)
        assert codes.tolist() == [size - 1, 0]


def test_columns_are_not_changed_by_encoding() -> None:
    domain = tn.Domain([3, 1, 2])
    array = np.array([1, 2, 3], dtype=np.int16)
    series = pd.Series([1, 2, 3], dtype="Int64")
    values = [1, 2, 3]
    for column in (array, series, values):
        domain.encode(column)
    assert array.tolist() == series.tolist() == values == [1, 2, 3]
    assert array.dtype == np.int16


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
        timeout=60,
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
