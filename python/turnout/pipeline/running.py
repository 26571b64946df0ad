"""Running collections: answers to report files or to a tally, with any executor."""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from turnout._progress import track
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import file_format, write_reports
from turnout.collecting.reports import Reports
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.metrics import observe
from turnout.participation import Participation
from turnout.pipeline.answers import Answers, settle
from turnout.pipeline.encoding import EncodedBlock, Encoder, Totals
from turnout.pipeline.flight import Executor, Part
from turnout.pipeline.job import Job
from turnout.pipeline.parts import (
    PartTask,
    in_parts,
    number_of_parts,
    open_job,
    part_path,
    parts_of,
)
from turnout.pipeline.randomizing import (
    JobNoise,
    Secrets,
    collect_block,
    of_nobody,
    randomize_blocks,
)
from turnout.pipeline.report_set import ReportSet, open_reports

AnyTally = BaseTally | GroupedTally


_LOGGER = logging.getLogger(__name__)


def randomize(
    answers: Answers,
    oracle: Kind,
    output: str | os.PathLike[str],
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    resume: bool = False,
    workers: int | None = None,
    progress: bool = False,
) -> ReportSet:
    """Randomize answers into a folder of report files, block by block.

    Only the blocks in progress need memory, whatever the number of rows. Each file of reports
    appears whole or not at all. To continue a job that was killed, pass ``resume=True``. Existing
    parts are kept, and the others are drawn from the secret that the job began with, so nobody is
    ever randomized twice. The folder contains the secret, readable only by its owner, until the job
    is complete. Until then keep the folder as safe as the answers. A job that ends before its first
    part exists, by an error or by Ctrl-C, is withdrawn: its secret is erased, and you can use the
    folder again.

    Parameters
    ----------
    answers
        The answers that :func:`turnout.pipeline.scan` returned.
    oracle
        The oracle that randomizes answers.
    output
        The folder for the reports: a new or an empty one, or the folder of the job to resume.
    participation
        Who takes part: everyone (default) or a common rate. Omit it if the answers have a column of
        probabilities.
    seed
        For tests and simulations only: an integer in [0, 2^64) that makes the reports reproducible.
    resume
        Whether to resume the job in the folder, if there is one.
    workers
        The number of parts to process at once; by default the number of processors.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.

    Returns
    -------
    ReportSet
        The reports that were written.

    Raises
    ------
    InvalidValueError
        If the folder contains something else, or a job with other answers; if an answer is refused.
    PlanMismatchError
        If the job in the folder has another plan.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in the domain.
    InvalidTypeError
        If an argument is of the wrong type.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> answers = tn.pipeline.scan(pa.table({"answer": ["no", "yes"] * 500}), "answer")
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reports = tn.pipeline.randomize(answers, oracle, pathlib.Path(folder, "reports"))
    ...     reports.tally().nodes
    1000
    """
    return run_job(
        Executor(workers, progress),
        answers,
        oracle,
        output,
        participation=participation,
        seed=seed,
        resume=resume,
    )


def run_job(
    executor: Executor,
    answers: Answers,
    oracle: Kind,
    output: str | os.PathLike[str],
    *,
    participation: Participation | float | None,
    seed: int | None,
    resume: bool,
) -> ReportSet:
    """Perform :func:`randomize` with any executor."""
    job, task, answers = open_job(
        answers, oracle, output, participation=participation, seed=seed, resume=resume
    )
    if task is not None:
        with job._at_work():
            parts, total = _made(executor, job, task, answers)
            job._finished(parts, total, answers.source.file_rows)
        _LOGGER.info("job %s: complete, %d parts", job.name, parts)
    return open_reports(job.folder)


def _made(executor: Executor, job: Job, task: PartTask, answers: Answers) -> tuple[int, Totals]:
    """Make all parts of a job; return their number and the totals."""
    _LOGGER.info("job %s: randomizing %s into %s", job.name, answers.name, job.folder)
    assert job.noise is not None
    hidden = Secrets.of(job.noise, answers.pseudonym_key)
    parts, total = 0, Totals()
    answers._persons(progress=executor.progress)
    number, items = number_of_parts(answers), parts_of(answers, task)
    with contextlib.closing(executor.results(task.elsewhere(), items, hidden)) as each:
        for part, made in track(each, "randomizing", executor.progress, number):
            executor.wait_for(part_path(task.folder, part.number))
            if part.blocks is not None:
                observe_rows(made)
                observe("part_written", rows=made.rows, reports=made.reports)
            _LOGGER.debug("part %d: %d reports", part.number, made.reports)
            parts, total = parts + 1, total + made
    return parts, total


def _encoded(answers: Answers, encoder: Encoder) -> Iterator[EncodedBlock]:
    for block in answers._all_blocks(encoder.domain):
        encoded = encoder(block)
        observe_rows(encoded.totals)
        yield encoded


def observe_rows(done: Totals) -> None:
    """Report the rows that were read to :mod:`turnout.metrics`."""
    left_out = done.left_out
    observe("rows_read", rows=done.rows, dropped=left_out.people, duplicates=left_out.duplicates)


