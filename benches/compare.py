"""Compare turnout's speed, memory and accuracy with NumPy and the published packages.

One run measures everything and prints tables of direct encoding, the other oracles, files, fresh
processes, a collection server, a round with proofs, accounting, sharing, samplers and federated
training, of the error that is left at equal privacy, of the epsilon that each accountant states,
and of what the programs' noise reveals::

    pip install -r benches/requirements.txt
    python benches/compare.py --page docs/compare/benchmarks.rst --json bench.json

``--page`` writes the page of the documentation, also from an earlier run (``--from-json
bench.json``). ``--core target/criterion`` adds what ``cargo bench --bench sharing --bench votes``
left there.

Every rate is that of the best of several calls after a warm-up. The peers are so much slower that
they work on fewer nodes; rates are per second, so the figures compare. NumPy runs on one thread, by
a plain program and by a tuned one (see ``reference.py``); the ratios that have a target are to the
faster plain one. ``--quick`` leaves out what takes seconds a call and repeats what is random less
often, ``--table`` leaves out all other tables.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import accounting_jobs
import accuracy_jobs
import core_results
import epsilon_jobs
import equal_jobs
import federated_jobs
import jobs
import machine
import memory
import oracle_jobs
import oracle_peers
import page
import peer_checks
import population_jobs
import reading_jobs
import record_jobs
import report
import round_jobs
import sampling_jobs
import serving_jobs
import sharing_jobs
import startup_jobs
import training_jobs
import votes_jobs
from jobs import Job, Layout
from measurement import measure
from peers import PEERS, Peer
from report import Figures, Row

DISTRIBUTIONS = (
    "turnout",
    "numpy",
    "scipy",
    *reading_jobs.PEERS,
    *PEERS,
    "numba",
    accounting_jobs.PEER,
    sharing_jobs.PEER,
    sampling_jobs.PEER,
    federated_jobs.PEER,
    "opendp",
    "diffprivlib",
    "ldp-toolbox",
    "opacus",
)
SPEEDS = ("direct", "oracles", "reading", "accounting", "sharing", "samplers", "federated")
TABLES = (
    *SPEEDS,
    *("startup", "serving", "rounds", "networks", "votes"),
    *("accuracy", "populations", "trainings", "records", "epsilon", "checks"),
)
MEMORY_NODES = (10**6, 10**7, 10**8)
#: The width of the table where there is no terminal to fit.
WIDTH = 170
#: The time for each collector whose accuracy is measured with --quick.
QUICK_SECONDS = 0.5


@dataclass(frozen=True)
class Table:
    """The jobs of one table, what is said below it, and which packages are not to be had."""

    name: str
    title: str
    layout: Layout
    jobs: list[Job]
    notes: list[str]
    missing: dict[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison; return 0, or 1 if turnout cannot be imported."""
    options = _options(arguments)
    out, err = Console(), Console(stderr=True)
    if not out.is_terminal:
        out = Console(width=WIDTH)
    if options.from_json is not None:
        write(json.loads(options.from_json.read_text(encoding="utf-8")), options)
        return 0
    turnout = None
    if not options.without_turnout:
        try:
            turnout = load_turnout()
        except ImportError as error:
            err.print(f"turnout cannot be imported: {error}", style="red", markup=False)
            err.print("Install a release build of it, or leave it out with --without-turnout.")
            return 1
    wanted = options.table or TABLES
    figures = [*speeds(turnout, options, wanted, err), *qualities(turnout, options, wanted, err)]
    found = environment(turnout)
    if options.core is not None:
        core, crates = core_results.load(options.core)
        figures += [core] if core is not None else []
        found |= crates
    for one in figures:
        out.print(report.table(one))
        for note in [*one.notes, *(row.note for row in one.rows if row.note)]:
            out.print(note, style="dim", markup=False, highlight=False, soft_wrap=True)
    out.print(", ".join(f"{name} {version}" for name, version in found.items()), markup=False)
    measured = {
        "environment": found,
        "quick": options.quick,
        "tables": [as_json(one) for one in figures],
    }
    if options.json is not None:
        options.json.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    write(measured, options)
    return 0


def write(measured: dict[str, Any], options: argparse.Namespace) -> None:
    """Write the page if it was asked for."""
    if options.page is not None:
        options.page.write_text(page.page(measured), encoding="utf-8")


def as_json(figures: Figures) -> dict[str, Any]:
    """Return a table with its cells as text and all that they were made from."""
    return {
        "name": figures.name,
        "title": figures.title,
        "headings": list(figures.headings),
        "rows": [{"cells": list(row.cells), "note": row.note, **row.raw} for row in figures.rows],
        "notes": figures.notes,
    }


