"""Data sets of Ray as sources of rows, and what tasks do with blocks: tallies, parts of a job."""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
import secrets
import socket
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeVar

import turnout
from turnout._extras import require
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.answers import Answers
from turnout.pipeline.columns import digested
from turnout.pipeline.job import STATE_FOLDER, Totals
from turnout.pipeline.processing import JobNoise, PartTask, collect_block, collect_groups, part_path
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.running import totals_of
from turnout.pipeline.sources.base import BLOCK, Block, Source, TableBlock
from turnout.pipeline.sources.frames import RAY_DATASET, in_order, with_schema
from turnout.ray.tasks import RETRIES, prepare_worker, results


@dataclass(frozen=True)
class Piece:
    """Some rows of a table in Ray's object store.

    Parameters
    ----------
    reference
        The table.
    start, rows
        Its rows from ``start`` on.
    """

    reference: Any = field(repr=False)
    start: int
    rows: int


@dataclass(frozen=True, eq=False)
class ReferencedBlock(Block):
    """A block whose rows lie in Ray's object store.

    Parameters
    ----------
    index, rows, first_row, left_out
        As in every block.
    columns
        The columns that are wanted.
    pieces
        Where the rows are, in their order.
    present
        The columns that are there.
    digest
        What :func:`digested` gave when the rows were first looked at.
    """

    columns: tuple[str, ...]
    pieces: tuple[Piece, ...]
    present: tuple[str, ...]
    digest: bytes | None = field(default=None, repr=False)

    name: ClassVar[str] = RAY_DATASET

    @property
    def references(self) -> tuple[Any, ...]:
        """The tables; a task that takes them as arguments runs where they are."""
        return tuple(piece.reference for piece in self.pieces)

    def read(self) -> Any:
        """Get the rows, from other machines where they are there."""
        return self.given(require("ray", "ray").get(list(self.references))).table

    def given(self, tables: Sequence[Any]) -> TableBlock:
        """Make the block of the tables that its pieces belong to, and check it.

        Raises
        ------
        CorruptDataError
            If they are not what they were when the data set was materialised: rows that were lost
            with a machine, and that Ray made again, must be the same.
        """
        table = self.whole(tables)
        if self.digest is not None and digested(table) != self.digest:
            raise CorruptDataError(
                f"{self.name}: Ray made rows of block {self.index} again that had been lost, and "
                "they are not the same: the data set has a step that is not deterministic. Write "
                "it to files and start from these"
            )
        chosen = table.select(list(self.columns))
        return TableBlock(
            self.index, self.rows, chosen, first_row=self.first_row, left_out=self.left_out
        )

    def whole(self, tables: Sequence[Any]) -> Any:
        """Put the rows together, with all columns that are there."""
        pa = require("pyarrow", "ray")
        cuts = [
            _arrow(table).slice(piece.start, piece.rows).select(list(self.present))
            for table, piece in zip(tables, self.pieces, strict=True)
        ]
        table = pa.concat_tables(cuts, promote_options="permissive")
        if table.num_rows != self.rows:
            raise CorruptDataError(
                f"{self.name}: block {self.index} has {table.num_rows} rows and had {self.rows}"
            )
        return table

    def sent(self) -> ReferencedBlock:
        """Give the block without its references, for a task that gets these as arguments."""
        return replace(self, pieces=tuple(replace(piece, reference=None) for piece in self.pieces))


class DatasetSource(Source):
    """The rows of a data set, computed once and in order.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``.
    block_rows
        Rows of a block.

    Raises
    ------
    InvalidValueError
        If the data set is empty, so that Ray does not know its columns.
    """

    name = ReferencedBlock.name

    def __init__(self, dataset: Any, *, block_rows: int = BLOCK) -> None:
        self.block_rows = block_rows
        #: The columns that were kept.
        self.columns: tuple[str, ...] = ()
        self._cut: list[list[Piece]] | None = None
        self._digests: dict[int, bytes] = {}
        self._content: bytes | None = None
        self._dataset, self._schema = with_schema(dataset)

    @property
    def schema(self) -> Any:
        """The columns of the data set, and their types."""
        return self._schema

    def materialise(self, columns: Sequence[str], *, progress: bool = False) -> None:
        """Compute the data set, and keep the wanted columns in Ray's object store.

        One that is materialised already stays as it is.

        Parameters
        ----------
        columns
            The columns that are wanted.
        progress
            Whether Ray shows its progress bars.
        """
        kept = self._dataset
        if not isinstance(kept, require("ray.data.dataset", "ray").MaterializedDataset):
            with in_order(kept.context, progress):
                kept = kept.select_columns(list(columns)).materialize()
        tables: list[tuple[Any, int, int]] = []
        for bundle in kept.iter_internal_ref_bundles():
            slices = getattr(bundle, "slices", None) or [None] * len(bundle.blocks)
            for (reference, metadata), part in zip(bundle.blocks, slices, strict=True):
                start = 0 if part is None else part.start_offset
                rows = metadata.num_rows if part is None else part.num_rows
                tables.append((reference, start, rows))
        self.columns = tuple(columns)
        self._cut = list(_cut(tables, self.block_rows))
        self.rows = sum(rows for _, _, rows in tables)

    def remember(self, digests: Mapping[int, bytes]) -> None:
        """Take the digests of all blocks: those that are listed from now on carry theirs."""
        self._digests = dict(digests)
        state = hashlib.sha256(repr(self.columns).encode())
        for index in sorted(self._digests):
            state.update(self._digests[index])
        self._content = state.digest()

    def content(self) -> bytes | None:
        """Give the digest of all rows that was made of those of the blocks."""
        return self._content

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[ReferencedBlock]:
        """Cut the rows into blocks; nothing is read."""
        if self._cut is None:
            raise InvalidValueError(f"{self.name} has not been materialised")
        wanted, first = tuple(checked.names), 0
        for index, pieces in enumerate(self._cut):
            rows = sum(piece.rows for piece in pieces)
            if index not in skip:
                yield ReferencedBlock(
                    index,
                    rows,
                    wanted,
                    tuple(pieces),
                    self.columns,
                    self._digests.get(index),
                    first_row=first,
                )
            first += rows


def _cut(tables: Sequence[tuple[Any, int, int]], size: int) -> Iterator[list[Piece]]:
    """Cut rows into blocks of ``size``, of which the last may be smaller."""
    pieces: list[Piece] = []
    room = size
    for reference, first, rows in tables:
        start = first
        while start < first + rows:
            taken = min(room, first + rows - start)
            pieces.append(Piece(reference, start, taken))
            start += taken
            room -= taken
            if room == 0:
                yield pieces
                pieces, room = [], size
    if pieces:
        yield pieces


def _arrow(table: Any) -> Any:
    """Give a table as Arrow's; Ray's own may be of pandas."""
    if isinstance(table, require("pyarrow", "ray").Table):
        return table
    return require("ray.data.block", "ray").BlockAccessor.for_block(table).to_arrow()


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

    def submit(block: Block) -> Any:
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
