"""A billion reports on one machine: made, written, tallied, with the memory that it took.

::

    pip install 'turnout[cli]'
    python billion.py --reports 1e9 --rows 1e8 --folder /a/disk/with/4/GB

1. Direct-encoding reports of 100 answers are drawn with ``simulate``, which gives how many reports
   say what, put in random order, and written as report files.
2. They are tallied from the files, for three sizes, each in a process of its own whose peak memory
   is measured. The tally must be the one that was drawn.
3. Rows of raw answers are written to Parquet and randomized to report files; beside it stands what
   Parquet alone takes to read the rows and to write as many codes.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table

import turnout as tn
from turnout.collecting.report_files.writing import ReportWriter

ANSWERS = 100
FILE_REPORTS = 2**23
ORACLE = tn.DirectEncoding(1.0, tn.Domain([f"answer {code:02d}" for code in range(ANSWERS)]))


def make_reports(folder: Path, reports: int) -> tn.Tally:
    """Write files of simulated reports, and give their tally."""
    folder.mkdir(parents=True)
    random = np.random.default_rng()
    plan = tn.Plan(ORACLE, tn.Everyone())
    shares = 1.0 / np.arange(1, ANSWERS + 1)
    shares /= shares.sum()
    total: Any = 0
    files = -(-reports // FILE_REPORTS)
    for number in track(range(files), f"making {reports:,} reports", transient=True):
        size = min(FILE_REPORTS, reports - number * FILE_REPORTS)
        tally = ORACLE.simulate(random.multinomial(size, shares))
        codes = np.repeat(np.arange(ANSWERS, dtype=np.uint8), tally.support.astype(np.int64))
        random.shuffle(codes)
        with ReportWriter(folder / f"reports-{number:05d}.parquet", plan) as writer:
            writer.add(codes)
            writer.close(nodes=size)
        total = total + tally
    return total  # type: ignore[no-any-return]


def tally_here(folder: Path, target: Path) -> None:
    """Tally a folder in this process, and print how long it took and what memory it needed."""
    reports = tn.pipeline.open_reports(folder)
    before = peak()
    start = time.perf_counter()
    tally = reports.tally()
    seconds = time.perf_counter() - start
    target.write_bytes(tally.to_bytes())
    print(json.dumps({"seconds": seconds, "before": before, "peak": peak()}))


def peak() -> float:
    """Give the largest memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # What getrusage says includes the memory of the process that started this one.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def tally_reports(folder: Path, sizes: list[int], table: Table) -> None:
    """Tally files of each size in a process of its own."""
    for size in sizes:
        files, target = folder / f"reports-{size}", folder / "made.tally"
        drawn = make_reports(files, size)
        stored = sum(path.stat().st_size for path in files.iterdir())
        command = [sys.executable, __file__, "--tally", str(files), str(target)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        assert tn.Tally.from_bytes(target.read_bytes()) == drawn, "the tally is another one"
        table.add_row(
            f"tally {size:.0e} reports",
            f"{found['seconds']:.2f} s",
            f"{size / found['seconds'] / 1e6:,.0f} M/s",
            f"{stored / 1e6:,.0f} MB",
            f"{found['peak']:,.0f} MB ({found['before']:,.0f} before)",
        )
        shutil.rmtree(files)


def make_answers(folder: Path, rows: int) -> None:
    """Write raw answers as text, as a warehouse would."""
    folder.mkdir(parents=True)
    random = np.random.default_rng()
    labels = pa.array(ORACLE.domain.labels)
    step = 10**7
    for number in track(range(-(-rows // step)), f"making {rows:,} answers", transient=True):
        size = min(step, rows - number * step)
        codes = pa.array(random.integers(0, ANSWERS, size, dtype=np.int32))
        column = pa.DictionaryArray.from_arrays(codes, labels)
        file = folder / f"answers-{number:04d}.parquet"
        pq.write_table(pa.table({"answer": column}), file, store_schema=False)


def randomize_answers(folder: Path, rows: int, table: Table) -> None:
    """Randomize answers to report files, and compare with Parquet alone."""
    source, target = folder / "answers", folder / "randomized"
    make_answers(source, rows)
    start = time.perf_counter()
    reports = tn.pipeline.randomize(tn.pipeline.scan(source, "answer"), ORACLE, target)
    seconds = time.perf_counter() - start
    stored = sum(path.stat().st_size for path in reports.paths)
    rate = f"{rows / seconds / 1e6:,.0f} M/s"
    table.add_row(
        f"randomize {rows:.0e} rows", f"{seconds:.2f} s", rate, f"{stored / 1e6:,.0f} MB",
        f"{peak():,.0f} MB",
    )  # fmt: skip
    start = time.perf_counter()
    tn.pipeline.collect(tn.pipeline.scan(source, "answer"), ORACLE)
    collected = time.perf_counter() - start
    table.add_row(
        f"collect {rows:.0e} rows", f"{collected:.2f} s", f"{rows / collected / 1e6:,.0f} M/s",
        "", f"{peak():,.0f} MB",
    )  # fmt: skip
    read = write = 0.0
    codes = np.random.default_rng().integers(0, ANSWERS, 2**20, dtype=np.uint8)
    batch = pa.record_batch({"report": codes})
    for path in sorted(source.iterdir()):
        start = time.perf_counter()
        with pq.ParquetFile(path, read_dictionary=["answer"]) as file:
            for _ in file.iter_batches(2**20):
                pass
            count = file.metadata.num_rows
        read += time.perf_counter() - start
        start = time.perf_counter()
        with pq.ParquetWriter(
            folder / "codes.parquet",
            batch.schema,
            compression="zstd",
            write_statistics=False,
        ) as writer:
            for _ in range(-(-count // 2**20)):
                writer.write_batch(batch)
        write += (time.perf_counter() - start) * count / (2**20 * -(-count // 2**20))
    for name, alone in (
        ("Parquet alone: read rows", read),
        ("Parquet alone: write", write),
    ):
        table.add_row(name, f"{alone:.2f} s", f"{rows / alone / 1e6:,.0f} M/s", "", "")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reports", type=float, default=1e9, help="reports to tally")
    parser.add_argument("--rows", type=float, default=1e8, help="rows to randomize")
    parser.add_argument("--folder", type=Path, default=Path("billion"), help="a new folder")
    parser.add_argument("--tally", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tally is not None:
        tally_here(*options.tally)
        return
    options.folder.mkdir(parents=True)
    versions = f"turnout {tn.__version__}, pyarrow {pa.__version__}, numpy {np.__version__}"
    table = Table(title=f"One machine; {versions}")
    for name in ("job", "time", "rate", "files", "peak memory"):
        table.add_column(name, justify="left" if name == "job" else "right")
    most = int(options.reports)
    try:
        tally_reports(options.folder, [max(most // 100, 1), max(most // 10, 1), most], table)
        randomize_answers(options.folder, int(options.rows), table)
    finally:
        shutil.rmtree(options.folder)
    Console().print(table)


if __name__ == "__main__":
    main()
