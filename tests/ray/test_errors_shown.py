"""What a refusal shows: the error that is raised, and nothing else of what people answered."""

from __future__ import annotations

import gc
import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import UnknownLabelError

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))


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
    private = logging.getLogger("ray._private.worker")
    private.addHandler(caplog.handler)
    try:
        with pytest.raises(UnknownLabelError, match="secret-of-one"):
            call(block_rows=2**16)
        gc.collect()
        time.sleep(1)
    finally:
        private.removeHandler(caplog.handler)
    printed = capfd.readouterr()
    assert "secret-of-one" not in printed.err + printed.out + caplog.text
