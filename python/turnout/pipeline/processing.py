"""One block of answers: its reports, or its tally.

Block ``i`` of a job draws from the streams of the chunks ``16 i`` to ``16 i + 15`` of the job's
key, whoever works on it, when, and how often: a block that is done again gives the same reports.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._secrets import HiddenBytes
from turnout._types import Bytes, Integers
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind, collected, randomized
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.participation import Participation, Personalized, from_dict, taking_part_in
from turnout.pipeline.sources import BLOCK

if TYPE_CHECKING:
    from turnout.pipeline.answers import Answers
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
    designs = None
    if block.probabilities is not None:
        order = np.argsort(index, kind="stable")
        pieces = np.split(block.probabilities[order], np.cumsum(nodes)[:-1])
        designs = [DesignSums.of(piece) for piece in pieces]
    return BlockReports(reports, index[positions].astype(np.int64), nodes, designs, pseudonyms)


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
