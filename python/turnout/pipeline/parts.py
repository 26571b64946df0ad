"""Jobs and their parts: files of reports.

A part contains the reports of a fixed range of blocks. It appears whole or not at all, and only
once: the first finished file is kept.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from turnout import _arguments
from turnout._extras import require
from turnout._files import synchronise_folder
from turnout._types import Integers
from turnout.collecting.keys import Key, plain_key
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import ReportFile
from turnout.collecting.report_files.header import Groups, PartFacts
from turnout.collecting.report_files.writing import ReportWriter
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.participation import Participation
from turnout.pipeline.answers import Answers, settle
from turnout.pipeline.columns import GroupIndex
from turnout.pipeline.encoding import EncodedBlock, Encoder, Totals
from turnout.pipeline.flight import Part
from turnout.pipeline.job import STATE_FOLDER, Job, begun_path
from turnout.pipeline.randomizing import (
    BlockReports,
    JobNoise,
    Secrets,
    randomize_block,
)
from turnout.pipeline.sources import Block, TableBlock
from turnout.pipeline.threads import in_flight

#: Blocks of a part: some eight million rows.
PART_BLOCKS: Final = 8


def part_path(folder: Path, number: int) -> Path:
    """Return the path of part ``number`` of a job.

    Examples
    --------
    >>> part_path(Path("reports"), 7).name
    'part-00007.parquet'
    """
    return folder / f"part-{number:05d}.parquet"


@dataclass(frozen=True)
class PartFiles:
    """The location of the parts of a job.

    Attributes
    ----------
    folder
        Where the parts appear.
    job
        The name of the job.
    """

    folder: Path
    job: str

    def _check_folder(self) -> None:
        """Refuse a folder that does not exist on this machine."""
        if not (self.folder / STATE_FOLDER).is_dir():
            raise InvalidValueError(
                "output must be a folder that all machines of the cluster share: "
                f"{str(self.folder)!r} is not there on {socket.gethostname()}"
            )

    def _begun(self) -> None:
        """Record that a part is about to appear: from now on the job cannot be withdrawn."""
        path = begun_path(self.folder)
        if not path.exists():
            path.touch()
            synchronise_folder(path.parent)


@dataclass(frozen=True)
class PartTask(PartFiles):
    """The recipe for the parts of a job, without the secret of its noise; can be pickled.

    Attributes
    ----------
    plan
        The oracle and the participation.
    encoder
        How the answers become what is randomized.
    """

    plan: Plan
    encoder: Encoder

    def elsewhere(self) -> PartTask:
        """Return a copy for another machine, with absolute paths and without the key."""
        return replace(self, folder=self.folder.absolute(), encoder=self.encoder.with_key(None))

    def __call__(self, secrets: Secrets, part: Part) -> Totals:
        """Make a part, or read the existing one, and return its totals.

        Raises
        ------
        InvalidValueError
            If the folder is not there.
        CorruptDataError
            If the part was there and is gone.
        TurnoutError, OSError
            As :meth:`write`.
        """
        task = replace(self, encoder=secrets.unlocked(self.encoder))
        task._check_folder()
        if part.blocks is not None:
            return task.write(part.number, map(task.encoder, part.blocks), secrets.noise)
        done = task.find(part.number)
        if done is None:
            path = part_path(task.folder, part.number)
            raise CorruptDataError(f"{path}: has disappeared")
        return done

    def write(self, number: int, blocks: Iterable[EncodedBlock], noise: JobNoise) -> Totals:
        """Make a part, unless its file already exists.

        Parameters
        ----------
        number
            Which part.
        blocks
            The encoded blocks of the part, in order.
        noise
            What all noise of the job comes from.

        Returns
        -------
        Totals
            What was done, as the file that is there now says.

        Raises
        ------
        CorruptDataError
            If there is a file that is not this part.
        TurnoutError
            If a value is refused.
        OSError
            If the file cannot be written.
        """
        found = self.find(number)
        if found is not None:
            return found
        path = part_path(self.folder, number)
        # Of two that made the part at once the first one's file is there. It may have completed the
        # job meanwhile, and with it removed what the other one was still writing.
        try:
            return self.write_file(path, blocks, noise, number=number)
        except (FileExistsError, FileNotFoundError):
            found = self.find(number)
            if found is None:
                raise
            return found

    def write_file(
        self,
        path: str | os.PathLike[str],
        blocks: Iterable[EncodedBlock],
        noise: JobNoise,
        *,
        number: int | None = None,
    ) -> Totals:
        """Make a file of reports: part ``number`` of the job, or one by itself.

        Raises
        ------
        FileExistsError
            If there is a file, and this is to be a part; another file is replaced.
        TurnoutError
            If a value is refused.
        OSError
            If the file cannot be written.
        """
        kinds = dict(self.encoder.grouping.types)
        sums = _Sums(self.plan.participation.uniform_rate is None)
        alone = number is None

        def made() -> Iterator[dict[str, Any]]:
            for block in blocks:
                found = randomize_block(self.plan, block, noise)
                sums.add(block, found)
                yield {
                    "reports": found.reports.codes,
                    "probabilities": found.reports.probabilities,
                    "groups": _group_columns(block.groups, found.groups, list(kinds.values())),
                    "pseudonyms": found.pseudonyms,
                }

        with ReportWriter(
            path,
            self.plan,
            group_types=kinds,
            pseudonyms=self.encoder.key is not None,
            replace=alone,
            before=None if alone else self._begun,
        ) as writer:
            # A block is written while the next one is read and randomized.
            for _ in in_flight(lambda columns: writer.add(**columns), made(), workers=1):
                pass
            groups = sums.groups(tuple(kinds)) if kinds else None
            part = None if number is None else PartFacts(self.job, number)
            header = writer.close(
                sums.totals.nodes,
                design=sums.design,
                groups=groups,
                part=part,
                left_out=sums.totals.left_out,
            )
        return Totals.of_header(header)

    def find(self, number: int) -> Totals | None:
        """Read the totals from the file of a part; return None if there is no file.

        Raises
        ------
        CorruptDataError
            If it was altered, or is not this part of this job.
        """
        path = part_path(self.folder, number)
        if not path.exists():
            return None
        with ReportFile(path) as file:
            header = file.header
        facts = header.part
        if facts is None or (facts.job, facts.number) != (self.job, number):
            raise CorruptDataError(f"{path}: is not part {number} of the job in this folder")
        self.plan._check_same(header.plan, str(path))
        return Totals.of_header(header)


class _Sums:
    """The totals in a part's header, added up block by block."""

    def __init__(self, personal: bool) -> None:
        self.totals = Totals()
        self.design = DesignSums(0, 0) if personal else None
        self._nodes: dict[Key, int] = {}
        self._unanswered: dict[Key, int] = {}
        self._designs: dict[Key, DesignSums] = {}

    def add(self, block: EncodedBlock, made: BlockReports) -> None:
        self.totals += block.totals
        if self.design is not None and made.reports.design is not None:
            self.design += made.reports.design
        if block.groups is None or block.unanswered is None:
            return
        nodes, designs = block.groups.nodes, made.designs
        keys = [plain_key("group", key, len(key)) for key in block.groups.keys]
        numbers = zip(keys, nodes.tolist(), block.unanswered.tolist(), strict=True)
        for position, (key, number, without) in enumerate(numbers):
            self._nodes[key] = self._nodes.get(key, 0) + number
            self._unanswered[key] = self._unanswered.get(key, 0) + without
            if designs is not None:
                self._designs[key] = self._designs.get(key, DesignSums(0, 0)) + designs[position]

    def groups(self, names: tuple[str, ...]) -> Groups:
        designs = None if self.design is None else tuple(self._designs.values())
        numbers = tuple(self._nodes.values()), designs, tuple(self._unanswered.values())
        return Groups(names, tuple(self._nodes), *numbers)


