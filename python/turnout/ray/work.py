"""What tasks do: blocks to tallies, blocks to parts of a job."""

from __future__ import annotations

import functools
import itertools
import operator
import secrets
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import turnout
from turnout._extras import require
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.answers import Answers
from turnout.pipeline.digests import digested
from turnout.pipeline.job import STATE_FOLDER, Totals
from turnout.pipeline.parts import PartTask, part_path
from turnout.pipeline.processing import JobNoise, collect_block, collect_groups
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.running import totals_of
from turnout.pipeline.sources import Block
from turnout.ray.datasets import DatasetSource, ReferencedBlock
from turnout.ray.tasks import RETRIES, prepare_worker, results

AnyTally = BaseTally | GroupedTally
T = TypeVar("T")

#: Blocks that one task tallies: some four million rows.
STRETCH: Final = 4


@dataclass(frozen=True)
class Recipe:
    """What all tasks of a job have in common, without its secrets.

    Attributes
    ----------
    answers
        How blocks are encoded.
    plan
        The oracle and the participation.
    part
        How parts are written, its noise left out; None if no reports are kept.
    """

    answers: Answers
    plan: Plan
    part: PartTask | None = None


@dataclass(frozen=True)
class Secrets:
    """What goes to the tasks of a job beside their rows, and must not lie about.

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
        return replace(answers, pseudonym_key=PseudonymKey(self.pseudonym_secret))


_NO_NOISE: Final = JobNoise(None, None)


class Tasks:
    """The tasks of a job, as remote functions.

    Parameters
    ----------
    ray
        The module, connected.
    recipe
        What they have in common.
    noise
        The job's secret.
    """

    def __init__(self, ray: Any, recipe: Recipe, noise: JobNoise) -> None:
        self._secrets = Secrets.of(noise, recipe.answers.pseudonym_key)
        # A domain may be large: it is sent once to each worker.
        part = None if recipe.part is None else replace(recipe.part, noise=_NO_NOISE)
        answers = replace(recipe.answers, pseudonym_key=None)
        public = replace(recipe, answers=answers, part=part)
        self._shared = (turnout.__version__, secrets.token_hex(8), [ray.put(public)])

        def remote(function: Any, returns: int = 1) -> Any:
            return ray.remote(num_cpus=1, max_retries=RETRIES, num_returns=returns)(function)

        self._collect = remote(_collect, 2)
        self._write = remote(_write)
        self.merge = remote(merged)

    def collect(self, blocks: Sequence[Block]) -> tuple[Any, Any]:
        """Submit a task that tallies blocks: a reference for its end and one for the tally."""
        ended, tally = self._collect.remote(self._shared, self._secrets, *_arguments(blocks))
        return ended, tally

    def write(self, number: int, blocks: Sequence[Block]) -> Any:
        """Submit a task that writes a part, or reads what it says if it is there.

        Parameters
        ----------
        number
            Which part.
        blocks
            Its blocks; none if its file is there.
        """
        return self._write.remote(self._shared, self._secrets, number, *_arguments(blocks))


def digests(ray: Any, source: DatasetSource, limit: int) -> dict[int, bytes]:
    """Compute the digests of all blocks of a data set, where they are."""
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_digest)
    version, columns = turnout.__version__, source.columns

    def submit(block: ReferencedBlock) -> Any:
        return task.remote(version, *_arguments([block]))

    found = results(ray, submit, source.blocks(columns), limit)
    return {block.index: digest for block, digest in found}


def stretches(blocks: Iterable[T], size: int = STRETCH) -> Iterator[list[T]]:
    """Put blocks together that one task works on.

    Examples
    --------
    >>> list(stretches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    each = iter(blocks)
    while together := list(itertools.islice(each, size)):
        yield together


def _arguments(blocks: Sequence[Block]) -> list[Any]:
    """Make arguments of blocks: tables in the object store come after the blocks."""
    sent = [block.sent() if isinstance(block, ReferencedBlock) else block for block in blocks]
    tables = [
        reference
        for block in blocks
        if isinstance(block, ReferencedBlock)
        for reference in block.references
    ]
    return [sent, *tables]


def _given(blocks: Sequence[Block], tables: Sequence[Any]) -> Iterator[Block]:
    """Put the tables back into their blocks, one block after the other."""
    rest = iter(tables)
    for block in blocks:
        if isinstance(block, ReferencedBlock):
            yield block.given(list(itertools.islice(rest, len(block.pieces))))
        else:
            yield block


# What follows runs in workers. -----------------------------------------------------------------


#: The recipe of the job that this worker worked on last, by a name of its own.
_KNOWN: dict[str, Recipe] = {}


def _recipe(shared: tuple[str, str, list[Any]], hidden: Secrets) -> Recipe:
    version, name, box = shared
    prepare_worker(version)
    if name not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[name] = require("ray", "ray").get(box[0])
    recipe = _KNOWN[name]
    return replace(recipe, answers=hidden.unlocked(recipe.answers))


def _collect(
    shared: Any, hidden: Secrets, blocks: Sequence[Block], *tables: Any
) -> tuple[None, AnyTally]:
    recipe = _recipe(shared, hidden)
    answers, plan = recipe.answers, recipe.plan
    tallies: list[AnyTally] = []
    for block in _given(blocks, tables):
        encoded = answers.encoded(block, plan.oracle.domain)
        if answers.group_by:
            tallies.append(collect_groups(plan, encoded, hidden.noise, answers.group_by))
        else:
            tallies.append(collect_block(plan, encoded, hidden.noise))
    return None, merged(*tallies)


def _write(
    shared: Any, hidden: Secrets, number: int, blocks: Sequence[Block], *tables: Any
) -> Totals:
    recipe = _recipe(shared, hidden)
    assert recipe.part is not None
    part = replace(recipe.part, noise=hidden.noise)
    if not (part.folder / STATE_FOLDER).is_dir():
        raise InvalidValueError(
            f"output must be a folder that all machines of the cluster share: {str(part.folder)!r} "
            f"is not there on {socket.gethostname()}"
        )
    if not blocks:
        header = part.find(number)
        if header is None:
            raise CorruptDataError(f"{part_path(part.folder, number)}: was there and is gone")
        return totals_of([header])
    encode, domain = recipe.answers.encoded, recipe.plan.oracle.domain
    encoded = (encode(block, domain) for block in _given(blocks, tables))
    return totals_of([part.write(number, encoded)])


def merged(*tallies: Any) -> Any:
    """Merge tallies of one plan."""
    return functools.reduce(operator.add, tallies)


def _digest(version: str, blocks: Sequence[ReferencedBlock], *tables: Any) -> bytes:
    prepare_worker(version)
    return digested(blocks[0].whole(tables))