def speeds(
    turnout: ModuleType | None, options: argparse.Namespace, wanted: Sequence[str], err: Console
) -> list[Figures]:
    """Measure the tables of speed and memory."""
    if not set(wanted) & set(SPEEDS):
        return []
    tables = build(turnout, options, wanted)
    if options.quick:
        tables = [replace(table, jobs=without_slow(table.jobs)) for table in tables]
    columns = [name for name in memory.CONTENDERS if name != "turnout" or turnout is not None]
    # Memory is that of direct encoding, the first table.
    sizes = () if options.no_memory or tables[0].name != "direct" else MEMORY_NODES
    total = sum(len(table.jobs) for table in tables) + len(sizes) * len(columns)
    with _progress(err, total) as progress:
        limits = machine.measure(turnout) if any(one.layout.limited for one in tables) else None
        measured = [measure_jobs(table, options.seconds, progress, limits) for table in tables]
        measured[0] += measure_memory(columns, sizes, progress)
    figures = []
    for table, rows in zip(tables, measured, strict=True):
        notes = [*table.notes, *(f"{name}: {why}" for name, why in table.missing.items())]
        if limits is not None and table.layout.limited:
            notes.append(limits.note())
        figures.append(Figures(table.name, table.title, table.layout.headings, rows, notes))
    return figures


def qualities(
    turnout: ModuleType | None, options: argparse.Namespace, wanted: Sequence[str], err: Console
) -> Iterator[Figures]:
    """Measure the tables of accuracy, of epsilons and of what the programs reveal."""
    seconds = QUICK_SECONDS if options.quick else options.accuracy_seconds
    with err.status("") as status:

        def show(what: str) -> None:
            status.update(what)

        if "startup" in wanted:
            runs = 1 if options.quick else startup_jobs.RUNS
            yield startup_jobs.measure(turnout, options.nodes, runs, show)
        if "serving" in wanted:
            yield serving_jobs.measure(turnout, options.quick, show)
        if "rounds" in wanted:
            yield round_jobs.measure(turnout, options.quick, show)
        if "networks" in wanted:
            yield training_jobs.run(turnout, options.seconds, options.quick, show)
        if "votes" in wanted:
            prio = {} if options.core is None else core_results.votes(options.core)
            yield votes_jobs.measure(
                turnout, prio, seconds=options.seconds, quick=options.quick, show=show
            )
        if "accuracy" in wanted:
            yield from accuracy_jobs.measure(turnout, seconds, show)
        if "populations" in wanted:
            yield population_jobs.measure(turnout, seconds, show)
        if "trainings" in wanted:
            yield equal_jobs.measure(turnout, options.quick, show)
        if "records" in wanted:
            yield record_jobs.measure(turnout, options.quick, show)
        if "epsilon" in wanted:
            yield from epsilon_jobs.measure(turnout, show)
        if "checks" in wanted:
            show("what the programs reveal")
            yield from peer_checks.measure(turnout)


def build(
    turnout: ModuleType | None, options: argparse.Namespace, wanted: Sequence[str]
) -> list[Table]:
    """Return the tables that are wanted, that of direct encoding first; load no other package."""
    tables = []
    if "direct" in wanted:
        peers, missing = load_peers()
        inputs = jobs.Inputs(options.nodes, options.peer_nodes)
        notes = [
            "Rates are answers per second. Each call has "
            f"{report.magnitude(options.nodes)} answers, with pure-ldp and multi-freq-ldpy "
            f"{report.magnitude(options.peer_nodes)}.",
            "collect selects who takes part, randomizes their answers and counts the reports. The "
            "number after it is the probability of taking part. pure-ldp and multi-freq-ldpy "
            "cannot select, so the benchmark selects for them.",
            "uint8 and int64 are the types of the codes that a call gets.",
            "peak memory: how much the memory of a new process grows beyond its input, while it "
            "collects at "
            + " and at ".join(f"{participation:g}" for participation in memory.RATES)
            + ".",
        ]
        title = f"Direct encoding, epsilon {jobs.EPSILON:g}, k={jobs.DOMAIN_SIZE}"
        work = jobs.build(turnout, peers, inputs)
        tables.append(Table("direct", title, jobs.LAYOUT, work, notes, missing))
    if "reading" in wanted:
        readers, missing = reading_jobs.load_peers()
        work = reading_jobs.build(turnout, options.nodes, readers)
        title = reading_jobs.title(options.nodes)
        notes = reading_jobs.NOTES
        tables.append(Table("reading", title, reading_jobs.LAYOUT, work, notes, missing))
    subjects: dict[str, tuple[Any, Callable[[], tuple[Any, dict[str, str]]]]] = {
        "oracles": (oracle_jobs, oracle_peers.load),
        "accounting": (accounting_jobs, accounting_jobs.load_peer),
        "sharing": (sharing_jobs, sharing_jobs.load_peer),
        "samplers": (sampling_jobs, sampling_jobs.load_peer),
        "federated": (federated_jobs, federated_jobs.load_peer),
    }
    for name, (subject, load) in subjects.items():
        if name in wanted:
            peer, missing = load()
            work = subject.build(turnout, peer)
            tables.append(Table(name, subject.TITLE, subject.LAYOUT, work, subject.NOTES, missing))
    return tables


