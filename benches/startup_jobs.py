"""What it takes before anything is done, and the memory of a job that streams.

Each figure is that of a fresh process, as the operating system accounts for it when it ends:
processor seconds (user and system) and the largest resident memory; the least of some processes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from report import Figures, Row, duration, magnitude, size

RUNS = 5
#: A peak that grows by less than this, while the rows grow fourfold, is flat.
FLAT_BYTES = 32 << 20
HEADINGS = ("program", "processor time", "peak memory")
TITLE = "Fresh processes"
NOTES = [
    "processor time: user and system time together. The table shows the shortest of several "
    "processes.",
    "peak memory: the most resident memory that the process had.",
    "a job that streams: it reads text answers from a Parquet file block by block, and writes "
    "files of reports.",
]
IMPORTS = ("numpy", "scipy.stats", "pandas", "polars", "duckdb")
#: A process begins with the peak of the one that starts it, so a small one does.
LAUNCH = """
import os, sys
null = os.open(os.devnull, os.O_WRONLY)
process = os.posix_spawn(
    sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)]
)
_, status, used = os.wait4(process, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
WRITE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
rows, path = int(sys.argv[1]), sys.argv[2]
labels = pa.array([f"answer {code:02d}" for code in range(100)])
schema = pa.schema({"answer": pa.string()})
with pq.ParquetWriter(path, schema) as writer:
    for start in range(0, rows, 2**20):
        codes = np.random.default_rng(start).integers(0, 100, min(2**20, rows - start))
        writer.write_table(pa.table({"answer": labels.take(pa.array(codes))}, schema))
"""
STREAM = """
import os, sys, tempfile
import turnout as tn
oracle = tn.DirectEncoding(1.0, [f"answer {code:02d}" for code in range(100)])
new = os.path.join(tempfile.mkdtemp(dir=sys.argv[2]), "reports")
tn.pipeline.randomize(tn.pipeline.scan(sys.argv[1], "answer"), oracle, new)
"""


def measure(
    turnout: ModuleType | None, rows: int, runs: int, show: Callable[[str], object]
) -> Figures:
    """Measure processes that start, and a job with ``rows`` and with four times as many."""
    measured: list[Row] = []

    def add(name: str, command: list[str], runs: int) -> int:
        show(name)
        try:
            seconds, peak = least(command, runs)
        except RuntimeError as error:
            measured.append(Row((name, "-", "-"), f"{name}: {error}", {"job": name}))
            return 0
        raw = {"job": name, "processor_seconds": seconds, "peak_bytes": peak}
        measured.append(Row((name, duration(seconds), size(peak)), "", raw))
        return peak

    python = [sys.executable, "-c"]
    add("python -c pass", [*python, "pass"], runs)
    if turnout is not None:
        add("import turnout", [*python, "import turnout"], runs)
        add("turnout --version", [sys.executable, "-m", "turnout", "--version"], runs)
    for name in IMPORTS:
        add(f"import {name}", [*python, f"import {name}"], runs)
    if turnout is not None:
        with tempfile.TemporaryDirectory(prefix="turnout-bench-") as folder:
            peaks = []
            for count in (rows, 4 * rows):
                answers = str(Path(folder, "answers.parquet"))
                subprocess.run([*python, WRITE, str(count), answers], check=True)
                job = [*python, STREAM, answers, folder]
                peaks.append(add(f"a job that streams, {magnitude(count)} rows", job, min(runs, 2)))
        told = "flat" if peaks[1] <= peaks[0] + FLAT_BYTES else "not flat"
        note = (
            f"Memory of the job: {told}, {size(peaks[1] - peaks[0])} more for four times the rows."
        )
        return Figures("startup", TITLE, HEADINGS, measured, [*NOTES, note])
    return Figures("startup", TITLE, HEADINGS, measured, NOTES)


def least(command: list[str], runs: int) -> tuple[float, int]:
    """Return the least processor seconds and peak bytes of some processes.

    Raises
    ------
    RuntimeError
        If one fails.
    """
    found = [_once(command) for _ in range(runs)]
    return min(seconds for seconds, _ in found), min(peak for _, peak in found)


def _once(command: list[str]) -> tuple[float, int]:
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, *command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"exit status {done.returncode}")
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), int(peak) * (1 if sys.platform == "darwin" else 1024)
