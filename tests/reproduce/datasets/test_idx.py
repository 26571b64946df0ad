"""Idx files: every type, and nothing that is not one."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.errors import CorruptDataError
from turnout_reproduce.datasets import read_idx

TYPES = [("u1", 8), ("i1", 9), ("i2", 11), ("i4", 12), ("f4", 13), ("f8", 14)]


def idx(code: int, shape: tuple[int, ...], content: bytes) -> bytes:
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


def written(folder: Path, content: bytes) -> Path:
    path = folder / "file-idx"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("kind", "code"), TYPES)
@pytest.mark.parametrize("shape", [(7,), (2, 3), (0,), (3, 0, 2), (2, 1, 3, 2)])
def test_what_is_written_is_read(
    tmp_path: Path, kind: str, code: int, shape: tuple[int, ...], compressed: bool
) -> None:
    bounds = (0, 256) if kind == "u1" else (-128, 128)
    values = np.random.default_rng(1).integers(*bounds, shape).astype(kind)
    content = idx(code, shape, values.astype(f">{kind}").tobytes())
    array = read_idx(written(tmp_path, gzip.compress(content) if compressed else content))
    assert array.dtype == np.dtype(kind)
    assert array.dtype.isnative
    assert array.shape == shape
    assert array.flags.writeable
    np.testing.assert_array_equal(array, values)


GOOD = idx(8, (2, 3), bytes(range(6)))

BROKEN: list[tuple[Any, str]] = [
    (b"", "cut off: 4 bytes were expected and 0"),
    (GOOD[:3], "cut off: 4 bytes"),
    (GOOD[:7], "cut off: 8 bytes were expected and 3"),
    (GOOD[:-1], r"claims 6 bytes of entries, in the shape \(2, 3\)"),
    (GOOD + b"x", "longer than its header says"),
    (b"\1" + GOOD[1:], "starts with the bytes 01 00 08 02"),
    (b"\0\1" + GOOD[2:], "starts with the bytes 00 01 08 02"),
    (idx(10, (6,), bytes(6)), "starts with the bytes 00 00 0a 01"),
    (bytes([0, 0, 8, 0]), "claims 0 dimensions"),
    (bytes([0, 0, 8, 33]), "claims 33 dimensions"),
    (b"<html>404</html>", "is no idx file"),
    (idx(14, (2**32 - 1,) * 5, b"1234"), "claims"),
]


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(("content", "words"), BROKEN)
def test_what_is_no_idx_file_is_refused_by_name(
    tmp_path: Path, content: bytes, words: str, compressed: bool
) -> None:
    path = written(tmp_path, gzip.compress(content) if compressed else content)
    if compressed and content == GOOD[:-1]:
        words = "cut off: 6 bytes were expected and 5"
    with pytest.raises(CorruptDataError, match=words) as caught:
        read_idx(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("keep", [2, 5, 12, -9, -4, -1])
def test_a_compressed_file_that_is_cut_is_refused(tmp_path: Path, keep: int) -> None:
    path = written(tmp_path, gzip.compress(GOOD)[:keep])
    with pytest.raises(CorruptDataError, match="file-idx is cut off"):
        read_idx(path)


def test_a_compressed_file_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(GOOD))
    content[-6] ^= 1
    with pytest.raises(CorruptDataError, match="CRC"):
        read_idx(written(tmp_path, bytes(content)))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_claim_takes_no_memory(tmp_path: Path, compressed: bool) -> None:
    # The smaller claim is one that a compressed file of this size could hold.
    size = 2**31 if not compressed else 1040 * 100_000
    content = idx(8, (size,), np.random.default_rng(1).bytes(100_000))
    path = written(tmp_path, gzip.compress(content) if compressed else content)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptDataError, match=r"claims|cut off"):
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_a_missing_file_is_an_operating_system_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_idx(tmp_path / "nothing")
