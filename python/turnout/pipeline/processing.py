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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._extras import require
from turnout._files import synchronise_folder
from turnout._secrets import HiddenBytes
from turnout._types import Array, Bytes, Floats, Integers
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import Key, plain_key
from turnout.collecting.kind import Kind, collected, randomized
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import PIECE
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import ReportFile
from turnout.collecting.report_files.header import Groups, Header, PartFacts
from turnout.collecting.report_files.writing import ReportWriter
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, taking_part_in
from turnout.pipeline.answers import Answers
from turnout.pipeline.columns import GroupIndex
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.sources import BLOCK
from turnout.pipeline.threads import in_flight

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
        seed = _arguments.seed(seed)
        return cls(HiddenBytes(secrets.token_bytes(32)) if seed is None else None, seed)

    def block(self, index: int) -> _core.NoiseStreams:
        """Give the streams of a block."""
        first = index * _CHUNKS
        if self.key is not None:
            return _core.NoiseStreams(self.key, first)
        assert self.seed is not None
        return _core.NoiseStreams.from_seed(self.seed, first)


@dataclass(frozen=True)
class Totals:
    """What a job did.

    Attributes
    ----------
    nodes
        Persons who could have taken part.
    reports
        Reports that were written.
    left_out
        Rows that do not count.
    """

    nodes: int = 0
    reports: int = 0
    left_out: LeftOut = NOTHING

    @property
    def rows(self) -> int:
        """How many rows were read."""
        return self.nodes + self.left_out.total

    def __add__(self, other: Totals) -> Totals:
        """Add what another part did."""
        return Totals(
            self.nodes + other.nodes,
            self.reports + other.reports,
            self.left_out + other.left_out,
        )

    @classmethod
    def of_block(cls, block: EncodedBlock) -> Totals:
        """Say what became of the rows of a block."""
        return cls(block.nodes, left_out=block.left_out)

    @classmethod
    def of_header(cls, header: Header) -> Totals:
        """Say what was done, from what the file of it says."""
        return cls(header.nodes, header.reports, header.left_out)

    def to_dict(self) -> dict[str, Any]:
        """Describe them in terms of JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class BlockReports:
    """The reports of a block.

    Attributes
    ----------
    reports
        The reports, with the number of nodes.
    groups
        For each report the position of its group in the block's keys, or None.
    pseudonyms
        For each report 16 bytes, or None.
    """

    reports: Reports
    groups: Integers | None = None
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
    _arguments.instance("answers", answers, Answers, "what turnout.pipeline.scan made")
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
        return Plan(oracle, Participation.from_dict({"kind": "personalized"}))
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
    participation, streams = _drawing(plan, block, noise)
    reports = randomized(plan.oracle, block.codes, participation, streams, block.left_out)
    if block.groups is None and block.pseudonyms is None:
        return BlockReports(reports)
    positions = plan.oracle._reporters(block.codes, participation, streams)
    return BlockReports(
        reports,
        None if block.groups is None else block.groups.index[positions].astype(np.int64),
        None if block.pseudonyms is None else block.pseudonyms[positions],
    )


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


def collect_block(
    plan: Plan, block: EncodedBlock, noise: JobNoise, names: tuple[str, ...] = ()
) -> Any:
    """Tally the reports of a block, or of each of its groups, whose columns have these names.

    It is a piece of a collection, which gets an origin when it is whole.

    Without groups there are no reports in memory.

    Raises
    ------
    CodeOutsideDomainError, InvalidValueError
        As :meth:`turnout.FrequencyOracle.collect`.
    """
    if block.groups is None:
        participation, streams = _drawing(plan, block, noise)
        return collected(
            plan.oracle, block.codes, participation, streams, left_out=block.left_out, origin=PIECE
        )
    made, groups = randomize_block(plan, block, noise), block.groups
    assert made.groups is not None
    designs = designs_by_group(block.probabilities, groups.index, groups.nodes)
    return tally_by_group(
        made.reports,
        made.groups,
        groups.nodes,
        names=names,
        keys=groups.keys,
        designs=designs,
        unanswered=block.unanswered,
        piece=True,
    )


def _drawing(
    plan: Plan, block: EncodedBlock, noise: JobNoise
) -> tuple[Participation, _core.NoiseStreams]:
    """Give who takes part in a block, and its streams: its rows must not reach into the next's."""
    if len(block.codes) > BLOCK:
        raise InvalidValueError(
            f"a block must have at most {BLOCK:,} rows, got {len(block.codes):,}: it would share "
            "its noise with the next one"
        )
    known = block.probabilities
    taking_part = plan.participation if known is None else Personalized(known)
    return taking_part, noise.block(block.index)


#: The folder of a job's state, in that of its reports.
STATE_FOLDER: Final = "_turnout"

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


def begun_path(folder: Path) -> Path:
    """Tell which file says that a part of a job may have been seen, be it gone now."""
    return folder / STATE_FOLDER / "begun"


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
    group_types
        The Arrow types of the columns of groups; none if the reports are not grouped.
    pseudonyms
        Whether reports have pseudonyms.
    """

    folder: Path
    job: str
    plan: Plan
    group_types: Mapping[str, Any] = field(default_factory=dict)
    pseudonyms: bool = False

    def write(self, number: int, blocks: Iterable[EncodedBlock], noise: JobNoise) -> Header:
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
            pseudonyms=self.pseudonyms,
            replace=alone,
            before=None if alone else self._begun,
        ) as writer:
            # A block is written while the next one is read and randomized.
            for _ in in_flight(lambda columns: writer.add(**columns), made(), workers=1):
                pass
            groups = sums.groups(tuple(kinds)) if kinds else None
            part = None if number is None else PartFacts(self.job, number)
            return writer.close(
                sums.totals.nodes,
                design=sums.design,
                groups=groups,
                part=part,
                left_out=sums.totals.left_out,
            )

    def _begun(self) -> None:
        """Note that a part is about to appear: from now on the job cannot be withdrawn."""
        path = begun_path(self.folder)
        if not path.exists():
            path.touch()
            synchronise_folder(path.parent)

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
        self.plan._check_same(header.plan, str(path))
        return header


class _Sums:
    """What a part's header says, added up block by block."""

    def __init__(self, personal: bool) -> None:
        self.totals = Totals()
        self.design = DesignSums(0, 0) if personal else None
        self._nodes: dict[Key, int] = {}
        self._unanswered: dict[Key, int] = {}
        self._designs: dict[Key, DesignSums] = {}

    def add(self, block: EncodedBlock, made: BlockReports) -> None:
        self.totals += Totals.of_block(block)
        if self.design is not None and made.reports.design is not None:
            self.design += made.reports.design
        if block.groups is None or block.unanswered is None:
            return
        nodes = block.groups.nodes
        designs = designs_by_group(block.probabilities, block.groups.index, nodes)
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