def without_slow(work: Sequence[Job]) -> list[Job]:
    """Return the jobs without the contenders that are so slow that they are called once."""
    return [
        replace(job, contenders=[contender for contender in job.contenders if not contender.once])
        for job in work
    ]


def measure_jobs(
    table: Table, seconds: float, progress: Progress, limits: machine.Machine | None
) -> list[Row]:
    """Time the contenders of every job of a table; return a row for each job."""
    task, rows = progress.task_ids[0], []
    before = progress.tasks[0].completed
    for done, job in enumerate(table.jobs):

        def show(share: float, done: int = done) -> None:
            progress.update(task, completed=before + done + share, refresh=True)

        progress.update(task, description=job.name, refresh=True)
        timings = measure(job.contenders, seconds, show)
        rows.append(report.throughput_row(table.layout, job, timings, table.missing, limits))
    return rows


def measure_memory(columns: Sequence[str], sizes: Sequence[int], progress: Progress) -> list[Row]:
    """Measure peak memory for every column and size; return a row for each size."""
    task = progress.task_ids[0]
    growths: dict[int, dict[str, int]] = {size: {} for size in sizes}
    problems: dict[int, dict[str, str]] = {size: {} for size in sizes}
    for size in sizes:
        for column in columns:
            description = f"peak memory, n={report.magnitude(size)}, {column}"
            progress.update(task, description=description, refresh=True)
            try:
                growths[size][column] = memory.peak_growth(column, size)
            except RuntimeError as error:
                problems[size][column] = str(error)
            progress.advance(task)
    verdict = report.memory_verdict([growths[size].get("turnout") for size in sizes])
    return [report.memory_row(size, growths[size], verdict, problems[size]) for size in sizes]


def load_turnout() -> ModuleType:
    """Import turnout.

    Raises
    ------
    ImportError
        If it is not installed, or was not built.
    """
    turnout = importlib.import_module("turnout")
    if not hasattr(turnout, "DirectEncoding"):
        message = f"{turnout.__name__} has no DirectEncoding"
        raise ImportError(message)
    return turnout


def load_peers() -> tuple[list[Peer], dict[str, str]]:
    """Return the peers that are installed, and why the others are not to be had."""
    peers, problems = [], {}
    for name, load in PEERS.items():
        try:
            peers.append(load(jobs.EPSILON, jobs.DOMAIN_SIZE))
        except ImportError as error:
            problems[name] = f"not installed: {error}"
        except Exception as error:  # a broken peer must not end the comparison
            problems[name] = f"failed: {type(error).__name__}: {error}"
    return peers, problems


def environment(turnout: ModuleType | None) -> dict[str, str]:
    """Return the versions of everything that is compared, and the size of the machine."""
    found = {"Python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    if turnout is not None and found["turnout"] == "not installed":
        found["turnout"] = str(getattr(turnout, "__version__", "of unknown version"))
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["CPUs"] = str(os.cpu_count())
    return found


def _progress(console: Console, total: int) -> Progress:
    """Return a progress bar that is redrawn between calls only.

    A thread that redraws it would disturb the figures.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(
        *columns, TimeElapsedColumn(), console=console, auto_refresh=False, transient=True
    )
    progress.add_task("", total=total)
    return progress


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="compare.py", description="Compare turnout with NumPy and the published packages."
    )
    parser.add_argument("--nodes", type=_count, default=10**7, metavar="N", help="default 1e7")
    parser.add_argument(
        "--peer-nodes", type=_count, default=10**5, metavar="N", help="nodes for peers; default 1e5"
    )
    parser.add_argument(
        "--seconds", type=float, default=1.5, help="seconds for each contender; default 1.5"
    )
    parser.add_argument(
        "--table", action="append", choices=TABLES, help="measure this table only; may be repeated"
    )
    parser.add_argument(
        "--accuracy-seconds",
        type=float,
        default=2.5,
        help="seconds of repeats for each program whose accuracy is measured; default 2.5",
    )
    parser.add_argument("--quick", action="store_true", help="leave out what takes seconds a call")
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory")
    parser.add_argument(
        "--without-turnout", action="store_true", help="measure NumPy and the peers alone"
    )
    parser.add_argument(
        "--core", type=Path, metavar="FOLDER", help="add what criterion left in target/criterion"
    )
    parser.add_argument(
        "--from-json", type=Path, metavar="FILE", help="measure nothing, take an earlier run's JSON"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the documentation page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers as JSON")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    """Read a positive count, which may be written as 1e7."""
    count = int(float(text))
    if count < 1:
        message = f"{text!r} is not a positive count"
        raise argparse.ArgumentTypeError(message)
    return count


if __name__ == "__main__":
    sys.exit(main())
