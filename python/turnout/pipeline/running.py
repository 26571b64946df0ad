"""Running a collection: answers to report files, whoever does the work."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import itertools
import logging
import os
import secrets
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from turnout import _arguments
from turnout._progress import track
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import file_format, write_reports
from turnout.collecting.report_files.header import OWN_COLUMNS
from turnout.collecting.reports import Reports
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.metrics import observe
from turnout.participation import Participation
from turnout.pipeline.answers import Answers
from turnout.pipeline.columns import group_type
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.flight import Executor, Part
from turnout.pipeline.job import Job
from turnout.pipeline.processing import (
    PART_BLOCKS,
    STATE_FOLDER,
    JobNoise,
    PartTask,
    Totals,
    in_parts,
    part_path,
    plan_of,
    randomize_block,
)
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.report_counting import empty_reports
from turnout.pipeline.report_set import ReportSet, open_reports
from turnout.pipeline.sources import Block, TableBlock

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Secrets:
    """What goes to whoever works on a job beside its rows, and must not lie about.

    It is an argument of each task, which Ray sends from the driver to the worker and writes
    nowhere; the object store might spill it to a disk.
    """

    noise: JobNoise = field(repr=False)
    pseudonym_secret: bytes | None = field(repr=False)

    @classmethod
    def of(cls, noise: JobNoise, key: PseudonymKey | None) -> Secrets:
        """Take what a key is made of along: a key itself cannot be sent."""
        return cls(noise, None if key is None else key.secret)

    def unlocked(self, answers: Answers) -> Answers:
        """Give answers their key back."""
        if self.pseudonym_secret is None:
            return answers
        return answers._with_key(PseudonymKey(self.pseudonym_secret))


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

    Memory is bounded by the blocks in work, whatever the number of rows. Each file of reports
    appears whole or not at all. A job that was killed goes on with ``resume=True``: parts that are
    there are kept, and the others are drawn from the secret that the job began with, so that
    nobody is ever randomized twice. The secret stands in the folder, for its owner only, until the
    job is complete; until then keep the folder as safe as the answers. A job that ends before
    its first part is there, by an error or by Ctrl-C, is withdrawn: its secret is erased, and the
    folder is free for another try.

    Parameters
    ----------
    answers
        What :func:`turnout.pipeline.scan` made.
    oracle
        How answers are randomized.
    output
        The folder for the reports: a new or an empty one, or that of the job to go on with.
    participation
        Who takes part: everyone (default) or a common rate. Left out if the answers have a column
        of probabilities.
    seed
        For tests and simulations only: an integer in [0, 2^64) that makes the reports reproducible.
    resume
        Whether to go on with the job in the folder, if there is one.
    workers
        How many parts are worked on at once; by default as many as there are processors.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.

    Returns
    -------
    ReportSet
        The reports that were written.

    Raises
    ------
    InvalidValueError
        If the folder holds something else, or a job with other answers; if an answer is refused.
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
    """Do what :func:`randomize` does, wherever the work is done."""
    job, task, answers = open_job(
        answers, oracle, output, participation=participation, seed=seed, resume=resume
    )
    if task is None:
        return open_reports(job.folder)
    with job._at_work():
        parts, total = _made(executor, job, task, answers)
        job._finished(parts, total, answers.source.file_rows)
    _LOGGER.info("job %s: complete, %d parts", job.name, parts)
    return open_reports(job.folder)


def _made(executor: Executor, job: Job, task: PartTask, answers: Answers) -> tuple[int, Totals]:
    """Make all parts of a job; say how many there are, and what was done."""
    _LOGGER.info("job %s: randomizing %s into %s", job.name, answers.name, job.folder)
    assert job.noise is not None
    hidden = Secrets.of(job.noise, answers.pseudonym_key)
    # Other machines have other working folders.
    writing = _Writing(answers._with_key(None), replace(task, folder=job.folder.absolute()))
    parts, total = 0, Totals()
    answers._persons(progress=executor.progress)
    work = executor.results(writing, _parts(answers, task), hidden)
    with contextlib.closing(work) as each:
        number = number_of_parts(answers, PART_BLOCKS)
        for part, made in track(each, "randomizing", executor.progress, number):
            executor.wait_for(part_path(task.folder, part.number))
            if part.blocks is not None:
                observe_rows(made)
                observe("part_written", rows=made.rows, reports=made.reports)
            _LOGGER.debug("part %d: %d reports", part.number, made.reports)
            parts, total = parts + 1, total + made
    return parts, total


@dataclass(frozen=True, eq=False)
class _Writing:
    """How a part of a job is written."""

    answers: Answers
    task: PartTask

    def __call__(self, hidden: Secrets, part: Part) -> Totals:
        answers, task = hidden.unlocked(self.answers), self.task
        if not (task.folder / STATE_FOLDER).is_dir():
            raise InvalidValueError(
                "output must be a folder that all machines of the cluster share: "
                f"{str(task.folder)!r} is not there on {socket.gethostname()}"
            )
        if part.blocks is None:
            header = task.find(part.number)
            if header is None:
                path = part_path(task.folder, part.number)
                raise CorruptDataError(f"{path}: was there and is gone")
        else:
            domain = task.plan.domain
            blocks = (answers._encoded(block, domain) for block in part.blocks)
            header = task.write(part.number, blocks, hidden.noise)
        return Totals.of_header(header)


def _parts(answers: Answers, task: PartTask) -> Iterator[Part]:
    """List the parts of a job, first those that are there."""
    there = blocks_there(task, number_of_parts(answers, PART_BLOCKS))
    for number in sorted({block // PART_BLOCKS for block in there}):
        yield Part(number, None)
    for number, blocks in in_parts(answers._all_blocks(task.plan.domain, skip=there), PART_BLOCKS):
        held: list[Block] = []
        for block in blocks:
            held.append(block)
            if isinstance(block, TableBlock):
                # The data are in hand: this part now, one block after the other.
                yield Part(number, itertools.chain(held, blocks), in_hand=True)
                break
        else:
            yield Part(number, held)


def number_of_parts(answers: Answers, together: int) -> int | None:
    """Count the parts of so many blocks, where the number of rows is known."""
    blocks = answers.source.number_of_blocks
    return None if blocks is None else -(-blocks // together)


def _encoded(answers: Answers, plan: Plan) -> Iterator[EncodedBlock]:
    for block in answers._all_blocks(plan.domain):
        encoded = answers._encoded(block, plan.domain)
        observe_rows(Totals.of_block(encoded))
        yield encoded


def observe_rows(done: Totals) -> None:
    """Tell :mod:`turnout.metrics` of rows that were read."""
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

    Nothing is kept by which it could go on: each call draws new noise, and costs the persons their
    epsilon again if reports of an earlier one were seen, be it in the hidden temporary file
    ``.<name>.<random>.tmp`` that a killed run leaves in the folder. :func:`randomize` is for
    what must be done once.

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
    plan, answers = _settled(answers, oracle, participation)
    noise = JobNoise.made(seed)
    answers._persons(progress=progress)
    encoded = _encoded(answers, plan)
    blocks = track(encoded, "randomizing", progress, answers.source.number_of_blocks)
    if file_format(path) == "arrow":
        if answers.group_by or answers.pseudonym_key is not None:
            raise InvalidValueError(
                f"output: {os.fspath(path)!r}: groups and pseudonyms need a .parquet file"
            )
        reports = _together(plan, blocks, noise)
        write_reports(reports, path)
        return Totals(reports.nodes, len(reports), reports.left_out)
    task = _task(answers, plan, Path(path).parent, "")
    return Totals.of_header(task.write_file(path, blocks, noise))


def open_job(
    answers: Answers,
    oracle: Kind,
    output: str | os.PathLike[str],
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    resume: bool = False,
) -> tuple[Job, PartTask | None, Answers]:
    """Begin a job or take up the one that is there.

    Parameters
    ----------
    answers, oracle, output, participation, seed, resume
        As for :func:`randomize`.

    Returns
    -------
    job : Job
        The state of the job.
    task : PartTask or None
        How its parts are made; None if the job is complete.
    answers : Answers
        The answers, with the collection that pseudonyms are for.

    Raises
    ------
    TurnoutError
        As :func:`randomize`.
    """
    plan, answers = _settled(answers, oracle, participation)
    folder = _folder(output)
    noise = JobNoise.made(seed)
    # A part is a fixed stretch of rows: another release may cut them otherwise.
    described = {**answers.describe(), "part_blocks": PART_BLOCKS}
    job = Job.read(folder)
    if job is None:
        answers._check_groups()
        content, answers = content_of(answers, noise)
        job = Job(folder, secrets.token_hex(16), plan, described, noise, content)
        job._begin()
    elif not resume:
        state = "is complete" if job.complete else "is unfinished: resume goes on with it"
        empty = not (job.complete or job._begun)
        raise InvalidValueError(
            f"output: {str(folder)!r} holds a job, which {state}. To randomize the same persons "
            "again would cost each of them epsilon once more, unless all files of the first time "
            f"are deleted before anybody saw them{' (it has no reports yet)' if empty else ''}; "
            "other answers go to another folder"
        )
    else:
        job._check_same(plan, described)
        if job.noise is not None:
            content, answers = content_of(answers, job.noise)
            if content is None or content != job.content:
                why = (
                    "can be read only once, and nobody can tell whether it holds what it held"
                    if content is None
                    else "does not hold what it held when the job began"
                )
                raise InvalidValueError(
                    f"the job in {str(folder)!r} cannot go on: {answers.name} {why}"
                )
    task = None if job.complete else _task(answers, plan, folder, job.name)
    return job, task, answers


def _settled(
    answers: Answers, oracle: Kind, participation: Participation | float | None
) -> tuple[Plan, Answers]:
    """Settle the plan of reports in files, and of answers the collection that they are of."""
    plan = plan_of(answers, oracle, participation)
    for name in answers.group_by:
        if name in OWN_COLUMNS:
            raise InvalidValueError(
                f"group_by must not name {name!r}, a column that report files have themselves: "
                "give it another name"
            )
    # Of pseudonyms: two questions may have one plan.
    return plan, answers._in_context(f"{plan.fingerprint}/{'/'.join(answers.asked)}")


def _task(answers: Answers, plan: Plan, folder: Path, name: str) -> PartTask:
    source = answers.source
    types = {name: group_type(source.schema.field(name).type) for name in answers.group_by}
    return PartTask(folder, name, plan, types, answers.pseudonym_key is not None)


def content_of(answers: Answers, noise: JobNoise) -> tuple[str | None, Answers]:
    """Digest all answers that can be read again, under the job's secret.

    Where the rows themselves are digested it gives with that answers whose blocks are held to it.
    """
    if not answers.source.repeatable:
        return None, answers
    secret = noise.key if noise.key is not None else str(noise.seed).encode()
    digest = hmac.new(secret, b"turnout: the content of a job", hashlib.sha256)
    content = answers.source.content()
    if content is not None:
        digest.update(content)
        return digest.hexdigest(), answers
    found = answers._read_digests()
    for index, rows in found.items():
        digest.update(index.to_bytes(8, "little") + rows)
    return digest.hexdigest(), answers._with_digests(found)


def blocks_there(task: PartTask, most: int | None) -> frozenset[int]:
    """List the blocks of the parts that are there, of the parts that there can be."""
    found: list[int] = []
    for name in sorted(path.name for path in task.folder.glob("part-*.parquet")):
        number = int(name[5:-8]) if name[5:-8].isdecimal() else -1
        if number < 0 or part_path(task.folder, number).name != name:
            raise InvalidValueError(f"{task.folder / name}: is not a part of the job")
        if most is None or number < most:
            found += range(number * PART_BLOCKS, (number + 1) * PART_BLOCKS)
    return frozenset(found)


def randomized_in_memory(
    answers: Answers,
    oracle: Kind,
    participation: Participation | float | None,
    seed: int | None,
) -> Reports:
    """Randomize answers block by block and keep the reports in memory."""
    plan = plan_of(answers, oracle, participation)
    if answers.group_by or answers.pseudonym_key is not None:
        raise InvalidTypeError(
            "values with group_by or pseudonyms cannot become Reports: use turnout.pipeline"
        )
    noise = JobNoise.made(seed)
    return _together(plan, _encoded(answers, plan), noise)


def _together(plan: Plan, blocks: Iterable[EncodedBlock], noise: JobNoise) -> Reports:
    """Randomize blocks and hold their reports in memory."""
    pieces = [randomize_block(plan, block, noise).reports for block in blocks]
    return Reports.concatenate(pieces or [empty_reports(plan)])


def _folder(output: str | os.PathLike[str]) -> Path:
    try:
        folder = Path(output)
    except TypeError as error:
        raise _arguments.mistyped("output must be the path of a folder", output) from error
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"output: {str(folder)!r} is a file; reports go to a folder")
    return folder
