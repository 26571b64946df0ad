"""Readers of data sets refuse at once what is no regular file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from turnout_reproduce.datasets import read_adult, read_idx


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    ("name", "read"), [("adult.data", read_adult), ("labels-idx1-ubyte", read_idx)]
)
def test_no_reader_waits_for_a_pipe(
    tmp_path: Path, name: str, read: Callable[[Path], object]
) -> None:
    path = tmp_path / name
    os.mkfifo(path, 0o600)
    with pytest.raises(OSError, match="not a regular file") as found:
        read(path)
    assert found.value.filename == os.fspath(path)
