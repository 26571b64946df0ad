"""Columns of every library have the codes of a domain, and what is in none is named."""

from __future__ import annotations

import collections
import datetime
import decimal
import tracemalloc
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.test_domain import CODES, INTEGER_TYPES, LABELS, VALUES, Colour

import turnout as tn
from turnout.errors import (
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)

Columns = dict[str, Callable[[], Any]]


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
