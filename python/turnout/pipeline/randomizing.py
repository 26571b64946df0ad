"""Blocks of answers to reports or tallies.

Block ``i`` of a job draws from the streams of the chunks ``16 i`` to ``16 i + 15`` of the job's
key, whoever works on it, when, and how often: a block that is done again gives the same reports.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._secrets import HiddenBytes
from turnout._types import Array, Bytes, Floats, Integers
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind, collected, randomized
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import PIECE
from turnout.collecting.plan import Plan
from turnout.collecting.report_files.header import Header
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, taking_part_in
from turnout.pipeline.answers import Answers
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.sources import BLOCK

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
