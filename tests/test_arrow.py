"""Numbers go between Arrow and NumPy without a copy, and without pandas."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnout._arrays import from_numpy, to_numpy

PROGRAM = """
import sys
import turnout as tn
answers = tn.pipeline.scan(sys.argv[1], "answer")
oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
tn.pipeline.randomize(answers, oracle, sys.argv[2], seed=1)
assert tn.pipeline.tally(sys.argv[2]).received == 4
assert tn.pipeline.collect(answers, oracle, seed=1).received == 4
assert "pandas" not in sys.modules
"""


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int32, np.float64])
def test_numbers_are_the_same_in_both(dtype: type) -> None:
    values = np.arange(10).astype(dtype)
    array = from_numpy(values[::2])
    assert array.equals(pa.array(values[::2]))
    np.testing.assert_array_equal(to_numpy(array), values[::2])
    part = to_numpy(pa.array(values)[3:7])
    np.testing.assert_array_equal(part, values[3:7])
    assert part.dtype == dtype
    # What comes from elsewhere may have memory after its entries, or none.
    longer = [pa.py_buffer(values.tobytes() + b"?"), pa.py_buffer(b"?"), pa.py_buffer(b""), None]
    for buffer, length in zip(longer, (10, 0, 0, 0), strict=True):
        array = pa.Array.from_buffers(pa.from_numpy_dtype(dtype), length, [None, buffer])
        np.testing.assert_array_equal(to_numpy(array), values[:length])
    none = to_numpy(from_numpy(values[:0]))
    assert none.dtype == dtype
    assert none.size == 0


def test_jobs_from_files_to_files_import_no_pandas(tmp_path: Path) -> None:
    source, modules = tmp_path / "answers.parquet", tmp_path / "modules"
    pq.write_table(pa.table({"answer": ["no", "yes", "no", "yes"]}), source)
    modules.mkdir()
    (modules / "pandas.py").write_text("__version__ = '2.3.0'")
    subprocess.run(
        [sys.executable, "-c", PROGRAM, source, tmp_path / "reports"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(modules), *sys.path])},
        check=True,
        timeout=600,
    )
