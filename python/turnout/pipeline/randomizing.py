"""Randomization of blocks of answers to reports or tallies.

Block ``i`` of a job draws from the streams of the chunks ``16 i`` to ``16 i + 15`` of the job's
key, independent of which worker processes it, when, and how often. A block that is processed again
gives the same reports.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._secrets import HiddenBytes
from turnout._types import Array, Bytes, Floats, Integers
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import collected, randomized
from turnout.collecting.origin import PIECE
from turnout.collecting.plan import Plan
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidValueError
from turnout.participation import Participation, Personalized
from turnout.pipeline.encoding import EncodedBlock, Encoder
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.sources import BLOCK

#: Chunks of a block: each has random streams of its own.
_CHUNKS: Final = BLOCK // 2**16


@dataclass(frozen=True)
class JobNoise:
    """The secret source of all noise of a job.

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

    @property
    def secret(self) -> bytes:
        """The secret under which the answers are digested."""
        return self.key if self.key is not None else str(self.seed).encode()

    def block(self, index: int) -> _core.NoiseStreams:
        """Return the random streams of a block."""
        first = index * _CHUNKS
        if self.key is not None:
            return _core.NoiseStreams(self.key, first)
        assert self.seed is not None
        return _core.NoiseStreams.from_seed(self.seed, first)


@dataclass(frozen=True)
class Secrets:
    """The secrets that a worker needs in addition to rows; keep them safe.

    It is an argument of each task, which Ray sends from the driver to the worker and writes
    nowhere; the object store might spill it to a disk.
    """

    noise: JobNoise = field(repr=False)
    pseudonym_secret: bytes | None = field(repr=False)

    @classmethod
    def of(cls, noise: JobNoise, key: PseudonymKey | None) -> Secrets:
        """Collect the secrets of a key, since a key itself cannot be sent."""
        return cls(noise, None if key is None else key.secret)

    def unlocked(self, encoder: Encoder) -> Encoder:
        """Return an encoder with its key restored."""
        if self.pseudonym_secret is None:
            return encoder
        return encoder.with_key(PseudonymKey(self.pseudonym_secret))


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
    designs
        For each group what the probabilities of its people say, or None.
    """

    reports: Reports
    groups: Integers | None = None
    pseudonyms: Bytes | None = None
    designs: list[DesignSums] | None = None


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
    positions, groups = plan.oracle._reporters(block.codes, participation, streams), block.groups
    pseudonyms = None if block.pseudonyms is None else block.pseudonyms[positions]
    if groups is None:
        return BlockReports(reports, pseudonyms=pseudonyms)
    designs = designs_by_group(block.probabilities, groups.index, groups.nodes)
    return BlockReports(reports, groups.index[positions].astype(np.int64), pseudonyms, designs)


def randomize_blocks(plan: Plan, blocks: Iterable[EncodedBlock], noise: JobNoise) -> Reports:
    """Make the reports of blocks, all in memory.

    Raises
    ------
    TurnoutError
        As :func:`randomize_block`.
    """
    pieces = [randomize_block(plan, block, noise).reports for block in blocks]
    return Reports.concatenate(pieces or [Reports._of_nobody(plan)])


def designs_by_group(
    probabilities: Floats | None, index: Array, counts: Integers
) -> list[DesignSums] | None:
    """Add up the designs of the probabilities of each group; None if there are none."""
    if probabilities is None:
        return None
    order = np.argsort(index, kind="stable")
    pieces = np.split(probabilities[order], np.cumsum(counts)[:-1])
    return [DesignSums.of(np.ascontiguousarray(piece)) for piece in pieces]


def of_nobody(plan: Plan, names: tuple[str, ...]) -> Any:
    """Return an empty tally, grouped by these columns if there are any."""
    return GroupedTally(names, {}, plan=plan) if names else plan.oracle.tally_type.empty(plan)


def collect_block(
    plan: Plan, block: EncodedBlock, noise: JobNoise, names: tuple[str, ...] = ()
) -> Any:
    """Tally the reports of a block, or of each of its groups by the named columns.

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
    return tally_by_group(
        made.reports,
        made.groups,
        groups.nodes,
        names=names,
        keys=groups.keys,
        designs=made.designs,
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