def randomize_to_file(
    answers: Answers,
    oracle: Kind,
    path: str | os.PathLike[str],
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> Totals:
    """Randomize answers into one report file, which appears whole or not at all.

    This call cannot be resumed. Each call draws new noise, and spends the persons' epsilon again if
    anybody saw reports of an earlier call, even in the hidden temporary file
    ``.<name>.<random>.tmp`` that a killed run leaves in the folder. If you must randomize only
    once, use :func:`randomize`.

    Parameters
    ----------
    answers, oracle, participation, seed, progress
        As for :func:`randomize`.
    path
        A file that ends in ``.parquet``, written block by block, or in ``.arrow``, whose reports
        are held in memory. Its folder must exist; a file that is there is replaced.

    Returns
    -------
    Totals
        What was done.

    Raises
    ------
    TurnoutError, OSError
        As :func:`randomize`.
    """
    plan, answers, encoder = settle(answers, oracle, participation, of_files=True)
    noise = JobNoise.made(seed)
    answers._persons(progress=progress)
    encoded = _encoded(answers, encoder)
    blocks = track(encoded, "randomizing", progress, answers.source.number_of_blocks)
    if file_format(path) == "arrow":
        if answers.group_by or answers.pseudonym_key is not None:
            raise InvalidValueError(
                f"output: {os.fspath(path)!r}: groups and pseudonyms need a .parquet file"
            )
        reports = randomize_blocks(plan, blocks, noise)
        write_reports(reports, path)
        return Totals(reports.nodes, len(reports), reports.left_out)
    return PartTask(Path(path).parent, "", plan, encoder).write_file(path, blocks, noise)


def collect(
    answers: Answers,
    oracle: Kind,
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> BaseTally | GroupedTally:
    """Randomize and tally answers in blocks, without storing reports on disk or in memory.

    Each call draws new noise. A second call for the same persons, or a call after
    :func:`turnout.pipeline.randomize`, costs each of them epsilon again.

    Parameters
    ----------
    answers, oracle, participation, seed, workers, progress
        As in :func:`turnout.pipeline.randomize`. For the same seed the result is the tally of its
        reports.

    Returns
    -------
    Tally or GroupedTally
        One tally, or one for each group if the answers are grouped.

    Raises
    ------
    TurnoutError, OSError
        As in :func:`turnout.pipeline.randomize`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> table = pa.table({"answer": [0, 1, 1, 1], "country": ["DE", "FR", "DE", "FR"]})
    >>> answers = tn.pipeline.scan(table, "answer", group_by="country")
    >>> tn.pipeline.collect(answers, tn.DirectEncoding(1.0, 2))["DE"].nodes
    2
    """
    executor = Executor(workers, progress)
    return run_collection(executor, answers, oracle, participation=participation, seed=seed)


def run_collection(
    executor: Executor,
    answers: Answers,
    oracle: Kind,
    *,
    participation: Participation | float | None,
    seed: int | None,
) -> AnyTally:
    """Perform :func:`collect` with any executor."""
    plan, answers, encoder = settle(answers, oracle, participation)
    secrets = Secrets.of(JobNoise.made(seed), answers.pseudonym_key)
    answers._persons(progress=executor.progress)
    collecting = _Collecting(encoder.with_key(None), plan)
    stretches = in_parts(answers._all_blocks(plan.domain), executor.stretch)
    parts = (Part(number, list(blocks)) for number, blocks in stretches)
    with (
        executor.merging() as total,
        contextlib.closing(executor.results(collecting, parts, secrets, into=total)) as each,
    ):
        number = number_of_parts(answers, executor.stretch)
        for _, done in track(each, "collecting", executor.progress, number):
            observe_rows(done)
    found: AnyTally | None = total.result()
    return of_nobody(plan, answers.group_by) if found is None else found._of_new_origin()


@dataclass(frozen=True, eq=False)
class _Collecting:
    """The recipe that turns blocks into a tally."""

    encoder: Encoder
    plan: Plan

    def __call__(self, secrets: Secrets, part: Part) -> tuple[Totals, AnyTally]:
        encoder, plan = secrets.unlocked(self.encoder), self.plan
        names = tuple(encoder.grouping.rules)
        done = Totals()
        tallies: list[AnyTally] = []
        for block in part.blocks or ():
            encoded = encoder(block)
            done += encoded.totals
            tallies.append(collect_block(plan, encoded, secrets.noise, names))
        return done, functools.reduce(operator.add, tallies)


def randomized_in_memory(
    answers: Answers,
    oracle: Kind,
    participation: Participation | float | None,
    seed: int | None,
) -> Reports:
    """Randomize answers block by block and keep the reports in memory."""
    plan, answers, encoder = settle(answers, oracle, participation)
    if answers.group_by or answers.pseudonym_key is not None:
        raise InvalidTypeError(
            "values with group_by or pseudonyms cannot become Reports: use turnout.pipeline"
        )
    noise = JobNoise.made(seed)
    return randomize_blocks(plan, _encoded(answers, encoder), noise)
