"""Parts of a job: files of reports that appear whole or not at all, and once.

A part holds the reports of a fixed stretch of blocks. Whoever makes it makes the same reports; the
first finished file is kept.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from turnout._extras import require
from turnout._types import Integers
from turnout.collecting.keys import Key, plain_key
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import Groups, Header, PartFacts, ReportFile, ReportWriter
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError
from turnout.pipeline.flight import in_flight
from turnout.pipeline.grouping import group_kind, group_type
from turnout.pipeline.processing import BlockReports, JobNoise, randomize_block

if TYPE_CHECKING:
    from turnout.pipeline.answers import Answers
    from turnout.pipeline.encoding import EncodedBlock
    from turnout.pipeline.grouping import GroupIndex

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
    """How the parts of a job are made. Holds the secret of the job's noise; can be pickled.

    Attributes
    ----------
    folder
        Where the parts appear.
    job
        The name of the job.
    plan
        The oracle and the participation.
    noise
        What all noise comes from.
    group_names
        The columns of the groups; none if the reports are not grouped.
    group_kinds
        For each of them the name of its Arrow type.
    pseudonyms
        Whether reports have pseudonyms.
    """

    folder: Path
    job: str
    plan: Plan
    noise: JobNoise = field(repr=False)
    group_names: tuple[str, ...] = ()
    group_kinds: tuple[str, ...] = ()
    pseudonyms: bool = False

    def write(self, number: int, blocks: Iterable[EncodedBlock]) -> Header:
        """Make a part, unless its file is there already.

        Parameters
        ----------
        number
            Which part.
        blocks
            The encoded blocks of the part, in order.

        Returns
        -------
        Header
            What the file that is there now says.

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
            return self.write_file(path, blocks, number=number)
        except (FileExistsError, FileNotFoundError):
            found = self.find(number)
            if found is None:
                raise
            return found

    def write_file(
        self,
        path: str | os.PathLike[str],
        blocks: Iterable[EncodedBlock],
        *,
        number: int | None = None,
    ) -> Header:
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
        kinds = dict(zip(self.group_names, map(group_type, self.group_kinds), strict=True))
        sums = _Sums(self.plan.participation.uniform_rate is None)
        alone = number is None

        def made() -> Iterator[dict[str, Any]]:
            for block in blocks:
                found = randomize_block(self.plan, block, self.noise)
                sums.add(block, found)
                yield {
                    "reports": found.reports.codes,
                    "probabilities": found.reports.probabilities,
                    "groups": _group_columns(block.groups, found.groups, list(kinds.values())),
                    "pseudonyms": found.pseudonyms,
                }

        with ReportWriter(
            path, self.plan, group_types=kinds, pseudonyms=self.pseudonyms, replace=alone
        ) as writer:
            # A block is written while the next one is read and randomized.
            for _ in in_flight(lambda columns: writer.add(**columns), made(), workers=1):
                pass
            groups = sums.groups(self.group_names) if self.group_names else None
            part = None if number is None else sums.part(self.job, number)
            return writer.close(sums.nodes, design=sums.design, groups=groups, part=part)

    def find(self, number: int) -> Header | None:
        """Read what the file of a part says; None if there is no file.

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
        self.plan.check_same(header.plan, str(path))
        return header


class _Sums:
    """What a part's header says, added up block by block."""

    def __init__(self, personal: bool) -> None:
        self.rows = self.nodes = self.dropped = self.duplicates = 0
        self.design = DesignSums(0, 0) if personal else None
        self._nodes: dict[Key, int] = {}
        self._designs: dict[Key, DesignSums] = {}

    def add(self, block: EncodedBlock, made: BlockReports) -> None:
        self.rows += block.rows
        self.dropped += block.dropped
        self.duplicates += block.duplicates
        self.nodes += made.reports.nodes
        if self.design is not None and made.reports.design is not None:
            self.design += made.reports.design
        if block.groups is None or made.group_nodes is None:
            return
        keys = [plain_key("group", key, len(key)) for key in block.groups.keys]
        for position, (key, nodes) in enumerate(zip(keys, made.group_nodes.tolist(), strict=True)):
            self._nodes[key] = self._nodes.get(key, 0) + nodes
            if made.group_designs is not None:
                before = self._designs.get(key, DesignSums(0, 0))
                self._designs[key] = before + made.group_designs[position]

    def part(self, job: str, number: int) -> PartFacts:
        return PartFacts(job, number, self.rows, self.dropped, self.duplicates)

    def groups(self, names: tuple[str, ...]) -> Groups:
        designs = None if self.design is None else tuple(self._designs.values())
        return Groups(names, tuple(self._nodes), tuple(self._nodes.values()), designs)


def _group_columns(
    groups: GroupIndex | None, index: Integers | None, kinds: list[Any]
) -> Iterator[Any]:
    """Make the columns of the groups of some reports."""
    if groups is None or index is None:
        return
    pa = require("pyarrow", "cli")
    for place, kind in enumerate(kinds):
        yield pa.array([key[place] for key in groups.keys], kind).take(pa.array(index))


def group_kinds(answers: Answers) -> tuple[str, ...]:
    """Name the Arrow types of the columns of groups, as their plain values are stored."""
    schema = answers.source.schema
    return tuple(group_kind(schema.field(name).type) for name in answers.group_by)


def in_parts(blocks: Iterable[Any], size: int) -> Iterator[tuple[int, Iterator[Any]]]:
    """Put blocks together that make up a part; each part must be used up before the next."""
    return itertools.groupby(blocks, lambda block: int(block.index) // size)
