"""Memory is bounded by blocks, not by the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

ROWS = 4_000_000

PROGRAM = """
import json, sys
import turnout as tn
from functools import partial
from turnout.pipeline import identity, scan

path, options = sys.argv[1], json.loads(sys.argv[2])
memory = options.pop("memory", 2**26)
identity.RepeatFinder = partial(identity.RepeatFinder, memory)
domain = tn.Domain([f"answer number {i}" for i in range(10)])
answers = scan(path, "answer", **options)
rows, encode = 0, answers._encoder(domain)
for block in answers._all_blocks():
    encoded = encode(block)
    rows += encoded.codes.size
# Not ru_maxrss, which a process takes over from the one that started it.
status = open("/proc/self/status").read()
print(json.dumps([rows, int(status.split("VmHWM:")[1].split()[0]) * 1024]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    labels = pa.array([f"answer number {i}" for i in range(10)])
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(
        folder / "groups.parquet", pa.schema([("answer", pa.string()), ("id", pa.int64())])
    ) as writer:
        for start in range(0, ROWS, ROWS // 4):
            codes = pa.array(rng.integers(0, 10, ROWS // 4))
            ids = pa.array(np.arange(start, start + ROWS // 4) // 2)
            writer.write_table(pa.table({"answer": labels.take(codes), "id": ids}))
    whole = pq.read_table(folder / "groups.parquet")
    pq.write_table(whole.slice(0, 10), folder / "short.parquet")
    pq.write_table(whole, folder / "one_group.parquet", row_group_size=ROWS)
    pa.csv.write_csv(whole, folder / "text.csv")
    return folder


def peak(path: Path, options: dict[str, object]) -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, os.fspath(path), json.dumps(options)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows, size = json.loads(done.stdout)
    return rows, size


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "options", "rows", "megabytes"),
    [
        # The texts of all rows are 70 MB, their codes as dictionaries 16 MB.
        ("groups.parquet", {}, ROWS, 60),
        ("one_group.parquet", {}, ROWS, 110),
        ("text.csv", {}, ROWS, 170),
        # Records of all rows are 96 MB, what is left out 16 MB.
        (
            "groups.parquet",
            {"id_column": "id", "duplicates": "first", "memory": 2**22},
            ROWS // 2,
            230,
        ),
    ],
)
def test_peak(
    folder: Path, name: str, options: dict[str, object], rows: int, megabytes: int
) -> None:
    _, base = peak(folder / "short.parquet", {})
    found, size = peak(folder / name, options)
    assert found == rows
    assert size - base < megabytes * 1e6
