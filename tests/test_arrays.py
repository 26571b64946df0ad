"""Arrays from bytes of elsewhere: what they hold bit for bit, or one error."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout._arrays import array_of, read_archive, read_array, total
from turnout.errors import CorruptDataError


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy(header: str, entries: bytes = b"", magic: bytes = b"\x93NUMPY\x01\x00") -> bytes:
    text = header.encode("latin-1")
    return magic + len(text).to_bytes(2, "little") + text + entries


def header(descr: str = "'<f8'", fortran: str = "False", shape: str = "(1,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<f2", ">f4", "<f8", ">f8"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (3, 0, 2), (1, 2, 2, 2)])
def test_what_numpy_saves_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    array = np.array(random.integers(0, 2, shape), dtype)
    for kept in (array, array.copy("F")):
        found = read_array(saved(kept))
        np.testing.assert_array_equal(found, array)
        assert (found.dtype, found.shape) == (array.dtype.newbyteorder("="), shape)
        assert not found.flags.writeable
        assert found.flags.aligned


def test_nothing_is_copied_that_is_stored_as_it_is_needed() -> None:
    data = saved(np.arange(1000.0))
    assert np.shares_memory(read_array(data), np.frombuffer(data, np.uint8))
    shifted = memoryview(b"\0" + data)[1:]
    assert read_array(shifted).flags.aligned


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00",
        b"PK\x03\x04" + bytes(7),
        b"PK\x05\x06" + bytes(18),
        b"\x80\x04K\x01.",
        npy(header(), bytes(8), b"\x93NUMPY\x02\x00"),
        npy(header(), bytes(8), b"\x93NUMPY\x03\x00"),
        npy(header(), bytes(7)),
        npy(header(), bytes(9)),
        npy(header())[:-1],
        npy(header(shape="(10000000000000,)"), bytes(8)),
        npy(header(shape="(99999999999999999999999,)"), bytes(8)),
        npy(header(shape="(0, 9223372036854775807, 9223372036854775807)")),
        npy(header(shape="(-1,)"), bytes(8)),
        npy(header(shape="(1.0,)"), bytes(8)),
        npy(header(shape="(1 1,)"), bytes(8)),
        npy(header(shape="1"), bytes(8)),
        npy(header(shape="None"), bytes(8)),
        npy(header(shape="(" + "1, " * 40 + "1)"), bytes(8)),
        npy(header("'|O'"), bytes(8)),
        npy(header("'<U2'"), bytes(8)),
        npy(header("'<M8'"), bytes(8)),
        npy(header("'|V8'"), bytes(8)),
        npy(header("'<c8'"), bytes(8)),
        npy(header("'<f3'"), bytes(3)),
        npy(header("'<f16'"), bytes(16)),
        npy(header("[('a', '<f8')]"), bytes(8)),
        npy(header("'f8,f8'"), bytes(16)),
        npy(header("'|b1'"), b"\2"),
        npy(header(fortran="0"), bytes(8)),
        npy("(" * 500, bytes(8)),
        npy("{'a\n", bytes(8)),
        npy("'" + " " * 60_000, bytes(8)),
        npy(header()[:-1] + " " * 20_000 + "\n", bytes(8)),
    ],
)
def test_everything_else_is_one_error(data: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(CorruptDataError):
        read_array(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


WHOLE = saved(np.array([[1, 2], [3, 4]], np.int32))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)), max_size=3),
    st.integers(0, len(WHOLE)),
    st.binary(max_size=8),
)
def test_whatever_is_done_to_the_bytes_nothing_else_is_raised(
    changes: list[tuple[int, int]], end: int, more: bytes
) -> None:
    data = bytearray(WHOLE)
    for place, value in changes:
        data[place] = value
    try:
        found = read_array(bytes(data[:end] + more))
    except CorruptDataError:
        return
    assert found.nbytes <= len(data) + len(more)


@pytest.mark.parametrize("shape", [[-1], [2.0], ["2"], [True], [None], [[2]], [3], [1] * 33])
def test_a_shape_that_is_none_is_refused(shape: list[Any]) -> None:
    with pytest.raises(CorruptDataError, match="do not fit"):
        array_of(bytes(2), "u1", shape)


@pytest.mark.parametrize("dtype", ["O", "", "f8,", "<f8;", "u1, u1", "(2,)u1", "S2", "abc", "é"])
def test_a_dtype_that_is_no_number_is_refused(dtype: str) -> None:
    with pytest.raises(CorruptDataError, match="do not fit"):
        array_of(bytes(2), dtype, [2])


def archived(*members: tuple[str, bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def test_members_are_found_where_numpy_and_zipfile_put_them() -> None:
    file = io.BytesIO()
    np.savez(file, one=np.arange(3), two=np.ones(2))
    members = read_archive(file.getvalue())
    assert list(members) == ["one.npy", "two.npy"]
    assert read_array(members["one.npy"]).tolist() == [0, 1, 2]
    assert read_archive(archived()) == {}


def test_archives_that_hide_their_size_are_refused() -> None:
    content = b"a" * 1000
    with pytest.raises(CorruptDataError, match="is compressed"):
        read_archive(archived(("a", content), compression=zipfile.ZIP_DEFLATED))
    whole = archived(("a", content), ("b", content))
    directory = whole.rindex(b"PK\x01\x02")
    for place, value, message in (
        (directory + 42, bytes(4), "overlaps another"),
        (directory + 42, b"\xff\xff\xff\x7f", "overlaps another"),
        (directory + 24, b"\xff\xff\xff\x7f", "is missing or duplicated"),
        (directory + 46, b"a", "missing or duplicated"),
        (directory + 8, b"\1", "or secret"),
    ):
        altered = whole[:place] + value + whole[place + len(value) :]
        with pytest.raises(CorruptDataError, match=message):
            read_archive(altered)
    for data in (b"", b"PK\x03\x04" + bytes(7), whole[:-30], whole[200:]):
        with pytest.raises(CorruptDataError):
            read_archive(data)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
@given(data=st.data())
def test_a_total_is_that_of_python_whatever_the_size_of_the_numbers(dtype, data):
    limits = np.iinfo(dtype)
    numbers = st.one_of(
        st.integers(int(limits.min), int(limits.max)),
        st.integers(max(int(limits.min), -9), 9),
        st.sampled_from([int(limits.min), int(limits.max), 2**32 - 1, 2**61, 2**62]),
    )
    chosen = data.draw(st.lists(numbers, max_size=9))
    assert total(np.array(chosen, dtype)) == sum(chosen)
