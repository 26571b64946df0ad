"""Jobs and their parts: files of reports.

A part holds the reports of a fixed stretch of blocks, and appears whole or not at all, and once:
the first finished file is kept.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
from collections.abc import Iterable, Iterator
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
    """Tell where part ``number`` of a job is.

    Examples
    --------
    >>> part_path(Path("reports"), 7).name
    'part-00007.parquet'
    """
    return folder / f"part-{number:05d}.parquet"


@dataclass(frozen=True)
class PartTask:
    """How the parts of a job are made, but for the secret of its noise; can be pickled.

    Attributes
    ----------
    folder
        Where the parts appear.
    job
        The name of the job.
    plan
        The oracle and the participation.
    encoder
        How the answers become what is randomized.
    """

    folder: Path
    job: str
    plan: Plan
    encoder: Encoder

    def elsewhere(self) -> PartTask:
        """Give what can be sent to another machine, which has other working folders and no key."""
        return replace(self, folder=self.folder.absolute(), encoder=self.encoder.with_key(None))

    def __call__(self, secrets: Secrets, part: Part) -> Totals:
        """Make a part, or look at the one that is there, and say what was done.

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
        if not (task.folder / STATE_FOLDER).is_dir():
            raise InvalidValueError(
                "output must be a folder that all machines of the cluster share: "
                f"{str(task.folder)!r} is not there on {socket.gethostname()}"
            )
        if part.blocks is not None:
            return task.write(part.number, map(task.encoder, part.blocks), secrets.noise)
        done = task.find(part.number)
        if done is None:
            path = part_path(task.folder, part.number)
            raise CorruptDataError(f"{path}: was there and is gone")
        return done

    def write(self, number: int, blocks: Iterable[EncodedBlock], noise: JobNoise) -> Totals:
        """Make a part, unless its file is there already.

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

    def _begun(self) -> None:
        """Note that a part is about to appear: from now on the job cannot be withdrawn."""
        path = begun_path(self.folder)
        if not path.exists():
            path.touch()
            synchronise_folder(path.parent)

    def find(self, number: int) -> Totals | None:
        """Read what was done from the file of a part; None if there is no file.

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
    """What a part's header says, added up block by block."""

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
    """Make the columns of the groups of some reports."""
    if groups is None or index is None:
        return
    pa = require("pyarrow", "cli")
    for place, kind in enumerate(kinds):
        yield pa.array([key[place] for key in groups.keys], kind).take(pa.array(index))


def in_parts(blocks: Iterable[Any], size: int) -> Iterator[tuple[int, Iterator[Any]]]:
    """Put blocks together that make up a part; each part must be used up before the next."""
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
    plan, answers, encoder = settle(answers, oracle, participation, of_files=True)
    folder = _folder(output)
    noise = JobNoise.made(seed)
    # A part is a fixed stretch of rows: another release may cut them otherwise.
    described = {**answers.describe(), "part_blocks": PART_BLOCKS}
    job = Job.read(folder)
    name = secrets.token_hex(16) if job is None else job.name
    task = PartTask(folder, name, plan, encoder)
    if job is None:
        encoder.grouping.check(answers.source)
        content, answers = answers._held_to(noise.secret)
        job = Job(folder, name, plan, described, noise, content)
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
            content, answers = answers._held_to(job.noise.secret)
            if content is None or content != job.content:
                why = (
                    "can be read only once, and nobody can tell whether it holds what it held"
                    if content is None
                    else "does not hold what it held when the job began"
                )
                raise InvalidValueError(
                    f"the job in {str(folder)!r} cannot go on: {answers.name} {why}"
                )
    return job, None if job.complete else task, answers


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


def _folder(output: str | os.PathLike[str]) -> Path:
    try:
        folder = Path(output)
    except TypeError as error:
        raise _arguments.mistyped("output must be the path of a folder", output) from error
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"output: {str(folder)!r} is a file; reports go to a folder")
    return folder


def number_of_parts(answers: Answers, together: int | None = None) -> int | None:
    """Count the parts of so many blocks, those of a job by default, if the rows are known."""
    together = PART_BLOCKS if together is None else together
    blocks = answers.source.number_of_blocks
    return None if blocks is None else -(-blocks // together)


def parts_of(answers: Answers, task: PartTask) -> Iterator[Part]:
    """List the parts of a job, first those that are there."""
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
