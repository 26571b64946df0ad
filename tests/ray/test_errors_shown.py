"""What a refusal shows: the error that is raised, and nothing else of what people answered."""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import UnknownLabelError
from turnout.ray.cluster import MergeTree

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))


@contextlib.contextmanager
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Give a test what Ray logs about errors that nobody looked at."""
    private = logging.getLogger("ray._private.worker")
    private.addHandler(caplog.handler)
    try:
        yield
    finally:
        private.removeHandler(caplog.handler)


@pytest.mark.parametrize("way", ["collect", "randomize"])
def test_answers_that_are_refused_are_printed_nowhere(
    ray: Any, tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    # Several tasks fail; one error is raised.
    answers = pa.array(["secret-of-one"] * 2**20).dictionary_encode()
    pq.write_table(pa.table({"answer": answers}), tmp_path / "answers.parquet")
    call: Any = partial(tn.ray.collect, tmp_path / "answers.parquet", "answer", ORACLE)
    if way == "randomize":
        call = partial(tn.ray.randomize, *call.args, output=tmp_path / "out")
    with logged(caplog):
        with pytest.raises(UnknownLabelError, match="secret-of-one"):
            call(block_rows=2**16)
        gc.collect()
        time.sleep(1)
    printed = capfd.readouterr()
    assert "secret-of-one" not in printed.err + printed.out + caplog.text


def test_an_error_that_arrives_late_is_printed_nowhere(
    ray: Any, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    @ray.remote(num_cpus=0, num_returns=2)
    def late() -> None:
        time.sleep(2)
        raise ValueError("secret-of-one")

    tree = MergeTree(ray, late)
    first, second = late.remote()
    tree.add(second)
    del second
    with logged(caplog):
        tree.__exit__(KeyError, KeyError())
        with pytest.raises(ValueError, match="secret-of-one"):
            ray.get(first)
        gc.collect()
        time.sleep(1)
    printed = capfd.readouterr()
    assert "secret-of-one" not in printed.err + printed.out + caplog.text