def _group_columns(
    groups: GroupIndex | None, index: Integers | None, kinds: list[Any]
) -> Iterator[Any]:
    """Return the group columns of some reports."""
    if groups is None or index is None:
        return
    pa = require("pyarrow", "cli")
    for place, kind in enumerate(kinds):
        yield pa.array([key[place] for key in groups.keys], kind).take(pa.array(index))


def in_parts(blocks: Iterable[Any], size: int) -> Iterator[tuple[int, Iterator[Any]]]:
    """Group blocks into parts; use up each part before the next."""
    return itertools.groupby(blocks, lambda block: int(block.index) // size)


def open_job(
    answers: Answers,
    oracle: Kind,
    output: str | os.PathLike[str],
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    resume: bool = False,
) -> tuple[Job, PartTask | None, Answers]:
    """Begin a job, or resume the existing one.

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
    plan, answers, encoder = settle(answers, oracle, participation, of_files=True)
    folder = folder_of(output)
    # A part is a fixed stretch of rows: another release may cut them otherwise.
    described = {**answers.describe(), "part_blocks": PART_BLOCKS}
    there = Job.read(folder)
    if there is None:
        encoder.grouping.check(answers.source)
    fresh = Job(folder, secrets.token_hex(16), plan, described, JobNoise.made(seed))

    def held(secret: bytes) -> str | None:
        nonlocal answers
        content, answers = answers._held_to(secret)
        return content

    job = begin_or_take_up(there, fresh, held, resume=resume, source=answers.name)
    task = PartTask(folder, job.name, plan, encoder)
    return job, None if job.complete else task, answers


def begin_or_take_up(
    there: Job | None,
    fresh: Job,
    held: Callable[[bytes], str | None],
    *,
    resume: bool,
    source: str,
) -> Job:
    """Begin a job in its folder, or resume the existing one.

    Parameters
    ----------
    there
        The job in the folder, if there is one.
    fresh
        The job as it would begin.
    held
        Gives a digest of the answers under a secret; None if they can be read only once.
    resume
        Whether to go on with a job that is there.
    source
        What the answers are called.

    Raises
    ------
    InvalidValueError, PlanMismatchError
        If there is a job, and it is not to go on, or is another one.
    """
    if there is None:
        assert fresh.noise is not None
        job = replace(fresh, content=held(fresh.noise.secret))
        job._begin()
        return job
    if not resume:
        unfinished = "is unfinished: pass resume=True, or --resume, to continue it"
        state = "is complete" if there.complete else unfinished
        empty = "" if there.complete or there._begun else " (it has no reports yet)"
        raise InvalidValueError(
            f"output: {str(there.folder)!r} holds a job, which {state}. Randomizing "
            "the same persons again would spend epsilon again, unless you delete all "
            f"files of the first run before anybody sees them{empty}; "
            "for other answers, use another folder"
        )
    there._check_same(fresh.plan, fresh.answers)
    if there.noise is not None:
        content = held(there.noise.secret)
        if content is None or content != there.content:
            why = (
                "can be read only once, so nobody can tell whether it has changed"
                if content is None
                else "has changed since the job began"
            )
            raise InvalidValueError(
                f"the job in {str(there.folder)!r} cannot go on: {source} {why}"
            )
    return there


def blocks_there(task: PartTask, most: int | None) -> frozenset[int]:
    """List the blocks of the existing parts, out of all possible parts."""
    found: list[int] = []
    for name in sorted(path.name for path in task.folder.glob("part-*.parquet")):
        number = int(name[5:-8]) if name[5:-8].isdecimal() else -1
        if number < 0 or part_path(task.folder, number).name != name:
            raise InvalidValueError(f"{task.folder / name}: is not a part of the job")
        if most is None or number < most:
            found += range(number * PART_BLOCKS, (number + 1) * PART_BLOCKS)
    return frozenset(found)


def folder_of(output: str | os.PathLike[str]) -> Path:
    """Return the folder of a job.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is no path, or a file.
    """
    try:
        folder = Path(output)
    except TypeError as error:
        raise _arguments.mistyped("output must be the path of a folder", output) from error
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"output: {str(folder)!r} is a file; reports go to a folder")
    return folder


def number_of_parts(answers: Answers, together: int | None = None) -> int | None:
    """Return the number of parts of a job, or of some blocks, if the rows are known."""
    together = PART_BLOCKS if together is None else together
    blocks = answers.source.number_of_blocks
    return None if blocks is None else -(-blocks // together)


def parts_of(answers: Answers, task: PartTask) -> Iterator[Part]:
    """List the parts of a job, existing ones first."""
    there = blocks_there(task, number_of_parts(answers))
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
