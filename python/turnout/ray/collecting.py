"""Answers of a data set to report files, and to tallies, on a cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnout import _arguments, metrics
from turnout._extras import require
from turnout._progress import track
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError
from turnout.participation import Participation
from turnout.pipeline.answers import Answers
from turnout.pipeline.job import Totals
from turnout.pipeline.processing import (
    PART_BLOCKS,
    JobNoise,
    PartTask,
    in_parts,
    of_nobody,
    part_path,
    plan_of,
)
from turnout.pipeline.report_set import ReportSet, open_reports
from turnout.pipeline.running import blocks_there, open_job
from turnout.pipeline.scanning import scan
from turnout.pipeline.sources import BLOCK, Block, open_source
from turnout.ray.tasks import MergeTree, connected, flight_of, results
from turnout.ray.work import STRETCH, DatasetSource, Recipe, Tasks, digests, stretches

_LOGGER = logging.getLogger(__name__)

#: Seconds after which a file that a worker wrote must be seen by the driver.
_PATIENCE = 60.0


def randomize(
    dataset: Any,
    column: str,
    oracle: Kind,
    participation: Participation | float | None = None,
    *,
    output: str | os.PathLike[str],
    seed: int | None = None,
    resume: bool = False,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> ReportSet:
    """Randomize answers into a folder of report files, part by part, on a Ray cluster.

    The folder, its files and the reports in them are those of :func:`turnout.pipeline.randomize`:
    for the same rows in the same order and the same seed the same reports, and a job that one of
    the two began, the other can go on with. All noise of a job comes from its secret, and each
    block has streams of its own. So a part that is made again, because its worker died or its
    result was lost, is the same part bit by bit, and nobody is ever randomized twice. The first
    finished file of a part is kept.

    The secret goes from the driver to the workers as an argument of each task: encrypt the
    cluster's connections (``RAY_USE_TLS``) unless its network is your own.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``, or whatever :func:`turnout.pipeline.scan` takes. Parquet and Arrow
        files are read by the tasks themselves and must be where all machines of the cluster see
        them; what only the driver can read, such as CSV files, goes through it. A data set is
        computed once, in the order of its rows, and stays in the object store until the end: a
        shuffle or a sample is drawn before any noise is.
    column
        The column of answers, one row a person.
    oracle
        How answers are randomized.
    participation
        Who takes part: everyone (default) or a common rate. Left out if there is a
        ``probability_column``.
    output
        The folder for the reports, on storage that all machines of the cluster share: a new or an
        empty one, or that of the job to go on with.
    seed
        For tests and simulations only: an integer in [0, 2^64) that makes the reports reproducible.
    resume
        Whether to go on with the job in the folder, if there is one. It must hold the same answers;
        a data set of Ray is compared row by row.
    address
        The address of a running cluster. By default the one that this process is connected to, or
        that of ``RAY_ADDRESS``; if there is neither, Ray is started on this machine until the call
        returns.
    workers
        How many tasks are in flight; by default twice as many as the cluster has CPUs.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.
    **options
        The other arguments of :func:`turnout.pipeline.scan`: ``missing``, ``id_column``,
        ``group_by`` and so on. With ``id_column`` the driver reads that column once and finds the
        persons with several rows.

    Returns
    -------
    ReportSet
        The reports that were written.

    Raises
    ------
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in the domain.
    InvalidValueError
        If the folder holds something else, or a job with other answers; if it is not shared; if an
        answer is refused; if this process is connected to another cluster.
    PlanMismatchError
        If the job in the folder has another plan.
    InvalidTypeError
        If an argument is of the wrong type.
    CorruptDataError
        If a file was altered, or Ray made lost rows again and they are not the same.
    WorkerLostError
        If the worker of a task died time and again.
    MissingExtraError
        If Ray is not installed.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> reports = tn.ray.randomize(
    ...     "answers/*.parquet", "answer", oracle, tn.Bernoulli(0.1), output="/shared/reports"
    ... )  # doctest: +SKIP
    >>> tn.ray.tally(reports).estimate()  # doctest: +SKIP
    """
    with connected(address) as ray:
        flight = flight_of(ray, workers)
        answers = _opened(ray, dataset, column, options, flight=flight, progress=progress)
        job, task, answers = open_job(
            answers, oracle, output, participation=participation, seed=seed, resume=resume
        )
        if task is None:
            return open_reports(job.folder)
        _LOGGER.info("job %s: randomizing %s into %s", job.name, answers.name, job.folder)
        # Other machines have other working folders.
        task = replace(task, folder=Path(job.folder).absolute())
        number, totals = 0, Totals()
        for part in _parts(ray, answers, task, flight, progress):
            number, totals = number + 1, totals + part
        job.finished(number, totals)
        _LOGGER.info("job %s: complete, %d parts", job.name, number)
    return open_reports(job.folder)


def collect(
    dataset: Any,
    column: str,
    oracle: Kind,
    participation: Participation | float | None = None,
    *,
    seed: int | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> BaseTally | GroupedTally:
    """Randomize and tally answers on a Ray cluster, with no reports on disk or in memory.

    Parameters
    ----------
    dataset, column, oracle, participation, seed, address, workers, progress, **options
        As for :func:`randomize`. For the same seed the result is the tally of its reports, and that
        of :func:`turnout.pipeline.collect`.

    Returns
    -------
    Tally or GroupedTally
        One tally, or one for each group if the answers are grouped. Tallies of blocks are merged
        on the cluster, sixteen at a time.

    Raises
    ------
    TurnoutError, OSError
        As :func:`randomize`.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> tn.ray.collect("answers/*.parquet", "answer", oracle, group_by="day")  # doctest: +SKIP
    """
    with connected(address) as ray:
        flight = flight_of(ray, workers)
        answers = _opened(ray, dataset, column, options, flight=flight, progress=progress)
        plan = plan_of(answers, oracle, participation)
        tasks = Tasks(ray, Recipe(answers, plan), JobNoise.made(_arguments.seed(seed)))
        tree: MergeTree[BaseTally | GroupedTally] = MergeTree(ray, tasks.merge)

        def submit(blocks: list[Block]) -> Any:
            ended, tally = tasks.collect(blocks)
            tree.add(tally)
            return ended

        answers.persons(progress=progress)
        work = stretches(answers.blocks(plan.domain))
        with tree, contextlib.closing(results(ray, submit, work, flight)) as each:
            for _ in track(each, "collecting", progress, _number(answers, STRETCH)):
                pass
        total = tree.result()
    if total is None:
        total = of_nobody(plan, answers.group_by)
    return total


def _opened(
    ray: Any, dataset: Any, column: str, options: dict[str, Any], *, flight: int, progress: bool
) -> Answers:
    """Open what is collected; a data set of Ray is computed, before any noise is drawn."""
    block_rows = options.pop("block_rows", BLOCK)
    if not isinstance(dataset, require("ray.data", "ray").Dataset):
        return scan(open_source(dataset, block_rows=block_rows), column, **options)
    source = DatasetSource(dataset, block_rows=block_rows)
    answers = scan(source, column, **options)
    source.materialise(answers.columns, progress=progress)
    source.remember(digests(ray, source, flight))
    _LOGGER.info("%s: %d rows computed", source.name, source.rows)
    return answers


def _parts(
    ray: Any, answers: Answers, task: PartTask, flight: int, progress: bool
) -> Iterator[Totals]:
    """Make the parts of a job, and give what each did."""
    tasks = Tasks(ray, Recipe(answers, task.plan, task), task.noise)
    there = blocks_there(task, answers.rows, answers.block_rows)
    answers.persons(progress=progress)

    def work() -> Iterator[tuple[int, list[Block]]]:
        for number in sorted({block // PART_BLOCKS for block in there}):
            yield number, []
        for number, blocks in in_parts(answers.blocks(task.plan.domain, skip=there), PART_BLOCKS):
            yield number, list(blocks)

    with contextlib.closing(results(ray, lambda item: tasks.write(*item), work(), flight)) as each:
        every = _number(answers, PART_BLOCKS)
        for (number, blocks), totals in track(each, "randomizing", progress, every):
            _check_shared(part_path(task.folder, number))
            if blocks:
                metrics.observe(
                    "rows_read",
                    rows=totals.rows,
                    dropped=totals.dropped,
                    duplicates=totals.duplicates,
                )
                metrics.observe("part_written", rows=totals.rows, reports=totals.reports)
            _LOGGER.debug("part %d: %d reports", number, totals.reports)
            yield totals


def _number(answers: Answers, together: int) -> int | None:
    """Count the tasks, where the number of rows is known."""
    return None if answers.rows is None else -(-answers.rows // (answers.block_rows * together))


def _check_shared(path: Path) -> None:
    """Refuse a folder in which the driver does not see what a worker wrote."""
    deadline = time.monotonic() + _PATIENCE
    while not path.exists():
        if time.monotonic() > deadline:
            raise InvalidValueError(
                f"output must be a folder that all machines of the cluster share: {str(path)!r} "
                "was written by a worker and is not there"
            )
        time.sleep(0.1)
