"""A collection on a Ray cluster of several workers, of which some are killed on the way.

    python examples/pipeline/ray_collection.py --rows 20000000 --workers 4 --kill 2

makes Parquet files of answers, randomizes them into report files on a cluster (a local one unless
``--address`` names another), kills workers while it does, tallies the files on the cluster, and
compares the tally with that of the same collection on this machine without Ray: with one seed the
two are equal. The seed is there for the comparison; a real collection leaves it out.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray

import turnout as tn

LABELS = ["daily", "weekly", "monthly", "rarely", "never"]
SHARES = [0.4, 0.25, 0.15, 0.12, 0.08]
SEED = 7


def make_answers(folder: Path, rows: int, files: int) -> None:
    """Write Parquet files with an answer and a day for each person."""
    random = np.random.default_rng(1)
    for number, size in enumerate(np.diff(np.linspace(0, rows, files + 1).astype(int))):
        codes = random.choice(len(LABELS), size, p=SHARES).astype(np.int8)
        answers = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(LABELS))
        days = pa.array(random.integers(1, 8, size), pa.int8())
        pq.write_table(pa.table({"answer": answers, "day": days}), folder / f"{number:03}.parquet")


def workers_at_work() -> list[int]:
    """Process ids of this machine's workers that have a part in hand."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes().startswith(b"ray::_write"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def kill_workers(number: int, over: threading.Event) -> None:
    """Kill workers while they write parts."""
    killed: list[int] = []
    while len(killed) < number and not over.wait(0.05):
        for process in workers_at_work():
            if process not in killed and len(killed) < number:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
                print(f"  killed worker {process}")
                time.sleep(0.2)


def timed(what: str, work: Any) -> Any:
    """Do something and say how long it took."""
    start = time.perf_counter()
    result = work()
    print(f"{what}: {time.perf_counter() - start:.1f} s")
    return result


def main() -> None:
    """Run the collection."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--workers", type=int, default=4, help="of the local cluster")
    parser.add_argument("--kill", type=int, default=2, help="how many workers to kill (Linux)")
    parser.add_argument("--address", help="of a running cluster that shares this machine's folders")
    options = parser.parse_args()

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if options.address:
        ray.init(address=options.address)
    else:
        ray.init(address="local", num_cpus=options.workers, include_dashboard=False)

    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(LABELS))
    half = tn.Bernoulli(0.5)
    with tempfile.TemporaryDirectory() as place:
        answers, reports = Path(place, "answers"), Path(place, "reports")
        answers.mkdir()
        rows, files = options.rows, options.files
        timed(f"{rows:,} answers made", lambda: make_answers(answers, rows, files))

        over = threading.Event()
        killer = threading.Thread(target=kill_workers, args=(options.kill, over))
        killer.start()
        try:
            written = timed(
                "randomized on Ray",
                lambda: tn.ray.randomize(
                    answers, "answer", oracle, half, output=reports, seed=SEED, group_by="day"
                ),
            )
        finally:
            over.set()
            killer.join()
        print(f"  {len(written)} files, {written.totals.reports:,} reports")
        tally = timed("tallied on Ray", lambda: tn.ray.tally(reports, group_by="day"))

        plain = timed(
            "the same on this machine, without Ray",
            lambda: tn.pipeline.collect(
                tn.pipeline.scan(answers, "answer", group_by="day"),
                oracle,
                participation=half,
                seed=SEED,
            ),
        )
    print("equal tallies:", tally == plain)
    if tally != plain:
        raise SystemExit(1)
    estimate = tally.total.estimate()
    interval = estimate.interval(0.95)
    for row in zip(LABELS, SHARES, estimate.frequencies, interval.low, interval.high, strict=True):
        print("  {:8} true {:.4f}   estimate {:.4f}   95 % [{:.4f}, {:.4f}]".format(*row))
    ray.shutdown()


if __name__ == "__main__":
    main()
