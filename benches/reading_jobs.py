"""The jobs from files and messages: tallies, text answers from file to file, messages of devices.

Files of reports are Parquet that any program reads. Counting their column ``report`` is what DuckDB
and polars are made for; turnout checks every report and the plan of the file besides. Polars that
reads text answers and writes them, and does nothing to them, is the least that a way from file to
file takes.
"""

from __future__ import annotations

import atexit
import importlib
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jobs import DOMAIN_SIZE, EPSILON, Job, Layout, Target
from measurement import Contender
from report import magnitude

PEERS = ("duckdb", "polars")
LAYOUT = Layout(
    columns=("turnout", *PEERS),
    ratios={"duckdb": "ratio to duckdb", "polars": "ratio to polars"},
)
NOTES = [
    "messages: each is the message of one person. The targets are 5, 20 and 4 microseconds for "
    "one message.",
    "tally: turnout reads one file, checks every report and counts it. DuckDB and polars only "
    "count the values of the column.",
    "randomize: turnout reads text answers from a Parquet file and writes files of reports. polars "
    "reads the same file and writes the answers unchanged. All files are compressed with zstd.",
]
NOBODY = frozenset({"duckdb"})

#: How many messages of devices are made, and taken in.
MESSAGES = 100_000


def title(rows: int) -> str:
    """Return the title of the table."""
    return f"From files, direct encoding, k={DOMAIN_SIZE}, n={magnitude(rows)}, rows per second"


def load_peers() -> tuple[dict[str, ModuleType], dict[str, str]]:
    """Return the packages that are installed, and why the others are not to be had."""
    found, missing = {}, {}
    for name in PEERS:
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            missing[name] = f"not installed: {error}"
    return found, missing


def build(turnout: ModuleType | None, rows: int, peers: dict[str, ModuleType]) -> list[Job]:
    """Return the jobs; their files are written here, and removed at the end of the process."""
    if turnout is None:
        return []
    parquet = importlib.import_module("pyarrow.parquet")
    arrow = importlib.import_module("pyarrow")
    files = importlib.import_module(f"{turnout.__name__}.collecting.report_files")
    folder = Path(tempfile.mkdtemp(prefix="turnout-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    labels = [f"answer {code:02d}" for code in range(DOMAIN_SIZE)]
    oracle = turnout.DirectEncoding(EPSILON, turnout.Domain(labels))
    codes = np.random.default_rng(0).integers(0, DOMAIN_SIZE, rows).astype(np.uint8)
    reports = turnout.DirectEncoding(EPSILON, DOMAIN_SIZE).randomize(codes)
    files.write_reports(reports, folder / "reports.parquet")
    column = arrow.DictionaryArray.from_arrays(arrow.array(codes.astype(np.int32)), labels)
    answers = folder / "answers.parquet"
    parquet.write_table(
        arrow.table({"answer": column}), answers, store_schema=False, compression="zstd"
    )
    return [
        _tally(turnout, rows, peers, folder),
        _randomize(turnout, rows, peers, folder, oracle),
        *_messages(turnout, min(rows, MESSAGES)),
    ]


def _tally(turnout: Any, rows: int, peers: dict[str, Any], folder: Path) -> Job:
    path = folder / "reports.parquet"

    def accept(counts: Callable[[Any], int]) -> Callable[[Any], bool]:
        return lambda result: counts(result) == rows

    contenders = [
        Contender(
            "turnout",
            "pipeline.tally",
            rows,
            partial(turnout.pipeline.tally, path),
            accept(lambda tally: int(tally.support.sum())),
        )
    ]
    if "duckdb" in peers:
        query = f"SELECT report, count(*) FROM read_parquet('{path}') GROUP BY report"
        contenders.append(
            Contender(
                "duckdb",
                "GROUP BY",
                rows,
                lambda: peers["duckdb"].sql(query).fetchall(),
                accept(lambda found: sum(count for _, count in found)),
            )
        )
    if "polars" in peers:
        polars = peers["polars"]
        contenders.append(
            Contender(
                "polars",
                "group_by, len",
                rows,
                lambda: polars.scan_parquet(path).group_by("report").len().collect(),
                accept(lambda found: int(found["len"].sum())),
            )
        )
    return Job("tally of a file of reports", contenders, Target())


def _randomize(turnout: Any, rows: int, peers: dict[str, Any], folder: Path, oracle: Any) -> Job:
    answers = folder / "answers.parquet"

    def randomize() -> Any:
        scanned = turnout.pipeline.scan(answers, "answer")
        new = Path(tempfile.mkdtemp(dir=folder), "reports")
        return turnout.pipeline.randomize(scanned, oracle, new)

    contenders = [
        Contender(
            "turnout",
            "pipeline.randomize",
            rows,
            randomize,
            lambda reports: bool(reports.totals.reports == rows),
        )
    ]
    if "polars" in peers:
        polars = peers["polars"]

        def copy() -> Path:
            polars.read_parquet(answers).write_parquet(folder / "copied.parquet")
            return folder / "copied.parquet"

        contenders.append(
            Contender(
                "polars", "read_parquet, write_parquet", rows, copy, lambda path: path.exists()
            )
        )
    return Job("randomize text answers, file to file", contenders, Target(), nobody=NOBODY)


def _messages(turnout: Any, number: int) -> list[Job]:
    """Make messages of one person each, and take them in: 5 us, 20 us and 4 us for each."""
    plan = turnout.Plan(turnout.DirectEncoding(EPSILON, DOMAIN_SIZE), turnout.Everyone())
    codes = [code % DOMAIN_SIZE for code in range(number)]
    messages = [plan.report(code) for code in codes]

    def make() -> int:
        return sum(plan.report(code) is not None for code in codes)

    def one_by_one() -> int:
        collector = turnout.Collector(plan)
        for message in messages:
            collector.accept(message)
        return int(collector.tally().received)

    def at_once() -> int:
        collector = turnout.Collector(plan)
        collector.accept_many(messages)
        return int(collector.tally().received)

    ways = [
        ("make messages, one by one", "Plan.report", make, 5e-6),
        ("take in messages, one by one", "Collector.accept", one_by_one, 20e-6),
        ("take in messages, at once", "Collector.accept_many", at_once, 4e-6),
    ]
    return [
        Job(
            name,
            [Contender("turnout", variant, number, call, number.__eq__)],
            Target(seconds=number * each),
            nobody=frozenset(PEERS),
        )
        for name, variant, call, each in ways
    ]
