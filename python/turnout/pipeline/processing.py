"""Blocks of answers to reports or tallies, and to the parts of a job: files of reports.

Block ``i`` of a job draws from the streams of the chunks ``16 i`` to ``16 i + 15`` of the job's
key, whoever works on it, when, and how often: a block that is done again gives the same reports.
A part holds the reports of a fixed stretch of blocks, and appears whole or not at all, and once:
the first finished file is kept.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._extras import require
from turnout._secrets import HiddenBytes
from turnout._types import Array, Bytes, Floats, Integers
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import Key, plain_key
from turnout.collecting.kind import Kind, collected, randomized
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import Groups, Header, PartFacts, ReportFile, ReportWriter
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, from_dict, taking_part_in
from turnout.pipeline.columns import group_type
from turnout.pipeline.flight import in_flight
from turnout.pipeline.sources import BLOCK

if TYPE_CHECKING:
    from turnout.pipeline.answers import Answers
    from turnout.pipeline.columns import GroupIndex
    from turnout.pipeline.encoding import EncodedBlock


#: Chunks of a block: each has random streams of its own.
_CHUNKS: Final = BLOCK // 2**16


@dataclass(frozen=True)
class JobNoise:
    """The secret that all noise of a job comes from.

    Attributes
    ----------
    key
        32 random bytes; None if there is a seed.
    seed
        The seed, in tests and simulations; None if there is a key.

    Examples
    --------
    >>> JobNoise.made(None) == JobNoise.made(None), JobNoise.made(7) == JobNoise.made(7)
    (False, True)
    """

    key: bytes | None = field(repr=False)
    seed: int | None = field(repr=False)

    @classmethod
    def made(cls, seed: int | None) -> JobNoise:
        """Draw a key from the operating system, unless there is a seed."""
        return cls(HiddenBytes(secrets.token_bytes(32)) if seed is None else None, seed)

    def block(self, index: int) -> _core.NoiseStreams:
        """Give the streams of a block."""
        first = index * _CHUNKS
        if self.key is not None:
            return _core.NoiseStreams(self.key, first)
        assert self.seed is not None
        return _core.NoiseStreams.from_seed(self.seed, first)


@dataclass(frozen=True, eq=False)
class BlockReports:
    """The reports of a block.

    Attributes
    ----------
    reports
        The reports, with the number of nodes.
    groups
        For each report the position of its group in the block's keys, or None.
    group_nodes
        For each group of the block its nodes, or None.
    group_designs
        For each group the sums of its nodes' probabilities, or None.
    pseudonyms
        For each report 16 bytes, or None.
    """

    reports: Reports
    groups: Integers | None = None
    group_nodes: Integers | None = None
    group_designs: list[DesignSums] | None = None
    pseudonyms: Bytes | None = None


def plan_of(answers: Answers, oracle: Kind, participation: Any) -> Plan:
    """Settle under which plan answers are collected.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If personal probabilities are not in a column, or are there beside a common rate, or if the
        oracle's reports cannot be made block by block.
    """
    _arguments.instance("oracle", oracle, Kind, "an oracle")
    # A kind of one's own may draw for all at once, a memoized one answers from a client's state.
    if not (oracle.fresh and oracle.by_blocks):
        why = (
            "whose noise is not drawn block by block"
            if oracle.fresh
            else "whose permanent answers each client keeps: its client(...).message does"
        )
        raise InvalidTypeError(
            f"oracle must be one that randomizes the rows of a table by themselves, got a "
            f"{type(oracle).__name__}, {why}"
        )
    if answers.probability_column is not None:
        if participation is not None:
            raise _arguments.invalid(
                "participation must be left out where probability_column gives each person's own",
                participation,
            )
        return Plan(oracle, from_dict({"kind": "personalized"}))
    taking_part = taking_part_in(participation)
    if taking_part.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...), got "
            f"{_arguments.shown(participation)}: name the column that holds each person's "
            "probability with probability_column"
        )
    return Plan(oracle, taking_part)


def randomize_block(plan: Plan, block: EncodedBlock, noise: JobNoise) -> BlockReports:
    """Make the reports of a block.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :meth:`turnout.FrequencyOracle.randomize`.
    """
    participation, streams = _participation(plan, block), _streams(noise, block)
    reports = randomized(plan.oracle, block.codes, participation, streams)
    if block.groups is None and block.pseudonyms is None:
        return BlockReports(reports)
    positions = plan.oracle.reporting(block.codes, participation, streams)
    pseudonyms = None if block.pseudonyms is None else block.pseudonyms[positions]
    if block.groups is None:
        return BlockReports(reports, pseudonyms=pseudonyms)
    index, number = block.groups.index, len(block.groups.keys)
    nodes = np.bincount(index, minlength=number).astype(np.int64)
    designs = designs_by_group(block.probabilities, index, nodes)
    return BlockReports(reports, index[positions].astype(np.int64), nodes, designs, pseudonyms)


def designs_by_group(
    probabilities: Floats | None, index: Array, counts: Integers
) -> list[DesignSums] | None:
    """Add up what the probabilities of each group say; None if there are none."""
    if probabilities is None:
        return None
    order = np.argsort(index, kind="stable")
    pieces = np.split(probabilities[order], np.cumsum(counts)[:-1])
    return [DesignSums.of(np.ascontiguousarray(piece)) for piece in pieces]


def of_nobody(plan: Plan, names: tuple[str, ...]) -> Any:
    """Give the tally of nobody, grouped by these columns if there are any."""
    return GroupedTally(names, {}, plan=plan) if names else plan.oracle.tally_type.empty(plan)


def collect_block(plan: Plan, block: EncodedBlock, noise: JobNoise) -> BaseTally:
    """Tally the reports of a block, with no reports in memory.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :meth:`turnout.FrequencyOracle.collect`.
    """
    participation = _participation(plan, block)
    tally: BaseTally = collected(plan.oracle, block.codes, participation, _streams(noise, block))
    return tally


def collect_groups(
    plan: Plan, block: EncodedBlock, noise: JobNoise, names: tuple[str, ...]
) -> GroupedTally:
    """Tally the reports of each group of a block.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :meth:`turnout.FrequencyOracle.collect`.
    """
    made = randomize_block(plan, block, noise)
    assert block.groups is not None
    assert made.groups is not None
    assert made.group_nodes is not None
    return tally_by_group(
        made.reports,
        made.groups,
        made.group_nodes,
        names=names,
        keys=block.groups.keys,
        designs=made.group_designs,
    )


def _participation(plan: Plan, block: EncodedBlock) -> Participation:
    if block.probabilities is None:
        return plan.participation
    return Personalized(block.probabilities)


def _streams(noise: JobNoise, block: EncodedBlock) -> _core.NoiseStreams:
    """Give the streams of a block, whose rows must not reach into those of the next one."""
    if len(block.codes) > BLOCK:
        raise InvalidValueError(
            f"a block must have at most {BLOCK:,} rows, got {len(block.codes):,}: it would share "
            "its noise with the next one"
        )
    return noise.block(block.index)


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
    group_types
        The Arrow types of the columns of groups; none if the reports are not grouped.
    pseudonyms
        Whether reports have pseudonyms.
    """

    folder: Path
    job: str
    plan: Plan
    noise: JobNoise = field(repr=False)
    group_types: Mapping[str, Any] = field(default_factory=dict)
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
        kinds = dict(self.group_types)
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
            groups = sums.groups(tuple(kinds)) if kinds else None
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


def group_types(answers: Answers) -> dict[str, Any]:
    """Tell the Arrow types of the columns of groups, as their plain values are stored."""
    schema = answers.source.schema
    return {name: group_type(schema.field(name).type) for name in answers.group_by}


def in_parts(blocks: Iterable[Any], size: int) -> Iterator[tuple[int, Iterator[Any]]]:
    """Put blocks together that make up a part; each part must be used up before the next."""
    return itertools.groupby(blocks, lambda block: int(block.index) // size)
